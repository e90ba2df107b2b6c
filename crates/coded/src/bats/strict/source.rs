//! The near end: blocks of symbols, and the repair batches that complete them.

use std::collections::VecDeque;

use hopcast_code::bats::{Encoder, MAX_BATCHES, Parameters};
use hopcast_core::{Buffer, Duration, Instant, earliest};

use super::super::shape::Shape;
use super::super::wire::{self, BatchHeader, COMPLETE, EndToEndReport, HopQuality};
use super::block::Block;
use super::code;
use super::order::Order;
use super::path::Path;
use super::ring::Ring;

/// Time after which an open block is closed, so that it can be repaired. Chosen: shorter, and a trickle has as many
/// blocks, each with repairs of its own; longer, and a loss in it waits as long.
const MAX_OPEN: Duration = Duration::from_millis(50);
/// The same when nothing has been added for so long, and something is missing: as long as the sink takes to say so.
/// Chosen likewise.
const MAX_IDLE: Duration = Duration::from_millis(5);
/// Minimum time to wait for an end-to-end report. Chosen; shorter, and what is still on its way is sent again; longer,
/// and a loss on a short path waits as long.
const MIN_WAIT: Duration = Duration::from_millis(20);
/// Maximum time to wait for one (RFC 6298 has a minute; an outage ends at any time, and asking is cheap).
const MAX_WAIT: Duration = Duration::from_secs(1);
/// The same before one has come. Chosen; shorter asks too early over a long path, longer delays the first repair.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Standard deviations of what arrives that are sent on top, where nothing asks for more (BTP): all but 0.6 % of blocks
/// then have enough, if what arrives is normally distributed. Chosen; fewer, and more blocks lack something; more, and
/// rate is spent on blocks that have enough.
const MARGIN: f64 = 2.5;
/// The same where nothing else is to send, on top of what is missing. Chosen; more is sent in vain, with fewer another
/// round is needed more often.
const IDLE_MARGIN: f64 = 1.0;
/// The same on top for each time that it was not enough. Chosen for the same reasons.
const AGAIN_MARGIN: f64 = 1.0;

/// The batches of a session at its source.
pub(super) struct Source {
    shape: Shape,
    session: u32,
    parameters: Parameters,
    /// Maximum number of blocks under way.
    window: u64,
    deadline: Option<Duration>,
    /// The blocks that are not over, and the number of the next.
    blocks: VecDeque<Block>,
    next: u64,
    /// Number of symbols of the last block.
    last: u16,
    pub(super) path: Path,
    /// The end-to-end report that came last, and the batches that are covered by one.
    end_to_end: Option<EndToEndReport>,
    covered: Option<u64>,
    /// Time that batches take to be covered, smoothed, and its variation.
    trip: Option<(Duration, Duration)>,
    patience: Option<Instant>,
    backoff: u32,
    encoders: Vec<Encoder<Vec<u8>>>,
    memory: Vec<Vec<u8>>,
}

impl Source {
    /// The beginning of a session; `None` for a shape that no code has.
    pub(super) fn new(shape: Shape, session: u32, batches: u16, deadline: Option<Duration>) -> Option<Self> {
        Some(Self {
            parameters: code::parameters(shape)?,
            window: code::window(shape, batches),
            shape,
            session,
            deadline,
            blocks: VecDeque::new(),
            next: 0,
            last: shape.block,
            path: Path::new(shape.batch.symbols()),
            end_to_end: None,
            covered: None,
            trip: None,
            patience: None,
            backoff: 0,
            encoders: Vec::new(),
            memory: Vec::new(),
        })
    }

    /// The first block that is not over.
    pub(super) fn first(&self) -> u64 {
        self.blocks.front().map_or(self.next, |block| block.number)
    }

    /// Time that batches take until the sink has reported them, if it has.
    pub(super) fn trip(&self) -> Option<Duration> {
        self.trip.map(|(trip, _)| trip)
    }

    /// Blocks are kept for so long after they were closed, where delivery has a deadline.
    pub(super) const fn keep_for(&mut self, deadline: Duration) {
        self.deadline = Some(deadline);
    }

