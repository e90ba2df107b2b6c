//! Age of units, where delivery has a deadline: what is too old is dropped and never handed up.
//!
//! A unit bears a stamp: when the application handed it over, by the source's clock, in 16 us. Whoever holds a symbol
//! in the clear can read the stamps of the units that begin in it. What the stamp is by this node's clock follows in
//! one of two ways:
//!
//! - *One clock*: all nodes read the same one, as in virtual time and in a live run on one machine. Ages are exact.
//! - *Clocks apart*: the minimum of (arrival - stamp) over the last 10 to 20 s is that of a unit that waited for
//!   nothing, and that unit took the minimum time from the source to here. INFO tells this time: the sum, over the
//!   hops, of half of the minimum round trip. All other ages follow from their difference to it, so that queues,
//!   repairs and outages are measured exactly, whatever the clocks' offset, and a drift of 100 ppm costs 2 ms at most.
//!   What stays unknown is by how much the two directions of the hops differ: ages are wrong by half of that, as with
//!   NTP (RFC 5905, section 8). Until every hop has measured a round trip no age is known, and nothing is dropped for
//!   its age here. A source that is overloaded for longer than 10 s without a pause has no unit that waited for
//!   nothing: the minimum wait of any is then taken for the path, and ages are too small by it. Measured at 20 Mbit/s
//!   over two hops of 20 ms, offered twice as much: by up to 6 ms with rank feedback; up to 77 ms without, at a
//!   deadline of 200 ms, and 7 ms at 60 to 120 ms.

use hopcast_core::bytes::complete;
use hopcast_core::{Buffer, Duration, Instant};

use super::config::{Config, Delivery};

/// Length of a stamp, in bytes.
pub(super) const STAMP: usize = 4;
/// Unit of a stamp: 2^14 ns. Chosen: with 32 bits it wraps after 19 hours, and ages below half of that are unambiguous.
const UNIT_BITS: u32 = 14;
/// Half of the time over which the minimum age is looked for. Chosen: shorter, and a standing queue is taken for the
/// path; longer, and it takes longer until a route that has become slower, and clocks that drift, are followed.
const HALF_SPAN: Duration = Duration::from_secs(10);

/// Bound of a deadline that nobody has set, until the path is known: two geostationary satellites (260 ms each), and
/// some more. Chosen: shorter, and the first units over a long path are dropped; longer, and stale ones are handed up
/// when a path opens.
const UNKNOWN_PATH_BOUND: Duration = Duration::from_secs(1);
/// Bound of such a deadline once the path is known, as a multiple of the minimum delay of the path. A hop has repaired
/// a loss after three times its own delay: the packet, the report that misses it, the repair. Chosen: the fourth is for
/// reports and repairs that wait for others. Fewer, and long hops are not repaired; more, and a loss that cannot be
/// repaired delays for longer what comes after it.
const TRIPS: u64 = 4;

/// Deadline that nobody has set, of units that are granted and repaired for as long as it takes: the longest that INFO
/// can tell in whole seconds. Chosen: shorter, and the queue of a slow link makes late what was accepted; longer would
/// be of use for outages only. Where the rounds of repair are limited, what they leave open would hold back for so long
/// what comes after it.
const GRANTED_DEADLINE: Duration = Duration::from_secs(65);

/// The deadline of a session, and a node's knowledge of the ages of its units.
#[derive(Clone, Debug)]
pub(super) struct Age {
    /// Maximum age of data that is handed up.
    after: Duration,
    /// Whether that holds over a long path too.
    fixed: bool,
    /// Maximum delay beyond that of the path that the protocol above tolerates.
    tolerance: Option<Duration>,
    one_clock: bool,
    /// Maximum delay of this node's wake-ups.
    slack: Duration,
    /// Minimum path delay from the source, as the parents heard lately have told it, if it is known.
    told: Option<Duration>,
    /// Minimum of `told` in this half of the span and in the one before, so that it covers the same time as `min`.
    elapsed: [Option<Duration>; 2],
    /// Minimum delay to the furthest end, as far as it is known; zero at a sink.
    ahead: Option<Duration>,
    /// The same where all of it is known.
    rest: Option<Duration>,
    /// Minimum difference of this node's clock and a stamp, in units, in this half of the span and in the one before.
    min: [Option<u32>; 2],
    half: Instant,
}

