//! Requests for something that is missing, by this receiver or by others.

use hopcast_core::{Duration, Instant};

/// State of the requests for a block, an info or an object.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    /// The time of the request that is not answered yet.
    at: Option<Instant>,
    /// The time of this receiver's own last request.
    own: Option<Instant>,
    /// When the back-off before its next one ends, once that has begun.
    due: Option<Instant>,
    /// Requests in a row of which nothing came, after which the sender was heard, and those after which it was not.
    heard: u16,
    unheard: u16,
    /// Requests in vain of a sender that is heard, before the time to wait is doubled with each.
    patient: u16,
    /// Rounds in a row that others asked in place of this receiver, and nothing came.
    spared: u8,
}

/// Requests in vain of a silent sender before the time to wait is doubled with each. Chosen: at 50 % loss one of eight
/// receivers hears nothing of three packets.
const PATIENT_SILENT: u16 = 2;
/// Maximum number of doublings of the time to wait, and the time beyond which nothing is doubled. Chosen: a sender that
/// is gone is asked more and more rarely, one that comes back within seconds, also where a round trip takes one.
const MAX_DOUBLINGS: u16 = 5;
const MAX_WAIT: Duration = Duration::from_secs(5);
/// Requests in vain before symbols to spare are asked for, and the maximum number of these. Chosen: who lacks the last
/// symbol of a block whose parity is used up would get one symbol for each request, where half of both are lost; few
/// come to that where a third is.
const SPARED_TRIES: u16 = 2;
const MAX_SPARE: u16 = 4;
/// Maximum number of rounds in a row that others may ask in place of this receiver while nothing comes. Chosen: at 50 %
/// loss one of eight receivers hears nothing of three answers; whoever forges requests holds others up no longer.
const MAX_SPARED: u8 = 3;

impl Asked {
    /// Whether the answer is still waited for, for `hold` after it was asked or after `busy`, when the sender was
    /// heard at repairs that come before.
    pub(super) fn is_awaited(&self, now: Instant, hold: Duration, busy: Option<Instant>) -> bool {
        self.until(hold, busy).is_some_and(|until| until > now)
    }

    /// The time of the request that is not answered yet.
    pub(super) fn at(&self) -> Option<Instant> {
        self.at
    }

    /// Until when the answer is waited for.
    pub(super) fn until(&self, hold: Duration, busy: Option<Instant>) -> Option<Instant> {
        let at = self.at?;
        let silent = self.unheard.saturating_sub(PATIENT_SILENT);
        let doublings = silent.max(self.heard.saturating_sub(self.patient)).min(MAX_DOUBLINGS);
        Some(at.max(busy.unwrap_or(at)) + hold.max((hold * (1 << doublings)).min(MAX_WAIT)))
    }

    /// When the back-off ends; `None` if there is none.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The back-off before a request begins, and ends at a time.
    pub(super) fn backs_off(&mut self, until: Instant) {
        self.due = Some(until);
    }

    /// This receiver asks, of a sender that was last heard at `heard`. False if it has asked in vain `robust` times of
    /// one that is there, or as often of one that is not. After `patient` requests in vain it waits longer for each.
    pub(super) fn ask(&mut self, now: Instant, heard: Instant, (robust, patient): (u16, u16)) -> bool {
        self.patient = patient;
        match self.own {
            Some(own) if heard > own => (self.heard, self.unheard) = (self.heard.saturating_add(1), 0),
            Some(_) => self.unheard = self.unheard.saturating_add(1),
            None => {}
        }
        (self.at, self.own, self.due) = (Some(now), Some(now), None);
        self.spared = 0;
        self.heard.max(self.unheard) < robust
    }

    /// Somebody else asks for at least as much. False if others have done so in vain for too long.
    pub(super) fn heard(&mut self, now: Instant, hold: Duration) -> bool {
        if self.is_awaited(now, hold, None) {
            return true;
        }
        if self.spared >= MAX_SPARED {
            return false;
        }
        self.spared += 1;
        (self.at, self.due) = (Some(now), None);
        true
    }

    /// Number of symbols to ask for beyond those that are missing: one more with each request of which nothing came
    /// though the sender was heard, after the first ones.
    pub(super) fn spare(&self) -> usize {
        self.heard.saturating_sub(SPARED_TRIES).min(MAX_SPARE).into()
    }

    /// The answer, or what there is of it, has come.
    pub(super) fn answered(&mut self) {
        self.at = None;
    }

    /// Something came.
    pub(super) fn progress(&mut self) {
        *self = Self { at: self.at, own: self.own, due: self.due, patient: self.patient, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Duration = Duration::from_millis(10);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn an_answer_is_waited_for_longer_each_time() {
        let mut asked = Asked::default();
        assert!(!asked.is_awaited(at(0), HOLD, None));
        assert!(asked.ask(at(0), at(0), (4, 2)));
        assert!(asked.is_awaited(at(9), HOLD, None) && !asked.is_awaited(at(10), HOLD, None));
        assert!(asked.is_awaited(at(10), HOLD, Some(at(5))));
        assert!((1..4).all(|_| asked.ask(at(20), at(0), (4, 2))));
        assert!(asked.is_awaited(at(39), HOLD, None));
        assert!(!asked.ask(at(40), at(0), (4, 2)), "four times in vain");
        asked.progress();
        asked.answered();
        assert!(!asked.is_awaited(at(41), HOLD, None) && asked.ask(at(41), at(0), (4, 2)));
    }

    #[test]
    fn a_sender_that_is_heard_is_asked_as_often_while_chance_may_be_why_nothing_comes() {
        let mut asked = Asked::default();
        assert!((0..11).all(|try_| asked.ask(at(20 * try_), at(20 * try_ - try_.min(1)), (40, 10))));
        assert!(asked.is_awaited(at(209), HOLD, None) && !asked.is_awaited(at(210), HOLD, None));
        assert!(asked.ask(at(220), at(219), (40, 10)) && asked.is_awaited(at(239), HOLD, None));
    }

    #[test]
    fn tries_of_a_sender_that_is_not_there_do_not_count_once_it_is_back() {
        let mut asked = Asked::default();
        assert!((0..4).all(|try_| asked.ask(at(10 * try_), at(0), (4, 2))));
        // Heard again: three more of those that were in vain, and the one that shows it.
        assert!((4..7).all(|try_| asked.ask(at(10 * try_), at(10 * try_ - 5), (4, 2))));
        assert!(!asked.ask(at(70), at(65), (4, 2)));
    }

    #[test]
    fn others_stand_in_for_three_rounds_and_not_for_ever() {
        let mut asked = Asked::default();
        for round in 0..3 {
            let begin = 100 * round;
            assert!((0..9).all(|more| asked.heard(at(begin + more), HOLD)));
            assert!(!asked.is_awaited(at(begin + 10), HOLD, None), "who repeats a request prolongs nothing");
        }
        assert!(!asked.heard(at(300), HOLD) && !asked.is_awaited(at(300), HOLD, None));
        assert!(asked.ask(at(300), at(300), (4, 2)) && asked.is_awaited(at(305), HOLD, None));
    }
}
