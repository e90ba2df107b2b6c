//! The path of SPMs.

use super::net::{Below, Kind, Net, TSI};
use super::tree::tree;
use crate::pgm::router::Config;
use crate::pgm::wire::{Body, Packet, Poll, PollKind};

#[test]
fn each_receiver_learns_the_element_above_it_and_requests_go_from_element_to_element() {
    let mut net = tree(Config::default());
    assert_eq!((0..8).map(|receiver| net.paths[&receiver]).collect::<Vec<_>>(), {
        [3, 3, 4, 4, 5, 5, 6, 6].map(|router| net.address(1, router))
    });
    // That each asks the next, and with its own address, the network itself checks.
    let lost = net.data();
    net.ask(5, &[lost]);
    net.run(50);
    assert_eq!(net.at_source.len(), 1);
}

#[test]
fn a_router_between_that_knows_no_pgm_changes_nothing() {
    let mut net = Net::new(&[None, Some(0)], &[1], Config::default());
    net.routers[1] = None;
    net.spm();
    assert_eq!(net.paths[&0], net.address(1, 0));
}

#[test]
fn an_old_spm_ends_here_until_the_source_has_been_silent() {
    let mut net = Net::new(&[None], &[0], Config::default());
    net.spm_with(1000);
    net.spm_with(1000);
    net.spm_with(999);
    assert_eq!(net.on(Below::Receiver(0), Kind::Spm), 1);
    assert_eq!(net.counter(0, "element_spms_old"), 2);
    net.spm_with(1001);
    assert_eq!(net.on(Below::Receiver(0), Kind::Spm), 2);
    net.run(11_000);
    net.spm_with(1);
    net.spm_with(2);
    assert_eq!(net.on(Below::Receiver(0), Kind::Spm), 4, "a source that began anew is followed");
}

#[test]
fn numbers_of_spms_and_of_packets_wrap() {
    let mut net = Net::new(&[None, Some(0)], &[1], Config::default());
    (net.lead, net.trail) = (u32::MAX - 2, u32::MAX - 2);
    net.spm_with(u32::MAX);
    net.spm_with(0);
    net.spm_with(1);
    assert_eq!(net.on(Below::Receiver(0), Kind::Spm), 3);
    let numbers: Vec<u32> = (0..4).map(|_| net.data()).collect();
    assert_eq!(numbers, [u32::MAX - 1, u32::MAX, 0, 1]);
    net.ask(0, &numbers);
    net.run(100);
    assert_eq!(net.on(Below::Receiver(0), Kind::Repair), 4);
}

#[test]
fn what_an_element_has_not_seen_itself_can_be_asked_for_once_an_spm_has_named_it() {
    let mut net = Net::new(&[None], &[0], Config::default());
    net.spm();
    net.lose.insert((Below::Router(0), Kind::Data), 1);
    let lost = net.data();
    net.ask(0, &[lost]);
    net.run(50);
    assert_eq!((net.at_source.len(), net.counter(0, "element_requests_refused")), (0, 1));
    net.spm();
    net.ask(0, &[lost]);
    net.run(50);
    assert_eq!((net.at_source.len(), net.counter(0, "element_requests_refused")), (1, 1));
    assert_eq!(net.counter(0, "element_naks_sent"), 1);
    assert_eq!(net.counter(0, "element_requests_forwarded"), 1);
    assert_eq!(net.has[&0], [lost]);
    // What the source has no longer is refused here.
    net.trail = lost.wrapping_add(1);
    net.spm();
    net.ask(0, &[lost]);
    net.run(50);
    assert_eq!((net.at_source.len(), net.counter(0, "element_requests_refused")), (1, 2));
}

#[test]
fn a_poll_of_all_children_that_the_source_sends_reaches_every_receiver_as_it_was() {
    let mut net = tree(Config { store: 1 << 20, redirect: true, ..Config::default() });
    net.clear();
    let (kind, path) = (PollKind::General, net.source());
    let poll = Poll { sequence: 1, round: 0, kind, path, backoff: 0, random: 0, mask: 0 };
    let packet = net.to_group(&Packet::new(TSI, 88, Body::Poll(poll)));
    net.inject(0, 0, packet);
    net.run(50);
    assert!((0..8).all(|receiver| net.on(Below::Receiver(receiver), Kind::Poll) == 1));
    assert_eq!(net.links(Kind::PollResponse), [], "elements are not counted among the source's children");
}
