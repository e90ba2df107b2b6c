//! Symbols that receivers lack of a block, and symbols that have been sent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hopcast_core::{Duration, Instant};

/// The repairs of one block.
///
/// A request is a number of symbols that a receiver lacks, at a time. Symbols of the block that were sent after that
/// are on their way to it and count towards what it asks: a request that crosses its answer is answered once. Any
/// parity serves any receiver, so that the largest request serves all.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    /// Parity symbols sent so far; the next one is fresh to everybody.
    parity: u16,
    /// Fresh parity symbols to be sent.
    wanted: u16,
    /// Symbols to be sent again, where there is no fresh parity.
    again: BTreeSet<u16>,
    /// When the first symbol was sent.
    pub(super) begun: Option<Instant>,
    /// When symbols were sent, the latest last; at most [`REMEMBERED`].
    sent: VecDeque<Instant>,
    /// When each symbol was last sent again.
    repeated: BTreeMap<u16, Instant>,
    /// When the first request came that is not answered.
    pub(super) asked: Option<Instant>,
    /// Rounds of repairs.
    pub(super) rounds: u32,
    /// Number of receivers for which the back-off of the first round of requests was made.
    pub(super) made_for: f64,
    /// The NACKs of that round, and of the present one.
    first_round: Nacks,
    present_round: Nacks,
    /// The largest number of symbols that somebody lacked when the block had been sent once, with the proactive
    /// parity: the block's whole need as far as it shows.
    pub(super) need: Option<u16>,
}

/// Times of sending that are remembered. More symbols than a block has were not sent within a round trip.
const REMEMBERED: usize = 255;

/// Rounds of repairs after which answers make up for losses to come with a symbol more. Chosen: who lacks one symbol by
/// then, where half are lost, would wait for two round trips at each turn; few blocks have as many where a fifth is.
const LATE: u32 = 2;

/// The NACKs of a round of requests, which is over a GRTT after the first of them.
#[derive(Clone, Copy, Debug, Default)]
struct Nacks {
    began: Option<Instant>,
    count: u32,
}

impl Nacks {
    /// Adds one. Returns how many have come; none if the round is over.
    fn add(&mut self, now: Instant, grtt: Duration) -> u32 {
        self.began.get_or_insert(now);
        if self.is_over(now, grtt) {
            return 0;
        }
        self.count = self.count.saturating_add(1);
        self.count
    }

    fn is_over(&self, now: Instant, grtt: Duration) -> bool {
        self.began.is_some_and(|began| now.since(began) > grtt)
    }
}

/// A request for symbols of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    /// Number of symbols that the receiver lacks.
    pub(super) count: u16,
    /// The symbols that it named; of those beyond `symbols` there are none.
    pub(super) named: &'a [u16],
    pub(super) symbols: u16,
    /// The receiver had by then everything that was sent until here.
    pub(super) seen: Instant,
    /// Share of symbols that are lost again on the way to the group, for which the answer makes up.
    pub(super) loss: f64,
    /// Whether it is of a large group, in which a round of requests takes long.
    pub(super) of_many: bool,
}

impl Block {
    /// Notes that a symbol of it was sent for the first time.
    pub(super) fn sent(&mut self, now: Instant) {
        self.begun.get_or_insert(now);
        if self.sent.len() == REMEMBERED {
            self.sent.pop_front();
        }
        self.sent.push_back(now);
    }

    /// Notes a NACK for it. Returns how many have come in the present round of requests; none if that is over.
    pub(super) fn nack(&mut self, now: Instant, grtt: Duration) -> u32 {
        self.first_round.add(now, grtt);
        // A NACK that was on its way when the last repair was sent has begun a round of its own, which is over.
        if !self.is_pending() && self.present_round.is_over(now, grtt) {
            self.present_round = Nacks::default();
        }
        self.present_round.add(now, grtt)
    }

    /// NACKs of the first round of requests so far.
    pub(super) fn nacks(&self) -> u32 {
        self.first_round.count
    }

    /// Whether there is something to be sent.
    pub(super) fn is_pending(&self) -> bool {
        self.wanted > 0 || !self.again.is_empty()
    }

    /// Number of symbols to be sent.
    pub(super) fn pending(&self) -> u16 {
        self.wanted + self.again.len() as u16
    }

