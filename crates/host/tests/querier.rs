//! Routers that find out about the members of a link, from hosts that tell them.

#![allow(clippy::unwrap_used)]

mod shared_link;

use std::collections::BTreeSet;
use std::net::IpAddr;

use hopcast_core::{Buffer, Duration, Instant, Item, Machine, Port, Seed, Transit};
use hopcast_host::membership::{self, Filter};
use hopcast_host::querier;
use hopcast_wire::membership::{RecordType, Version};
use hopcast_wire::{icmp, igmp, ip, mld, router_alert};
use proptest::prelude::*;
use shared_link::{INTERFACE, SharedLink, Station, addresses, at, include, secs};

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
fn forged_leaves_cause_a_bounded_number_of_queries_and_take_nobody_its_group() {
    let mut link = SharedLink::pair();
    let groups: Vec<_> = (0..100).map(|n| format!("239.0.0.{n}")).collect();
    groups.iter().for_each(|group| link.set(0, group, Filter::Any));
    link.run(secs(10));
    let then = link.millis();
    for round in 0..1000 {
        let group = groups[round % 100].parse().unwrap();
        let mut leave = Buffer::default();
        igmp::prepend_leave(&mut leave, group);
        router_alert::prepend_v4(&mut leave, [10, 0, 0, 66].into(), [224, 0, 0, 2].into());
        link.deliver(Station::Host(9), &leave);
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
fn reports_of_more_groups_and_sources_than_there_is_room_for_are_refused_and_counted() {
    let config = querier::Config { max_groups: 50, max_sources: 4, ..Default::default() };
    let mut link = SharedLink::new(&[], &[config]);
    link.run(secs(60));
    for n in 0..100_u32 {
        let group = IpAddr::from((0xef00_0000 + n).to_be_bytes());
        let sources: Vec<_> = (0..6).map(|n| IpAddr::from([10, 9, 0, n])).collect();
        let mut report = Buffer::default();
        igmp::prepend_report(&mut report, &[(RecordType::Allow, group, &sources)]);
        router_alert::prepend_v4(&mut report, [10, 0, 0, 66].into(), [224, 0, 0, 22].into());
        link.deliver(Station::Host(9), &report);
    }
    link.settle();
    assert_eq!(link.known[0].len(), 50 * 4);
    let counters = link.counters(0);
    assert_eq!((counters["querier_groups_refused"], counters["querier_sources_refused"]), (50, 100));
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

/// One host's wish for a group changes, some time after the change before.
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
