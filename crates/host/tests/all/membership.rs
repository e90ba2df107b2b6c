//! A host's reports of its groups, IGMP and MLD, as a router on the link reads them.

#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, Ipv6Addr};

use hopcast_core::{Buffer, Duration, Instant, Seed};
use hopcast_host::membership::{Config, Filter, Interface, MembershipReports, Report};
use hopcast_wire::membership::{self as wire, Message, Query, RecordType, Version};
use hopcast_wire::{igmp, ip, mld, router_alert};

use RecordType::{Allow, Block, IsExclude, IsInclude, ToExclude, ToInclude};

const GROUP: &str = "239.1.2.3";
const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

/// A host with one interface, and the time.
struct Alone {
    host: MembershipReports,
    now: Instant,
}

impl Alone {
    fn new(config: Config) -> Self {
        Self::with_mtu(config, 1500)
    }

    fn with_mtu(config: Config, mtu: u32) -> Self {
        let v6 = Some(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 7));
        let interface = Interface { mtu, v4: Some([10, 0, 0, 7].into()), v6 };
        let random = Seed::new(1, 0).stream(&["host"], 0);
        Self { host: MembershipReports::new(config, vec![interface], random), now: Instant::ZERO }
    }

    fn set(&mut self, group: &str, filter: Filter) {
        self.host.set(self.now, 0, at(group), filter);
    }

    /// The packets that are due at this instant.
    fn due(&mut self) -> Vec<Report> {
        let reports: Vec<_> = std::iter::from_fn(|| self.host.poll(self.now)).collect();
        assert!(self.host.deadline().is_none_or(|next| next > self.now), "the deadline lies ahead");
        reports
    }

    /// The packets until `span` from now, each with the milliseconds from now.
    fn during(&mut self, span: Duration) -> Vec<(u64, Report)> {
        let (from, end) = (self.now, self.now + span);
        let mut sent: Vec<_> = self.due().into_iter().map(|report| (0, report)).collect();
        while let Some(next) = self.host.deadline().filter(|&next| next <= end) {
            self.now = next;
            let due = self.due();
            sent.extend(due.into_iter().map(|report| (next.since(from).as_millis(), report)));
        }
        self.now = end;
        sent
    }

    /// The records of the packets until `span` from now.
    fn said(&mut self, span: Duration) -> Vec<(RecordType, IpAddr, Vec<IpAddr>)> {
        self.during(span).iter().flat_map(|(_, report)| records(report)).collect()
    }

    fn hear(&mut self, packet: &[u8]) {
        let header = ip::parse(packet).unwrap();
        assert!(self.host.receive(self.now, 0, packet, &header));
    }

    fn query(&mut self, version: Version, group: Option<&str>, max_response: Duration, sources: &[&str]) {
        let group = group.map(at);
        let packet = query(version, group.is_some_and(|group| group.is_ipv6()), group, max_response, sources);
        self.hear(&packet);
    }

    fn counter(&self, name: &str) -> u64 {
        let mut found = None;
        self.host.counters(&mut |counter, value| {
            if counter == name {
                found = Some(value);
            }
        });
        found.unwrap()
    }
}

