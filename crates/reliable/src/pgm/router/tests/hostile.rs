//! Storms and forgeries: bounded, and the others unharmed.

use std::net::IpAddr;

use hopcast_core::{Buffer, Duration, Instant, Item, Machine, Port, Transit};
use proptest::prelude::*;

use super::super::encapsulation::{self, Encapsulation};
use super::net::{Below, Kind, Net, TSI};
use super::tree::tree;
use crate::pgm::router::{Config, Router};
use crate::pgm::wire::{Ack, Body, Data, Nak, Packet, Poll, PollKind, PollResponse, Spm, Tsi};

fn small() -> Config {
    Config { sessions: 4, repairs: 32, ..Config::default() }
}

#[test]
fn a_storm_of_naks_is_bounded_and_others_are_served() {
    let mut net = tree(small());
    (0..200).for_each(|_| _ = net.data());
    net.clear();
    net.answers = false;
    for round in 0..50 {
        let numbers: Vec<u32> = (0..60).map(|n| (round * 37 + n * 11) % 200).collect();
        net.ask(0, &numbers);
        net.run(1);
    }
    net.run(10);
    let (_, waiting) = net.routers[3].as_ref().unwrap().load();
    assert_eq!(waiting, 32);
    assert!(net.counter(3, "element_requests_refused") > 1000);
    assert!(net.on(Below::Router(3), Kind::Nak) <= 50);
    // Elements above are full of it too, until the source has answered.
    net.answers = true;
    (0..200).for_each(|number| net.repair(number));
    net.run(500);
    net.ask(4, &[199]);
    net.run(500);
    assert!(net.has[&4].ends_with(&[199, 199]), "{:?}", net.has[&4].last());
}

#[test]
fn the_state_of_a_storm_that_nobody_answers_ends() {
    let mut net = tree(small());
    (0..30).for_each(|_| _ = net.data());
    net.answers = false;
    net.ask(0, &(0..30).collect::<Vec<_>>());
    net.run(20_000);
    for router in 0..7 {
        let machine = net.routers[router].as_ref().unwrap();
        assert_eq!((machine.load(), machine.deadline()), ((1, 0), None));
    }
    // The source is asked six times, as configured, each time in one NAK.
    assert_eq!(net.on(Below::Router(0), Kind::Nak), 6);
}

#[test]
fn naks_outside_of_the_window_of_another_group_or_source_leave_no_state() {
    let mut net = tree(Config::default());
    (0..10).for_each(|_| _ = net.data());
    net.clear();
    net.ask(0, &[10, u32::MAX, 1 << 31]);
    let sound = net.nak_of(&[5], false);
    let Body::Nak(nak) = sound.body else { panic!("{sound:?}") };
    let other: IpAddr = "10.0.0.99".parse().unwrap();
    let group: IpAddr = "239.9.9.9".parse().unwrap();
    for nak in [Nak { source: other, ..nak }, Nak { group, ..nak }] {
        net.send_nak(0, &Packet { body: Body::Nak(nak), ..sound.clone() });
    }
    net.send_nak(0, &Packet { session: Tsi { port: 1, ..TSI }, ..sound.clone() });
    net.send_nak(0, &Packet { is_parity: true, ..sound });
    net.run(100);
    assert!(net.links(Kind::Ncf).is_empty() && net.at_source.is_empty());
    assert_eq!(net.counter(3, "element_requests_refused"), 3 + 1 + 1);
    assert_eq!(net.counter(3, "element_requests_unknown"), 2);
    assert_eq!(net.routers[3].as_ref().unwrap().load(), (1, 0));
}

#[test]
fn a_nak_from_the_sources_side_has_nothing_sent_back_there() {
    let mut net = tree(Config::default());
    let lost = net.data();
    let nak = net.nak_of(&[lost], false);
    let ends = (net.receiver(9), net.address(1, 3));
    let bytes = encapsulation::wrap(nak.emit(), Encapsulation::Raw, ends, (64, false));
    net.clear();
    net.inject(3, 0, bytes);
    net.run(100);
    assert_eq!(net.counter(3, "element_requests_refused"), 1);
    assert!(net.links(Kind::Ncf).is_empty() && net.at_source.is_empty());
}

