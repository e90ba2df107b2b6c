//! Packets that cannot be forwarded or delivered are answered with an ICMP error that names the reason.

#![allow(clippy::unwrap_used)]

use crate::network::{A, B, Network, ROUTER, address, icmp_protocol, packet, socket};
use hopcast_core::{Duration, Item};
use hopcast_wire::icmp::{Message, Unreachable};
use hopcast_wire::ip;
use hopcast_wire::vlan::{self, Tag};

/// `a` speaks TCP from port 1000, as far as ICMP is concerned; `b` from port 2000.
fn speaking(far_mtu: u32) -> Network {
    let mut network = Network::new(far_mtu);
    network.hosts[A].bind_protocol(4, ip::TCP, Some(1000)).unwrap();
    network.hosts[B].bind_protocol(6, ip::TCP, Some(2000)).unwrap();
    network
}

#[test]
fn a_used_up_hop_limit_is_told_by_the_router_where_it_ended() {
    for v6 in [false, true] {
        let mut network = speaking(1500);
        network.hand_packet(A, packet(v6, ip::TCP, 1, 20));
        assert_eq!(network.take_icmp(A), [(address(ROUTER, v6), Message::TimeExceeded)]);
        assert_eq!(network.counter(ROUTER, "hop_limit_exceeded"), 1);

        network.hand_packet(A, packet(v6, ip::TCP, 2, 20));
        let [(6, Item::Packet(arrived))] = &network.take(B)[..] else { panic!() };
        assert_eq!(ip::parse(arrived).unwrap().hop_limit, 1);
    }
}

/// Found by fuzzing: such a packet was sent unchanged.
#[test]
fn a_packet_handed_down_without_a_hop_left_is_not_sent() {
    for v6 in [false, true] {
        let mut network = speaking(1500);
        network.hand_packet(A, packet(v6, ip::TCP, 0, 20));
        assert!(network.frames.is_empty());
        assert_eq!(network.counter(A, "unsendable"), 1);
    }
}

#[test]
fn a_packet_without_a_next_header_is_for_nobody_and_no_error() {
    let mut network = speaking(1500);
    network.hosts[A].bind_protocol(9, ip::NO_NEXT_HEADER, None).unwrap();
    network.hand_packet(A, packet(true, ip::NO_NEXT_HEADER, 64, 0));
    assert_eq!((network.take(B).len(), network.take_icmp(A)), (0, vec![]));
    assert_eq!((network.counter(B, "delivered"), network.counter(B, "closed_port")), (1, 0));
    // In IPv4 it is a protocol like any other that nobody speaks.
    network.hand_packet(A, packet(false, ip::NO_NEXT_HEADER, 64, 0));
    assert_eq!(network.take_icmp(A), [(address(B, false), Message::Unreachable(Unreachable::Protocol))]);
}

#[test]
fn a_packet_too_big_for_the_next_link_is_answered_with_its_mtu() {
    for v6 in [false, true] {
        let mut network = speaking(1300);
        network.hand_packet(A, packet(v6, ip::TCP, 64, 1400));
        assert_eq!(network.take_icmp(A), [(address(ROUTER, v6), Message::PacketTooBig { mtu: 1300 })]);
        assert_eq!(network.hosts[A].path_mtu(address(B, v6)), Some(1300));
        assert_eq!(network.hosts[A].path_mtu(address(ROUTER, v6)), Some(1500));
        assert_eq!(network.counter(ROUTER, "too_big"), 1);

        let fits = 1300 - if v6 { 40 } else { 20 };
        network.hand_packet(A, packet(v6, ip::TCP, 64, fits));
        assert_eq!(network.take(B).len(), 1);
    }
}

#[test]
fn a_hosts_own_packet_too_big_for_its_interface_is_answered_by_the_host() {
    let mut network = speaking(1500);
    network.hand_packet(A, packet(false, ip::TCP, 64, 1481));
    assert_eq!(network.take_icmp(A), [(address(A, false), Message::PacketTooBig { mtu: 1500 })]);
    assert!(network.frames.is_empty());
}