fn at(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn include(sources: &[&str]) -> Filter {
    sources.iter().map(|source| Some(at(source))).collect()
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn query(
    version: Version,
    v6: bool,
    group: Option<IpAddr>,
    max_response: Duration,
    sources: &[&str],
) -> Buffer {
    let query = Query { version, group, max_response, suppress: false, robustness: 2, interval: secs(125) };
    let mut packet = Buffer::default();
    if v6 {
        let sources: Vec<_> = sources.iter().map(|source| source.parse().unwrap()).collect();
        let IpAddr::V6(to) = group.unwrap_or(wire::all_nodes(ip::Version::V6)) else { panic!("IPv6") };
        mld::prepend_query(&mut packet, ROUTER, to, &query, &sources);
        router_alert::prepend_v6(&mut packet, ROUTER, to);
    } else {
        let sources: Vec<_> = sources.iter().map(|source| source.parse().unwrap()).collect();
        let IpAddr::V4(to) = group.unwrap_or(wire::all_nodes(ip::Version::V4)) else { panic!("IPv4") };
        igmp::prepend_query(&mut packet, &query, &sources);
        router_alert::prepend_v4(&mut packet, [10, 0, 0, 1].into(), to);
    }
    packet
}

fn message(report: &Report) -> Message<'_> {
    let header = ip::parse(&report.packet).unwrap();
    assert_eq!(header.destination, report.destination);
    wire::parse(&report.packet, &header).unwrap().unwrap()
}

fn records(report: &Report) -> Vec<(RecordType, IpAddr, Vec<IpAddr>)> {
    assert_eq!(report.version, Version::V3);
    match message(report) {
        Message::Report(records) => {
            records.map(|record| (record.kind, record.group, record.sources.collect())).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_join_is_reported_at_once_and_once_more_within_a_second() {
    for group in [GROUP, "ff15::7"] {
        let mut host = Alone::new(Config::default());
        host.set(group, Filter::Any);
        let sent = host.during(secs(60));
        let [(0, first), (later, second)] = &sent[..] else { panic!("{sent:?}") };
        assert!((1..=1000).contains(later), "{later}");
        for report in [first, second] {
            assert_eq!(records(report), [(ToExclude, at(group), vec![])]);
            assert!(["224.0.0.22", "ff02::16"].map(at).contains(&report.destination));
        }
    }
}

#[test]
fn a_leave_is_reported_as_often_and_then_forgotten() {
    let mut host = Alone::new(Config::default());
    host.set(GROUP, Filter::Any);
    host.during(secs(9));
    host.set(GROUP, Filter::None);
    assert_eq!(host.said(secs(9)), [(ToInclude, at(GROUP), vec![]), (ToInclude, at(GROUP), vec![])]);
    host.query(Version::V3, None, secs(1), &[]);
    assert!(host.during(secs(9)).is_empty() && host.host.deadline().is_none());
}

#[test]
fn changes_of_sources_are_reported_and_merged_with_those_under_way() {
    let mut host = Alone::new(Config::default());
    host.set(GROUP, include(&["10.0.0.1", "10.0.0.2"]));
    let first = host.due();
    assert_eq!(records(&first[0]), [(Allow, at(GROUP), vec![at("10.0.0.1"), at("10.0.0.2")])]);
    host.set(GROUP, include(&["10.0.0.2", "10.0.0.3"]));
    let merged = (Allow, at(GROUP), vec![at("10.0.0.2"), at("10.0.0.3")]);
    let last = (Allow, at(GROUP), vec![at("10.0.0.3")]);
    let block = (Block, at(GROUP), vec![at("10.0.0.1")]);
    assert_eq!(host.said(secs(9)), [merged, block.clone(), last, block]);
    host.set(GROUP, Filter::Any);
    assert_eq!(records(&host.due()[0]), [(ToExclude, at(GROUP), vec![])]);
}

#[test]
fn groups_that_change_at_one_instant_share_a_packet() {
    let mut host = Alone::new(Config::default());
    for last in 1..=9 {
        host.set(&format!("239.0.0.{last}"), Filter::Any);
    }
    let due = host.due();
    assert_eq!((due.len(), records(&due[0]).len()), (1, 9));
}

#[test]
fn groups_of_the_link_that_everybody_is_in_are_not_reported() {
    let mut host = Alone::new(Config::default());
    for group in ["224.0.0.1", "ff02::1", "ff01::7", "10.0.0.1"] {
        host.set(group, Filter::Any);
    }
    host.query(Version::V3, None, secs(1), &[]);
    assert!(host.during(secs(9)).is_empty());
}

#[test]
fn a_group_of_one_source_is_not_reported_from_any() {
    let mut host = Alone::new(Config::default());
    host.set("232.1.2.3", Filter::Any);
    assert!(host.during(secs(9)).is_empty());
    host.set("232.1.2.3", include(&["10.0.0.1"]));
    assert_eq!(records(&host.due()[0]), [(Allow, at("232.1.2.3"), vec![at("10.0.0.1")])]);
}

#[test]
fn a_general_query_is_answered_with_everything_within_the_time_that_it_gives() {
    let mut host = Alone::new(Config::default());
    host.set(GROUP, Filter::Any);
    host.set("232.1.2.3", include(&["10.0.0.1"]));
    host.set("ff15::7", Filter::Any);
    host.during(secs(9));
    host.query(Version::V3, None, secs(10), &[]);
    let sent = host.during(secs(60));
    let [(when, report)] = &sent[..] else { panic!("{sent:?}") };
    assert!((1..=10_000).contains(when));
    let source = (IsInclude, at("232.1.2.3"), vec![at("10.0.0.1")]);
    assert_eq!(records(report), [source, (IsExclude, at(GROUP), vec![])]);
}

#[test]
fn a_query_for_a_group_or_its_sources_is_answered_for_that_alone() {
    let mut host = Alone::new(Config::default());
    host.set(GROUP, Filter::Any);
    host.set("232.1.2.3", include(&["10.0.0.1", "10.0.0.2"]));
    host.during(secs(9));
    host.query(Version::V3, Some(GROUP), secs(1), &[]);
    assert_eq!(host.said(secs(9)), [(IsExclude, at(GROUP), vec![])]);
    host.query(Version::V3, Some("239.9.9.9"), secs(1), &[]);
    assert!(host.said(secs(9)).is_empty());
    // Two queries for sources are answered together, by those sources that are wanted.
    host.query(Version::V3, Some("232.1.2.3"), secs(1), &["10.0.0.2", "10.0.0.8"]);
    host.query(Version::V3, Some("232.1.2.3"), secs(1), &["10.0.0.1", "10.0.0.9"]);
    let both = vec![at("10.0.0.1"), at("10.0.0.2")];
    assert_eq!(host.said(secs(9)), [(IsInclude, at("232.1.2.3"), both)]);
    host.query(Version::V3, Some("232.1.2.3"), secs(1), &["10.0.0.9"]);
    assert!(host.said(secs(9)).is_empty());
    // One for the whole group swallows one for a source.
    host.query(Version::V3, Some(GROUP), secs(1), &["10.0.0.9"]);
    host.query(Version::V3, Some(GROUP), secs(1), &[]);
    host.query(Version::V3, Some(GROUP), secs(1), &["10.0.0.9"]);
    assert_eq!(host.said(secs(9)), [(IsExclude, at(GROUP), vec![])]);
}

#[test]
fn an_answer_to_a_general_query_that_comes_sooner_does_for_a_special_one() {
    let mut host = Alone::new(Config::default());
    host.set(GROUP, Filter::Any);
    host.during(secs(9));
    host.query(Version::V3, None, Duration::from_millis(100), &[]);
    for _ in 0..9 {
        host.query(Version::V3, Some(GROUP), secs(1000), &[]);
    }
    assert_eq!(host.during(secs(2000)).len(), 1);
}

#[test]
fn a_flood_of_queries_that_give_no_time_causes_a_hundred_packets_a_second() {
    for v6 in [false, true] {
        for version in [Version::V2, Version::V3] {
            let mut host = Alone::new(Config::default());
            let groups: Vec<_> =
                (0..30).map(|n| if v6 { format!("ff15::{n}") } else { format!("239.0.0.{n}") }).collect();
            groups.iter().for_each(|group| host.set(group, Filter::Any));
            host.during(secs(9));
            let general = query(version, v6, None, Duration::ZERO, &[]);
            let mut sent = 0;
            for step in 0..1000 {
                if step % 7 == 0 {
                    host.hear(&general);
                }
                host.query(version, Some(&groups[step % 30]), Duration::ZERO, &[]);
                sent += host.during(Duration::from_millis(1)).len();
            }
            // IGMPv2 cannot give less than 100 ms.
            assert!((80..=110).contains(&sent), "{sent} packets, {version:?}");
        }
    }
}

#[test]
fn with_a_querier_of_version_2_a_host_speaks_that_until_it_is_gone() {
    for (v6, group, leave_to) in [(false, GROUP, "224.0.0.2"), (true, "ff15::7", "ff02::2")] {
        let mut host = Alone::new(Config::default());
        host.hear(&query(Version::V2, v6, None, secs(10), &[]));
        host.set(group, include(&[if v6 { "fd00::1" } else { "10.0.0.1" }]));
        let sent = host.during(secs(9));
        assert_eq!(sent.len(), 2, "a join is said twice");
        for (_, report) in &sent {
            assert!(
                matches!(message(report), Message::OlderReport(Version::V2, found) if found == at(group))
            );
            assert_eq!(report.destination, at(group));
        }
        host.hear(&query(Version::V2, v6, None, secs(10), &[]));
        let sent = host.during(secs(10));
        assert!(matches!(message(&sent[0].1), Message::OlderReport(Version::V2, _)) && sent.len() == 1);
        host.set(group, Filter::None);
        let sent = host.during(secs(9));
        assert!(
            matches!(message(&sent[0].1), Message::Leave(found) if found == at(group)) && sent.len() == 1
        );
        assert_eq!(sent[0].1.destination, at(leave_to));
        // Two query intervals and a response interval after the last query.
        host.during(secs(260));
        host.set(group, Filter::Any);
        assert_eq!(records(&host.due()[0]), [(ToExclude, at(group), vec![])]);
    }
}

#[test]
fn with_a_querier_of_version_1_nothing_is_said_of_leaving() {
    let mut host = Alone::new(Config::default());
    host.query(Version::V1, None, Duration::ZERO, &[]);
    host.set(GROUP, Filter::Any);
    let sent = host.during(secs(9));
    assert!(sent.iter().all(|(_, one)| matches!(message(one), Message::OlderReport(Version::V1, _))));
    host.set(GROUP, Filter::None);
    assert!(host.during(secs(9)).is_empty());
}

#[test]
fn before_version_3_one_host_reports_for_all() {
    let mut host = Alone::new(Config::default());
    host.query(Version::V2, None, secs(10), &[]);
    host.set(GROUP, Filter::Any);
    host.during(secs(9));
    host.query(Version::V2, None, secs(10), &[]);
    let mut other = Buffer::default();
    igmp::prepend_older_report(&mut other, Version::V2, GROUP.parse().unwrap());
    router_alert::prepend_v4(&mut other, [10, 0, 0, 8].into(), GROUP.parse().unwrap());
    host.hear(&other);
    assert!(host.during(secs(60)).is_empty());
    assert_eq!(host.counter("membership_suppressed"), 1);
}

#[test]
fn a_pending_report_is_cancelled_when_the_version_changes() {
    let mut host = Alone::new(Config::default());
    host.set(GROUP, Filter::Any);
    host.due();
    host.query(Version::V2, None, secs(1), &[]);
    let sent = host.during(secs(60));
    assert_eq!(sent.len(), 1, "the answer alone");
    assert_eq!(sent[0].1.version, Version::V2);
}

#[test]
fn reports_are_divided_to_fit_the_mtu() {
    let mut host = Alone::with_mtu(Config::default(), 200);
    let sources: Vec<_> = (1..=100).map(|n| format!("10.0.0.{n}")).collect();
    host.set("232.1.2.3", sources.iter().map(|source| Some(at(source))).collect());
    let due = host.due();
    assert!(due.len() > 1 && due.iter().all(|report| report.packet.len() <= 200));
    let said: Vec<_> = due.iter().flat_map(records).flat_map(|(_, _, sources)| sources).collect();
    assert_eq!(said.len(), 100);
}

#[test]
fn groups_and_sources_past_the_bounds_are_refused_and_counted() {
    let mut host = Alone::new(Config { max_groups: 2, max_sources: 3, ..Config::default() });
    for last in 1..=5 {
        host.set(&format!("239.0.0.{last}"), Filter::Any);
    }
    assert_eq!(records(&host.due()[0]).len(), 2);
    assert_eq!(host.counter("membership_groups_refused"), 3);
    host.set("239.0.0.1", include(&["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "fd00::1", "239.0.0.1"]));
    assert_eq!(records(&host.due()[0])[0].2.len(), 3);
    assert_eq!(host.counter("membership_sources_refused"), 3);
}

#[test]
fn packets_that_are_not_from_the_link_do_nothing() {
    let mut host = Alone::new(Config::default());
    host.set(GROUP, Filter::Any);
    host.during(secs(9));
    let mut far =
        Buffer::copy_from(&query(Version::V3, false, None, secs(1), &[])[router_alert::V4_HEADER..]);
    ip::prepend(&mut far, at("10.0.0.1"), at("224.0.0.1"), ip::IGMP, 64, 0);
    host.hear(&far);
    assert!(host.during(secs(9)).is_empty());
    assert_eq!(host.counter("membership_malformed"), 1);
}

#[test]
fn of_two_queries_the_one_that_gives_less_time_counts() {
    for (version, first, second) in
        [(Version::V3, 1000, 1), (Version::V3, 1, 1000), (Version::V2, 20, 1), (Version::V2, 1, 20)]
    {
        let mut host = Alone::new(Config::default());
        host.query(version, None, secs(1), &[]);
        host.set(GROUP, Filter::Any);
        host.during(secs(9));
        host.query(version, Some(GROUP), secs(first), &[]);
        host.query(version, Some(GROUP), secs(second), &[]);
        assert_eq!(host.during(secs(1)).len(), 1, "{version:?} {first} {second}");
        assert!(host.during(secs(2000)).is_empty());
    }
}

#[test]
fn queries_for_more_sources_than_are_kept_are_answered_with_everything() {
    let mut host = Alone::new(Config { max_sources: 3, ..Config::default() });
    host.set(GROUP, include(&["10.0.0.1", "10.0.0.2"]));
    host.during(secs(9));
    host.query(Version::V3, Some(GROUP), secs(1), &["10.0.0.1", "10.0.1.1"]);
    host.query(Version::V3, Some(GROUP), secs(1), &["10.0.1.2", "10.0.1.3"]);
    let all = vec![at("10.0.0.1"), at("10.0.0.2")];
    assert_eq!(host.said(secs(9)), [(IsInclude, at(GROUP), all)]);
}

#[test]
fn what_the_host_itself_has_sent_is_no_query_to_it() {
    let mut host = Alone::new(Config::default());
    host.set(GROUP, Filter::Any);
    host.during(secs(9));
    let general = query(Version::V3, false, None, secs(1), &[]);
    let mut own = Buffer::copy_from(&general[router_alert::V4_HEADER..]);
    router_alert::prepend_v4(&mut own, [10, 0, 0, 7].into(), [224, 0, 0, 1].into());
    host.hear(&own);
    assert!(host.during(secs(9)).is_empty());
}

#[test]
fn a_query_of_version_2_for_one_group_is_answered_in_version_3() {
    let mut host = Alone::new(Config::default());
    host.set(GROUP, Filter::Any);
    host.during(secs(9));
    host.query(Version::V2, Some(GROUP), secs(1), &[]);
    assert_eq!(host.said(secs(9)), [(IsExclude, at(GROUP), vec![])]);
}

#[test]
fn groups_of_one_source_are_not_told_to_older_queriers() {
    let mut host = Alone::new(Config::default());
    host.query(Version::V2, None, secs(1), &[]);
    host.set("232.1.2.3", include(&["10.0.0.1"]));
    host.query(Version::V2, None, secs(1), &[]);
    host.query(Version::V2, Some("232.1.2.3"), secs(1), &[]);
    host.during(secs(1));
    host.set("232.1.2.3", Filter::None);
    assert!(host.during(secs(100)).is_empty());
    assert_eq!(host.counter("membership_reports"), 0);
}

#[test]
fn of_a_leave_under_way_nothing_is_left_when_the_version_changes() {
    let mut host = Alone::new(Config { max_groups: 1, ..Config::default() });
    host.set(GROUP, Filter::Any);
    host.during(secs(9));
    host.query(Version::V3, Some(GROUP), secs(5), &[]);
    host.set(GROUP, Filter::None);
    host.due();
    host.query(Version::V2, None, secs(1), &[]);
    assert!(host.during(secs(60)).is_empty());
    // There is room for another group again.
    host.set("239.9.9.9", Filter::Any);
    assert_eq!(host.due().len(), 1);
}

#[test]
fn an_answer_of_the_newer_version_is_cancelled_by_the_older_querier() {
    let mut host = Alone::new(Config::default());
    host.set(GROUP, Filter::Any);
    host.during(secs(9));
    host.query(Version::V3, Some(GROUP), Duration::from_millis(100), &[]);
    host.query(Version::V2, None, secs(25), &[]);
    let sent = host.during(secs(60));
    // After the delay that the older one gives, which the seed makes a long one.
    assert!(sent.len() == 1 && sent[0].0 > 100, "{sent:?}");
}

#[test]
fn a_group_that_was_left_makes_room_for_another() {
    let mut host = Alone::new(Config { max_groups: 1, ..Config::default() });
    for group in [GROUP, "239.9.9.9"] {
        host.set(group, Filter::Any);
        assert_eq!(host.during(secs(9)).len(), 2);
        host.set(group, Filter::None);
        host.during(secs(9));
    }
}
