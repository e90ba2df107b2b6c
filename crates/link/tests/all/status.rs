//! The state that a link reports to its users: how a frame was received, what became of it, and how good the link is.

use crate::common::*;
use FrameOutcome::{Acknowledged, Unacknowledged, Unsent};
use hopcast_core::{Buffer, Duration, FrameOutcome, Instant, Rate};
use hopcast_link::{
    Attachment, Change, Csma, Direction, Event, Link, Loss, Mac, Medium, MediumConfig, Queue, QueueLimit,
    Station,
};
use proptest::prelude::*;

fn radio(csma: Csma, queue: u32) -> Medium {
    let queue = Queue::DropTail { limit: QueueLimit::Packets(queue) };
    let station = |i| Station { address: [2, 0, 0, 0, 0, i], ..Station::default() };
    let config = MediumConfig {
        direction: Direction { rate: Some(Rate::from_mbit(12)), queue, ..Direction::default() },
        stations: (0..3).map(station).collect(),
        mac: Mac::Csma(csma),
        ..MediumConfig::default()
    };
    medium(config, 1)
}

fn to(destination: u8, id: u64) -> Buffer {
    let mut frame = frame(id, 1_000);
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, destination]);
    frame
}

/// When each status came, to whom, of which frame, and what it said.
fn statuses(said: &Said) -> Vec<(Instant, Attachment, u64, FrameOutcome, u32)> {
    let status = |(at, event): &(Instant, Event)| match event {
        Event::Status { from, status } => {
            Some((*at, *from, id(&status.bytes), status.outcome, status.transmissions))
        }
        _ => None,
    };
    said.iter().filter_map(status).collect()
}

fn outcomes(said: &Said) -> Vec<(u64, FrameOutcome, u32)> {
    statuses(said)
        .into_iter()
        .map(|(_, _, id, outcome, transmissions)| (id, outcome, transmissions))
        .collect()
}

#[test]
fn a_sender_that_asks_learns_of_each_frame_to_one_station_whether_it_was_acknowledged() {
    let csma = Csma { retries: 2, ..Csma::default() };
    let mut link = radio(csma.clone(), 100);
    link.report_status(0);
    let offers = [
        (millis(0), Action::Offer(0, to(1, 0))),
        // Nobody has this address, and nobody acknowledges what is for everyone.
        (millis(0), Action::Offer(0, to(9, 1))),
        (millis(0), Action::Offer(0, frame(2, 1_000))),
        // Another sender did not ask.
        (millis(50), Action::Offer(1, to(0, 3))),
    ];
    let said = run(&mut link, &offers, END);
    assert_eq!(outcomes(&said), [(0, Acknowledged, 1), (1, Unacknowledged, 3)]);
    // The acknowledgement comes after the frame has arrived.
    let arrived = deliveries(&said, 1)[0].0;
    assert_eq!(statuses(&said)[0].0, arrived + csma.sifs + csma.ack);
}

#[test]
fn a_frame_that_is_never_sent_has_a_status_too() {
    let mut link = radio(Csma::default(), 1);
    link.report_status(0);
    let mut actions: Vec<_> = (0..3).map(|i| (millis(0), Action::Offer(0, to(1, i)))).collect();
    // The first is on the air, the second waits, and for the third there is no room.
    actions.push((micros(300), Action::Change(None, Change::Down)));
    actions.push((millis(1), Action::Offer(0, to(1, 3))));
    let said = run(&mut link, &actions, END);
    let expected = [(2, Unsent, 0), (1, Unsent, 0), (0, Unacknowledged, 1), (3, Unsent, 0)];
    assert_eq!(outcomes(&said), expected);
}

#[test]
fn links_without_acknowledgements_report_nothing() {
    let direction = Direction::default();
    let mut wire = both_ways(&direction, 1);
    let stations = (0..2).map(|i| Station { address: [2, 0, 0, 0, 0, i], ..Station::default() }).collect();
    let mut schedule = medium(MediumConfig { stations, ..MediumConfig::default() }, 1);
    for link in [&mut wire as &mut dyn Link, &mut schedule] {
        link.report_status(0);
        let said = run(link, &[(millis(0), Action::Offer(0, to(1, 0)))], END);
        assert_eq!((said.len(), outcomes(&said)), (1, vec![]));
    }
}

#[test]
fn a_medium_tells_the_rate_at_which_a_frame_came_and_a_wire_tells_nothing() {
    let receptions = |said: &Said| -> Vec<_> {
        let reception = |(_, event): &(Instant, Event)| match event {
            Event::Delivered { reception, .. } => Some(*reception),
            _ => None,
        };
        said.iter().filter_map(reception).collect()
    };
    let slower = Action::Change(None, Change::Rate(Some(Rate::from_mbit(6))));
    // While the first is on the air, which ends as it began.
    let actions = [
        (millis(0), Action::Offer(0, to(1, 0))),
        (micros(300), slower),
        (millis(5), Action::Offer(0, to(1, 1))),
    ];
    let heard = receptions(&run(&mut radio(Csma::default(), 9), &actions, END));
    let rates: Vec<_> = heard.iter().map(|reception| reception.unwrap().rate.unwrap()).collect();
    assert_eq!(rates, [Rate::from_mbit(12), Rate::from_mbit(6)]);
    assert!(heard.iter().all(|reception| reception.unwrap().signal.is_none()));
    let said = run(&mut both_ways(&Direction::default(), 1), &actions, END);
    assert_eq!(receptions(&said), [None, None]);
}

