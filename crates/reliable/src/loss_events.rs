//! Loss events and their rate, as TFRC measures them (RFC 5348, section 5).

use std::collections::VecDeque;

use hopcast_core::{Duration, Instant};

/// Loss event rate out of sequence numbers: losses within a round trip are one event.
///
/// A packet is lost once three of higher sequence numbers have come: one that is overtaken by fewer is late.
#[derive(Clone, Debug, Default)]
pub struct LossEvents {
    /// The last packet before which each one has come or is lost; none before the first packet.
    settled: Option<Packet>,
    /// Packets after it before which some are missing, ascending; fewer than [`NDUPACK`].
    held: Vec<Packet>,
    /// Sequence number at which the interval began that is not over.
    began: u64,
    /// Lengths of the intervals before it, in packets, the latest first.
    intervals: VecDeque<f64>,
    /// When the last event began.
    event: Option<Instant>,
}

/// A packet that has come.
#[derive(Clone, Copy, Debug)]
struct Packet {
    /// Its sequence number, in full.
    sequence: u64,
    at: Instant,
    marked: bool,
}

/// Packets of higher sequence numbers after which one is lost (RFC 5348, section 5.1: NDUPACK).
const NDUPACK: usize = 3;

/// Weights of the last intervals (RFC 5348, section 5.4).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// A jump of more than this, ahead or back, is a sender that began again. Chosen: a second of a fast link.
const MAX_GAP: i64 = 1 << 12;

/// Sequence number of the first packet, so that earlier ones have numbers too.
const FIRST: u64 = 1 << 32;

impl LossEvents {
    /// Notes the packet with a sequence number; `marked` if it bears ECN's mark, which counts as a loss (RFC 5348,
    /// section 5.1). Returns the number of sequence numbers that it skips, whose packets are late or lost, and true if
    /// a loss event has begun.
    pub fn packet(&mut self, now: Instant, sequence: u16, marked: bool, round_trip: Duration) -> (u16, bool) {
        let Some(settled) = self.settled else {
            self.begin(now, sequence, 0);
            return (0, false);
        };
        let ahead = i64::from(sequence.wrapping_sub(settled.sequence as u16) as i16);
        if ahead.abs() > MAX_GAP {
            self.begin(now, sequence, settled.sequence - self.began);
            return (0, false);
        }
        let packet = Packet { sequence: settled.sequence.wrapping_add_signed(ahead), at: now, marked };
        if ahead <= 0 || self.held.iter().any(|held| held.sequence == packet.sequence) {
            // Later than a loss is taken for, or twice.
            return (0, false);
        }
        let highest = self.held.last().map_or(settled.sequence, |last| last.sequence);
        let place = self.held.partition_point(|held| held.sequence < packet.sequence);
        self.held.insert(place, packet);
        let has_begun = self.settle(round_trip);
        (packet.sequence.saturating_sub(highest + 1) as u16, has_begun)
    }

    /// Starts, or goes on, with a packet: `passed` packets of the interval that is not over came before.
    fn begin(&mut self, now: Instant, sequence: u16, passed: u64) {
        let sequence = FIRST | u64::from(sequence);
        self.settled = Some(Packet { sequence, at: now, marked: false });
        self.held.clear();
        self.began = sequence - passed.min(FIRST);
    }

    /// Settles the packets whose fate is certain by now, arrived or lost. True if a loss event has begun.
    fn settle(&mut self, round_trip: Duration) -> bool {
        let mut has_begun = false;
        while let (Some(before), Some(&next)) = (self.settled, self.held.first()) {
            if next.sequence > before.sequence + 1 {
                if self.held.len() < NDUPACK {
                    break;
                }
                has_begun |= self.lost(before, next, round_trip);
            }
            if next.marked {
                has_begun |= self.event(next.sequence, next.at, round_trip);
            }
            self.held.remove(0);
            self.settled = Some(next);
        }
        has_begun
    }

    /// Notes that all packets between two are lost, each at a time between theirs (RFC 5348, section 5.2). True if a
    /// loss event has begun.
    fn lost(&mut self, before: Packet, after: Packet, round_trip: Duration) -> bool {
        let numbers = after.sequence - before.sequence;
        // One that was overtaken came after those behind it.
        let apart = after.at.since(before.at) / numbers;
        let per_event = match apart.as_nanos() {
            0 => u64::MAX,
            apart => round_trip.as_nanos().div_ceil(apart).max(1),
        };
        let mut has_begun = false;
        let mut number = before.sequence + 1;
        while number < after.sequence {
            let began = self.event(number, before.at + apart * (number - before.sequence), round_trip);
            has_begun |= began;
            // The next ones belong to the same event.
            number = number.saturating_add(if began { per_event } else { 1 });
        }
        has_begun
    }

    /// A packet was lost, or marked. True if that begins a loss event.
    fn event(&mut self, number: u64, at: Instant, round_trip: Duration) -> bool {
        if self.event.is_some_and(|event| at.since(event) < round_trip) {
            return false;
        }
        self.event = Some(at);
        self.intervals.push_front((number - self.began) as f64);
        self.intervals.truncate(WEIGHTS.len());
        self.began = number;
        true
    }

