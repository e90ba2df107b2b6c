//! Snooping of IGMP and MLD.

mod common;

use common::{HOST, HOST_MAC, Tested, leave, query, report, station, tagged, to_group, with_host};
use hopcast_bridge::bridge::{BridgePort, Config, Querier, RouterPort, Snooping};
use hopcast_core::{Buffer, Duration, Machine};
use hopcast_wire::ip;
use hopcast_wire::membership::{self, Message, Version};
use hopcast_wire::vlan::CUSTOMER;

const GROUPS: [&str; 2] = ["239.1.2.3", "ff15::1:2"];
const QUERIERS: [&str; 2] = ["10.0.0.9", "fe80::9"];
const S: [u8; 6] = station(1);
const R: [u8; 6] = station(9);
const SECOND: Duration = Duration::from_secs(1);

fn snooping(ports: usize) -> Config {
    Config { snooping: Some(Snooping::default()), ..common::plain(ports) }
}

fn asking(ports: usize, querier: Querier) -> Config {
    Config {
        snooping: Some(Snooping { querier: Some(querier), ..Snooping::default() }),
        ..common::plain(ports)
    }
}

/// A bridge of four ports with a querier behind port 3, which hosts have had time to answer.
fn queried(version: usize) -> Tested {
    let mut bridge = Tested::new(snooping(4));
    bridge.offer(3, &query(QUERIERS[version], None, SECOND, R));
    bridge.until(1);
    bridge
}

#[test]
fn groups_are_sent_to_all_until_a_querier_has_been_answered() {
    for (version, group) in GROUPS.into_iter().enumerate() {
        let mut bridge = Tested::new(snooping(4));
        let data = to_group(group, S);
        bridge.offer(1, &report(group, Version::V2, station(2)));
        assert_eq!(bridge.ports(0, &data), [1, 2, 3]);
        bridge.offer(3, &query(QUERIERS[version], None, SECOND, R));
        assert_eq!(bridge.ports(0, &data), [1, 2, 3]);
        bridge.until(1);
        assert_eq!(bridge.ports(0, &data), [1, 3]);
        // The querier has gone, and so do the members of which nothing was heard.
        bridge.until(254);
        assert_eq!(bridge.ports(0, &data), [1, 3]);
        bridge.until(255);
        assert_eq!(bridge.ports(0, &data), [1, 2, 3]);
    }
}

#[test]
fn a_group_without_members_is_sent_to_routers_alone() {
    for (version, group) in GROUPS.into_iter().enumerate() {
        let mut bridge = queried(version);
        assert_eq!(bridge.ports(0, &to_group(group, S)), [3]);
        assert_eq!(bridge.ports(3, &to_group(group, R)), []);
        assert_eq!(bridge.counter("no_port_for_group"), 1);
        assert_eq!(bridge.counter("frames_to_members"), 1);
    }
}

#[test]
fn every_version_of_reports_makes_a_member_and_the_older_ones_are_for_routers_alone() {
    for (version, group) in GROUPS.into_iter().enumerate() {
        for kind in [Version::V1, Version::V2, Version::V3] {
            let mut bridge = queried(version);
            let heard = bridge.ports(1, &report(group, kind, station(2)));
            assert_eq!(heard, if kind == Version::V3 { vec![0, 2, 3] } else { vec![3] });
            assert_eq!(bridge.ports(0, &to_group(group, S)), [1, 3], "{group} {kind:?}");
            assert_eq!((bridge.counter("reports"), bridge.bridge.groups()), (1, 1));
        }
    }
}

#[test]
fn a_member_that_reports_no_more_is_forgotten() {
    for (version, group) in GROUPS.into_iter().enumerate() {
        let mut bridge = queried(version);
        bridge.offer(1, &report(group, Version::V2, station(2)));
        bridge.until(200);
        bridge.offer(3, &query(QUERIERS[version], None, SECOND, R));
        bridge.until(260);
        assert_eq!(bridge.ports(0, &to_group(group, S)), [1, 3]);
        bridge.until(261);
        assert_eq!(bridge.ports(0, &to_group(group, S)), [3]);
        bridge.until(1000);
        assert_eq!((bridge.bridge.groups(), bridge.bridge.deadline()), (0, None));
    }
}

