//! Forward error correction by blocks, as gateways such as UDPspeeder send it: datagrams leave at once and as they are,
//! and after each block of them follows parity by a Reed-Solomon code. Any as many packets of a block as it has
//! datagrams bring all of them.
//!
//! ```text
//! 0       4       5       6
//! | block | index | count | payload      a datagram: its place in the block, and a count of 0
//! | block | index | count | parity       parity: its number, and how many datagrams the block has
//! ```
//!
//! `block` is the number of the block, network order, from any number on. Parity is computed over symbols: the length
//! of a datagram, 16 bits, its payload, and zeros up to the length of the longest of the block.
//!
//! A block is at its end when it is full, or some time after its first datagram; one that is not full has its share of
//! parity, rounded up.
//!
//! *Scope and departures*: no feedback, so that parity is the same whatever is lost; datagrams are handed up as they
//! come and as they are computed, in no order. Nothing is authenticated.

use std::collections::VecDeque;
use std::net::SocketAddr;

use hopcast_code::reed_solomon::{Code, Error};
use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Machine, Outbox, Port};

/// Blocks behind the newest one of which datagrams are still taken. Chosen: it bounds memory; with fewer, paths of
/// different delay lose packets.
const WINDOW: u32 = 64;
/// Bytes of all blocks that are held to compute what is missing; beyond, the oldest blocks are given up. Chosen: a
/// window of blocks of 20 and 10 full packets takes a third of it.
const MAX_HELD: usize = 8 << 20;
/// Packets in a row that are of no block of the window, after which the sender is taken to have begun anew. Chosen:
/// more than arrive late of one block; more would lose more after a restart.
const RESTART: u32 = 32;

/// Bytes in front of each payload.
const PREFIX: usize = 6;
/// Bytes of the length in a symbol.
const LENGTH: usize = 2;

/// Settings of both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFecConfig {
    /// Datagrams of a full block, at least one.
    pub data: u8,
    /// Packets of parity for it.
    pub parity: u8,
    /// Time after the first datagram of a block at which it is at its end.
    pub wait: Duration,
}

impl Default for BlockFecConfig {
    /// UDPspeeder's 20 and 10, and its timeout.
    fn default() -> Self {
        Self { data: 20, parity: 10, wait: Duration::from_millis(8) }
    }
}

/// One end: a datagram port above and one below.
pub struct BlockFec {
    config: BlockFecConfig,
    code: Code,
    sending: Sending,
    /// The block of which packets come next behind those that are held.
    next: u32,
    /// The blocks before it, the newest last.
    blocks: VecDeque<Block>,
    held: usize,
    outside: u32,
    out: Outbox,
    counts: Counts,
}

/// The block that is being sent.
#[derive(Default)]
struct Sending {
    number: u32,
    symbols: Vec<Vec<u8>>,
    /// Local and remote address of its datagrams.
    ends: Option<(SocketAddr, SocketAddr)>,
    due: Option<Instant>,
}

/// A block of which packets come.
#[derive(Default)]
struct Block {
    /// Number of its datagrams, once any parity has told it.
    count: Option<u8>,
    /// Symbols of datagrams by their place, and parity by its number; no parity is held that nothing needs.
    symbols: Vec<Option<Vec<u8>>>,
    parity: Vec<(u8, Vec<u8>)>,
    /// Places of datagrams that were handed up.
    taken: [u64; 4],
    /// Nothing of it is held any more.
    is_over: bool,
}

#[derive(Default)]
struct Counts {
    parity_sent: u64,
    parity_received: u64,
    delivered: u64,
    recovered: u64,
    duplicates: u64,
    late: u64,
    malformed: u64,
    wrong_items: u64,
}

impl BlockFec {
    /// Bytes by which a packet may be longer than the longest datagram of its block.
    pub const OVERHEAD: usize = PREFIX + LENGTH;
    /// Of them, those that only parity has.
    pub const PARITY_OVERHEAD: usize = LENGTH;

    /// An end with these settings, whose first block has this number. One that begins anew should draw another, so that
    /// its blocks are not taken for those of before.
    ///
    /// # Errors
    ///
    /// There is no such code: a block has a datagram at least, and 255 packets at most.
    pub fn new(config: BlockFecConfig, first: u32) -> Result<Self, Error> {
        Ok(Self {
            config,
            code: Code::new(usize::from(config.data), usize::from(config.parity))?,
            sending: Sending { number: first, ..Sending::default() },
            next: 0,
            blocks: VecDeque::new(),
            held: 0,
            outside: 0,
            out: Outbox::new(),
            counts: Counts::default(),
        })
    }

    fn send(&mut self, now: Instant, mut datagram: Datagram) {
        let Ok(len) = u16::try_from(datagram.payload.len()) else {
            self.counts.wrong_items += 1;
            return;
        };
        let ends = (datagram.local, datagram.remote);
        if self.sending.ends.is_some_and(|other| other != ends) {
            self.end_block();
        }
        let sending = &mut self.sending;
        sending.due.get_or_insert(now + self.config.wait);
        sending.ends = Some(ends);
        let prefix = prefix(sending.number, sending.symbols.len() as u8, 0);
        sending.symbols.push(symbol(len, &datagram.payload));
        datagram.payload.prepend(PREFIX).copy_from_slice(&prefix);
        self.out.down(Item::Datagram(datagram));
        if self.sending.symbols.len() == usize::from(self.config.data) {
            self.end_block();
        }
    }

