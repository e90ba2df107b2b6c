//! Learning, ageing and flooding, without VLANs.

mod common;

use common::{HOST, HOST_MAC, Tested, at, frame, plain, station, with_host};
use hopcast_bridge::bridge::Config;
use hopcast_core::{Buffer, Duration, Item, Machine, Port};
use hopcast_wire::ethernet::BROADCAST;

const A: [u8; 6] = station(1);
const B: [u8; 6] = station(2);

#[test]
fn a_frame_to_a_station_that_was_heard_leaves_by_its_port_alone() {
    let mut bridge = Tested::new(plain(4));
    assert_eq!(bridge.ports(0, &frame(B, A)), [1, 2, 3]);
    assert_eq!(bridge.ports(2, &frame(A, B)), [0]);
    assert_eq!(bridge.ports(0, &frame(B, A)), [2]);
    assert_eq!(bridge.ports(3, &frame(BROADCAST, A)), [0, 1, 2]);
    assert_eq!(bridge.counter("not_learned"), 1);
    assert_eq!((bridge.counter("frames_in"), bridge.counter("frames_out")), (4, 8));
}

#[test]
fn a_frame_to_a_station_behind_its_own_port_goes_no_further() {
    let mut bridge = Tested::new(plain(2));
    bridge.offer(0, &frame(BROADCAST, A));
    assert_eq!(bridge.ports(0, &frame(A, B)), []);
    assert_eq!(bridge.counter("same_port"), 1);
}

#[test]
fn a_station_that_moves_is_found_again_and_one_that_is_quiet_forgotten() {
    let mut bridge = Tested::new(plain(3));
    bridge.offer(0, &frame(BROADCAST, A));
    bridge.offer(2, &frame(BROADCAST, A));
    assert_eq!(bridge.ports(1, &frame(A, B)), [2]);
    assert_eq!(bridge.counter("addresses_moved"), 1);
    bridge.until(299);
    assert_eq!(bridge.ports(1, &frame(A, B)), [2]);
    bridge.until(300);
    assert_eq!(bridge.ports(1, &frame(A, B)), [0, 2]);
    assert_eq!(bridge.bridge.addresses(), 1);
    bridge.until(1000);
    assert_eq!((bridge.bridge.addresses(), bridge.bridge.deadline()), (0, None));
}

#[test]
fn the_host_is_given_what_is_for_it_for_all_and_for_groups() {
    let mut bridge = Tested::new(with_host(plain(2)));
    assert_eq!(bridge.ports(0, &frame(HOST_MAC, A)), [HOST]);
    assert_eq!(bridge.ports(0, &frame(BROADCAST, A)), [1, HOST]);
    assert_eq!(bridge.ports(0, &frame([0x33, 0x33, 0, 0, 0, 1], A)), [1, HOST]);
    assert_eq!(bridge.ports(0, &frame(B, A)), [1]);
    assert_eq!(bridge.ports(HOST, &frame(A, HOST_MAC)), [0]);
    assert_eq!(bridge.ports(HOST, &frame(B, HOST_MAC)), [0, 1]);
    assert_eq!(bridge.ports(HOST, &frame(BROADCAST, HOST_MAC)), [0, 1]);
}

#[test]
fn a_frame_from_the_hosts_own_address_is_counted_and_teaches_nothing() {
    let mut bridge = Tested::new(with_host(plain(2)));
    assert_eq!(bridge.ports(1, &frame(BROADCAST, HOST_MAC)), [0, HOST]);
    assert_eq!(bridge.ports(0, &frame(HOST_MAC, A)), [HOST]);
    assert_eq!(bridge.counter("own_address_heard"), 1);
}

#[test]
fn reserved_addresses_are_not_forwarded_but_that_of_the_spanning_tree_is() {
    let mut bridge = Tested::new(with_host(plain(2)));
    for last in 0..0x20 {
        let passed = last == 0 || last > 0x0f;
        let expected: &[u32] = if passed { &[1, HOST] } else { &[] };
        assert_eq!(bridge.ports(0, &frame([1, 0x80, 0xc2, 0, 0, last], A)), expected, "{last}");
    }
    assert_eq!(bridge.counter("reserved_address"), 15);
    // The host's own leave, as those of any group.
    assert_eq!(bridge.ports(HOST, &frame([1, 0x80, 0xc2, 0, 0, 0x0e], HOST_MAC)), [0, 1]);
    // All but pause frames teach where their sender is.
    let mut bridge = Tested::new(plain(3));
    bridge.offer(0, &frame([1, 0x80, 0xc2, 0, 0, 1], A));
    bridge.offer(0, &frame([1, 0x80, 0xc2, 0, 0, 0x0e], B));
    assert_eq!(
        (bridge.ports(1, &frame(A, station(9))), bridge.ports(1, &frame(B, station(9)))),
        (vec![0, 2], vec![0])
    );
}