    /// Whether a symbol may be made.
    pub(super) fn has_room(&self) -> bool {
        self.blocks.back().is_some_and(|block| block.closed.is_none())
            || self.next < self.first() + self.window
    }

    /// Makes the next symbol of what `fill` writes; its batch.
    pub(super) fn make(
        &mut self,
        now: Instant,
        ring: &mut Ring,
        fill: impl FnOnce(u64, &mut [u8]) -> usize,
    ) -> Option<core::ops::Range<u64>> {
        let len = usize::from(self.shape.symbol);
        let mut symbol = Buffer::zeroed(len);
        let open = self.blocks.back().filter(|block| block.closed.is_none());
        let (block, position) = open.map_or((self.next, 0), |block| (block.number, block.made));
        let used = fill(block * u64::from(self.shape.block) + u64::from(position), &mut symbol);
        if used == 0 {
            return None;
        }
        symbol.truncate(used);
        if self.blocks.back().is_none_or(|block| block.closed.is_some()) {
            self.open(now);
        }
        let block = self.blocks.back_mut()?;
        let (batch, index) = block.push(now, &symbol, len);
        let header = BatchHeader { block: block.before, batch: self.shape.batch, id: batch as u16 };
        let (serial, over) = ring.admit(block.number, header, block.order.depth());
        ring.grow(serial, |batch| batch.push_symbol(index as u8, symbol));
        block.sent(now, batch, serial, 1);
        if index + 1 == self.shape.batch.symbols() {
            ring.close(serial);
        }
        if block.made == self.shape.block {
            self.close(now, ring);
        }
        self.expect(now);
        Some(over.start.min(serial)..serial + 1)
    }

    fn open(&mut self, now: Instant) {
        let depth = self.path.depth(self.shape.batches());
        let order = Order::new(self.shape.batch.symbols(), self.shape.block, depth);
        let len = usize::from(self.shape.block) * usize::from(self.shape.symbol);
        let mut block =
            Block::new(self.next, order, self.last, self.memory.pop().unwrap_or_default(), len, now);
        block.next_repair = self.shape.batches() as u16;
        self.blocks.push_back(block);
        self.next += 1;
    }

    /// Nothing is added to the last block any more.
    fn close(&mut self, now: Instant, ring: &mut Ring) {
        let Some(block) = self.blocks.back_mut().filter(|block| block.closed.is_none()) else { return };
        block.closed = Some(now);
        self.last = block.made;
        for serial in (0..self.shape.batches() as u16).filter_map(|batch| block.serial(batch)) {
            ring.close(serial);
        }
    }

    /// Index of the oldest block that lacks packets, and the number of packets that it should be sent. `busy`: data
    /// waits, be there room for it or not.
    pub(super) fn owes(&self, busy: bool) -> Option<(usize, u16)> {
        let owes = |(at, block): (usize, &Block)| {
            let packets = self.needs(block, busy);
            (packets > 0).then_some((at, packets))
        };
        self.blocks.iter().enumerate().find_map(owes)
    }

    /// Number of packets that a block should be sent.
    fn needs(&self, block: &Block, busy: bool) -> u16 {
        if block.closed.is_none() || block.is_complete {
            return 0;
        }
        let missing = f64::from(block.made.saturating_sub(block.rank));
        if !block.is_waiting() && missing == 0.0 {
            // All is there, but the sink does not know that this is all.
            return 1;
        }
        // A block that is closed because it is old is none of a trickle, if data waits.
        let full = busy || block.made == self.shape.block;
        let (mut coming, mut variance) = (0.0, 0.0);
        for packets in block.under_way() {
            // Of a trickle all that is sent counts as coming: it is repaired when it is known what is missing.
            coming += if full { self.path.expected(packets) } else { f64::from(packets) };
            variance += self.path.variance(packets);
        }
        let margin = match self.deadline {
            Some(_) => MARGIN,
            None if busy && self.has_room() || !full => 0.0,
            None => IDLE_MARGIN,
        };
        let mut lacking = missing - coming;
        if lacking + margin * f64::sqrt(variance) < 0.5 {
            return 0;
        }
        let limit = self.shape.batch.symbols() as u16;
        // The last packets are few, and a few may all be lost: each time a little more is sent.
        let margin = margin + f64::from(block.rounds) * AGAIN_MARGIN;
        lacking +=
            margin * f64::sqrt(variance + self.path.variance(lacking.clamp(1.0, f64::from(limit)) as u16));
        (1..limit).find(|&packets| self.path.expected(packets) >= lacking).unwrap_or(limit)
    }

