//! The far end: blocks are decoded, their symbols delivered in order, and an end-to-end report is given of what they
//! lack.

use std::collections::VecDeque;

use hopcast_code::bats::{Decoder, Parameters};
use hopcast_code::rlnc::Outcome;
use hopcast_core::{Duration, Instant, earliest};

use super::super::edge::Delivered;
use super::super::shape::Shape;
use super::super::span::MAX_SYMBOLS;
use super::super::wire::{COMPLETE, EndToEndReport, List};
use super::code;
use super::direction::Arrived;
use super::order::Order;

/// Silence after which what was under way is lost. Chosen: longer than a relay waits for a batch to be over; longer
/// still, and the last packets of a transfer are repaired later.
pub(super) const QUIET_AFTER: Duration = Duration::from_millis(5);
/// Batches after which the mean rank has faded to 1/e. Chosen: those of two blocks; fewer are noisy, more follow a
/// change late.
const MEMORY: f64 = 64.0;

/// The decoders of a session.
pub(super) struct Sink {
    shape: Shape,
    session: u32,
    parameters: Parameters,
    window: u64,
    instance: u16,
    number: u16,
    /// The first block that is not over, and the position of the next symbol in it.
    first: u64,
    next: usize,
    /// The blocks from the first on that are known of.
    blocks: VecDeque<Block>,
    spare: Vec<Decoder>,
    latest: Option<(u64, u16)>,
    arrived: Instant,
    mean: f64,
    /// Symbols that were given up since anything was delivered.
    lost: u64,
    /// Number of symbols of the first block that were delivered.
    given: usize,
    /// Until when what is known after the next symbol can wait for it.
    pub(super) held_until: Option<Instant>,
    padded: Vec<u8>,
}

/// A block that is not over.
#[derive(Default)]
struct Block {
    decoder: Option<Decoder>,
    depth: u8,
    /// Number of its symbols, once that is known.
    count: Option<u16>,
    /// Number of packets that were innovative, in all and of each batch.
    rank: u16,
    ranks: Vec<u8>,
    /// Number of systematic batches that have been counted for the mean.
    counted: u16,
    /// After the last systematic batch that was heard of.
    heard: u16,
    /// Time at which something new was last heard of it.
    grown: Instant,
}

impl Block {
    /// Forgets all that has come of it; gives its decoder back.
    fn forget(&mut self) -> Option<Decoder> {
        core::mem::replace(self, Self { grown: self.grown, ..Self::default() }).decoder
    }
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Innovative,
    Redundant,
    /// There is no place for its block yet.
    Beyond,
    /// It contradicts what is known.
    Contradiction,
}

impl Sink {
    /// A sink from the symbol `floor` on; `None` for a shape that no code has.
    pub(super) fn new(shape: Shape, session: u32, batches: u16, floor: u64, instance: u16) -> Option<Self> {
        Some(Self {
            parameters: code::parameters(shape)?,
            window: code::window(shape, batches),
            shape,
            session,
            instance,
            number: 0,
            first: floor / u64::from(shape.block),
            next: (floor % u64::from(shape.block)) as usize,
            blocks: VecDeque::new(),
            spare: Vec::new(),
            latest: None,
            arrived: Instant::ZERO,
            mean: 0.0,
            lost: 0,
            given: 0,
            held_until: None,
            padded: vec![0; usize::from(shape.symbol)],
        })
    }

    /// The first symbol that is not delivered.
    pub(super) const fn floor(&self) -> u64 {
        self.first * self.shape.block as u64 + self.next as u64
    }

    /// Number of blocks that must be given up to make place for one.
    pub(super) const fn crowded(&self, block: u64) -> u64 {
        (block + 1).saturating_sub(self.first + self.window)
    }

