//! Hosts and a router that speak IGMP and MLD: whatever arrives, each sends no more than its rate, nothing but whole
//! packets that fit the link, and the router knows of no more groups and sources than it has room for.
#![no_main]

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use arbitrary::Arbitrary;
use hopcast_core::{Buffer, Duration, Instant, Item, Machine, Port, Seed, Transit};
use hopcast_fuzz::internet::mend;
use hopcast_host::membership::{self, Filter, MembershipReports};
use hopcast_host::querier::{self, Querier};
use hopcast_wire::membership::{self as wire, Query, RecordType, Version};
use hopcast_wire::{igmp, ip, mld, router_alert};
use libfuzzer_sys::fuzz_target;

const MTU: u32 = 300;
const GROUPS: usize = 4;
const SOURCES: usize = 5;

#[derive(Arbitrary, Debug)]
enum Step {
    /// The host's sockets want something else.
    Set { group: u8, any: bool, sources: Vec<u8> },
    /// Time passes, in milliseconds.
    Wait(u16),
    /// A query of the router with the number.
    Query { v6: bool, router: u8, version: u8, group: Option<u8>, millis: u16, flags: u8, sources: Vec<u8> },
    /// A report of some host.
    Report { v6: bool, records: Vec<(u8, u8, Vec<u8>)> },
    /// An older report, or a leave.
    Older { v6: bool, kind: u8, group: u8 },
    /// Bytes as they are, or with their lengths and checksums made to fit.
    Bytes { mend: bool, bytes: Vec<u8> },
}

struct Link {
    now: Instant,
    host: MembershipReports,
    router: Querier,
    known: BTreeSet<(IpAddr, Option<IpAddr>)>,
    /// Those that it has told as the querier.
    served: BTreeSet<(IpAddr, Option<IpAddr>)>,
    /// Packets since the beginning that queries may have caused, and those that the host's own changes may have.
    sent: u64,
    changed: u64,
}

fuzz_target!(|steps: Vec<Step>| {
    let v4 = Some(Ipv4Addr::new(10, 0, 0, 7));
    let interface = membership::Interface { mtu: MTU, v4, v6: Some(link_local(7)) };
    let config = membership::Config { max_groups: GROUPS, max_sources: SOURCES, ..Default::default() };
    let host = MembershipReports::new(config, vec![interface], Seed::new(1, 0).stream(&["host"], 0));
    let config = querier::Config { max_groups: GROUPS, max_sources: SOURCES, ..Default::default() };
    let interface = querier::Interface { mtu: MTU, v4, v6: Some(link_local(7)) };
    let router = Querier::new(config, &[interface]);
    let (known, served, now) = (BTreeSet::new(), BTreeSet::new(), Instant::ZERO);
    let mut link = Link { now, host, router, known, served, sent: 0, changed: 0 };
    link.settle();
    for step in &steps {
        link.step(step);
        link.settle();
    }
    // Everybody is silent: in the end nobody is known to be there. 31,744 s is the longest interval that a forged query
    // can say.
    link.run(Duration::from_secs(8 * 31_744 + 1000));
    assert!(link.known.is_empty(), "{:?}", link.known);
});

impl Link {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Set { group, any, sources } => {
                let filter = if *any {
                    Filter::Any
                } else {
                    sources.iter().map(|&number| Some(source(group & 1 == 1, number))).collect()
                };
                self.host.set(self.now, 0, self::group(group & 1 == 1, group >> 1), filter);
                self.changed += 1;
            }
            Step::Wait(millis) => self.run(Duration::from_millis((*millis).into())),
            Step::Query { v6, router, version, group, millis, flags, sources } => {
                let query = Query {
                    version: [Version::V1, Version::V2, Version::V3][usize::from(version % 3)],
                    group: group.map(|number| self::group(*v6, number)),
                    max_response: Duration::from_millis((*millis).into()),
                    suppress: flags & 8 != 0,
                    robustness: flags & 7,
                    interval: Duration::from_secs(u64::from(*flags) * 9),
                };
                self.hear(query_packet(*v6, *router, &query, sources));
            }
            Step::Report { v6, records } => self.hear(report_packet(*v6, records)),
            Step::Older { v6, kind, group } => self.hear(older_packet(*v6, *kind, *group)),
            Step::Bytes { mend: fit, bytes } => {
                let mut bytes = bytes.clone();
                if *fit {
                    mend(&mut bytes);
                }
                self.hear(Buffer::copy_from(&bytes));
            }
        }
    }

    /// A packet arrives at both.
    fn hear(&mut self, packet: Buffer) {
        if let Ok(header) = ip::parse(&packet) {
            self.host.receive(self.now, 0, &packet, &header);
        }
        let transit = Item::Transit(Transit::arrived(packet, 0));
        self.router.handle(self.now, Port::Below(0), transit);
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let next = self.host.deadline().into_iter().chain(self.router.deadline()).min();
            let Some(next) = next.filter(|&next| next <= end) else { break };
            assert!(next > self.now, "a deadline lies ahead");
            self.now = next;
            self.settle();
            // The router is alone with its queries, which need not all be seen.
            if self.known.is_empty() && self.host.deadline().is_none() && span > Duration::from_secs(66) {
                break;
            }
        }
        self.now = end;
        self.settle();
    }

    fn settle(&mut self) {
        self.router.wake(self.now);
        while let Some(report) = self.host.poll(self.now) {
            look(&report.packet);
            self.sent += 1;
        }
        while let Some((port, item)) = self.router.poll(self.now) {
            match (port, item) {
                (Port::Above(0), Item::Membership(one)) => {
                    let key = (one.group, one.source);
                    assert!(if one.joined { self.known.insert(key) } else { self.known.remove(&key) });
                }
                (Port::Above(1), Item::Membership(one)) => {
                    let key = (one.group, one.source);
                    assert!(if one.joined { self.served.insert(key) } else { self.served.remove(&key) });
                }
                (Port::Below(0), Item::Transit(transit)) => {
                    if transit.ingress.is_none() {
                        look(&transit.packet);
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        let told: BTreeSet<_> = self.router.memberships().map(|one| (one.group, one.source)).collect();
        assert_eq!(told, self.known);
        let is_querier = |group: IpAddr| self.router.is_querier(0, ip::Version::of(group));
        let mine = told.iter().filter(|(group, _)| is_querier(*group)).copied().collect();
        assert_eq!(self.served, mine);
        assert!(told.len() <= 2 * GROUPS * SOURCES);
        let seconds = self.now.as_nanos() / 1_000_000_000 + 1;
        // 100 a second, 10 at once, and an answer of several packets; a change is said 7 times at most, in two packets.
        assert!(self.sent <= 2 * (100 * seconds + 10 + GROUPS as u64 * 2) + 14 * self.changed);
    }
}

/// Holds a packet that is sent: it is whole, fits the link, and means something.
fn look(packet: &[u8]) {
    assert!(packet.len() <= MTU as usize);
    let header = ip::parse(packet).expect("a packet");
    assert_eq!(header.total_len, packet.len());
    assert!(router_alert::is_present(packet));
    let message = wire::parse(packet, &header).expect("a message of this link");
    assert!(message.is_some());
}

fn group(v6: bool, number: u8) -> IpAddr {
    let last = number / 2;
    match (v6, number & 1) {
        (false, 0) => [239, 0, 0, last].into(),
        (false, _) => [232, 0, 0, last].into(),
        (true, 0) => Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 0, last.into()).into(),
        (true, _) => Ipv6Addr::new(0xff3e, 0, 0, 0, 0, 0, 0, last.into()).into(),
    }
}

fn source(v6: bool, number: u8) -> IpAddr {
    if v6 { Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number.into()).into() } else { [10, 9, 0, number].into() }
}

fn link_local(number: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, number.into())
}