impl Age {
    /// A session with a deadline of `after`, as a node of this configuration follows it.
    pub(super) const fn new(after: Duration, fixed: bool, config: &Config) -> Self {
        Self {
            after,
            fixed,
            tolerance: config.tolerance,
            one_clock: config.one_clock,
            slack: config.slack,
            told: None,
            elapsed: [None; 2],
            ahead: None,
            rest: None,
            min: [None; 2],
            half: Instant::ZERO,
        }
    }

    /// The deadline as the session tells it.
    pub(super) const fn told(&self) -> (Duration, bool) {
        (self.after, self.fixed)
    }

    /// The ages of a source's data with this configuration; `None` where delivery is reliable.
    pub(super) fn at_source(config: &Config) -> Option<Self> {
        let Delivery::Deadline { after, fixed, rounds } = config.delivery else { return None };
        let granted = config.unit_credit && !fixed && rounds == Delivery::UNTIL_DEADLINE;
        let after = if granted { after.max(GRANTED_DEADLINE) } else { after };
        let here = Some(Duration::ZERO);
        // It stamps by its own clock.
        Some(Self { one_clock: true, told: here, elapsed: [here, None], ..Self::new(after, fixed, config) })
    }

    /// The same at the sink, behind which there is no hop.
    pub(super) const fn at_sink(self) -> Self {
        Self { ahead: Some(Duration::ZERO), rest: Some(Duration::ZERO), ..self }
    }

    /// Minimum path delay from the source as INFO tells it to the children, if it is known.
    pub(super) const fn told_elapsed(&self) -> Option<Duration> {
        self.told
    }

    /// Minimum path delay from the source over the span, from which ages are computed.
    fn elapsed(&self) -> Option<Duration> {
        self.elapsed.into_iter().flatten().min()
    }

    /// Takes the minimum path delay from the source that the parents heard lately have told, if any knows it.
    pub(super) fn learn(&mut self, now: Instant, elapsed: Option<Duration>) {
        self.roll(now);
        self.told = elapsed;
        self.elapsed[0] = self.elapsed[0].into_iter().chain(elapsed).min();
    }

    /// Sets the minimum delay to the furthest end, as far as it is known, and where all of it is.
    pub(super) const fn look_ahead(&mut self, ahead: Option<Duration>, rest: Option<Duration>) {
        (self.ahead, self.rest) = (ahead, rest);
    }

    /// Minimum delay to the furthest end, if it is known.
    pub(super) const fn rest(&self) -> Option<Duration> {
        self.rest
    }

    /// The age up to which repairs are planned for: the deadline that somebody has set, or that which the protocol
    /// above tolerates.
    pub(super) fn aim(&self) -> Option<Duration> {
        if self.fixed {
            return Some(self.after);
        }
        Some(self.elapsed()? + self.rest? + self.tolerance?)
    }

    /// Maximum age of what is handed up. A deadline that nobody has set must not cut off who is far away, nor end
    /// before a hop can be repaired.
    pub(super) fn bound(&self) -> Duration {
        if self.fixed {
            return self.after;
        }
        let known = (self.elapsed().unwrap_or_default() + self.ahead.unwrap_or_default()) * TRIPS;
        let unknown = if self.elapsed().is_none() || self.ahead.is_none() {
            UNKNOWN_PATH_BOUND
        } else {
            Duration::ZERO
        };
        self.after.max(known).max(unknown)
    }

