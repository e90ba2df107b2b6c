//! Routers that find out about the members of a link, and stations that lie to them.

#![allow(clippy::unwrap_used)]

mod shared_link;

use std::net::IpAddr;

use hopcast_core::{Buffer, Duration};
use hopcast_host::membership::Filter;
use hopcast_host::querier;
use hopcast_wire::membership::RecordType;
use hopcast_wire::{igmp, router_alert};
use shared_link::{SharedLink, Station, at, include, secs};

/// A packet of IGMP to `destination`, from a station that is no host of the link.
fn forged(destination: [u8; 4], message: impl FnOnce(&mut Buffer)) -> Buffer {
    let mut packet = Buffer::default();
    message(&mut packet);
    router_alert::prepend_v4(&mut packet, [10, 0, 0, 66].into(), destination.into());
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
