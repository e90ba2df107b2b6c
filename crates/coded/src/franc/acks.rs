//! Times of the decoder's acknowledgements.

use hopcast_core::{Duration, Instant};

use super::config::{Config, Plan};
use super::decoder::Arrival;

/// Time from the last packet of a burst to its acknowledgement. Chosen; shorter, and pauses within a burst cost
/// acknowledgements; longer, and the encoder keeps blocks for longer.
const QUIET: Duration = Duration::from_millis(6);
/// Interval of acknowledgements while packets come and nothing is missing. Chosen; shorter costs airtime, longer holds
/// up the window of blocks.
const SELDOM: Duration = Duration::from_millis(80);
/// Maximum of the pause, which doubles, after twice which an acknowledgement is repeated while something is missing and
/// nothing comes. Chosen; shorter costs airtime while the encoder is away, longer finds it later.
const SLOWEST: Duration = Duration::from_millis(500);

/// The schedule of acknowledgements.
#[derive(Debug)]
pub(super) struct Acks {
    eager: bool,
    /// Between two while something is missing: usually, and while the encoder's input is behind.
    intervals: [Duration; 2],
    interval: Duration,
    piggyback: Duration,
    number: u32,
    last: Option<Instant>,
    /// Time at which one is to be sent on its own.
    due: Option<Instant>,
    /// The same, as long as it is for something missing.
    urgent: Option<Instant>,
    /// Time from which one is worth bytes of a frame that is to be sent anyway.
    wanted: Option<Instant>,
    /// Something has changed since the last one.
    changed: bool,
    pause: Duration,
}

impl Acks {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            eager: matches!(config.plan, Plan::Budget { .. }),
            intervals: [config.ack_interval, config.ack_interval_behind],
            interval: config.ack_interval,
            piggyback: config.piggyback_interval,
            number: 0,
            last: None,
            due: None,
            urgent: None,
            wanted: None,
            changed: false,
            pause: config.ack_interval,
        }
    }

    /// A packet has arrived, and now something is or is not `missing`.
    pub(super) fn on_arrival(&mut self, now: Instant, arrival: Arrival, missing: bool, behind: bool) {
        self.changed = true;
        self.interval = self.intervals[usize::from(behind)];
        self.pause = self.interval;
        if self.eager {
            // Whenever all that is known of is decoded (paper, section II-D), and to who has not heard that; and once
            // at first, so that the encoder knows that somebody is there.
            if !missing || arrival == Arrival::Redundant || self.last.is_none() {
                self.due = Some(now);
            }
            return;
        }
        let urgent = missing || arrival == Arrival::Redundant;
        let after = |pause: Duration| self.last.map_or(now, |last| now.max(last + pause));
        let due = if urgent {
            let soon = after(self.interval);
            self.urgent.map_or(soon, |before| before.min(soon))
        } else {
            self.last.map_or(now, |last| last + SELDOM).max(now).min(now + QUIET)
        };
        self.urgent = urgent.then_some(due);
        self.due = Some(due);
        let soon = if urgent { after(self.piggyback) } else { after(self.interval) };
        self.wanted = Some(self.wanted.map_or(soon, |wanted| wanted.min(soon)));
    }

    /// Whether one is to be sent, even on its own.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// Whether one is worth bytes of a frame that is to be sent anyway.
    pub(super) fn is_wanted(&self, now: Instant) -> bool {
        self.is_due(now) || self.wanted.is_some_and(|wanted| wanted <= now)
    }

    /// Whether it would say anything new.
    pub(super) fn has_news(&self) -> bool {
        self.changed
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// The number of the next one.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// One has been sent; it will be repeated if something is `missing` and nothing comes.
    pub(super) fn sent(&mut self, now: Instant, missing: bool) {
        self.number = self.number.wrapping_add(1);
        self.last = Some(now);
        self.changed = false;
        (self.wanted, self.urgent) = (None, None);
        self.due = (missing && !self.eager).then(|| now + self.pause + self.pause);
        self.pause = (self.pause + self.pause).min(SLOWEST);
    }

    /// Begins a new association.
    pub(super) fn restart(&mut self) {
        (self.number, self.last, self.changed) = (0, None, false);
        (self.due, self.urgent, self.wanted) = (None, None, None);
        self.pause = self.interval;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A receiver that has told once, at 0.
    fn begun() -> Acks {
        let mut acks = Acks::new(&Config::default());
        acks.on_arrival(at(0), Arrival::Innovative, false, false);
        assert!(acks.is_due(at(0)), "the first packet is acknowledged at once");
        acks.sent(at(0), false);
        acks
    }

    #[test]
    fn where_nothing_is_missing_the_end_of_a_burst_is_acknowledged_after_6_ms() {
        let mut acks = begun();
        for now in 1..=20 {
            acks.on_arrival(at(now), Arrival::Innovative, false, false);
            assert_eq!(acks.deadline(), Some(at(now + 6)));
        }
    }

    #[test]
    fn while_packets_come_and_nothing_is_missing_one_is_sent_every_80_ms() {
        let mut acks = begun();
        let mut sent = Vec::new();
        for now in 1..250 {
            acks.on_arrival(at(now), Arrival::Innovative, false, false);
            if acks.is_due(at(now)) {
                acks.sent(at(now), false);
                sent.push(now);
            }
        }
        assert_eq!(sent, [80, 160, 240]);
    }

    #[test]
    fn what_is_missing_is_told_again_ever_more_seldom() {
        let mut acks = begun();
        acks.on_arrival(at(1), Arrival::Innovative, true, false);
        assert_eq!(acks.deadline(), Some(at(5)), "the interval after the last one");
        let mut now = at(5);
        let mut pauses = Vec::new();
        for _ in 0..10 {
            acks.sent(now, true);
            let next = acks.deadline().unwrap();
            pauses.push(next.since(now).as_millis());
            now = next;
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000]);
        acks.sent(now, false);
        assert_eq!(acks.deadline(), None, "nothing is missing any more");
    }
}
