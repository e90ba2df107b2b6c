//! The timestamps option (RFC 7323): a clock of milliseconds, and protection against wrapped sequence numbers (PAWS).

use hopcast_core::{Duration, Instant};

use super::wire::Timestamps;

/// Time without a segment after which any timestamp is taken (RFC 7323 section 5.5).
const OUTDATED: Duration = Duration::from_secs(24 * 24 * 3600);

/// The clock of one connection, and the peer's as far as it is known.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// The clock's value at time zero: random, so that it reveals nothing about the host.
    offset: u32,
    agreed: bool,
    recent: u32,
    recent_at: Instant,
}

impl Clock {
    pub(super) const fn new(offset: u32) -> Self {
        Self { offset, agreed: false, recent: 0, recent_at: Instant::ZERO }
    }

    /// The clock's value.
    pub(super) fn value(&self, now: Instant) -> u32 {
        (now.since(Instant::ZERO).as_millis() as u32).wrapping_add(self.offset)
    }

    /// Both ends use timestamps, and this was the peer's first.
    pub(super) fn agree(&mut self, now: Instant, timestamps: Timestamps) {
        self.agreed = true;
        self.recent = timestamps.value;
        self.recent_at = now;
    }

    pub(super) const fn is_agreed(&self) -> bool {
        self.agreed
    }

    /// The option for a segment that leaves now.
    pub(super) fn stamp(&self, now: Instant) -> Option<Timestamps> {
        self.agreed.then(|| Timestamps { value: self.value(now), echo: self.recent })
    }

    /// The option for a SYN, which offers timestamps.
    pub(super) fn offer(&self, now: Instant) -> Timestamps {
        Timestamps { value: self.value(now), echo: self.recent }
    }

    /// Time at which the segment was sent whose timestamp is echoed, in whole milliseconds; `None` for what was never
    /// sent.
    pub(super) fn echoed(&self, now: Instant, timestamps: Option<Timestamps>) -> Option<Instant> {
        let echo = timestamps.filter(|_| self.agreed)?.echo;
        let age = self.value(now).wrapping_sub(echo) as i32;
        let whole = Instant::ZERO + Duration::from_millis(now.since(Instant::ZERO).as_millis());
        let age = Duration::from_millis(u64::try_from(age).ok()?);
        (age <= whole.since(Instant::ZERO)).then(|| whole - age)
    }

    /// Whether the segment is older than others that have been seen, so that its number may be of an earlier lap.
    pub(super) fn is_stale(&self, now: Instant, timestamps: Option<Timestamps>) -> bool {
        let Some(timestamps) = timestamps.filter(|_| self.agreed) else { return false };
        // One tick is allowed, as in Linux (`TCP_PAWS_WINDOW`).
        (self.recent.wrapping_sub(timestamps.value) as i32) > 1 && now.since(self.recent_at) < OUTDATED
    }

    /// Notes the timestamp of a segment that was admitted and begins no later than what was acknowledged last.
    pub(super) fn note(&mut self, now: Instant, timestamps: Option<Timestamps>) {
        if let Some(timestamps) = timestamps.filter(|_| self.agreed)
            && ((timestamps.value.wrapping_sub(self.recent) as i32) >= 0
                || now.since(self.recent_at) >= OUTDATED)
        {
            self.recent = timestamps.value;
            self.recent_at = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(1000 * us)
    }

    fn agreed(now: Instant) -> Clock {
        let mut clock = Clock::new(u32::MAX - 5);
        clock.agree(now, Timestamps { value: 1000, echo: 0 });
        clock
    }

    #[test]
    fn an_echo_tells_when_a_segment_was_sent_and_one_that_never_was_sent_says_nothing() {
        let clock = agreed(at(0));
        let echoed = |now, echo| clock.echoed(now, Some(Timestamps { value: 0, echo }));
        // The clock of milliseconds has wrapped.
        assert_eq!(clock.value(at(9_900)), 3);
        assert_eq!(echoed(at(20_700), 3), Some(at(9_000)));
        assert_eq!(echoed(at(20_700), clock.value(at(20_700))), Some(at(20_000)));
        assert_eq!(echoed(at(20_700), clock.value(at(0))), Some(at(0)));
        assert_eq!(echoed(at(20_700), clock.value(at(0)).wrapping_sub(1)), None, "before there was a clock");
        assert_eq!(echoed(at(20_700), clock.value(at(21_000))), None, "in the future");
        assert_eq!(Clock::new(0).echoed(at(20_700), Some(Timestamps { value: 0, echo: 3 })), None);
    }

    #[test]
    fn an_older_timestamp_is_stale_for_24_days_but_for_one_tick() {
        // RFC 7323 section 5.5; Linux TCP_PAWS_24DAYS and TCP_PAWS_WINDOW.
        let day = Duration::from_secs(24 * 3600);
        let mut clock = agreed(at(0));
        let of = |value| Some(Timestamps { value, echo: 0 });
        assert!(!clock.is_stale(at(1), of(999)) && clock.is_stale(at(1), of(998)));
        assert!(clock.is_stale(at(0) + day * 24 - Duration::from_nanos(1), of(998)));
        assert!(!clock.is_stale(at(0) + day * 24, of(998)));
        clock.note(at(1), of(998));
        assert_eq!(clock.stamp(at(1)).unwrap().echo, 1000, "an older one is not echoed");
        clock.note(at(1), of(1001));
        assert_eq!(clock.stamp(at(1)).unwrap().echo, 1001);
        clock.note(at(1) + day * 24 - Duration::from_nanos(1), of(998));
        assert_eq!(clock.stamp(at(1)).unwrap().echo, 1001);
        clock.note(at(1) + day * 24, of(998));
        assert_eq!(clock.stamp(at(1)).unwrap().echo, 998);
    }
}
