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
        // The first retransmission goes out whatever the window is.
        let room = room.max(u32::from(self.sent == 0));
        Some(in_flight + room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_loss_halves_the_window_over_a_round_trip() {
        // RFC 6937 section 4, figure 2: 20 segments, one lost, a window to be halved: every other acknowledgement sends.
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
}
