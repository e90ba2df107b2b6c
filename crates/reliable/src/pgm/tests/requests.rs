//! What a receiver takes for the confirmation of its requests, and for their round trip.

use hopcast_core::Duration;

use super::net::{Link, Net, address, group, tsi};
use crate::pgm::ReceiverConfig;
use crate::pgm::wire::{Body, Data, Member, Nak, Packet, Parity, Spm};

/// A receiver without a back-off, and its source, which only these tests play: an SPM says that it has sent five
/// packets, of which the first has come.
fn receiver() -> Net {
    let mut net = Net::new(1);
    let config = ReceiverConfig { group_size: 1, gather: Some(Duration::ZERO), ..ReceiverConfig::default() };
    net.add(None, Some(config), Link::default(), 1);
    net.run(Duration::from_millis(1), |_| false);
    data(&mut net, 0, false);
    spm(&mut net, 1, 4);
    assert_eq!(net.counter(0, "nacks_sent"), 1);
    net
}

fn hear(net: &mut Net, packet: &Packet<'_>) {
    net.forge(0, 1, &packet.emit());
}

fn spm(net: &mut Net, sequence: u32, lead: u32) {
    let spm = Spm { sequence, trail: 0, lead, path: address(1).ip() };
    let mut packet = Packet::new(tsi(1, 1), 7500, Body::Spm(spm));
    packet.options.member = Some(Member { is_framed: false, repairs_first: true });
    packet.options.join = Some(0);
    hear(net, &packet);
}

fn data(net: &mut Net, sequence: u32, again: bool) {
    let data = Data { sequence, trail: 0 };
    let body = if again { Body::Repair(data) } else { Body::Original(data) };
    let mut packet = Packet::new(tsi(1, 1), 7500, body);
    packet.payload = b"bytes";
    hear(net, &packet);
}

fn confirmation(net: &mut Net, sequence: u32, list: &[u32]) {
    let nak = Nak { sequence, source: address(1).ip(), group: group().ip() };
    let mut packet = Packet::new(tsi(1, 1), 7500, Body::Confirmation(nak));
    packet.options.nak_list = list.to_vec();
    hear(net, &packet);
}

/// Runs until `ms` milliseconds after the beginning; the requests made by then.
fn requests(net: &mut Net, ms: u64) -> u64 {
    net.run(Duration::from_millis(ms), |_| false);
    net.counter(0, "nacks_sent")
}

#[test]
fn a_repair_confirms_all_that_its_request_named() {
    let mut net = receiver();
    // The confirmation is lost, and so are the other repairs, which new data shows to be over.
    assert_eq!(requests(&mut net, 120), 1);
    data(&mut net, 1, true);
    data(&mut net, 5, false);
    assert_eq!(requests(&mut net, 130), 2);
}

#[test]
fn a_repair_within_a_round_trip_answers_somebody_else() {
    let mut net = receiver();
    assert_eq!(requests(&mut net, 20), 1);
    data(&mut net, 1, true);
    data(&mut net, 5, false);
    assert_eq!(requests(&mut net, 200), 1);
}

#[test]
fn a_confirmation_of_anothers_request_is_no_round_trip() {
    // Asked for again after 300 ms and 600 ms more, as long as no round trip is measured.
    let mut net = receiver();
    requests(&mut net, 250);
    confirmation(&mut net, 2, &[]);
    assert_eq!(requests(&mut net, 1000), 3);
}

#[test]
fn a_confirmation_of_its_own_request_is_a_round_trip() {
    let mut net = receiver();
    requests(&mut net, 2);
    confirmation(&mut net, 1, &[2, 3, 4]);
    spm(&mut net, 2, 4);
    // Nobody confirms what it asks again: it has measured a millisecond.
    assert!(requests(&mut net, 60) >= 4);
}

#[test]
fn anothers_request_for_less_of_a_group_than_is_missing_here_suppresses_nothing() {
    let mut net = Net::new(1);
    let config = ReceiverConfig { group_size: 100, ..ReceiverConfig::default() };
    net.add(None, Some(config), Link::default(), 1);
    net.run(Duration::from_millis(1), |_| false);
    let parity = Parity { proactive: false, on_demand: true, group: 8 };
    let spm = Spm { sequence: 1, trail: 0, lead: 7, path: address(1).ip() };
    let mut packet = Packet::new(tsi(1, 1), 7500, Body::Spm(spm));
    packet.options.parity = Some(parity);
    packet.options.member = Some(Member { is_framed: false, repairs_first: true });
    packet.options.join = Some(0);
    hear(&mut net, &packet);
    (0..6).for_each(|sequence| data(&mut net, sequence, false));
    // Two of the group of eight are missing, and asked for after a back-off. A NAK for parity has the first number of
    // the group, and the number of packets less one.
    for (sequence, suppressed) in [(0, 0), (1, 1)] {
        let nak = Nak { sequence, source: address(1).ip(), group: group().ip() };
        let request = Packet { is_parity: true, ..Packet::new(tsi(1, 1), 7500, Body::Nak(nak)) };
        net.forge(0, 2, &request.emit());
        assert_eq!(net.counter(0, "nacks_suppressed"), suppressed, "for {} packets", sequence + 1);
    }
    assert_eq!(net.counter(0, "nacks_sent"), 0);
}
