//! A repairer in another branch brings data that one has lost, and not the source.

use super::super::encapsulation::{self, Encapsulation};
use super::net::{Below, Kind, Net, TSI};
use super::tree::tree;
use crate::pgm::router::Config;
use crate::pgm::wire::{Body, Data, Packet, PollResponse};

/// Router 0 looks for repairers, and router 2 is one. A first loss behind 1 has been repaired by the source, and 2
/// found.
fn found(encapsulation: Encapsulation) -> Net {
    let mut net = tree(Config::default()).over(false, encapsulation);
    net.configure(0, Config { redirect: true, ..Config::default() });
    net.configure(2, Config { store: 1_000_000, ..Config::default() });
    net.spm();
    let lost = lose(&mut net);
    net.ask(0, &[lost]);
    net.run(100);
    assert_eq!(net.at_source, [(Kind::Nak, lost)]);
    assert_eq!(net.on(Below::Router(2), Kind::PollResponse), 1);
    net.clear();
    net
}

/// Loses a packet above router 1, which shows there by the next one.
fn lose(net: &mut Net) -> u32 {
    net.lose.insert((Below::Router(1), Kind::Data), 1);
    let lost = net.data();
    net.data();
    net.clear();
    lost
}

#[test]
fn a_poll_reaches_the_elements_below_and_goes_no_farther() {
    let mut net = tree(Config::default());
    net.configure(0, Config { redirect: true, ..Config::default() });
    net.spm();
    let lost = net.data();
    net.clear();
    net.ask(0, &[lost]);
    net.run(100);
    assert_eq!(net.links(Kind::Poll), [(Below::Router(1), 1), (Below::Router(2), 1)]);
    assert_eq!(net.links(Kind::PollResponse), [], "nobody keeps anything");
    // Further losses cost no poll, until ten seconds later.
    for (pause, polls) in [(1_000, 1), (9_500, 2)] {
        let lost = net.data();
        net.run(pause);
        net.ask(0, &[lost]);
        net.run(100);
        assert_eq!(net.on(Below::Router(2), Kind::Poll), polls);
    }
}

#[test]
fn what_one_branch_lost_comes_from_the_repairer_in_another_and_no_request_passes_above_them() {
    for encapsulation in [Encapsulation::Raw, Encapsulation::Udp { source: 5, destination: 3056 }] {
        let mut net = found(encapsulation);
        let lost = lose(&mut net);
        net.ask(0, &[lost]);
        net.ask(2, &[lost]);
        net.run(100);
        assert_eq!(net.on(Below::Router(0), Kind::Nak), 0);
        assert_eq!(net.on(Below::Router(0), Kind::Repair), 0);
        assert_eq!(net.at_source, [(Kind::NullNak, lost)], "the source learns of the loss");
        // Up on the repairer's link, and down to those who asked.
        let receivers = [0, 2].map(Below::Receiver);
        let routers = [1, 2, 3, 4].map(Below::Router);
        let each: Vec<_> = routers.into_iter().chain(receivers).map(|link| (link, 1)).collect();
        assert_eq!(net.links(Kind::Repair), each);
        assert_eq!(net.on(Below::Router(2), Kind::Ncf), 1);
        assert!(net.has[&0].ends_with(&[lost]) && net.has[&2].ends_with(&[lost]));
        assert_eq!(net.routers.iter().flatten().map(|router| router.load().1).sum::<usize>(), 0);
        assert_eq!(net.on(Below::Router(1), Kind::Poll), 0, "whoever is known is not looked for");
    }
}

#[test]
fn what_the_repairer_lacks_too_comes_from_the_source_to_both() {
    let mut net = found(Encapsulation::Raw);
    net.lose.insert((Below::Router(0), Kind::Data), 1);
    let lost = net.data();
    net.data();
    net.clear();
    net.ask(0, &[lost]);
    net.run(20);
    assert_eq!(net.at_source, [(Kind::Nak, lost)], "at once, and no timer later");
    net.run(100);
    assert_eq!(net.on(Below::Router(2), Kind::Nak), 2, "there, and back");
    assert!(net.has[&0].contains(&lost));
    // It has come to the repairer too, which keeps it.
    net.clear();
    net.ask(4, &[lost]);
    net.run(100);
    assert_eq!(net.at_source, [(Kind::NullNak, lost)]);
    assert!(net.has[&4].contains(&lost));
}

#[test]
fn what_somebody_beside_the_repairer_has_asked_for_is_not_asked_of_it() {
    let mut net = found(Encapsulation::Raw);
    net.configure(2, Config { store: 1, ..Config::default() });
    net.spm();
    let lost = net.data();
    net.clear();
    net.answers = false;
    net.ask(4, &[lost]);
    net.run(10);
    assert_eq!(net.at_source, [(Kind::Nak, lost)]);
    net.run(300);
    net.ask(0, &[lost]);
    net.run(10);
    assert_eq!(net.counter(0, "element_requests_redirected"), 0);
}

