//! The decision and the packets, byte by byte.

use std::collections::BTreeSet;

use super::packet::header_len;
use super::*;
use crate::routing::Via;
use crate::wire::{data, tvlv};
use hopcast_core::Buffer;

fn node(number: u16) -> Mac {
    let [high, low] = number.to_be_bytes();
    [2, 0, 0, 0, high, low]
}

fn nodes(number: u16) -> BTreeSet<Mac> {
    (1..=number).map(node).collect()
}

fn multicast(config: MulticastConfig) -> Multicast {
    let mut multicast = Multicast::new(config);
    multicast.listeners.set(node(1), Some(HAS_MULTICAST_PACKETS | WANT_NO_ROUTER_IPV4 | WANT_NO_ROUTER_IPV6));
    multicast
}

#[test]
fn a_packet_has_the_bytes_that_the_kernel_makes() {
    let frame = [[1, 0, 0x5e, 1, 2, 3], [6; 6]].concat();
    let mut packet = Buffer::copy_from(&frame);
    prepend(&mut packet, &[node(1), node(2)]);
    let headers = [
        &[0x05, 15, 50, 0, 0, 20][..], // type, version, TTL, reserved, length of the containers
        &[7, 1, 0, 16],                // tracker, its version, its length
        &[0, 2],                       // number of destinations
        &node(1),
        &node(2),
        &[0, 0], // padding of an even number
    ]
    .concat();
    assert_eq!(packet[..], [&headers[..], &frame].concat());
    assert_eq!(header_len(2), headers.len());
    let mut odd = Buffer::copy_from(&frame);
    prepend(&mut odd, &[node(1)]);
    assert_eq!(odd[..18], [&[5, 15, 50, 0, 0, 12, 7, 1, 0, 8, 0, 1][..], &node(1)].concat());
    assert_eq!(header_len(1), 18);
}

#[test]
fn a_frame_fits_a_packet_up_to_the_limits_of_the_code_and_of_the_documentation() {
    for (limit, sizes) in [
        (SizeLimit::Kernel, [(1, 1262), (2, 1254), (3, 1250), (32, 1074), (196, 90)]),
        (SizeLimit::Documented, [(2, 1222), (8, 1186), (32, 1030), (128, 454), (196, 46)]),
    ] {
        for (destinations, longest) in sizes {
            assert!(limit.fits(longest, destinations), "{limit:?} {destinations}");
            assert!(!limit.fits(longest + 1, destinations), "{limit:?} {destinations}");
        }
    }
}

#[test]
fn the_mode_follows_size_number_and_capability() {
    let mut of_kernel = multicast(MulticastConfig::default());
    let all = |number| nodes(number).into_iter().collect::<Vec<_>>();
    assert_eq!(of_kernel.decide(1000, nodes(0), true), Decision::Drop);
    assert_eq!(of_kernel.decide(1262, nodes(1), true), Decision::Packets(vec![all(1)]));
    assert_eq!(of_kernel.decide(1263, nodes(1), true), Decision::Copies(all(1)));
    assert_eq!(of_kernel.decide(1000, nodes(40), true), Decision::Packets(vec![all(40)]));
    assert_eq!(of_kernel.decide(1100, nodes(40), true), Decision::Flood);
    assert_eq!(of_kernel.decide(1400, nodes(16), true), Decision::Copies(all(16)));
    assert_eq!(of_kernel.decide(1400, nodes(17), true), Decision::Flood);
    assert_eq!(of_kernel.decide(1000, nodes(3), false), Decision::Copies(all(3)));
    of_kernel.listeners.set(node(9), None);
    assert_eq!(of_kernel.decide(1000, nodes(3), true), Decision::Copies(all(3)));
}

#[test]
fn destinations_are_divided_among_packets_if_that_is_allowed() {
    let divided = multicast(MulticastConfig { max_packets: 3, ..MulticastConfig::default() });
    let Decision::Packets(packets) = divided.decide(1100, nodes(40), true) else { panic!() };
    assert_eq!(packets.iter().map(Vec::len).collect::<Vec<_>>(), [20, 20]);
    assert_eq!(packets.concat(), nodes(40).into_iter().collect::<Vec<_>>());
    assert_eq!(divided.decide(1250, nodes(40), true), Decision::Flood);
}

#[test]
fn fixed_modes_do_without_packets_or_copies() {
    let mode = |mode| multicast(MulticastConfig { mode, fanout: 2, ..MulticastConfig::default() });
    let unicast = mode(MulticastMode::Unicast);
    assert!(matches!(unicast.decide(100, nodes(2), true), Decision::Copies(copies) if copies.len() == 2));
    assert_eq!(unicast.decide(100, nodes(3), true), Decision::Flood);
    let broadcast = mode(MulticastMode::Broadcast);
    assert_eq!(broadcast.decide(100, nodes(1), true), Decision::Flood);
    assert_eq!(broadcast.decide(100, nodes(0), true), Decision::Drop);
}