    /// Takes a packet.
    pub(super) fn push(&mut self, now: Instant, packet: &Arrived, payload: &[u8]) -> Taken {
        self.arrived = now;
        if packet.block < self.first {
            return Taken::Redundant;
        }
        if packet.block >= self.first + self.window {
            return Taken::Beyond;
        }
        let at = (packet.block - self.first) as usize;
        while self.blocks.len() <= at {
            self.blocks.push_back(Block { grown: now, ..Block::default() });
        }
        let systematic = u64::from(packet.header.id) < self.shape.batches();
        if self.blocks[at].decoder.as_ref().is_some_and(|_| self.blocks[at].depth != packet.depth) {
            return Taken::Contradiction;
        }
        self.blocks[at].depth = packet.depth;
        if !self.learn(at, packet, systematic) {
            return Taken::Contradiction;
        }
        self.open(at);
        let Self { blocks, parameters, padded, .. } = self;
        let block = &mut blocks[at];
        let Some(decoder) = &mut block.decoder else { return Taken::Redundant };
        let payload = if payload.len() == padded.len() {
            payload
        } else {
            padded.fill(0);
            padded[..payload.len()].copy_from_slice(payload);
            padded
        };
        let symbols = parameters.batch().packets();
        let mut unit = [0; MAX_SYMBOLS];
        let vector = match packet.index {
            Some(index) => {
                unit[usize::from(index)] = 1;
                &unit
            }
            None => &packet.vector,
        };
        let id = usize::from(packet.header.id);
        if block.ranks.get(id).is_none_or(|&rank| rank == 0) {
            self.latest = Some((packet.block, packet.header.id));
        }
        if decoder.push(packet.header.id, &vector[..symbols], payload) != Ok(Outcome::Innovative) {
            return Taken::Redundant;
        }
        block.rank = block.rank.saturating_add(1);
        block.grown = now;
        if block.ranks.len() <= id {
            block.ranks.resize(id + 1, 0);
        }
        block.ranks[id] = block.ranks[id].saturating_add(1);
        if systematic {
            block.heard = block.heard.max(packet.header.id + 1);
            self.count(at);
        }
        Taken::Innovative
    }

    /// Learns from the header of a packet how many symbols a block has; false if that cannot be.
    fn learn(&mut self, at: usize, packet: &Arrived, systematic: bool) -> bool {
        let count = packet.header.block;
        if count == 0 || count > self.shape.block {
            return false;
        }
        // A systematic batch announces the length of the block before.
        let of = if systematic { at.checked_sub(1) } else { Some(at) };
        let Some(block) = of.and_then(|of| self.blocks.get_mut(of)) else { return true };
        match block.count {
            Some(known) if known != count => {
                // One of them was damaged in transit, and nobody knows which: the block is begun anew, and repaired.
                let decoder = block.forget();
                self.spare.extend(decoder);
                return false;
            }
            Some(_) => return true,
            None => block.count = Some(count),
        }
        if let Some(of) = of {
            self.pad(of);
        }
        true
    }

    /// Sees to it that a block has a decoder.
    fn open(&mut self, at: usize) {
        let block = &mut self.blocks[at];
        if block.decoder.is_some() {
            return;
        }
        let session = code::session(self.session, self.first + at as u64);
        let mut decoder = self.spare.pop().unwrap_or_else(|| Decoder::new(&self.parameters));
        decoder.start(session);
        block.decoder = Some(decoder);
        self.pad(at);
    }

    /// The symbols that a block might have had, and has not, are zeros.
    fn pad(&mut self, at: usize) {
        let Self { blocks, padded, shape, .. } = self;
        let Block { decoder: Some(decoder), count: Some(count), depth, .. } = &mut blocks[at] else { return };
        let symbols = shape.batch.symbols();
        let order = Order::new(symbols, shape.block, *depth);
        padded.fill(0);
        for position in usize::from(*count)..usize::from(shape.block) {
            let (batch, index) = order.place(position);
            let mut unit = [0; MAX_SYMBOLS];
            unit[index] = 1;
            _ = decoder.push(batch as u16, &unit[..symbols], padded);
        }
    }

    /// Counts the ranks of batches that are over: of which later ones, that were sent apart from them, are here.
    fn count(&mut self, at: usize) {
        let block = &mut self.blocks[at];
        let over = (block.heard >> block.depth).saturating_sub(1) << block.depth;
        while block.counted < over {
            let rank = block.ranks.get(usize::from(block.counted)).copied().unwrap_or(0);
            let share = if self.mean == 0.0 { 1.0 } else { 1.0 / MEMORY };
            self.mean += (f64::from(rank) - self.mean) * share;
            block.counted += 1;
        }
    }

