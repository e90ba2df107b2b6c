//! CUBIC: the window grows as a cubic function of the time since the last loss (RFC 9438), with the arithmetic of
//! Linux.
//!
//! ```text
//! W_cubic(t) = C (t - K)^3 + W_max        K = cbrt((W_max - W_epoch) / C)
//! ```
//!
//! It rises steeply back towards the window at which the last loss came, stays near it, and then searches beyond. Where
//! Reno would be quicker (short round trips, small windows) it follows Reno's estimate.
//!
//! Windows are whole segments, as in Linux `tcp_cubic.c`. Of the curve and of the estimate follows a *step*, the number
//! of segments to be acknowledged for the window to grow by one. While the window does not grow the step is kept for
//! 1/32 s, which on short paths is several round trips. So the window lags behind the estimate, and where RFC 9438 is
//! as quick as Reno, Linux is slower.

use hopcast_core::Duration;

use super::congestion::{CongestionControl, Path, Sample};
use super::hystart::HyStart;
use super::reno::{Credit, slow_start};
use super::wheel::{TICKS_PER_SECOND, ticks, ticks_of};
use super::window::NO_THRESHOLD;

/// The aggressiveness, in segments per second cubed: RFC 9438 section 5. (Linux: 410/1024.)
const C: f64 = 0.4;
/// The part of the window that is left after a loss, in 1024ths, 0.7: RFC 9438 section 4.6.
const BETA: u64 = 717;
/// Unit of [`BETA`] (Linux `BICTCP_BETA_SCALE`).
const BETA_UNIT: u64 = 1024;
/// Segments to be acknowledged for one more in the estimate of Reno's window, for each 8 of the window: 8/alpha, where
/// alpha = 3 (1 - beta) / (1 + beta) makes it as aggressive as Reno (RFC 9438 section 4.3). Rounded down, as in Linux:
/// 15.
const RENO_STEP: u64 = 8 * (BETA_UNIT + BETA) / 3 / (BETA_UNIT - BETA);
/// Ticks for which a step is kept while the window stays, 1/32 s: Linux `bictcp_update`, as the next three.
const KEPT: u64 = TICKS_PER_SECOND / 32;
/// Minimum step, in acknowledgements: at most half as large again after each round trip.
const MIN_STEP: u32 = 2;
/// The step, for each segment of the window, where the curve is not above the window.
const FLAT_STEP: u32 = 100;
/// Maximum step before the first loss, so that a window that slow start left too small is found out.
const FIRST_STEP: u32 = 20;
/// Minimum window after a loss, in segments: RFC 5681.
const MIN_WINDOW: u32 = 2;

/// The state of CUBIC.
#[derive(Clone, Debug, Default)]
pub(super) struct Cubic {
    epoch: Option<Epoch>,
    /// The window before the last reduction, or less by fast convergence; 0 before the first.
    window_max: u32,
    /// Segments acknowledged that the estimate of Reno's window has not counted yet.
    uncounted: u64,
    /// Segments to be acknowledged for the window to grow by one.
    step: u32,
    /// Time at which that was found, in ticks, and the window it is for.
    found_at: u64,
    found_for: u32,
    credit: Credit,
    hystart: HyStart,
}

/// A stage of congestion avoidance, from a reduction to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    /// Time at which it began, in ticks.
    start: u64,
    /// K, in seconds.
    k: f64,
    origin: u32,
    /// The estimate of Reno's window.
    reno: u32,
}

impl Epoch {
    /// Begins with `window`, after a window of `window_max` was too much.
    pub(super) fn new(start: u64, window: u32, window_max: u32) -> Self {
        let k = (f64::from(window_max.saturating_sub(window)) / C).cbrt();
        Self { start, k, origin: window_max.max(window), reno: window }
    }

    /// W_cubic at the tick `at`.
    pub(super) fn window(&self, at: u64) -> f64 {
        let offset = at.saturating_sub(self.start) as f64 / TICKS_PER_SECOND as f64 - self.k;
        // The curve's distance from its origin is cut to whole segments.
        f64::from(self.origin) + (C * offset * offset * offset).trunc()
    }