    /// Makes a repair batch for a block, of as many packets as it is owed; its serial number.
    pub(super) fn repair(
        &mut self,
        now: Instant,
        ring: &mut Ring,
        (at, packets): (usize, u16),
    ) -> Option<core::ops::Range<u64>> {
        let block = self.blocks.get_mut(at)?;
        if !block.is_waiting() {
            block.rounds = block.rounds.saturating_add(1);
        }
        let id = block.next_repair;
        // There are plenty; who needs more gets the first ones again.
        block.next_repair =
            if usize::from(id) + 1 < MAX_BATCHES { id + 1 } else { self.shape.batches() as u16 };
        let header = BatchHeader { block: block.made, batch: self.shape.batch, id };
        let (serial, over) = ring.admit(block.number, header, block.order.depth());
        let session = code::session(self.session, block.number);
        let encoded =
            block.encode(&self.parameters, session, &mut self.encoders, (id, packets), |index, payload| {
                ring.grow(serial, |batch| batch.push_symbol(index, payload));
            });
        debug_assert_eq!(encoded, Ok(()));
        ring.close(serial);
        block.sent(now, usize::from(id), serial, packets);
        self.expect(now);
        Some(over.start.min(serial)..serial + 1)
    }

    /// Takes an end-to-end report of the sink; what the first hop loses. Whether blocks are over.
    pub(super) fn on_end_to_end(
        &mut self,
        now: Instant,
        end_to_end: &EndToEndReport,
        own: HopQuality,
    ) -> bool {
        if self.end_to_end.is_some_and(|old| !end_to_end.is_newer(&old)) {
            return false;
        }
        let restarted = self.end_to_end.is_some_and(|old| old.instance != end_to_end.instance);
        self.end_to_end = Some(*end_to_end);
        self.path
            .update(core::iter::once(&own).chain(end_to_end.hops.iter()), f64::from(end_to_end.mean) / 256.0);
        let first = wire::complete(end_to_end.first, 24, self.first());
        if first > self.next {
            return false;
        }
        let before = self.first();
        self.drop_before(first);
        let mut progress = self.first() > before;
        if restarted {
            self.covered = None;
        }
        progress |= self.cover(now, end_to_end);
        for block in &mut self.blocks {
            let rank =
                block.number.checked_sub(first).and_then(|at| end_to_end.ranks.iter().nth(at as usize));
            let rank = rank.copied().unwrap_or(0);
            block.is_complete = rank == COMPLETE;
            let rank = rank.min(block.made);
            progress |= rank > block.rank;
            block.rank = rank;
        }
        if progress {
            self.backoff = 0;
            self.patience = None;
        }
        self.expect(now);
        self.first() > before
    }

    /// All that was sent before the batch that is arriving has arrived as far as it will. Whether that is news.
    fn cover(&mut self, now: Instant, end_to_end: &EndToEndReport) -> bool {
        let Some((block, batch)) = end_to_end.latest else { return false };
        let number = wire::complete(block, 24, self.first());
        let Some(at) = number.checked_sub(self.first()) else { return false };
        let Some(block) = self.blocks.get(at as usize) else { return false };
        let Some(serial) = block.serial(batch) else { return false };
        let behind = if end_to_end.quiet { 0 } else { (1 << block.order.depth()) + 1 };
        let Some(serial) = serial.checked_sub(behind) else { return false };
        if self.covered.is_some_and(|covered| covered >= serial) {
            return false;
        }
        self.covered = Some(serial);
        let last = self.blocks.iter_mut().filter_map(|block| block.cover(serial)).max();
        // What has been sent twice says nothing (Karn's algorithm, RFC 6298, section 3).
        if let Some(last) = last.filter(|_| self.backoff == 0) {
            let sample = now.since(last);
            // RFC 6298, section 2.3.
            self.trip = Some(match self.trip {
                None => (sample, sample / 2),
                Some((trip, variation)) => {
                    ((trip * 7 + sample) / 8, (variation * 3 + trip.abs_diff(sample)) / 4)
                }
            });
        }
        true
    }