#[test]
fn confirmations_and_repairs_from_the_receivers_side_are_dropped() {
    let mut net = tree(Config::default());
    let lost = net.data();
    net.clear();
    let ncf = net.to_group(&net.ncf_of(&[lost]));
    let data = Data { sequence: lost, trail: 0 };
    let repair = Packet { payload: b"forged", ..Packet::new(TSI, 88, Body::Repair(data)) };
    let repair = net.to_group(&repair);
    net.inject(3, 2, ncf);
    net.run(5);
    net.ask(0, &[lost]);
    net.inject(3, 2, repair);
    net.run(100);
    assert_eq!(net.counter(3, "element_confirmations_refused"), 1);
    assert_eq!(net.counter(3, "element_repairs_unasked"), 1);
    assert_eq!(net.at_source, [(Kind::Nak, lost)], "the NAK is not held back");
    assert_eq!(net.links(Kind::Repair).len(), 4);
}

#[test]
fn a_forged_confirmation_from_the_sources_side_delays_one_repair_by_the_elimination_interval() {
    let mut net = tree(Config::default());
    let (lost, other) = (net.data(), net.data());
    let ncf = net.to_group(&net.ncf_of(&[lost]));
    net.clear();
    net.inject(3, 0, ncf);
    net.run(1);
    net.ask(0, &[lost]);
    net.ask(0, &[other]);
    net.run(20);
    assert_eq!(net.at_source, [(Kind::Nak, other)]);
    net.run(240);
    net.ask(0, &[lost]);
    net.run(100);
    assert!(net.has[&0].ends_with(&[lost]));
}

#[test]
fn forged_spms_of_many_sessions_and_sources_leave_those_that_are_known() {
    let mut net = tree(small());
    let lost = net.data();
    let mut forge = |source: IpAddr, tsi: Tsi, path: IpAddr| {
        let spm = Spm { sequence: 1 << 30, trail: 0, lead: 0, path };
        let packet = Packet::new(tsi, 88, Body::Spm(spm));
        let ends = (source, net.group());
        let bytes = encapsulation::wrap(packet.emit(), Encapsulation::Raw, ends, (64, true));
        net.inject(3, 1, bytes);
        net.run(1);
    };
    for n in 0..100 {
        let attacker: IpAddr = [9, 66, 0, n].into();
        // The session of the source, in the attacker's own name, and others.
        forge(attacker, TSI, attacker);
        forge(attacker, Tsi { port: n.into(), ..TSI }, attacker);
    }
    assert_eq!(net.routers[3].as_ref().unwrap().load().0, 4);
    assert!(net.counter(3, "element_sessions_refused") > 100);
    net.clear();
    net.ask(2, &[lost]);
    net.ask(0, &[lost]);
    let ack = Ack { highest: lost, bitmap: 1 };
    net.send_nak(0, &Packet::new(TSI, 88, Body::Ack(ack)));
    net.run(100);
    assert_eq!(net.at_source.pop(), Some((Kind::Ack, lost)), "it does not go to those who came later");
    assert_eq!(net.at_source, [(Kind::Nak, lost)]);
    assert_eq!(net.on(Below::Receiver(0), Kind::Repair), 1);
    assert_eq!(net.on(Below::Receiver(2), Kind::Repair), 1);
}

#[test]
fn confirmations_that_name_another_group_or_source_and_reports_from_the_sources_side_are_not_believed() {
    let mut net = tree(Config::default());
    let lost = net.data();
    net.clear();
    let sound = net.ncf_of(&[lost]);
    let Body::Confirmation(ncf) = sound.body else { panic!("{sound:?}") };
    let other: IpAddr = "10.0.0.99".parse().unwrap();
    let group: IpAddr = "239.9.9.9".parse().unwrap();
    for ncf in [Nak { source: other, ..ncf }, Nak { group, ..ncf }] {
        let bytes = net.to_group(&Packet { body: Body::Confirmation(ncf), ..sound.clone() });
        net.inject(3, 0, bytes);
    }
    let report = Packet { body: Body::NullNak(ncf), ..sound };
    let ends = (net.receiver(9), net.address(1, 3));
    net.inject(3, 0, encapsulation::wrap(report.emit(), Encapsulation::Raw, ends, (64, false)));
    net.run(100);
    assert_eq!(net.counter(3, "element_confirmations_refused"), 2);
    assert!(net.at_source.is_empty());
    net.ask(0, &[lost]);
    net.run(100);
    assert_eq!(net.at_source, [(Kind::Nak, lost)], "it is not held back");
}

