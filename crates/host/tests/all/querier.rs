//! Routers that learn of the members of a link, from hosts that report them.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::shared_link::{INTERFACE, SharedLink, Station, addresses, at, include, secs};
use hopcast_core::{Buffer, Duration, Instant, Item, Machine, Port, Seed, Transit};
use hopcast_host::membership::{self, Filter};
use hopcast_host::querier;
use hopcast_wire::membership::{Query, RecordType, Version};
use hopcast_wire::{icmp, igmp, ip, mld, router_alert};
use proptest::prelude::*;

const GROUPS: [&str; 2] = ["239.1.2.3", "ff15::7"];

fn any(groups: &[&str]) -> BTreeSet<(IpAddr, Option<IpAddr>)> {
    groups.iter().map(|group| (at(group), None)).collect()
}

fn old_host() -> membership::Config {
    membership::Config { version: Version::V2, ..Default::default() }
}

fn old_router() -> querier::Config {
    querier::Config { version: Version::V2, ..Default::default() }
}

#[test]
fn a_join_is_known_at_once() {
    for group in GROUPS {
        let mut link = SharedLink::pair();
        link.set(0, group, Filter::Any);
        assert_eq!(link.known[0], any(&[group]));
        assert!(link.routers[0].forwards(INTERFACE, at(group), at("10.9.9.9")));
        assert!(!link.routers[0].forwards(0, at(group), at("10.9.9.9")), "on that interface alone");
        // For as long as the host stays.
        link.run(secs(2000));
        assert_eq!(link.told.len(), 1);
    }
}

#[test]
fn a_leave_is_known_after_the_last_member_query_time() {
    for group in GROUPS {
        let mut link = SharedLink::pair();
        link.set(0, group, Filter::Any);
        link.run(secs(10));
        let then = link.millis();
        link.set(0, group, Filter::None);
        link.run(secs(10));
        assert!(link.known[0].is_empty());
        assert_eq!(link.told.last().unwrap().0, then + 2000);
        let asked: Vec<_> = link.queries(then).iter().map(|(when, _, query)| (*when, query.group)).collect();
        assert_eq!(asked, [(then, Some(at(group))), (then + 1000, Some(at(group)))]);
    }
}

#[test]
fn when_one_of_two_members_leaves_the_group_stays() {
    for group in GROUPS {
        let mut link = SharedLink::new(&[Default::default(); 2], &[Default::default()]);
        link.set(0, group, Filter::Any);
        link.set(1, group, Filter::Any);
        link.run(secs(60));
        link.set(0, group, Filter::None);
        link.run(secs(600));
        assert_eq!((link.known[0].clone(), link.told.len()), (any(&[group]), 1));
    }
}

#[test]
fn a_lost_report_is_repeated() {
    let mut link = SharedLink::pair();
    let first = link.packets.len() + 1;
    link.lost = Box::new(move |number| number == first);
    link.set(0, GROUPS[0], Filter::Any);
    assert!(link.known[0].is_empty());
    link.run(secs(1));
    assert_eq!(link.known[0], any(&[GROUPS[0]]));
    let first = link.packets.len() + 1;
    link.lost = Box::new(move |number| number == first);
    let then = link.millis();
    link.set(0, GROUPS[0], Filter::None);
    link.run(secs(4));
    assert!(link.known[0].is_empty() && link.told.last().unwrap().0 > then + 2000);
}

#[test]
fn a_lost_answer_does_not_end_a_membership() {
    let mut link = SharedLink::new(&[Default::default(); 2], &[Default::default()]);
    link.run(secs(60));
    link.set(0, GROUPS[0], Filter::Any);
    link.set(1, GROUPS[0], Filter::Any);
    link.run(secs(10));
    // The leave of one, the query, and the answer of the other, which is lost.
    let answer = link.packets.len() + 3;
    link.lost = Box::new(move |number| number == answer);
    link.set(0, GROUPS[0], Filter::None);
    link.run(secs(10));
    assert_eq!(link.known[0], any(&[GROUPS[0]]));
}

