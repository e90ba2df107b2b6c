//! The child of a hop, as its reports have told, from which the next one is understood.

use hopcast_core::Duration;

use super::rate::HopReport;
use super::wire;

/// The child, as of its last report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Child<L> {
    /// Drawn when the child started.
    instance: u16,
    /// The report's number.
    number: u16,
    last: wire::Arrivals,
    /// The highest sequence number, the packets and bytes, and when the highest arrived by the child's clock, in
    /// nanoseconds: totals that do not wrap, from the child's first report on.
    highest: u64,
    packets: u64,
    bytes: u64,
    at: u64,
    pub(super) losses: L,
}

/// A record of the packets that do not arrive.
pub(super) trait Losses: Copy + Default {
    /// Adds packets that were sent, how many of them arrived, and how many runs of missing ones were between those.
    fn add(&mut self, sent: u64, arrived: u64, runs: u16);

    /// Average number of packets that are lost in a row.
    fn mean_burst(&self) -> f64;
}

/// A report that makes sense.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard<L> {
    pub(super) child: Child<L>,
    /// The child was restarted since it was heard last.
    pub(super) restarted: bool,
    /// The report of the hop, where it is about packets, and the number of packets lost since the last report.
    pub(super) hop: Option<HopReport>,
    pub(super) lost: u64,
    /// Minimum time from the child to the furthest end, in microseconds, if it tells it.
    pub(super) rest: Option<u32>,
}

/// Why a report is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is older than one that was taken.
    Stale,
    /// It reports packets that were never sent.
    NeverSent,
}

impl<L: Losses> Child<L> {
    /// Makes sense of a report by what was known of the child, if anything, where the sender is at packet `next` of
    /// `epoch`.
    ///
    /// # Errors
    ///
    /// It is old or makes no sense.
    pub(super) fn hear(
        before: Option<Self>,
        report: &wire::Report<'_>,
        epoch: u32,
        next: u64,
    ) -> Result<Heard<L>, Refused> {
        let known = before.filter(|child| child.instance == report.instance);
        if known.is_some_and(|child| !wire::is_news(report.number, child.number)) {
            return Err(Refused::Stale);
        }
        let arrivals = report.arrivals.filter(|_| report.epoch == epoch as u8);
        let highest = arrivals.map(|arrivals| wire::complete(arrivals.highest, 24, next));
        if highest.is_some_and(|highest| highest >= next) {
            return Err(Refused::NeverSent);
        }
        let mut child = known.unwrap_or_else(|| Self::new(report.instance, arrivals, highest));
        child.number = report.number;
        let (mut hop, mut lost) = (None, 0);
        if let (Some(arrivals), Some(highest)) = (arrivals, highest) {
            lost = child.add(&arrivals, highest);
            hop = Some(HopReport {
                highest,
                arrival_ns: child.at,
                hold: Duration::from_micros(u64::from(arrivals.hold)),
                received_packets: child.packets,
                received_bytes: child.bytes,
                mean_burst: child.losses.mean_burst(),
            });
        }
        Ok(Heard { child, restarted: before.is_some() && known.is_none(), hop, lost, rest: report.rest })
    }

    /// A child that is first heard of. What it had counted by then was of this sender before it knew the child; what it
    /// has counted of one that was restarted since, it will count from zero.
    fn new(instance: u16, arrivals: Option<wire::Arrivals>, highest: Option<u64>) -> Self {
        Self {
            instance,
            number: 0,
            last: arrivals.unwrap_or_default(),
            highest: highest.unwrap_or(0),
            packets: 0,
            bytes: 0,
            at: 0,
            losses: L::default(),
        }
    }

    /// Brings the totals up to date; each wraps by itself. How many packets have been lost since.
    fn add(&mut self, arrivals: &wire::Arrivals, highest: u64) -> u64 {
        let last = core::mem::replace(&mut self.last, *arrivals);
        let packets = u64::from(arrivals.packets.wrapping_sub(last.packets) & 0xFF_FFFF);
        let sent = highest.saturating_sub(core::mem::replace(&mut self.highest, highest));
        self.packets += packets;
        self.bytes += u64::from(arrivals.bytes.wrapping_sub(last.bytes));
        self.at += u64::from(arrivals.at.wrapping_sub(last.at)) << 4;
        self.losses.add(sent, packets, arrivals.runs.wrapping_sub(last.runs));
        sent.saturating_sub(packets)
    }
}

#[cfg(test)]
mod tests {
    use super::super::bursts::Bursts;
    use super::*;

    #[test]
    fn what_was_counted_before_the_sender_was_restarted_does_not_count() {
        let arrivals = |packets| Some(wire::Arrivals { packets, highest: packets, ..Default::default() });
        let report = |epoch, number, packets| wire::Report {
            instance: 7,
            number,
            arrivals: arrivals(packets),
            ..wire::Report::example(epoch)
        };
        let stray = Child::<Bursts>::hear(None, &report(1, 1, 5000), 2, 0).unwrap();
        assert_eq!(stray.hop, None);
        let first = Child::hear(Some(stray.child), &report(2, 2, 30), 2, 40).unwrap();
        assert_eq!(first.hop.map(|hop| hop.received_packets), Some(30));
    }

    #[test]
    fn a_report_is_news_however_many_were_lost_before_it() {
        for lost in [0, 1, 1000, 32_767, 32_768, 40_000, 64_000] {
            assert!(wire::is_news(60_000_u16.wrapping_add(lost + 1), 60_000), "{lost}");
        }
        assert!(
            !wire::is_news(60_000, 60_000) && !wire::is_news(60_000, 60_001) && !wire::is_news(65_000, 100)
        );
    }
}
