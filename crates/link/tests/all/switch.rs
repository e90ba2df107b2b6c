//! A switched segment: lines of their own, replication, and losses at each listener.

use crate::common::*;
use hopcast_core::{Buffer, Duration, Fraction, Rate};
use hopcast_link::{Change, Direction, DropReason, Event, Link, Loss, PairLoss, Switch, SwitchConfig};

fn address(station: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, station as u8]
}

/// Stations with these rates, in Mbit/s.
fn config(rates: &[u64], loss: Loss) -> SwitchConfig {
    let direction =
        |&rate| Direction { rate: Some(Rate::from_mbit(rate)), loss: loss.clone(), ..Direction::default() };
    SwitchConfig {
        directions: rates.iter().map(direction).collect(),
        addresses: (0..rates.len()).map(address).collect(),
        ..SwitchConfig::default()
    }
}

fn stations(rates: &[u64]) -> Switch {
    switch(&config(rates, Loss::None), 1)
}

/// 1,250 bytes take a millisecond at 10 Mbit/s.
fn to(destination: usize, id: u64) -> Buffer {
    let mut frame = frame(id, 1_250);
    frame[..6].copy_from_slice(&address(destination));
    frame
}

#[test]
fn every_station_sends_at_its_own_rate_whatever_the_others_do() {
    let mut link = stations(&[10, 5, 10]);
    let mut actions = Vec::new();
    for id in 0..2 {
        actions.push((millis(0), Action::Offer(0, to(1, id))));
        actions.push((millis(0), Action::Offer(1, to(0, 10 + id))));
        actions.push((millis(0), Action::Offer(2, to(1, 20 + id))));
    }
    let said = run(&mut link, &actions, END);
    assert_eq!(deliveries(&said, 1), [(millis(1), 0), (millis(1), 20), (millis(2), 1), (millis(2), 21)]);
    assert_eq!(deliveries(&said, 0), [(millis(2), 10), (millis(4), 11)]);
}

#[test]
fn a_frame_to_one_station_reaches_it_alone_and_one_to_a_group_all_others() {
    let mut link = stations(&[10; 4]);
    let actions = [
        (millis(0), Action::Offer(2, to(0, 1))),
        (millis(0), Action::Offer(2, frame(2, 1_250))),
        // To nobody, to itself, and too short to have an address.
        (millis(0), Action::Offer(2, to(9, 3))),
        (millis(0), Action::Offer(2, to(2, 4))),
        (millis(0), Action::Offer(2, Buffer::zeroed(3))),
    ];
    let said = run(&mut link, &actions, END);
    let ids = |to| deliveries(&said, to).iter().map(|(_, id)| *id).collect::<Vec<_>>();
    assert_eq!([ids(0), ids(1), ids(2), ids(3)], [vec![1, 2], vec![2], vec![], vec![2]]);
    let unheard =
        |(_, event): &(_, Event)| matches!(event, Event::Delivered { overheard: false, reception: None, .. });
    assert!(said.iter().all(unheard));
}

#[test]
fn a_frame_to_an_address_of_no_station_goes_to_bridges() {
    let mut link = switch(&SwitchConfig { bridges: vec![1, 2], ..config(&[10; 4], Loss::None) }, 1);
    let actions = [
        (millis(0), Action::Offer(0, to(9, 1))),
        (millis(0), Action::Offer(2, to(9, 2))),
        (millis(0), Action::Offer(0, to(3, 3))),
    ];
    let said = run(&mut link, &actions, END);
    let ids = |to| deliveries(&said, to).iter().map(|(_, id)| *id).collect::<Vec<_>>();
    assert_eq!([ids(0), ids(1), ids(2), ids(3)], [vec![], vec![1, 2], vec![1], vec![3]]);
}

#[test]
fn a_group_frame_is_serialised_once_where_it_is_sent() {
    let mut link = stations(&[10; 4]);
    let said = run(&mut link, &row(3, 1_250, Duration::ZERO), END);
    for listener in 1..4 {
        assert_eq!(deliveries(&said, listener), [(millis(1), 0), (millis(2), 1), (millis(3), 2)]);
        assert_eq!(link.counters(END, 0, listener).sent_packets, 3);
    }
    let once = link.sender_counters(END, 0);
    assert_eq!((once.sent_packets, once.sent_bytes), (3, 3 * 1_250));
    assert_eq!(once.busy, Duration::from_millis(3));
    assert_eq!(link.sender_counters(END, 7), Default::default());
}