#[test]
fn a_member_that_falls_silent_is_forgotten_after_the_group_membership_interval() {
    let mut link = SharedLink::pair();
    link.set(0, GROUPS[0], Filter::Any);
    let then = link.millis();
    link.off.insert(Station::Host(0));
    link.run(secs(600));
    assert_eq!((link.told.last().unwrap().0, link.told.len()), (then + 260_000, 2));
}

#[test]
fn a_router_that_starts_learns_of_the_members_that_there_are() {
    let mut link = SharedLink::new(&[Default::default()], &[Default::default()]);
    link.hosts[0].set(Instant::ZERO, 0, at(GROUPS[0]), Filter::Any);
    // Whatever the host says by itself is lost.
    link.off.insert(Station::Host(0));
    link.run(secs(5));
    link.off.clear();
    link.run(secs(40));
    assert_eq!(link.known[0], any(&[GROUPS[0]]));
    let asked: Vec<_> = link.queries(0).into_iter().map(|(when, ..)| when).collect();
    assert_eq!(
        asked,
        [0, 0, 31_250, 31_250],
        "both versions, at the start and a quarter of the interval later"
    );
}

#[test]
fn sources_are_known_and_forgotten_one_by_one() {
    for (group, one, two) in [("232.1.2.3", "10.9.0.1", "10.9.0.2"), ("ff3e::7", "fd00::1", "fd00::2")] {
        let mut link = SharedLink::new(&[Default::default(); 2], &[Default::default()]);
        link.run(secs(60));
        link.set(0, group, include(&[one, two]));
        link.set(1, group, include(&[two]));
        let both = BTreeSet::from([(at(group), Some(at(one))), (at(group), Some(at(two)))]);
        assert_eq!(link.known[0], both);
        link.run(secs(10));
        let then = link.millis();
        link.set(0, group, Filter::None);
        link.run(secs(10));
        assert_eq!(link.known[0], BTreeSet::from([(at(group), Some(at(two)))]));
        assert_eq!(link.told.last().unwrap().0, then + 2000);
        assert!(!link.routers[0].forwards(INTERFACE, at(group), at(one)));
        assert!(link.routers[0].forwards(INTERFACE, at(group), at(two)));
    }
}

#[test]
fn a_member_of_one_source_beside_one_of_all_is_told_when_the_other_leaves() {
    let mut link = SharedLink::new(&[Default::default(); 2], &[Default::default()]);
    link.run(secs(60));
    link.set(0, GROUPS[0], include(&["10.9.0.1"]));
    link.set(1, GROUPS[0], Filter::Any);
    assert_eq!(link.known[0], any(&[GROUPS[0]]));
    link.run(secs(10));
    link.set(1, GROUPS[0], Filter::None);
    link.run(secs(300));
    assert_eq!(link.known[0], BTreeSet::from([(at(GROUPS[0]), Some(at("10.9.0.1")))]));
}

#[test]
fn of_two_routers_the_one_with_the_lower_address_asks_and_both_know_the_members() {
    let mut link = SharedLink::new(&[Default::default()], &[Default::default(); 2]);
    link.run(secs(60));
    for version in [ip::Version::V4, ip::Version::V6] {
        let roles = link.routers.iter().map(|router| router.is_querier(INTERFACE, version));
        assert_eq!(roles.collect::<Vec<_>>(), [true, false]);
    }
    link.set(0, GROUPS[0], Filter::Any);
    link.run(secs(400));
    let asked = link.queries(1);
    assert!(asked.len() > 5 && asked.iter().all(|(_, from, _)| *from == Station::Router(0)));
    // A leave: both forget at the same time.
    link.told.clear();
    let then = link.millis();
    link.set(0, GROUPS[0], Filter::None);
    link.run(secs(10));
    let told: Vec<_> = link.told.iter().map(|(when, router, _)| (*when, *router)).collect();
    assert_eq!(told, [(then + 2000, 0), (then + 2000, 1)]);
}

