//! Scheduled changes, outages among them.

use crate::common::*;
use hopcast_core::{Duration, Rate};
use hopcast_link::{Change, Direction, DropReason, Duplex, Event, Jitter, Link, Loss, Queue, QueueLimit};

/// 1,250 bytes take a millisecond, and then ten more to the far end.
fn slow() -> Direction {
    Direction { rate: Some(Rate::from_mbit(10)), delay: Duration::from_millis(10), ..Direction::default() }
}

fn all_lost() -> Change {
    Change::Loss(Loss::Independent(percent(100.0)))
}

fn changed(at_us: u64, change: Change) -> Vec<(hopcast_core::Instant, u64)> {
    let mut actions = row(4, 1_250, Duration::ZERO);
    actions.push((micros(at_us), Action::Change(Some(0), change)));
    deliveries(&run(&mut both_ways(&slow(), 1), &actions, END), 1)
}

#[test]
fn a_loss_model_applies_to_the_frames_that_leave_after_the_change() {
    // Frames leave at 1, 2, 3 and 4 ms.
    assert_eq!(changed(1_999, all_lost()), [(millis(11), 0)]);
    assert_eq!(changed(2_000, all_lost()), [(millis(11), 0), (millis(12), 1)]);
}

#[test]
fn a_delay_applies_to_the_frames_that_leave_after_the_change_and_keeps_the_order() {
    let longer = changed(2_000, Change::Delay(Duration::from_millis(30)));
    assert_eq!(longer, [(millis(11), 0), (millis(12), 1), (millis(33), 2), (millis(34), 3)]);
    let shorter = changed(2_000, Change::Delay(Duration::ZERO));
    assert_eq!(shorter, [(millis(11), 0), (millis(12), 1), (millis(12), 2), (millis(12), 3)]);
}

#[test]
fn jitter_applies_to_the_frames_that_leave_after_the_change() {
    let jittered = changed(2_000, Change::Jitter(Jitter::Uniform(Duration::from_millis(5))));
    assert_eq!(jittered[..2], [(millis(11), 0), (millis(12), 1)]);
    assert!(jittered[2].0 != millis(13) && jittered[3].0 != millis(14));
}

#[test]
fn shares_of_duplicates_and_of_corrupted_frames_can_change() {
    assert_eq!(changed(2_000, Change::Duplicate(percent(100.0))).len(), 6);
    let mut link = both_ways(&slow(), 1);
    let mut actions = row(4, 1_250, Duration::ZERO);
    actions.push((millis(1), Action::Change(None, Change::Corrupt(percent(100.0)))));
    run(&mut link, &actions, END);
    assert_eq!(link.counters(END, 0, 1).corrupted_packets, 3);
}

#[test]
fn an_outage_drops_what_waits_and_what_is_offered_but_what_has_left_arrives() {
    let mut link = both_ways(&slow(), 1);
    link.report_sent(true);
    let mut actions = row(4, 1_250, Duration::ZERO);
    actions.push((micros(1_500), Action::Change(None, Change::Down)));
    actions.push((millis(5), Action::Offer(0, frame(4, 1_250))));
    actions.push((millis(6), Action::Change(None, Change::Up)));
    actions.push((millis(7), Action::Offer(0, frame(5, 1_250))));
    let said = run(&mut link, &actions, END);
    assert_eq!(deliveries(&said, 1), [(millis(11), 0), (millis(18), 5)]);
    let dropped: Vec<_> = said
        .iter()
        .filter_map(|(at, event)| match event {
            Event::Dropped { reason: DropReason::Down, frame, to: None, .. } => Some((*at, id(frame))),
            _ => None,
        })
        .collect();
    let expected = [(micros(1_500), 1), (micros(1_500), 2), (micros(1_500), 3), (millis(5), 4)];
    assert_eq!(dropped, expected);
    let counters = link.counters(END, 0, 1);
    assert_eq!((counters.sent_packets, counters.queue_dropped_packets), (2, 4));
    // One whole frame, half of one, and one whole frame.
    assert_eq!(counters.busy, Duration::from_micros(2_500));
}