#[test]
fn receivers_are_who_announces_wants_all_or_routes_each_once() {
    let mut multicast = Multicast::new(MulticastConfig::default());
    let [announcer, all, router, bridge] = [1, 2, 3, 4].map(node);
    let none = WANT_NO_ROUTER_IPV4 | WANT_NO_ROUTER_IPV6;
    multicast.listeners.set(announcer, Some(none));
    multicast.listeners.set(all, Some(none | WANT_ALL_IPV4));
    multicast.listeners.set(router, Some(WANT_NO_ROUTER_IPV6));
    let receivers = |multicast: &Multicast, kind| multicast.receivers([announcer, all].into_iter(), kind);
    assert_eq!(receivers(&multicast, (false, false, true)), Some([announcer, all, router].into()));
    assert_eq!(receivers(&multicast, (false, true, false)), Some([announcer, all].into()));
    assert_eq!(receivers(&multicast, (true, false, true)), Some([announcer, all].into()));
    multicast.listeners.set(bridge, Some(none | WANT_ALL_UNSNOOPABLES));
    assert_eq!(receivers(&multicast, (false, true, false)), None);
    assert_eq!(receivers(&multicast, (false, false, true)), Some([announcer, all, router].into()));
}

#[test]
fn a_packet_is_divided_by_next_hop_and_each_destination_is_in_one_copy() {
    let frame = [7; 20];
    let mut packet = Buffer::copy_from(&frame);
    let listed = [node(1), node(2), [0; 6], node(3), node(1), [1; 6], node(4), node(5)];
    prepend(&mut packet, &listed);
    let received = Received::parse(&packet).unwrap();
    let via = |number| Via::new(0, node(number));
    let next_hop = |to: Mac| match to[5] {
        1 | 4 => Some(via(101)),
        2 => Some(via(102)),
        _ => None,
    };
    let found = by_next_hop(received.destinations(), |address| address == node(5), next_hop);
    let hops = vec![(via(101), vec![node(1), node(4)]), (via(102), vec![node(2)])];
    assert_eq!(found, ByNextHop { hops, own: true, unreachable: 1 });
    let mut expected = Buffer::copy_from(&frame);
    prepend(&mut expected, &[node(1), node(4)]);
    expected[2] = 49;
    assert_eq!(received.copy_for(&[node(1), node(4)])[..], expected[..]);
}

#[test]
fn containers_of_other_types_are_passed_on_in_their_places() {
    let (mut containers, mut tracker) = (Vec::new(), Vec::new());
    tvlv::put(&mut containers, 99, 1, b"before");
    tvlv::Tracker::put(&mut tracker, &[node(1), node(2), node(3)]);
    tvlv::put(&mut containers, 7, 1, &tracker);
    tvlv::put(&mut containers, 98, 1, b"behind");
    let build = |containers: &[u8], ttl| {
        let mut packet = Buffer::copy_from(&[7; 14]);
        packet.prepend(containers.len()).copy_from_slice(containers);
        use crate::wire::Header as _;
        data::Multicast { ttl, tvlv_len: containers.len() as u16 }.prepend(&mut packet);
        packet
    };
    let packet = build(&containers, 9);
    let copy = Received::parse(&packet).unwrap().copy_for(&[node(2)]);
    let (mut expected, mut tracker) = (Vec::new(), Vec::new());
    tvlv::put(&mut expected, 99, 1, b"before");
    tvlv::Tracker::put(&mut tracker, &[node(2)]);
    tvlv::put(&mut expected, 7, 1, &tracker);
    tvlv::put(&mut expected, 98, 1, b"behind");
    assert_eq!(copy[..], build(&expected, 8)[..]);
}

#[test]
fn malformed_packets_are_refused_at_every_length() {
    let mut packet = Buffer::copy_from(&[7; 14]);
    prepend(&mut packet, &[node(1), node(2)]);
    assert!(Received::parse(&packet).is_ok());
    for len in 0..packet.len() {
        assert!(Received::parse(&packet[..len]).is_err(), "{len}");
    }
    // More destinations than there are, another version of the tracker, containers longer than the packet.
    for (at, value) in [(11, 200), (7, 2), (4, 1)] {
        let mut changed = packet.to_vec();
        changed[at] = value;
        assert!(Received::parse(&changed).is_err(), "{at}");
    }
}

#[test]
fn flags_are_written_as_batctl_does() {
    assert_eq!(flags_text(0), "[...R4R6P]");
    assert_eq!(flags_text(0x3f), "[U46. . .]");
    assert_eq!(flags_text(0x38), "[.... . .]");
}
