//! NAKACK, as a receiver: when to ask for what is missing of a member's messages.
//!
//! Transmissions are numbered, repairs too. So whoever hears one that is not the next knows at once that something was
//! lost, and asks soon; timers are for requests that were lost, and for the last packet before a pause.

use hopcast_core::{Duration, Instant};

use crate::round_trip::RoundTrip;

/// Transmissions of one member, as far as they were heard.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Number of the last, in full; 0 before the first.
    pub(super) last: u64,
    at: Option<Instant>,
    /// Mean time between two.
    interval: Duration,
}

impl Heard {
    /// A transmission was heard, with the lowest 32 bits of its number. True if others before it were not.
    pub(super) fn note(&mut self, now: Instant, low: u32) -> bool {
        let number = hopcast_core::bytes::complete(low, 32, self.last);
        if number <= self.last || number - self.last > MAX_JUMP {
            // Overtaken, or forged: the next ones of the sender go on from where it was.
            return false;
        }
        if let Some(at) = self.at {
            let sample = now.since(at).min(MAX_INTERVAL);
            self.interval = if self.interval.is_zero() { sample } else { (self.interval * 7 + sample) / 8 };
        }
        self.at = Some(now);
        let skips = number > self.last + 1;
        self.last = number;
        skips
    }

    /// Time for which losses are gathered before they are asked for, while the sender is busy.
    fn gathers(&self) -> Duration {
        (self.interval * GATHERED).min(MAX_INTERVAL)
    }
}

/// A jump of transmissions that is believed. Chosen: as many as a window has messages; what is beyond is no number of
/// this sender's, and believing it would make its next ones old.
const MAX_JUMP: u64 = super::window::SPAN;
/// Packets of a busy sender for which losses are gathered. Computed: where three receivers lose a fifth, a request of
/// 80 bytes for each loss is 3 % of all bytes, one for each thirteen packets 1 %; the transfer takes the same time,
/// as repairs wait for nothing but the rate.
const GATHERED: u64 = 8;
/// Chosen: a sender that is slower than that is idle in between.
const MAX_INTERVAL: Duration = Duration::from_secs(1);

/// When to ask for the missing messages of one member.
#[derive(Debug)]
pub(super) struct Requests {
    due: Option<Instant>,
    /// Requests in a row, by the timer, to which nothing has come.
    vain: u32,
    /// The first message of the last request, and when that was sent, if it was the first one for it.
    probe: Option<(u64, Instant)>,
    answer: RoundTrip,
}

/// Timeout of the first request, and the longest (retransmit_timeout of JGroups 2.12's udp.xml: 300, 600, 1200 ms).
/// Chosen: one doubling more than there, so that repetitions on a congested path cost it less.
const FIRST_TIMEOUT: Duration = Duration::from_millis(300);
const MAX_TIMEOUT: Duration = Duration::from_millis(2400);

impl Requests {
    pub(super) const fn new() -> Self {
        Self { due: None, vain: 0, probe: None, answer: RoundTrip::new(FIRST_TIMEOUT) }
    }

    /// Something is missing: asks for it once losses have been gathered, or at once if the sender is idle.
    pub(super) fn missing(&mut self, now: Instant, heard: &Heard, is_idle: bool) {
        let at = if is_idle { now } else { now + heard.gathers() };
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Something that was missing has come.
    pub(super) fn arrived(&mut self, now: Instant, number: u64) {
        self.vain = 0;
        if let Some((probe, sent)) = self.probe
            && number == probe
        {
            self.answer.sample(now.since(sent));
            self.probe = None;
        }
    }

    /// Nothing is missing any more.
    pub(super) fn complete(&mut self) {
        (self.due, self.probe, self.vain) = (None, None, 0);
    }

    /// Whether a request is due.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Number of requests in vain.
    pub(super) const fn vain(&self) -> u32 {
        self.vain
    }

    /// A request was sent, whose first missing message is `first`.
    pub(super) fn sent(&mut self, now: Instant, first: u64) {
        match self.probe {
            // Karn: what was asked for twice says nothing of the time that an answer takes.
            Some((probe, _)) if probe == first => self.vain += 1,
            _ => {
                self.probe = Some((first, now));
                self.vain = 0;
            }
        }
        let wait = (self.answer.timeout() * (1 << self.vain.min(8))).min(MAX_TIMEOUT);
        self.due = Some(now + wait.max(MIN_TIMEOUT));
    }
}

/// Chosen: no link's answers come sooner and no clock is finer, and a forged packet that promises messages costs no
/// more than a request in this time.
const MIN_TIMEOUT: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_number_that_is_not_the_next_says_that_something_was_lost() {
        let mut heard = Heard::default();
        assert!(!heard.note(at(0), 1) && !heard.note(at(10), 2) && heard.note(at(20), 4));
        assert!(!heard.note(at(30), 3) && !heard.note(at(30), 5), "one that was overtaken");
        assert!(!heard.note(at(30), u32::MAX) && heard.last == 5, "forged");
        assert_eq!(heard.gathers(), Duration::from_millis(10) * GATHERED);
    }

    #[test]
    fn losses_are_gathered_while_the_sender_is_busy_and_asked_for_at_once_when_it_is_idle() {
        let mut heard = Heard::default();
        assert!((0..3).all(|packet| !heard.note(at(10 * packet), packet as u32 + 1)));
        let mut requests = Requests::new();
        requests.missing(at(20), &heard, false);
        assert_eq!(requests.due(), Some(at(100)));
        requests.missing(at(30), &heard, true);
        assert!(requests.is_due(at(30)));
    }

    #[test]
    fn requests_in_vain_are_ever_further_apart_and_answers_bring_them_closer() {
        let mut requests = Requests::new();
        let mut gaps = Vec::new();
        let mut now = at(0);
        for _ in 0..5 {
            requests.sent(now, 7);
            gaps.push(requests.due().unwrap().since(now).as_millis());
            now = requests.due().unwrap();
        }
        assert_eq!(gaps, [300, 600, 1200, 2400, 2400]);
        requests.complete();
        for number in 10..30 {
            requests.sent(now, number);
            requests.arrived(now + Duration::from_millis(20), number);
            now += Duration::from_millis(40);
        }
        requests.sent(now, 99);
        assert!(requests.due().unwrap().since(now) < Duration::from_millis(30));
    }
}