#[test]
fn a_new_queue_keeps_what_waits_and_judges_what_comes_from_then_on() {
    let drop_tail = |limit| Change::Queue(Queue::DropTail { limit: QueueLimit::Packets(limit) });
    let mut link = both_ways(&slow(), 1);
    // Of six frames at once one is sent and five wait, four of them beyond the new limit.
    let mut actions = row(6, 1_250, Duration::ZERO);
    actions.push((micros(100), Action::Change(Some(0), drop_tail(1))));
    actions.push((micros(200), Action::Offer(0, frame(6, 1_250))));
    // At 5.5 ms the last one of the five is being sent.
    actions.push((micros(5_500), Action::Offer(0, frame(7, 1_250))));
    actions.push((micros(5_600), Action::Offer(0, frame(8, 1_250))));
    actions.push((micros(5_700), Action::Change(Some(0), drop_tail(2))));
    actions.push((micros(5_800), Action::Offer(0, frame(9, 1_250))));
    let ids: Vec<u64> = deliveries(&run(&mut link, &actions, END), 1).iter().map(|(_, id)| *id).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4, 5, 7, 9]);
    // A discipline begins with what waits: CoDel drops of a queue that drop-tail would have let stand.
    let codel = Queue::CoDel {
        limit: QueueLimit::default(),
        target: Duration::from_millis(5),
        interval: Duration::from_millis(20),
    };
    let lost = |change: Option<Change>| {
        let mut link = both_ways(&slow(), 1);
        let mut actions = row(200, 1_250, Duration::ZERO);
        actions.extend(change.map(|change| (millis(1), Action::Change(None, change))));
        run(&mut link, &actions, END);
        link.counters(END, 0, 1).queue_dropped_packets
    };
    assert_eq!(lost(None), 0);
    assert!(lost(Some(Change::Queue(codel))) > 5);
}

#[test]
fn a_new_mtu_holds_for_what_is_offered_from_then_on() {
    let mut link = both_ways(&slow(), 1);
    let mut actions = row(2, 1_250, Duration::ZERO);
    actions.push((micros(100), Action::Change(None, Change::Mtu(1_235))));
    actions.push((micros(200), Action::Offer(0, frame(2, 1_250))));
    actions.push((micros(300), Action::Offer(0, frame(3, 1_249))));
    actions.push((micros(400), Action::Change(None, Change::Mtu(2_000))));
    actions.push((micros(500), Action::Offer(0, frame(4, 2_014))));
    let ids: Vec<u64> = deliveries(&run(&mut link, &actions, END), 1).iter().map(|(_, id)| *id).collect();
    assert_eq!(ids, [0, 1, 3, 4]);
    assert_eq!(link.counters(END, 0, 1).queue_dropped_packets, 1);
}

#[test]
fn whether_frames_overtake_others_can_change() {
    let jitter = Jitter::Uniform(Duration::from_millis(9));
    let jittered = Direction { jitter, ..slow() };
    let order = |start: bool, change: Option<bool>| {
        let mut link = both_ways(&Direction { reorder: start, ..jittered.clone() }, 1);
        let mut actions = row(60, 1_250, Duration::ZERO);
        actions.extend(change.map(|change| (micros(30_500), Action::Change(None, Change::Reorder(change)))));
        let ids = deliveries(&run(&mut link, &actions, END), 1).into_iter().map(|(_, id)| id);
        ids.collect::<Vec<u64>>()
    };
    let in_order =
        |ids: &[u64], of: std::ops::Range<u64>| ids.iter().filter(|id| of.contains(id)).is_sorted();
    let (kept, free) = (order(false, None), order(true, None));
    assert!(in_order(&kept, 0..60) && !in_order(&free, 0..30) && !in_order(&free, 30..60));
    let (freed, tamed) = (order(false, Some(true)), order(true, Some(false)));
    assert!(in_order(&freed, 0..30) && !in_order(&freed, 30..60), "{freed:?}");
    assert!(!in_order(&tamed, 0..30) && in_order(&tamed, 30..60), "{tamed:?}");
}

#[test]
fn a_change_of_one_direction_leaves_the_other_alone() {
    let mut link = both_ways(&slow(), 1);
    let mut actions = vec![(millis(0), Action::Change(Some(0), Change::Down))];
    actions.extend((0..10).map(|i| (millis(0), Action::Offer((i % 2) as usize, frame(i, 1_250)))));
    let said = run(&mut link, &actions, END);
    assert_eq!((deliveries(&said, 1).len(), deliveries(&said, 0).len()), (0, 5));
}

#[test]
fn when_the_sender_on_a_half_duplex_link_goes_down_the_other_starts_at_once() {
    let config = hopcast_link::Config { forward: slow(), backward: slow(), duplex: Duplex::Half };
    let mut link = hopcast_link::PointToPoint::new(config, streams(1));
    let actions = [
        (millis(0), Action::Offer(0, frame(0, 1_250))),
        (micros(100), Action::Offer(1, frame(1, 1_250))),
        (micros(500), Action::Change(Some(0), Change::Down)),
    ];
    assert_eq!(deliveries(&run(&mut link, &actions, END), 0), [(micros(11_500), 1)]);
}

#[test]
fn reasons_read_well_as_comments_of_a_capture() {
    use DropReason::*;
    let phrases = [QueueFull, CoDel, Lost, Down, HalfDuplex, TooBig].map(|reason| reason.to_string());
    assert_eq!(
        phrases,
        [
            "queue full",
            "dropped by CoDel",
            "lost on the link",
            "link down",
            "receiver was sending",
            "larger than the MTU"
        ]
    );
}
