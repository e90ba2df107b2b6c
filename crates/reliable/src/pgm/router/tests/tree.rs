//! Losses stay in the branches that have them.

use super::net::{Below, Kind, Net};
use crate::pgm::router::Config;
use crate::pgm::wire::{Body, Nak, Packet};

/// Two levels of routers: 0 over 1 and 2, 1 over 3 and 4, 2 over 5 and 6; two receivers under each of 3 to 6.
pub(super) fn tree(config: Config) -> Net {
    let parents = [None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(2)];
    let mut net = Net::new(&parents, &[3, 3, 4, 4, 5, 5, 6, 6], config);
    net.spm();
    net
}

#[test]
fn a_loss_behind_one_branch_is_asked_for_once_on_each_link_and_repaired_in_that_branch_alone() {
    let mut net = tree(Config::default());
    let lost = net.data();
    net.clear();
    net.ask(0, &[lost]);
    net.ask(1, &[lost]);
    net.run(100);
    let (routers, receivers) = ([0, 1, 3].map(Below::Router), [0, 1].map(Below::Receiver));
    let branch: Vec<_> = routers.into_iter().chain(receivers).map(|link| (link, 1)).collect();
    assert_eq!(net.links(Kind::Repair), branch);
    assert_eq!(net.links(Kind::Nak), branch, "one a link, each receiver on one of its own");
    // The source confirms to the group, an element where it was asked.
    assert_eq!(net.links(Kind::Ncf), branch);
    assert_eq!(net.at_source, [(Kind::Nak, lost)]);
}

/// As OpenPGM's receivers do.
#[test]
fn a_request_that_names_the_element_as_its_source_is_for_the_session() {
    let mut net = tree(Config::default());
    let lost = net.data();
    net.clear();
    let packet = net.nak_of(&[lost], false);
    let Body::Nak(nak) = packet.body else { panic!("{packet:?}") };
    let nak = Nak { source: net.paths[&0], ..nak };
    net.send_nak(0, &Packet { body: Body::Nak(nak), ..packet });
    net.run(100);
    assert_eq!(net.at_source, [(Kind::Nak, lost)]);
    assert_eq!(net.on(Below::Receiver(0), Kind::Repair), 1);
}

#[test]
fn without_elements_a_repair_goes_everywhere() {
    let mut net = tree(Config::default());
    let lost = net.data();
    net.routers.iter_mut().for_each(|router| *router = None);
    net.clear();
    net.repair(lost);
    net.run(100);
    assert_eq!(net.links(Kind::Repair).len(), 7 + 8);
}

#[test]
fn a_loss_above_two_branches_is_asked_for_by_both_and_once_above_them() {
    let mut net = tree(Config::default());
    let lost = net.data();
    net.clear();
    (0..8).for_each(|receiver| net.ask(receiver, &[lost]));
    net.run(100);
    assert_eq!(net.at_source, [(Kind::Nak, lost)]);
    for router in 0..7 {
        assert_eq!(net.on(Below::Router(router), Kind::Nak), 1);
        assert_eq!(net.on(Below::Router(router), Kind::Repair), 1);
    }
    assert!((0..8).all(|receiver| net.has[&receiver].ends_with(&[lost, lost])));
    assert_eq!(net.counter(3, "element_requests_eliminated"), 1);
    assert_eq!(net.counter(1, "element_repair_copies"), 2);
}

#[test]
fn many_losses_are_asked_for_in_one_nak() {
    let mut net = tree(Config::default());
    (0..70).for_each(|_| _ = net.data());
    net.clear();
    let numbers: Vec<u32> = (0..63).collect();
    net.ask(0, &numbers);
    net.ask(7, &[5, 69]);
    net.run(100);
    assert_eq!(net.on(Below::Router(1), Kind::Nak), 1);
    assert_eq!(net.on(Below::Router(0), Kind::Nak), 2, "of the second only what the first lacks");
    assert_eq!(net.at_source.len(), 64);
    assert_eq!(net.on(Below::Receiver(0), Kind::Repair), 63);
    assert_eq!(net.on(Below::Receiver(7), Kind::Repair), 2);
    assert_eq!(net.on(Below::Router(1), Kind::Repair), 63);
}