#[test]
fn parity_of_groups_that_no_code_has_cannot_be_asked_for_and_packets_of_others_can() {
    for (group, counts) in [(1 << 17, (1, 0)), (8, (0, 2))] {
        let mut net = Net::new(&[None], &[0], Config::default());
        net.parity = Some(group);
        net.spm();
        (0..8).for_each(|_| _ = net.data());
        net.clear();
        net.ask_parity(0, 0, 1);
        net.run(100);
        if group == 8 {
            net.ask(0, &[3]);
            net.run(100);
        }
        let found = (net.counter(0, "element_requests_refused"), net.on(Below::Receiver(0), Kind::Repair));
        assert_eq!(found, counts, "{group}");
    }
}

/// A session that an element knows, and what may arrive of it.
fn known() -> (Router, Net) {
    let mut net = Net::new(&[None], &[0, 0], Config { redirect: true, store: 3_000, ..small() });
    net.parity = Some(8);
    net.spm();
    (0..20).for_each(|_| _ = net.data());
    (net.routers[0].take().unwrap(), net)
}

fn sound(net: &Net, kind: u8, number: u32) -> Buffer {
    let data = Data { sequence: number, trail: 3 };
    let is_parity = kind & 8 != 0;
    let packet = match kind & 7 {
        0 => net.nak_of(&[number, number + 1, number], is_parity),
        1 => Packet { is_parity, ..net.ncf_of(&[number]) },
        2 => Packet { is_parity, ..Packet::new(TSI, 88, Body::Repair(data)) },
        3 => Packet::new(TSI, 88, Body::Original(data)),
        4 => {
            let spm = Spm { sequence: number, trail: number, lead: number + 30, path: net.source() };
            Packet::new(TSI, 88, Body::Spm(spm))
        }
        5 => {
            let Packet { body: Body::Nak(nak), .. } = net.nak_of(&[number], false) else { unreachable!() };
            Packet::new(TSI, 88, Body::NullNak(nak))
        }
        6 => {
            let response = PollResponse { sequence: number % 2, round: 0 };
            let mut packet = Packet::new(TSI, 88, Body::PollResponse(response));
            packet.options.redirect = Some(net.receiver(0));
            packet
        }
        _ => {
            let (kind, path) = (PollKind::Repairers, net.source());
            let poll = Poll { sequence: number, round: 0, kind, path, backoff: number, random: 0, mask: 0 };
            Packet::new(TSI, 88, Body::Poll(poll))
        }
    };
    match packet.body {
        Body::Nak(_) | Body::NullNak(_) | Body::PollResponse(_) => {
            let sender = if kind & 16 == 0 { net.receiver(0) } else { net.source() };
            let ends = (sender, net.address(1, 0));
            encapsulation::wrap(packet.emit(), Encapsulation::Raw, ends, (64, false))
        }
        Body::Confirmation(_) | Body::Repair(_) if kind & 16 != 0 => {
            let ends = (net.receiver(0), net.address(1, 0));
            encapsulation::wrap(packet.emit(), Encapsulation::Raw, ends, (64, false))
        }
        _ => net.to_group(&packet),
    }
}

proptest! {
    #[test]
    fn any_packets_in_any_order_are_borne_and_bounded(
        steps in prop::collection::vec((0u8..32, 0u32..40, 0u32..3, 0u64..400, prop::option::of((0usize..80, 0u8..8))), 0..200)
    ) {
        let (mut router, net) = known();
        let mut now = Instant::ZERO + Duration::from_secs(10);
        for (kind, number, interface, ms, flip) in steps {
            now += Duration::from_millis(ms);
            let mut bytes = sound(&net, kind, number);
            if let Some((place, bit)) = flip {
                let place = place % bytes.len();
                bytes[place] ^= 1 << bit;
            }
            router.handle(now, Port::Below(0), Item::Transit(Transit::arrived(bytes, interface)));
            let sent = std::iter::from_fn(|| router.poll(now)).count();
            prop_assert!(sent <= 20, "{sent} packets for one");
            prop_assert!(router.deadline().is_none_or(|at| at > now));
            let (sessions, waiting) = router.load();
            prop_assert!(sessions <= 4 && waiting <= 4 * 32);
        }
    }
}
