//! The losses of a hop while it is up, and their bursts.

use super::super::child::Losses;

/// Packets after which what was lost has faded to 1/e. Chosen: 5 % is then known to a fifteenth of it; more, and slow
/// changes are followed late.
const MEMORY: f64 = 4096.0;
/// Packets that count as not lost at the beginning. Chosen; fewer, and a first loss counts for many; more, and a lossy
/// link is known late.
const PRIOR: f64 = 32.0;
/// Minimum number of packets between two reports of which, if more than [`OUTAGE_SHARE`] is lost, the link was down:
/// that says nothing of what it loses when it is up. Chosen; fewer or a smaller share, and a burst counts as an outage;
/// more, and an outage counts as loss.
const OUTAGE_PACKETS: f64 = 64.0;
/// Share that is lost of them: see [`OUTAGE_PACKETS`].
const OUTAGE_SHARE: f64 = 0.75;
/// Packets of a stretch, whose losses are compared with what is known. Chosen: a queue that overflows once fills one
/// stretch at most.
const STRETCH: f64 = 256.0;
/// Standard deviations by which a stretch, and the one after it, differ from what is known if the link has changed:
/// what is known then begins with those two. Chosen: three are rare by chance; with fewer, chance is taken for a
/// change, with more, a change is followed late.
const CHANGE_DEVIATIONS: f64 = 3.0;

/// The losses of a hop, as its child has told them. No [`FadingLoss`](hopcast_core::FadingLoss): runs fade as well,
/// packets that are late take losses back, an outage does not count, and two unlikely stretches replace all that is
/// known: recoding is planned by it, which has to follow a link that has changed, and no single burst.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct HopLosses {
    known: Count,
    /// The stretch under way, and the one before it if that was unlikely.
    stretch: Count,
    unlikely: Option<Count>,
}

/// Packets, how many of them were lost, and in how many runs.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    sent: f64,
    lost: f64,
    runs: f64,
}

impl Default for HopLosses {
    fn default() -> Self {
        let known = Count { sent: PRIOR, ..Count::default() };
        Self { known, stretch: Count::default(), unlikely: None }
    }
}

impl Losses for HopLosses {
    fn add(&mut self, sent: u64, arrived: u64, runs: u16) {
        let sent = sent as f64;
        let more = Count { sent, lost: sent - arrived as f64, runs: f64::from(runs) };
        if sent >= OUTAGE_PACKETS && more.lost > OUTAGE_SHARE * sent {
            return;
        }
        self.known = self.known.faded((1.0 - sent / MEMORY).max(0.0)).and(more);
        self.stretch = self.stretch.and(more);
        if self.stretch.sent < STRETCH {
            return;
        }
        let stretch = core::mem::take(&mut self.stretch);
        let above = stretch.share() > self.known.share();
        let unlikely = stretch.is_unlikely(&self.known).then_some(stretch);
        match (self.unlikely, unlikely) {
            (Some(before), Some(stretch)) if (before.share() > self.known.share()) == above => {
                (self.known, self.unlikely) = (before.and(stretch), None);
            }
            _ => self.unlikely = unlikely,
        }
    }

    fn mean_burst(&self) -> f64 {
        self.known.burst()
    }
}

impl HopLosses {
    /// The share of packets that are lost.
    pub(super) fn share(&self) -> f64 {
        self.known.share()
    }
}

impl Count {
    fn faded(self, keep: f64) -> Self {
        Self { sent: self.sent * keep, lost: self.lost * keep, runs: self.runs * keep }
    }

    /// A packet that is late counts as lost first, and then as not.
    fn and(self, more: Self) -> Self {
        let sent = self.sent + more.sent;
        Self { sent, lost: (self.lost + more.lost).clamp(-MEMORY, sent), runs: self.runs + more.runs }
    }

    fn share(&self) -> f64 {
        (self.lost / self.sent).clamp(0.0, 0.9)
    }

    fn burst(&self) -> f64 {
        if self.runs < 1.0 { 1.0 } else { (self.lost / self.runs).clamp(1.0, 63.0) }
    }

