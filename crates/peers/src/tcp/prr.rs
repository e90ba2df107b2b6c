//! Proportional rate reduction: the window comes down to its target over the round trip of a recovery (RFC 6937).
//!
//! With the conservative bound of RFC 9937: below the target as much is sent as is delivered, and one more for each
//! acknowledgement that advances without a new loss.

/// The reduction under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Prr {
    /// The window when the reduction began.
    prior_window: u32,
    /// Delivered since then.
    delivered: u32,
    /// Sent since then.
    sent: u32,
}

impl Prr {
    /// Begins a reduction from the window `prior_window`.
    pub(super) fn begin(&mut self, prior_window: u32) {
        *self = Self { prior_window, ..Self::default() };
    }

    /// Notes that `count` segments have been sent.
    pub(super) fn sent(&mut self, count: u32) {
        self.sent = self.sent.saturating_add(count);
    }

    /// The window after `newly` segments were delivered, with `in_flight` in the network; `None` to leave it.
    pub(super) fn window(
        &mut self,
        target: u32,
        in_flight: u32,
        newly: u32,
        advanced_safely: bool,
    ) -> Option<u32> {
        if newly == 0 || self.prior_window == 0 {
            return None;
        }
        self.delivered = self.delivered.saturating_add(newly);
        let room = match target.checked_sub(in_flight) {
            None => {
                let share = u64::from(target) * u64::from(self.delivered);
                let share = share.div_ceil(u64::from(self.prior_window)) as u32;
                share.saturating_sub(self.sent)
            }
            Some(gap) => {
                let room = self.delivered.saturating_sub(self.sent).max(newly);
                (room + u32::from(advanced_safely)).min(gap)
            }
        };
        // The first retransmission is sent whatever the window is.
        let room = room.max(u32::from(self.sent == 0));
        Some(in_flight + room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_loss_halves_the_window_over_a_round_trip() {
        // RFC 6937 section 4, figure 2: 20 segments, one lost, a window to be halved: every other acknowledgement
        // sends.
        let mut prr = Prr::default();
        prr.begin(20);
        let mut in_flight = 19;
        let mut sent = 0;
        for _ in 0..19 {
            in_flight -= 1;
            let window = prr.window(10, in_flight, 1, false).unwrap();
            let room = window - in_flight;
            assert!(room <= 2, "no bursts");
            prr.sent(room);
            sent += room;
            in_flight += room;
        }
        assert_eq!((sent, in_flight), (10, 10));
    }

    #[test]
    fn below_the_target_as_much_is_sent_as_is_delivered_and_one_more_if_no_loss_is_new() {
        let mut prr = Prr::default();
        prr.begin(20);
        prr.sent(4);
        assert_eq!(prr.window(10, 4, 2, false), Some(4 + 2));
        assert_eq!(prr.window(10, 4, 2, true), Some(4 + 2 + 1));
        // Delivered and not made up for: 3 + 4 - 4 of them.
        assert_eq!(prr.window(10, 4, 3, false), Some(4 + 3));
        assert_eq!(prr.window(10, 9, 3, true), Some(10), "not beyond the target");
        assert_eq!(prr.window(10, 9, 0, true), None, "nothing is delivered");
        assert_eq!(Prr::default().window(10, 9, 1, true), None, "no reduction is under way");
    }

    #[test]
    fn above_the_target_what_is_sent_is_in_proportion_to_what_is_delivered_rounded_up() {
        let mut prr = Prr::default();
        prr.begin(20);
        prr.sent(1);
        // 7/20 of 3, rounded up, is 2, of which one was sent.
        assert_eq!(prr.window(7, 15, 3, true), Some(15 + 1));
        prr.sent(1);
        assert_eq!(prr.window(7, 14, 1, true), Some(14));
    }

    #[test]
    fn the_first_retransmission_is_sent_whatever_the_window_is() {
        let mut prr = Prr::default();
        prr.begin(20);
        assert_eq!(prr.window(1, 15, 1, false), Some(16));
        assert_eq!(prr.window(10, 10, 1, false), Some(11));
        prr.sent(1);
        assert_eq!(prr.window(10, 10, 1, false), Some(10));
    }
}
