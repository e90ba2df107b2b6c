//! CoDel on a link. That each decision is the RFC's is tested in `src/codel/tests.rs`.

use crate::common::*;
use hopcast_core::{Duration, Rate};
use hopcast_link::{Change, Counters, Direction, DropReason, Event, Link, PointToPoint, Queue, QueueLimit};

/// 10 Mbit/s: 1,250 bytes take a millisecond.
fn link() -> PointToPoint {
    let queue = Queue::CoDel {
        limit: QueueLimit::Packets(10_000),
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
    };
    both_ways(&Direction { rate: Some(Rate::from_mbit(10)), queue, ..Direction::default() }, 1)
}

/// The counts from `from` s to `to` s under a load of one frame every `apart`.
fn counted(apart: Duration, from: u64, to: u64) -> (Counters, Counters) {
    let mut link = link();
    let row = row(Duration::from_secs(to).as_nanos() / apart.as_nanos(), 1_250, apart);
    let (early, late): (Vec<_>, Vec<_>) = row.into_iter().partition(|(at, _)| *at <= millis(from * 1_000));
    run(&mut link, &early, millis(from * 1_000));
    let before = link.counters(millis(from * 1_000), 0, 1);
    run(&mut link, &late, millis(to * 1_000));
    (before, link.counters(millis(to * 1_000), 0, 1))
}

/// The delay per frame and the busy share of the line from 20 s to 60 s, under a sender of additive increase and
/// multiplicative decrease (one frame more each round trip, half after a drop) whose round trip is 40 ms without queue.
fn under_a_responsive_sender(link: &mut PointToPoint) -> (f64, f64) {
    link.report_sent(true);
    let (mut window, mut in_flight, mut next, mut halved) = (10.0, 0.0, 0, 0);
    let mut signals = std::collections::VecDeque::new();
    let mut before = Counters::default();
    for step in 0..60_000 {
        let mut said = Vec::new();
        wake_until(link, millis(step), &mut said);
        while f64::max(window, 1.0) > in_flight {
            link.offer(millis(step), 0, frame(next, 1_250));
            drain(link, millis(step), &mut said);
            next += 1;
            in_flight += 1.0;
        }
        for (_, event) in said {
            match event {
                Event::Delivered { .. } => signals.push_back((step + 40, false)),
                Event::Dropped { .. } => signals.push_back((step + 40, true)),
                Event::Sent { .. } | Event::Status { .. } => {}
            }
        }
        while let Some((_, drop)) = signals.pop_front_if(|(due, _)| *due <= step) {
            in_flight -= 1.0;
            if !drop {
                window += 1.0 / window;
            } else if step > halved + 40 {
                (window, halved) = (window / 2.0, step);
            }
        }
        if step == 20_000 {
            before = link.counters(millis(step), 0, 1);
        }
    }
    let after = link.counters(millis(60_000), 0, 1);
    let frames = (after.sent_packets - before.sent_packets) as f64;
    let queued = (after.queued.as_millis_f64() - before.queued.as_millis_f64()) / frames;
    (queued, (after.busy.as_millis_f64() - before.busy.as_millis_f64()) / 40_000.0)
}

#[test]
fn the_standing_queue_of_a_responsive_sender_is_held_near_the_target() {
    let (delay_ms, busy) = under_a_responsive_sender(&mut link());
    assert!((1.0..10.0).contains(&delay_ms), "{delay_ms} ms for a target of 5 ms");
    // A single flow that halves its window over a queue far shorter than its round trip idles a little.
    assert!(busy > 0.8, "{busy}");
    // The same sender over a drop-tail queue of 200 frames keeps it rather full.
    let queue = Queue::DropTail { limit: QueueLimit::Packets(200) };
    let config = Direction { rate: Some(Rate::from_mbit(10)), queue, ..Direction::default() };
    let (bloated_ms, _) = under_a_responsive_sender(&mut both_ways(&config, 1));
    assert!(bloated_ms > 80.0, "{bloated_ms} ms");
}

