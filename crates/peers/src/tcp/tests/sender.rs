//! A sender's reactions to single acknowledgements: each is given to it as a peer would word it.

use hopcast_core::{Buffer, Duration, Instant, Seed};

use crate::tcp::Congestion;
use crate::tcp::congestion::Phase;
use crate::tcp::controls;
use crate::tcp::counters::Counters;
use crate::tcp::sender::{Ack, Sender};
use crate::tcp::timeouts::Verdict;
use crate::tcp::timer::{Deadlines, Timer};

/// Payload of a segment in bytes. Byte 0 is the SYN.
const MSS: u64 = 1000;

/// A sender over a path of 100 ms.
struct Line {
    sender: Sender,
    timers: Deadlines,
    counters: Counters,
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// The first byte of the segment of this number.
fn start(segment: u64) -> u64 {
    1 + segment * MSS
}

impl Line {
    /// With Reno and a window of `segments`, all of which it sends at 1 s.
    fn new(segments: u64) -> Self {
        let mut line = Self::idle(segments, 100, 1 << 30);
        line.write(1000, segments);
        assert_eq!(u64::from(line.sender.board.len()), segments);
        line
    }

    /// One that has sent nothing yet, over a round trip of `rtt` ms, to a peer that offers `offered` bytes.
    fn idle(segments: u64, rtt: u64, offered: u64) -> Self {
        let reno = controls::control(Congestion::Reno, at(0), Seed::new(1, 0).stream(&["line"], 0));
        let mut sender = Sender::new(1, MSS as u32, segments as u32, Duration::from_millis(200), reno);
        let rtt = Duration::from_millis(rtt);
        sender.rtt.sample(rtt, 1, 1);
        sender.rtt.note_min(at(900), rtt);
        sender.begin(at(1000), 1, offered);
        Self { sender, timers: Deadlines::default(), counters: Counters::default() }
    }

    /// Writes `segments` segments more, and sends what may be sent.
    fn write(&mut self, ms: u64, segments: u64) {
        self.sender.buffer.write(Buffer::zeroed((segments * MSS) as usize));
        self.send(ms);
    }

    fn send(&mut self, ms: u64) {
        self.sender.send(at(ms), &mut self.timers, &mut self.counters);
    }

    /// Takes an acknowledgement of all before the segment `next`, with blocks in bytes.
    fn ack(&mut self, ms: u64, next: u64, sack: &[(u64, u64)], echoed: Option<u64>) {
        let ack = Ack {
            number: start(next),
            seq: 1,
            window: 1 << 30,
            carries_data: false,
            sack,
            echoed: echoed.map(at),
        };
        self.sender.on_ack(at(ms), &ack, &mut self.timers, &mut self.counters);
    }