fn query_packet(v6: bool, router: u8, query: &Query, sources: &[u8]) -> Buffer {
    let mut packet = Buffer::default();
    let sources: Vec<_> = sources.iter().map(|&number| source(v6, number)).collect();
    let from = link_local(router);
    match query.group.unwrap_or(wire::all_nodes(if v6 { ip::Version::V6 } else { ip::Version::V4 })) {
        IpAddr::V4(to) => {
            let sources: Vec<_> = sources.into_iter().filter_map(v4).collect();
            igmp::prepend_query(&mut packet, query, &sources);
            router_alert::prepend_v4(&mut packet, Ipv4Addr::new(10, 0, 0, router), to);
        }
        IpAddr::V6(to) => {
            let sources: Vec<_> = sources.into_iter().filter_map(self::v6).collect();
            mld::prepend_query(&mut packet, from, to, query, &sources);
            router_alert::prepend_v6(&mut packet, from, to);
        }
    }
    packet
}

fn report_packet(v6: bool, records: &[(u8, u8, Vec<u8>)]) -> Buffer {
    use RecordType as R;
    let kinds = [R::IsInclude, R::IsExclude, R::ToInclude, R::ToExclude, R::Allow, R::Block];
    let records: Vec<(RecordType, IpAddr, Vec<IpAddr>)> = records
        .iter()
        .map(|(kind, number, sources)| {
            let sources = sources.iter().map(|&number| source(v6, number)).collect();
            (kinds[usize::from(kind % 6)], group(v6, *number), sources)
        })
        .collect();
    let lent: Vec<_> = records.iter().map(|(kind, group, sources)| (*kind, *group, &sources[..])).collect();
    let mut packet = Buffer::default();
    if v6 {
        let to = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);
        mld::prepend_report(&mut packet, link_local(200), to, &lent);
        router_alert::prepend_v6(&mut packet, link_local(200), to);
    } else {
        igmp::prepend_report(&mut packet, &lent);
        router_alert::prepend_v4(&mut packet, [10, 0, 0, 200].into(), [224, 0, 0, 22].into());
    }
    packet
}

fn older_packet(v6: bool, kind: u8, number: u8) -> Buffer {
    let mut packet = Buffer::default();
    match group(v6, number) {
        IpAddr::V4(group) => {
            match kind % 3 {
                0 => igmp::prepend_older_report(&mut packet, Version::V1, group),
                1 => igmp::prepend_older_report(&mut packet, Version::V2, group),
                _ => igmp::prepend_leave(&mut packet, group),
            }
            router_alert::prepend_v4(&mut packet, [10, 0, 0, 200].into(), group);
        }
        IpAddr::V6(group) => {
            match kind % 2 {
                0 => mld::prepend_older_report(&mut packet, link_local(200), group, group),
                _ => mld::prepend_done(&mut packet, link_local(200), group, group),
            }
            router_alert::prepend_v6(&mut packet, link_local(200), group);
        }
    }
    packet
}

fn v4(address: IpAddr) -> Option<Ipv4Addr> {
    if let IpAddr::V4(address) = address { Some(address) } else { None }
}

fn v6(address: IpAddr) -> Option<Ipv6Addr> {
    if let IpAddr::V6(address) = address { Some(address) } else { None }
}
