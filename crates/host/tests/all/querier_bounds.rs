//! Routers that learn of the members of a link, and stations that forge reports and leaves.

#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, Ipv6Addr};

use crate::shared_link::{INTERFACE, SharedLink, Station, at, include, secs};
use hopcast_core::{Buffer, Duration};
use hopcast_host::membership::Filter;
use hopcast_host::querier;
use hopcast_wire::membership::{Query, RecordType, Version};
use hopcast_wire::{igmp, ip, mld, router_alert};

/// Time between two frames at the line rate of 100 Mbit/s: 64 bytes with preamble and gap.
const GAP: Duration = Duration::from_nanos(6_720);
/// Number of such frames in a second.
const SECOND: u64 = 1_000_000_000 / 6_720;

/// A packet of IGMP to `destination`, from a station that is no host of the link.
fn forged(destination: [u8; 4], message: impl FnOnce(&mut Buffer)) -> Buffer {
    forged_from([10, 0, 0, 66], destination, message)
}

fn forged_from(source: [u8; 4], destination: [u8; 4], message: impl FnOnce(&mut Buffer)) -> Buffer {
    let mut packet = Buffer::default();
    message(&mut packet);
    router_alert::prepend_v4(&mut packet, source.into(), destination.into());
    packet
}

/// A report of one record.
fn report(kind: RecordType, group: IpAddr, sources: &[IpAddr]) -> Buffer {
    forged([224, 0, 0, 22], |packet| igmp::prepend_report(packet, &[(kind, group, sources)]))
}

/// A host is a member of a hundred groups, by `join`, and a thousand forged packets take them from it, a hundred a
/// second.
fn flood(join: impl Fn(&mut SharedLink, usize), leave: impl Fn(usize) -> Buffer) {
    let mut link = SharedLink::pair();
    (0..100).for_each(|n| join(&mut link, n));
    link.run(secs(10));
    let then = link.millis();
    for round in 0..1000 {
        link.deliver(Station::Host(9), &leave(round % 100));
        link.run(Duration::from_millis(10));
    }
    link.run(secs(10));
    let asked = link.queries(then).len();
    // 100 at once and 100 a second, and the general queries.
    assert!((500..=1110).contains(&asked), "{asked}");
    assert!(link.counters(0)["querier_leaves_ignored"] > 0);
    assert_eq!((link.known[0].len(), link.told.len()), (100, 100));
}

#[test]
fn forged_leaves_cause_a_bounded_number_of_queries_and_take_nobody_its_group() {
    let group = |n: usize| format!("239.0.0.{n}");
    flood(
        |link, n| link.set(0, &group(n), Filter::Any),
        |n| forged([224, 0, 0, 2], |packet| igmp::prepend_leave(packet, group(n).parse().unwrap())),
    );
}

#[test]
fn forged_blocks_of_sources_cause_a_bounded_number_of_queries() {
    let group = |n: usize| IpAddr::from([232, 0, 0, n as u8]);
    flood(
        |link, n| link.set(0, &group(n).to_string(), include(&["10.9.0.1"])),
        |n| report(RecordType::Block, group(n), &[at("10.9.0.1")]),
    );
}

#[test]
fn reports_of_more_groups_and_sources_than_there_is_room_for_are_refused_and_counted() {
    let config = querier::Config { max_groups: 50, max_sources: 4, ..Default::default() };
    let mut link = SharedLink::new(&[], &[config]);
    link.run(secs(60));
    for n in 0..100_u32 {
        let group = IpAddr::from((0xef00_0000 + n).to_be_bytes());
        let sources: Vec<_> = (0..6).map(|n| IpAddr::from([10, 9, 0, n])).collect();
        link.deliver(Station::Host(9), &report(RecordType::Allow, group, &sources));
    }
    link.settle();
    assert_eq!(link.known[0].len(), 50 * 4);
    let counters = link.counters(0);
    assert_eq!((counters["querier_groups_refused"], counters["querier_sources_refused"]), (50, 100));
}

#[test]
fn forged_sources_do_not_add_up_between_two_queries() {
    let config = querier::Config { max_sources: 4, queries_per_second: 100_000, ..Default::default() };
    let mut link = SharedLink::new(&[], &[config]);
    link.run(secs(60));
    for round in 0..200_u32 {
        let sources: Vec<_> =
            (0..4).map(|n| IpAddr::from((0x0a09_0000 + 4 * round + n).to_be_bytes())).collect();
        link.deliver(Station::Host(9), &report(RecordType::ToExclude, at("239.1.2.3"), &sources));
    }
    link.run(Duration::from_millis(1500));
    let longest = link.packets.iter().map(|(.., packet)| packet.len()).max().unwrap();
    // IPv6's general query is the longest but for those with four sources.
    assert!(longest <= 76, "{longest}");
}

