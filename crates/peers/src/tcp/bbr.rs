//! BBR version 1: send at the rate the path delivers, keep in flight what that rate fills the path with.
//!
//! After Cardwell and others, *BBR: Congestion-Based Congestion Control* (ACM Queue 14(5), 2016), and Linux 6.x
//! `tcp_bbr.c`, whose constants and order of steps it has. A model of the path is kept from each acknowledgement: the
//! largest delivery rate of the last ten round trips, and the least round trip of the last ten seconds. *Startup* doubles
//! the rate each round trip until it stops growing, *drain* takes off the queue that this has made, *probe bandwidth*
//! cycles around the rate in eight phases, and *probe round trip* empties the path every ten seconds to see its length.
//! Losses do not lower the rate; they only hold the window to what is delivered for one round trip.

use hopcast_core::{Duration, Instant, Rate, Stream};

use super::aggregation::Aggregation;
use super::congestion::{CongestionControl, Path, Phase, Sample};
use super::long_term::LongTerm;
use super::minmax::Minmax;

/// A delivery rate, in segments per microsecond times 2^24.
pub(super) type Bandwidth = u64;
/// One segment per microsecond.
pub(super) const BANDWIDTH_UNIT: Bandwidth = 1 << 24;

/// A gain, times 2^8, as Linux has it: the rounding is part of the behaviour.
type Gain = u64;
const UNIT: Gain = 256;
/// 2/ln 2: the least gain that doubles the rate each round trip.
const HIGH_GAIN: Gain = UNIT * 2885 / 1000 + 1;
/// Its inverse takes off in one round trip what startup has queued.
const DRAIN_GAIN: Gain = UNIT * 1000 / 2885;
/// Twice the bandwidth-delay product bears delayed and stretched acknowledgements.
const WINDOW_GAIN: Gain = UNIT * 2;
/// Probe, drain what the probe has queued, cruise.
const CYCLE: [Gain; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// From how many phases the first is drawn: any but the draining one.
const CYCLE_RANDOM: u64 = 7;

/// The bandwidth filter's window in round trips.
const BANDWIDTH_ROUNDS: u64 = 10;
/// The window of the least round trip.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// The least time in *probe round trip*.
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Pacing stays 1 % below the bandwidth so that queues shrink.
const PACING_MARGIN_PERCENT: u64 = 1;
/// The path is full when the bandwidth has not grown by a quarter in three round trips.
const FULL_GROWTH: Gain = UNIT * 5 / 4;
const FULL_ROUNDS: u32 = 3;
/// The least window: with acknowledgements of every other segment, four keep a path busy.
const LEAST_WINDOW: u32 = 4;
/// The window before there is a round trip: RFC 6928.
const INITIAL_WINDOW: u32 = 10;
/// Below this rate, segments leave one by one and not in pairs (Linux `bbr_min_tso_rate`).
const SINGLE_RATE: u64 = 1_200_000;
/// Linux `sk_pacing_shift`: a burst is what the pacing rate sends in 2^-10 s.
const BURST_SHIFT: u32 = 10;
/// Linux `tcp_tso_rtt_log`: by how much less than 64 KiB a burst is raised, halved for each 2^9 us of round trip.
const BURST_RTT_SHIFT: u32 = 9;
/// The largest burst in bytes: what fits an IP packet before segmentation.
const LARGEST_BURST: u64 = 65_535 - 320;

/// The mode of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Ramping up.
    Startup,
    /// Emptying the queue that startup has made.
    Drain,
    /// Cycling around the bandwidth; the phase of the cycle.
    ProbeBandwidth(usize),
    /// Emptying the path to see its length.
    ProbeRtt,
}

/// The state of BBR.
#[derive(Clone, Debug)]
pub(super) struct Bbr {
    random: Stream,
    mode: Mode,
    bandwidth: Minmax,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    /// Round trips counted in deliveries, and the delivery that ends the present one.
    rounds: u64,
    round_end: u64,
    round_start: bool,
    cycle_start: Instant,
    full_bandwidth: Bandwidth,
    full_rounds: u32,
    full: bool,
    pacing_gain: Gain,
    window_gain: Gain,
    pacing_rate: u64,
    seen_rtt: bool,
    prior_phase: Phase,
    prior_window: u32,
    conserving: bool,
    restarting: bool,
    probe_rtt_done: Option<Instant>,
    probe_rtt_round: bool,
    long_term: LongTerm,
    aggregation: Aggregation,
    /// Whether packets leave one by one, and the window needs no room for bursts.
    single: bool,
}

