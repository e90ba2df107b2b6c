//! A router that keeps data answers NAKs itself.

use super::net::{Below, Kind};
use super::tree::tree;
use crate::pgm::router::Config;

fn keeps() -> Config {
    Config { store: 1_000_000, ..Config::default() }
}

#[test]
fn a_loss_behind_a_repairer_is_repaired_from_there() {
    let mut net = tree(keeps());
    let lost = net.data();
    net.clear();
    net.ask(0, &[lost]);
    net.run(100);
    assert_eq!(net.links(Kind::Repair), [(Below::Receiver(0), 1)]);
    assert_eq!(net.links(Kind::Ncf), [(Below::Receiver(0), 1)]);
    assert_eq!(net.on(Below::Router(3), Kind::Nak), 0);
    assert_eq!(net.at_source, [(Kind::NullNak, lost)], "the source learns of the loss");
    assert!(net.has[&0].ends_with(&[lost, lost]));
}

#[test]
fn a_loss_above_a_repairer_is_repaired_from_above_and_then_from_there() {
    let mut net = tree(keeps());
    net.data();
    net.lose.insert((Below::Router(1), Kind::Data), 1);
    let lost = net.data();
    // By the next packet the window is known.
    net.data();
    net.clear();
    net.ask(0, &[lost]);
    net.run(500);
    assert_eq!(net.on(Below::Router(1), Kind::Repair), 1);
    assert_eq!(net.on(Below::Router(0), Kind::Repair), 0, "0 had it");
    // Long after the repair another branch asks: 1 has kept it.
    net.ask(2, &[lost]);
    net.run(100);
    assert_eq!(net.on(Below::Router(1), Kind::Repair), 1);
    assert_eq!(net.on(Below::Receiver(2), Kind::Repair), 1);
}

#[test]
fn two_naks_on_an_interface_are_answered_once_and_again_after_the_elimination_interval() {
    let mut net = tree(keeps());
    let lost = net.data();
    net.clear();
    net.ask(0, &[lost]);
    net.ask(0, &[lost]);
    net.run(20);
    assert_eq!(net.on(Below::Receiver(0), Kind::Repair), 1);
    assert_eq!(net.on(Below::Receiver(0), Kind::Ncf), 2);
    net.run(300);
    net.ask(0, &[lost]);
    net.run(20);
    assert_eq!(net.on(Below::Receiver(0), Kind::Repair), 2, "the repair was lost");
}

#[test]
fn a_small_store_passes_on_what_it_no_longer_has() {
    let mut net = tree(Config { store: 1000, ..keeps() });
    let lost = net.data();
    (0..100).for_each(|_| _ = net.data());
    net.clear();
    net.ask(0, &[lost]);
    net.run(100);
    assert_eq!(net.at_source, [(Kind::Nak, lost)]);
    assert!(net.has[&0].ends_with(&[lost]));
}
