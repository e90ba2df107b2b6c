//! CUBIC: the window grows as a cubic function of the time since the last loss (RFC 9438).
//!
//! ```text
//! W_cubic(t) = C (t - K)^3 + W_max        K = cbrt((W_max - W_epoch) / C)
//! ```
//!
//! It rises steeply back towards the window at which the last loss came, stays near it, and then searches beyond. Where
//! Reno would be quicker (short round trips, small windows) it follows Reno's estimate.

use hopcast_core::{Duration, Instant};

use super::congestion::{CongestionControl, Path, Sample};
use super::hystart::HyStart;
use super::window::{NO_THRESHOLD, Window};

/// RFC 9438 section 5: how aggressive, in segments per second cubed.
const C: f64 = 0.4;
/// RFC 9438 section 4.6: what is left of the window after a loss. (Linux: 717/1024.)
const BETA: f64 = 0.7;
/// RFC 9438 section 4.3: what makes the estimate of Reno's window as aggressive as Reno.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The least window after a loss: RFC 5681.
const LEAST: u32 = 2;

/// The state of CUBIC.
#[derive(Clone, Debug, Default)]
pub(super) struct Cubic {
    epoch: Option<Epoch>,
    /// The window before the last reduction, or less by fast convergence.
    window_max: f64,
    /// The window before the last reduction.
    window_prior: f64,
    hystart: HyStart,
    /// What has been saved up towards the next segment of window.
    fraction: f64,
}

/// A stage of congestion avoidance, from a reduction to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    start: Instant,
    k: f64,
    origin: f64,
    reno: f64,
}

impl Epoch {
    /// Begins with `window`, after a window of `window_max` was too much.
    pub(super) fn new(start: Instant, window: f64, window_max: f64) -> Self {
        let k = ((window_max - window).max(0.0) / C).cbrt();
        Self { start, k, origin: window_max.max(window), reno: window }
    }

    /// W_cubic at `at`.
    pub(super) fn window(&self, at: Instant) -> f64 {
        let offset = at.since(self.start).as_secs_f64() - self.k;
        C * offset * offset * offset + self.origin
    }
}

impl Cubic {
    /// Congestion avoidance for `acked` segments: RFC 9438 sections 4.2 to 4.5.
    fn avoid(&mut self, path: &mut Path<'_>, acked: u32) {
        let size = f64::from(path.window.size);
        let window_max = self.window_max;
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(path.now, size, window_max));
        // Once it has caught up with the window before the reduction, Reno's estimate grows as Reno.
        let alpha = if epoch.reno >= self.window_prior { 1.0 } else { ALPHA };
        epoch.reno += alpha * f64::from(acked) / size;
        let rtt = path.smoothed_rtt.unwrap_or(Duration::ZERO);
        let growth = if epoch.window(path.now) < epoch.reno {
            (epoch.reno - size).max(0.0)
        } else {
            let target = epoch.window(path.now + rtt).clamp(size, 1.5 * size);
            (target - size) / size * f64::from(acked) + self.fraction
        };
        let whole = growth.floor();
        self.fraction = if epoch.window(path.now) < epoch.reno { 0.0 } else { growth - whole };
        path.window.size = path.window.size.saturating_add(whole as u32);
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
        let size = f64::from(path.window.size);
        self.epoch = None;
        self.fraction = 0.0;
        // Fast convergence (section 4.7): a flow that lost earlier than the time before makes room for new ones.
        self.window_max = if size < self.window_max { size * (1.0 + BETA) / 2.0 } else { size };
        self.window_prior = size;
        ((size * BETA) as u32).max(LEAST)
    }

    fn undo(&mut self, path: &mut Path<'_>, prior: u32) -> u32 {
        path.window.size.max(prior)
    }

    fn on_timeout(&mut self, _path: &mut Path<'_>) {
        // What was learnt no longer holds (section 4.8; Linux resets all).
        *self = Self::default();
    }

    fn on_restart(&mut self, path: &mut Path<'_>) {
        // The time without traffic is no time in which the window could have grown (section 5.8).
        if let Some(epoch) = &mut self.epoch {
            epoch.start = (epoch.start + path.now.since(path.window.last_sent())).min(path.now);
        }
    }
}

/// Grows the window by `by`, up to the threshold, and returns by how much it grew.
pub(super) fn slow_start(window: &mut Window, by: u32) -> u32 {
    let size = window.size.saturating_add(by).min(window.threshold);
    let grown = size - window.size;
    window.size = size;
    grown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::congestion::Phase;
    use crate::tcp::rate::DeliveryRate;

    #[test]
    fn the_curve_passes_through_the_points_of_the_rfc() {
        let at = |s: f64| Instant::ZERO + Duration::from_secs_f64(s);
        let epoch = Epoch::new(Instant::ZERO, 700.0, 1000.0);
        let k = (300.0f64 / 0.4).cbrt();
        assert!((epoch.window(at(0.0)) - 700.0).abs() < 1e-6, "it begins where the reduction ended");
        assert!((epoch.window(at(k)) - 1000.0).abs() < 1e-6, "K later it is where the loss was");
        assert!((epoch.window(at(2.0 * k)) - 1300.0).abs() < 1e-6, "and as far beyond K later again");
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
        let epoch = Epoch::new(start, 700.0, 1000.0);
        while now.since(start) < Duration::from_secs(15) {
            for _ in 0..window.size / 2 {
                now += rtt / u64::from(window.size / 2);
                window.validate(now, window.size, (0, 1), true, None);
                let sample = Sample { delivered: 2, may_grow: true, ..Sample::default() };
                cubic.on_ack(&mut path_of(now, &mut window, &mut rate, rtt), &sample);
            }
            let wanted = epoch.window(now);
            let found = f64::from(window.size);
            assert!((found / wanted - 1.0).abs() < 0.03, "{now}: {found} instead of {wanted}");
        }
    }

    fn path_of<'a>(
        now: Instant,
        window: &'a mut Window,
        rate: &'a mut DeliveryRate,
        rtt: Duration,
    ) -> Path<'a> {
        Path {
            now,
            window,
            rate,
            phase: Phase::Open,
            in_flight: 0,
            una: 0,
            nxt: 0,
            mss: 1448,
            smoothed_rtt: Some(rtt),
            min_rtt: Some(rtt),
            departure: now,
        }
    }
}