#[test]
fn the_quality_of_a_link_is_what_it_delivers_in_the_long_run() {
    let csma = Csma { retries: 2, channel: Loss::Independent(percent(40.0)), ..Csma::default() };
    let n = 20_000;
    let mut link = radio(csma, 2 * n as u32);
    link.change(Instant::ZERO, Some(0), &Change::LossTo(1, Loss::Independent(percent(10.0))));
    let quality = link.quality(Instant::ZERO, 0, 1).unwrap();
    assert_eq!((quality.rate, quality.signal), (Some(Rate::from_mbit(12)), None));
    let offers: Vec<_> = (0..n)
        .flat_map(|i| [Action::Offer(0, to(1, i)), Action::Offer(0, frame(n + i, 500))])
        .map(|offer| (Instant::ZERO, offer))
        .collect();
    let heard = deliveries(&run(&mut link, &offers, END), 1);
    let share = |alone: bool| heard.iter().filter(|(_, id)| (*id < n) == alone).count() as f64 / n as f64;
    // Five standard errors.
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 0.018, "{found} {expected}");
    near(share(true), quality.delivery_with_retries.get());
    near(share(false), quality.delivery.get());
    near(quality.delivery.get(), 0.9 * 0.6);
    near(quality.delivery_with_retries.get(), 0.9 * (1.0 - 0.4f64.powi(3)));
}

#[test]
fn there_is_no_quality_to_a_station_that_nothing_reaches() {
    let mut link = radio(Csma::default(), 9);
    assert!(
        [(0, 0), (0, 3), (3, 0)].iter().all(|&(from, to)| link.quality(Instant::ZERO, from, to).is_none())
    );
    link.change(millis(1), Some(0), &Change::Down);
    assert!(link.quality(millis(1), 0, 1).is_none() && link.quality(millis(1), 1, 0).is_some());
    let mut wire = both_ways(&Direction { loss: Loss::Independent(percent(5.0)), ..Direction::default() }, 1);
    let quality = wire.quality(Instant::ZERO, 1, 0).unwrap();
    assert_eq!((quality.delivery, quality.delivery_with_retries), (percent(95.0), percent(95.0)));
    assert!(wire.quality(Instant::ZERO, 0, 0).is_none() && wire.quality(Instant::ZERO, 2, 0).is_none());
    wire.change(millis(1), None, &Change::Down);
    assert!(wire.quality(millis(1), 0, 1).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn statuses_change_nothing_else_and_each_frame_to_one_station_has_one(
        config in any::medium_config(), actions in any::actions(5),
    ) {
        let n = config.stations.len();
        let actions = up_to_an_end(actions, n);
        let (mut silent, mut telling) = (medium(config.clone(), 1), medium(config.clone(), 1));
        (0..n).for_each(|from| telling.report_status(from));
        let (less, mut more) = (run(&mut silent, &actions, END), run(&mut telling, &actions, END));
        let mut told: Vec<_> = statuses(&more).iter().map(|&(_, from, id, ..)| (from, id)).collect();
        more.retain(|(_, event)| !matches!(event, Event::Status { .. }));
        prop_assert_eq!(less, more);
        prop_assert_eq!(all_counters(&mut silent, END), all_counters(&mut telling, END));
        let mut expected: Vec<_> = actions.iter().filter_map(|(_, action)| match action {
            Action::Offer(from, frame) if frame[0] & 1 == 0 => Some((*from, id(frame))),
            _ => None,
        }).collect();
        told.sort_unstable();
        expected.sort_unstable();
        if config.mac == Mac::Perfect {
            expected.clear();
        }
        prop_assert_eq!(told, expected);
    }
}

#[test]
fn a_status_is_told_at_its_time_and_not_before() {
    let csma = Csma::default();
    let mut link = radio(csma.clone(), 9);
    link.report_status(0);
    link.offer(millis(1), 0, to(1, 0));
    let mut said = Vec::new();
    let done = Rate::from_mbit(12).time_for(1_000) + csma.overhead;
    wake_until(&mut link, millis(1) + csma.slot + done + Duration::from_nanos(1), &mut said);
    assert_eq!((deliveries(&said, 1).len(), statuses(&said).len()), (1, 0));
    let due = link.deadline().unwrap();
    wake_until(&mut link, due, &mut said);
    assert_eq!(outcomes(&said), [(0, Acknowledged, 1)]);
}
