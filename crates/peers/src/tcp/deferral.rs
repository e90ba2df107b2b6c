//! Sending in lumps: a sender whose window lets only little go waits for the next acknowledgement and sends more at
//! once.
//!
//! After Linux `tcp_tso_should_defer` and `tcp_tso_autosize`. A kernel hands its device lumps that the device cuts into
//! segments, and a larger lump costs less. So congestion controls that do not pace hold back what is less than a lump.
//! On a lossy path that costs goodput: of a window of eight segments often one is not in use.

use hopcast_core::{Duration, Instant};

use super::congestion::Phase;
use super::sender::Sender;

/// A lump is what the pacing rate sends in 2^-10 s, even where nothing is paced: Linux `sk_pacing_shift`.
const LUMP_SHIFT: u32 = 10;
/// Minimum lump, in segments: Linux `tcp_min_tso_segs`.
const MIN_LUMP: u64 = 2;
/// Maximum lump, in bytes: what fits an IP packet before segmentation.
const MAX_LUMP: u64 = 65_535 - 320;
/// On a short path a lump is larger by this, halved for each 2^9 us of round trip: Linux `tcp_tso_rtt_log`.
const SHORT_PATH_SHIFT: u32 = 9;
/// The pacing rate in windows a round trip, in percent, in slow start and after it: Linux `tcp_pacing_ss_ratio`,
const SLOW_START_PERCENT: u64 = 200;
/// and `tcp_pacing_ca_ratio`.
const AVOIDANCE_PERCENT: u64 = 120;
/// This part of the smaller window is always sent: Linux `tcp_tso_win_divisor`.
const WINDOW_PART: u64 = 3;
/// Nothing is held back when something was sent longer ago than this, or the next acknowledgement is as far away (Linux
/// `tcp_tso_should_defer`).
const MAX_DEFERRAL: Duration = Duration::from_millis(1);

/// Window that keeps a lump from being larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeldBy {
    Congestion,
    Receiver,
}

impl Sender {
    /// Number of segments of new data that may be sent at once now; an error to wait for the next acknowledgement.
    pub(super) fn lump(&self, now: Instant) -> Result<u32, HeldBy> {
        let mss = u64::from(self.mss.max(1));
        let room = u64::from(self.window.size.saturating_sub(self.board.in_flight())) * mss;
        let lump = lump(self.pacing_rate(), self.mss, self.rtt.min_rtt());
        let waiting = self.buffer.end().saturating_sub(self.nxt);
        let admitted = self.window_end().saturating_sub(self.nxt);
        let sendable = room.min(admitted);
        let smaller = self.peer_window.min(u64::from(self.window.size) * mss);
        if self.recovery.phase >= Phase::Recovery
            || waiting <= mss.max(sendable / mss * mss)
            || sendable >= u64::from(lump) * mss
            || sendable >= smaller / WINDOW_PART
            || now.since(self.window.last_sent()) > MAX_DEFERRAL
            || self.is_acknowledgement_far(now)
        {
            return Ok(lump);
        }
        // A window that the receiver's keeps from being used must not grow for it.
        Err(if room < admitted { HeldBy::Congestion } else { HeldBy::Receiver })
    }

    /// Whether the acknowledgement of the earliest segment outstanding is not to be expected soon.
    fn is_acknowledgement_far(&self, now: Instant) -> bool {
        let (Some((_, head)), Some(smoothed)) = (self.board.head(), self.rtt.smoothed()) else { return true };
        (head.sent_at + smoothed).since(now) > MAX_DEFERRAL.min(smoothed / 2)
    }

    /// The rate in bytes per second at which a window that is not paced would be (Linux `tcp_update_pacing_rate`).
    fn pacing_rate(&self) -> u64 {
        let percent =
            if self.window.size < self.window.threshold / 2 { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT };
        let window = u64::from(self.window.size.max(self.board.len())) * u64::from(self.mss);
        let smoothed = self.rtt.smoothed().map_or(1, Duration::as_micros).max(1);
        (window * percent / 100).saturating_mul(1_000_000) / smoothed
    }
}

