//! Filtering by VLANs.

mod common;

use common::{HOST, HOST_MAC, Tested, filtering, frame, station, tagged};
use hopcast_bridge::bridge::{BridgePort, Config, VlanFiltering};
use hopcast_wire::ethernet::BROADCAST;
use hopcast_wire::vlan::{CUSTOMER, PROVIDER};

const A: [u8; 6] = station(1);
const B: [u8; 6] = station(2);

/// A trunk with VLANs 5 and 7, two ports of 5, one of 7, and one of neither.
fn switch() -> Tested {
    Tested::new(filtering(&[
        (0, &[5, 7], &[]),
        (5, &[], &[5]),
        (5, &[], &[5]),
        (7, &[], &[7]),
        (1, &[], &[1]),
    ]))
}

#[test]
fn a_frame_stays_in_its_vlan_and_has_the_form_that_each_port_is_given() {
    let mut bridge = switch();
    let bare = frame(BROADCAST, A);
    assert_eq!(bridge.offer(1, &bare), [(0, tagged(&bare, CUSTOMER, 5)), (2, bare.clone())]);
    assert_eq!(bridge.offer(0, &tagged(&bare, CUSTOMER, 7)), [(3, bare.clone())]);
    // An access port takes its VLAN's frames with their tag too.
    assert_eq!(bridge.offer(3, &tagged(&bare, CUSTOMER, 7)), [(0, tagged(&bare, CUSTOMER, 7))]);
    assert_eq!(bridge.offer(4, &bare), []);
    assert_eq!(bridge.counter("no_other_port"), 1);
}

#[test]
fn what_a_port_does_not_admit_is_dropped_for_a_reason_of_its_own() {
    let mut bridge = switch();
    let bare = frame(BROADCAST, A);
    assert_eq!(bridge.offer(0, &bare), []);
    assert_eq!(bridge.counter("untagged_not_allowed_in"), 1);
    assert_eq!(bridge.offer(1, &tagged(&bare, CUSTOMER, 7)), []);
    assert_eq!(bridge.offer(1, &tagged(&bare, CUSTOMER, 4095)), []);
    assert_eq!(bridge.counter("vlan_not_allowed_in"), 2);
    assert_eq!(bridge.bridge.addresses(), 0);
}

#[test]
fn a_station_is_known_in_each_vlan_by_itself() {
    let mut bridge = switch();
    bridge.offer(1, &frame(BROADCAST, A));
    bridge.offer(3, &frame(BROADCAST, A));
    assert_eq!(bridge.counter("addresses_moved"), 0);
    assert_eq!(bridge.offer(0, &tagged(&frame(A, B), CUSTOMER, 5)), [(1, frame(A, B))]);
    assert_eq!(bridge.offer(0, &tagged(&frame(A, B), CUSTOMER, 7)), [(3, frame(A, B))]);
}

#[test]
fn a_station_behind_a_port_that_is_given_no_frames_of_the_vlan_is_not_reached() {
    // Port 1 sends into VLAN 5 and is not a member of it.
    let mut bridge = Tested::new(filtering(&[(5, &[], &[5]), (5, &[], &[]), (5, &[], &[5])]));
    assert_eq!(bridge.ports(1, &frame(BROADCAST, A)), [0, 2]);
    assert_eq!(bridge.ports(0, &frame(A, B)), []);
    assert_eq!(bridge.counter("vlan_not_allowed_out"), 1);
}

#[test]
fn a_priority_stays_with_its_tag_and_a_tag_of_priority_alone_is_of_the_native_vlan() {
    let mut bridge = switch();
    let bare = frame(BROADCAST, A);
    // Priority 5, drop eligible.
    assert_eq!(
        bridge.offer(1, &tagged(&bare, CUSTOMER, 0xb000)),
        [(0, tagged(&bare, CUSTOMER, 0xb005)), (2, bare.clone())]
    );
    assert_eq!(bridge.offer(3, &tagged(&bare, CUSTOMER, 0xb007)), [(0, tagged(&bare, CUSTOMER, 0xb007))]);
    assert_eq!(bridge.offer(0, &tagged(&bare, CUSTOMER, 0xb000)), []);
    assert_eq!(bridge.counter("untagged_not_allowed_in"), 1);
}