#[test]
fn of_two_routers_the_querier_alone_serves_the_members_and_the_other_does_when_it_falls_silent() {
    for group in GROUPS {
        let mut link = SharedLink::new(&[Default::default()], &[Default::default(); 2]);
        link.set(0, group, Filter::Any);
        link.run(secs(60));
        let (all, none) = (any(&[group]), any(&[]));
        assert_eq!(
            (link.known.clone(), link.served.clone()),
            (vec![all.clone(); 2], vec![all.clone(), none.clone()])
        );
        let last = link.queries(0).last().unwrap().0;
        link.off.insert(Station::Router(0));
        link.run(Duration::from_millis(last + 254_999 - link.millis()));
        assert_eq!(link.served[1], none);
        link.run(Duration::from_millis(1));
        assert_eq!(link.served[1], all, "it has known the members all the time");
        // The other is back, and asks in time.
        link.off.clear();
        link.run(secs(130));
        assert_eq!(link.served[1], none);
        link.set(0, group, Filter::None);
        link.run(secs(10));
        assert_eq!((link.known.clone(), link.served.clone()), (vec![none.clone(); 2], vec![none; 2]));
    }
}

#[test]
fn a_router_takes_over_when_the_querier_falls_silent_and_gives_way_when_it_is_back() {
    let mut link = SharedLink::new(&[Default::default()], &[Default::default(); 2]);
    link.set(0, GROUPS[0], Filter::Any);
    link.run(secs(60));
    let last = link.queries(0).last().unwrap().0;
    link.off.insert(Station::Router(0));
    link.run(secs(400));
    assert!(link.routers[1].is_querier(INTERFACE, ip::Version::V4));
    let first = link.queries(last).into_iter().find(|(_, from, _)| *from == Station::Router(1)).unwrap();
    // Twice 125 s and half of 10 s.
    assert_eq!(first.0, last + 255_000);
    link.off.clear();
    link.run(secs(130));
    assert!(!link.routers[1].is_querier(INTERFACE, ip::Version::V4));
    assert_eq!(link.known[1], any(&[GROUPS[0]]), "the member was there all the time");
}

#[test]
fn the_other_routers_adopt_the_variables_of_the_querier() {
    let slow = querier::Config { query_interval: secs(20), robustness: 3, ..Default::default() };
    let mut link = SharedLink::new(&[Default::default()], &[slow, Default::default()]);
    link.run(secs(60));
    link.set(0, GROUPS[0], Filter::Any);
    link.off.insert(Station::Host(0));
    let then = link.millis();
    link.run(secs(300));
    let told: Vec<_> = link.told.iter().filter(|(.., one)| !one.joined).map(|(when, ..)| *when).collect();
    assert_eq!(told, [then + 70_000, then + 70_000]);
}

#[test]
fn hosts_and_routers_of_version_2_and_3_understand_each_other() {
    for (host, router) in [
        (old_host(), querier::Config::default()),
        (membership::Config::default(), old_router()),
        (old_host(), old_router()),
    ] {
        for group in GROUPS {
            let mut link = SharedLink::new(&[host], &[router]);
            link.run(secs(60));
            link.set(0, group, Filter::Any);
            assert_eq!(link.known[0], any(&[group]));
            link.run(secs(1000));
            assert_eq!(link.told.len(), 1, "answers keep it alive");
            let then = link.millis();
            link.set(0, group, Filter::None);
            link.run(secs(10));
            assert_eq!((link.told.len(), link.told[1].0), (2, then + 2000));
        }
    }
}

#[test]
fn a_member_of_version_2_keeps_its_group_whatever_members_of_version_3_say() {
    let mut link = SharedLink::new(&[old_host(), Default::default()], &[Default::default()]);
    link.run(secs(60));
    link.set(0, GROUPS[0], Filter::Any);
    link.set(1, GROUPS[0], Filter::Any);
    link.run(secs(10));
    link.set(1, GROUPS[0], include(&["10.9.0.1"]));
    link.set(1, GROUPS[0], Filter::None);
    link.run(secs(1000));
    assert_eq!((link.known[0].clone(), link.told.len()), (any(&[GROUPS[0]]), 1));
}

