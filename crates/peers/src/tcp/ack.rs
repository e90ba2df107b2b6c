//! Time to acknowledge: at once, with the second segment, after a while, or together with others.
//!
//! After Linux `__tcp_ack_snd_check`. The first segments of a connection and of a burst after silence are acknowledged
//! at once, so that the sender's window grows; then every second one. While something is missing each segment is
//! acknowledged, but after three in a row for the same gap those of 5 % of a round trip share one (*SACK compression*).

use hopcast_core::{Duration, Instant};

use super::receive::Arrival;

/// Acknowledgements that are sent at once before they begin to be delayed: Linux `TCP_MAX_QUICKACKS`.
const QUICK: u32 = 16;
/// Number of acknowledgements for the same gap that are not compressed: the duplicate threshold (Linux
/// `TCP_FASTRETRANS_THRESH`).
const UNCOMPRESSED: u32 = 3;
/// Maximum number of acknowledgements that become one: Linux `tcp_comp_sack_nr`,
const COMPRESSED: u32 = 44;
/// over at most this time: Linux `tcp_comp_sack_delay_ns`,
const COMPRESSION: Duration = Duration::from_millis(1);
/// and at most this part of a round trip (Linux `__tcp_ack_snd_check`: 5 %),
const COMPRESSION_RTT_PART: u64 = 20;
/// and this much longer, which spares a host that is idle an interrupt: Linux `tcp_comp_sack_slack_ns`.
const COMPRESSION_SLACK: Duration = Duration::from_micros(100);

/// Time to acknowledge a segment that has arrived.
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

/// The state on which the decision depends.
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
        When::Together(COMPRESSION.min(rtt / COMPRESSION_RTT_PART) + COMPRESSION_SLACK)
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

#[cfg(test)]
mod tests {
    use super::*;

    const IN_ORDER: Arrival = Arrival::InOrder { gap_filled: false };

    fn standing(unacknowledged: u64, gap: bool) -> Standing {
        Standing {
            next: 0,
            unacknowledged,
            full_segment: 1448,
            gap,
            sack: true,
            rtt: Some(Duration::from_millis(10)),
            rto: Duration::from_millis(210),
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// A policy whose quick acknowledgements are used up.
    fn settled() -> AckPolicy {
        let mut policy = AckPolicy::default();
        for _ in 0..16 {
            assert_eq!(policy.on_arrival(at(0), IN_ORDER, false, &standing(1448, false)), When::Now);
            policy.sent(true);
        }
        policy
    }

    #[test]
    fn every_second_segment_is_acknowledged_once_the_first_sixteen_have_been() {
        let mut policy = settled();
        for _ in 0..10 {
            assert_eq!(policy.on_arrival(at(1), IN_ORDER, false, &standing(1448, false)), When::Delayed);
            assert_eq!(policy.on_arrival(at(1), IN_ORDER, false, &standing(1449, false)), When::Now);
            assert_eq!(policy.on_arrival(at(1), IN_ORDER, false, &standing(2896, false)), When::Now);
            policy.sent(true);
        }
        assert_eq!(policy.on_arrival(at(1), Arrival::Nothing, false, &standing(0, false)), When::Never);
        assert_eq!(policy.on_arrival(at(1), IN_ORDER, true, &standing(100, false)), When::Now, "a FIN");
        let filled = Arrival::InOrder { gap_filled: true };
        assert_eq!(policy.on_arrival(at(1), filled, false, &standing(100, false)), When::Now);
    }

    #[test]
    fn a_silence_or_a_duplicate_brings_the_quick_acknowledgements_back() {
        let mut policy = settled();
        assert_eq!(policy.on_arrival(at(210), IN_ORDER, false, &standing(100, false)), When::Delayed);
        assert_eq!(policy.on_arrival(at(421), IN_ORDER, false, &standing(100, false)), When::Now);
        let mut policy = settled();
        policy.on_arrival(at(1), Arrival::Duplicate, false, &standing(0, false));
        for _ in 0..16 {
            assert_eq!(policy.on_arrival(at(1), IN_ORDER, false, &standing(100, false)), When::Now);
            policy.sent(false);
            policy.sent(true);
        }
        assert_eq!(policy.on_arrival(at(1), IN_ORDER, false, &standing(100, false)), When::Delayed);
    }

    #[test]
    fn after_three_acknowledgements_for_a_gap_those_of_a_twentieth_of_a_round_trip_share_one() {
        let mut policy = settled();
        let arrive = |policy: &mut AckPolicy, standing: &Standing| {
            policy.on_arrival(at(1), Arrival::OutOfOrder, false, standing)
        };
        let gap = standing(0, true);
        for _ in 0..3 {
            assert_eq!(arrive(&mut policy, &gap), When::Now);
            policy.sent(true);
        }
        assert!(!policy.is_compressing());
        assert_eq!(arrive(&mut policy, &gap), When::Together(Duration::from_micros(600)));
        assert!(policy.is_compressing());
        let long = Standing { rtt: Some(Duration::from_millis(30)), ..gap };
        assert_eq!(
            arrive(&mut policy, &long),
            When::Together(Duration::from_micros(1_100)),
            "a millisecond at most"
        );
        let none = Standing { rtt: Some(Duration::ZERO), ..gap };
        assert_eq!(arrive(&mut policy, &none), When::Together(Duration::from_micros(100)));
        assert_eq!(arrive(&mut policy, &Standing { rtt: None, ..gap }), When::Now);
        assert_eq!(arrive(&mut policy, &Standing { sack: false, ..gap }), When::Now);
        for _ in 4..44 {
            assert_ne!(arrive(&mut policy, &gap), When::Now);
        }
        assert_eq!(arrive(&mut policy, &gap), When::Now, "44 are enough");
        policy.sent(true);
        assert_ne!(arrive(&mut policy, &gap), When::Now);
        assert_eq!(arrive(&mut policy, &Standing { next: 5, ..gap }), When::Now, "another gap");
        let pruned = policy.on_arrival(at(1), Arrival::Pruned, false, &standing(0, false));
        assert_ne!(pruned, When::Delayed);
    }
}
