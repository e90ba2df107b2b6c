//! What a hop loses when it is up, and in what bursts.

use super::super::child::Losses;

/// What was lost fades as so many packets follow.
const MEMORY: f64 = 4096.0;
/// At the beginning so many packets count as not lost.
const PRIOR: f64 = 32.0;
/// When more than such a share of so many packets is lost between two reports, the link was down: that says nothing of
/// what it loses when it is up.
const OUTAGE: f64 = 64.0;
const OUTAGE_SHARE: f64 = 0.75;

/// The losses of a hop, as its child has told them.
#[derive(Clone, Copy, Debug)]
pub(super) struct HopLosses {
    sent: f64,
    lost: f64,
    runs: f64,
}

impl Default for HopLosses {
    fn default() -> Self {
        Self { sent: PRIOR, lost: 0.0, runs: 0.0 }
    }
}

impl Losses for HopLosses {
    fn add(&mut self, sent: u64, arrived: u64, runs: u16) {
        let sent = sent as f64;
        let lost = sent - arrived as f64;
        if sent >= OUTAGE && lost > OUTAGE_SHARE * sent {
            return;
        }
        let keep = (1.0 - sent / MEMORY).max(0.0);
        self.sent = self.sent * keep + sent;
        // A packet that is late counts as lost first, and then as not.
        self.lost = (self.lost * keep + lost).clamp(-MEMORY, self.sent);
        self.runs = self.runs * keep + f64::from(runs);
    }

    fn mean_burst(&self) -> f64 {
        if self.runs < 1.0 { 1.0 } else { (self.lost / self.runs).clamp(1.0, 63.0) }
    }
}

impl HopLosses {
    /// The share of packets that are lost.
    pub(super) fn share(&self) -> f64 {
        (self.lost / self.sent).clamp(0.0, 0.9)
    }
}