#[test]
fn reports_that_mean_nothing_change_nothing() {
    let mut link = SharedLink::new(&[], &[Default::default()]);
    link.run(secs(60));
    let nobody: &[IpAddr] = &[];
    for group in ["224.0.0.1", "10.0.0.1", "232.1.2.3"] {
        let mut report = Buffer::default();
        igmp::prepend_report(&mut report, &[(RecordType::ToExclude, at(group), nobody)]);
        router_alert::prepend_v4(&mut report, [10, 0, 0, 66].into(), [224, 0, 0, 22].into());
        link.deliver(Station::Host(9), &report);
    }
    let mut report = Buffer::default();
    let (from, to) = ("::".parse().unwrap(), "ff02::16".parse().unwrap());
    mld::prepend_report(&mut report, from, to, &[(RecordType::ToExclude, at("ff15::7"), nobody)]);
    router_alert::prepend_v6(&mut report, from, to);
    link.deliver(Station::Host(9), &report);
    link.settle();
    assert!(link.known[0].is_empty());
    assert_eq!(link.counters(0)["querier_reports_ignored"], 4);
}

#[test]
fn other_icmp_is_handed_back_as_it_came() {
    let mut link = SharedLink::new(&[], &[Default::default()]);
    link.run(secs(1));
    let (from, to) = (addresses(Station::Host(0)).1.into(), at("ff02::1"));
    let mut packet = Buffer::copy_from(b"ahoy");
    icmp::prepend(&mut packet, from, to, icmp::Message::EchoRequest { identifier: 1, sequence: 2 });
    ip::prepend(&mut packet, from, to, ip::ICMPV6, 64, 0);
    let transit = Transit::arrived(packet, INTERFACE);
    link.routers[0].handle(link.now, Port::Below(0), Item::Transit(transit.clone()));
    assert_eq!(link.routers[0].poll(link.now), Some((Port::Below(0), Item::Transit(transit))));
}

#[test]
fn a_query_after_an_answer_has_other_routers_leave_their_timers() {
    let mut link = SharedLink::new(&[Default::default(); 2], &[Default::default(); 2]);
    for (group, filter) in [(GROUPS[0], Filter::Any), ("232.1.2.3", include(&["10.9.0.1"]))] {
        link.set(0, group, filter.clone());
        link.set(1, group, filter);
        link.run(secs(60));
        let then = link.millis();
        link.set(0, group, Filter::None);
        link.run(secs(10));
        let asked: Vec<_> =
            link.queries(then).into_iter().map(|(_, from, query)| (from, query.suppress)).collect();
        // The other host answers within the second between the two; the repeated leave may add a third.
        assert!(asked.len() > 1 && asked[0] == (Station::Router(0), false), "{asked:?}");
        assert!(asked[1..].iter().all(|query| *query == (Station::Router(0), true)), "{asked:?}");
    }
    link.run(secs(400));
    assert!(link.told.iter().all(|(.., one)| one.joined), "no router has forgotten the other member");
    assert_eq!(link.known[0], link.known[1]);
}

#[test]
fn a_router_that_is_not_the_querier_waits_for_its_query() {
    let mut link = SharedLink::new(&[Default::default()], &[Default::default(); 2]);
    link.run(secs(60));
    link.set(0, GROUPS[0], Filter::Any);
    link.run(secs(10));
    let then = link.millis();
    // The leave and its repetition do not get to the querier.
    link.off.insert(Station::Router(0));
    link.set(0, GROUPS[0], Filter::None);
    link.run(secs(5));
    link.off.clear();
    assert!(link.queries(then).is_empty());
    assert_eq!(link.known[1], any(&[GROUPS[0]]));
}

