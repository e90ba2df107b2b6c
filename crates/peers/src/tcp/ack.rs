//! When to acknowledge: at once, with the second segment, after a while, or together with others.
//!
//! After Linux `__tcp_ack_snd_check`. The first segments of a connection and of a burst after silence are acknowledged at
//! once, so that the sender's window grows; then every second one. While something is missing each segment is
//! acknowledged, but after three in a row for the same gap those of 5 % of a round trip share one (*SACK compression*).

use hopcast_core::{Duration, Instant};

use super::receive::Arrival;

/// So many acknowledgements are sent at once before they begin to be delayed: Linux `TCP_MAX_QUICKACKS`.
const QUICK: u32 = 16;
/// Acknowledgements for the same gap that are not compressed: the duplicate threshold.
const UNCOMPRESSED: u32 = 3;
/// At most so many acknowledgements become one: Linux `tcp_comp_sack_nr`,
const COMPRESSED: u32 = 44;
/// over at most this time: Linux `tcp_comp_sack_delay_ns`,
const COMPRESSION: Duration = Duration::from_millis(1);
/// and at most this part of a round trip.
const COMPRESSION_RTT_PART: u64 = 20;

/// What to do about a segment that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Nothing needs an acknowledgement.
    Never,
    /// Now.
    Now,
    /// With the delayed acknowledgement.
    Delayed,
    /// Together with others, after this time.
    Together(Duration),
}

/// The state of acknowledging.
#[derive(Clone, Debug)]
pub(super) struct AckPolicy {
    quick: u32,
    last_arrival: Option<Instant>,
    /// For which gap acknowledgements have been sent, and how many.
    gap: u64,
    for_gap: u32,
    compressed: u32,
}

impl Default for AckPolicy {
    fn default() -> Self {
        Self { quick: QUICK, last_arrival: None, gap: 0, for_gap: 0, compressed: 0 }
    }
}

/// What the decision depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// The next sequence number expected.
    pub next: u64,
    /// Bytes not acknowledged yet, and the payload of a full segment.
    pub unacknowledged: u64,
    pub full_segment: u64,
    /// Whether something is missing.
    pub gap: bool,
    pub sack: bool,
    pub rtt: Option<Duration>,
    pub rto: Duration,
}

impl AckPolicy {
    /// Decides about a segment that was `arrival`.
    pub(super) fn on_arrival(
        &mut self,
        now: Instant,
        arrival: Arrival,
        fin: bool,
        standing: &Standing,
    ) -> When {
        if arrival == Arrival::Nothing {
            return When::Never;
        }
        let silence = self.last_arrival.map(|last| now.since(last));
        self.last_arrival = Some(now);
        if silence.is_some_and(|silence| silence > standing.rto) || arrival == Arrival::Duplicate {
            self.quick = QUICK;
        }
        let gap_filled = arrival == Arrival::InOrder { gap_filled: true };
        if fin
            || gap_filled
            || arrival == Arrival::Duplicate
            || standing.unacknowledged > standing.full_segment
            || self.quick > 0
        {
            return When::Now;
        }
        if !standing.gap && arrival != Arrival::Pruned {
            return When::Delayed;
        }
        self.on_gap(standing)
    }

    fn on_gap(&mut self, standing: &Standing) -> When {
        if !standing.sack || self.compressed >= COMPRESSED {
            return When::Now;
        }
        if self.gap != standing.next {
            self.gap = standing.next;
            self.for_gap = 0;
        }
        if self.for_gap < UNCOMPRESSED {
            self.for_gap += 1;
            return When::Now;
        }
        self.compressed += 1;
        let Some(rtt) = standing.rtt else { return When::Now };
        // Never at once: a deadline lies ahead, even on a path that takes no time.
        When::Together(COMPRESSION.min(rtt / COMPRESSION_RTT_PART).max(Duration::from_nanos(1)))
    }

    /// Whether acknowledgements wait to be sent together.
    pub(super) const fn is_compressing(&self) -> bool {
        self.compressed > 0
    }

    /// Notes that an acknowledgement leaves, alone or with data; `due` if one was.
    pub(super) fn sent(&mut self, due: bool) {
        self.compressed = 0;
        if due {
            self.quick = self.quick.saturating_sub(1);
        }
    }
}
