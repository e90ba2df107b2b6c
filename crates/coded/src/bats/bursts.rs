//! Number of packets that are lost in a row.

use super::child::Losses;

/// Mean number of packets lost in a row from which on losses are bursts, in every part of this protocol. Chosen: single
/// losses are runs too, sometimes of two: of a share p that is lost independently the mean run is 1 / (1 - p), which is
/// 1.25 at 20 % and 1.5 at a third.
pub(super) const BURSTY: f64 = 1.5;
/// Share of the estimate that is left after each run of losses: it is that of the last fifty runs. Chosen: fewer, and
/// it is noise; more, and it follows a link that changes too late.
const FADE: f64 = 0.98;

/// The mean length of a run of losses, fading with each run. It is no share of packets, as
/// [`FadingLoss`](hopcast_core::FadingLoss) estimates, which fades with packets: between runs nothing is learnt here.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bursts {
    lost: f64,
    runs: f64,
}

impl Bursts {
    /// A run of `lost` packets.
    pub(super) fn run(&mut self, lost: u64) {
        self.add(lost, 0, 1);
    }
}

impl Losses for Bursts {
    fn add(&mut self, sent: u64, arrived: u64, runs: u16) {
        if runs > 0 {
            let (runs, lost) = (f64::from(runs), sent.saturating_sub(arrived) as f64);
            self.lost = self.lost * FADE.powf(runs) + lost.max(runs);
            self.runs = self.runs * FADE.powf(runs) + runs;
        }
    }

    fn mean_burst(&self) -> f64 {
        if self.runs > 0.0 { self.lost / self.runs } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_burst_is_that_of_the_last_fifty() {
        let mut bursts = Bursts::default();
        assert_eq!(bursts.mean_burst(), 1.0);
        (0..1000).for_each(|_| bursts.run(1));
        assert!((bursts.mean_burst() - 1.0).abs() < 1e-9);
        (0..50).for_each(|_| bursts.run(3));
        // All but 1/e of it is new.
        let expected = 3.0 - 2.0 / core::f64::consts::E;
        assert!((bursts.mean_burst() - expected).abs() < 0.02, "{}", bursts.mean_burst());
        // What a report tells at once.
        let mut told = Bursts::default();
        told.add(100, 90, 5);
        assert!((told.mean_burst() - 2.0).abs() < 1e-9);
        told.add(100, 100, 0);
        assert!((told.mean_burst() - 2.0).abs() < 1e-9);
    }
}