    /// The last five of ten segments are delivered at 1.1 s, and the first five sent again.
    fn repaired() -> Self {
        let mut line = Self::new(10);
        line.ack(1100, 0, &[(start(5), start(10))], Some(1000));
        assert_eq!((line.sender.recovery.phase, line.sender.board.lost_out()), (Phase::Recovery, 5));
        line.send(1100);
        assert_eq!((line.sender.board.retransmitted_out(), line.sender.window.size), (5, 5));
        line
    }
}

#[test]
fn blocks_that_were_never_sent_or_end_before_they_begin_say_nothing() {
    // Linux `tcp_is_sackblock_valid`.
    let end = start(10);
    for block in [(end - MSS, end + 1), (end, end + MSS), (start(6), start(6)), (start(7), start(6)), (1, 1)]
    {
        let mut line = Line::new(10);
        line.ack(1100, 0, &[block], None);
        assert_eq!((line.sender.board.sacked_out(), line.sender.rate.delivered), (0, 0), "{block:?}");
    }
    let mut line = Line::new(10);
    line.ack(1100, 0, &[(end - MSS, end)], None);
    assert_eq!(
        (line.sender.board.sacked_out(), line.sender.rate.delivered),
        (1, 1),
        "up to the last byte sent"
    );
    // Behind the first, which may be a duplicate's, a block of what is acknowledged is a stale one.
    line.ack(1100, 2, &[(end - MSS, end), (start(0), start(1))], None);
    assert_eq!((line.sender.board.sacked_out(), line.sender.rate.delivered), (1, 3));
}

#[test]
fn reordering_is_as_far_as_a_segment_was_overtaken_and_300_at_most() {
    // Linux `tcp_check_sack_reordering`: from the late segment to the end of the highest delivered.
    let mut line = Line::new(400);
    let mut reordering = |segment| {
        line.ack(1100, 0, &[(start(segment), start(segment + 1))], None);
        line.sender.recovery.reordering
    };
    assert_eq!(reordering(20), 3);
    assert_eq!(reordering(18), 3);
    assert_eq!(reordering(10), 11);
    assert_eq!(reordering(15), 11, "less than was known");
    assert_eq!(reordering(380), 11);
    assert_eq!(reordering(30), 300);
}

#[test]
fn where_reordering_is_common_selective_acknowledgements_let_the_window_grow() {
    // Linux `tcp_may_raise_cwnd`.
    for (reordering, size) in [(3, 10), (4, 11)] {
        let mut line = Line::new(10);
        line.sender.recovery.reordering = reordering;
        line.ack(1100, 0, &[(start(5), start(6))], None);
        assert_eq!((line.sender.recovery.phase, line.sender.window.size), (Phase::Disorder, size));
        line.ack(1100, 1, &[(start(5), start(6))], None);
        assert_eq!(line.sender.window.size, size + 1, "what is acknowledged cumulatively does anyway");
    }
}

#[test]
fn in_recovery_the_window_does_not_grow_beyond_what_the_reduction_says() {
    let mut line = Line::repaired();
    assert_eq!(line.sender.window.threshold, 5, "half of ten");
    line.ack(1200, 3, &[(start(5), start(10))], None);
    assert_eq!((line.sender.recovery.phase, line.sender.window.size), (Phase::Recovery, 5));
    line.ack(1200, 10, &[], None);
    assert_eq!((line.sender.recovery.phase, line.sender.window.size), (Phase::Open, 5));
}

#[test]
fn a_recovery_from_what_was_only_late_is_undone_by_the_timestamps() {
    // RFC 3522; Linux `tcp_try_undo_partial`: once nothing is in the network twice.
    let mut line = Line::repaired();
    line.ack(1101, 1, &[(start(5), start(10))], Some(1000));
    assert_eq!((line.counters.spurious_recoveries, line.sender.window.threshold), (0, 5));
    line.ack(1102, 5, &[(start(5), start(9))], Some(1000));
    // The ten of before, and in the slow start of before the four segments that this acknowledges.
    assert_eq!((line.counters.spurious_recoveries, line.sender.window.size), (1, 10 + 4));
    assert_eq!(line.sender.recovery.phase, Phase::Disorder);
    // An echo of the retransmission proves nothing.
    let mut line = Line::repaired();
    line.ack(1200, 5, &[(start(5), start(9))], Some(1100));
    assert_eq!((line.counters.spurious_recoveries, line.sender.recovery.phase), (0, Phase::Recovery));
}

#[test]
fn a_reduction_is_undone_when_the_peer_reports_all_that_was_sent_again_as_received_twice() {
    // RFC 3708; Linux `tcp_try_undo_dsack`, after the recovery as well as in it.
    for after in [false, true] {
        let mut line = Line::repaired();
        if after {
            line.ack(1200, 10, &[], None);
            line.write(1200, 10);
            assert_eq!(line.sender.window.size, 6, "the five that this acknowledged were a window");
            line.ack(1300, 10, &[(start(0), start(4))], None);
            assert_eq!((line.counters.spurious_recoveries, line.sender.window.size), (0, 6), "one is left");
            line.ack(1300, 10, &[(start(4), start(5))], None);
        } else {
            line.ack(1200, 5, &[(start(5), start(9))], None);
            line.ack(1200, 5, &[(start(0), start(5)), (start(5), start(9))], None);
        }
        assert_eq!((line.counters.spurious_recoveries, line.sender.window.size), (1, 10), "after: {after}");
        assert!(line.sender.recovery.phase <= Phase::Disorder);
    }
}

#[test]
fn the_window_is_that_of_the_newest_segment() {
    // RFC 9293 section 3.10.7.4: a later sequence number, or the same with a later acknowledgement.
    let mut line = Line::new(10);
    let mut window = |number, seq, window| {
        let ack = Ack { number: start(number), seq, window, carries_data: false, sack: &[], echoed: None };
        line.sender.on_ack(at(1100), &ack, &mut line.timers, &mut line.counters);
        line.sender.window_end()
    };
    assert_eq!(window(0, 5, 50_000), start(0) + 50_000);
    assert_eq!(window(0, 4, 60_000), start(0) + 50_000, "an older segment");
    assert_eq!(window(0, 5, 40_000), start(0) + 50_000, "as old, and it would shrink");
    assert_eq!(window(0, 5, 55_000), start(0) + 55_000);
    assert_eq!(window(1, 5, 20_000), start(1) + 20_000, "a later acknowledgement");
    assert_eq!(window(1, 6, 10_000), start(1) + 10_000, "a later segment");
    assert_eq!(window(0, 7, 90_000), start(1) + 10_000, "an older acknowledgement");
}

#[test]
fn a_tail_is_probed_for_after_two_round_trips_and_2_ms_and_a_lone_segment_later() {
    // RFC 8985 section 7.2; Linux TCP_TIMEOUT_MIN_US. 2 * 101 + 2 ms are 51 ticks of 4 ms, and a timer is a tick late.
    let mut line = Line::idle(10, 101, 1 << 30);
    line.write(1000, 10);
    assert_eq!(line.timers.get(Timer::LossProbe), Some(at(4 * (250 + 51 + 1))));
    // For a lone one 200 ms more, but not later than the timeout of 3 * 101 ms, 76 ticks, in a slot of 8.
    let mut line = Line::idle(10, 101, 1 << 30);
    line.write(1000, 1);
    assert_eq!(line.timers.get(Timer::LossProbe), Some(at(4 * 8 * ((250 + 76) / 8 + 1))));
    assert!(line.timers.get(Timer::Retransmission).is_none());
}

#[test]
fn what_reordering_may_delay_is_lost_after_a_quarter_of_a_round_trip_and_2_ms() {
    // RFC 8985 section 6.2; Linux `tcp_rack_mark_lost`: 25 + 2 ms are 7 ticks, 25 would be 7 as well, so at a round
    // trip of 104 ms: 26 + 2 ms are 7 ticks, and 26 + 4 are 8.
    let mut line = Line::idle(10, 104, 1 << 30);
    line.write(1000, 10);
    line.ack(1104, 0, &[(start(1), start(2))], None);
    assert_eq!(line.timers.get(Timer::Reordering), Some(at(1104 + 4 * (7 + 1))));
}

#[test]
fn a_closed_window_is_probed_fifteen_times() {
    // Linux `tcp_probe_timer`: tcp_retries2.
    let mut line = Line::idle(10, 100, 0);
    line.write(1000, 1);
    let mut probes = 0;
    while line.sender.on_persist(at(2000 + probes), &mut line.timers) == Verdict::Alive {
        probes += 1;
    }
    assert_eq!((probes, line.sender.outbox.len()), (15, 15));
}

#[test]
fn segments_are_at_most_half_of_the_largest_window() {
    // Linux `tcp_bound_to_half_wnd`.
    for (offered, len) in [(10_000, 1000), (1800, 900), (1000, 500)] {
        let mut line = Line::idle(10, 100, offered);
        line.sender.buffer.write(Buffer::zeroed(20_000));
        assert_eq!(line.sender.next_new(), Some((len, false)), "{offered} bytes offered");
    }
    let mut line = Line::idle(10, 100, 100);
    line.sender.buffer.write(Buffer::zeroed(20_000));
    assert_eq!(line.sender.next_new(), Some((68, false)), "the least segment");
}