#[test]
fn a_repairer_that_is_gone_costs_one_interval_and_is_forgotten() {
    let mut net = found(Encapsulation::Raw);
    net.routers[2] = None;
    let lost = lose(&mut net);
    net.ask(0, &[lost]);
    net.run(49);
    assert!(net.at_source.is_empty());
    net.run(20);
    assert_eq!(net.at_source, [(Kind::Nak, lost)]);
    assert_eq!(net.counter(0, "element_repairers_silent"), 1);
    let lost = lose(&mut net);
    net.ask(0, &[lost]);
    net.run(10);
    assert_eq!(net.at_source.last(), Some(&(Kind::Nak, lost)));
}

#[test]
fn a_repair_that_is_lost_on_its_way_comes_from_the_source() {
    let mut net = found(Encapsulation::Raw);
    let lost = lose(&mut net);
    net.lose.insert((Below::Router(2), Kind::Repair), 1);
    net.ask(0, &[lost]);
    net.run(300);
    assert_eq!(net.at_source, [(Kind::NullNak, lost)]);
    net.ask(0, &[lost]);
    net.run(100);
    assert_eq!(net.at_source.last(), Some(&(Kind::Nak, lost)));
    assert!(net.has[&0].ends_with(&[lost]));
}

#[test]
fn a_repair_that_is_lost_behind_the_element_that_asked_comes_from_the_repairer_again() {
    let mut net = found(Encapsulation::Raw);
    let lost = lose(&mut net);
    net.lose.insert((Below::Router(1), Kind::Repair), 1);
    net.ask(0, &[lost]);
    net.run(400);
    net.ask(0, &[lost]);
    net.run(100);
    assert_eq!(net.at_source, [(Kind::NullNak, lost); 2]);
    assert!(net.has[&0].ends_with(&[lost]));
}

#[test]
fn answers_to_no_poll_or_in_anothers_name_and_repairs_that_nobody_was_asked_for_count_for_nothing() {
    let mut net = tree(Config::default());
    net.configure(0, Config { redirect: true, ..Config::default() });
    net.spm();
    let forge = |net: &mut Net, sequence, interface, named| {
        let response = PollResponse { sequence, round: 0 };
        let mut packet = Packet::new(TSI, 88, Body::PollResponse(response));
        packet.options.redirect = Some(named);
        let ends = (net.address(1, 2), net.address(1, 0));
        let bytes = encapsulation::wrap(packet.emit(), Encapsulation::Raw, ends, (64, false));
        net.inject(0, interface, bytes);
        net.run(1);
    };
    let repairer = net.address(1, 2);
    forge(&mut net, 0, 2, repairer);
    let lost = net.data();
    net.ask(0, &[lost]);
    net.run(20);
    let other = net.address(1, 1);
    forge(&mut net, 1, 2, repairer);
    forge(&mut net, 0, 2, other);
    forge(&mut net, 0, 0, repairer);
    let lost = net.data();
    net.clear();
    net.answers = false;
    net.ask(0, &[lost]);
    net.run(20);
    assert_eq!(net.at_source, [(Kind::Nak, lost)]);
    assert_eq!(net.counter(0, "element_requests_redirected"), 0);
    // A repair to the element alone, of a packet that no repairer was asked for.
    let data = Data { sequence: lost, trail: 0 };
    let repair = Packet { payload: b"forged", ..Packet::new(TSI, 88, Body::Repair(data)) };
    let ends = (repairer, net.address(1, 0));
    let bytes = encapsulation::wrap(repair.emit(), Encapsulation::Raw, ends, (64, false));
    net.inject(0, 2, bytes);
    net.run(20);
    assert_eq!(net.on(Below::Router(1), Kind::Repair), 0);
    // An answer that is sound after all.
    forge(&mut net, 0, 2, repairer);
    let lost = net.data();
    net.ask(0, &[lost]);
    net.run(20);
    assert_eq!(net.counter(0, "element_requests_redirected"), 1);
}

#[test]
fn an_element_that_has_offered_nothing_refuses_what_comes_from_above() {
    let mut net = tree(Config { store: 1_000_000, ..Config::default() });
    let lost = net.data();
    let nak = net.nak_of(&[lost], false);
    let ends = (net.address(1, 0), net.address(1, 2));
    let bytes = encapsulation::wrap(nak.emit(), Encapsulation::Raw, ends, (64, false));
    net.clear();
    net.inject(2, 0, bytes);
    net.run(20);
    assert_eq!(net.counter(2, "element_requests_refused"), 1);
    assert_eq!(net.links(Kind::Ncf), []);
}
