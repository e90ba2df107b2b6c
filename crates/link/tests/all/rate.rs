//! Serialisation: a frame takes its bits over the rate.
#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

use crate::common::*;
use hopcast_core::{Duration, Instant, Rate};
use hopcast_link::{Change, Config, Direction, Link, PointToPoint, Queue, QueueLimit};
use proptest::prelude::*;

fn at_rate(rate: Rate) -> Direction {
    let queue = Queue::DropTail { limit: QueueLimit::Packets(u32::MAX) };
    Direction { rate: Some(rate), queue, ..Direction::default() }
}

#[test]
fn a_long_row_of_frames_takes_exactly_its_bits_over_the_rate() {
    let rate = Rate::from_mbit(300);
    let mut link = both_ways(&at_rate(rate), 1);
    let said = run(&mut link, &row(30_000, 1_514, Duration::ZERO), END);
    assert_eq!(said.last().unwrap().0, Instant::ZERO + rate.time_for(30_000 * 1_514));
    assert_eq!(link.counters(END, 0, 1).busy, rate.time_for(30_000 * 1_514));
}

proptest! {
    #[test]
    fn frames_leave_as_lindleys_recursion_says(
        frames in proptest::collection::vec((0u64..100_000, 14usize..1_500), 1..200),
        rate in 1_000_000u64..10_000_000_000,
        delay in 0u64..1_000_000,
    ) {
        let rate = Rate::from_bits_per_sec(rate);
        let delay = Duration::from_nanos(delay);
        let mut link = both_ways(&Direction { delay, ..at_rate(rate) }, 1);
        let (mut now, mut free, mut carry) = (Instant::ZERO, Instant::ZERO, 0);
        let (mut actions, mut expected, mut queued) = (Vec::new(), Vec::new(), Duration::ZERO);
        for (i, (pause, len)) in frames.into_iter().enumerate() {
            now += Duration::from_nanos(pause);
            actions.push((now, Action::Offer(0, frame(i as u64, len))));
            queued += free.since(now);
            free = now.max(free) + rate.time_with_carry(len as u64, &mut carry);
            expected.push((free + delay, i as u64));
        }
        let said = run(&mut link, &actions, END);
        prop_assert_eq!(deliveries(&said, 1), expected);
        prop_assert_eq!(link.counters(END, 0, 1).queued, queued);
    }

    #[test]
    fn a_link_is_never_busier_than_all_the_time(at in 0u64..3_000_000) {
        let mut link = both_ways(&at_rate(Rate::from_mbit(10)), 1);
        let said = run(&mut link, &row(2, 1_250, Duration::ZERO), nanos(at));
        let busy = link.counters(nanos(at), 0, 1).busy;
        // Two frames of a millisecond each: exact in the middle of a frame as well.
        prop_assert_eq!(busy, Duration::from_nanos(at.min(2_000_000)));
        prop_assert_eq!(said.len() as u64, (at / 1_000_000).min(2));
    }
}

#[test]
fn each_direction_has_a_rate_of_its_own() {
    let config = Config {
        forward: at_rate(Rate::from_mbit(10)),
        backward: at_rate(Rate::from_mbit(1)),
        ..Config::default()
    };
    let mut link = PointToPoint::new(config, streams(1));
    let offers = [0, 1].map(|from| (millis(0), Action::Offer(from, frame(from as u64, 1_250))));
    let said = run(&mut link, &offers, END);
    assert_eq!(deliveries(&said, 1), [(millis(1), 0)]);
    assert_eq!(deliveries(&said, 0), [(millis(10), 1)]);
}

#[test]
fn without_a_rate_a_frame_takes_no_time_and_the_queue_is_never_used() {
    let queue = Queue::DropTail { limit: QueueLimit::Packets(0) };
    let mut link = both_ways(&Direction { queue, ..Direction::default() }, 1);
    let said = run(&mut link, &row(1_000, 1_000, Duration::ZERO), Instant::ZERO);
    assert_eq!(said.len(), 1_000);
    let counters = link.counters(Instant::ZERO, 0, 1);
    assert_eq!((counters.busy, counters.queued, counters.queue_dropped_packets), Default::default());
}

#[test]
fn at_a_rate_of_zero_nothing_arrives_and_the_queue_fills() {
    let mut link = both_ways(&Direction { rate: Some(Rate::default()), ..Direction::default() }, 1);
    let said = run(&mut link, &row(1_500, 100, Duration::ZERO), END);
    assert!(said.is_empty());
    assert_eq!(link.deadline(), None);
    let counters = link.counters(END, 0, 1);
    assert_eq!((counters.queue_dropped_packets, counters.busy), (500, Duration::ZERO));
}

#[test]
fn a_frame_in_serialisation_finishes_at_the_old_rate() {
    let mut link = both_ways(&at_rate(Rate::from_mbit(10)), 1);
    let mut actions = row(3, 1_250, Duration::ZERO);
    actions.push((micros(500), Action::Change(Some(0), Change::Rate(Some(Rate::from_mbit(1))))));
    let said = run(&mut link, &actions, END);
    assert_eq!(deliveries(&said, 1), [(millis(1), 0), (millis(11), 1), (millis(21), 2)]);
}

#[test]
fn what_waits_at_a_rate_of_zero_goes_on_when_the_rate_returns() {
    let mut link = both_ways(&at_rate(Rate::from_mbit(10)), 1);
    let mut actions = row(3, 1_250, Duration::ZERO);
    actions.push((micros(500), Action::Change(None, Change::Rate(Some(Rate::default())))));
    actions.push((millis(100), Action::Change(None, Change::Rate(Some(Rate::from_mbit(10))))));
    actions.push((micros(100_500), Action::Change(None, Change::Rate(None))));
    let said = run(&mut link, &actions, END);
    assert_eq!(deliveries(&said, 1), [(millis(1), 0), (millis(101), 1), (millis(101), 2)]);
}
