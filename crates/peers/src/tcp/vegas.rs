//! Vegas: congestion read from round trips before anything is lost.
//!
//! After L. Brakmo and L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet" (1995), with
//! Linux's parameters. With W the window, the segments that stand in queues are
//!
//! ```text
//! diff = W (RTT - RTT_base) / RTT_base
//! ```
//!
//! RTT is the minimum of the last round trip, RTT_base that of all. Once a round trip the window is brought to between
//! 2 and 4 of them. Slow start ends when there is more than one. After a loss it is Reno.

use hopcast_core::Duration;

use super::congestion::{CongestionControl, Path, Phase, Sample};
use super::reno::{Reno, slow_start};

/// Segments in queues below which the window grows (Linux `tcp_vegas.c`, as the others: `alpha`),
const ALPHA: f64 = 2.0;
/// above which it shrinks (`beta`),
const BETA: f64 = 4.0;
/// and above which slow start ends (`gamma`).
const GAMMA: f64 = 1.0;
/// Samples without which a round trip says nothing: with fewer, all may be delayed acknowledgements (Linux
/// `tcp_vegas.c`, `cntRTT`).
const MIN_SAMPLES: u32 = 3;
/// Minimum window, in segments (Linux `tcp_vegas.c`).
const MIN_WINDOW: u32 = 2;

/// The state of Vegas.
#[derive(Clone, Debug, Default)]
pub(super) struct Vegas {
    base: Option<Duration>,
    /// The minimum round trip since the last look, and the number of samples.
    min_rtt: Option<Duration>,
    samples: u32,
    /// The next look is when this has been acknowledged; `None` while losses are repaired.
    until: Option<u64>,
    reno: Reno,
}

impl Vegas {
    /// A round trip is over.
    fn look(&mut self, path: &mut Path<'_>, acked: u32) {
        let (Some(base), Some(rtt)) = (self.base, self.min_rtt.filter(|_| self.samples >= MIN_SAMPLES))
        else {
            return self.reno.grow(path.window, acked);
        };
        let window = &mut *path.window;
        let size = f64::from(window.size);
        let (base, rtt) = (base.as_secs_f64().max(1e-9), rtt.as_secs_f64().max(1e-9));
        let diff = size * (rtt - base) / base;
        if window.in_slow_start() {
            if diff > GAMMA {
                window.size = window.size.min((size * base / rtt) as u32 + 1).max(MIN_WINDOW);
                window.threshold = window.size.saturating_sub(1).max(MIN_WINDOW);
            } else {
                slow_start(window, acked);
            }
        } else if diff > BETA {
            window.size = window.size.saturating_sub(1).max(MIN_WINDOW);
            window.threshold = window.threshold.min(window.size.saturating_sub(1)).max(MIN_WINDOW);
        } else if diff < ALPHA {
            window.size = window.size.saturating_add(1);
        }
    }
}

impl CongestionControl for Vegas {
    fn on_ack(&mut self, path: &mut Path<'_>, sample: &Sample) {
        if let Some(rtt) = sample.rtt {
            self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min_rtt| min_rtt.min(rtt)));
            self.samples += 1;
        }
        if path.phase > Phase::Disorder {
            self.until = None;
            return;
        }
        let Some(until) = self.until else {
            // It begins anew after losses: what they did to round trips says nothing.
            (self.until, self.min_rtt, self.samples) = (Some(path.nxt), None, 0);
            return;
        };
        let over = path.una >= until;
        if over {
            self.until = Some(path.nxt);
        }
        if sample.may_grow && path.window.is_limiting() {
            if over {
                self.look(path, sample.delivered);
            } else if path.window.in_slow_start() {
                slow_start(path.window, sample.delivered);
            }
        }
        if over {
            (self.min_rtt, self.samples) = (None, 0);
        }
    }

    fn threshold(&mut self, path: &mut Path<'_>) -> u32 {
        Reno::halved(path.window)
    }

    fn undo(&mut self, path: &mut Path<'_>, prior: u32) -> u32 {
        path.window.size.max(prior)
    }

    fn on_timeout(&mut self, _path: &mut Path<'_>) {
        self.until = None;
    }

    fn on_restart(&mut self, _path: &mut Path<'_>) {
        self.until = None;
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Instant;

    use super::*;
    use crate::tcp::congestion::testing::path_of;
    use crate::tcp::rate::DeliveryRate;
    use crate::tcp::window::{NO_THRESHOLD, Window};

    /// Window and threshold after a round trip in which `samples` round trips were at least `rtt` ms, over a path of
    /// 100 ms.
    fn look(size: u32, threshold: u32, rtt: u64, samples: u32) -> (u32, u32) {
        let (mut window, mut rate) = (Window::new(size), DeliveryRate::default());
        window.threshold = threshold;
        let rtt = Duration::from_millis(rtt);
        let mut vegas =
            Vegas { base: Some(Duration::from_millis(100)), min_rtt: Some(rtt), samples, ..Vegas::default() };
        vegas.look(&mut path_of(Instant::ZERO, &mut window, &mut rate, rtt), 2);
        (window.size, window.threshold)
    }

    #[test]
    fn between_two_and_four_segments_stand_in_the_queue() {
        // Brakmo and Peterson: of 20 segments (RTT - 100) / 100 are queued.
        for (rtt, size) in [(100, 21), (109, 21), (111, 20), (119, 20), (121, 19), (300, 19)] {
            assert_eq!(look(20, 20, rtt, 10).0, size, "{rtt} ms");
        }
        // Linux: tcp_vegas_ssthresh.
        assert_eq!(look(20, 20, 121, 10).1, 18);
        assert_eq!(look(2, 2, 1000, 10), (2, 2), "two at least");
    }

    #[test]
    fn slow_start_ends_with_more_than_one_in_the_queue_at_what_fills_the_path_and_one_more() {
        // Linux: target_cwnd = 40 * 100 / 125, of which min(cwnd, target_cwnd + 1).
        assert_eq!(look(40, NO_THRESHOLD, 125, 10), (33, 32));
        assert_eq!(look(40, NO_THRESHOLD, 102, 10), (42, NO_THRESHOLD), "0.8 of a segment");
        assert_eq!(look(40, NO_THRESHOLD, 103, 10).0, 39, "1.2 of them");
    }

    #[test]
    fn fewer_than_three_samples_say_nothing_and_it_grows_as_reno() {
        assert_eq!(look(40, NO_THRESHOLD, 125, 2), (42, NO_THRESHOLD));
        assert_eq!(look(40, NO_THRESHOLD, 125, 3), (33, 32));
    }
}
