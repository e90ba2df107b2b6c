//! Turns of many members that lack the same: one asks at a time, and for no more than is soon sent. Of few, each asks
//! for itself when it can.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant, Stream};

use super::neighbours::FEW;
use super::wire::MemberId;
use crate::backoff::truncated_exponential;

/// The state of a member's turns.
#[derive(Debug)]
pub(super) struct Turns {
    /// Whether the member joins several links: it asks for itself, since who takes turns with it on one hears none of
    /// another.
    is_joint: bool,
    /// Members that may ask for the same at one time.
    group: usize,
    /// Whether another member asks for what is missing here: it goes on, and this one asks if it does not.
    others_ask: bool,
    /// Members that answer requests, of whomever, and when they count as having ended if nothing comes.
    answering: BTreeMap<MemberId, Instant>,
    /// Parts that others have asked for and that are not missing here, by the member that is to send them.
    promised: BTreeMap<MemberId, u64>,
    /// The member that was heard to answer last, or was asked after that.
    current: Option<MemberId>,
    /// Factor by which answers are waited for longer, since one was late (RFC 6298, section 5.5).
    late: u32,
    /// Parts that may be expected before more is asked for.
    window: u64,
    /// Whether as many were expected when this member looked last.
    is_full: bool,
    /// Until when it is left to the other to ask, and whether that is no longer than until all that was asked for has
    /// come.
    yields: Instant,
    is_over: bool,
}

/// Whether it is a member's turn.
pub(super) enum Turn {
    /// Enough is to come.
    Full,
    /// More may be asked for, and another is to ask until a time.
    Other(Instant),
    /// The member asks for this many parts at most.
    Own(u64),
}

/// Time for which parts that are asked for take to be sent, and the number of them. Chosen: so long that a request
/// comes before the last one is answered, and no longer: it knows better.
const WINDOW: Duration = Duration::from_secs(1);
const MIN_WINDOW: u64 = 32;
const MAX_WINDOW: u64 = 256;
/// Maximum factor by which answers are waited for longer. Chosen: a queue of some seconds at 1 Mbit/s.
const MAX_LATE: u32 = 16;
/// Maximum number of intervals by which a request is put off; of [`FEW`] it is by up to one. Chosen: a request is heard
/// by all within two packets' time, a quarter of an interval.
const MAX_BACK_OFF: f64 = 4.0;
/// Members that are to answer others, at most. Chosen: more than a segment has.
const MAX_PROMISED: usize = 4096;

/// Packets that are sent in a time, where eight take `every`.
fn packets_in(time: Duration, every: Duration) -> u64 {
    8 * time.as_nanos() / every.as_nanos().max(1)
}

impl Turns {
    /// Turns of a member that asks each `every`, and that joins several links or not.
    pub(super) fn new(every: Duration, is_joint: bool) -> Self {
        Self {
            is_joint,
            group: 0,
            others_ask: false,
            answering: BTreeMap::new(),
            promised: BTreeMap::new(),
            current: None,
            late: 1,
            window: packets_in(WINDOW, every).clamp(MIN_WINDOW, MAX_WINDOW),
            is_full: false,
            yields: Instant::ZERO,
            is_over: false,
        }
    }

    /// Whether so many hear each other that they have to take turns.
    pub(super) const fn is_crowd(&self) -> bool {
        self.group > FEW
    }

    /// Looks who takes turns, of the members that are known, and who still answers.
    pub(super) fn begin(&mut self, now: Instant, known: usize) {
        self.group = if self.is_joint { 0 } else { known };
        if !self.is_crowd() {
            self.answering.clear();
            self.others_ask = false;
            self.late = 1;
        }
        self.answering.retain(|_, until| *until > now);
        let answering = &self.answering;
        self.promised.retain(|server, _| answering.contains_key(server));
    }

    /// Whose turn it is, where this member expects parts of its own, asks each `every`, and answers are late after a
    /// time.
    pub(super) fn turn(
        &mut self,
        now: Instant,
        expected: u64,
        (every, timeout): (Duration, Duration),
        random: &mut Stream,
    ) -> Turn {
        let promised = self.current.and_then(|server| self.promised.get(&server)).unwrap_or(&0);
        let expected = expected.saturating_add(*promised);
        if self.is_crowd() && expected.saturating_mul(2) > self.window {
            (self.is_full, self.is_over) = (true, false);
            return Turn::Full;
        }
        if self.others_ask {
            if std::mem::take(&mut self.is_full) {
                // All see that more may be asked for, and one of them is to ask.
                self.yields = now + self.back_off(every, random) + timeout * 2;
            }
            if expected == 0 && !self.is_over {
                // Whoever is to ask would have, by now.
                self.is_over = true;
                self.yields = self.yields.min(now + self.back_off(every, random));
            }
            if now < self.yields {
                return Turn::Other(self.yields);
            }
        }
        Turn::Own(if self.is_crowd() { self.window.saturating_sub(expected) } else { MAX_WINDOW })
    }

    /// This member asks.
    pub(super) const fn takes(&mut self) {
        (self.others_ask, self.is_full) = (false, false);
    }

    /// Another member asks for what is missing here.
    pub(super) const fn leaves(&mut self) {
        (self.others_ask, self.is_over) = (true, false);
    }