#[test]
fn addresses_of_the_link_are_for_all() {
    let mut bridge = queried(0);
    assert_eq!(bridge.ports(0, &to_group("224.0.0.251", S)), [1, 2, 3]);
    let mut bridge = queried(1);
    assert_eq!(bridge.ports(0, &to_group("ff02::1", S)), [1, 2, 3]);
    // In IPv6 only all nodes need not be reported.
    assert_eq!(bridge.ports(0, &to_group("ff02::1:ff00:7", S)), [3]);
    assert_eq!(bridge.ports(0, &common::frame([1, 0, 0x5e, 1, 2, 3], S)), [1, 2, 3]);
}

#[test]
fn a_leave_is_for_the_querier_to_follow_up() {
    for (version, group) in GROUPS.into_iter().enumerate() {
        let mut bridge = queried(version);
        let data = to_group(group, S);
        for port in [1, 2] {
            bridge.offer(port, &report(group, Version::V2, station(2)));
        }
        assert_eq!(bridge.ports(1, &leave(group, station(2))), [0, 2, 3]);
        bridge.until(100);
        assert_eq!(bridge.ports(0, &data), [1, 2, 3]);
        bridge.offer(3, &query(QUERIERS[version], Some(group), SECOND, R));
        bridge.offer(2, &report(group, Version::V2, station(3)));
        bridge.until(101);
        assert_eq!(bridge.ports(0, &data), [1, 2, 3]);
        bridge.until(102);
        assert_eq!(bridge.ports(0, &data), [2, 3]);
    }
}

#[test]
fn a_querier_of_its_own_asks_all_ports_and_takes_a_leave_up() {
    let mut bridge = Tested::new(with_host(asking(3, Querier::of(HOST_MAC))));
    let first = bridge.until(0);
    let read = |bytes: &[u8]| {
        let packet = Buffer::copy_from(&bytes[14..]);
        let header = ip::parse(&packet).unwrap();
        match membership::parse(&packet, &header).unwrap().unwrap() {
            Message::Query(query, _) => (header.source.to_string(), query.group, query.version),
            other => panic!("{other:?}"),
        }
    };
    let ports: Vec<u32> = first.iter().map(|(port, _)| *port).collect();
    assert_eq!(ports, [0, 1, 2, HOST, 0, 1, 2, HOST]);
    assert_eq!(read(&first[0].1), ("0.0.0.0".to_owned(), None, Version::V2));
    assert_eq!(read(&first[4].1), ("fe80::ff:ff:fe00:1".to_owned(), None, Version::V2));
    assert_eq!(first[0].1[..12], [&[1, 0, 0x5e, 0, 0, 1], &HOST_MAC[..]].concat());
    // Two at the start, and then one each interval.
    let times: Vec<u64> = (0..400).filter(|&second| !bridge.until(second).is_empty()).collect();
    assert_eq!(times, [32, 157, 282]);
    for group in GROUPS {
        let data = to_group(group, S);
        bridge.offer(1, &report(group, Version::V2, station(2)));
        bridge.offer(HOST, &report(group, Version::V2, HOST_MAC));
        assert_eq!(bridge.ports(0, &data), [1, HOST]);
        let answer = bridge.offer(1, &leave(group, station(2)));
        let (port, asked) = answer.last().unwrap();
        assert_eq!((*port, read(asked).1), (1, Some(group.parse().unwrap())));
        assert_eq!(bridge.ports(0, &data), [1, HOST]);
    }
    assert_eq!(bridge.until(400).len(), 0);
    // In case that the query was lost, all are asked again.
    assert_eq!(bridge.until(401).len(), 8);
    GROUPS.iter().for_each(|group| assert_eq!(bridge.ports(0, &to_group(group, S)), [HOST]));
}