    /// Sends the parity of the block, and begins the next one.
    fn end_block(&mut self) {
        let number = self.sending.number.wrapping_add(1);
        let Sending { number, mut symbols, ends, .. } =
            std::mem::replace(&mut self.sending, Sending { number, ..Sending::default() });
        let Some((local, remote)) = ends else { return };
        let longest = symbols.iter().map(Vec::len).max().unwrap_or(0);
        symbols.iter_mut().for_each(|symbol| symbol.resize(longest, 0));
        let symbols: Vec<&[u8]> = symbols.iter().map(Vec::as_slice).collect();
        let (data, parity) = (usize::from(self.config.data), usize::from(self.config.parity));
        for index in 0..(symbols.len() * parity).div_ceil(data) {
            let mut packet = vec![0; PREFIX + longest];
            packet[..PREFIX].copy_from_slice(&prefix(number, index as u8, symbols.len() as u8));
            if self.code.parity(index, &symbols, &mut packet[PREFIX..]).is_err() {
                break;
            }
            self.counts.parity_sent += 1;
            self.out.down(Item::Datagram(Datagram::new(local, remote, Buffer::copy_from(&packet))));
        }
    }

    fn receive(&mut self, mut datagram: Datagram) {
        let Some((&[b0, b1, b2, b3, index, count], payload)) = datagram.payload.split_first_chunk() else {
            self.counts.malformed += 1;
            return;
        };
        let number = u32::from_be_bytes([b0, b1, b2, b3]);
        let limit = if count == 0 { self.config.data } else { self.config.parity };
        let is_sound = index < limit && count <= self.config.data && (count == 0 || payload.len() >= LENGTH);
        if !is_sound || payload.len() > LENGTH + usize::from(u16::MAX) {
            self.counts.malformed += 1;
            return;
        }
        let Some(place) = self.place(number) else {
            self.counts.late += 1;
            return;
        };
        let ends = (datagram.local, datagram.remote);
        let block = &mut self.blocks[place];
        if count > 0 {
            self.counts.parity_received += 1;
            if let Some(more) = block.add_parity(index, count, payload) {
                self.held += more;
            } else {
                self.counts.malformed += 1;
            }
        } else if block.take(index) {
            self.held += block.add(index, payload, self.config.parity > 0);
            datagram.payload.advance(PREFIX);
            self.counts.delivered += 1;
            self.out.up(Item::Datagram(datagram));
        } else {
            self.counts.duplicates += 1;
        }
        self.recover(place, ends);
        self.forget();
    }

    /// Where the block of a number is among those that are held; `None` if it is older than all of them.
    fn place(&mut self, number: u32) -> Option<usize> {
        let ahead = number.wrapping_sub(self.next).cast_signed();
        let is_new = ahead >= 0 || ahead.unsigned_abs() as usize > self.blocks.len();
        if is_new && ahead < 0 && !self.blocks.is_empty() {
            self.outside += 1;
            if self.outside < RESTART {
                return None;
            }
        }
        self.outside = 0;
        if is_new {
            let skipped = ahead.unsigned_abs();
            if ahead < 0 || skipped >= WINDOW {
                self.blocks.clear();
                self.held = 0;
            } else {
                self.blocks.extend((0..skipped).map(|_| Block::default()));
            }
            self.blocks.push_back(Block::default());
            self.next = number.wrapping_add(1);
            while self.blocks.len() > WINDOW as usize {
                self.drop_oldest();
            }
        }
        let behind = self.next.wrapping_sub(number) as usize;
        self.blocks.len().checked_sub(behind)
    }

    /// Computes what is missing of a block, if that is possible, and hands it up as come by these addresses.
    fn recover(&mut self, place: usize, (local, remote): (SocketAddr, SocketAddr)) {
        let block = &mut self.blocks[place];
        let Some(count) = block.count.filter(|_| !block.is_over) else { return };
        let Some(found) = block.missing(&self.code, usize::from(count)) else { return };
        for (index, symbol) in found {
            let payload = symbol
                .split_first_chunk()
                .and_then(|(&len, payload)| payload.get(..usize::from(u16::from_be_bytes(len))));
            match payload {
                Some(payload) if block.take(index) => {
                    self.counts.recovered += 1;
                    self.counts.delivered += 1;
                    let payload = Buffer::copy_from(payload);
                    self.out.up(Item::Datagram(Datagram::new(local, remote, payload)));
                }
                _ => self.counts.malformed += 1,
            }
        }
        self.held -= block.end();
    }