    fn drop_before(&mut self, first: u64) {
        while self.blocks.front().is_some_and(|block| block.number < first) {
            let Some(block) = self.blocks.pop_front() else { return };
            if block.closed.is_none() {
                // A sink that gives up what it lacks may be ahead.
                self.last = block.made;
            }
            let (symbols, encoder) = block.into_parts();
            self.memory.push(symbols);
            self.encoders.extend(encoder);
        }
        if self.blocks.is_empty() {
            self.patience = None;
        }
    }

    /// Sees to it that an end-to-end report is not waited for for ever.
    fn expect(&mut self, now: Instant) {
        if self.patience.is_none() && !self.blocks.is_empty() {
            let wait = match self.trip {
                None => FIRST_WAIT,
                Some((trip, variation)) => (trip * 2 + variation * 4).max(MIN_WAIT),
            };
            self.patience = Some(now + (wait * (1 << self.backoff)).min(MAX_WAIT));
        }
    }

    /// Does what is due. `held`: packets wait to be sent, so there is no hurry. Whether blocks are over.
    pub(super) fn wake(&mut self, now: Instant, ring: &mut Ring, held: bool) -> bool {
        if self.patience.is_some_and(|at| at <= now) {
            self.patience = None;
            if !held {
                self.backoff = (self.backoff + 1).min(6);
                self.give_up_waiting(now, ring);
            }
            self.expect(now);
        }
        let before = self.first();
        while self.gives_up().is_some_and(|at| at <= now) {
            self.drop_before(self.first() + 1);
        }
        // With a block fewer, the last one may be closed by its age.
        if self.closes().is_some_and(|at| at <= now) {
            self.close(now, ring);
        }
        self.first() > before
    }

    /// No end-to-end report has come for too long: what was sent of the oldest block is taken for lost.
    fn give_up_waiting(&mut self, now: Instant, ring: &mut Ring) {
        let last = ring.end();
        if self.blocks.len() == 1 {
            self.close(now, ring);
        }
        if let Some(block) = self.blocks.front_mut() {
            block.cover(last);
        }
    }

    /// Time at which the last block is closed although it is not full.
    fn closes(&self) -> Option<Instant> {
        let block = self.blocks.back().filter(|block| block.closed.is_none())?;
        let lacks = block.rank < block.made;
        if !lacks {
            return None;
        }
        let idle = (!block.is_waiting()).then_some(block.grown + MAX_IDLE);
        // Without losses everything arrives, and the block may stay open. While many blocks are under way, there had
        // better not be more.
        let ages = self.path.is_lossy() && self.blocks.len() as u64 <= self.window / 2;
        let aged = ages.then_some(block.begun + MAX_OPEN);
        earliest(idle, aged)
    }

    /// Time at which the first block is given up, where delivery has a deadline.
    fn gives_up(&self) -> Option<Instant> {
        let block = self.blocks.front()?;
        Some(block.closed? + self.deadline?)
    }