#[test]
fn to_a_provider_the_tags_of_customers_are_what_frames_carry() {
    let config = filtering(&[(100, &[], &[100]), (0, &[100], &[])]);
    let mut bridge = Tested::new(Config { vlans: Some(VlanFiltering { protocol: PROVIDER }), ..config });
    let customer = tagged(&frame(BROADCAST, A), CUSTOMER, 7);
    assert_eq!(bridge.offer(0, &customer), [(1, tagged(&customer, PROVIDER, 100))]);
    assert_eq!(bridge.offer(1, &tagged(&customer, PROVIDER, 100)), [(0, customer)]);
    // And to a customer's bridge those of a provider.
    let mut bridge = switch();
    let provider = tagged(&frame(BROADCAST, A), PROVIDER, 7);
    assert_eq!(bridge.offer(1, &provider), [(0, tagged(&provider, CUSTOMER, 5)), (2, provider)]);
}

#[test]
fn tags_five_deep_are_one_tag_and_its_payload() {
    let mut bridge = switch();
    let mut deep = frame(BROADCAST, A);
    (0..4).for_each(|_| deep = tagged(&deep, CUSTOMER, 7));
    assert_eq!(bridge.offer(0, &tagged(&deep, CUSTOMER, 5)), [(1, deep.clone()), (2, deep)]);
    // Cut off in the tag.
    let cut = &tagged(&frame(BROADCAST, A), CUSTOMER, 5)[..15];
    assert_eq!(bridge.offer(1, cut), [(0, tagged(cut, CUSTOMER, 5)), (2, cut.to_vec())]);
}

#[test]
fn the_host_is_in_the_vlans_of_its_port() {
    let config = filtering(&[(0, &[5, 7], &[]), (5, &[], &[5])]);
    let host = BridgePort { tagged: vec![7], ..BridgePort::untagged(5) };
    let mut bridge = Tested::new(Config { host: Some((host, HOST_MAC)), ..config });
    let bare = frame(HOST_MAC, A);
    assert_eq!(bridge.offer(1, &bare), [(HOST, bare.clone())]);
    assert_eq!(bridge.offer(0, &tagged(&bare, CUSTOMER, 7)), [(HOST, tagged(&bare, CUSTOMER, 7))]);
    assert_eq!(
        bridge.offer(HOST, &frame(BROADCAST, HOST_MAC)),
        [(0, tagged(&frame(BROADCAST, HOST_MAC), CUSTOMER, 5)), (1, frame(BROADCAST, HOST_MAC))]
    );
    // Not a member of VLAN 7, it is not there.
    let config = filtering(&[(0, &[5, 7], &[]), (7, &[], &[7])]);
    let mut bridge = Tested::new(Config { host: Some((BridgePort::untagged(5), HOST_MAC)), ..config });
    assert_eq!(bridge.offer(0, &tagged(&bare, CUSTOMER, 7)), [(1, bare)]);
}

/// Found beside Linux 6.12 with random frames.
#[test]
fn the_hosts_address_is_like_any_other_where_the_host_is_no_member() {
    let config = filtering(&[(5, &[], &[5]), (5, &[], &[5]), (5, &[], &[5])]);
    let mut bridge = Tested::new(Config { host: Some((BridgePort::untagged(7), HOST_MAC)), ..config });
    assert_eq!(bridge.ports(0, &frame(BROADCAST, HOST_MAC)), [1, 2]);
    assert_eq!(bridge.ports(1, &frame(HOST_MAC, A)), [0]);
    assert_eq!(bridge.counter("own_address_heard"), 0);
}

/// Found beside Linux 6.12 with random frames.
#[test]
fn a_providers_bridge_forwards_what_is_for_the_customers_bridges() {
    let ports: [(u16, &[u16], &[u16]); 2] = [(100, &[], &[100]), (100, &[], &[100])];
    let forwarded = |protocol| {
        let vlans = Some(VlanFiltering { protocol });
        let mut bridge = Tested::new(Config { vlans, ..filtering(&ports) });
        (0..=0x10_u8)
            .filter(|&last| !bridge.ports(0, &frame([1, 0x80, 0xc2, 0, 0, last], A)).is_empty())
            .collect::<Vec<_>>()
    };
    assert_eq!(forwarded(CUSTOMER), [0, 0x10]);
    assert_eq!(forwarded(PROVIDER), [0, 0x0b, 0x0c, 0x0d, 0x0f, 0x10]);
}

#[test]
fn without_filtering_tags_pass() {
    let mut bridge = Tested::new(common::plain(2));
    let deep = tagged(&tagged(&frame(BROADCAST, A), CUSTOMER, 7), PROVIDER, 0xe064);
    assert_eq!(bridge.ports(0, &deep), [1]);
    assert_eq!(bridge.ports(1, &tagged(&frame(A, B), CUSTOMER, 9)), [0]);
}
