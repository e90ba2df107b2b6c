//! ARP and neighbour discovery: neighbours are requested, resolved, probed and lost, and forged ones are ignored.

#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, Ipv4Addr};

use crate::segment::*;
use hopcast_core::{Buffer, Duration, Machine};
use hopcast_host::NeighbourConfig;
use hopcast_wire::arp::{self, Operation, Station};
use hopcast_wire::ethernet::{self, Mac};
use hopcast_wire::icmp::{Message, Unreachable};
use hopcast_wire::nd::{self, Flags};
use hopcast_wire::{ip, nd::Message as Nd};

const STRANGER: Mac = [2, 9, 9, 9, 9, 9];

/// An ARP packet in a frame.
fn arp_frame(to: Mac, operation: Operation, sender: (Mac, IpAddr), target: (Mac, IpAddr)) -> Buffer {
    let station = |(mac, address): (Mac, IpAddr)| {
        let IpAddr::V4(address) = address else { panic!("{address}") };
        Station { mac, address }
    };
    let mut frame = Buffer::default();
    let packet = arp::Packet { operation, sender: station(sender), target: station(target) };
    arp::prepend(&mut frame, &packet);
    let header = ethernet::Header { destination: to, source: sender.0, ether_type: arp::ETHER_TYPE };
    ethernet::prepend(&mut frame, header);
    frame
}

/// A message of neighbour discovery in a frame.
fn nd_frame(station: (Mac, Mac), from: IpAddr, to: IpAddr, message: &Nd) -> Buffer {
    let (IpAddr::V6(source), IpAddr::V6(destination)) = (from, to) else { panic!("{from} {to}") };
    let mut frame = Buffer::default();
    nd::prepend(&mut frame, source, destination, message);
    ip::prepend(&mut frame, from, to, ip::ICMPV6, 255, 0);
    let (source, destination) = station;
    ethernet::prepend(&mut frame, ethernet::Header { destination, source, ether_type: ethernet::IPV6 });
    frame
}

/// A forged claim, in a frame to a host, that an address has another Ethernet address.
fn claim(of: usize, mac: Mac, to: usize, v6: bool, flags: Flags) -> Buffer {
    let (claimed, receiver) = (address(of, v6), address(to, v6));
    let IpAddr::V6(target) = claimed else {
        return arp_frame(
            crate::segment::mac(to),
            Operation::Reply,
            (mac, claimed),
            (crate::segment::mac(to), receiver),
        );
    };
    let message = Nd::Advertisement { target, mac: Some(mac), flags };
    nd_frame((mac, crate::segment::mac(to)), claimed, receiver, &message)
}

/// The Ethernet address that the last packet of TEST was sent to.
fn sent_to(segment: &Segment) -> Mac {
    let packet = segment.frames.iter().rfind(|(_, frame)| !is_resolution(frame));
    ethernet::parse(&packet.unwrap().1).unwrap().destination
}

#[test]
fn the_first_packet_waits_for_the_answer_and_the_next_ones_need_none() {
    for v6 in [false, true] {
        let mut link = Segment::new(3);
        assert_eq!(link.deadline(), None);
        link.send(0, address(1, v6), 1);
        assert_eq!(link.numbers(1), [1]);
        // The question to all or to a group, the answer, the packet; and the one asked knows who asked.
        assert_eq!(link.frames.len(), 3);
        link.send(0, address(1, v6), 2);
        link.send(1, address(0, v6), 3);
        assert_eq!((link.numbers(1), link.numbers(0)), (vec![1, 2], vec![3]));
        assert_eq!(link.frames.len(), 5);
        assert_eq!(link.counter(0, "neighbour_requests_sent"), 1);
        assert_eq!(link.counter(0, "neighbours_resolved"), 1);
        assert_eq!(link.counter(1, "neighbour_requests_answered"), 1);
        // The third hears a broadcast, and none of a group that it is not in.
        assert_eq!(link.counter(2, "neighbour_requests_for_others"), u64::from(!v6));
    }
}

#[test]
fn a_host_that_resolves_nothing_is_never_woken() {
    let mut link = Segment::new(2);
    link.send(0, address(1, false), 1);
    link.pass(seconds(3600));
    assert_eq!(link.deadline(), None);
    // The one that asked knows that the answer is good, the one that answered has not sent: nobody probes.
    assert_eq!(link.requests(), [0]);
}