#[test]
fn the_lowest_address_queries() {
    let own = Querier { address: "10.0.0.5".parse().unwrap(), ..Querier::of(HOST_MAC) };
    let mut bridge = Tested::new(asking(2, own));
    bridge.until(11);
    let is_v4 = |(_, bytes): &(u32, Vec<u8>)| bytes[12] == 0x08;
    let asked = |bridge: &mut Tested, until| bridge.until(until).iter().filter(|sent| is_v4(sent)).count();
    // A higher one goes unheard: its port is none of routers.
    bridge.offer(1, &query("10.0.0.9", None, SECOND, R));
    assert_eq!(bridge.ports(0, &to_group(GROUPS[0], S)), []);
    assert_eq!(asked(&mut bridge, 40), 2);
    bridge.offer(1, &query("10.0.0.2", None, SECOND, R));
    assert_eq!(bridge.ports(0, &to_group(GROUPS[0], S)), [1]);
    assert_eq!(asked(&mut bridge, 294), 0);
    // It has gone, and this bridge begins again.
    assert_eq!(asked(&mut bridge, 296), 2);
    assert_eq!(asked(&mut bridge, 327), 2);
}

#[test]
fn a_querier_without_an_address_gives_way_to_any() {
    let mut bridge = Tested::new(asking(2, Querier::of(HOST_MAC)));
    bridge.until(11);
    bridge.offer(1, &query("10.0.0.9", None, SECOND, R));
    assert_eq!(bridge.ports(0, &to_group(GROUPS[0], S)), [1]);
    // Of IPv4 there are none, and of IPv6, where it has the lowest address, one for each port.
    let types: Vec<u8> = bridge.until(60).iter().map(|(_, bytes)| bytes[12]).collect();
    assert_eq!(types, [0x86, 0x86]);
}

#[test]
fn routers_are_told_by_pims_hellos_and_by_configuration() {
    let hello = |to: &str, own: &str| {
        let mut packet = Buffer::copy_from(&[0x20, 0, 0, 0]);
        ip::prepend(&mut packet, own.parse().unwrap(), to.parse().unwrap(), 103, 1, 0);
        common::around(&packet, R)
    };
    for (version, (to, own)) in [("224.0.0.13", "10.0.0.7"), ("ff02::d", "fe80::7")].into_iter().enumerate() {
        let mut bridge = queried(version);
        bridge.offer(2, &hello(to, own));
        assert_eq!(bridge.ports(0, &to_group(GROUPS[version], S)), [2, 3]);
    }
    let mut config = snooping(4);
    config.ports[1] = BridgePort { router: RouterPort::Always, ..BridgePort::default() };
    config.ports[2] = BridgePort { router: RouterPort::Never, ..BridgePort::default() };
    let mut bridge = Tested::new(config);
    bridge.offer(2, &hello("224.0.0.13", "10.0.0.7"));
    bridge.offer(2, &query(QUERIERS[0], None, SECOND, R));
    bridge.until(1);
    assert_eq!(bridge.ports(0, &to_group(GROUPS[0], S)), [1]);
}

