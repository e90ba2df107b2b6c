//! Drop-tail: what arrives at a full queue is dropped, and nothing else.

use crate::common::*;
use hopcast_core::{Bytes, Duration, Rate};
use hopcast_link::{
    Change, Direction, DropReason, Event, Link, MediumConfig, Queue, QueueLimit, QueueSnapshot, Station,
};
use proptest::prelude::*;

fn with_limit(limit: QueueLimit) -> Direction {
    Direction { rate: Some(Rate::from_mbit(10)), queue: Queue::DropTail { limit }, ..Direction::default() }
}

fn dropped(said: &Said, because: DropReason) -> Vec<u64> {
    let dropped = said.iter().filter_map(|(_, event)| match event {
        Event::Dropped { frame, reason, to: None, .. } if *reason == because => Some(id(frame)),
        _ => None,
    });
    dropped.collect()
}

#[test]
fn a_queue_of_packets_holds_so_many_and_the_frame_in_serialisation_does_not_count() {
    let mut link = both_ways(&with_limit(QueueLimit::Packets(5)), 1);
    link.report_sent(true);
    let said = run(&mut link, &row(10, 1_250, Duration::ZERO), END);
    assert_eq!(dropped(&said, DropReason::QueueFull), [6, 7, 8, 9]);
    assert_eq!(deliveries(&said, 1).len(), 6);
}

#[test]
fn a_queue_of_bytes_holds_so_many_and_a_small_frame_may_find_room_where_a_large_one_does_not() {
    let mut link = both_ways(&with_limit(QueueLimit::Bytes(Bytes::new(2_600))), 1);
    link.report_sent(true);
    let sizes = [1_250, 1_250, 1_250, 1_250, 100, 100];
    let offers: Vec<_> =
        (0..).zip(sizes).map(|(i, len)| (millis(0), Action::Offer(0, frame(i, len)))).collect();
    let said = run(&mut link, &offers, END);
    assert_eq!(dropped(&said, DropReason::QueueFull), [3, 5]);
}

#[test]
fn by_default_a_thousand_packets_wait() {
    let mut link = both_ways(&Direction { rate: Some(Rate::from_mbit(10)), ..Direction::default() }, 1);
    let said = run(&mut link, &row(2_000, 1_250, Duration::ZERO), END);
    assert_eq!(said.len(), 1_001);
    assert_eq!(link.counters(END, 0, 1).queue_dropped_packets, 999);
}

#[test]
fn room_is_made_as_a_frame_leaves_even_at_the_same_instant() {
    let mut link = both_ways(&with_limit(QueueLimit::Packets(1)), 1);
    let mut offers = row(2, 1_250, Duration::ZERO);
    offers.push((millis(1), Action::Offer(0, frame(2, 1_250))));
    assert_eq!(run(&mut link, &offers, END).len(), 3);
}

#[test]
fn a_frame_larger_than_the_mtu_is_dropped_and_one_just_as_large_is_not() {
    let mut link = both_ways(&Direction { mtu: 1_400, ..Direction::default() }, 1);
    link.report_sent(true);
    let offers = [1_414, 1_415].map(|len| (millis(0), Action::Offer(0, frame(len as u64, len))));
    let said = run(&mut link, &offers, END);
    assert_eq!(deliveries(&said, 1), [(millis(0), 1_414)]);
    assert_eq!(dropped(&said, DropReason::TooBig), [1_415]);
}

proptest! {
    #[test]
    fn no_frame_waits_longer_than_a_full_queue_takes(
        limit in 0u32..20,
        offers in proptest::collection::vec(0u64..2_000_000, 1..200),
    ) {
        let mut link = both_ways(&with_limit(QueueLimit::Packets(limit)), 1);
        let mut now = 0;
        let offers: Vec<_> = offers.iter().enumerate().map(|(i, pause)| {
            now += pause;
            (nanos(now), Action::Offer(0, frame(i as u64, 1_250)))
        }).collect();
        let said = run(&mut link, &offers, END);
        for (at, id) in deliveries(&said, 1) {
            // Behind one frame in serialisation and a full queue, each of a millisecond.
            prop_assert!(at.since(offers[id as usize].0) <= Duration::from_millis(u64::from(limit) + 1));
        }
        let counters = link.counters(END, 0, 1);
        prop_assert_eq!(counters.sent_packets + counters.queue_dropped_packets, offers.len() as u64);
    }
}

#[test]
fn the_backlog_is_what_waits_at_that_moment_and_whether_the_attachment_is_down() {
    let station = |number| Station { address: [2, 0, 0, 0, 0, number], ..Station::default() };
    let direction = Direction { rate: Some(Rate::from_mbit(10)), ..Direction::default() };
    let shared = MediumConfig {
        direction: direction.clone(),
        stations: vec![station(0), station(1)],
        ..MediumConfig::default()
    };
    let links: [Box<dyn Link>; 2] = [Box::new(both_ways(&direction, 1)), Box::new(medium(shared, 1))];
    for mut link in links {
        let size = |frames: u64, down| QueueSnapshot { frames, bytes: frames * 1_250, down };
        for number in 0..4 {
            link.offer(millis(0), 0, frame(number, 1_250));
        }
        // A millisecond each; the first is being sent, and nobody has woken the link since.
        assert_eq!(link.backlog(millis(0), 0), size(3, false));
        assert_eq!(link.backlog(micros(1_999), 0), size(2, false));
        assert_eq!(link.backlog(millis(2), 0), size(1, false));
        assert_eq!(
            (link.backlog(millis(2), 1), link.backlog(millis(2), 9)),
            (size(0, false), size(0, false))
        );
        link.change(millis(2), Some(0), &Change::Down);
        assert_eq!((link.backlog(millis(2), 0), link.backlog(millis(2), 1)), (size(0, true), size(0, false)));
        link.change(millis(3), None, &Change::Up);
        assert_eq!(link.backlog(millis(3), 0), size(0, false));
    }
}