    /// Parity symbols sent so far.
    pub(super) fn parity_sent(&self) -> u16 {
        self.parity
    }

    /// Takes a request; `parity` is the number of parity symbols that the block can have. True if it asks for more
    /// than was to be sent already.
    pub(super) fn request(&mut self, now: Instant, request: Request<'_>, parity: u16) -> bool {
        let after = (self.sent.len() - self.sent.partition_point(|&at| at <= request.seen)) as u16;
        let lacking = request.count.saturating_sub(after);
        if lacking > 0 && self.rounds == 0 {
            self.need = Some(self.need.unwrap_or(0).max(self.parity.saturating_add(lacking)));
        }
        if parity == 0 && request.of_many {
            // No symbol stands in for another. Of a small group one that is left out is asked for soon; in a large one
            // each is lost to many, who would ask in one round after the other.
            let raised = self.repeat(request, usize::MAX) > 0;
            if raised {
                self.asked.get_or_insert(now);
            }
            return raised;
        }
        if lacking <= self.pending() {
            return false;
        }
        let spare = f64::from(lacking) * request.loss / (1.0 - request.loss).max(0.1);
        let spare = if self.rounds < LATE { spare } else { spare.ceil() } as u16;
        let missing = lacking - self.pending();
        let fresh = missing.saturating_add(spare).min(parity.saturating_sub(self.parity + self.wanted));
        self.wanted += fresh;
        self.repeat(request, missing.saturating_sub(fresh).into());
        if self.is_pending() {
            self.asked.get_or_insert(now);
        }
        self.is_pending()
    }

    /// Has symbols that a request names sent again, `max` at most. Returns the number of those that were not to be sent
    /// already.
    fn repeat(&mut self, request: Request<'_>, max: usize) -> usize {
        let named = request.named.iter().filter(|&&symbol| symbol < request.symbols);
        let is_on_its_way = |symbol| self.repeated.get(symbol).is_some_and(|&at| at > request.seen);
        named.filter(|symbol| !is_on_its_way(symbol) && self.again.insert(**symbol)).take(max).count()
    }

    /// Takes the next symbol to be sent: parity, or a symbol again. `source` is the number of source symbols.
    pub(super) fn next(&mut self, now: Instant, source: u16) -> Option<u16> {
        let symbol = if self.wanted > 0 {
            self.wanted -= 1;
            self.parity += 1;
            source + self.parity - 1
        } else {
            let symbol = self.again.pop_first()?;
            self.repeated.insert(symbol, now);
            symbol
        };
        self.sent(now);
        if !self.is_pending() {
            self.asked = None;
            self.rounds += 1;
            self.present_round = Nacks::default();
        }
        Some(symbol)
    }

    /// Takes a fresh parity symbol that nobody asked for, if there is one of `parity` that is not to be sent in any
    /// case.
    pub(super) fn next_proactive(&mut self, now: Instant, source: u16, parity: u16) -> Option<u16> {
        if self.parity + self.wanted >= parity {
            return None;
        }
        self.parity += 1;
        self.sent(now);
        Some(source + self.parity - 1)
    }

    /// When something of it was sent last.
    pub(super) fn last_sent(&self) -> Option<Instant> {
        self.sent.back().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn request(count: u16, seen: u64) -> Request<'static> {
        Request { count, named: &[], symbols: 12, seen: at(seen), loss: 0.0, of_many: false }
    }

    /// A block of four source symbols, sent from 1 ms on, one each millisecond.
    fn block() -> Block {
        let mut block = Block::default();
        (1..=4).for_each(|time| block.sent(at(time)));
        block
    }

    #[test]
    fn nacks_are_counted_for_a_grtt_in_each_round_and_those_of_the_first_round_are_remembered() {
        let grtt = Duration::from_millis(10);
        let mut block = block();
        // As the sender does: a NACK asks for something, and is counted before that.
        let nack = |block: &mut Block, time| {
            let count = block.nack(at(time), grtt);
            block.request(at(time), request(1, time - 5), 8);
            count
        };
        assert_eq!([10, 15, 20, 21].map(|time| nack(&mut block, time)), [1, 2, 3, 0]);
        block.next(at(22), 4);
        assert_eq!([40, 50, 51].map(|time| nack(&mut block, time)), [1, 2, 0]);
        assert_eq!(block.nacks(), 3);
    }

