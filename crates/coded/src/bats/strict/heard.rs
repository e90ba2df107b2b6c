//! What a child has told of its hop: totals that do not wrap, and what they say of losses.

use super::super::wire::{Arrivals, Report};

/// What was lost fades as so many packets follow.
const MEMORY: f64 = 4096.0;
/// At the beginning so many packets count as not lost.
const PRIOR: f64 = 32.0;
/// When more than such a share of so many packets is lost between two reports, the link was down: that says nothing of
/// what it loses when it is up.
const OUTAGE: f64 = 64.0;
const OUTAGE_SHARE: f64 = 0.75;

/// A child, as it has reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub(super) instance: u16,
    pub(super) number: u16,
    last: Arrivals,
    /// The highest sequence number, the packets and bytes, and when the highest arrived by the child's clock, in
    /// nanoseconds from its first report on.
    pub(super) highest: u64,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) at: u64,
    sent: f64,
    lost: f64,
    runs: f64,
}

impl Heard {
    /// From a child's first report.
    pub(super) fn new(report: &Report<'_>, highest: u64) -> Self {
        Self {
            instance: report.instance,
            number: report.number,
            last: report.arrivals.unwrap_or_default(),
            highest,
            packets: 0,
            bytes: 0,
            at: 0,
            sent: PRIOR,
            lost: 0.0,
            runs: 0.0,
        }
    }

    /// Brings the totals up to date; each wraps by itself.
    pub(super) fn add(&mut self, arrivals: &Arrivals, highest: u64) {
        let last = core::mem::replace(&mut self.last, *arrivals);
        let packets = arrivals.packets.wrapping_sub(last.packets) & 0xFF_FFFF;
        let sent = highest.saturating_sub(core::mem::replace(&mut self.highest, highest)) as f64;
        self.packets += u64::from(packets);
        self.bytes += u64::from(arrivals.bytes.wrapping_sub(last.bytes));
        self.at += u64::from(arrivals.at.wrapping_sub(last.at)) << 4;
        let lost = sent - f64::from(packets);
        if sent >= OUTAGE && lost > OUTAGE_SHARE * sent {
            return;
        }
        let keep = (1.0 - sent / MEMORY).max(0.0);
        self.sent = self.sent * keep + sent;
        // A packet that is late counts as lost first, and then as not.
        self.lost = (self.lost * keep + lost).clamp(-MEMORY, self.sent);
        self.runs = self.runs * keep + f64::from(arrivals.runs.wrapping_sub(last.runs));
    }

    /// The share of packets that are lost.
    pub(super) fn loss(&self) -> f64 {
        (self.lost / self.sent).clamp(0.0, 0.9)
    }

    /// How many in a row on average.
    pub(super) fn burst(&self) -> f64 {
        if self.runs < 1.0 { 1.0 } else { (self.lost / self.runs).clamp(1.0, 63.0) }
    }
}