#[test]
fn each_vlan_has_members_and_a_querier_of_its_own() {
    let mut config =
        common::filtering(&[(0, &[5, 7], &[]), (5, &[], &[5]), (7, &[], &[7]), (0, &[5, 7], &[])]);
    config.snooping = Some(Snooping::default());
    let mut bridge = Tested::new(config.clone());
    let (group, ports) =
        (GROUPS[0], |sent: Vec<(u32, Vec<u8>)>| sent.into_iter().map(|(port, _)| port).collect::<Vec<_>>());
    bridge.offer(3, &tagged(&query(QUERIERS[0], None, SECOND, R), CUSTOMER, 7));
    bridge.offer(3, &tagged(&report(group, Version::V2, station(2)), CUSTOMER, 5));
    bridge.until(1);
    let data = to_group(group, S);
    // Nobody queries VLAN 5; in 7 nobody wants the group but the router.
    assert_eq!(ports(bridge.offer(0, &tagged(&data, CUSTOMER, 5))), [1, 3]);
    assert_eq!(bridge.offer(0, &tagged(&data, CUSTOMER, 7)), [(3, tagged(&data, CUSTOMER, 7))]);
    bridge.offer(2, &report(group, Version::V2, station(2)));
    assert_eq!(ports(bridge.offer(0, &tagged(&data, CUSTOMER, 7))), [2, 3]);
    // A querier of its own asks in each, in the form that each port is given.
    config.snooping = Some(Snooping { querier: Some(Querier::of(HOST_MAC)), ..Snooping::default() });
    let mut bridge = Tested::new(config);
    let v4: Vec<(u32, Option<u8>)> = bridge
        .until(0)
        .into_iter()
        .filter_map(|(port, bytes)| match bytes[12..] {
            [0x08, 0, ..] => Some((port, None)),
            [0x81, 0, 0, vlan, 0x08, 0, ..] => Some((port, Some(vlan))),
            _ => None,
        })
        .collect();
    assert_eq!(v4, [(0, Some(5)), (1, None), (3, Some(5)), (0, Some(7)), (2, None), (3, Some(7))]);
}

#[test]
fn without_vlans_what_a_tag_hides_is_heard_all_the_same() {
    let mut bridge = queried(0);
    bridge.offer(1, &tagged(&report(GROUPS[0], Version::V2, station(2)), CUSTOMER, 7));
    assert_eq!(bridge.ports(0, &tagged(&to_group(GROUPS[0], S), CUSTOMER, 9)), [1, 3]);
}

#[test]
fn more_groups_than_there_is_room_for_are_sent_to_all_until_there_is() {
    let config = Config { snooping: Some(Snooping { max_groups: 1, querier: None }), ..common::plain(4) };
    let mut bridge = Tested::new(config);
    bridge.offer(3, &query(QUERIERS[0], None, SECOND, R));
    bridge.until(1);
    for group in ["239.0.0.1", "239.0.0.2"] {
        bridge.offer(1, &report(group, Version::V2, station(2)));
    }
    assert_eq!((bridge.bridge.groups(), bridge.counter("groups_refused")), (1, 1));
    assert_eq!(bridge.ports(0, &to_group("239.0.0.1", S)), [1, 3]);
    assert_eq!(bridge.ports(0, &to_group("239.0.0.2", S)), [1, 2, 3]);
    bridge.until(200);
    bridge.offer(3, &query(QUERIERS[0], None, SECOND, R));
    bridge.until(262);
    bridge.offer(1, &report("239.0.0.2", Version::V2, station(2)));
    assert_eq!(bridge.ports(0, &to_group("239.0.0.2", S)), [1, 3]);
    assert_eq!(bridge.ports(0, &to_group("239.0.0.1", S)), [3]);
}

#[test]
fn messages_that_do_not_parse_are_dropped_and_teach_nothing() {
    for (version, group) in GROUPS.into_iter().enumerate() {
        let mut bridge = queried(version);
        let sound = report(group, Version::V2, station(2));
        let mut wrong = sound.clone();
        *wrong.last_mut().unwrap() ^= 1;
        for bad in [&wrong[..], &sound[..sound.len() - 1], &sound[..20]] {
            assert_eq!(bridge.ports(1, bad), []);
        }
        if version == 1 {
            // MLD is of one link.
            assert_eq!(bridge.ports(1, &query("fd00::1", None, SECOND, R)), []);
        }
        // A general query to somebody else than all nodes.
        let mut to_one = query(QUERIERS[version], None, SECOND, R);
        let last = if version == 0 { 33 } else { 53 };
        to_one[last] ^= 2;
        assert_eq!(bridge.ports(1, &to_one), []);
        assert_eq!(
            (bridge.bridge.groups(), bridge.counter("malformed_group_frame")),
            (0, 4 + version as u64)
        );
    }
}
