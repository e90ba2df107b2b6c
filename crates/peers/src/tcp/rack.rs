//! RACK: what was sent before something that has been delivered, and has had its time, is lost (RFC 8985 section 6).
//!
//! Time and not sequence decides, so a retransmission that is lost is found like any other. Reordering gets a window of
//! time that grows with the evidence for it, as in Linux `tcp_recovery.c`.

use hopcast_core::{Duration, Instant};

use super::scoreboard::{Scoreboard, Segment};

/// Recoveries for which an enlarged reordering window stays: RFC 8985 section 6.2 step 4.
const PERSISTENCE: u8 = 16;

/// The segment sent last of those that have been delivered, and the state of reordering.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    latest: Option<(Instant, u64)>,
    rtt: Duration,
    advanced: bool,
    /// Whether a segment was ever delivered after one behind it, both sent once.
    reordering_seen: bool,
    /// The reordering window in quarters of the minimum round trip.
    steps: u8,
    persist: u8,
    dsack_seen: bool,
    /// Packets delivered when the window was last enlarged.
    enlarged_at: u64,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            latest: None,
            rtt: Duration::ZERO,
            advanced: false,
            reordering_seen: false,
            steps: 1,
            persist: 0,
            dsack_seen: false,
            enlarged_at: 0,
        }
    }
}

/// The state on which the reordering window depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances {
    pub min_rtt: Option<Duration>,
    pub smoothed_rtt: Option<Duration>,
    /// In recovery from a loss.
    pub recovering: bool,
    /// Segments selectively acknowledged.
    pub sacked: u32,
    /// Number of segments that may be delivered before one that was sent earlier: the duplicate threshold, adapted.
    pub reordering: u32,
}

impl Rack {
    /// Notes that a segment, sent last at `sent_at`, has been delivered.
    pub(super) fn deliver(&mut self, now: Instant, segment: &Segment, min_rtt: Option<Duration>) {
        let rtt = now.since(segment.sent_at);
        // A segment that came sooner than a round trip after its retransmission was the original (section 6.2 step 2).
        if segment.ever_retransmitted && min_rtt.is_some_and(|min_rtt| rtt < min_rtt) {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        self.latest = self.latest.max(Some((segment.sent_at, segment.end)));
    }

    /// Notes that the peer received something twice that was not a probe for a tail.
    pub(super) fn note_dsack(&mut self) {
        self.dsack_seen = true;
    }

    pub(super) fn note_reordering(&mut self) {
        self.reordering_seen = true;
    }

    #[cfg(test)]
    pub(super) const fn is_reordering_seen(&self) -> bool {
        self.reordering_seen
    }

    /// Looks for losses again with the next acknowledgement, whether or not it delivers anything.
    pub(super) fn look_again(&mut self) {
        self.advanced = true;
    }

    /// Notes that a recovery is over: an enlarged window does not stay for ever.
    pub(super) fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
    }