    /// Notes a unit's stamp when it is read for the first time, and the difference of the clocks that follows from it.
    fn note(&mut self, now: Instant, stamp: u32) {
        if self.one_clock {
            return;
        }
        self.roll(now);
        let difference = units(now).wrapping_sub(stamp);
        let min = self.min[0].get_or_insert(difference);
        if is_less(difference, *min) {
            *min = difference;
        }
    }

    /// Begins another half of the span, if it is time.
    fn roll(&mut self, now: Instant) {
        if now.since(self.half) >= HALF_SPAN {
            // What comes first after a pause may be stale, so that what was known before it still counts.
            self.min = [None, self.min[0].or(self.min[1])];
            self.elapsed = [None, self.elapsed[0].or(self.elapsed[1])];
            self.half = now;
        }
    }

    /// Time at which a unit of this stamp was handed over, by this node's clock, or shortly before. `None` if that is
    /// not known.
    pub(super) fn sent(&mut self, now: Instant, stamp: u32) -> Option<Instant> {
        if self.one_clock {
            let sent = complete(stamp, 32, now.as_nanos() >> UNIT_BITS) << UNIT_BITS;
            // A stamp of the future is damaged; what bears it must not be kept until then.
            return Some(Instant::from_nanos(sent).min(now));
        }
        self.note(now, stamp);
        let [this, before] = self.min;
        let min = match (this?, before) {
            (this, Some(before)) if is_less(before, this) => before,
            (this, _) => this,
        };
        let more = units(now).wrapping_sub(stamp).wrapping_sub(min);
        let age = self.elapsed()? + Duration::from_nanos(u64::from(more) << UNIT_BITS);
        Some(Instant::from_nanos(now.as_nanos().saturating_sub(age.as_nanos())))
    }

    /// When to be woken to hand up a unit of this stamp in time. `None` if that is not known.
    pub(super) fn due(&mut self, now: Instant, stamp: u32) -> Option<Instant> {
        // Between two readings of one stamp the age that follows may jump by a unit.
        let wait = self.bound().saturating_sub(self.slack + Duration::from_nanos(1 << UNIT_BITS));
        self.sent(now, stamp).map(|sent| sent + wait)
    }

    /// Whether a unit of this stamp must not be handed up any more.
    pub(super) fn is_late(&mut self, now: Instant, stamp: u32) -> bool {
        let bound = self.bound();
        self.sent(now, stamp).is_some_and(|sent| sent + bound < now)
    }
}

/// Puts the stamp of a unit before it.
pub(super) fn stamp(now: Instant, unit: &mut Buffer) {
    unit.prepend(STAMP).copy_from_slice(&units(now).to_be_bytes());
}

/// The same for a unit that has one.
pub(super) fn stamp_again(now: Instant, unit: &mut Buffer) {
    if let Some(stamp) = unit.first_chunk_mut() {
        *stamp = units(now).to_be_bytes();
    }
}

/// The stamp that a unit, or its first piece, begins with.
pub(super) fn read(unit: &[u8]) -> Option<u32> {
    unit.first_chunk().map(|&stamp| u32::from_be_bytes(stamp))
}

fn units(at: Instant) -> u32 {
    (at.as_nanos() >> UNIT_BITS) as u32
}

