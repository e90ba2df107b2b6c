//! When the decoder acknowledges.

use hopcast_core::{Duration, Instant};

use super::config::{Config, Plan};
use super::decoder::Arrival;

/// After the last packet of a burst, this long passes before it is acknowledged.
const QUIET: Duration = Duration::from_millis(6);
/// While packets come and nothing is missing, acknowledgements come this seldom.
const SELDOM: Duration = Duration::from_millis(80);
/// While something is missing and nothing comes, acknowledgements are repeated, ever more seldom.
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
    /// When one is to be sent on its own.
    due: Option<Instant>,
    /// The same, as long as it is for something missing.
    urgent: Option<Instant>,
    /// When one is worth bytes of a frame that is to be sent anyway.
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
