//! The frame that goes from end to end: what the sink has of each block, and what the hops of the path lose.
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
//! It stands behind the REPORT, whose session is its own. The sink draws the instance when it starts and counts the
//! number; L: something has arrived, and the latest batch of which something did is that one; Q: and nothing has for a
//! while. Relays pass the newest one on, and each puts the hop behind it in front of the list.

use hopcast_core::bytes::{Malformed, Reader, Writer};

use super::codes::END_TO_END;
use super::news::is_news;

/// Maximum number of hops that are reported: of those beyond, nothing is known. Chosen: it bounds the report's length.
const MAX_HOPS: usize = 32;
/// Maximum number of blocks that are reported, which bounds how many are under way. Chosen: it bounds the report; with
/// fewer, a long path is not filled.
pub(in super::super) const MAX_BLOCKS: usize = 16;

/// Rank of a block that lacks nothing: a number that no rank reaches.
pub(in super::super) const COMPLETE: u16 = u16::MAX;

/// State of the sink.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct EndToEndReport {
    pub(in super::super) instance: u16,
    pub(in super::super) number: u16,
    /// Nothing has arrived for a while.
    pub(in super::super) quiet: bool,
    /// 24 bits: the first block that is not over.
    pub(in super::super) first: u32,
    /// The block (24 bits) and BID of the batch that arrived last for the first time.
    pub(in super::super) latest: Option<(u32, u16)>,
    /// The mean rank of whole batches, in 1/256.
    pub(in super::super) mean: u16,
    pub(in super::super) hops: List<HopQuality, MAX_HOPS>,
    /// Number of innovative packets of each block from the first on, or [`COMPLETE`].
    pub(in super::super) ranks: List<u16, MAX_BLOCKS>,
}

/// Losses of a hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct HopQuality {
    loss: u8,
    burst: u8,
}

impl HopQuality {
    pub(in super::super) fn new(loss: f64, burst: f64) -> Self {
        Self { loss: (loss * 255.0).round() as u8, burst: (burst * 4.0).round() as u8 }
    }

    /// The share of packets that it loses.
    pub(in super::super) fn loss(self) -> f64 {
        f64::from(self.loss) / 255.0
    }

    /// Average number of packets lost in a row.
    pub(in super::super) fn burst(self) -> f64 {
        (f64::from(self.burst) / 4.0).max(1.0)
    }
}

impl EndToEndReport {
    pub(in super::super) const fn len(&self) -> usize {
        1 + 2 + 2 + 3 + 3 + 2 + 2 + 1 + 2 * self.hops.len() + 1 + 2 * self.ranks.len()
    }

    /// Reads it, but for the byte that names it.
    pub(in super::super) fn read(reader: &mut Reader<'_>, kind: u8) -> Result<Self, Malformed> {
        let instance = reader.u16("end-to-end instance")?;
        let number = reader.u16("end-to-end number")?;
        let first = reader.u24("end-to-end first block")?;
        let latest = (reader.u24("end-to-end latest block")?, reader.u16("end-to-end latest batch")?);
        let mean = reader.u16("end-to-end mean rank")?;
        let mut hops = List::default();
        for _ in 0..reader.u8("end-to-end hops")? {
            let hop =
                HopQuality { loss: reader.u8("end-to-end loss")?, burst: reader.u8("end-to-end burst")? };
            hops.push(hop).ok_or(Malformed { field: "end-to-end hops" })?;
        }
        let mut ranks = List::default();
        for _ in 0..reader.u8("end-to-end blocks")? {
            ranks.push(reader.u16("end-to-end rank")?).ok_or(Malformed { field: "end-to-end blocks" })?;
        }
        let latest = (kind & 1 != 0).then_some(latest);
        Ok(Self { instance, number, quiet: kind & 2 != 0, first, latest, mean, hops, ranks })
    }