impl Bbr {
    pub(super) fn new(now: Instant, random: Stream) -> Self {
        Self {
            random,
            mode: Mode::Startup,
            bandwidth: Minmax::new(0, 0),
            min_rtt: None,
            min_rtt_at: now,
            rounds: 0,
            round_end: 0,
            round_start: false,
            cycle_start: Instant::ZERO,
            full_bandwidth: 0,
            full_rounds: 0,
            full: false,
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            pacing_rate: 0,
            seen_rtt: false,
            prior_phase: Phase::Open,
            prior_window: 0,
            conserving: false,
            restarting: false,
            probe_rtt_done: None,
            probe_rtt_round: false,
            long_term: LongTerm::default(),
            aggregation: Aggregation::new(now),
            single: false,
        }
    }

    /// For a sender that never sends bursts.
    pub(super) fn without_bursts(self) -> Self {
        Self { single: true, ..self }
    }

    /// Whether the path is being emptied to see its length.
    pub(super) const fn is_probing_rtt(&self) -> bool {
        matches!(self.mode, Mode::ProbeRtt)
    }

    /// The bandwidth to send at.
    fn bandwidth(&self) -> Bandwidth {
        self.long_term.bandwidth().unwrap_or(self.bandwidth.get())
    }

    fn update_bandwidth(&mut self, path: &Path<'_>, sample: &Sample) {
        self.round_start = false;
        let Some((delivered, interval)) = sample.rate.delivery else { return };
        let interval = interval.as_micros();
        if interval == 0 {
            return;
        }
        if sample.rate.prior_delivered.is_some_and(|prior| prior >= self.round_end) {
            self.round_end = path.rate.delivered;
            self.rounds += 1;
            self.round_start = true;
            self.conserving = false;
        }
        self.sample_long_term(path, sample);
        let bandwidth = delivered * BANDWIDTH_UNIT / interval;
        // What the application did not fill says nothing about the path, unless it is more than was known.
        if !sample.rate.app_limited || bandwidth >= self.bandwidth.get() {
            self.bandwidth.update_max(BANDWIDTH_ROUNDS, self.rounds, bandwidth);
        }
    }

    fn sample_long_term(&mut self, path: &Path<'_>, sample: &Sample) {
        let probing = matches!(self.mode, Mode::ProbeBandwidth(_));
        let policed = self.long_term.bandwidth().is_some();
        if self.long_term.sample(path, sample, self.round_start, probing) {
            self.probe_bandwidth(path);
        }
        if !policed && self.long_term.bandwidth().is_some() {
            self.pacing_gain = UNIT;
        }
    }

    fn update_cycle(&mut self, path: &Path<'_>, sample: &Sample) {
        if let Mode::ProbeBandwidth(phase) = self.mode
            && self.phase_is_over(path, sample)
        {
            self.mode = Mode::ProbeBandwidth((phase + 1) % CYCLE.len());
            self.cycle_start = path.rate.delivered_at;
        }
    }

    fn phase_is_over(&self, path: &Path<'_>, sample: &Sample) -> bool {
        let full_length =
            self.min_rtt.is_none_or(|min_rtt| path.rate.delivered_at.since(self.cycle_start) > min_rtt);
        if self.pacing_gain == UNIT {
            return full_length;
        }
        let in_network = self.in_network_at_departure(path, sample.prior_in_flight);
        if self.pacing_gain > UNIT {
            // Raising what is in flight to the gain may take longer than a round trip on a short path.
            return full_length
                && (sample.lost > 0
                    || in_network >= self.in_flight_at(path, self.bandwidth.get(), self.pacing_gain));
        }
        full_length || in_network <= self.in_flight_at(path, self.bandwidth.get(), UNIT)
    }

    fn check_full(&mut self, sample: &Sample) {
        if self.full || !self.round_start || sample.rate.app_limited {
            return;
        }
        if self.bandwidth.get() >= self.full_bandwidth * FULL_GROWTH / UNIT {
            self.full_bandwidth = self.bandwidth.get();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, path: &mut Path<'_>) {
        let target = self.in_flight_at(path, self.bandwidth.get(), UNIT);
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
            path.window.threshold = target;
        }
        if self.mode == Mode::Drain && self.in_network_at_departure(path, path.in_flight) <= target {
            self.probe_bandwidth(path);
        }
    }