    /// Time at which there is something to do next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        earliest(earliest(self.closes(), self.gives_up()), self.patience)
    }

    /// The state, for the message of a test that fails.
    #[cfg(test)]
    pub(super) fn state(&self) -> String {
        let blocks: Vec<String> = self
            .blocks
            .iter()
            .map(|block| {
                let direction: Vec<u16> = block.under_way().collect();
                format!(
                    "{}: {} of {} closed {:?} {direction:?}",
                    block.number, block.rank, block.made, block.closed
                )
            })
            .collect();
        format!("{:?} covered {:?} trip {:?} {blocks:?}", self.path, self.covered, self.trip)
    }

    /// Number of blocks that it has memory for.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.blocks.len() + self.memory.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bats::Config;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A source that has made `symbols` symbols, over a path of one hop that loses every fifth packet.
    fn begun(symbols: u16, deadline: Option<Duration>) -> (Source, Ring) {
        let shape = Shape { batch: crate::bats::BatchSize::M16, ..Shape::begun(&Config::strict(), 256) };
        let mut source = Source::new(Shape { block: 256, ..shape }, 1, 256, deadline).unwrap();
        let mut ring = Ring::new(256, 0);
        source.path.update([HopQuality::new(0.2, 1.0)].iter(), 12.8);
        for _ in 0..symbols {
            source.make(at(0), &mut ring, |_, symbol| symbol.len());
        }
        (source, ring)
    }

    #[test]
    fn before_an_end_to_end_report_has_come_a_quarter_of_a_second_is_waited_for_one_and_then_a_second_at_most()
     {
        let (mut source, mut ring) = begun(1, None);
        let (mut now, mut waits) = (at(0), Vec::new());
        for _ in 0..5 {
            let next = source.patience.unwrap();
            waits.push(next.since(now).as_millis());
            now = next;
            source.wake(now, &mut ring, false);
        }
        assert_eq!(waits, [250, 500, 1000, 1000, 1000]);
        assert_eq!(source.backoff, 5);
    }

    #[test]
    fn an_end_to_end_report_is_waited_for_for_two_round_trips_and_four_variations_but_20_ms_at_least() {
        for (trip, variation, wait) in [(1, 0, 20), (4, 3, 20), (10, 0, 20), (10, 5, 40), (100, 25, 300)] {
            let (mut source, _) = begun(1, None);
            source.trip = Some((Duration::from_millis(trip), Duration::from_millis(variation)));
            source.patience = None;
            source.expect(at(1000));
            assert_eq!(source.patience, Some(at(1000 + wait)), "{trip}, {variation}");
        }
    }

    #[test]
    fn a_block_that_may_lack_something_is_closed_after_50_ms_or_when_nothing_is_added_for_5() {
        let (mut source, _) = begun(3, None);
        assert_eq!(source.closes(), Some(at(50)));
        source.blocks[0].cover(u64::MAX);
        assert_eq!(source.closes(), Some(at(5)), "what was sent has arrived as far as it will");
        source.blocks[0].rank = 3;
        assert_eq!(source.closes(), None, "it lacks nothing");
        // Without losses it may stay open.
        let (mut source, _) = begun(3, None);
        source.path.update([HopQuality::new(0.0, 1.0)].iter(), 16.0);
        assert_eq!(source.closes(), None);
    }

    /// Number of packets that a full block is sent that lacks six, when all that was sent has arrived as far as it
    /// will.
    fn sent_for_six(deadline: Option<Duration>, busy: bool, rounds: u8) -> u16 {
        let (mut source, _) = begun(256, deadline);
        assert!(source.blocks[0].closed.is_some());
        source.blocks[0].cover(u64::MAX);
        (source.blocks[0].rank, source.blocks[0].rounds) = (250, rounds);
        source.needs(&source.blocks[0], busy)
    }

    #[test]
    fn what_is_lacking_is_sent_with_standard_deviations_on_top() {
        // Of n packets 0.8 n arrive. Of six, with a standard deviation of sqrt(6 * 0.8 * 0.2) = 0.98.
        let packets = |deviations: f64| ((6.0 + deviations * 0.96_f64.sqrt()) / 0.8).ceil() as u16;
        assert_eq!([0.0, 1.0, 2.0, 2.5, 3.5].map(packets), [8, 9, 10, 11, 12]);
        assert_eq!(sent_for_six(None, true, 0), 8, "data waits, which goes first");
        assert_eq!(sent_for_six(None, false, 0), 9, "nothing else is to be sent");
        assert_eq!(sent_for_six(Some(Duration::from_millis(200)), true, 0), 11, "nothing asks for more");
        // And one more each time that this was not enough.
        assert_eq!([1, 2].map(|rounds| sent_for_six(None, true, rounds)), [9, 10]);
        assert_eq!(sent_for_six(Some(Duration::from_millis(200)), true, 1), 12);
    }
}