#[test]
fn who_does_not_answer_is_asked_three_times_a_second_apart_and_then_the_senders_are_told() {
    for v6 in [false, true] {
        let mut link = Segment::new(1);
        for number in 1..=5 {
            link.send(0, address(8, v6), number);
        }
        link.pass(seconds(2));
        assert!(link.errors[0].is_empty());
        link.pass(seconds(1));
        assert_eq!(link.requests(), [0, 1, 2]);
        // Three of five waited.
        assert_eq!(link.errors[0], [Message::Unreachable(Unreachable::Host); 3]);
        assert_eq!(link.counter(0, "neighbour_queue_dropped"), 2);
        assert_eq!(link.counter(0, "unresolved"), 3);
        assert_eq!((link.counter(0, "neighbours_failed"), link.deadline()), (1, None));
        // The next packet begins anew.
        link.send(0, address(8, v6), 9);
        assert_eq!(link.requests(), [0, 1, 2, 3]);
    }
}

#[test]
fn of_the_packets_that_wait_the_newest_three_are_sent() {
    let mut link = Segment::new(2);
    let mut first = true;
    link.lose = Box::new(move |frame| is_request(frame) && std::mem::take(&mut first));
    for number in 1..=5 {
        link.send(0, address(1, false), number);
    }
    link.pass(seconds(1));
    assert_eq!(link.numbers(1), [3, 4, 5]);
    assert_eq!(link.counter(0, "unresolved"), 0);
}

#[test]
fn an_answer_that_has_grown_old_is_checked_five_seconds_after_the_next_packet() {
    for v6 in [false, true] {
        let mut link = Segment::new(2);
        link.send(0, address(1, v6), 1);
        // Past the longest reachable time, half of 30 s to one and a half.
        link.pass(seconds(46));
        link.send(0, address(1, v6), 2);
        assert_eq!(link.numbers(1), [1, 2], "it is sent at once");
        link.pass(seconds(4));
        assert_eq!(link.requests(), [0]);
        link.pass(seconds(1));
        assert_eq!(link.requests(), [0, 51]);
        let probe = link.frames.iter().rfind(|(_, frame)| is_request(frame)).unwrap();
        assert_eq!(ethernet::parse(&probe.1).unwrap().destination, mac(1), "to the one station");
        link.pass(seconds(10));
        assert_eq!((link.requests().len(), link.deadline()), (2, None));
    }
}

#[test]
fn a_reachable_time_is_between_half_and_one_and_a_half_of_its_mean() {
    let mut link = Segment::new(2);
    link.send(0, address(1, false), 1);
    link.pass(seconds(14));
    link.send(0, address(1, false), 2);
    assert_eq!(link.hosts[0].deadline(), None, "nothing is to be checked before 15 s");
}

#[test]
fn a_neighbour_that_has_gone_is_forgotten_after_three_probes() {
    for v6 in [false, true] {
        let mut link = Segment::new(2);
        link.send(0, address(1, v6), 1);
        link.pass(seconds(46));
        link.lose = Box::new(is_resolution);
        link.send(0, address(1, v6), 2);
        link.pass(seconds(7));
        link.send(0, address(1, v6), 3);
        assert_eq!(link.numbers(1), [1, 2, 3], "while it is probed");
        link.pass(seconds(1));
        assert_eq!(link.requests(), [0, 51, 52, 53]);
        assert_eq!((link.counter(0, "neighbours_lost"), link.deadline()), (1, None));
        // Now packets wait again, and all stations are asked.
        link.send(0, address(1, v6), 4);
        assert_eq!(link.numbers(1), [1, 2, 3]);
        link.lose = Box::new(|_| false);
        link.pass(seconds(1));
        assert_eq!(link.numbers(1), [1, 2, 3, 4]);
    }
}

#[test]
fn groups_and_broadcasts_need_nobody_to_be_asked() {
    let mut link = Segment::new(2);
    for group in ["224.0.0.1", "ff02::1"] {
        link.send(0, group.parse().unwrap(), 1);
    }
    assert!(link.requests().is_empty());
    assert_eq!(link.frames.len(), 2);
}