#[test]
fn reports_of_a_million_groups_take_no_more_room_than_there_is_and_leave_it_in_time() {
    const MILLION: u32 = 1_000_000;
    // As many records as a packet of 1500 bytes holds: 24 bytes of IPv4 with router alert, 8 of IGMP, 8 a record.
    const RECORDS: u32 = (1500 - 24 - 8) / 8;
    let mut link = SharedLink::pair();
    let own = |n: u32| IpAddr::from((0xef01_0000 + n).to_be_bytes());
    (0..100).for_each(|n| link.set(0, &own(n).to_string(), Filter::Any));
    let mut forged_groups = (0..MILLION).map(|n| IpAddr::from((0xe100_0000 + n).to_be_bytes())).peekable();
    while forged_groups.peek().is_some() {
        let groups: Vec<_> = forged_groups.by_ref().take(RECORDS as usize).collect();
        let records: Vec<_> =
            groups.iter().map(|&group| (RecordType::ToExclude, group, &[] as &[IpAddr])).collect();
        let packet = forged([224, 0, 0, 22], |packet| igmp::prepend_report(packet, &records));
        link.deliver(Station::Host(9), &packet);
        link.settle();
    }
    let room = querier::Config::default().max_groups;
    assert_eq!(link.known[0].len(), room);
    assert_eq!(link.counters(0)["querier_groups_refused"], u64::from(MILLION) - (room - 100) as u64);
    // Nobody answers for the forged ones, and the host does for its own.
    link.run(secs(600));
    assert!(link.known[0].iter().map(|(group, _)| *group).eq((0..100).map(own)), "{:?}", link.known[0]);
}

#[test]
fn queries_at_line_rate_cause_a_bounded_number_of_packets_and_all_groups_are_known_afterwards() {
    let group = |n: u64| format!("239.0.0.{}", n % 100);
    // From a station that a querier gives way to, having the lower address, and from one that it does not. What the
    // former asked of one group, the router would take for its own (RFC 3376 section 6.6.1).
    for (source, gives_way) in [([9, 0, 0, 1], true), ([10, 0, 0, 66], false)] {
        let mut link = SharedLink::pair();
        (0..100).for_each(|n| link.set(0, &group(n), Filter::Any));
        link.run(secs(10));
        let then = link.millis();
        let query = |n: u64| {
            let to: Option<IpAddr> = (!n.is_multiple_of(7) && !gives_way).then(|| group(n).parse().unwrap());
            let (max_response, interval) = (Duration::ZERO, secs(125));
            let query = Query {
                version: Version::V3,
                group: to,
                max_response,
                suppress: false,
                robustness: 2,
                interval,
            };
            let destination = match to {
                Some(IpAddr::V4(to)) => to.octets(),
                _ => [224, 0, 0, 1],
            };
            forged_from(source, destination, |packet| igmp::prepend_query(packet, &query, &[]))
        };
        let queries: Vec<_> = (0..700).map(query).collect();
        for n in 0..SECOND {
            link.deliver(Station::Router(9), &queries[n as usize % 700]);
            link.run(GAP);
        }
        let sent = link.packets.iter().filter(|(at, ..)| *at >= then).count();
        // The host's reports: 100 a second, and as many at once.
        assert!((80..=210).contains(&sent), "{sent}");
        link.run(secs(600));
        // When the querier that there never was has fallen silent, the router asks with 5 s of the memberships left,
        // and the host has 10 s to answer (RFC 3376 sections 8.4 and 8.5): they may end, and begin again.
        let told = if gives_way { 300 } else { 100 };
        assert_eq!((link.known[0].len(), link.told.len()), (100, told));
    }
}

/// A query for one group that gives no time, from a lower address than any router's.
fn query_of_group(version: Version, group: IpAddr) -> Buffer {
    let (max_response, interval) = (Duration::ZERO, secs(125));
    let query = Query { version, group: Some(group), max_response, suppress: false, robustness: 2, interval };
    match group {
        IpAddr::V4(to) => {
            forged_from([9, 0, 0, 1], to.octets(), |packet| igmp::prepend_query(packet, &query, &[]))
        }
        IpAddr::V6(to) => {
            let lowest = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);
            let mut packet = Buffer::default();
            mld::prepend_query(&mut packet, lowest, to, &query, &[]);
            router_alert::prepend_v6(&mut packet, lowest, to);
            packet
        }
    }
}

#[test]
fn forged_queries_of_a_lower_address_for_one_group_end_no_membership_of_it_or_of_others() {
    for v6 in [false, true] {
        let group = |n: u64| if v6 { format!("ff15::{n}") } else { format!("239.0.0.{n}") };
        let address = if v6 { ip::Version::V6 } else { ip::Version::V4 };
        for version in [Version::V2, Version::V3] {
            let mut link = SharedLink::pair();
            (0..100).for_each(|n| link.set(0, &group(n), Filter::Any));
            link.run(secs(10));
            let then = link.millis();
            let forged = query_of_group(version, at(&group(7)));
            for _ in 0..SECOND {
                link.deliver(Station::Router(9), &forged);
                link.run(GAP);
            }
            let sent = link.packets.iter().filter(|(at, ..)| *at >= then).count();
            // The host's answers, 100 a second and 10 at once; IGMPv2 cannot give less than 100 ms.
            assert!((8..=111).contains(&sent), "{sent} packets, {version:?}");
            // And so seldom that the router would have forgotten all of them by the end, if it asked no more.
            for _ in 0..600 {
                link.deliver(Station::Router(9), &forged);
                link.run(secs(1));
            }
            assert!(link.routers[0].is_querier(INTERFACE, address), "{version:?}");
            assert_eq!((link.known[0].len(), link.told.len()), (100, 100), "v6: {v6}, {version:?}");
        }
    }
}