#[test]
fn queries_for_many_sources_fit_the_mtu() {
    let config = querier::Config { max_sources: 200, ..Default::default() };
    let mut router = querier::Querier::new(
        config,
        &[querier::Interface { mtu: 100, v4: Some([10, 0, 0, 1].into()), v6: None }],
    );
    let mut now = Instant::ZERO;
    router.wake(now);
    let sources: Vec<_> = (0..200).map(|n| IpAddr::from([10, 9, 0, n])).collect();
    for kind in [RecordType::Allow, RecordType::Block] {
        let mut report = Buffer::default();
        igmp::prepend_report(&mut report, &[(kind, at("232.1.2.3"), &sources)]);
        router_alert::prepend_v4(&mut report, [10, 0, 0, 66].into(), [224, 0, 0, 22].into());
        while router.poll(now).is_some() {}
        router.handle(now, Port::Below(0), Item::Transit(Transit::arrived(report, 0)));
        now += secs(1);
    }
    let mut asked = 0;
    while let Some((_, item)) = router.poll(now) {
        let Item::Transit(Transit { packet, .. }) = item else { continue };
        assert!(packet.len() <= 100);
        asked += (packet.len() - 24 - 12) / 4;
    }
    assert_eq!(asked, 200);
}

#[test]
fn a_query_from_no_address_makes_nobody_the_querier() {
    let mut link = SharedLink::new(&[], &[Default::default()]);
    link.run(secs(60));
    let (_, _, query) = link.queries(0)[0];
    let mut packet = Buffer::default();
    igmp::prepend_query(&mut packet, &query, &[]);
    router_alert::prepend_v4(&mut packet, [0, 0, 0, 0].into(), [224, 0, 0, 1].into());
    link.deliver(Station::Host(9), &packet);
    assert!(link.routers[0].is_querier(INTERFACE, ip::Version::V4));
}

#[test]
fn a_router_that_takes_over_asks_at_its_own_interval() {
    let slow = querier::Config { query_interval: secs(500), ..Default::default() };
    let own = querier::Config { robustness: 3, ..Default::default() };
    let mut link = SharedLink::new(&[], &[slow, own]);
    link.run(secs(60));
    link.off.insert(Station::Router(0));
    link.run(secs(2000));
    let own = link.queries(100_000).into_iter().filter(|(_, from, _)| *from == Station::Router(1));
    let times: Vec<_> = own.map(|(when, ..)| when).collect();
    assert!(times.len() > 8 && times.windows(4).all(|few| few[2] - few[0] == 125_000), "{times:?}");
}

#[test]
fn with_version_1_members_are_forgotten_in_time_and_not_by_leaves() {
    let config = querier::Config { version: Version::V1, ..Default::default() };
    let mut link = SharedLink::new(&[Default::default()], &[config]);
    link.run(secs(60));
    link.set(0, GROUPS[0], Filter::Any);
    link.run(secs(600));
    assert_eq!(link.known[0], any(&[GROUPS[0]]));
    let then = link.millis();
    link.set(0, GROUPS[0], Filter::None);
    let mut leave = Buffer::default();
    igmp::prepend_leave(&mut leave, GROUPS[0].parse().unwrap());
    router_alert::prepend_v4(&mut leave, [10, 0, 0, 66].into(), [224, 0, 0, 2].into());
    link.deliver(Station::Host(9), &leave);
    link.run(secs(100));
    assert!(link.known[0].len() == 1 && link.queries(then).iter().all(|(.., query)| query.group.is_none()));
    link.run(secs(160));
    assert!(link.known[0].is_empty());
}

#[test]
fn a_leave_of_version_2_means_nothing_to_a_group_of_one_source() {
    let mut link = SharedLink::pair();
    link.set(0, "232.1.2.3", include(&["10.9.0.1"]));
    link.run(secs(10));
    let then = link.millis();
    let mut leave = Buffer::default();
    igmp::prepend_leave(&mut leave, [232, 1, 2, 3].into());
    router_alert::prepend_v4(&mut leave, [10, 0, 0, 66].into(), [224, 0, 0, 2].into());
    link.deliver(Station::Host(9), &leave);
    link.run(secs(10));
    assert!(link.queries(then).is_empty());
}