    pub(in super::super) fn write(&self, out: &mut Writer<'_>) {
        out.u8(END_TO_END << 4 | u8::from(self.quiet) << 1 | u8::from(self.latest.is_some()));
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

    /// Notes the hop that it has come over against the current; of those beyond the maximum, nothing is known.
    pub(in super::super) fn pass(&mut self, own: HopQuality) {
        let mut hops = List::default();
        _ = hops.push(own);
        for &hop in self.hops.iter() {
            _ = hops.push(hop);
        }
        self.hops = hops;
    }

    /// Whether it is news after `old`.
    pub(in super::super) fn is_newer(&self, old: &Self) -> bool {
        self.instance != old.instance || is_news(self.number, old.number)
    }

    /// The end-to-end report of several branches: what the neediest has of each block, and the worst of each hop.
    pub(in super::super) fn merge(mut self, other: &Self) -> Self {
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
            let at = |hops: &List<HopQuality, MAX_HOPS>| hops.iter().nth(i).copied().unwrap_or_default();
            let (one, two) = (at(&hops), at(&other.hops));
            _ = worst.push(HopQuality { loss: one.loss.max(two.loss), burst: one.burst.max(two.burst) });
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
pub(in super::super) struct List<T, const N: usize> {
    len: u8,
    items: [T; N],
}

impl<T: Copy + Default, const N: usize> Default for List<T, N> {
    fn default() -> Self {
        Self { len: 0, items: [T::default(); N] }
    }
}

impl<T: Copy, const N: usize> List<T, N> {
    pub(in super::super) const fn len(&self) -> usize {
        self.len as usize
    }

    /// Adds an item; `None` if there is no room.
    #[must_use]
    pub(in super::super) fn push(&mut self, item: T) -> Option<()> {
        *self.items.get_mut(usize::from(self.len))? = item;
        self.len += 1;
        Some(())
    }

    pub(in super::super) fn iter(&self) -> core::slice::Iter<'_, T> {
        self.items[..self.len()].iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> EndToEndReport {
        let mut end_to_end = EndToEndReport {
            instance: 0x1112,
            number: 0x2122,
            quiet: true,
            first: 0x31_3233,
            latest: Some((0x41_4243, 0x5152)),
            mean: 0x6162,
            ..EndToEndReport::default()
        };
        end_to_end.hops.push(HopQuality::new(0.2, 2.5)).unwrap();
        end_to_end.ranks.push(COMPLETE).unwrap();
        end_to_end.ranks.push(0x0102).unwrap();
        end_to_end
    }

    fn written(end_to_end: &EndToEndReport) -> Vec<u8> {
        let mut bytes = vec![0; end_to_end.len()];
        end_to_end.write(&mut Writer::new(&mut bytes));
        bytes
    }

    fn read(bytes: &[u8]) -> Result<EndToEndReport, Malformed> {
        EndToEndReport::read(&mut Reader::new(&bytes[1..]), bytes[0])
    }

    #[test]
    fn an_end_to_end_report_is_these_bytes() {
        // A loss of 51/255, and ten quarters of a packet.
        let expected =
            b"\x43\x11\x12\x21\x22\x31\x32\x33\x41\x42\x43\x51\x52\x61\x62\x01\x33\x0A\x02\xFF\xFF\x01\x02";
        assert_eq!(written(&some()), expected);
        assert_eq!(read(expected), Ok(some()));
        assert_eq!(written(&EndToEndReport { quiet: false, ..some() })[0], 0x41);
        assert_eq!(written(&EndToEndReport { latest: None, ..some() })[..13][8..], [0; 5]);
        assert_eq!(written(&EndToEndReport { latest: None, ..some() })[0], 0x42);
    }

    #[test]
    fn an_end_to_end_report_tells_of_32_hops_and_16_blocks_at_most() {
        let mut end_to_end = some();
        for hops in 2..=40 {
            end_to_end.pass(HopQuality::new(0.4, 1.0));
            assert_eq!(end_to_end.hops.len(), hops.min(32));
            assert_eq!(
                end_to_end.hops.iter().next(),
                Some(&HopQuality::new(0.4, 1.0)),
                "the nearest in front"
            );
        }
        assert_eq!(read(&written(&end_to_end)), Ok(end_to_end));
        let mut hops = vec![0; 60 + 2 * 33];
        hops[15] = 33;
        assert_eq!(read(&hops), Err(Malformed { field: "end-to-end hops" }));
        let mut blocks = vec![0; 60];
        blocks[16] = 16;
        assert!(read(&blocks).is_ok());
        blocks[16] = 17;
        assert_eq!(read(&blocks), Err(Malformed { field: "end-to-end blocks" }));
    }

    #[test]
    fn of_several_branches_the_neediest_counts() {
        let with = |first, ranks: &[u16]| {
            let mut end_to_end =
                EndToEndReport { first, mean: 256 + (first & 0xFF) as u16, ..EndToEndReport::default() };
            ranks.iter().for_each(|&rank| end_to_end.ranks.push(rank).unwrap());
            end_to_end
        };
        let (one, other) = (with(7, &[3, COMPLETE, 9]), with(8, &[5, 8]));
        for merged in [one.merge(&other), other.merge(&one)] {
            assert_eq!((merged.first, merged.mean), (7, 263));
            // Of what is before the other's first it lacks nothing.
            assert!(merged.ranks.iter().eq(&[3, 5, 8]), "{:?}", merged.ranks);
        }
        let wrapped = with(0, &[4]).merge(&with(0xFF_FFFF, &[2, 6]));
        assert_eq!(wrapped.first, 0xFF_FFFF);
        assert!(wrapped.ranks.iter().eq(&[2, 4]), "{:?}", wrapped.ranks);
    }
}
