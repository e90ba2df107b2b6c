//! The losses of a link itself, apart from the drops of a full queue before it.
//!
//! A noisy link loses whatever is sent, and each loss takes the link's time as an arrival does: it says nothing against
//! the rate. A queue drops because too much is sent, and is full when it does: the packets beside those that it drops
//! have waited. So a loss beside a packet that has met no queue counts as passed by the link. Beside one that has, only
//! as many count as the link was seen to lose while there was none.

use hopcast_core::{Duration, FadingLoss, Instant};

use super::minmax::Minmax;

/// The window of the minimum round trip, as long as BBR's.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// Packet times by which a round trip may be above the minimum without having met a queue. Chosen: less is how packets
/// and acknowledgements fall together, more lets a short queue overflow unseen.
const QUEUE_PACKETS: u64 = 2;
/// The same in standard deviations of the path's jitter. Chosen: two cover 95 % of it; fewer take jitter for a queue,
/// more let a queue overflow unseen.
const JITTERS: f64 = 2.0;
/// Packets over which the share of losses fades. Chosen: shorter is noisy at small losses, longer follows a change
/// late.
const WEIGHT: f64 = 128.0;
/// At the beginning as many packets count as arrived, so that the first few losses are not taken for all. Chosen; more,
/// and a lossy path is known late.
const PRIOR: f64 = 16.0;
/// Maximum share that is taken for the link's own. Chosen: where a queue is too short to show, it bounds the overload:
/// at most ten times what arrives is sent.
const MAX_SHARE: f64 = 0.9;

/// The estimator of one path.
#[derive(Clone, Debug)]
pub(super) struct RandomLoss {
    min_rtt: Option<Minmax>,
    /// The last two round trips, the latest first.
    last: [Option<Duration>; 2],
    /// The standard deviation of the difference between one round trip and the next, in nanoseconds.
    jitter: f64,
    /// The last round trip less the minimum.
    queue: Duration,
    /// The losses while there was no queue.
    loss: FadingLoss,
    /// Parts of a packet that have passed and are not reported yet.
    part: f64,
}

impl Default for RandomLoss {
    fn default() -> Self {
        Self {
            min_rtt: None,
            last: [None; 2],
            jitter: 0.0,
            queue: Duration::ZERO,
            loss: FadingLoss::new(PRIOR, 0.0),
            part: 0.0,
        }
    }
}

impl RandomLoss {
    /// Takes a round trip.
    pub(super) fn on_round_trip(&mut self, now: Instant, rtt: Duration) {
        let (at, value) = (now.as_nanos(), rtt.as_nanos());
        let filter = self.min_rtt.get_or_insert(Minmax::new(at, value));
        let min_rtt = filter.update_min(MIN_RTT_WINDOW.as_nanos(), at, value);
        self.queue = rtt.saturating_sub(Duration::from_nanos(min_rtt));
        if let [Some(one), Some(two)] = self.last {
            // The second difference shows jitter, with six times its variance, and no queue that grows or drains
            // steadily. The mean of a normal deviation is 0.8 of its standard deviation.
            let bend = (value + two.as_nanos()) as f64 - 2.0 * one.as_nanos() as f64;
            self.jitter += (bend.abs() / 1.95 - self.jitter) / 16.0;
        }
        self.last = [Some(rtt), self.last[0]];
    }

    /// Number of the `lost` packets that have passed the link although they are lost, where `arrived` beside them did
    /// arrive and a packet takes `packet_time` on the link.
    pub(super) fn passed(&mut self, arrived: u32, lost: u32, packet_time: Duration) -> u32 {
        let max = f64::from(arrived) * MAX_SHARE / (1.0 - MAX_SHARE);
        let lost = f64::from(lost);
        let patience = packet_time * QUEUE_PACKETS + Duration::from_nanos((JITTERS * self.jitter) as u64);
        let own = if self.queue <= patience {
            self.loss.add(f64::from(arrived) + lost, lost, WEIGHT);
            lost
        } else {
            let share = self.share();
            lost.min(f64::from(arrived) * share / (1.0 - share))
        };
        self.part += own.min(max);
        let whole = self.part.floor();
        self.part -= whole;
        whole as u32
    }