    /// Counts `acked` segments towards Reno's estimate, for a window of `size`. Returns those that are left over.
    fn estimate(&mut self, size: u32, acked: u64) -> u64 {
        let step = (u64::from(size) * RENO_STEP / 8).max(1);
        self.reno =
            self.reno.saturating_add(u32::try_from((acked.saturating_sub(1)) / step).unwrap_or(u32::MAX));
        acked - (acked.saturating_sub(1)) / step * step
    }
}

impl Cubic {
    /// Congestion avoidance for `acked` segments: RFC 9438 sections 4.2 to 4.5, Linux `bictcp_update`.
    fn avoid(&mut self, path: &mut Path<'_>, acked: u32) {
        self.find_step(path, acked);
        self.credit.grow(path.window, self.step, acked);
    }

    fn find_step(&mut self, path: &Path<'_>, acked: u32) {
        let (size, now) = (path.window.size, ticks(path.now));
        self.uncounted += u64::from(acked);
        if self.found_for == size && now - self.found_at <= KEPT {
            return;
        }
        // The curve is looked at once a tick at most.
        let known = self.epoch.is_some() && self.found_at == now;
        let window_max = self.window_max;
        if self.epoch.is_none() {
            self.uncounted = u64::from(acked);
        }
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(now, size, window_max));
        if !known {
            (self.found_at, self.found_for) = (now, size);
            let ahead = ticks_of(path.min_rtt.unwrap_or(Duration::ZERO));
            let target = epoch.window(now + ahead);
            self.step = if target > f64::from(size) {
                (f64::from(size) / (target - f64::from(size))) as u32
            } else {
                size.saturating_mul(FLAT_STEP)
            };
            if window_max == 0 {
                self.step = self.step.min(FIRST_STEP);
            }
        }
        self.uncounted = epoch.estimate(size, self.uncounted);
        if epoch.reno > size {
            self.step = self.step.min(size / (epoch.reno - size));
        }
        self.step = self.step.max(MIN_STEP);
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, path: &mut Path<'_>, sample: &Sample) {
        let first_slow_start = path.window.threshold == NO_THRESHOLD;
        if first_slow_start && self.hystart.on_ack(path.una, path.nxt, sample.rtt) {
            path.window.threshold = path.window.size;
        }
        if !sample.may_grow || !path.window.is_limiting() {
            return;
        }
        let mut acked = sample.delivered;
        if path.window.in_slow_start() {
            let growth = if first_slow_start { self.hystart.growth(acked) } else { acked };
            acked -= slow_start(path.window, growth).min(acked);
            if first_slow_start || acked == 0 {
                return;
            }
        }
        self.avoid(path, acked);
    }

    fn threshold(&mut self, path: &mut Path<'_>) -> u32 {
        let size = path.window.size;
        self.epoch = None;
        self.credit = Credit::default();
        // Fast convergence (section 4.7): a flow that lost earlier than the time before makes room for new ones.
        let kept = if size < self.window_max { BETA_UNIT + BETA } else { 2 * BETA_UNIT };
        self.window_max = (u64::from(size) * kept / (2 * BETA_UNIT)) as u32;
        ((u64::from(size) * BETA / BETA_UNIT) as u32).max(MIN_WINDOW)
    }

    fn undo(&mut self, path: &mut Path<'_>, prior: u32) -> u32 {
        path.window.size.max(prior)
    }

    fn on_timeout(&mut self, _path: &mut Path<'_>) {
        // Nothing that was learnt holds any longer (section 4.8; Linux resets all).
        *self = Self::default();
    }

    fn on_restart(&mut self, path: &mut Path<'_>) {
        // The time without traffic is no time in which the window could have grown (section 5.8).
        let now = ticks(path.now);
        if let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + now - ticks(path.window.last_sent())).min(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Instant;

    use super::*;
    use crate::tcp::congestion::testing::path_of;
    use crate::tcp::rate::DeliveryRate;
    use crate::tcp::window::Window;

    #[test]
    fn the_curve_passes_through_the_points_of_the_rfc() {
        let epoch = Epoch::new(0, 700, 1000);
        let k = TICKS_PER_SECOND as f64 * (300.0f64 / 0.4).cbrt();
        let at = |ticks: f64| epoch.window(ticks as u64);
        assert!((at(0.0) - 700.0).abs() <= 1.0, "it begins where the reduction ended");
        assert!((at(k) - 1000.0).abs() <= 1.0, "K later it is where the loss was");
        assert!((at(2.0 * k) - 1300.0).abs() <= 1.0, "and as far beyond K later again");
    }

    #[test]
    fn the_window_follows_the_curve() {
        // 1,000 segments, a loss, and 100 ms round trips without another.
        let mut cubic = Cubic::default();
        let mut window = Window::new(1000);
        let mut rate = DeliveryRate::default();
        let rtt = Duration::from_millis(100);
        let mut now = Instant::ZERO + Duration::from_secs(1);
        window.threshold = cubic.threshold(&mut path_of(now, &mut window, &mut rate, rtt));
        window.size = window.threshold;
        assert_eq!(window.size, 700);
        let start = now;
        let epoch = Epoch::new(ticks(start), 700, 1000);
        while now.since(start) < Duration::from_secs(15) {
            for _ in 0..window.size / 2 {
                now += rtt / u64::from(window.size / 2);
                window.validate(now, window.size, (0, 1), true, None);
                let sample = Sample { delivered: 2, may_grow: true, ..Sample::default() };
                cubic.on_ack(&mut path_of(now, &mut window, &mut rate, rtt), &sample);
            }
            let wanted = epoch.window(ticks(now));
            let found = f64::from(window.size);
            assert!((found / wanted - 1.0).abs() < 0.03, "{now}: {found} instead of {wanted}");
        }
    }

    /// A CUBIC that has lost at a window of `size`, and its window.
    fn after_a_loss(sizes: &[u32]) -> (Cubic, Window) {
        let mut cubic = Cubic::default();
        let mut window = Window::new(0);
        for &size in sizes {
            window.size = size;
            let (mut rate, rtt) = (DeliveryRate::default(), Duration::from_millis(6));
            window.threshold = cubic.threshold(&mut path_of(Instant::ZERO, &mut window, &mut rate, rtt));
            window.size = window.threshold;
        }
        (cubic, window)
    }

    #[test]
    fn a_loss_leaves_717_of_1024_parts_and_two_segments_at_least() {
        for (size, left) in [(1024, 717), (100, 70), (10, 7), (3, 2), (1, 2)] {
            assert_eq!(after_a_loss(&[size]).1.size, left);
        }
    }

    #[test]
    fn a_flow_that_loses_earlier_than_before_makes_room() {
        assert_eq!(after_a_loss(&[100]).0.window_max, 100);
        assert_eq!(after_a_loss(&[100, 100]).0.window_max, 100, "no earlier");
        assert_eq!(after_a_loss(&[80, 100]).0.window_max, 100);
        // 100 (1024 + 717) / 2048.
        assert_eq!(after_a_loss(&[120, 100]).0.window_max, 85);
    }

    #[test]
    fn the_estimate_of_renos_window_grows_by_alpha_a_round_trip() {
        // 3 (1 - 0.7) / (1 + 0.7) is 0.529; 15/8, rounded down from 1.89, make it 0.533.
        let mut epoch = Epoch::new(0, 80, 100);
        let mut left = 0;
        for _ in 0..15 {
            // A round trip: forty acknowledgements of two segments.
            for _ in 0..40 {
                left = epoch.estimate(80, left + 2);
            }
        }
        assert_eq!((epoch.reno, left), (80 + 7, 80 * 15 - 7 * 150));
        assert_eq!(epoch.estimate(80, 150), 150, "more than a step is asked for");
        assert_eq!((epoch.estimate(80, 151), epoch.reno), (1, 88));
    }

    /// The steps that are found when `acked` segments are acknowledged at each of `at` ms.
    fn steps(cubic: &mut Cubic, window: &mut Window, acked: u32, at: &[u64]) -> Vec<u32> {
        let mut rate = DeliveryRate::default();
        let rtt = Duration::from_millis(6);
        let mut step = |&ms: &u64| {
            let now = Instant::ZERO + Duration::from_millis(ms);
            cubic.find_step(&path_of(now, window, &mut rate, rtt), acked);
            cubic.step
        };
        at.iter().map(&mut step).collect()
    }

    #[test]
    fn a_step_is_kept_for_a_32nd_of_a_second_while_the_window_stays() {
        let (mut cubic, mut window) = after_a_loss(&[29]);
        assert_eq!(window.size, 20);
        // The curve is below W_max - 1 at first, so that it asks for nothing: only Reno's estimate does.
        let found = steps(&mut cubic, &mut window, 10, &[1000, 1008, 1016, 1024, 1028, 1031, 1032]);
        assert_eq!(found[0], cubic_step(20, 1000, 29));
        assert_eq!(found[..6], [found[0]; 6], "28 ms are 7 ticks");
        assert_eq!(cubic.found_at, 1032 / 4, "and until then it is not looked for");
        let (mut kept, mut same) = after_a_loss(&[29]);
        steps(&mut kept, &mut same, 10, &[1000, 1008, 1016, 1024, 1028, 1031]);
        assert_eq!(kept.found_at, 1000 / 4);
        // 70 segments acknowledged: one of 37 counts, so the estimate is 21, and the step the whole window.
        assert_eq!(found[6], 20.min(found[0]));
        assert_eq!(cubic.epoch.unwrap().reno, 21);
        window.size = 21;
        steps(&mut cubic, &mut window, 10, &[1036]);
        assert_eq!(cubic.found_for, 21, "a window that has grown is looked at at once");
    }

    /// The step that the curve asks for right after a loss, one round trip of 6 ms, two ticks, ahead.
    fn cubic_step(size: u32, ms: u64, window_max: u32) -> u32 {
        let start = ms / 4;
        let target = Epoch::new(start, size, window_max).window(start + 2);
        if target > f64::from(size) {
            (f64::from(size) / (target - f64::from(size))) as u32
        } else {
            100 * size
        }
    }

    #[test]
    fn a_step_is_two_at_least_and_five_percent_of_the_window_before_the_first_loss() {
        let (mut cubic, mut window) = after_a_loss(&[1000]);
        let found = steps(&mut cubic, &mut window, 2, &[0, 30_000]);
        assert_eq!(found[1], 2, "far up the curve");
        let mut cubic = Cubic::default();
        let mut window = Window::new(100);
        assert_eq!(steps(&mut cubic, &mut window, 2, &[1000]), [20]);
        // After a loss, on top of the curve: 100 times the window.
        let (mut cubic, mut window) = after_a_loss(&[10]);
        window.size = 10;
        assert_eq!(steps(&mut cubic, &mut window, 2, &[1000]), [1000]);
    }

    #[test]
    fn the_window_grows_as_renos_estimate_where_round_trips_are_short() {
        // 20 segments of 6 ms: a round trip's 20 acknowledged segments raise the estimate by 20/37.
        let (mut cubic, mut window) = after_a_loss(&[29]);
        let (mut rate, rtt) = (DeliveryRate::default(), Duration::from_millis(6));
        let mut now = Instant::ZERO + Duration::from_secs(1);
        for _ in 0..30 {
            for _ in 0..10 {
                now += rtt / 10;
                window.validate(now, window.size, (0, 1), true, None);
                let sample = Sample { delivered: 2, may_grow: true, ..Sample::default() };
                cubic.on_ack(&mut path_of(now, &mut window, &mut rate, rtt), &sample);
            }
        }
        // The estimate after 600 segments is some 11 ahead.
        let reno = cubic.epoch.unwrap().reno;
        assert!((29..=34).contains(&reno), "{reno}");
        assert!((26..=reno).contains(&window.size), "{} of {reno}", window.size);
    }

    #[test]
    fn a_timeout_forgets_and_a_silence_moves_the_epoch() {
        let (mut cubic, mut window) = after_a_loss(&[29]);
        steps(&mut cubic, &mut window, 2, &[1000]);
        window.note_sent(Instant::ZERO + Duration::from_millis(1500));
        let (mut rate, rtt) = (DeliveryRate::default(), Duration::from_millis(6));
        let now = Instant::ZERO + Duration::from_millis(1900);
        cubic.on_restart(&mut path_of(now, &mut window, &mut rate, rtt));
        assert_eq!(cubic.epoch.unwrap().start, 250 + 100);
        assert_eq!(cubic.undo(&mut path_of(now, &mut window, &mut rate, rtt), 29), 29);
        assert_eq!(cubic.undo(&mut path_of(now, &mut window, &mut rate, rtt), 19), 20);
        cubic.on_timeout(&mut path_of(now, &mut window, &mut rate, rtt));
        assert!(cubic.epoch.is_none() && cubic.window_max == 0 && cubic.step == 0);
    }
}
