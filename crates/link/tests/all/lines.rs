//! Stations with radios and a line of its own for each pair.

use std::sync::{Arc, Mutex};

use crate::common::radios::*;
use crate::common::*;
use hopcast_core::{Buffer, Duration, Instant, Rate};
use hopcast_link::{
    Attachment, Change, Direction, DropReason, Event, Link, Mac, Medium, MediumConfig, Queue, QueueLimit,
    QueueSnapshot, Station,
};

/// 8,000 bits: a millisecond at 8 Mbit/s.
const LEN: usize = 1_000;
const DELAY: Duration = Duration::from_millis(1);

fn config(
    stations: usize,
    air: impl Fn(Instant, Attachment, Attachment) -> Option<(u64, f64)> + Send + Sync + 'static,
) -> MediumConfig {
    let config = with_radios(stations, Mac::EthernetLike, air);
    MediumConfig { direction: Direction { delay: DELAY, ..config.direction }, ..config }
}

fn link(
    stations: usize,
    air: impl Fn(Instant, Attachment, Attachment) -> Option<(u64, f64)> + Send + Sync + 'static,
) -> Medium {
    let mut link = medium(config(stations, air), 1);
    link.report_sent(true);
    link
}

fn time(mbit: u64) -> Duration {
    Rate::from_mbit(mbit).time_for(LEN as u64)
}

fn arrivals(said: &Said) -> Vec<(Instant, Attachment, Attachment, u64)> {
    let arrival = |(at, event): &(Instant, Event)| match event {
        Event::Delivered { from, to, frame, .. } => Some((*at, *from, *to, id(frame))),
        _ => None,
    };
    said.iter().filter_map(arrival).collect()
}

fn drops(said: &Said) -> Vec<(Attachment, Option<Attachment>, u64, DropReason)> {
    let dropped = |(_, event): &(Instant, Event)| match event {
        Event::Dropped { from, to, frame, reason } => Some((*from, *to, id(frame), *reason)),
        _ => None,
    };
    said.iter().filter_map(dropped).collect()
}

fn offer(at: Instant, from: Attachment, frame: Buffer) -> (Instant, Action) {
    (at, Action::Offer(from, frame))
}

#[test]
fn pairs_do_not_disturb_each_other() {
    let mut link = link(3, |_, from, to| Some(([[0, 64, 16], [8, 0, 64], [64, 1, 0]][from][to], 0.0)));
    let pairs = || (0..3).flat_map(|from| (0..3).map(move |to| (from, to))).filter(|(from, to)| from != to);
    let offers: Vec<_> =
        pairs().map(|(from, to)| offer(millis(1), from, radios_to(to, (10 * from + to) as u64))).collect();
    let said = run(&mut link, &offers, END);
    let mut expected: Vec<_> = pairs()
        .map(|(from, to)| {
            let mbit = [[0, 64, 16], [8, 0, 64], [64, 1, 0]][from][to];
            (millis(1) + time(mbit) + DELAY, from, to, (10 * from + to) as u64)
        })
        .collect();
    expected.sort();
    assert_eq!(arrivals(&said), expected);
}

fn radios_to(destination: usize, id: u64) -> Buffer {
    to(destination as u8, id, LEN)
}

#[test]
fn a_frame_to_a_group_reaches_all_in_range_each_at_its_own_rate_and_is_sent_once() {
    let mut link = link(4, |_, from, to| {
        [Some((64, 0.0)), Some((1, 0.0)), None][[0, 0, 1, 2][to]].filter(|_| from == 0)
    });
    let said = run(&mut link, &[offer(millis(1), 0, frame(7, LEN))], END);
    assert_eq!(
        arrivals(&said),
        [(millis(1) + time(64) + DELAY, 0, 1, 7), (millis(1) + time(1) + DELAY, 0, 2, 7)]
    );
    let sent: Vec<_> = said.iter().filter(|(_, event)| matches!(event, Event::Sent { .. })).collect();
    assert_eq!((sent.len(), sent[0].0), (1, millis(1)));
    let counters = link.sender_counters(END, 0);
    assert_eq!((counters.sent_packets, counters.sent_bytes), (1, LEN as u64));
    assert_eq!(counters.busy, time(64) + time(1));
    assert_eq!([1, 2, 3].map(|to| link.counters(END, 0, to).sent_packets), [1, 1, 0]);
    assert_eq!([1, 2, 3].map(|to| link.counters(END, 0, to).delivered_packets), [1, 1, 0]);
}