#[test]
fn each_listener_loses_for_itself() {
    let p = 0.2;
    let mut config = config(&[1_000; 4], Loss::Independent(Fraction::new(p).unwrap()));
    config.pairs = vec![PairLoss { from: 0, to: 3, loss: Loss::Independent(percent(50.0)) }];
    let n = 40_000;
    let mut link = switch(&config, 1);
    for (at, action) in row(n, 1_250, Duration::from_micros(10)) {
        let Action::Offer(from, frame) = action else { unreachable!() };
        link.offer(at, from, frame);
    }
    let mut said = Vec::new();
    wake_until(&mut link, END, &mut said);
    let mut lost = vec![[true; 4]; n as usize];
    (1..4).for_each(|to| deliveries(&said, to).iter().for_each(|(_, id)| lost[*id as usize][to] = false));
    let share =
        |of: &dyn Fn(&[bool; 4]) -> bool| lost.iter().filter(|lost| of(lost)).count() as f64 / n as f64;
    // Five standard errors are 1.3 % at most.
    let near =
        |found: f64, expected: f64| assert!((found - expected).abs() < 0.013, "{found} for {expected}");
    near(share(&|lost| lost[1]), p);
    near(share(&|lost| lost[2]), p);
    near(share(&|lost| lost[3]), 0.5);
    near(share(&|lost| lost[1] && lost[2]), p * p);
    near(share(&|lost| lost[1] && lost[3]), p * 0.5);
}

#[test]
fn what_one_station_is_sent_changes_nothing_for_another() {
    // What each pair loses is its own: traffic between others draws nothing from it.
    let heard = |others: bool| {
        let mut link = switch(&config(&[10; 4], Loss::Independent(percent(30.0))), 1);
        let mut actions = Vec::new();
        for id in 0..500 {
            actions.push((millis(2 * id), Action::Offer(0, to(1, id))));
            if others {
                actions.push((millis(2 * id), Action::Offer(0, to(2, 1_000 + id))));
                actions.push((millis(2 * id), Action::Offer(3, frame(2_000 + id, 1_250))));
            }
        }
        let mut heard = deliveries(&run(&mut link, &actions, END), 1);
        heard.retain(|(_, id)| *id < 1_000);
        heard
    };
    assert_eq!(heard(false), heard(true));
}

#[test]
fn a_station_that_goes_down_silences_itself_alone() {
    let mut link = stations(&[10, 10, 10]);
    link.report_sent(true);
    let mut actions = vec![
        (millis(0), Action::Offer(0, to(1, 0))),
        (millis(0), Action::Offer(0, to(1, 1))),
        (millis(0), Action::Offer(2, to(0, 2))),
        (micros(500), Action::Change(Some(0), Change::Down)),
        (millis(3), Action::Change(Some(0), Change::Up)),
        (millis(4), Action::Offer(0, to(1, 3))),
        (millis(6), Action::Change(Some(0), Change::Rate(Some(Rate::from_mbit(20))))),
        (millis(6), Action::Offer(0, to(1, 4))),
        (millis(8), Action::Change(Some(0), Change::LossTo(1, Loss::Independent(Fraction::ONE)))),
        (millis(8), Action::Offer(0, frame(5, 1_250))),
    ];
    // Many outages leave nothing behind.
    for outage in 0..1_000 {
        let at = millis(100 + outage);
        actions.push((at, Action::Offer(0, frame(9, 1_250))));
        actions.push((at, Action::Change(Some(0), Change::Down)));
        actions.push((at, Action::Change(Some(0), Change::Up)));
    }
    let said = run(&mut link, &actions, END);
    assert_eq!(deliveries(&said, 0), [(millis(1), 2)]);
    assert_eq!(deliveries(&said, 1), [(millis(5), 3), (micros(6_500), 4)]);
    assert_eq!(deliveries(&said, 2), [(micros(8_500), 5)]);
    let down =
        said.iter().filter(|(_, event)| matches!(event, Event::Dropped { reason: DropReason::Down, .. }));
    assert_eq!(down.count(), 2 + 1_000);
    assert_eq!(link.deadline(), None);
}