    fn update_min_rtt(&mut self, path: &mut Path<'_>, sample: &Sample) {
        let expired = path.now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Some(rtt) = sample.rtt
            && (self.min_rtt.is_none_or(|min_rtt| rtt <= min_rtt) || (expired && !sample.delayed))
        {
            self.min_rtt = Some(rtt.max(Duration::from_micros(1)));
            self.min_rtt_at = path.now;
        }
        if expired && !self.restarting && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_window(path);
            self.probe_rtt_done = None;
        }
        if self.mode == Mode::ProbeRtt {
            path.rate.limit_by_application(path.in_flight);
            if self.probe_rtt_done.is_some() {
                self.probe_rtt_round |= self.round_start;
                if self.probe_rtt_round {
                    self.check_probe_rtt_done(path);
                }
            } else if path.in_flight <= LEAST_WINDOW {
                self.probe_rtt_done = Some(path.now + PROBE_RTT_TIME);
                self.probe_rtt_round = false;
                self.round_end = path.rate.delivered;
            }
        }
        if sample.rate.delivery.is_some_and(|(delivered, _)| delivered > 0) {
            self.restarting = false;
        }
    }

    fn check_probe_rtt_done(&mut self, path: &mut Path<'_>) {
        if self.probe_rtt_done.is_none_or(|done| path.now <= done) {
            return;
        }
        self.min_rtt_at = path.now;
        path.window.size = path.window.size.max(self.prior_window);
        if self.full {
            self.probe_bandwidth(path);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// Enters the cycle at a random phase.
    fn probe_bandwidth(&mut self, path: &Path<'_>) {
        let phase = CYCLE.len() as u64 - 1 - self.random.below(CYCLE_RANDOM);
        self.mode = Mode::ProbeBandwidth((phase as usize + 1) % CYCLE.len());
        self.cycle_start = path.rate.delivered_at;
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth(_) if self.long_term.bandwidth().is_some() => (UNIT, WINDOW_GAIN),
            Mode::ProbeBandwidth(phase) => (CYCLE[phase], WINDOW_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    fn set_pacing_rate(&mut self, path: &Path<'_>, bandwidth: Bandwidth, gain: Gain) {
        if !self.seen_rtt
            && let Some(rtt) = path.smoothed_rtt
        {
            self.seen_rtt = true;
            self.pacing_rate = initial_rate(path.window.size, rtt, path.mss);
        }
        let rate = rate_of(bandwidth, path.mss, gain);
        if self.full || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn set_window(&mut self, path: &mut Path<'_>, sample: &Sample, bandwidth: Bandwidth) {
        if sample.delivered > 0 {
            let (mut window, conserving) = self.recover_or_restore(path, sample);
            if !conserving {
                let target = self.product(bandwidth, self.window_gain)
                    + if self.full { self.aggregation.allowance(bandwidth) } else { 0 };
                let target = self.with_quanta(path, target);
                if self.full {
                    window = (window + sample.delivered).min(target);
                } else if window < target || path.rate.delivered < u64::from(INITIAL_WINDOW) {
                    window += sample.delivered;
                }
                window = window.max(LEAST_WINDOW);
            }
            path.window.size = window;
        }
        if self.mode == Mode::ProbeRtt {
            path.window.size = path.window.size.min(LEAST_WINDOW);
        }
    }

    /// The window to go on from, and whether it is final: in the first round trip of a recovery as much is sent as is
    /// delivered; after a recovery the window is what it was before.
    fn recover_or_restore(&mut self, path: &Path<'_>, sample: &Sample) -> (u32, bool) {
        let mut window = path.window.size.saturating_sub(sample.lost).max(1);
        if path.phase == Phase::Recovery && self.prior_phase != Phase::Recovery {
            self.conserving = true;
            self.round_end = path.rate.delivered;
            window = path.in_flight + sample.delivered;
        } else if self.prior_phase >= Phase::Recovery && path.phase < Phase::Recovery {
            window = window.max(self.prior_window);
            self.conserving = false;
        }
        self.prior_phase = path.phase;
        if self.conserving {
            window = window.max(path.in_flight + sample.delivered);
        }
        (window, self.conserving)
    }

    fn save_window(&mut self, path: &Path<'_>) {
        self.prior_window = if self.prior_phase < Phase::Recovery && self.mode != Mode::ProbeRtt {
            path.window.size
        } else {
            self.prior_window.max(path.window.size)
        };
    }

    /// What is in flight at `gain` times the bandwidth-delay product, with room for whole bursts.
    fn in_flight_at(&self, path: &Path<'_>, bandwidth: Bandwidth, gain: Gain) -> u32 {
        self.with_quanta(path, self.product(bandwidth, gain))
    }

    /// `gain` times the bandwidth-delay product in segments, rounded up.
    fn product(&self, bandwidth: Bandwidth, gain: Gain) -> u32 {
        let Some(min_rtt) = self.min_rtt else { return INITIAL_WINDOW };
        let product =
            u128::from(bandwidth) * u128::from(min_rtt.as_micros()) * u128::from(gain) / u128::from(UNIT);
        u32::try_from(product.div_ceil(u128::from(BANDWIDTH_UNIT))).unwrap_or(u32::MAX / 4)
    }

    /// Room for three bursts: one being queued, one being segmented, one being received and acknowledged.
    fn with_quanta(&self, path: &Path<'_>, window: u32) -> u32 {
        let window = window.saturating_add(3 * self.burst(path.mss));
        // Even, so that fewer acknowledgements are delayed.
        let window = (window + 1) & !1;
        // A probe raises what is in flight above the product of even the shortest path.
        window + if self.mode == Mode::ProbeBandwidth(0) { 2 } else { 0 }
    }

    /// How many segments leave at once: what the pacing rate sends in about a millisecond.
    fn burst(&self, mss: u32) -> u32 {
        if self.single {
            return 1;
        }
        let bytes = (self.pacing_rate >> BURST_SHIFT).min(LARGEST_BURST);
        let least = if self.pacing_rate < SINGLE_RATE / 8 { 1 } else { 2 };
        ((bytes / u64::from(mss.max(1))) as u32).clamp(least, 127)
    }

    /// How many segments will be in the network when the pacer lets the next one go.
    fn in_network_at_departure(&self, path: &Path<'_>, in_flight: u32) -> u32 {
        let wait = path.departure.since(path.now).as_micros();
        let delivered = u128::from(self.bandwidth()) * u128::from(wait) / u128::from(BANDWIDTH_UNIT);
        let then = in_flight + if self.pacing_gain > UNIT { self.burst(path.mss) } else { 0 };
        then.saturating_sub(u32::try_from(delivered).unwrap_or(u32::MAX))
    }
}

impl CongestionControl for Bbr {
    fn begin(&mut self, path: &mut Path<'_>) {
        self.min_rtt = path.min_rtt;
        self.min_rtt_at = path.now;
        self.aggregation.restart(path.now);
        self.long_term.reset(path);
        self.seen_rtt = path.smoothed_rtt.is_some();
        // Without a round trip, a nominal millisecond.
        let rtt = path.smoothed_rtt.unwrap_or(Duration::from_millis(1));
        self.pacing_rate = initial_rate(path.window.size, rtt, path.mss);
    }

    fn on_ack(&mut self, path: &mut Path<'_>, sample: &Sample) {
        self.update_bandwidth(path, sample);
        self.aggregation.update(path, sample, self.bandwidth(), self.round_start);
        self.update_cycle(path, sample);
        self.check_full(sample);
        self.check_drain(path);
        self.update_min_rtt(path, sample);
        self.update_gains();
        let bandwidth = self.bandwidth();
        self.set_pacing_rate(path, bandwidth, self.pacing_gain);
        self.set_window(path, sample, bandwidth);
    }

    fn threshold(&mut self, path: &mut Path<'_>) -> u32 {
        self.save_window(path);
        path.window.threshold
    }

    fn undo(&mut self, path: &mut Path<'_>, _prior: u32) -> u32 {
        self.full_bandwidth = 0;
        self.full_rounds = 0;
        self.long_term.reset(path);
        path.window.size
    }

    fn on_timeout(&mut self, path: &mut Path<'_>) {
        self.prior_phase = Phase::Loss;
        self.full_bandwidth = 0;
        // A timeout counts as the end of a round trip with a loss.
        self.round_start = true;
        self.sample_long_term(path, &Sample { lost: 1, ..Sample::default() });
    }

    fn on_restart(&mut self, path: &mut Path<'_>) {
        if !path.rate.is_app_limited() {
            return;
        }
        self.restarting = true;
        self.aggregation.restart(path.now);
        match self.mode {
            Mode::ProbeBandwidth(_) => self.set_pacing_rate(path, self.bandwidth(), UNIT),
            Mode::ProbeRtt => self.check_probe_rtt_done(path),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn rules_recovery(&self) -> bool {
        true
    }

    fn pacing(&self, mss: u32) -> Option<(Rate, u32)> {
        // On short paths bursts are larger, because they are cheap there (Linux `tcp_tso_rtt_log`).
        let shift = self.min_rtt.map_or(u64::MAX, |min_rtt| min_rtt.as_micros() >> BURST_RTT_SHIFT);
        let extra = if shift < 32 { (LARGEST_BURST >> shift) / u64::from(mss.max(1)) } else { 0 };
        let burst = u64::from(self.burst(mss)) + extra;
        let burst = burst.min((LARGEST_BURST / u64::from(mss.max(1))).max(2)) as u32;
        Some((Rate::from_bits_per_sec(self.pacing_rate * 8), burst))
    }
}

/// The pacing rate in bytes per second for a bandwidth and a gain.
fn rate_of(bandwidth: Bandwidth, mss: u32, gain: Gain) -> u64 {
    let rate = u128::from(bandwidth) * u128::from(mss) * u128::from(gain) / u128::from(UNIT);
    let rate =
        rate * u128::from(1_000_000 / 100 * (100 - PACING_MARGIN_PERCENT)) / u128::from(BANDWIDTH_UNIT);
    u64::try_from(rate).unwrap_or(u64::MAX / 8).min(u64::MAX / 8)
}

/// The pacing rate of startup for a window and a round trip.
fn initial_rate(window: u32, rtt: Duration, mss: u32) -> u64 {
    let bandwidth = u64::from(window) * BANDWIDTH_UNIT / rtt.as_micros().max(1);
    rate_of(bandwidth, mss, HIGH_GAIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::congestion::testing::path_of;
    use crate::tcp::rate::{DeliveryRate, RateSample};
    use crate::tcp::window::Window;
    use hopcast_core::Seed;

    const RTT: Duration = Duration::from_millis(20);

    fn bbr() -> Bbr {
        let mut bbr = Bbr::new(Instant::ZERO, Seed::new(1, 0).stream(&["bbr"], 0));
        bbr.min_rtt = Some(RTT);
        bbr
    }

    /// A bandwidth of `count` segments a round trip.
    fn a_round_trip(count: u64) -> Bandwidth {
        count * BANDWIDTH_UNIT / RTT.as_micros()
    }

    #[test]
    fn gains_are_those_of_the_mode() {
        let mut bbr = bbr();
        let mut gains = |mode| {
            bbr.mode = mode;
            bbr.update_gains();
            (bbr.pacing_gain, bbr.window_gain)
        };
        // In 256ths: 2/ln 2 = 2.885, and its inverse.
        assert_eq!(gains(Mode::Startup), (739, 739));
        assert_eq!(gains(Mode::Drain), (88, 739));
        assert_eq!(gains(Mode::ProbeBandwidth(0)), (320, 512));
        assert_eq!(gains(Mode::ProbeBandwidth(1)), (192, 512));
        for phase in 2..8 {
            assert_eq!(gains(Mode::ProbeBandwidth(phase)), (256, 512));
        }
        assert_eq!(gains(Mode::ProbeRtt), (256, 256));
    }

    #[test]
    fn what_startup_has_queued_is_drained_before_it_probes() {
        let (mut bbr, mut window, mut rate) = (bbr(), Window::new(10), DeliveryRate::default());
        bbr.bandwidth.update_max(10, 0, a_round_trip(100));
        bbr.full = true;
        let mut path = path_of(Instant::ZERO, &mut window, &mut rate, RTT);
        path.in_flight = 300;
        bbr.check_drain(&mut path);
        assert_eq!(bbr.mode, Mode::Drain);
        bbr.update_gains();
        // A product of 100 segments, rounded up, and three bursts of one; even.
        assert_eq!(path.window.threshold, 104);
        path.in_flight = 105;
        bbr.check_drain(&mut path);
        assert_eq!(bbr.mode, Mode::Drain);
        path.in_flight = 104;
        bbr.check_drain(&mut path);
        assert!(matches!(bbr.mode, Mode::ProbeBandwidth(_)));
    }

    #[test]
    fn probing_begins_with_any_phase_but_the_draining_one() {
        let (mut bbr, mut window, mut rate) = (bbr(), Window::new(10), DeliveryRate::default());
        let path = path_of(Instant::ZERO, &mut window, &mut rate, RTT);
        let mut seen = [0; 8];
        for _ in 0..700 {
            bbr.probe_bandwidth(&path);
            let Mode::ProbeBandwidth(phase) = bbr.mode else { unreachable!() };
            seen[phase] += 1;
        }
        assert_eq!(seen[1], 0);
        assert!(seen.iter().filter(|&&count| count > 50).count() == 7, "{seen:?}");
    }

    #[test]
    fn the_path_is_full_after_three_round_trips_that_grow_by_less_than_a_quarter() {
        let mut bbr = bbr();
        let mut round = |bandwidth, app_limited| {
            bbr.rounds += 1;
            bbr.bandwidth.update_max(10, bbr.rounds, a_round_trip(bandwidth));
            bbr.round_start = true;
            bbr.check_full(&Sample {
                rate: RateSample { app_limited, ..RateSample::default() },
                ..Sample::default()
            });
            (bbr.full_rounds, bbr.full)
        };
        assert_eq!(round(100, false), (0, false));
        assert_eq!(round(124, false), (1, false));
        assert_eq!(round(126, false), (0, false));
        assert_eq!(round(150, false), (1, false));
        assert_eq!(round(150, true), (1, false), "what the application held back says nothing");
        assert_eq!(round(150, false), (2, false));
        assert_eq!(round(157, false), (3, true));
    }

    #[test]
    fn products_and_rates_follow_the_bandwidth() {
        let (mut bbr, mut window, mut rate) = (bbr(), Window::new(10), DeliveryRate::default());
        assert_eq!(bbr.product(a_round_trip(100), UNIT), 100);
        assert_eq!(bbr.product(a_round_trip(100), WINDOW_GAIN), 200);
        bbr.min_rtt = None;
        assert_eq!(bbr.product(a_round_trip(100), UNIT), 10, "the first window");
        // 5,000 segments of 1,448 bytes a second, less one in a hundred.
        let found = rate_of(a_round_trip(100), 1448, UNIT);
        assert!((7_167_000..=7_167_600).contains(&found), "{found}");
        assert_eq!(initial_rate(100, RTT, 1448), rate_of(a_round_trip(100), 1448, HIGH_GAIN));
        bbr.pacing_rate = 1448 << 14;
        assert_eq!(bbr.burst(1448), 16, "what is sent in 2^-10 s");
        bbr.pacing_rate = 150_000;
        assert_eq!(bbr.burst(1448), 2);
        bbr.pacing_rate = 149_999;
        assert_eq!(bbr.burst(1448), 1, "below 1.2 Mbit/s one by one");
        let path = path_of(Instant::ZERO, &mut window, &mut rate, RTT);
        assert_eq!(bbr.with_quanta(&path, 100), 104);
        bbr.mode = Mode::ProbeBandwidth(0);
        assert_eq!(bbr.with_quanta(&path, 100), 106);
    }

    #[test]
    fn the_first_round_trip_of_a_recovery_sends_what_is_delivered_and_its_end_restores_the_window() {
        let (mut bbr, mut window, mut rate) = (bbr(), Window::new(200), DeliveryRate::default());
        let mut path = path_of(Instant::ZERO, &mut window, &mut rate, RTT);
        bbr.threshold(&mut path);
        path.phase = Phase::Recovery;
        path.in_flight = 90;
        let sample = Sample { delivered: 3, lost: 5, ..Sample::default() };
        assert_eq!(bbr.recover_or_restore(&path, &sample), (93, true));
        path.window.size = 93;
        path.in_flight = 95;
        assert_eq!(bbr.recover_or_restore(&path, &sample), (98, true), "never less than in flight");
        bbr.conserving = false;
        assert_eq!(bbr.recover_or_restore(&path, &sample), (88, false), "less what is lost");
        path.phase = Phase::Open;
        assert_eq!(bbr.recover_or_restore(&path, &sample), (200, false));
    }

    /// A sample of `delivered` segments over a round trip, which ends one.
    fn end_of_round(delivered: u64, app_limited: bool) -> Sample {
        let rate =
            RateSample { delivery: Some((delivered, RTT)), prior_delivered: Some(u64::MAX), app_limited };
        Sample { delivered: 1, rate, ..Sample::default() }
    }

    #[test]
    fn what_the_application_did_not_fill_counts_only_if_it_is_more_than_was_known() {
        // Linux `bbr_update_bw`.
        let (mut bbr, mut window, mut rate) = (bbr(), Window::new(10), DeliveryRate::default());
        let path = path_of(Instant::ZERO, &mut window, &mut rate, RTT);
        let mut found = |delivered, app_limited, rounds| {
            for _ in 0..rounds {
                bbr.update_bandwidth(&path, &end_of_round(delivered, app_limited));
                assert!(bbr.round_start);
            }
            bbr.bandwidth.get()
        };
        assert_eq!(found(100, false, 1), a_round_trip(100));
        assert_eq!(found(50, true, 30), a_round_trip(100), "held back, and less");
        assert_eq!(found(120, true, 1), a_round_trip(120), "held back, and more all the same");
        assert_eq!(found(50, false, 10), a_round_trip(120), "a maximum stays for ten round trips");
        assert_eq!(found(50, false, 1), a_round_trip(50));
    }

    #[test]
    fn after_ten_seconds_the_path_is_emptied_for_200_ms_and_a_round_trip() {
        // Linux `bbr_update_min_rtt`: bbr_min_rtt_win_sec, bbr_probe_rtt_mode_ms, bbr_cwnd_min_target.
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        for full in [true, false] {
            let (mut bbr, mut window, mut rate) = (bbr(), Window::new(80), DeliveryRate::default());
            bbr.full = full;
            bbr.mode = if full { Mode::ProbeBandwidth(2) } else { Mode::Startup };
            let before = bbr.mode;
            let mut step = |ms, in_flight, round_start, rtt| {
                bbr.round_start = round_start;
                let mut path = path_of(at(ms), &mut window, &mut rate, RTT);
                path.in_flight = in_flight;
                let rtt = Some(Duration::from_millis(rtt));
                bbr.update_min_rtt(&mut path, &Sample { rtt, ..Sample::default() });
                let found = (bbr.mode, bbr.min_rtt.unwrap().as_millis(), bbr.min_rtt_at);
                bbr.update_gains();
                let mut path = path_of(at(ms), &mut window, &mut rate, RTT);
                bbr.set_window(&mut path, &Sample::default(), 0);
                (found, window.size)
            };
            assert_eq!(step(10_000, 50, true, 25), ((before, 20, at(0)), 80));
            let emptying = (Mode::ProbeRtt, 25, at(10_001));
            assert_eq!(step(10_001, 50, true, 25), (emptying, 4));
            assert_eq!(step(10_020, 5, true, 30), (emptying, 4));
            assert_eq!(step(10_100, 4, true, 30), (emptying, 4), "the 200 ms begin");
            assert_eq!(step(10_301, 4, false, 30), (emptying, 4), "no round trip has ended");
            let ((mode, min_rtt, min_rtt_at), size) = step(10_302, 4, true, 30);
            assert_eq!((min_rtt, min_rtt_at, size), (25, at(10_302), 80), "the window is what it was");
            assert_eq!(matches!(mode, Mode::ProbeBandwidth(_)), full);
            assert_eq!(mode == Mode::Startup, !full);
        }
    }

    #[test]
    fn emptying_the_path_takes_200_ms_even_where_round_trips_are_shorter() {
        let (mut bbr, mut window, mut rate) = (bbr(), Window::new(80), DeliveryRate::default());
        bbr.mode = Mode::ProbeRtt;
        let mut mode_at = |ms| {
            bbr.round_start = true;
            let now = Instant::ZERO + Duration::from_millis(ms);
            bbr.update_min_rtt(&mut path_of(now, &mut window, &mut rate, RTT), &Sample::default());
            bbr.mode
        };
        assert_eq!([0, 20, 199, 200].map(&mut mode_at), [Mode::ProbeRtt; 4]);
        assert_eq!(mode_at(201), Mode::Startup);
    }

    #[test]
    fn the_pacing_rate_begins_with_a_nominal_millisecond_and_once_with_the_first_round_trip() {
        // Linux `bbr_init_pacing_rate_from_rtt` with its integers: 739/256 of ten segments of 1,448 bytes a round trip, less
        // one in a hundred.
        let (mut window, mut rate) = (Window::new(10), DeliveryRate::default());
        let mut bbr = Bbr::new(Instant::ZERO, Seed::new(1, 0).stream(&["bbr"], 0));
        let mut path = path_of(Instant::ZERO, &mut window, &mut rate, RTT);
        (path.smoothed_rtt, path.min_rtt) = (None, None);
        bbr.begin(&mut path);
        assert_eq!(bbr.pacing_rate, 41_381_651);
        bbr.set_pacing_rate(&path, 0, HIGH_GAIN);
        assert_eq!(bbr.pacing_rate, 41_381_651);
        path.smoothed_rtt = Some(RTT);
        bbr.set_pacing_rate(&path, 0, HIGH_GAIN);
        assert_eq!(bbr.pacing_rate, 2_068_934);
        path.smoothed_rtt = Some(RTT * 2);
        bbr.set_pacing_rate(&path, 0, HIGH_GAIN);
        assert_eq!(bbr.pacing_rate, 2_068_934, "only the first");
        // From then on it follows the bandwidth: only up until the path is full.
        bbr.set_pacing_rate(&path, a_round_trip(100), UNIT);
        assert_eq!(bbr.pacing_rate, 7_167_593);
        bbr.set_pacing_rate(&path, a_round_trip(50), UNIT);
        assert_eq!(bbr.pacing_rate, 7_167_593);
        bbr.full = true;
        bbr.set_pacing_rate(&path, a_round_trip(50), UNIT);
        assert_eq!(bbr.pacing_rate, 3_583_796);
    }

    #[test]
    fn the_window_to_return_to_is_the_last_one_or_while_it_is_held_down_the_largest() {
        // Linux `bbr_save_cwnd`.
        let saved = |phase, mode, size| {
            let (mut bbr, mut window, mut rate) = (bbr(), Window::new(size), DeliveryRate::default());
            (bbr.prior_window, bbr.prior_phase, bbr.mode) = (100, phase, mode);
            bbr.save_window(&path_of(Instant::ZERO, &mut window, &mut rate, RTT));
            bbr.prior_window
        };
        for phase in [Phase::Open, Phase::Disorder] {
            assert_eq!(saved(phase, Mode::Startup, 50), 50);
            assert_eq!(saved(phase, Mode::ProbeRtt, 50), 100);
        }
        for phase in [Phase::Recovery, Phase::Loss] {
            assert_eq!(saved(phase, Mode::Startup, 50), 100);
            assert_eq!(saved(phase, Mode::Startup, 150), 150);
        }
    }

    #[test]
    fn a_phase_of_the_cycle_lasts_a_round_trip_but_a_probe_until_it_shows_and_a_drain_until_it_is_done() {
        // Linux `bbr_is_next_cycle_phase`.
        let ms = Duration::from_millis;
        let over = |gain, elapsed, in_flight, lost| {
            let (mut bbr, mut window, mut rate) = (bbr(), Window::new(80), DeliveryRate::default());
            bbr.bandwidth.update_max(10, 0, a_round_trip(100));
            bbr.pacing_gain = gain;
            bbr.mode = Mode::ProbeBandwidth(2);
            rate.delivered_at = Instant::ZERO + elapsed;
            let path = path_of(Instant::ZERO + elapsed, &mut window, &mut rate, RTT);
            bbr.phase_is_over(&path, &Sample { lost, prior_in_flight: in_flight, ..Sample::default() })
        };
        for in_flight in [0, 500] {
            assert!(!over(UNIT, ms(20), in_flight, 1));
            assert!(over(UNIT, ms(21), in_flight, 0));
        }
        // 125 segments and three bursts of one are 128, of which one is the burst that is about to leave.
        assert!(!over(UNIT * 5 / 4, ms(21), 126, 0));
        assert!(over(UNIT * 5 / 4, ms(21), 127, 0));
        assert!(over(UNIT * 5 / 4, ms(21), 0, 1), "or something is lost");
        assert!(!over(UNIT * 5 / 4, ms(20), 500, 1));
        // 100 segments and three bursts, even.
        assert!(!over(UNIT * 3 / 4, ms(5), 105, 0));
        assert!(over(UNIT * 3 / 4, ms(5), 104, 0));
        assert!(over(UNIT * 3 / 4, ms(21), 500, 0));
    }

    #[test]
    fn a_burst_holds_what_fits_a_packet_at_most_and_is_larger_on_short_paths() {
        // Linux `bbr_tso_segs_goal` and `tcp_tso_autosize`: 65,535 - 320 bytes are 45 segments of 1,448.
        let mut bbr = bbr();
        let mut burst = |min_rtt_us, pacing_rate| {
            (bbr.min_rtt, bbr.pacing_rate) = (Some(Duration::from_micros(min_rtt_us)), pacing_rate);
            (bbr.burst(1448), bbr.pacing(1448).unwrap().1)
        };
        assert_eq!(burst(20_000, 1448 << 20), (45, 45));
        assert_eq!(burst(20_000, 1448 << 12), (4, 4));
        // At 1.1 ms a quarter of 65,215 bytes more, 11 segments.
        assert_eq!(burst(1_100, 1448 << 12), (4, 15));
    }
}
