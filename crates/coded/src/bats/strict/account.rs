//! The frame that goes from end to end: what the sink has of each block, and what the hops on the way lose.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |0 1 0 0|0 0|Q|L|           instance            |    number
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!      number     |              first block                      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |             latest block                      |  latest BID
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//!    latest BID   |        mean rank, 1/256       |     hops      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | for each hop: its loss, 1/255 |  mean burst, 1/4 packet  | …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |    blocks     | for each block from the first on: its rank   …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! A rank of 0xFFFF says that the block is complete, and waits only for those before it.
//!
//! It stands behind the REPORT, whose session is its own. The sink draws the instance when it starts and counts the number;
//! L: something has arrived, and the latest batch of which something did is that one; Q: and nothing has for a while.
//! Relays pass the newest one on, and each puts the hop behind it in front of the list.

use super::super::wire::{ACCOUNT, Malformed, Reader, Writer, is_news};

/// The most hops that are told of.
const MOST_HOPS: usize = 32;
/// The most blocks.
pub(in super::super) const MOST_BLOCKS: usize = 16;

/// The rank of a block that lacks nothing.
pub(super) const COMPLETE: u16 = u16::MAX;

/// What the sink has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Account {
    pub(super) instance: u16,
    pub(super) number: u16,
    /// Nothing has arrived for a while.
    pub(super) quiet: bool,
    /// 24 bits: the first block that is not over.
    pub(super) first: u32,
    /// The block (24 bits) and BID of the batch that arrived last for the first time.
    pub(super) latest: Option<(u32, u16)>,
    /// The mean rank of whole batches, in 1/256.
    pub(super) mean: u16,
    pub(super) hops: List<Hop, MOST_HOPS>,
    /// Of each block from the first on, so many packets were innovative, or [`COMPLETE`].
    pub(super) ranks: List<u16, MOST_BLOCKS>,
}

/// What is measured of a hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hop {
    loss: u8,
    burst: u8,
}

impl Hop {
    pub(super) fn new(loss: f64, burst: f64) -> Self {
        Self { loss: (loss * 255.0).round() as u8, burst: (burst * 4.0).round() as u8 }
    }

    /// The share of packets that it loses.
    pub(super) fn loss(self) -> f64 {
        f64::from(self.loss) / 255.0
    }

    /// How many in a row.
    pub(super) fn burst(self) -> f64 {
        (f64::from(self.burst) / 4.0).max(1.0)
    }
}

impl Account {
    pub(in super::super) const fn len(&self) -> usize {
        1 + 2 + 2 + 3 + 3 + 2 + 2 + 1 + 2 * self.hops.len() + 1 + 2 * self.ranks.len()
    }

    /// Reads it, but for the byte that names it.
    pub(in super::super) fn read(reader: &mut Reader<'_>, kind: u8) -> Result<Self, Malformed> {
        let instance = reader.u16("account instance")?;
        let number = reader.u16("account number")?;
        let first = reader.u24("account first block")?;
        let latest = (reader.u24("account latest block")?, reader.u16("account latest batch")?);
        let mean = reader.u16("account mean rank")?;
        let mut hops = List::default();
        for _ in 0..reader.u8("account hops")? {
            let hop = Hop { loss: reader.u8("account loss")?, burst: reader.u8("account burst")? };
            hops.push(hop).ok_or(Malformed { field: "account hops" })?;
        }
        let mut ranks = List::default();
        for _ in 0..reader.u8("account blocks")? {
            ranks.push(reader.u16("account rank")?).ok_or(Malformed { field: "account blocks" })?;
        }
        let latest = (kind & 1 != 0).then_some(latest);
        Ok(Self { instance, number, quiet: kind & 2 != 0, first, latest, mean, hops, ranks })
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        out.u8(ACCOUNT << 4 | u8::from(self.quiet) << 1 | u8::from(self.latest.is_some()));
        out.u16(self.instance);
        out.u16(self.number);
        out.u24(self.first & 0xFF_FFFF);
        let (block, batch) = self.latest.unwrap_or_default();
        out.u24(block);
        out.u16(batch);
        out.u16(self.mean);
        out.u8(self.hops.len() as u8);
        for hop in self.hops.iter() {
            out.u8(hop.loss);
            out.u8(hop.burst);
        }
        out.u8(self.ranks.len() as u8);
        for &rank in self.ranks.iter() {
            out.u16(rank);
        }
    }

    /// Notes the hop that it has come over against the current; of those beyond the most, nothing is known.
    pub(super) fn pass(&mut self, own: Hop) {
        let mut hops = List::default();
        _ = hops.push(own);
        for &hop in self.hops.iter() {
            _ = hops.push(hop);
        }
        self.hops = hops;
    }

    /// Whether it is news after `old`.
    pub(super) fn is_newer(&self, old: &Self) -> bool {
        self.instance != old.instance || is_news(self.number, old.number)
    }

    /// The account of several branches: what the neediest has of each block, and the worst of each hop.
    pub(super) fn merge(mut self, other: &Self) -> Self {
        // How much nearer its end the other is.
        let ahead = (other.first.wrapping_sub(self.first) << 8) as i32 >> 8;
        let (mut ranks, hops) = (List::default(), self.hops);
        let (behind, before) = if ahead < 0 { (other, &self) } else { (&self, other) };
        let skip = ahead.unsigned_abs() as usize;
        for (i, &rank) in behind.ranks.iter().enumerate() {
            let there = i.checked_sub(skip).map(|i| before.ranks.iter().nth(i).copied().unwrap_or(0));
            _ = ranks.push(rank.min(there.unwrap_or(COMPLETE)));
        }
        let (first, latest) = (behind.first, behind.latest);
        let quiet = self.quiet && other.quiet;
        let mut worst = List::default();
        for i in 0..hops.len().max(other.hops.len()) {
            let at = |hops: &List<Hop, MOST_HOPS>| hops.iter().nth(i).copied().unwrap_or_default();
            let (one, two) = (at(&hops), at(&other.hops));
            _ = worst.push(Hop { loss: one.loss.max(two.loss), burst: one.burst.max(two.burst) });
        }
        (self.first, self.latest, self.quiet, self.ranks, self.hops) = (first, latest, quiet, ranks, worst);
        // Any of them is news; which instances there are does not matter, as long as they stay.
        self.instance ^= other.instance.rotate_left(1);
        self.number = self.number.wrapping_add(other.number);
        self.mean = self.mean.min(other.mean);
        self
    }
}

/// Up to `N` items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct List<T, const N: usize> {
    len: u8,
    items: [T; N],
}

impl<T: Copy + Default, const N: usize> Default for List<T, N> {
    fn default() -> Self {
        Self { len: 0, items: [T::default(); N] }
    }
}

impl<T: Copy, const N: usize> List<T, N> {
    pub(super) const fn len(&self) -> usize {
        self.len as usize
    }

    /// Adds an item; `None` if there is no room.
    #[must_use]
    pub(super) fn push(&mut self, item: T) -> Option<()> {
        *self.items.get_mut(usize::from(self.len))? = item;
        self.len += 1;
        Some(())
    }

    pub(super) fn iter(&self) -> core::slice::Iter<'_, T> {
        self.items[..self.len()].iter()
    }
}
