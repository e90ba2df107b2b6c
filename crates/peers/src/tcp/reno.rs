//! Reno: the window grows by a segment a round trip, and is halved by a loss (RFC 5681).

use super::congestion::{CongestionControl, Path, Sample};
use super::window::Window;

/// Minimum window after a loss (RFC 5681, equation 4).
const MIN_WINDOW: u32 = 2;

/// The state of Reno.
#[derive(Clone, Debug, Default)]
pub(super) struct Reno {
    credit: Credit,
}

/// Segments acknowledged towards the next segment of window: Linux `tcp_cong_avoid_ai`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Credit(u32);

impl Credit {
    /// Grows the window by a segment for each `step` of `acked` segments.
    pub(super) fn grow(&mut self, window: &mut Window, step: u32, acked: u32) {
        let step = step.max(1);
        // The growth saved up for a larger step is worth one segment and no more.
        if self.0 >= step {
            self.0 = 0;
            window.size = window.size.saturating_add(1);
        }
        self.0 += acked;
        window.size = window.size.saturating_add(self.0 / step);
        self.0 %= step;
    }
}

impl Reno {
    /// Grows the window for `acked` segments: section 3.1.
    pub(super) fn grow(&mut self, window: &mut Window, mut acked: u32) {
        if window.in_slow_start() {
            acked -= slow_start(window, acked).min(acked);
        }
        self.credit.grow(window, window.size, acked);
    }

    /// The threshold after a loss.
    pub(super) fn halved(window: &Window) -> u32 {
        (window.size / 2).max(MIN_WINDOW)
    }
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, path: &mut Path<'_>, sample: &Sample) {
        if sample.may_grow && path.window.is_limiting() {
            self.grow(path.window, sample.delivered);
        }
    }

    fn threshold(&mut self, path: &mut Path<'_>) -> u32 {
        self.credit = Credit::default();
        Self::halved(path.window)
    }

    fn undo(&mut self, path: &mut Path<'_>, prior: u32) -> u32 {
        path.window.size.max(prior)
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

    #[test]
    fn credit_buys_a_segment_for_each_step_and_for_a_smaller_step_one() {
        let mut credit = Credit::default();
        let mut window = Window::new(10);
        credit.grow(&mut window, 4, 3);
        assert_eq!(window.size, 10);
        credit.grow(&mut window, 4, 6);
        assert_eq!(window.size, 12, "nine for two steps of four");
        credit.grow(&mut window, 20, 14);
        assert_eq!(window.size, 12);
        // Fifteen were saved up for a step of 20.
        credit.grow(&mut window, 5, 4);
        assert_eq!(window.size, 13);
        credit.grow(&mut window, 0, 1);
        assert_eq!(window.size, 13 + 1 + 1, "a step has at least one: what was saved, and this");
    }

    #[test]
    fn a_window_after_a_loss_has_two_segments_at_least() {
        assert_eq!(Reno::halved(&Window::new(3)), 2);
        assert_eq!(Reno::halved(&Window::new(7)), 3);
    }
}