#[test]
fn each_line_has_a_queue_of_its_own() {
    let limit = QueueLimit::Packets(2);
    let config = config(3, |_, _, _| Some((8, 0.0)));
    let direction = Direction { queue: Queue::DropTail { limit }, ..config.direction };
    let mut link = medium(MediumConfig { direction, ..config }, 1);
    link.report_sent(true);
    let mut offers: Vec<_> = (0..4).map(|id| offer(millis(0), 0, radios_to(1, id))).collect();
    offers.push(offer(millis(0), 0, radios_to(2, 4)));
    offers.push(offer(millis(0), 0, frame(5, LEN)));
    for (_, action) in &offers {
        let Action::Offer(from, frame) = action else { continue };
        link.offer(Instant::ZERO, *from, frame.clone());
    }
    assert_eq!(link.backlog(millis(0), 0), QueueSnapshot { frames: 3, bytes: 3_000, down: false });
    let mut said = Vec::new();
    drain(&mut link, Instant::ZERO, &mut said);
    wake_until(&mut link, END, &mut said);
    assert_eq!(
        arrivals(&said),
        [(2, 1, 0), (2, 2, 4), (3, 1, 1), (3, 2, 5), (4, 1, 2)].map(|(ms, to, id)| (millis(ms), 0, to, id))
    );
    // One never left; of the other a copy did.
    let full = DropReason::QueueFull;
    assert_eq!(drops(&said), [(0, None, 3, full), (0, Some(1), 5, full)]);
    assert_eq!(link.counters(END, 0, 1).queue_dropped_packets, 2);
    assert_eq!(link.counters(END, 0, 2).queue_dropped_packets, 0);
    assert_eq!(link.sender_counters(END, 0).queue_dropped_packets, 2);
    // The second waits 1 ms and the third 2 ms; on the other line the copy waits 1 ms.
    assert_eq!(link.sender_counters(END, 0).queued, Duration::from_millis(4));
}

#[test]
fn the_rate_is_that_of_the_first_bit_and_the_loss_that_of_the_last() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let mut link = link(2, move |now, _, _| {
        log.lock().unwrap().push(now);
        // Nearly all is lost from 3 to 4 ms; the rate rises at 1.5 ms.
        let loss = if (millis(3)..millis(4)).contains(&now) { 100.0 } else { 0.0 };
        Some((if now < micros(1_500) { 8 } else { 16 }, loss))
    });
    let offers: Vec<_> = (0..5).map(|id| offer(Instant::ZERO, 0, radios_to(1, id))).collect();
    let said = run(&mut link, &offers, END);
    // The second frame begins at 1 ms at the old rate; the fourth's last bit leaves at 3 ms, and the fifth's at 3.5 ms.
    assert_eq!(deliveries(&said, 1), [(millis(2), 0), (millis(3), 1), (micros(3_500), 2)]);
    assert_eq!(link.counters(END, 0, 1).lost_packets, 2);
    assert_eq!(drops(&said), [(0, Some(1), 3, DropReason::Lost), (0, Some(1), 4, DropReason::Lost)]);
    // As each is offered, and as each leaves.
    let times = [0, 0, 0, 0, 0, 1_000, 2_000, 2_500, 3_000, 3_500].map(micros);
    assert_eq!(*asked.lock().unwrap(), times);
}

#[test]
fn a_frame_for_who_hears_nothing_is_dropped_at_once() {
    let mut link = link(3, |_, from, to| (from + to == 1).then_some((8, 0.0)));
    let offers = [offer(millis(1), 0, radios_to(2, 0)), offer(millis(1), 0, radios_to(9, 1))];
    let said = run(&mut link, &offers, END);
    let unheard = DropReason::Unheard;
    assert_eq!(drops(&said), [(0, None, 0, unheard), (0, None, 1, unheard)]);
    let counters = link.sender_counters(END, 0);
    let figures = (counters.queue_dropped_packets, counters.busy, counters.sent_packets);
    assert_eq!(figures, (2, Duration::ZERO, 0));
    assert_eq!(link.counters(END, 0, 2).queue_dropped_packets, 1);
}

#[test]
fn of_a_station_that_gets_out_of_range_the_frame_under_way_and_those_that_wait_are_lost() {
    let mut link = link(2, |now, _, _| (now < micros(1_500) || now >= millis(8)).then_some((8, 0.0)));
    let mut offers: Vec<_> = (0..4).map(|id| offer(Instant::ZERO, 0, radios_to(1, id))).collect();
    offers.push(offer(millis(9), 0, radios_to(1, 4)));
    let said = run(&mut link, &offers, END);
    assert_eq!(deliveries(&said, 1), [(millis(2), 0), (millis(11), 4)]);
    let unheard = DropReason::Unheard;
    // The first of them had left; the others did not.
    assert_eq!(drops(&said), [(0, Some(1), 1, unheard), (0, None, 2, unheard), (0, None, 3, unheard)]);
    let counters = link.counters(END, 0, 1);
    assert_eq!((counters.sent_packets, counters.lost_packets, counters.queue_dropped_packets), (3, 1, 2));
    assert_eq!(counters.busy, Duration::from_millis(3));
}