#[test]
fn a_query_with_the_s_flag_lowers_no_timers() {
    let mut link = SharedLink::new(&[Default::default(); 2], &[Default::default(); 2]);
    link.set(0, GROUPS[0], Filter::Any);
    link.set(1, GROUPS[0], Filter::Any);
    link.run(secs(60));
    link.set(0, GROUPS[0], Filter::None);
    link.run(Duration::from_millis(999));
    // The other host has answered the first query; it cannot answer the second.
    link.off.extend([Station::Host(0), Station::Host(1)]);
    link.run(secs(100));
    assert!(link.told.iter().all(|(.., one)| one.joined));
}

#[test]
fn a_router_of_version_2_asks_for_no_sources() {
    let mut link = SharedLink::new(&[], &[old_router()]);
    link.run(secs(60));
    let then = link.millis();
    for kind in [RecordType::Allow, RecordType::Block] {
        let mut report = Buffer::default();
        igmp::prepend_report(&mut report, &[(kind, at(GROUPS[0]), &[at("10.9.0.1")])]);
        router_alert::prepend_v4(&mut report, [10, 0, 0, 66].into(), [224, 0, 0, 22].into());
        link.deliver(Station::Host(9), &report);
        link.run(secs(10));
    }
    assert!(link.queries(then).is_empty());
    assert_eq!(link.known[0].len(), 1);
    link.run(secs(260));
    assert!(link.known[0].is_empty());
}

#[test]
fn a_router_of_version_1_passes_over_leaves() {
    let config = querier::Config { version: Version::V1, ..Default::default() };
    let mut link = SharedLink::new(&[], &[config]);
    link.run(secs(60));
    let (group, then) = (GROUPS[0].parse().unwrap(), link.millis());
    let mut report = Buffer::default();
    igmp::prepend_older_report(&mut report, Version::V2, group);
    let mut leave = Buffer::default();
    igmp::prepend_leave(&mut leave, group);
    for mut packet in [report, leave] {
        router_alert::prepend_v4(&mut packet, [10, 0, 0, 66].into(), group);
        link.deliver(Station::Host(9), &packet);
        link.run(secs(10));
    }
    assert!(link.queries(then).is_empty() && link.known[0].len() == 1);
}

#[test]
fn what_the_router_itself_has_sent_is_no_report_to_it() {
    let mut link = SharedLink::new(&[], &[Default::default()]);
    link.run(secs(60));
    let group = GROUPS[0].parse().unwrap();
    let mut report = Buffer::default();
    igmp::prepend_older_report(&mut report, Version::V2, group);
    router_alert::prepend_v4(&mut report, addresses(Station::Router(0)).0, group);
    link.deliver(Station::Host(9), &report);
    link.settle();
    assert!(link.known[0].is_empty());
}

#[test]
fn what_a_querier_does_not_say_stays_as_it_was() {
    let mut link = SharedLink::new(&[], &[Default::default(), Default::default()]);
    link.off.insert(Station::Router(0));
    link.run(secs(60));
    let query = Query { version: Version::V2, ..link.queries(0)[0].2 };
    let mut packet = Buffer::default();
    igmp::prepend_query(&mut packet, &query, &[]);
    router_alert::prepend_v4(&mut packet, addresses(Station::Router(0)).0, [224, 0, 0, 1].into());
    let then = link.millis();
    link.deliver(Station::Router(0), &packet);
    assert!(!link.routers[1].is_querier(INTERFACE, ip::Version::V4));
    // Twice 125 s and half of 10 s, of its own.
    link.run(secs(254));
    assert!(!link.routers[1].is_querier(INTERFACE, ip::Version::V4));
    link.run(secs(1));
    assert!(link.routers[1].is_querier(INTERFACE, ip::Version::V4), "since {then}");
}