    /// Adapts the reordering window (section 6.2 step 4): larger after a round trip in which segments were sent again
    /// in vain. `prior_delivered` packets had been delivered when what is acknowledged now was sent.
    pub(super) fn adapt(&mut self, prior_delivered: Option<u64>, delivered: u64) {
        let Some(prior_delivered) = prior_delivered else { return };
        if prior_delivered < self.enlarged_at {
            self.dsack_seen = false;
        }
        if core::mem::take(&mut self.dsack_seen) {
            self.steps = self.steps.saturating_add(1);
            self.enlarged_at = delivered;
            self.persist = PERSISTENCE;
        } else if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// Time that a segment may come after one that was sent later.
    fn window(&self, circumstances: &Circumstances) -> Duration {
        if !self.reordering_seen
            && (circumstances.recovering || circumstances.sacked >= circumstances.reordering)
        {
            return Duration::ZERO;
        }
        let Some(min_rtt) = circumstances.min_rtt else { return Duration::ZERO };
        let window = (min_rtt / 4) * u64::from(self.steps);
        circumstances.smoothed_rtt.map_or(window, |smoothed| window.min(smoothed))
    }

    /// Time that `segment` may still take before it is lost; `None` if it is.
    pub(super) fn time_left(
        &self,
        now: Instant,
        segment: &Segment,
        circumstances: &Circumstances,
    ) -> Option<Duration> {
        let allowed = self.rtt + self.window(circumstances);
        let left = allowed.saturating_sub(now.since(segment.sent_at));
        (!left.is_zero()).then_some(left)
    }

    /// Whether an acknowledgement has shown that a segment that was sent later has arrived.
    pub(super) fn has_advanced(&mut self) -> bool {
        core::mem::take(&mut self.advanced)
    }

    /// Marks the segments that are lost by now (section 6.2 step 5). Their number, and the time to look again.
    pub(super) fn detect(
        &self,
        now: Instant,
        board: &mut Scoreboard,
        circumstances: &Circumstances,
    ) -> (u32, Option<Duration>) {
        let (mut lost, mut wait) = (0, None);
        let mut next = board.oldest();
        while let Some((id, segment)) = next {
            if self.latest <= Some((segment.sent_at, segment.end)) {
                break;
            }
            let following = board.sent_after(id).map(|(id, _)| id);
            match self.time_left(now, segment, circumstances) {
                None => lost += u32::from(board.mark_lost(id)),
                left => wait = wait.max(left),
            }
            next = following.and_then(|id| board.get(id).map(|segment| (id, segment)));
        }
        (lost, wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS(ms)
    }

    fn board(sent: &[u64]) -> Scoreboard {
        let mut board = Scoreboard::default();
        for (i, &ms) in sent.iter().enumerate() {
            board.push(10 * i as u64, 10 * i as u64 + 10, false, at(ms), Default::default());
        }
        board
    }

    fn circumstances() -> Circumstances {
        Circumstances {
            min_rtt: Some(MS(20)),
            smoothed_rtt: Some(MS(40)),
            recovering: false,
            sacked: 1,
            reordering: 3,
        }
    }

    #[test]
    fn a_segment_is_lost_a_quarter_of_the_least_round_trip_after_a_later_one_was_delivered() {
        let mut board = board(&[0, 1]);
        let mut rack = Rack::default();
        let delivered = board.get(1).unwrap().clone();
        // Sent at 1 ms and delivered at 21: the round trip is 20 ms, and 5 ms are allowed on top.
        rack.deliver(at(21), &delivered, Some(MS(20)));
        assert_eq!(rack.detect(at(21), &mut board, &circumstances()), (0, Some(MS(4))));
        assert_eq!(rack.detect(Instant::from_nanos(24_999_999), &mut board, &circumstances()).0, 0);
        assert_eq!(rack.detect(at(25), &mut board, &circumstances()), (1, None));
    }

    #[test]
    fn the_window_is_nothing_in_recovery_or_after_three_duplicates_until_reordering_was_seen() {
        let mut rack = Rack::default();
        assert_eq!(rack.window(&circumstances()), MS(5));
        for circumstances in [
            Circumstances { recovering: true, ..circumstances() },
            Circumstances { sacked: 3, ..circumstances() },
            Circumstances { min_rtt: None, ..circumstances() },
        ] {
            assert_eq!(rack.window(&circumstances), Duration::ZERO);
        }
        rack.note_reordering();
        assert_eq!(rack.window(&Circumstances { recovering: true, ..circumstances() }), MS(5));
    }

    #[test]
    fn the_window_grows_by_a_quarter_with_each_needless_retransmission_and_shrinks_after_16_recoveries() {
        let mut rack = Rack::default();
        rack.note_dsack();
        rack.adapt(Some(10), 20);
        assert_eq!(rack.window(&circumstances()), MS(10));
        // Once a round trip: what was sent before 20 packets had been delivered is of the same one.
        rack.note_dsack();
        rack.adapt(Some(19), 21);
        assert_eq!(rack.window(&circumstances()), MS(10));
        rack.note_dsack();
        rack.adapt(Some(20), 30);
        assert_eq!(rack.window(&circumstances()), MS(15));
        for round in 0..30 {
            rack.note_dsack();
            rack.adapt(Some(30 + round), 31 + round);
        }
        assert_eq!(rack.window(&circumstances()), MS(40), "at most the smoothed round trip");
        for _ in 0..15 {
            rack.recovered();
        }
        rack.adapt(Some(100), 101);
        assert_eq!(rack.window(&circumstances()), MS(40));
        rack.recovered();
        rack.adapt(Some(100), 101);
        assert_eq!(rack.window(&circumstances()), MS(5));
    }

    #[test]
    fn what_comes_sooner_than_a_round_trip_after_its_retransmission_was_the_original() {
        let mut board = board(&[0, 1]);
        let mut rack = Rack::default();
        board.retransmit(1, at(30), Default::default());
        let again = board.get(1).unwrap().clone();
        rack.deliver(at(49), &again, Some(MS(20)));
        assert!(!rack.has_advanced());
        rack.deliver(at(50), &again, Some(MS(20)));
        assert!(rack.has_advanced() && !rack.has_advanced());
        assert_eq!(rack.detect(at(50), &mut board, &circumstances()).0, 1, "the other was sent 50 ms ago");
    }
}