#[test]
fn frames_from_groups_from_nobody_and_too_short_ones_are_dropped() {
    let mut bridge = Tested::new(plain(2));
    assert_eq!(bridge.ports(0, &frame(B, BROADCAST)), []);
    assert_eq!(bridge.ports(0, &frame(B, [0; 6])), []);
    assert_eq!(bridge.ports(0, &frame(B, A)[..13]), []);
    assert_eq!(bridge.ports(0, b""), []);
    assert_eq!((bridge.counter("source_not_allowed"), bridge.counter("malformed")), (2, 2));
    assert_eq!(bridge.bridge.addresses(), 0);
}

#[test]
fn a_flood_of_addresses_fills_the_table_and_no_more() {
    let mut bridge = Tested::new(Config { max_addresses: 100, ..plain(2) });
    for number in 0..10_000_u32 {
        let [a, b, c, d] = number.to_be_bytes();
        bridge.offer(0, &frame(BROADCAST, [2, 1, a, b, c, d]));
    }
    assert_eq!((bridge.bridge.addresses(), bridge.counter("addresses_refused")), (100, 9900));
    // Those that it knows are found, others are sent to all.
    assert_eq!(bridge.ports(0, &frame([2, 1, 0, 0, 0, 99], B)), []);
    assert_eq!(bridge.ports(0, &frame([2, 1, 0, 0, 0, 100], B)), [1]);
    bridge.now = at(301);
    assert_eq!(bridge.ports(1, &frame(BROADCAST, A)), [0]);
    assert_eq!(bridge.bridge.addresses(), 1);
}

#[test]
fn a_port_alone_has_nobody_to_send_to() {
    let mut bridge = Tested::new(plain(1));
    assert_eq!(bridge.ports(0, &frame(BROADCAST, A)), []);
    assert_eq!(bridge.counter("no_other_port"), 1);
}

#[test]
fn a_loop_multiplies_no_frame_inside_and_shows_as_stations_that_move() {
    // Two bridges joined by two links: ports 0 and 1 of each. Port 2 of the first has the station.
    let (mut one, mut two) = (Tested::new(plain(3)), Tested::new(plain(2)));
    let mut on_links: Vec<(u32, Vec<u8>)> = one.offer(2, &frame(BROADCAST, A));
    for round in 0..1000 {
        let here = if round % 2 == 0 { &mut two } else { &mut one };
        on_links = on_links
            .iter()
            .flat_map(|(port, bytes)| here.offer(*port, bytes))
            .filter(|(port, _)| *port < 2)
            .collect();
        assert_eq!(on_links.len(), 2);
    }
    assert!(one.counter("addresses_moved") > 500);
}

#[test]
fn the_mtu_of_the_host_is_the_smallest_of_all_ports() {
    let mut bridge = Tested::new(with_host(plain(2)));
    let mut told = |port, mtu| {
        bridge.bridge.handle(at(0), port, Item::Mtu(mtu));
        bridge.bridge.poll(at(0))
    };
    assert_eq!(told(Port::Below(0), 1500), Some((Port::Above(0), Item::Mtu(1500))));
    assert_eq!(told(Port::Below(1), 9000), Some((Port::Above(0), Item::Mtu(1500))));
    assert_eq!(told(Port::Below(0), 9500), Some((Port::Above(0), Item::Mtu(9000))));
    assert_eq!(told(Port::Below(2), 100), None);
}

#[test]
fn items_that_are_no_frames_are_counted() {
    let mut bridge = Tested::new(plain(1));
    bridge.bridge.handle(at(0), Port::Below(0), Item::Packet(Buffer::default()));
    bridge.bridge.handle(at(0), Port::Below(1), Item::Frame(hopcast_core::Frame::new(Buffer::default())));
    bridge.bridge.handle(at(0), Port::Above(0), Item::Frame(hopcast_core::Frame::new(Buffer::default())));
    assert_eq!(bridge.counter("wrong_items"), 3);
}

#[test]
fn without_ageing_every_frame_is_sent_to_all() {
    let mut bridge = Tested::new(Config { ageing: Duration::ZERO, ..plain(3) });
    bridge.offer(0, &frame(BROADCAST, A));
    assert_eq!(bridge.ports(1, &frame(A, B)), [0, 2]);
    assert_eq!(bridge.bridge.deadline(), None);
}