#[test]
fn a_packet_that_arrives_when_a_timer_ends_comes_after_it() {
    let mut link = SharedLink::pair();
    link.set(0, GROUPS[0], Filter::Any);
    link.off.insert(Station::Host(0));
    let end = link.now + secs(260);
    link.run(secs(259));
    link.now = end;
    link.hosts[0].set(end, 0, at(GROUPS[1]), Filter::Any);
    link.off.clear();
    link.settle();
    assert!(link.routers[0].deadline().unwrap() > end);
    assert_eq!(link.known[0], any(&[GROUPS[1]]));
}

/// A change of one host's membership, some time after the previous change.
type Change = (usize, usize, u8, u64);

const CHURNED: [&str; 4] = ["239.1.2.3", "239.1.2.4", "232.1.2.3", "239.9.9.9"];

fn filter(number: u8) -> Filter {
    let source = |n| Some(IpAddr::from([10, 9, 0, n]));
    match number {
        0 | 1 => Filter::None,
        2 => Filter::Any,
        3 => [source(1)].into_iter().collect(),
        4 => [source(2), source(3)].into_iter().collect(),
        _ => [source(1), source(3)].into_iter().collect(),
    }
}

/// Lets hosts change their wishes, and the link lose a share of the packets meanwhile; then all is quiet for `silence`,
/// and each router knows what is wanted.
fn churn(changes: &[Change], hosts: &[membership::Config], loss: f64, silence: Duration) {
    let mut link = SharedLink::new(hosts, &[Default::default(); 2]);
    let mut random = Seed::new(7, 0).stream(&["link"], 0);
    link.lost = Box::new(move |_| random.chance(loss));
    let mut wishes = vec![vec![Filter::None; CHURNED.len()]; hosts.len()];
    for &(host, group, number, pause) in changes {
        let wish = filter(number);
        link.set(host, CHURNED[group], wish.clone());
        wishes[host][group] = wish;
        link.run(Duration::from_millis(pause));
    }
    link.lost = Box::new(|_| false);
    link.run(silence);
    let mut expected = BTreeSet::new();
    for (number, group) in CHURNED.iter().enumerate() {
        let specific = group.starts_with("232");
        let mut sources = BTreeSet::new();
        for (host, wishes) in hosts.iter().zip(&wishes) {
            match &wishes[number] {
                Filter::None => {}
                Filter::Any if specific => {}
                Filter::Include(wanted) if host.version == Version::V3 => {
                    sources.extend(wanted.iter().copied().map(Some));
                }
                _ if specific => {}
                Filter::Include(_) | Filter::Any => {
                    sources.insert(None);
                }
            }
        }
        if sources.contains(&None) {
            sources = BTreeSet::from([None]);
        }
        expected.extend(sources.into_iter().map(|source| (at(group), source)));
    }
    for known in &link.known {
        assert_eq!(*known, expected, "{wishes:?}");
    }
    for (router, served) in link.routers.iter().zip(&link.served) {
        let is_querier = |group: IpAddr| router.is_querier(INTERFACE, ip::Version::of(group));
        let own = expected.iter().filter(|(group, _)| is_querier(*group)).copied().collect();
        assert_eq!(*served, own);
    }
    for router in &link.routers {
        let told: BTreeSet<_> = router.memberships().map(|one| (one.group, one.source)).collect();
        assert_eq!(told, expected);
    }
}

fn changes(pause: u64) -> impl Strategy<Value = Vec<Change>> {
    prop::collection::vec((0..3_usize, 0..CHURNED.len(), 0..6_u8, 0..pause), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn after_changes_without_losses_every_router_knows_in_seconds_what_is_wanted(changes in changes(3000)) {
        churn(&changes, &[membership::Config::default(); 3], 0.0, secs(10));
    }

    #[test]
    fn after_changes_and_losses_every_router_knows_what_is_wanted_as_soon_as_timers_have_ended(
        changes in changes(30_000),
        old in 0..4_usize,
    ) {
        let mut hosts = [membership::Config::default(); 3];
        hosts.iter_mut().take(old).for_each(|host| *host = old_host());
        churn(&changes, &hosts, 0.3, secs(700));
    }
}