    /// Another member is to be sent parts that are not missing here; the first of them is late at a time.
    pub(super) fn promises(&mut self, server: MemberId, parts: u64, late_at: Instant) {
        if self.promised.len() < MAX_PROMISED || self.promised.contains_key(&server) {
            let promised = self.promised.entry(server).or_default();
            // More is no more than a window that is full.
            *promised = promised.saturating_add(parts).min(MAX_WINDOW);
            let until = self.answering.entry(server).or_insert(late_at);
            *until = late_at.max(*until);
        }
    }

    /// A member was heard to answer; the next part is late at a time.
    pub(super) fn answers(&mut self, from: MemberId, late_at: Instant) {
        let is_known = self.answering.len() < MAX_PROMISED || self.answering.contains_key(&from);
        if self.is_crowd() && is_known {
            self.answering.insert(from, late_at);
        }
        if let Some(parts) = self.promised.get_mut(&from) {
            *parts = parts.saturating_sub(1);
        }
    }

    /// When a member that answers counts as having ended.
    pub(super) fn answers_until(&self, server: MemberId) -> Option<Instant> {
        self.answering.get(&server).copied()
    }

    /// A member is asked, or answers what is missing here.
    pub(super) const fn follows(&mut self, server: MemberId) {
        self.current = Some(server);
    }

    /// The member that is to answer the others too.
    pub(super) fn current(&self) -> Option<MemberId> {
        self.current.filter(|_| self.is_crowd())
    }

    /// Factor by which answers are waited for longer.
    pub(super) fn late(&self) -> u64 {
        self.late.into()
    }

    /// An answer is late.
    pub(super) fn note_late(&mut self) {
        if self.is_crowd() {
            self.late = (self.late * 2).min(MAX_LATE);
        }
    }

    /// An answer came whose time is known.
    pub(super) const fn note_in_time(&mut self) {
        self.late = 1;
    }

    /// Time to wait for another member of many that asks for the same (RFC 5401, section 3.2.2).
    pub(super) fn back_off(&self, every: Duration, random: &mut Stream) -> Duration {
        if !self.is_crowd() {
            return Duration::ZERO;
        }
        let share = (self.group as f64 / FEW as f64).min(MAX_BACK_OFF);
        truncated_exponential(random, every.mul_f64(share), self.group as f64)
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::super::tests::{at, member};
    use super::*;

    const EVERY: Duration = Duration::from_millis(200);

    fn turns(known: usize, is_joint: bool) -> Turns {
        let mut turns = Turns::new(EVERY, is_joint);
        turns.begin(at(0), known);
        turns
    }

    fn turn(turns: &mut Turns, millis: u64, expected: u64) -> Turn {
        turns.turn(at(millis), expected, (EVERY, EVERY), &mut Seed::new(1, 0).stream(&["test"], millis))
    }

    fn own(turns: &mut Turns, expected: u64) -> Option<u64> {
        if let Turn::Own(parts) = turn(turns, 0, expected) { Some(parts) } else { None }
    }

    #[test]
    fn of_many_one_asks_for_a_window_and_the_others_wait() {
        // Forty packets take a second.
        let mut many = turns(FEW + 1, false);
        assert_eq!((own(&mut many, 0), own(&mut many, 20)), (Some(40), Some(20)));
        many.promises(member(2), 100, at(100));
        assert_eq!(own(&mut many, 20), Some(20), "of another");
        many.follows(member(1));
        many.promises(member(1), 21, at(100));
        assert!(matches!(turn(&mut many, 0, 0), Turn::Full));
        (0..6).for_each(|_| many.answers(member(1), at(300)));
        many.leaves();
        let Turn::Other(until) = turn(&mut many, 0, 0) else { panic!("it may be asked for more") };
        assert!((at(400)..=at(613)).contains(&until), "{until:?}");
        assert!(matches!(turn(&mut many, 399, 0), Turn::Other(_)));
        assert!(matches!(turn(&mut many, 613, 0), Turn::Own(25)), "and nobody does");
        many.takes();
        many.begin(at(300), FEW + 1);
        assert_eq!(own(&mut many, 0), Some(40), "who is silent is given up");
    }

    #[test]
    fn few_and_who_joins_links_ask_for_themselves() {
        let mut random = Seed::new(1, 0).stream(&["test"], 0);
        for mut turns in [turns(FEW, false), turns(100, true)] {
            turns.note_late();
            turns.answers(member(1), at(100));
            turns.follows(member(1));
            assert_eq!((turns.late(), turns.answers_until(member(1)), turns.current()), (1, None, None));
            assert_eq!(
                (own(&mut turns, 1000), turns.back_off(EVERY, &mut random)),
                (Some(256), Duration::ZERO)
            );
        }
        let mut many = turns(100, false);
        (0..9).for_each(|_| many.note_late());
        assert_eq!(many.late(), 16);
        many.note_in_time();
        assert_eq!(many.late(), 1);
    }

    #[test]
    fn when_all_has_come_that_was_asked_for_one_of_those_that_wait_asks_soon() {
        let mut many = turns(100, false);
        many.follows(member(1));
        many.promises(member(1), 30, at(100));
        assert!(matches!(turn(&mut many, 0, 0), Turn::Full));
        many.leaves();
        (0..30).for_each(|_| many.answers(member(1), at(300)));
        let Turn::Other(until) = turn(&mut many, 100, 0) else { panic!() };
        assert!(until <= at(100) + EVERY * 4, "{until:?}");
        assert!(matches!(turn(&mut many, 100, 0), Turn::Other(again) if again == until));
        // Unless another was heard.
        many.leaves();
        many.promises(member(1), 30, at(300));
        assert!(matches!(turn(&mut many, 900, 0), Turn::Full));
    }
}