/// The segments of a lump at `rate` bytes per second over a path whose minimum round trip is `min_rtt`.
fn lump(rate: u64, mss: u32, min_rtt: Option<Duration>) -> u32 {
    let halvings = min_rtt.map_or(u64::MAX, |min_rtt| min_rtt.as_micros() >> SHORT_PATH_SHIFT);
    let more = if halvings < 32 { MAX_LUMP >> halvings } else { 0 };
    let bytes = ((rate >> LUMP_SHIFT) + more).min(MAX_LUMP);
    (bytes / u64::from(mss.max(1))).max(MIN_LUMP) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lump_is_what_a_millisecond_sends_and_on_a_short_path_more() {
        let ms = Duration::from_millis;
        assert_eq!(lump(1_000_000, 1448, Some(ms(20))), 2, "at least two segments");
        assert_eq!(lump(1448 << 14, 1448, Some(ms(20))), 16);
        assert_eq!(lump(1448 << 14, 1448, None), 16);
        assert_eq!(lump(1448 << 20, 1448, Some(ms(20))), 45, "at most a whole packet");
        // 65,215 bytes, halved once for each 512 us: 2 times at 1.1 ms.
        assert_eq!(lump(0, 1448, Some(Duration::from_micros(1_100))), 11);
        assert_eq!(lump(0, 1448, Some(ms(0))), 45);
    }

    use hopcast_core::{Buffer, Seed};

    use crate::tcp::Congestion;
    use crate::tcp::controls;
    use crate::tcp::counters::Counters;
    use crate::tcp::timer::Deadlines;

    const MSS: u32 = 1000;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + 1000 * us)
    }

    /// One with a window of 30 segments and a round trip of 100 ms, which has sent `sent` of them at 1 s.
    fn sender(sent: u32) -> Sender {
        let reno = controls::control(Congestion::Reno, at(0), Seed::new(1, 0).stream(&["lump"], 0));
        let mut sender = Sender::new(1, MSS, 30, Duration::from_millis(200), reno);
        let rtt = Duration::from_millis(100);
        sender.rtt.sample(rtt, 1, 1);
        sender.rtt.note_min(at(0), rtt);
        sender.begin(at(0), 1, 1 << 30);
        sender.buffer.write(Buffer::zeroed((sent * MSS) as usize));
        sender.send(at(0), &mut Deadlines::default(), &mut Counters::default());
        assert_eq!(sender.board.in_flight(), sent);
        sender.buffer.write(Buffer::zeroed(100_000));
        sender
    }

    #[test]
    fn the_pace_is_two_windows_a_round_trip_in_slow_start_and_a_fifth_more_than_one_after_it() {
        // Linux `tcp_update_pacing_rate`: tcp_pacing_ss_ratio below half of the threshold, tcp_pacing_ca_ratio.
        let mut sender = sender(30);
        assert_eq!(sender.pacing_rate(), 30 * 1000 * 10 * 2);
        sender.window.threshold = 62;
        assert_eq!(sender.pacing_rate(), 30 * 1000 * 10 * 2);
        sender.window.threshold = 61;
        assert_eq!(sender.pacing_rate(), 30 * 1000 * 10 * 12 / 10);
    }

    #[test]
    fn less_than_a_lump_waits_for_an_acknowledgement_that_is_near() {
        // Linux `tcp_tso_should_defer`. The acknowledgement of what was sent at 1 s is due 100 ms later.
        let lump_at = |sent, us, threshold| {
            let mut sender = sender(sent);
            // So that a lump is larger than what the window admits.
            sender.rtt.note_min(at(0), Duration::from_micros(100));
            sender.window.note_sent(at(us));
            sender.window.threshold = threshold;
            sender.lump(at(us)).is_ok()
        };
        assert!(!lump_at(21, 99_500, 10), "nine segments are less than a third of the window");
        assert!(lump_at(20, 99_500, 10), "a third is sent");
        assert!(!lump_at(25, 99_000, 10), "a millisecond away");
        assert!(lump_at(25, 98_999, 10), "further away");
        let mut late = sender(25);
        late.rtt.note_min(at(0), Duration::from_micros(100));
        late.window.note_sent(at(99_000));
        assert!(late.lump(at(100_000)).is_err(), "sent a millisecond ago");
        assert!(late.lump(at(100_001)).is_ok(), "longer ago");
    }

    #[test]
    fn the_smaller_of_the_windows_decides_what_is_always_sent_and_which_of_them_limits() {
        let held = |sent, peer_window| {
            let mut sender = sender(sent);
            sender.rtt.note_min(at(0), Duration::from_micros(100));
            sender.window.note_sent(at(99_500));
            sender.peer_window = peer_window;
            sender.lump(at(99_500)).err()
        };
        assert_eq!(held(25, 1 << 30), Some(HeldBy::Congestion), "room for 5 of 30 segments");
        // Of 12,000 bytes a third is 4,000.
        assert_eq!(held(9, 12_000), Some(HeldBy::Receiver), "the receiver has room for 3");
        assert_eq!(held(8, 12_000), None, "for 4");
        assert_eq!(held(25, 30_001), Some(HeldBy::Congestion));
        assert_eq!(held(25, 30_000), Some(HeldBy::Receiver), "as Linux has it where both are the same");
    }
}
