//! The path of SPMs.

use super::net::{Below, Kind, Net};
use super::tree::tree;
use crate::pgm::router::Config;

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
