//! What is measured of links in real time: what they carried, and how true to their models they were.

use hdrhistogram::Histogram;
use hopcast_core::Duration;
use hopcast_link::{Attachment, Counters};

/// What the links of a run carried, and whether that can be believed.
#[derive(Clone, Debug)]
pub struct EmulatorReport {
    /// Each link's directions, for each ordered pair of its attachments.
    pub links: Vec<Vec<DirectionReport>>,
    /// How true to the models the run was.
    pub truth: Truth,
    /// The processor time of each thread.
    pub processor: Vec<Duration>,
    /// Why the figures of this run must not be used, if so.
    pub verdict: Option<String>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectionReport {
    /// The sender.
    pub from: Attachment,
    /// The receiver.
    pub to: Attachment,
    /// The figures as the window opened.
    pub opened: Counters,
    /// The figures as the window closed, or at the end if that came first.
    pub closed: Counters,
    /// Bytes sent, frames lost, and frames delivered in each step of the time series; nothing if there was nothing in
    /// any of them.
    pub steps: Vec<[u64; 3]>,
}

/// How far from their models the links were.
///
/// The models decide about every frame at its exact time. What remains is how late the machine came to carry it out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// Frames delivered.
    pub delivered: u64,
    /// How late frames were handed over, half of them at most.
    pub lateness_p50: Duration,
    /// 99 % of them at most.
    pub lateness_p99: Duration,
    /// All of them at most.
    pub lateness_max: Duration,
    /// Frames that were handed over more than [`LATE`] too late.
    pub late: u64,
    /// The longest time in which a thread did not look at its interfaces, though it was awake or should have been.
    pub gap: Duration,
    /// Frames that programs sent and that the kernel dropped before any link saw them: the machine was too busy.
    pub unseen: u64,
    /// Datagrams and segments that programs did not fetch in time.
    pub socket_full: u64,
    /// Frames that a node's kernel refused to take.
    pub refused: u64,
}

/// What a link may be late without being a different link: a tenth of the shortest delay that people give to networks
/// of several hops, and below what any transport's timers or pacing resolve.
pub const LATE: Duration = Duration::from_millis(1);

/// Longer than this a machine must not stand still: a TCP whose acknowledgements all wait for so long takes it for a
/// congested network, and its shortest timeout is 200 ms.
const STANDSTILL: Duration = Duration::from_millis(50);

/// Of the frames delivered, the share that programs may leave unread: a hundredth of a loss of 1 %.
const UNREAD: f64 = 1e-4;

impl Truth {
    /// Why the run must not be used, if so.
    pub(super) fn verdict(&self) -> Option<String> {
        let Self { delivered, unseen, socket_full, refused, lateness_p99, lateness_max, gap, .. } = *self;
        let busy = "the machine was too busy";
        let rounded = |span: Duration| Duration::from_micros(span.as_micros());
        if unseen > 0 {
            Some(format!("{busy}: {unseen} frames were lost before they reached a link"))
        } else if socket_full as f64 > UNREAD * delivered as f64 {
            Some(format!(
                "{busy}: {socket_full} datagrams or segments were lost in full buffers of programs that did not read them"
            ))
        } else if refused > 0 {
            Some(format!("{refused} frames were refused by the kernel of the node they had arrived at"))
        } else if lateness_p99 > LATE {
            Some(format!("{busy}: 1 % of frames came more than {} late", rounded(lateness_p99)))
        } else if lateness_max.max(gap) > STANDSTILL {
            Some(format!("{busy}: it stood still for {}", rounded(lateness_max.max(gap))))
        } else {
            None
        }
    }
}

/// The figures of one thread.
pub(super) struct Tally {
    /// In nanoseconds.
    lateness: Histogram<u64>,
    late: u64,
    pub(super) refused: u64,
    pub(super) gap: Duration,
}

impl Tally {
    pub(super) fn new() -> Self {
        /// An hour: a machine that slept through more is not measured more closely.
        const LONGEST: u64 = 3_600_000_000_000;
        let lateness = Histogram::new_with_max(LONGEST, 3).expect("three digits are allowed");
        Self { lateness, late: 0, refused: 0, gap: Duration::ZERO }
    }

    #[inline]
    pub(super) fn delivered(&mut self, late: Duration) {
        self.lateness.saturating_record(late.as_nanos());
        self.late += u64::from(late > LATE);
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

    pub(super) fn truth(&self, unseen: u64, socket_full: u64) -> Truth {
        let quantile = |share| Duration::from_nanos(self.lateness.value_at_quantile(share));
        Truth {
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
        let good = Truth { delivered: 1000, lateness_p99: Duration::from_micros(150), ..Truth::default() };
        assert_eq!(good.verdict(), None);
        let said = |truth: Truth| truth.verdict().unwrap();
        assert!(said(Truth { unseen: 1, ..good }).contains("1 frames were lost before"));
        assert!(said(Truth { socket_full: 1, ..good }).contains("1 datagrams or segments"));
        assert!(said(Truth { refused: 1, ..good }).contains("refused"));
        assert!(
            said(Truth { lateness_p99: Duration::from_nanos(1_234_567), ..good }).ends_with("1.234ms late")
        );
        assert!(said(Truth { gap: Duration::from_millis(51), ..good }).ends_with("stood still for 51ms"));
    }

    #[test]
    fn lateness_is_counted_from_the_first_frame_to_the_last() {
        let mut tally = Tally::new();
        let mut other = Tally::new();
        (1..=99).for_each(|micros| tally.delivered(Duration::from_micros(micros)));
        other.delivered(Duration::from_millis(3));
        tally.add(&other);
        let truth = tally.truth(0, 0);
        let near = |span: Duration, micros: u64| span.as_nanos().abs_diff(micros * 1000) < micros * 2;
        assert!(near(truth.lateness_p50, 50) && near(truth.lateness_p99, 99), "{truth:?}");
        assert!(near(truth.lateness_max, 3000), "{truth:?}");
        assert_eq!((truth.delivered, truth.late), (100, 1));
    }
}
