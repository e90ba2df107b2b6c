//! The delivery rate: how fast the network takes a flow's packets, measured at each acknowledgement.
//!
//! After Cheng, Cardwell and others, draft-cheng-iccrg-delivery-rate-estimation, as in Linux `tcp_rate.c`. Each packet
//! notes, when it is sent, how many packets had been delivered until then and when. When it is acknowledged, what has
//! been delivered since, over the longer of the time that took to send and to acknowledge, is one sample: the longer of
//! the two because acknowledgements can arrive compressed, faster than the path ever delivers.

use hopcast_core::{Duration, Instant};

/// A connection's account of deliveries, in packets.
#[derive(Clone, Debug, Default)]
pub(super) struct DeliveryRate {
    /// Packets delivered so far, each once.
    pub delivered: u64,
    /// Time at which that last rose.
    pub delivered_at: Instant,
    /// Packets marked lost so far.
    pub lost: u64,
    /// Time at which the most recently sent of the delivered packets was sent.
    first_sent_at: Instant,
    /// The number of packets delivered until which samples count as limited by the application.
    app_limited_until: Option<u64>,
}

/// The state that a packet notes when it is sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Snapshot {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    app_limited: bool,
}

/// The packet sent last of those that one acknowledgement delivers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Newest {
    newest: Option<(Instant, u64, Snapshot)>,
}

/// The sample of one acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateSample {
    /// Packets delivered over the interval, and the interval; `None` if there is no valid sample.
    pub delivery: Option<(u64, Duration)>,
    /// Number of packets that had been delivered when the newest packet was sent.
    pub prior_delivered: Option<u64>,
    /// Whether the application had nothing to send within the interval.
    pub app_limited: bool,
}

impl Newest {
    /// Notes that the packet that ends at `end` and was last sent at `sent_at` has been delivered.
    pub(crate) fn note(&mut self, sent_at: Instant, end: u64, snapshot: Snapshot) {
        if self.newest.is_none_or(|(at, other, _)| (sent_at, end) > (at, other)) {
            self.newest = Some((sent_at, end, snapshot));
        }
    }

    /// Number of packets that had been delivered when that packet was sent.
    pub(super) fn prior_delivered(&self) -> Option<u64> {
        self.newest.map(|(_, _, snapshot)| snapshot.delivered)
    }
}

impl DeliveryRate {
    /// The snapshot of a packet sent at `now`; `idle` if nothing is outstanding.
    pub(super) fn snapshot(&mut self, now: Instant, idle: bool) -> Snapshot {
        if idle {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until.is_some(),
        }
    }

    /// Notes that `newly` packets have been delivered, and makes the sample. Samples over less than `min_rtt` come from
    /// an original taken for its retransmission, and are not valid.
    pub(super) fn sample(
        &mut self,
        now: Instant,
        newly: u32,
        newest: Newest,
        min_rtt: Option<Duration>,
    ) -> RateSample {
        self.delivered += u64::from(newly);
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        if newly > 0 {
            self.delivered_at = now;
        }
        let Some((sent_at, _, snapshot)) = newest.newest else { return RateSample::default() };
        self.first_sent_at = sent_at;
        let sending = sent_at.since(snapshot.first_sent_at);
        let acknowledging = now.since(snapshot.delivered_at);
        let interval = sending.max(acknowledging);
        let valid = !interval.is_zero() && min_rtt.is_none_or(|min_rtt| interval >= min_rtt);
        RateSample {
            delivery: valid.then(|| (self.delivered - snapshot.delivered, interval)),
            prior_delivered: Some(snapshot.delivered),
            app_limited: snapshot.app_limited,
        }
    }

    /// Notes that there is less to send than could be sent, with `in_flight` packets outstanding.
    pub(super) fn limit_by_application(&mut self, in_flight: u32) {
        self.app_limited_until = Some((self.delivered + u64::from(in_flight)).max(1));
    }

    pub(super) const fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn compressed_acknowledgements_do_not_raise_the_rate_above_that_of_sending() {
        let mut rate = DeliveryRate::default();
        let first = rate.snapshot(at(0), true);
        let mut newest = Newest::default();
        newest.note(at(0), 1, first);
        rate.sample(at(50), 1, newest, None);
        // Ten packets sent over 90 ms, all acknowledged at once a moment later.
        let snapshots: Vec<_> =
            (0..10).map(|i| (at(50 + 10 * i), rate.snapshot(at(50 + 10 * i), false))).collect();
        let mut newest = Newest::default();
        for (i, &(sent_at, snapshot)) in snapshots.iter().enumerate() {
            newest.note(sent_at, i as u64 + 2, snapshot);
        }
        let sample = rate.sample(at(150), 10, newest, None);
        // From the sending of the first packet at 0 ms to that of the last at 140 ms.
        assert_eq!(sample.delivery, Some((10, Duration::from_millis(140))));
    }

    #[test]
    fn what_the_application_held_back_is_marked_until_it_is_delivered() {
        let mut rate = DeliveryRate::default();
        rate.limit_by_application(2);
        assert!(rate.snapshot(at(0), true).app_limited);
        rate.sample(at(1), 2, Newest::default(), None);
        assert!(rate.is_app_limited());
        rate.sample(at(2), 1, Newest::default(), None);
        assert!(!rate.is_app_limited());
    }
}