/// Whether a difference is less than another; they wrap.
const fn is_less(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_stamp_is_four_bytes_that_count_16_us() {
        let mut unit = Buffer::copy_from(b"unit");
        stamp(Instant::from_nanos(0x0102_0304 * 16_384 + 16_383), &mut unit);
        assert_eq!(&unit[..], b"\x01\x02\x03\x04unit");
        assert_eq!(read(&unit), Some(0x0102_0304));
        assert_eq!(read(b"\x01\x02\x03"), None);
    }

    #[test]
    fn a_path_that_has_become_slower_is_followed_within_20_s() {
        let config = Config::default();
        let mut age = Age::new(Duration::from_millis(200), false, &config);
        age.learn(at(0), Some(Duration::ZERO));
        // A clock that is 100 s ahead; units take no time at first, and one second from then on.
        let mut of = |now: u64, took: u64| {
            let sent = age.sent(at(now + 100_000), units(at(now - took))).unwrap();
            (at(now + 100_000).since(sent).as_micros() + 500) / 1000
        };
        assert_eq!(of(0, 0), 0);
        for now in [5000, 9900, 10_100, 15_000, 19_900] {
            assert_eq!(of(now, 1000), 1000, "at {now}");
        }
        assert_eq!(of(20_100, 1000), 0);
        assert_eq!(of(20_200, 1300), 300);
        assert_eq!(of(20_300, 900), 0);
    }

    #[test]
    fn what_parents_said_of_the_path_counts_for_as_long_as_what_came_by_it() {
        let config = Config::default();
        let millis = |millis| Some(Duration::from_millis(millis));
        let mut age = Age::new(Duration::from_millis(200), true, &config);
        age.learn(at(1000), None);
        assert_eq!((age.elapsed(), age.told_elapsed()), (None, None));
        for (now, said, min) in [
            (10_000, millis(10), 10),
            (11_000, millis(90), 10),
            (20_000, millis(90), 10),
            (29_900, None, 10),
            (30_100, millis(90), 90),
            (30_200, millis(20), 20),
        ] {
            age.learn(at(now), said);
            assert_eq!((age.elapsed(), age.told_elapsed()), (millis(min), said), "at {now}");
        }
        // A pause does not make it forget.
        age.learn(at(90_000), None);
        assert_eq!(age.elapsed(), millis(20));
    }

    #[test]
    fn who_waits_for_grants_has_65_s_unless_somebody_has_set_a_deadline_or_limited_the_rounds() {
        let told = |unit_credit, fixed, rounds| {
            let delivery = Delivery::Deadline { after: Duration::from_millis(300), fixed, rounds };
            let (after, fixed) =
                Age::at_source(&Config { delivery, unit_credit, ..Config::default() }).unwrap().told();
            (after.as_millis(), fixed)
        };
        let all = Delivery::UNTIL_DEADLINE;
        assert_eq!((told(false, false, all), told(false, true, all)), ((300, false), (300, true)));
        assert_eq!((told(true, false, all), told(true, true, all)), ((65_000, false), (300, true)));
        assert_eq!(told(true, false, all - 1), (300, false));
    }

    #[test]
    fn what_is_handed_up_when_it_is_due_is_not_late() {
        let config = Config::default();
        let mut age = Age::new(Duration::from_millis(200), false, &config).at_sink();
        age.learn(at(0), Some(Duration::from_millis(100)));
        for nanos in (0..1_000_000).step_by(999) {
            let now = Instant::from_nanos(1_000_000_000 + nanos);
            let due = age.due(now, 7).unwrap();
            assert!(due > now && !age.is_late(due, 7), "{nanos}: {due:?}");
        }
    }

    #[test]
    fn until_the_path_is_known_a_deadline_that_nobody_has_set_is_a_second_and_then_four_trips() {
        let config = Config::default();
        let after = Duration::from_millis(200);
        let millis = |millis| Some(Duration::from_millis(millis));
        for (elapsed, ahead, bound) in [
            (None, None, 1000),
            (None, millis(10), 1000),
            (None, millis(260), 1040),
            (millis(10), None, 1000),
            (millis(700), None, 2800),
            (millis(0), millis(0), 200),
            (millis(50), millis(0), 200),
            (millis(0), millis(51), 204),
            (millis(260), millis(260), 2080),
        ] {
            let mut age = Age::new(after, false, &config);
            age.learn(at(0), elapsed);
            age.look_ahead(ahead, None);
            assert_eq!(Some(age.bound()), millis(bound), "{elapsed:?}, {ahead:?}");
        }
        let mut age = Age::new(after, false, &config).at_sink();
        age.learn(at(0), millis(300));
        assert_eq!(Some(age.bound()), millis(1200), "there is no hop behind a sink");
        assert_eq!(Age::new(after, true, &config).bound(), after, "one that is fixed holds");
    }
}
