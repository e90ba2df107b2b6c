//! BBR version 1: send at the rate the path delivers, keep in flight what that rate fills the path with.
//!
//! After Cardwell and others, *BBR: Congestion-Based Congestion Control* (ACM Queue 14(5), 2016), and Linux 6.x
//! `tcp_bbr.c`, whose constants and order of steps it has. A model of the path is kept from each acknowledgement: the
//! largest delivery rate of the last ten round trips, and the minimum round trip of the last ten seconds. *Startup*
//! doubles the rate each round trip until it stops growing, *drain* takes off the queue that this has made, *probe
//! bandwidth* cycles around the rate in eight phases, and *probe round trip* empties the path every ten seconds to see
//! its length. Losses do not lower the rate; they only hold the window to what is delivered for one round trip.

mod aggregation;
mod full;
mod long_term;
mod pacing;
mod units;

use hopcast_core::{Duration, Instant, Rate, Stream};

use self::aggregation::Aggregation;
use self::full::FullPath;
use self::long_term::LongTerm;
use self::pacing::Pacing;
use self::units::{BANDWIDTH_UNIT, Bandwidth, Gain, UNIT};
use super::congestion::{CongestionControl, Path, Phase, Sample};
use super::minmax::Minmax;

/// 2/ln 2: the smallest gain that doubles the rate each round trip (Linux `bbr_high_gain`).
const HIGH_GAIN: Gain = UNIT * 2885 / 1000 + 1;
/// The inverse, which drains in one round trip the queue that startup has made (Linux `bbr_drain_gain`).
const DRAIN_GAIN: Gain = UNIT * 1000 / 2885;
/// Twice the bandwidth-delay product bears delayed and stretched acknowledgements (Linux `bbr_cwnd_gain`).
const WINDOW_GAIN: Gain = UNIT * 2;
/// Probe, drain the queue of the probe, cruise (Linux `bbr_pacing_gain`).
const CYCLE: [Gain; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// The number of phases from which the first is drawn: any but the draining one (Linux `bbr_cycle_rand`).
const CYCLE_RANDOM: u64 = 7;

/// The bandwidth filter's window in round trips (Linux `bbr_bw_rtts`).
const BANDWIDTH_ROUNDS: u64 = 10;
/// The window of the minimum round trip (Linux `bbr_min_rtt_win_sec`).
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// Minimum time in *probe round trip* (Linux `bbr_probe_rtt_mode_ms`).
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Minimum window, in segments: with acknowledgements of every other one, four keep a path busy (Linux
/// `bbr_cwnd_min_target`).
const MIN_WINDOW: u32 = 4;
/// The window before there is a round trip: RFC 6928.
const INITIAL_WINDOW: u32 = 10;
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
    full: FullPath,
    pacing_gain: Gain,
    window_gain: Gain,
    pacing: Pacing,
    prior_phase: Phase,
    prior_window: u32,
    conserving: bool,
    restarting: bool,
    probe_rtt_done: Option<Instant>,
    probe_rtt_round: bool,
    long_term: LongTerm,
    aggregation: Aggregation,
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
            full: FullPath::default(),
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            pacing: Pacing::default(),
            prior_phase: Phase::Open,
            prior_window: 0,
            conserving: false,
            restarting: false,
            probe_rtt_done: None,
            probe_rtt_round: false,
            long_term: LongTerm::default(),
            aggregation: Aggregation::new(now),
        }
    }

    /// For a sender that never sends bursts.
    pub(super) fn without_bursts(mut self) -> Self {
        self.pacing.single = true;
        self
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
        // A rate that the application did not fill says nothing about the path, unless it is more than was known.
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

    fn check_drain(&mut self, path: &mut Path<'_>) {
        let target = self.in_flight_at(path, self.bandwidth.get(), UNIT);
        if self.mode == Mode::Startup && self.full.reached {
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
            } else if path.in_flight <= MIN_WINDOW {
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
        if self.full.reached {
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

    fn set_window(&mut self, path: &mut Path<'_>, sample: &Sample, bandwidth: Bandwidth) {
        if sample.delivered > 0 {
            let (mut window, conserving) = self.recover_or_restore(path, sample);
            if !conserving {
                let target = self.product(bandwidth, self.window_gain)
                    + if self.full.reached { self.aggregation.allowance(bandwidth) } else { 0 };
                let target = self.with_quanta(path, target);
                if self.full.reached {
                    window = (window + sample.delivered).min(target);
                } else if window < target || path.rate.delivered < u64::from(INITIAL_WINDOW) {
                    window += sample.delivered;
                }
                window = window.max(MIN_WINDOW);
            }
            path.window.size = window;
        }
        if self.mode == Mode::ProbeRtt {
            path.window.size = path.window.size.min(MIN_WINDOW);
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

    /// Segments in flight at `gain` times the bandwidth-delay product, with room for whole bursts.
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
        let window = window.saturating_add(3 * self.pacing.burst(path.mss));
        // Even, so that fewer acknowledgements are delayed.
        let window = (window + 1) & !1;
        // A probe raises what is in flight above the product of even the shortest path.
        window + if self.mode == Mode::ProbeBandwidth(0) { 2 } else { 0 }
    }

    /// Number of segments that will be in the network when the pacer lets the next one go.
    fn in_network_at_departure(&self, path: &Path<'_>, in_flight: u32) -> u32 {
        let wait = path.departure.since(path.now).as_micros();
        let delivered = u128::from(self.bandwidth()) * u128::from(wait) / u128::from(BANDWIDTH_UNIT);
        let then = in_flight + if self.pacing_gain > UNIT { self.pacing.burst(path.mss) } else { 0 };
        then.saturating_sub(u32::try_from(delivered).unwrap_or(u32::MAX))
    }
}

impl CongestionControl for Bbr {
    fn begin(&mut self, path: &mut Path<'_>) {
        self.min_rtt = path.min_rtt;
        self.min_rtt_at = path.now;
        self.aggregation.restart(path.now);
        self.long_term.reset(path);
        self.pacing.begin(path);
    }

    fn on_ack(&mut self, path: &mut Path<'_>, sample: &Sample) {
        self.update_bandwidth(path, sample);
        self.aggregation.update(path, sample, self.bandwidth(), self.round_start);
        self.update_cycle(path, sample);
        if self.round_start && !sample.rate.app_limited {
            self.full.end_round(self.bandwidth.get());
        }
        self.check_drain(path);
        self.update_min_rtt(path, sample);
        self.update_gains();
        let bandwidth = self.bandwidth();
        self.pacing.update(path, bandwidth, self.pacing_gain, self.full.reached);
        self.set_window(path, sample, bandwidth);
    }

    fn threshold(&mut self, path: &mut Path<'_>) -> u32 {
        self.save_window(path);
        path.window.threshold
    }

    fn undo(&mut self, path: &mut Path<'_>, _prior: u32) -> u32 {
        self.full.restart();
        self.long_term.reset(path);
        path.window.size
    }

    fn on_timeout(&mut self, path: &mut Path<'_>) {
        self.prior_phase = Phase::Loss;
        self.full.bandwidth = 0;
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
            Mode::ProbeBandwidth(_) => {
                self.pacing.update(path, self.bandwidth(), UNIT, self.full.reached);
            }
            Mode::ProbeRtt => self.check_probe_rtt_done(path),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn rules_recovery(&self) -> bool {
        true
    }

    fn pacing(&self, mss: u32) -> Option<(Rate, u32)> {
        Some(self.pacing.rate_and_burst(mss, self.min_rtt))
    }
}

#[cfg(test)]
mod tests;