    /// Replaces the first interval, which says little: it depends on when the first loss happened to come.
    pub fn assume_first(&mut self, loss: f64) {
        if let (1, Some(first)) = (self.intervals.len(), self.intervals.front_mut()) {
            *first = 1.0 / loss.clamp(1e-9, 1.0);
        }
    }

    /// Whether there was an event.
    pub fn any(&self) -> bool {
        self.event.is_some()
    }

    /// Loss event rate; 0 before the first event.
    pub fn rate(&self) -> f64 {
        let mean = |intervals: &mut dyn Iterator<Item = f64>| {
            let (mut sum, mut weight) = (0.0, 0.0);
            for (interval, part) in intervals.zip(WEIGHTS) {
                sum += interval * part;
                weight += part;
            }
            if weight > 0.0 { sum / weight } else { 0.0 }
        };
        let current = self.settled.map_or(0, |settled| settled.sequence - self.began) as f64;
        let closed = mean(&mut self.intervals.iter().copied());
        // The interval that is not over counts where it makes the rate smaller (section 5.4).
        let with_open = mean(&mut std::iter::once(current).chain(self.intervals.iter().copied()));
        if self.any() { 1.0 / closed.max(with_open).max(1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(10);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A packet each millisecond but for those that `lost` says.
    fn run(packets: u64, lost: impl Fn(u64) -> bool) -> LossEvents {
        let mut losses = LossEvents::default();
        for packet in (0..packets).filter(|&packet| !lost(packet)) {
            losses.packet(at(packet), packet as u16, false, ROUND_TRIP);
        }
        losses
    }

    /// Packets in an order of their own, one each millisecond.
    fn in_order_of(sequences: &[u16]) -> LossEvents {
        let mut losses = LossEvents::default();
        for (time, &sequence) in sequences.iter().enumerate() {
            losses.packet(at(time as u64), sequence, false, ROUND_TRIP);
        }
        losses
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let each = run(5_000, |packet| packet % 100 == 99).rate();
        let pairs = run(5_000, |packet| packet % 100 >= 98).rate();
        assert!((each - 0.01).abs() < 0.001 && (pairs - each).abs() < 0.001, "{each} {pairs}");
        assert_eq!(run(1_000, |_| false).rate(), 0.0);
    }

    #[test]
    fn losses_of_several_round_trips_are_as_many_events() {
        // Thirty packets are three round trips.
        let losses = run(200, |packet| (100..130).contains(&packet));
        assert_eq!(losses.intervals, [10.0, 10.0, 100.0]);
    }

    #[test]
    fn an_interval_counts_its_losses_too() {
        let losses = run(1_000, |packet| packet % 200 == 100 || packet % 200 == 104);
        assert_eq!(losses.intervals, [200.0, 200.0, 200.0, 200.0, 100.0]);
    }

    #[test]
    fn numbers_wrap_and_a_packet_that_fewer_than_three_overtake_is_not_lost() {
        assert_eq!(run(150_000, |_| false).rate(), 0.0);
        for late in [&[0, 65_534, 65_535, 1][..], &[65_534, 0, 1, 65_535, 1, 2]] {
            let losses = in_order_of(&[&[65_532, 65_533], late, &[2, 3, 4, 5, 6]].concat());
            assert!(!losses.any() && losses.held.is_empty(), "{losses:?}");
        }
        let losses = in_order_of(&[65_533, 65_534, 0, 1, 2, 65_535, 3, 4]);
        assert_eq!(losses.intervals, [2.0], "three have overtaken it");
    }

    #[test]
    fn a_sender_that_begins_again_has_lost_nothing_and_the_interval_goes_on() {
        let losses = in_order_of(&[10, 11, 13, 14, 15, 16, 30_000, 30_001, 5, 6]);
        assert_eq!(losses.intervals, [2.0]);
        assert_eq!(losses.settled.map(|settled| settled.sequence - losses.began), Some(6));
    }

    #[test]
    fn whatever_numbers_come_little_is_held_and_done() {
        let mut losses = LossEvents::default();
        for number in 0..100_000_u64 {
            let sequence = (number.wrapping_mul(number).wrapping_mul(40_503) >> 7) as u16;
            losses.packet(at(number / 100), sequence, number % 3 == 0, Duration::from_nanos(number % 5));
            assert!(losses.held.len() < NDUPACK && losses.intervals.len() <= WEIGHTS.len());
        }
        assert!((0.0..=1.0).contains(&losses.rate()));
    }

    #[test]
    fn a_mark_is_a_loss() {
        let mut losses = LossEvents::default();
        losses.packet(Instant::ZERO, 1, false, ROUND_TRIP);
        assert_eq!(losses.packet(Instant::ZERO, 2, true, ROUND_TRIP), (0, true));
        losses.assume_first(0.05);
        assert!((losses.rate() - 0.05).abs() < 1e-9);
    }
}
