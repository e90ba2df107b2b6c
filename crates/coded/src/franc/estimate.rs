//! The loss of a link, estimated from the reports of its receiver.

use hopcast_core::FadingLoss;

use super::wire::Heard;

/// Number of packets on which the estimate rests, about. Chosen; fewer are noisy, more follow a change late.
const WEIGHT: f64 = 400.0;
/// Loss that is assumed before any is measured, and the number of packets that it counts for. Chosen: with fewer, a
/// first loss counts for much; with more, the assumption lasts for longer.
const PRIOR: f64 = 0.05;
/// Packets that it counts for: see [`PRIOR`].
const PRIOR_WEIGHT: f64 = 20.0;
/// Maximum loss that is distinguished. Chosen: beyond it, a little more or less is not worth knowing.
const MAX_LOSS: f64 = 0.97;

/// The loss of one link, from cumulative counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    last: Heard,
    loss: FadingLoss,
}

impl Default for Estimate {
    fn default() -> Self {
        Self { last: Heard::default(), loss: FadingLoss::new(PRIOR_WEIGHT, PRIOR * PRIOR_WEIGHT) }
    }
}

impl Estimate {
    /// Takes the receiver's newest counts.
    pub(super) fn update(&mut self, heard: Heard) {
        let sent = heard.next.wrapping_sub(self.last.next);
        let received = heard.received.wrapping_sub(self.last.received);
        // What goes backwards, or brings more than was sent, is no news: old, or out of order.
        if sent > u16::MAX / 2 || received > sent {
            if received <= u16::MAX / 2 && sent <= u16::MAX / 2 {
                self.last = heard;
            }
            return;
        }
        self.last = heard;
        self.loss.add(f64::from(sent), f64::from(sent - received), WEIGHT);
    }

    /// The share that is lost.
    pub(super) fn loss(&self) -> f64 {
        self.loss.share().clamp(0.0, MAX_LOSS)
    }

    /// The counts begin at zero again; the estimates of the link stay.
    pub(super) fn restart(&mut self) {
        self.last = Heard::default();
    }
}

/// Counts the packets of one sender that arrive.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Listener {
    heard: Heard,
    begun: bool,
}

impl Listener {
    /// Packet `sequence` has arrived; how many are missing before it, if it is the highest.
    pub(super) fn packet(&mut self, sequence: u16) -> u16 {
        if !self.begun {
            *self = Self { heard: Heard { next: sequence, received: 0 }, begun: true };
        }
        self.heard.received = self.heard.received.wrapping_add(1);
        let ahead = sequence.wrapping_sub(self.heard.next);
        if ahead > u16::MAX / 2 {
            return 0;
        }
        self.heard.next = sequence.wrapping_add(1);
        ahead
    }

    pub(super) fn heard(&self) -> Heard {
        self.heard
    }

    pub(super) fn begun(&self) -> bool {
        self.begun
    }
}

/// The full number that `low` is the end of, near `about`; 0 where that would be below zero.
pub(super) fn extend(low: u16, about: u64) -> u64 {
    let ahead = low.wrapping_sub(about as u16) as i16;
    about.saturating_add_signed(i64::from(ahead))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_follows_what_the_receiver_counts_and_ignores_the_old() {
        let (mut estimate, mut heard) = (Estimate::default(), Heard::default());
        for _ in 0..100 {
            heard =
                Heard { next: heard.next.wrapping_add(1_000), received: heard.received.wrapping_add(700) };
            estimate.update(heard);
        }
        assert!((estimate.loss() - 0.3).abs() < 0.01, "{}", estimate.loss());
        let before = estimate.loss();
        estimate
            .update(Heard { next: heard.next.wrapping_sub(500), received: heard.received.wrapping_sub(1) });
        assert_eq!(estimate.loss(), before);
    }

    #[test]
    fn an_estimate_begins_with_a_guess_that_400_packets_replace() {
        let mut estimate = Estimate::default();
        assert_eq!(estimate.loss(), 0.05);
        // The guess counts for 20 packets: as many that arrive halve it.
        estimate.update(Heard { next: 20, received: 20 });
        assert!((estimate.loss() - 0.025).abs() < 0.001, "{}", estimate.loss());
        estimate.update(Heard { next: 420, received: 220 });
        assert_eq!(estimate.loss(), 0.5);
        estimate.update(Heard { next: 220, received: 120 });
        assert_eq!(estimate.loss(), 0.5, "that is an old report");
        // A link that loses everything is taken for one that loses 97 %.
        estimate.update(Heard { next: 1420, received: 220 });
        assert_eq!(estimate.loss(), 0.97);
    }

    #[test]
    fn a_short_number_is_extended_to_the_nearest() {
        assert_eq!(extend(5, 70_000), 65_541);
        assert_eq!(extend(0xfff0, 65_540), 65_520);
        assert_eq!(extend(3, 65_530), 65_539);
    }

    #[test]
    fn a_listener_counts_gaps_and_is_not_moved_back() {
        let mut listener = Listener::default();
        assert_eq!([65_534, 65_535, 2, 1, 3].map(|sequence| listener.packet(sequence)), [0, 0, 2, 0, 0]);
        assert_eq!(listener.heard(), Heard { next: 4, received: 5 });
    }
}