#[test]
fn an_answer_that_nobody_asked_for_makes_no_neighbour() {
    for v6 in [false, true] {
        let mut link = Segment::new(1);
        let flags = Flags { solicited: true, replaces: true, router: false };
        link.inject(&claim(4, STRANGER, 0, v6, flags));
        assert_eq!(link.counter(0, "neighbours_unasked"), 1);
        link.send(0, address(4, v6), 1);
        assert_eq!(link.requests(), [0], "it has to be asked for");
    }
    // Nor does what is said to everybody.
    let mut link = Segment::new(1);
    let said = (STRANGER, address(4, false));
    for operation in [Operation::Request, Operation::Reply] {
        link.inject(&arp_frame(ethernet::BROADCAST, operation, said, said));
    }
    assert_eq!(link.counter(0, "neighbours_unasked"), 2);
}

#[test]
fn what_a_known_neighbour_says_to_everybody_is_believed_and_checked() {
    let mut link = Segment::new(2);
    link.send(0, address(1, false), 1);
    let said = (STRANGER, address(1, false));
    link.inject(&arp_frame(ethernet::BROADCAST, Operation::Request, said, said));
    assert_eq!(link.counter(0, "neighbours_changed"), 1);
    link.send(0, address(1, false), 2);
    assert_eq!(sent_to(&link), STRANGER);
    // Nobody is there: after three probes it is asked for anew, and the true one answers.
    link.pass(seconds(9));
    assert_eq!(link.counter(0, "neighbours_lost"), 1);
    link.send(0, address(1, false), 3);
    assert_eq!(sent_to(&link), mac(1));
}

#[test]
fn an_advertisement_without_the_override_flag_changes_no_address_and_is_checked() {
    let mut link = Segment::new(2);
    link.send(0, address(1, true), 1);
    link.inject(&claim(1, STRANGER, 0, true, Flags { solicited: true, ..Flags::default() }));
    link.send(0, address(1, true), 2);
    assert_eq!(sent_to(&link), mac(1));
    link.pass(seconds(5));
    assert_eq!(link.requests(), [0, 5]);
}

#[test]
fn a_station_with_the_hosts_own_address_is_counted_and_gets_no_entry() {
    for v6 in [false, true] {
        let mut link = Segment::new(1);
        link.inject(&claim(0, STRANGER, 0, v6, Flags::default()));
        assert_eq!(link.counter(0, "address_conflicts"), 1);
        assert_eq!(link.counter(0, "neighbours_unasked"), 0);
    }
}

#[test]
fn a_probe_for_the_hosts_address_is_answered_and_kept_nowhere() {
    let mut link = Segment::new(1);
    let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let target = ([0; 6], address(0, false));
    link.inject(&arp_frame(ethernet::BROADCAST, Operation::Request, (STRANGER, nobody), target));
    let IpAddr::V6(own) = address(0, true) else { unreachable!() };
    let group = nd::solicited_node(own);
    let ask = Nd::Solicitation { target: own, source: None };
    let unspecified = IpAddr::from([0u16; 8]);
    let stations = (STRANGER, ethernet::of_group(group.into()));
    link.inject(&nd_frame(stations, unspecified, group.into(), &ask));
    assert_eq!(link.counter(0, "neighbour_requests_answered"), 2);
    let answer = ethernet::parse(&link.frames[3].1).unwrap();
    assert_eq!(answer.destination, ethernet::of_group(nd::ALL_NODES.into()));
    assert_eq!(link.counter(0, "neighbours_invalid"), 0);
}

#[test]
fn a_flood_of_requests_is_answered_and_the_table_keeps_those_in_use() {
    let mut link = Segment::with(2, NeighbourConfig { entries: 10, ..NeighbourConfig::default() });
    link.send(0, address(1, false), 1);
    for number in 0..5_000u32 {
        let sender = (STRANGER, IpAddr::from((0x0a01_0000 + number).to_be_bytes()));
        let target = ([0; 6], address(0, false));
        link.inject(&arp_frame(mac(0), Operation::Request, sender, target));
    }
    assert_eq!(link.counter(0, "neighbour_requests_answered"), 5_000);
    assert_eq!(link.counter(0, "neighbours_evicted"), 5_000 - 9);
    link.send(0, address(1, false), 2);
    assert_eq!(link.counter(0, "neighbour_requests_sent"), 1, "the one in use is still known");
    assert_eq!(link.deadline(), None);
}