#[test]
fn a_big_packet_that_may_be_fragmented_is_dropped_and_counted() {
    let mut network = speaking(576);
    let mut big = packet(false, ip::TCP, 64, 1000);
    // Clears "don't fragment", and takes it out of the checksum.
    let sum = u16::from_be_bytes([big[10], big[11]]);
    big[6] = 0;
    big[10..12].copy_from_slice(&hopcast_wire::checksum::adjust(sum, 0x4000, 0).to_be_bytes());
    network.hand_packet(A, big);
    assert_eq!(network.counter(ROUTER, "unfragmented"), 1);
    assert!(network.take(A).is_empty());
}

#[test]
fn an_error_fits_a_link_that_carries_little() {
    let mut network = speaking(256);
    network.hand_packet(B, {
        let mut packet = hopcast_core::Buffer::zeroed(200);
        packet[..2].copy_from_slice(&2000u16.to_be_bytes());
        ip::prepend(&mut packet, address(B, false), [10, 9, 9, 9].into(), ip::TCP, 64, 0);
        packet
    });
    assert_eq!(network.take_icmp(B), [(address(ROUTER, false), Message::Unreachable(Unreachable::Network))]);
}

#[test]
fn a_destination_without_a_route_is_unreachable() {
    for v6 in [false, true] {
        let mut network = speaking(1500);
        let mut lost = hopcast_core::Buffer::copy_from(&[0x03, 0xe8, 0x07, 0xd0, 0, 0, 0, 0]);
        ip::prepend(&mut lost, address(A, v6), address(7, v6), ip::TCP, 64, 0);
        network.hand_packet(A, lost);
        assert_eq!(network.take_icmp(A), [(address(ROUTER, v6), Message::Unreachable(Unreachable::Network))]);
        assert_eq!(network.counter(ROUTER, "no_route"), 1);
    }
}

#[test]
fn no_error_is_sent_about_an_error() {
    for v6 in [false, true] {
        let mut network = speaking(1500);
        let mut error = hopcast_core::Buffer::copy_from(&packet(v6, ip::TCP, 64, 8));
        hopcast_wire::icmp::prepend(&mut error, address(A, v6), address(B, v6), Message::TimeExceeded);
        ip::prepend(&mut error, address(A, v6), address(B, v6), icmp_protocol(v6), 1, 0);
        network.hand_packet(A, error);
        assert_eq!(network.counter(ROUTER, "hop_limit_exceeded"), 1);
        assert_eq!(network.counter(ROUTER, "errors_sent"), 0);
    }
}

#[test]
fn no_error_is_sent_to_what_is_no_single_host() {
    for source in ["0.0.0.0", "255.255.255.255", "224.0.0.1", "127.0.0.1", "::", "ff02::1"] {
        let mut network = speaking(1500);
        let source: std::net::IpAddr = source.parse().unwrap();
        let mut forged = hopcast_core::Buffer::zeroed(20);
        ip::prepend(&mut forged, source, address(B, source.is_ipv6()), ip::TCP, 1, 0);
        network.hand_packet(A, forged);
        assert_eq!(network.counter(ROUTER, "hop_limit_exceeded"), 1);
        assert_eq!(network.counter(ROUTER, "errors_sent"), 0, "to {source}");
    }
}

#[test]
fn errors_are_limited_to_a_burst_and_a_rate() {
    let mut network = speaking(1500);
    for _ in 0..200 {
        network.hand_packet(A, packet(false, ip::TCP, 1, 20));
    }
    assert_eq!(network.counter(ROUTER, "errors_sent"), 50);
    assert_eq!(network.counter(ROUTER, "errors_suppressed"), 150);
    network.now += Duration::from_millis(7);
    for _ in 0..20 {
        network.hand_packet(A, packet(false, ip::TCP, 1, 20));
    }
    assert_eq!(network.counter(ROUTER, "errors_sent"), 57);
}

