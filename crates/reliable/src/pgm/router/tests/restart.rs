//! An element that forgets its state, or stops, holds nobody up for long.

use super::net::{Below, Kind};
use super::tree::tree;
use crate::pgm::router::Config;

#[test]
fn a_repair_that_was_forgotten_is_asked_for_again() {
    let mut net = tree(Config::default());
    let lost = net.data();
    net.clear();
    net.answers = false;
    net.ask(0, &[lost]);
    net.run(50);
    net.restart(1);
    net.spm();
    net.answers = true;
    // The repair of the first NAK ends at the restarted element, which waits for none.
    net.repair(lost);
    net.run(50);
    assert_eq!(net.counter(1, "element_repairs_unasked"), 1);
    net.run(200);
    net.ask(0, &[lost]);
    net.run(100);
    assert!(net.has[&0].ends_with(&[lost, lost]));
}

#[test]
fn before_the_first_spm_after_a_restart_packets_pass_as_by_any_router() {
    let mut net = tree(Config::default());
    let lost = net.data();
    net.clear();
    net.ask(0, &[lost]);
    net.restart(3);
    net.run(100);
    // The NAK found nobody who knows the session.
    assert!(net.at_source.is_empty());
    assert_eq!(net.counter(3, "element_requests_unknown"), 1);
    net.ask(2, &[lost]);
    net.run(100);
    assert_eq!(net.on(Below::Receiver(2), Kind::Repair), 1, "others are served");
    net.data();
    assert_eq!(net.on(Below::Receiver(0), Kind::Data), 1);
    net.spm();
    net.ask(0, &[lost]);
    net.run(100);
    assert_eq!(net.on(Below::Receiver(0), Kind::Repair), 1);
}

#[test]
fn an_element_that_is_gone_is_gone_from_the_path_with_the_next_spm() {
    let mut net = tree(Config::default());
    let lost = net.data();
    net.clear();
    net.routers[3] = None;
    net.ask(0, &[lost]);
    net.run(100);
    assert!(net.at_source.is_empty());
    net.spm();
    assert_eq!(net.paths[&0], net.address(1, 1), "the one above it");
}