#[test]
fn under_overload_that_does_not_respond_the_excess_is_dropped_and_the_delay_stays_bounded() {
    let (before, after) = counted(Duration::from_micros(900), 20, 60);
    let sent = after.sent_packets - before.sent_packets;
    let delay_ms = (after.queued.as_millis_f64() - before.queued.as_millis_f64()) / sent as f64;
    // CoDel is made for flows that respond: against 111 % that do not, its control law swings, within the interval.
    assert!(delay_ms < 100.0, "{delay_ms} ms");
    assert_eq!(after.busy.as_nanos() - before.busy.as_nanos(), 40_000_000_000, "the line was idle");
    let dropped = after.queue_dropped_packets - before.queue_dropped_packets;
    // The frames beyond the rate: a ninth of 40,000, give or take those that wait at either end of the window.
    assert!(dropped.abs_diff(4_444) < 150, "{dropped}");
}

#[test]
fn a_load_below_the_rate_loses_nothing() {
    let (_, after) = counted(Duration::from_micros(1_010), 1, 20);
    assert_eq!(after.queue_dropped_packets, 0);
}

#[test]
fn a_burst_that_drains_within_an_interval_loses_nothing() {
    let mut link = link();
    let mut actions = Vec::new();
    for burst in 0..50 {
        let frames = (0..90).map(|i| (millis(burst * 100), Action::Offer(0, frame(i, 1_250))));
        actions.extend(frames);
    }
    run(&mut link, &actions, END);
    assert_eq!(link.counters(END, 0, 1).queue_dropped_packets, 0);
}

#[test]
fn the_first_drop_comes_an_interval_after_the_delay_rose_above_target_and_hits_the_head() {
    let mut link = link();
    link.report_sent(true);
    let burst: Vec<_> = (0..400).map(|i| (millis(0), Action::Offer(0, frame(i, 1_250)))).collect();
    let said = run(&mut link, &burst, END);
    let drops: Vec<_> = said
        .iter()
        .filter_map(|(at, event)| match event {
            Event::Dropped { reason: DropReason::CoDel, frame, to: None, from: 0 } => Some((*at, id(frame))),
            _ => None,
        })
        .collect();
    // Frame 5 is the first to have waited 5 ms, at 5 ms. The RFC's control law: after 100 ms, 100/√2 ms, 100/√3 ms.
    assert_eq!(drops[0], (millis(105), 105));
    // 105 was dropped, and 106 sent in its place: each drop brings the head forward by one.
    let times: Vec<_> = drops.iter().take(4).map(|(at, _)| at.as_nanos().div_ceil(1_000_000)).collect();
    assert_eq!(times, [105, 205, 276, 334]);
}

#[test]
fn a_hard_limit_holds_whatever_codel_says() {
    let queue = Queue::CoDel {
        limit: QueueLimit::Packets(7),
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
    };
    let config = Direction { rate: Some(Rate::from_mbit(10)), queue, ..Direction::default() };
    let mut link = both_ways(&config, 1);
    link.report_sent(true);
    let burst: Vec<_> = (0..20).map(|i| (millis(0), Action::Offer(0, frame(i, 1_250)))).collect();
    let said = run(&mut link, &burst, END);
    let full = said
        .iter()
        .filter(|(_, e)| matches!(e, Event::Dropped { reason: DropReason::QueueFull, .. }))
        .count();
    assert_eq!(full, 20 - 1 - 7);
}

#[test]
fn a_queue_that_was_emptied_by_an_outage_starts_anew() {
    let mut link = link();
    let burst = |at| (0..200).map(move |i| (millis(at), Action::Offer(0, frame(i, 1_250))));
    let mut actions: Vec<_> = burst(0).collect();
    actions.push((millis(50), Action::Change(None, Change::Down)));
    actions.push((millis(60), Action::Change(None, Change::Up)));
    actions.extend(burst(100).take(90));
    run(&mut link, &actions, END);
    // 50 had left, the rest were there when the link went down; of the 90 none stood for an interval.
    assert_eq!(link.counters(END, 0, 1).queue_dropped_packets, 150);
    assert_eq!(link.counters(END, 0, 1).sent_packets, 140);
}