    /// The share of packets that the link loses itself.
    pub(super) fn share(&self) -> f64 {
        self.loss.share().min(MAX_SHARE)
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::*;

    const PACKET: Duration = Duration::from_micros(40);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// One who has seen a round trip of 10 ms, and half of the packets lost at it.
    fn lossy() -> RandomLoss {
        let mut own = RandomLoss::default();
        for number in 0..1000 {
            own.on_round_trip(at(number), Duration::from_millis(10));
            assert_eq!(own.passed(1, 1, PACKET), 1);
        }
        assert!((own.share() - 0.5).abs() < 0.01, "{}", own.share());
        own
    }

    #[test]
    fn losses_beside_a_packet_that_met_no_queue_have_passed_the_link() {
        let mut own = lossy();
        own.on_round_trip(at(1000), Duration::from_millis(10) + PACKET * QUEUE_PACKETS);
        assert_eq!(own.passed(3, 7, PACKET), 7);
    }

    #[test]
    fn what_a_full_queue_drops_has_not_passed_but_for_the_links_own_share() {
        let mut own = lossy();
        for number in 0..100 {
            own.on_round_trip(at(1000 + number), Duration::from_millis(13));
        }
        let passed: u32 = (0..100).map(|_| own.passed(1, 9, PACKET)).sum();
        assert!((98..=102).contains(&passed), "{passed}: as many as arrive, at a share of a half");
        assert!((own.share() - 0.5).abs() < 0.01, "nor does it tell of the link: {}", own.share());
        let mut clean = RandomLoss::default();
        clean.on_round_trip(at(0), Duration::from_millis(10));
        clean.on_round_trip(at(1), Duration::from_millis(13));
        assert_eq!(clean.passed(1, 9, PACKET), 0);
    }

    #[test]
    fn jitter_is_no_queue() {
        let mut own = RandomLoss::default();
        let mut random = Seed::new(1, 0).stream(&["jitter"], 0);
        let mut passed = 0;
        for number in 0..1000 {
            own.on_round_trip(at(number), Duration::from_micros(10_000 + random.below(2000)));
            passed += own.passed(1, 1, PACKET);
        }
        assert!(passed > 950, "{passed}");
    }

    #[test]
    fn not_more_than_nine_in_ten_is_the_links_own() {
        let mut own = lossy();
        for _ in 0..100 {
            assert_eq!(own.passed(1, 99, PACKET), 9);
        }
        assert!(own.share() <= 0.9);
        assert_eq!(own.passed(0, 5, PACKET), 0, "nothing arrives");
    }

    /// Whether losses beside a round trip that is `above` the minimum are the link's.
    fn is_own(own: &RandomLoss, above: Duration) -> bool {
        let mut own = own.clone();
        own.on_round_trip(at(2000), Duration::from_millis(10) + above);
        // Beside a queue only the link's share counts: none of a clean link.
        own.passed(10, 10, PACKET) == 10
    }

    #[test]
    fn two_packets_or_two_deviations_above_the_least_are_no_queue() {
        let mut own = RandomLoss::default();
        own.on_round_trip(at(0), Duration::from_millis(10));
        assert!(is_own(&own, PACKET * 2));
        assert!(!is_own(&own, PACKET * 2 + Duration::from_nanos(1)));
        own.jitter = 1e6;
        assert!(is_own(&own, PACKET * 2 + Duration::from_millis(2)));
        assert!(!is_own(&own, PACKET * 2 + Duration::from_micros(2_001)));
    }

    #[test]
    fn the_least_round_trip_is_that_of_ten_seconds() {
        let mut own = RandomLoss::default();
        own.on_round_trip(at(0), Duration::from_millis(10));
        own.on_round_trip(at(10_000), Duration::from_millis(30));
        assert_eq!(own.queue, Duration::from_millis(20));
        own.on_round_trip(at(10_001), Duration::from_millis(30));
        assert_eq!(own.queue, Duration::ZERO);
    }

    #[test]
    fn the_share_begins_as_if_16_had_arrived_and_fades_over_128() {
        let mut own = RandomLoss::default();
        own.on_round_trip(at(0), Duration::from_millis(10));
        own.passed(0, 4, PACKET);
        // Of 16 (1 - 4/128) and 4.
        assert!((own.share() - 4.0 / 19.5).abs() < 1e-9, "{}", own.share());
        own.passed(64, 0, PACKET);
        assert!((own.share() - 2.0 / (9.75 + 64.0)).abs() < 1e-9, "{}", own.share());
    }
}
