//! Reno: the window grows by a segment a round trip, and is halved by a loss (RFC 5681).

use super::congestion::{CongestionControl, Path, Sample};
use super::cubic::slow_start;
use super::window::Window;

/// The least window after a loss (RFC 5681, equation 4).
const LEAST: u32 = 2;

/// The state of Reno.
#[derive(Clone, Debug, Default)]
pub(super) struct Reno {
    /// Segments acknowledged towards the next segment of window.
    acked: u32,
}

impl Reno {
    /// Grows the window for `acked` segments: section 3.1.
    pub(super) fn grow(&mut self, window: &mut Window, mut acked: u32) {
        if window.in_slow_start() {
            acked -= slow_start(window, acked).min(acked);
        }
        self.acked += acked;
        let whole = self.acked / window.size.max(1);
        self.acked -= whole * window.size;
        window.size = window.size.saturating_add(whole);
    }

    /// The threshold after a loss.
    pub(super) fn halved(window: &Window) -> u32 {
        (window.size / 2).max(LEAST)
    }
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, path: &mut Path<'_>, sample: &Sample) {
        if sample.may_grow && path.window.is_limiting() {
            self.grow(path.window, sample.delivered);
        }
    }

    fn threshold(&mut self, path: &mut Path<'_>) -> u32 {
        self.acked = 0;
        Self::halved(path.window)
    }

    fn undo(&mut self, path: &mut Path<'_>, prior: u32) -> u32 {
        path.window.size.max(prior)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_grows_by_one_each_round_trip_and_is_halved() {
        let mut reno = Reno::default();
        let mut window = Window::new(10);
        window.threshold = 10;
        for size in 10..20 {
            assert_eq!(window.size, size);
            // A round trip: as many segments as the window is large, two an acknowledgement.
            for _ in 0..size / 2 {
                reno.grow(&mut window, 2);
            }
            reno.grow(&mut window, size % 2);
        }
        assert_eq!(Reno::halved(&window), 10);
        window.threshold = 24;
        reno.grow(&mut window, 20);
        assert_eq!(window.size, 24, "slow start ends at the threshold");
    }
}