    /// Delivers what is next, as long as it is known. Whether any block is over.
    pub(super) fn deliver(&mut self, mut symbol: impl FnMut(&Delivered<'_>)) -> bool {
        let before = self.first;
        while let Some(block) = self.blocks.front_mut() {
            let size = block.count.unwrap_or(self.shape.block);
            let order = Order::new(self.shape.batch.symbols(), self.shape.block, block.depth);
            if let Some(decoder) = &mut block.decoder {
                while decoder.poll().is_some() {}
                while self.next < usize::from(size)
                    && let Some(bytes) = decoder.symbol(order.symbol(self.next))
                {
                    let number = self.first * u64::from(self.shape.block) + self.next as u64;
                    symbol(&Delivered { number, missing: core::mem::take(&mut self.lost), bytes });
                    self.next += 1;
                    self.given += 1;
                }
            }
            if self.next < usize::from(size) {
                break;
            }
            self.finish();
        }
        self.first > before
    }

    /// Goes on to the next block.
    fn finish(&mut self) {
        if let Some(Block { decoder: Some(decoder), .. }) = self.blocks.pop_front() {
            self.spare.push(decoder);
        }
        (self.first, self.next, self.given) = (self.first + 1, 0, 0);
    }

    /// Time at which what the first block lacks is given up, if it lacks anything, where delivery has a deadline; what
    /// is held behind it may not be able to wait for so long.
    pub(super) fn gives_up(&self, after: Duration) -> Option<Instant> {
        let block = self.blocks.front()?;
        let lacks = self.blocks.len() > 1 || block.count.is_some() || usize::from(block.rank) > self.next;
        earliest(lacks.then_some(block.grown + after), self.held_until)
    }

    /// Gives up what cannot be waited for any longer, if there is anything, and delivers what is behind it.
    pub(super) fn pass(
        &mut self,
        now: Instant,
        after: Duration,
        symbol: &mut dyn FnMut(&Delivered<'_>),
    ) -> bool {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if !due(self.gives_up(after)) {
            return false;
        }
        if due(self.held_until) {
            self.pass_gap();
        } else {
            self.give_up(&mut *symbol);
        }
        self.deliver(symbol);
        true
    }

    /// The result of `of` for the first symbol, by its number, that is known after one that is missing and has any.
    pub(super) fn first_held<T>(&mut self, mut of: impl FnMut(u64, &[u8]) -> Option<T>) -> Option<T> {
        let (mut from, mut given) = (self.next, self.given);
        for (number, block) in (self.first..).zip(&mut self.blocks) {
            // Nothing is held that there is no packet of.
            let holds = usize::from(block.rank) > given;
            let size = usize::from(block.count.unwrap_or(self.shape.block));
            let order = Order::new(self.shape.batch.symbols(), self.shape.block, block.depth);
            if let Some(decoder) = block.decoder.as_mut().filter(|_| holds) {
                while decoder.poll().is_some() {}
                let begin = number * u64::from(self.shape.block);
                let known = |position: usize| Some((position, decoder.symbol(order.symbol(position))?));
                let found = (from..size).filter_map(known);
                let mut found = found.filter_map(|(position, symbol)| of(begin + position as u64, symbol));
                if let Some(found) = found.next() {
                    return Some(found);
                }
            }
            (from, given) = (0, 0);
        }
        None
    }

    /// Gives up what is missing before the first symbol that is known.
    fn pass_gap(&mut self) {
        while let Some(block) = self.blocks.front() {
            let size = usize::from(block.count.unwrap_or(self.shape.block));
            let order = Order::new(self.shape.batch.symbols(), self.shape.block, block.depth);
            let known = |position: usize| {
                block.decoder.as_ref().and_then(|decoder| decoder.symbol(order.symbol(position))).is_some()
            };
            let next = (self.next..size).find(|&position| known(position));
            self.lost += (next.unwrap_or(size).max(self.next) - self.next) as u64;
            match next {
                Some(next) => {
                    self.next = next;
                    return;
                }
                None => self.finish(),
            }
        }
    }

    /// Gives up what the first block lacks: its symbols that are known are delivered, the others are missing.
    pub(super) fn give_up(&mut self, mut symbol: impl FnMut(&Delivered<'_>)) {
        let others = self.blocks.len() > 1;
        let Some(block) = self.blocks.front_mut() else {
            self.lost += 1;
            self.finish();
            return;
        };
        let order = Order::new(self.shape.batch.symbols(), self.shape.block, block.depth);
        let known = |position: usize| {
            block.decoder.as_ref().and_then(|decoder| decoder.symbol(order.symbol(position)))
        };
        // Where the end is not known, it is after the last symbol that is.
        let last = (self.next..usize::from(self.shape.block)).rfind(|&position| known(position).is_some());
        let end = block.count.map_or_else(|| last.map_or(self.next, |last| last + 1), usize::from);
        let begin = self.first * u64::from(self.shape.block);
        for position in self.next..end {
            match known(position) {
                Some(bytes) => {
                    let missing = core::mem::take(&mut self.lost);
                    symbol(&Delivered { number: begin + position as u64, missing, bytes });
                    self.given += 1;
                }
                None => self.lost += 1,
            }
        }
        if block.count.is_some() || others {
            self.finish();
        } else {
            // It may still be filled. Combinations that say nothing of single symbols have waited as long.
            let heard = usize::from(block.rank).clamp(end, usize::from(self.shape.block).max(end));
            self.lost += (heard - end) as u64;
            self.next = heard;
        }
    }

    /// Goes on with a block; how many before it are given up. Those of which something is known are delivered as far as
    /// that goes.
    pub(super) fn skip_to(&mut self, block: u64, mut symbol: impl FnMut(&Delivered<'_>)) -> u64 {
        let skipped = block.saturating_sub(self.first);
        while self.first < block && !self.blocks.is_empty() {
            let before = self.first;
            self.give_up(&mut symbol);
            if self.first == before {
                self.finish();
            }
        }
        if self.first < block {
            self.lost += 1;
            (self.first, self.next, self.given) = (block, 0, 0);
        }
        skipped
    }

    /// An end-to-end report of what there is.
    pub(super) fn end_to_end(&mut self, now: Instant) -> EndToEndReport {
        self.number = self.number.wrapping_add(1);
        let mut ranks = List::default();
        for block in &mut self.blocks {
            // What is counted batch by batch may be less together: as long as anything is unknown, something is
            // lacking.
            let limit = block.count.map_or(COMPLETE - 1, |count| count - 1);
            let complete = block.decoder.as_mut().is_some_and(Decoder::is_complete);
            _ = ranks.push(if complete { COMPLETE } else { block.rank.min(limit) });
        }
        EndToEndReport {
            instance: self.instance,
            number: self.number,
            quiet: self.is_quiet(now),
            first: self.first as u32 & 0xFF_FFFF,
            latest: self.latest.map(|(block, batch)| (block as u32 & 0xFF_FFFF, batch)),
            mean: (self.mean * 256.0) as u16,
            hops: List::default(),
            ranks,
        }
    }

    fn is_quiet(&self, now: Instant) -> bool {
        self.arrived + QUIET_AFTER <= now
    }

    /// Number of blocks that it has memory for.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.blocks.iter().filter(|block| block.decoder.is_some()).count() + self.spare.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bats::Config;

    fn sink() -> Sink {
        Sink::new(Shape::begun(&Config::strict(), 256), 1, 256, 0, 1).unwrap()
    }

    #[test]
    fn what_was_under_way_is_lost_when_nothing_has_come_for_5_ms() {
        let at = |micros| Instant::ZERO + Duration::from_micros(micros);
        let mut sink = sink();
        sink.arrived = at(1000);
        assert!(!sink.end_to_end(at(5999)).quiet && sink.end_to_end(at(6000)).quiet);
    }

    #[test]
    fn the_mean_rank_is_that_of_64_batches() {
        let mut sink = sink();
        // The last batch may still grow.
        sink.blocks.push_back(Block { ranks: vec![16], heard: 2, ..Block::default() });
        sink.count(0);
        assert_eq!(sink.mean, 16.0, "of the first one");
        sink.blocks[0].heard = 66;
        sink.count(0);
        assert_eq!(sink.blocks[0].counted, 65);
        // All but 1/e is new.
        assert!((sink.mean - 16.0 / core::f64::consts::E).abs() < 0.1, "{}", sink.mean);
        assert_eq!(f64::from(sink.end_to_end(Instant::ZERO).mean), (sink.mean * 256.0).floor());
    }

    #[test]
    fn a_sink_begins_with_the_first_symbol_that_could_still_be_had() {
        let shape = Shape::begun(&Config::strict(), 256);
        for floor in [0, 7, 1024, 3 * 1024 + 7] {
            assert_eq!(Sink::new(shape, 1, 256, floor, 1).unwrap().floor(), floor);
        }
    }
}
