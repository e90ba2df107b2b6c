//! How many packets are lost in a row.

use super::child::Losses;

/// How much of the estimate is left after each run of losses: it is that of the last fifty.
const FADE: f64 = 0.98;

/// Losses, and runs of them, fading.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bursts {
    lost: f64,
    runs: f64,
}

impl Bursts {
    /// A run of so many packets.
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