    #[test]
    fn a_nack_that_comes_after_the_repair_hides_no_round_of_requests() {
        let grtt = Duration::from_millis(10);
        let mut block = block();
        assert_eq!(block.nack(at(10), grtt), 1);
        block.request(at(10), request(1, 5), 8);
        block.next(at(11), 4);
        // It was on its way.
        block.nack(at(12), grtt);
        assert!(!block.request(at(12), request(1, 6), 8));
        assert_eq!([42, 45, 48].map(|time| block.nack(at(time), grtt)), [1, 2, 3]);
        // What is being repaired is asked for in one round.
        block.request(at(48), request(1, 40), 8);
        assert_eq!(block.nack(at(60), grtt), 0);
        assert_eq!(block.nacks(), 2, "of the first round");
    }

    #[test]
    fn the_largest_request_serves_all() {
        let mut block = block();
        assert!(block.request(at(10), request(2, 5), 8));
        assert!(block.request(at(11), request(3, 6), 8));
        assert!(!block.request(at(12), request(1, 7), 8));
        let sent: Vec<_> = std::iter::from_fn(|| block.next(at(13), 4)).collect();
        assert_eq!(sent, [4, 5, 6]);
        assert_eq!((block.asked, block.rounds), (None, 1));
    }

    #[test]
    fn a_request_that_crosses_its_answer_is_answered_once() {
        let mut block = block();
        block.request(at(10), request(2, 5), 8);
        assert_eq!((block.next(at(11), 4), block.next(at(12), 4)), (Some(4), Some(5)));
        assert!(!block.request(at(13), request(2, 6), 8), "both are on their way");
        assert!(block.request(at(14), request(3, 11), 8), "one is, of three");
        assert_eq!(block.pending(), 2);
    }

    #[test]
    fn without_fresh_parity_the_symbols_that_were_named_are_sent_again() {
        let mut block = block();
        let named = Request { named: &[1, 3], ..request(2, 5) };
        assert!(block.request(at(10), named, 0));
        assert_eq!((block.next(at(11), 4), block.next(at(12), 4)), (Some(1), Some(3)));
        assert!(!block.request(at(13), Request { named: &[1], ..request(1, 10) }, 0));
        assert!(block.request(at(20), Request { named: &[1], ..request(1, 15) }, 0));
        assert_eq!(block.next(at(21), 4), Some(1));
    }

    #[test]
    fn without_parity_no_symbol_stands_in_for_another_that_one_of_many_lacks() {
        let mut block = block();
        let one = |named: &'static [u16], seen| Request { named, of_many: true, ..request(1, seen) };
        assert!(block.request(at(10), one(&[1], 5), 0));
        assert!(block.request(at(11), one(&[3], 6), 0), "another one is to be sent already");
        assert!(!block.request(at(12), one(&[1], 7), 0));
        assert_eq!((block.next(at(13), 4), block.next(at(14), 4)), (Some(1), Some(3)));
        assert!(block.request(at(15), one(&[0], 9), 0), "two others are on their way");
        assert_eq!(block.next(at(16), 4), Some(0));
    }

    #[test]
    fn an_answer_makes_up_for_what_is_lost_of_it() {
        let mut block = block();
        block.request(at(10), Request { loss: 0.5, ..request(3, 5) }, 8);
        assert_eq!(block.pending(), 6);
    }

    #[test]
    fn parity_that_nobody_asked_for_takes_none_from_that_which_is_to_be_sent() {
        let mut block = block();
        block.request(at(10), request(3, 5), 4);
        assert_eq!(block.next_proactive(at(11), 4, 4), Some(4));
        assert_eq!(block.next_proactive(at(12), 4, 4), None);
        let sent: Vec<_> = std::iter::from_fn(|| block.next(at(13), 4)).collect();
        assert_eq!(sent, [5, 6, 7]);
    }

    #[test]
    fn a_request_for_everything_is_bounded_by_the_block() {
        let mut block = block();
        let named: Vec<u16> = (0..4).collect();
        block.request(
            at(10),
            Request { count: u16::MAX, named: &named, symbols: 12, seen: at(5), loss: 0.9, of_many: false },
            8,
        );
        assert_eq!(std::iter::from_fn(|| block.next(at(11), 4)).count(), 12);
    }
}