#[test]
fn a_spoofed_neighbour_is_found_again_within_a_minute_of_the_last_claim() {
    for v6 in [false, true] {
        let mut link = Segment::new(2);
        link.send(0, address(1, v6), 0);
        let flags = Flags { solicited: false, replaces: true, router: false };
        for number in 1..=30 {
            link.inject(&claim(1, STRANGER, 0, v6, flags));
            link.send(0, address(1, v6), number);
            link.pass(seconds(1));
        }
        assert!(link.counter(0, "neighbours_changed") >= 1, "each claim that changes the address is counted");
        assert_eq!(sent_to(&link), STRANGER, "v6: {v6}");
        ask_again(&mut link, v6);
    }
}

/// Sends a packet a second for a minute to a neighbour that was spoofed, and holds that it gets the last ones: probes
/// to the forged address are answered by nobody, and then the neighbour is asked for.
fn ask_again(link: &mut Segment, v6: bool) {
    for number in 100..160 {
        link.send(0, address(1, v6), number);
        link.pass(seconds(1));
    }
    link.send(0, address(1, v6), 160);
    assert_eq!((sent_to(link), link.numbers(1).last()), (mac(1), Some(&160)), "v6: {v6}");
    assert!(link.counter(0, "neighbours_lost") >= 1);
}

#[test]
fn a_flood_of_spoofed_claims_causes_a_probe_a_second_at_most_and_takes_no_room() {
    for v6 in [false, true] {
        let mut link = Segment::with(2, NeighbourConfig { entries: 10, ..NeighbourConfig::default() });
        link.send(0, address(1, v6), 0);
        let before = link.frames.len();
        let flags = Flags { solicited: false, replaces: true, router: false };
        const CLAIMS: u64 = 10_000;
        for number in 0..CLAIMS {
            // Another address each time, so that each of them is a change; of hosts that are no neighbours, too.
            let mac = [6, 0, 0, 0, (number >> 8) as u8, number as u8];
            link.inject(&claim(1, mac, 0, v6, flags));
            link.inject(&claim(100, mac, 0, v6, flags));
            if number % 100 == 0 {
                link.send(0, address(1, v6), 1);
            }
            link.pass(Duration::from_millis(1));
        }
        assert_eq!(link.counter(0, "neighbours_changed"), CLAIMS);
        assert_eq!(link.counter(0, "neighbours_unasked"), CLAIMS);
        let own = link.frames[before..]
            .iter()
            .filter(|(_, frame)| ethernet::parse(frame).unwrap().source == mac(0));
        let probes = own.filter(|(_, frame)| is_request(frame)).count();
        assert!(probes <= 10, "{probes} requests in 10 s, v6: {v6}");
        ask_again(&mut link, v6);
    }
}

#[test]
fn packets_to_invented_addresses_fill_the_table_and_no_more() {
    let mut link = Segment::with(1, NeighbourConfig { entries: 10, ..NeighbourConfig::default() });
    for number in 0..200u8 {
        link.send(0, IpAddr::from([10, 2, 0, number]), number);
    }
    assert_eq!(link.counter(0, "neighbours_refused"), 190);
    link.pass(seconds(3));
    // Each packet ended in an error: of those without room at once.
    assert_eq!(link.counter(0, "unresolved"), 200);
    assert_eq!(link.deadline(), None);
    // And there is room again, which the least recently used makes.
    let mut link = Segment::with(4, NeighbourConfig { entries: 2, ..NeighbourConfig::default() });
    for to in [1, 2, 1, 3] {
        link.send(0, address(to, false), 1);
        link.pass(seconds(1));
    }
    link.send(0, address(1, false), 2);
    assert_eq!(link.counter(0, "neighbour_requests_sent"), 3, "2 was forgotten, and not 1");
}

#[test]
fn senders_that_can_be_no_neighbour_are_counted() {
    let mut link = Segment::new(1);
    let own = ([0; 6], address(0, false));
    let group = [1, 0, 0x5e, 0, 0, 1];
    let senders: [(Mac, [u8; 4]); 4] =
        [(group, [10, 0, 0, 9]), ([0; 6], [10, 0, 0, 9]), (STRANGER, [224, 0, 0, 9]), (STRANGER, [255; 4])];
    for (mac, address) in senders {
        link.inject(&arp_frame(ethernet::BROADCAST, Operation::Request, (mac, address.into()), own));
    }
    let other = arp_frame(ethernet::BROADCAST, Operation::Other(3), (STRANGER, address(3, false)), own);
    link.inject(&other);
    assert_eq!(link.counter(0, "neighbours_invalid"), 5);
    assert_eq!(link.frames.len(), 5, "none is answered");
}
