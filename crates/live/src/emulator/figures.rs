//! Figures of links in real time: their traffic, and the accuracy with which they followed their models.

use hdrhistogram::Histogram;
use hopcast_core::Duration;
use hopcast_link::{Attachment, Counters};

use super::transfer::TransferReport;

/// Traffic of the links of a run, and whether it is valid.
#[derive(Clone, Debug)]
pub struct EmulatorReport {
    /// Each link's directions, for each ordered pair of its attachments.
    pub links: Vec<Vec<DirectionReport>>,
    /// Accuracy with which the run followed the models.
    pub fidelity: Fidelity,
    /// Processor time of each thread.
    pub processor: Vec<Duration>,
    /// The reason why the figures of this run must not be used; `None` if they are valid.
    pub verdict: Option<String>,
    /// The traffic of the transfer of [`Options::transfer`](super::Options::transfer).
    pub transfer: TransferReport,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectionReport {
    /// The sender.
    pub from: Attachment,
    /// The receiver.
    pub to: Attachment,
    /// Counters at the start of the window.
    pub opened: Counters,
    /// Counters at the end of the window, or of the run if that came first.
    pub closed: Counters,
    /// Bytes sent, frames lost and frames delivered in each step of the time series; empty if all are zero.
    pub steps: Vec<[u64; 3]>,
}

/// Deviation of the links from their models.
///
/// The models decide on every frame at its exact time. The deviation is the lateness with which the machine carried the
/// decision out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fidelity {
    /// Frames delivered.
    pub delivered: u64,
    /// Lateness of frames when they were delivered: the median.
    pub lateness_p50: Duration,
    /// Lateness of frames when they were delivered: the 99th percentile.
    pub lateness_p99: Duration,
    /// Lateness of frames when they were delivered: the maximum.
    pub lateness_max: Duration,
    /// Frames delivered more than [`MAX_LATENESS`] late.
    pub late: u64,
    /// Maximum time for which a thread did not read its interfaces while it was, or should have been, awake.
    pub gap: Duration,
    /// Frames of programs that the kernel dropped before a link read them: the machine was too busy.
    pub unseen: u64,
    /// Datagrams and segments that programs did not read in time.
    pub socket_full: u64,
    /// Frames that the kernel of the receiving node refused.
    pub refused: u64,
}

/// Lateness up to which a frame counts as delivered in time. Chosen: a tenth of the shortest delay that is usual in
/// networks of several hops, and below the resolution of any transport's timers and pacing; a larger one hides delays
/// that change results, a smaller one marks frames for nothing.
pub const MAX_LATENESS: Duration = Duration::from_millis(1);

/// Maximum stall of the machine. Chosen: a quarter of the minimum retransmission timeout of 200 ms (`TCP_RTO_MIN` of
/// Linux); a TCP whose acknowledgements are all held for longer may take the delay for congestion.
const MAX_STALL: Duration = Duration::from_millis(50);

/// Maximum share of delivered frames that programs leave unread. Chosen: a hundredth of a loss of 1 %.
const MAX_UNREAD_RATIO: f64 = 1e-4;

impl Fidelity {
    /// The reason why the run must not be used; `None` if it is valid.
    pub(super) fn verdict(&self) -> Option<String> {
        let Self { delivered, unseen, socket_full, refused, lateness_p99, lateness_max, gap, .. } = *self;
        let busy = "the machine was too busy";
        let rounded = |span: Duration| Duration::from_micros(span.as_micros());
        if unseen > 0 {
            Some(format!("{busy}: {unseen} frames were lost before they reached a link"))
        } else if socket_full as f64 > MAX_UNREAD_RATIO * delivered as f64 {
            Some(format!(
                "{busy}: {socket_full} datagrams or segments were lost in full buffers of programs that did not read them"
            ))
        } else if refused > 0 {
            Some(format!("{refused} frames were refused by the kernel of the node they had arrived at"))
        } else if lateness_p99 > MAX_LATENESS {
            Some(format!("{busy}: 1 % of frames came more than {} late", rounded(lateness_p99)))
        } else if lateness_max.max(gap) > MAX_STALL {
            Some(format!("{busy}: it stood still for {}", rounded(lateness_max.max(gap))))
        } else {
            None
        }
    }
}

/// Lateness and drops of one thread.
pub(super) struct Tally {
    /// In nanoseconds.
    lateness: Histogram<u64>,
    late: u64,
    pub(super) refused: u64,
    pub(super) gap: Duration,
}

impl Tally {
    pub(super) fn new() -> Self {
        /// Maximum lateness that is recorded, in nanoseconds: an hour. Chosen: it bounds the histogram; a longer
        /// lateness counts as this.
        const MAX_LATENESS: u64 = 3_600_000_000_000;
        let lateness = Histogram::new_with_max(MAX_LATENESS, 3).expect("three digits are allowed");
        Self { lateness, late: 0, refused: 0, gap: Duration::ZERO }
    }

    #[inline]
    pub(super) fn delivered(&mut self, late: Duration) {
        self.lateness.saturating_record(late.as_nanos());
        self.late += u64::from(late > MAX_LATENESS);
    }

    pub(super) fn gap(&mut self, gap: Duration) {
        self.gap = self.gap.max(gap);
    }

    pub(super) fn add(&mut self, other: &Self) {
        // Both have the same bounds.
        let _ = self.lateness.add(&other.lateness);
        self.late += other.late;
        self.refused += other.refused;
        self.gap(other.gap);
    }

    pub(super) fn fidelity(&self, unseen: u64, socket_full: u64) -> Fidelity {
        let quantile = |share| Duration::from_nanos(self.lateness.value_at_quantile(share));
        Fidelity {
            delivered: self.lateness.len(),
            lateness_p50: quantile(0.5),
            lateness_p99: quantile(0.99),
            lateness_max: Duration::from_nanos(self.lateness.max()),
            late: self.late,
            gap: self.gap,
            unseen,
            socket_full,
            refused: self.refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_lost_is_never_taken_for_the_networks_loss() {
        let good =
            Fidelity { delivered: 1000, lateness_p99: Duration::from_micros(150), ..Fidelity::default() };
        assert_eq!(good.verdict(), None);
        let said = |fidelity: Fidelity| fidelity.verdict().unwrap();
        assert!(said(Fidelity { unseen: 1, ..good }).contains("1 frames were lost before"));
        assert!(said(Fidelity { socket_full: 1, ..good }).contains("1 datagrams or segments"));
        assert!(said(Fidelity { refused: 1, ..good }).contains("refused"));
        assert!(
            said(Fidelity { lateness_p99: Duration::from_nanos(1_234_567), ..good })
                .ends_with("1.234ms late")
        );
        assert!(said(Fidelity { gap: Duration::from_millis(51), ..good }).ends_with("stood still for 51ms"));
    }

    #[test]
    fn lateness_is_counted_from_the_first_frame_to_the_last() {
        let mut tally = Tally::new();
        let mut other = Tally::new();
        (1..=99).for_each(|micros| tally.delivered(Duration::from_micros(micros)));
        other.delivered(Duration::from_millis(3));
        tally.add(&other);
        let fidelity = tally.fidelity(0, 0);
        let near = |span: Duration, micros: u64| span.as_nanos().abs_diff(micros * 1000) < micros * 2;
        assert!(near(fidelity.lateness_p50, 50) && near(fidelity.lateness_p99, 99), "{fidelity:?}");
        assert!(near(fidelity.lateness_max, 3000), "{fidelity:?}");
        assert_eq!((fidelity.delivered, fidelity.late), (100, 1));
    }
}
