//! UDP between hosts.

#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;

use crate::network::{A, B, Network, address, icmp_protocol, socket};
use hopcast_core::{Attributes, Buffer, Datagram, Item, Port};
use hopcast_host::BindError;
use hopcast_wire::icmp::{Message, Unreachable};
use hopcast_wire::ip;
use proptest::prelude::*;

fn bound() -> Network {
    let mut network = Network::new(1500);
    network.hosts[A].bind_udp(0, 4000).unwrap();
    network.hosts[B].bind_udp(3, 5000).unwrap();
    network
}

#[test]
fn a_datagram_arrives_whole_with_both_ends_in_both_versions() {
    for v6 in [false, true] {
        let mut network = bound();
        // Below Ethernet's minimum payload, too.
        for payload in [&b""[..], b"x", &[7; 1400]] {
            network.send(A, 0, socket(B, v6, 5000), payload);
            let attributes = Attributes { interface: Some(0), hop_limit: Some(63), ..Attributes::CHOICE };
            let (local, remote) = (socket(B, v6, 5000), socket(A, v6, 4000));
            let expected = Datagram { local, remote, payload: Buffer::copy_from(payload), attributes };
            assert_eq!(network.take(B), [(3, Item::Datagram(expected))]);
        }
    }
}

#[test]
fn the_answer_to_a_datagram_goes_back_the_way_it_came() {
    let mut network = bound();
    network.send(A, 0, socket(B, true, 5000), b"question");
    let [(3, Item::Datagram(question))] = &network.take(B)[..] else { panic!() };
    let answer = Datagram::new(question.local, question.remote, Buffer::copy_from(b"answer"));
    network.hand(B, Port::Above(3), Item::Datagram(answer));
    assert!(matches!(&network.take(A)[..], [(0, Item::Datagram(d))] if &d.payload[..] == b"answer"));
}

#[test]
fn a_host_reaches_itself_without_an_interface() {
    let mut network = bound();
    network.hosts[A].bind_udp(1, 4001).unwrap();
    network.send(A, 0, socket(A, false, 4001), b"me");
    assert!(matches!(&network.take(A)[..], [(1, Item::Datagram(d))] if d.remote == socket(A, false, 4000)));
    assert!(network.frames.is_empty());
}

#[test]
fn a_closed_port_is_answered_and_the_answer_counted() {
    for v6 in [false, true] {
        let mut network = bound();
        network.send(A, 0, socket(B, v6, 5001), b"anybody?");
        assert!(network.take(B).is_empty() && network.take(A).is_empty());
        assert_eq!(network.counter(B, "closed_port"), 1);
        assert_eq!(network.counter(A, "udp_errors_received"), 1);
    }
}

#[test]
fn whoever_binds_udp_as_a_protocol_sees_the_port_unreachable() {
    for v6 in [false, true] {
        let mut network = bound();
        network.hosts[A].bind_protocol(9, ip::UDP, Some(1000)).unwrap();
        let mut datagram = Buffer::copy_from(b"anybody?");
        hopcast_wire::udp::prepend(&mut datagram, socket(A, v6, 1000), socket(B, v6, 2000));
        ip::prepend(&mut datagram, address(A, v6), address(B, v6), ip::UDP, 64, 0);
        network.hand_packet(A, datagram);
        let expected = (address(B, v6), Message::Unreachable(Unreachable::Port));
        assert_eq!(network.take_icmp(A), [expected]);
    }
}

#[test]
fn a_foreign_end_is_not_sent_from() {
    let mut network = bound();
    let refused: [(SocketAddr, SocketAddr); 4] = [
        (socket(B, false, 4000), socket(B, false, 5000)),
        (socket(A, false, 4002), socket(B, false, 5000)),
        (socket(A, true, 4000), socket(B, false, 5000)),
        ("127.0.0.1:0".parse().unwrap(), socket(B, false, 5000)),
    ];
    for (local, remote) in refused {
        let datagram = Datagram::new(local, remote, Buffer::default());
        network.hand(A, Port::Above(0), Item::Datagram(datagram));
    }
    let huge = Datagram::new(socket(A, true, 4000), socket(A, true, 4000), Buffer::zeroed(65_528));
    network.hand(A, Port::Above(0), Item::Datagram(huge));
    network.send(A, 8, socket(B, false, 5000), b"nothing is bound on Above(8)");
    assert_eq!(network.counter(A, "unsendable"), 6);
    assert!(network.frames.is_empty());
}