#[test]
fn a_lost_nak_is_repeated_by_the_element_before_the_loss() {
    let mut net = tree(Config::default());
    let lost = net.data();
    net.clear();
    net.lose.insert((Below::Router(1), Kind::Nak), 2);
    net.ask(0, &[lost]);
    net.run(400);
    assert_eq!(net.on(Below::Router(1), Kind::Nak), 3);
    assert_eq!(net.on(Below::Receiver(0), Kind::Nak), 1, "the receiver is confirmed and waits");
    assert_eq!(net.on(Below::Router(0), Kind::Nak), 1);
    assert!(net.has[&0].ends_with(&[lost, lost]));
}

#[test]
fn a_lost_confirmation_has_the_nak_repeated_and_the_source_asked_once() {
    let mut net = tree(Config::default());
    let lost = net.data();
    net.clear();
    net.lose.insert((Below::Router(3), Kind::Ncf), 1);
    net.lose.insert((Below::Router(3), Kind::Repair), 1);
    net.ask(0, &[lost]);
    net.run(60);
    assert_eq!(net.on(Below::Router(3), Kind::Nak), 2);
    // The repair has gone by above: the state there ended with it, and the NAK is a new one.
    net.run(100);
    assert!(net.has[&0].ends_with(&[lost, lost]));
    assert_eq!(net.on(Below::Router(3), Kind::Repair), 2);
    assert_eq!(net.on(Below::Router(4), Kind::Repair), 0);
}

#[test]
fn a_lost_repair_is_asked_for_again_by_the_receiver_all_the_way_up() {
    let mut net = tree(Config::default());
    let lost = net.data();
    net.clear();
    net.lose.insert((Below::Router(0), Kind::Repair), 1);
    net.ask(0, &[lost]);
    net.run(100);
    net.ask(0, &[lost]);
    net.run(50);
    assert_eq!(net.at_source.len(), 1, "within the elimination interval it is only confirmed");
    net.run(150);
    net.ask(0, &[lost]);
    net.run(100);
    assert_eq!(net.at_source.len(), 2);
    assert!(net.has[&0].ends_with(&[lost, lost]));
}

#[test]
fn a_nak_that_was_anticipated_is_not_forwarded() {
    let mut net = tree(Config::default());
    let lost = net.data();
    net.clear();
    // Another router on the link above 1 has asked: its confirmation is heard, and its repair is late.
    let ncf = net.ncf_of(&[lost]);
    let bytes = net.to_group(&ncf);
    net.inject(1, 0, bytes);
    net.run(5);
    net.ask(0, &[lost]);
    net.run(20);
    assert_eq!(net.on(Below::Router(3), Kind::Nak), 1);
    assert_eq!(net.on(Below::Router(1), Kind::Nak), 0);
    assert_eq!(net.counter(1, "element_confirmations_anticipated"), 1);
}

#[test]
fn parity_goes_to_each_branch_as_often_as_its_neediest_receiver_asks() {
    let mut net = tree(Config::default());
    net.parity = Some(8);
    (0..8).for_each(|_| _ = net.data());
    net.spm();
    net.clear();
    net.ask_parity(0, 0, 1);
    net.ask_parity(1, 0, 2);
    net.ask_parity(2, 0, 1);
    net.ask_parity(4, 0, 3);
    net.run(100);
    let on = |link| net.on(link, Kind::Repair);
    assert_eq!([3, 4, 5, 6].map(|router| on(Below::Router(router))), [2, 1, 3, 0]);
    assert_eq!([0, 1, 2].map(|router| on(Below::Router(router)) >= [3, 2, 3][router]), [true; 3]);
    assert_eq!([0, 1, 2, 4, 6].map(|receiver| on(Below::Receiver(receiver))), [1, 2, 1, 3, 0]);
}
