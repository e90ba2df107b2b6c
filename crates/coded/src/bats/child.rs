//! What a child said last, to make sense of what it says next.

use super::wire;

/// How much of the estimate of bursts is left after each run of losses: that of the last fifty counts.
const FADE: f64 = 0.98;

/// The child, as of its last report. Totals are of what it has counted since this node knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Child {
    /// Drawn when the child started.
    pub(super) instance: u16,
    /// The report's number.
    pub(super) number: u16,
    last: wire::Arrivals,
    highest: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// When the highest arrived, in nanoseconds of the child's clock.
    pub(super) at: u64,
    bursts: Bursts,
}

impl Child {
    /// A child that begins with this report.
    pub(super) fn new(report: &wire::Report<'_>, highest: u64) -> Self {
        Self {
            instance: report.instance,
            number: report.number,
            last: report.arrivals.unwrap_or_default(),
            highest,
            packets: 0,
            bytes: 0,
            at: 0,
            bursts: Bursts::default(),
        }
    }

    /// Brings the totals up to date; each wraps by itself. How many packets have been lost since.
    pub(super) fn add(&mut self, arrivals: &wire::Arrivals, highest: u64) -> u64 {
        let last = core::mem::replace(&mut self.last, *arrivals);
        let packets = arrivals.packets.wrapping_sub(last.packets) & 0xFF_FFFF;
        let sent = highest.saturating_sub(core::mem::replace(&mut self.highest, highest));
        self.packets += u64::from(packets);
        self.bytes += u64::from(arrivals.bytes.wrapping_sub(last.bytes));
        self.at += u64::from(arrivals.at.wrapping_sub(last.at)) << 4;
        let lost = sent.saturating_sub(u64::from(packets));
        self.bursts.add(arrivals.runs.wrapping_sub(last.runs), lost);
        lost
    }

    /// The mean number of packets lost in a row.
    pub(super) fn mean_burst(&self) -> f64 {
        self.bursts.mean()
    }
}

/// Losses, and runs of them, fading.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bursts {
    lost: f64,
    runs: f64,
}

impl Bursts {
    /// So many runs, with so many packets.
    pub(super) fn add(&mut self, runs: u16, lost: u64) {
        if runs > 0 {
            let (runs, lost) = (f64::from(runs), lost as f64);
            self.lost = self.lost * FADE.powf(runs) + lost.max(runs);
            self.runs = self.runs * FADE.powf(runs) + runs;
        }
    }

    pub(super) fn mean(&self) -> f64 {
        if self.runs > 0.0 { self.lost / self.runs } else { 1.0 }
    }
}