#[test]
fn an_error_about_a_foreign_packet_goes_nowhere() {
    let mut network = speaking(1500);
    // The quoted packet claims to come from `b`, and the error is sent to `a`.
    let mut error = hopcast_core::Buffer::copy_from(&packet(false, ip::TCP, 64, 8));
    error[15] = 9;
    hopcast_wire::icmp::prepend(
        &mut error,
        address(B, false),
        address(A, false),
        Message::PacketTooBig { mtu: 68 },
    );
    ip::prepend(&mut error, address(B, false), address(A, false), ip::ICMP, 64, 0);
    network.hand_packet(B, error);
    assert!(network.take(A).is_empty());
    assert_eq!(network.counter(A, "icmp_ignored"), 1);
    assert_eq!(network.hosts[A].path_mtu(address(B, false)), Some(1500));
}

#[test]
fn path_mtus_are_remembered_for_a_bounded_number_of_destinations() {
    let mut network = speaking(1500);
    let destination = |n: u8| std::net::IpAddr::from([10, 7, 0, n]);
    for n in 0..=200 {
        let mut quoted = hopcast_core::Buffer::zeroed(8);
        ip::prepend(&mut quoted, address(A, false), destination(n), ip::TCP, 64, 0);
        let mut error = quoted;
        let told = Message::PacketTooBig { mtu: 600 };
        hopcast_wire::icmp::prepend(&mut error, address(B, false), address(A, false), told);
        ip::prepend(&mut error, address(B, false), address(A, false), ip::ICMP, 64, 0);
        network.hand_packet(B, error);
    }
    let known = (0..=200).filter(|&n| network.hosts[A].path_mtu(destination(n)) == Some(600)).count();
    assert_eq!(known, 64);
}

#[test]
fn ethernet_padding_is_not_forwarded() {
    let mut network = speaking(1500);
    network.hand_packet(A, packet(false, ip::TCP, 64, 20));
    let mut padded = network.frames[0].to_vec();
    padded.resize(60, 0);
    network.frames.clear();
    network.hand_frame(ROUTER, 0, &padded);
    assert_eq!(network.frames[0].len(), 14 + 40);
    assert_eq!(network.take(B).len(), 2);
}

#[test]
fn what_is_not_for_the_station_is_counted_and_dropped() {
    let mut network = speaking(1500);
    network.hosts[A].bind_udp(0, 4000).unwrap();
    network.send(A, 0, socket(B, false, 9), b"x");
    let frame = network.frames[0].clone();
    let before = network.frames.len();

    let mut other = frame.clone();
    other[5] ^= 1;
    network.hand_frame(ROUTER, 0, &other);
    assert_eq!(network.counter(ROUTER, "not_for_us"), 1);

    // To every station, but for one host: neither delivered nor forwarded.
    let mut broadcast = frame.clone();
    broadcast[..6].fill(0xff);
    network.hand_frame(ROUTER, 0, &broadcast);
    assert_eq!(network.counter(ROUTER, "not_for_us"), 2);

    let mut arp = frame.clone();
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    network.hand_frame(ROUTER, 0, &arp);
    assert_eq!(network.counter(ROUTER, "not_ip"), 1);

    // VLAN tags five deep, under which is a packet for the host.
    let mut tagged = frame.clone();
    (0..5).for_each(|_| vlan::push(&mut tagged, Tag { kind: vlan::CUSTOMER, id: 7 }));
    network.hand_frame(ROUTER, 0, &tagged);
    assert_eq!(network.counter(ROUTER, "not_ip"), 2);

    let overheard = hopcast_core::Frame { overheard: true, ..hopcast_core::Frame::new(frame.clone()) };
    network.hand(ROUTER, hopcast_core::Port::Below(0), Item::Frame(overheard));
    assert_eq!(network.counter(ROUTER, "overheard"), 1);

    network.hand_frame(ROUTER, 0, &frame[..30]);
    assert_eq!(network.counter(ROUTER, "malformed"), 1);

    // A host that is no router does not forward.
    let mut stray = frame;
    stray[..6].copy_from_slice(&crate::network::mac(B, 0));
    stray[33] = 77;
    let sum = u16::from_be_bytes([stray[24], stray[25]]);
    stray[24..26].copy_from_slice(&hopcast_wire::checksum::adjust(sum, 3, 77).to_be_bytes());
    network.hand_frame(B, 0, &stray);
    assert_eq!(network.counter(B, "not_forwarding"), 1);
    assert_eq!(network.frames.len(), before);
}
