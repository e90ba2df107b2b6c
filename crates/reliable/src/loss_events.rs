//! Loss events and their rate, as TFRC measures them (RFC 5348, section 5).

use std::collections::VecDeque;

use hopcast_core::{Duration, Instant};

/// Loss event rate out of sequence numbers: losses within a round trip are one event.
#[derive(Clone, Debug, Default)]
pub struct LossEvents {
    /// The next sequence number expected; none before the first packet.
    expected: Option<u16>,
    /// Packets since the last event, and of the intervals before it, the latest first.
    current: f64,
    intervals: VecDeque<f64>,
    /// When the last event began.
    event: Option<Instant>,
}

/// Weights of the last intervals (RFC 5348, section 5.4).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// A jump ahead of more than this is a sender that began again. Chosen: a second of a fast link.
const MAX_GAP: u16 = 1 << 12;

impl LossEvents {
    /// Notes the packet with a sequence number; `marked` if it bears ECN's mark, which counts as a loss (RFC 5348,
    /// section 5.1). Returns the number of packets lost before it, and true if a loss event has begun.
    pub fn packet(&mut self, now: Instant, sequence: u16, marked: bool, round_trip: Duration) -> (u16, bool) {
        let Some(expected) = self.expected else {
            self.expected = Some(sequence.wrapping_add(1));
            return (0, false);
        };
        let ahead = sequence.wrapping_sub(expected);
        if ahead >= 1 << 15 {
            // Late, or twice: neither lost nor new.
            return (0, false);
        }
        self.expected = Some(sequence.wrapping_add(1));
        let lost = if ahead > MAX_GAP { 0 } else { ahead };
        self.current += 1.0;
        if lost == 0 && !marked {
            return (lost, false);
        }
        if self.event.is_some_and(|at| now.since(at) < round_trip) {
            return (lost, false);
        }
        self.event = Some(now);
        self.intervals.push_front(std::mem::take(&mut self.current) + f64::from(lost));
        self.intervals.truncate(WEIGHTS.len());
        (lost, true)
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
        let closed = mean(&mut self.intervals.iter().copied());
        // The interval that is not over counts where it makes the rate smaller (section 5.4).
        let with_open = mean(&mut std::iter::once(self.current).chain(self.intervals.iter().copied()));
        if self.any() { 1.0 / closed.max(with_open).max(1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(10);

    /// A packet each millisecond but for those that `lost` says.
    fn run(packets: u64, lost: impl Fn(u64) -> bool) -> LossEvents {
        let mut losses = LossEvents::default();
        for packet in (0..packets).filter(|&packet| !lost(packet)) {
            let now = Instant::ZERO + Duration::from_millis(packet);
            losses.packet(now, packet as u16, false, ROUND_TRIP);
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
    fn numbers_wrap_and_late_packets_are_no_losses() {
        assert_eq!(run(150_000, |_| false).rate(), 0.0);
        let mut losses = LossEvents::default();
        for sequence in [65_534, 0, 65_535, 1, 1, 2] {
            losses.packet(Instant::ZERO, sequence, false, ROUND_TRIP);
        }
        assert_eq!(losses.intervals.len(), 1, "65,535 was missed when 0 came");
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