    /// Whether it is no accident that these packets are not as the others were.
    fn is_unlikely(&self, known: &Self) -> bool {
        let share = self.share().max(known.share());
        // Bursts come and go as one: the variance of Gilbert's model, for shares well below one.
        let clumped = 2.0 * self.burst().max(known.burst()) - 1.0;
        let deviation = (share * (1.0 - share) * clumped / self.sent).sqrt();
        (self.share() - known.share()).abs() > CHANGE_DEVIATIONS * deviation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopcast_core::Seed;

    /// Adds `packets` of which a share is lost, by reports of sixteen.
    fn add(losses: &mut HopLosses, random: &mut hopcast_core::Stream, packets: u64, share: f64) {
        for _ in 0..packets / 16 {
            let lost: Vec<bool> = (0..16).map(|_| random.below(1_000_000) < (share * 1e6) as u64).collect();
            let runs = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() + usize::from(lost[0]);
            losses.add(16, lost.iter().filter(|lost| !**lost).count() as u64, runs as u16);
        }
    }

    #[test]
    fn a_change_is_believed_after_a_few_stretches() {
        let mut random = Seed::new(1, 0).stream(&["losses"], 0);
        let mut losses = HopLosses::default();
        for share in [0.0, 0.1, 0.3, 0.0, 0.2] {
            add(&mut losses, &mut random, 4 * STRETCH as u64, share);
            assert!((losses.share() - share).abs() < 0.05, "{} of {share}", losses.share());
            add(&mut losses, &mut random, 8192, share);
            assert!((losses.share() - share).abs() < 0.02, "{} of {share}", losses.share());
        }
    }

    #[test]
    fn a_queue_that_overflows_once_changes_little() {
        let mut losses = HopLosses::default();
        for _ in 0..256 {
            losses.add(16, 16, 0);
        }
        losses.add(64, 20, 1);
        for _ in 0..64 {
            losses.add(16, 16, 0);
        }
        assert!(losses.share() < 0.015, "{}", losses.share());
    }

    #[test]
    fn at_first_32_packets_count_as_not_lost() {
        let mut losses = HopLosses::default();
        assert_eq!((losses.share(), losses.mean_burst()), (0.0, 1.0));
        losses.add(8, 0, 1);
        // Of 40, of which the 32 have faded by 8 in 4096.
        assert!((losses.share() - 0.2).abs() < 0.001, "{}", losses.share());
    }

    #[test]
    fn what_was_lost_fades_as_4096_packets_follow() {
        let known = Count { sent: 4096.0, lost: 1024.0, runs: 512.0 };
        let mut losses = HopLosses { known, ..HopLosses::default() };
        losses.add(1024, 1024, 0);
        assert!((losses.known.lost - 768.0).abs() < 1e-9 && (losses.known.sent - 4096.0).abs() < 1e-9);
        losses.add(5000, 5000, 0);
        assert_eq!(losses.known.lost, 0.0);
    }

    #[test]
    fn when_three_quarters_of_64_packets_are_lost_the_link_was_down() {
        for (sent, arrived, counts) in [(64, 16, true), (64, 15, false), (63, 0, true), (1000, 0, false)] {
            let mut losses = HopLosses::default();
            losses.add(sent, arrived, 1);
            assert_eq!(losses.share() > 0.0, counts, "{arrived} of {sent}");
        }
    }

    #[test]
    fn what_differs_by_three_standard_deviations_in_two_stretches_of_256_is_a_change() {
        // Single losses: of 256 at 10 %, 25.6 and a deviation of 4.8.
        let known = Count { sent: 4096.0, lost: 409.6, runs: 409.6 };
        let stretch = |lost: f64| Count { sent: 256.0, lost, runs: lost };
        for (lost, unlikely) in [(13.0, false), (11.0, true), (40.0, false), (45.0, true)] {
            assert_eq!(stretch(lost).is_unlikely(&known), unlikely, "{lost}");
        }
        // In bursts of four, deviations are sqrt(7) times as much: 12.7 for this share, 17 for twice as much.
        let bursts = Count { runs: 102.4, ..known };
        let stretch = |lost: f64| Count { sent: 256.0, lost, runs: lost / 4.0 };
        for (lost, unlikely) in [(70.0, false), (90.0, true)] {
            assert_eq!(stretch(lost).is_unlikely(&bursts), unlikely, "{lost}");
        }
        let mut losses = HopLosses { known, stretch: Count::default(), unlikely: None };
        losses.add(255, 255, 0);
        assert!(losses.unlikely.is_none());
        losses.add(1, 1, 0);
        assert!(losses.unlikely.is_some());
        losses.add(256, 256, 0);
        assert_eq!((losses.share(), losses.known.sent), (0.0, 512.0));
    }
}