    /// Gives up old blocks where too much is held.
    fn forget(&mut self) {
        while self.held > MAX_HELD && !self.blocks.is_empty() {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(mut block) = self.blocks.pop_front() {
            self.held -= block.end();
        }
    }
}

const fn prefix(block: u32, index: u8, count: u8) -> [u8; PREFIX] {
    let [b0, b1, b2, b3] = block.to_be_bytes();
    [b0, b1, b2, b3, index, count]
}

/// The symbol of a datagram, without the zeros up to the length of others.
fn symbol(len: u16, payload: &[u8]) -> Vec<u8> {
    [&len.to_be_bytes(), payload].concat()
}

impl Block {
    /// Notes that a datagram is handed up. False if it was before.
    fn take(&mut self, index: u8) -> bool {
        let (word, bit) = (&mut self.taken[usize::from(index / 64)], 1 << (index % 64));
        let is_first = *word & bit == 0;
        *word |= bit;
        is_first
    }

    /// Holds a datagram's symbol, if anything may need it; the bytes that it takes.
    fn add(&mut self, index: u8, payload: &[u8], is_needed: bool) -> usize {
        if self.is_over || !is_needed {
            return 0;
        }
        let index = usize::from(index);
        if self.symbols.len() <= index {
            self.symbols.resize(index + 1, None);
        }
        // Payloads of more than 16 bits of length are refused before.
        let symbol = symbol(payload.len() as u16, payload);
        let more = symbol.len();
        self.symbols[index] = Some(symbol);
        more
    }

    /// Holds a packet of parity; the bytes that it takes. `None` if it contradicts what is known of the block.
    fn add_parity(&mut self, index: u8, count: u8, parity: &[u8]) -> Option<usize> {
        if self.is_over || self.parity.iter().any(|&(other, _)| other == index) {
            return Some(0);
        }
        let agrees = self.count.is_none_or(|known| known == count)
            && self.parity.first().is_none_or(|(_, other)| other.len() == parity.len());
        if !agrees {
            return None;
        }
        self.count = Some(count);
        self.parity.push((index, parity.to_vec()));
        Some(parity.len())
    }

    /// The datagrams that are missing, as symbols with their places; `None` while there is not enough. Nothing is
    /// missing if the block contradicts itself.
    fn missing(&self, code: &Code, count: usize) -> Option<Vec<(u8, Vec<u8>)>> {
        let here = || self.symbols.iter().enumerate().filter_map(|(place, it)| Some((place, it.as_ref()?)));
        let lacks = count.saturating_sub(here().count());
        if lacks > self.parity.len() {
            return None;
        }
        let len = self.parity.first().map_or(0, |(_, parity)| parity.len());
        if lacks == 0 || here().any(|(place, symbol)| place >= count || symbol.len() > len) {
            return Some(Vec::new());
        }
        let padded: Vec<Vec<u8>> = here()
            .map(|(_, symbol)| {
                let mut symbol = symbol.clone();
                symbol.resize(len, 0);
                symbol
            })
            .collect();
        let parity = &self.parity[..lacks];
        let places = here().map(|(place, _)| place);
        let indices: Vec<usize> =
            places.chain(parity.iter().map(|&(index, _)| count + usize::from(index))).collect();
        let symbols: Vec<&[u8]> = padded
            .iter()
            .map(Vec::as_slice)
            .chain(parity.iter().map(|(_, parity)| parity.as_slice()))
            .collect();
        let mut decoder = code.decoder();
        decoder.prepare_short(count, &indices).ok()?;
        let recover = |&place: &usize| {
            let mut symbol = vec![0; len];
            decoder.recover(place, &symbols, &mut symbol).ok()?;
            Some((place as u8, symbol))
        };
        decoder.missing().iter().map(recover).collect()
    }

    /// Holds nothing any more; the bytes that it held.
    fn end(&mut self) -> usize {
        self.is_over = true;
        let symbols = std::mem::take(&mut self.symbols).into_iter().flatten().map(|symbol| symbol.len());
        let parity = std::mem::take(&mut self.parity).into_iter().map(|(_, parity)| parity.len());
        symbols.sum::<usize>() + parity.sum::<usize>()
    }
}

impl Machine for BlockFec {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.wake(now);
        match (port, item) {
            (Port::Above(_), Item::Datagram(datagram)) => self.send(now, datagram),
            (Port::Below(_), Item::Datagram(datagram)) => self.receive(datagram),
            _ => self.counts.wrong_items += 1,
        }
    }

    fn wake(&mut self, now: Instant) {
        if self.sending.due.is_some_and(|due| due <= now) {
            self.end_block();
        }
    }

    fn poll(&mut self, _: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        self.sending.due
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("parity_sent", self.counts.parity_sent);
        report("parity_received", self.counts.parity_received);
        report("datagrams_delivered", self.counts.delivered);
        report("datagrams_recovered", self.counts.recovered);
        report("duplicates_received", self.counts.duplicates);
        report("late_received", self.counts.late);
        report("malformed", self.counts.malformed);
        report("wrong_items", self.counts.wrong_items);
    }
}

#[cfg(test)]
mod tests;