#[test]
fn a_frame_to_an_unknown_address_goes_to_the_bridges_in_range() {
    let config = config(4, |_, _, to| (to != 3).then_some((8, 0.0)));
    let bridge = |(index, &station): (usize, &Station)| Station { promiscuous: index >= 2, ..station };
    let stations = config.stations.iter().enumerate().map(bridge).collect();
    let mut link = medium(MediumConfig { stations, ..config }, 1);
    link.report_sent(true);
    let offers = [offer(millis(0), 0, radios_to(9, 7)), offer(millis(0), 0, radios_to(1, 8))];
    let said = run(&mut link, &offers, END);
    // A frame to another does not come by: it is on another pair of beams.
    assert_eq!(arrivals(&said), [(millis(2), 0, 1, 8), (millis(2), 0, 2, 7)]);
    assert_eq!(link.counters(END, 0, 2).overheard_packets, 1);
    assert_eq!(link.sender_counters(END, 0).sent_packets, 2);
}

#[test]
fn a_station_that_goes_down_cuts_off_all_its_lines_and_still_receives() {
    let mut link = link(3, |_, _, _| Some((8, 0.0)));
    let actions = [
        offer(millis(0), 0, radios_to(1, 0)),
        offer(millis(0), 0, radios_to(2, 1)),
        offer(millis(0), 0, radios_to(2, 2)),
        offer(millis(0), 1, radios_to(0, 3)),
        (micros(500), Action::Change(Some(0), Change::Down)),
        offer(micros(700), 0, frame(4, LEN)),
        (micros(800), Action::Change(Some(0), Change::Up)),
        offer(micros(900), 0, radios_to(1, 5)),
    ];
    let said = run(&mut link, &actions, END);
    assert_eq!(arrivals(&said), [(millis(2), 1, 0, 3), (micros(2_900), 0, 1, 5)]);
    let down = DropReason::Down;
    assert_eq!(
        drops(&said),
        [(0, None, 0, down), (0, None, 1, down), (0, None, 2, down), (0, None, 4, down)]
    );
    let counters = link.sender_counters(END, 0);
    assert_eq!((counters.queue_dropped_packets, counters.sent_packets), (4, 1));
    assert_eq!(counters.busy, micros(2_000).since(Instant::ZERO));
    assert_eq!(link.deadline(), None);
}

#[test]
fn changes_apply_to_lines_in_use_and_to_those_to_come() {
    let mut link = link(3, |_, _, _| Some((8, 0.0)));
    let actions = [
        offer(millis(0), 0, radios_to(1, 0)),
        (millis(5), Action::Change(None, Change::Delay(Duration::from_millis(7)))),
        (millis(5), Action::Change(None, Change::Mtu(1_200))),
        offer(millis(10), 0, radios_to(1, 1)),
        offer(millis(10), 0, radios_to(2, 2)),
        offer(millis(10), 0, to(2, 3, 1_215)),
    ];
    let said = run(&mut link, &actions, END);
    let times = [(millis(2), 0, 1, 0), (millis(18), 0, 1, 1), (millis(18), 0, 2, 2)];
    assert_eq!(arrivals(&said), times);
    assert_eq!(drops(&said), [(0, None, 3, DropReason::TooBig)]);
}

#[test]
fn each_line_loses_its_share_on_its_own() {
    let n = 100_000u64;
    let mut link = medium(config(3, |_, _, _| Some((64, 0.2))), 1);
    let said = run(&mut link, &row(n, 100, Duration::from_millis(1)), END);
    let expected = 0.002 * n as f64;
    let lost = [1, 2].map(|to| {
        let heard: std::collections::BTreeSet<u64> =
            deliveries(&said, to).into_iter().map(|(_, id)| id).collect();
        let lost: Vec<u64> = (0..n).filter(|id| !heard.contains(id)).collect();
        assert!((lost.len() as f64 - expected).abs() < 4.0 * expected.sqrt(), "{} of {expected}", lost.len());
        lost
    });
    assert!(lost[0].iter().filter(|id| lost[1].contains(id)).count() < 10);
}

#[test]
fn a_frame_on_a_line_costs_one_wake() {
    let mut link = medium(config(2, |_, _, _| Some((8, 0.0))), 1);
    link.offer(millis(0), 0, radios_to(1, 0));
    assert_eq!(link.deadline(), Some(millis(2)));
    let mut said = Vec::new();
    link.wake(millis(2));
    drain(&mut link, millis(2), &mut said);
    assert_eq!((deliveries(&said, 1), link.deadline()), (vec![(millis(2), 0)], None));
}