#[test]
fn a_port_is_bound_once() {
    let mut network = bound();
    let host = &mut network.hosts[A];
    assert_eq!(host.bind_udp(1, 4000), Err(BindError::PortTaken { port: 4000, by: 0 }));
    assert_eq!(host.bind_udp(1, 0), Err(BindError::PortZero));
    let taken = BindError::ProtocolTaken { protocol: ip::UDP, port: Some(4000), by: 0 };
    assert_eq!(host.bind_protocol(1, ip::UDP, Some(4000)), Err(taken));
    assert_eq!(host.bind_protocol(1, ip::TCP, Some(80)), Ok(()));
    assert_eq!(host.bind_protocol(2, ip::TCP, None), Ok(()));
    assert!(host.bind_protocol(2, ip::TCP, Some(80)).is_err());
    assert_eq!(taken.to_string(), "port 4000 of IP protocol 17 is bound already, by Above(0)");
}

#[test]
fn a_group_that_was_joined_is_heard_and_others_are_not() {
    let mut network = bound();
    network.hosts[B].join(3, "ff15::7".parse().unwrap());
    for group in ["[ff15::7]:5000", "[ff15::8]:5000"] {
        let mut packet = Buffer::copy_from(b"all");
        let to: SocketAddr = group.parse().unwrap();
        hopcast_wire::udp::prepend(&mut packet, socket(A, true, 1), to);
        ip::prepend(&mut packet, address(A, true), to.ip(), ip::UDP, 1, 0);
        let header = hopcast_wire::ethernet::Header {
            destination: hopcast_wire::ethernet::of_group(to.ip()),
            source: crate::network::mac(A, 0),
            ether_type: hopcast_wire::ethernet::IPV6,
        };
        hopcast_wire::ethernet::prepend(&mut packet, header);
        network.hand_frame(B, 0, &packet);
    }
    assert!(
        matches!(&network.take(B)[..], [(3, Item::Datagram(d))] if d.local == "[ff15::7]:5000".parse().unwrap())
    );
    assert_eq!(network.counter(B, "multicast_dropped"), 1);
}

#[test]
fn a_fragment_is_not_delivered() {
    let mut network = bound();
    let mut packet = crate::network::packet(true, 44, 64, 40);
    packet[40..48].copy_from_slice(&[ip::UDP, 0, 0, 1, 0, 0, 0, 9]);
    network.hand_packet(A, packet);
    assert_eq!(network.counter(B, "fragments"), 1);
    assert!(network.take(B).is_empty());
}

#[test]
fn an_unknown_protocol_is_refused_as_such() {
    for v6 in [false, true] {
        let mut network = bound();
        network.hosts[A].bind_protocol(9, 99, None).unwrap();
        network.hand_packet(A, crate::network::packet(v6, 99, 64, 20));
        assert_eq!(network.take_icmp(A), [(address(B, v6), Message::Unreachable(Unreachable::Protocol))]);
        assert_eq!(icmp_protocol(v6) == ip::ICMPV6, v6);
    }
}

proptest! {
    #[test]
    fn a_corrupted_datagram_is_never_delivered(v6: bool, bit: usize, payload in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut network = bound();
        network.hosts[B].bind_protocol(7, 200, None).unwrap();
        network.flip = Some((B, bit));
        network.send(A, 0, socket(B, v6, 5000), &payload);
        // The Ethernet header has an FCS in the real world, and fields of IP may change without harm to the payload:
        // whatever is delivered is what was sent.
        for (_, item) in network.take(B) {
            let Item::Datagram(datagram) = item else { panic!("{item:?}") };
            prop_assert_eq!(&datagram.payload[..], &payload[..]);
            prop_assert_eq!((datagram.local, datagram.remote), (socket(B, v6, 5000), socket(A, v6, 4000)));
        }
    }
}

#[test]
fn a_corrupted_payload_is_counted() {
    let mut network = bound();
    network.flip = Some((B, 8 * (14 + 20 + 8)));
    network.send(A, 0, socket(B, false, 5000), b"payload");
    assert!(network.take(B).is_empty());
    assert_eq!(network.counter(B, "checksum_errors"), 1);
}
