//! Hosts and routers on one link in virtual time: each packet is with all others at once, unless it is lost.
#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

use hopcast_core::{Buffer, Duration, Egress, Instant, Item, Machine, Membership, Port, Seed, Transit};
use hopcast_host::membership::{self, Filter};
use hopcast_host::querier::{self, Querier};
use hopcast_wire::ip;
use hopcast_wire::membership::{Message, Query};

/// The interface of every router that the link is on.
pub(crate) const INTERFACE: u32 = 1;

pub(crate) struct SharedLink {
    pub(crate) now: Instant,
    pub(crate) hosts: Vec<membership::MembershipReports>,
    pub(crate) routers: Vec<Querier>,
    /// The memberships that each router has told and not taken back.
    pub(crate) known: Vec<BTreeSet<(IpAddr, Option<IpAddr>)>>,
    /// The same of those that each has told as the querier.
    pub(crate) served: Vec<BTreeSet<(IpAddr, Option<IpAddr>)>>,
    /// All that routers have told, each with the milliseconds, in order.
    pub(crate) told: Vec<(u64, usize, Membership)>,
    /// All packets, each with the milliseconds and its sender, in order.
    pub(crate) packets: Vec<(u64, Station, Buffer)>,
    /// Stations that are neither heard nor hear.
    pub(crate) off: BTreeSet<Station>,
    /// Says of the number of a packet whether it is lost.
    pub(crate) lost: Box<dyn FnMut(usize) -> bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Station {
    Host(usize),
    Router(usize),
}

impl SharedLink {
    pub(crate) fn new(hosts: &[membership::Config], routers: &[querier::Config]) -> Self {
        let hosts = (0..)
            .zip(hosts)
            .map(|(number, &config)| {
                let (v4, v6) = addresses(Station::Host(number));
                let interface = membership::Interface { mtu: 1500, v4: Some(v4), v6: Some(v6) };
                let random = Seed::new(1, 0).stream(&["host"], number as u64);
                membership::MembershipReports::new(config, vec![interface], random)
            })
            .collect();
        let routers: Vec<_> = (0..)
            .zip(routers)
            .map(|(number, &config)| {
                let (v4, v6) = addresses(Station::Router(number));
                let elsewhere = querier::Interface { mtu: 1500, v4: None, v6: None };
                let here = querier::Interface { mtu: 1500, v4: Some(v4), v6: Some(v6) };
                Querier::new(config, &[elsewhere, here])
            })
            .collect();
        let known = vec![BTreeSet::new(); routers.len()];
        let served = known.clone();
        let (told, packets, off) = (Vec::new(), Vec::new(), BTreeSet::new());
        let lost = Box::new(|_| false);
        Self { now: Instant::ZERO, hosts, routers, known, served, told, packets, off, lost }
    }

    /// A host and a router of the defaults, past the startup.
    pub(crate) fn pair() -> Self {
        let mut link = Self::new(&[membership::Config::default()], &[querier::Config::default()]);
        link.run(Duration::from_secs(60));
        link
    }

    pub(crate) fn set(&mut self, host: usize, group: &str, filter: Filter) {
        self.hosts[host].set(self.now, 0, group.parse().unwrap(), filter);
        self.settle();
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        self.settle();
        while let Some(next) = self.deadline().filter(|&next| next <= end) {
            assert!(next > self.now, "deadlines lie ahead");
            self.now = next;
            self.routers.iter_mut().for_each(|router| router.wake(next));
            self.settle();
        }
        self.now = end;
    }

    fn deadline(&self) -> Option<Instant> {
        let hosts = self.hosts.iter().zip((0..).map(Station::Host)).map(|(host, at)| (host.deadline(), at));
        let routers =
            self.routers.iter().zip((0..).map(Station::Router)).map(|(router, at)| (router.deadline(), at));
        // One that is off still keeps its time.
        hosts.chain(routers).filter_map(|(at, _)| at).min()
    }

    /// Hands over all there is to hand over now.
    pub(crate) fn settle(&mut self) {
        if self.now == Instant::ZERO {
            self.routers.iter_mut().for_each(|router| router.wake(Instant::ZERO));
        }
        let mut line = VecDeque::new();
        loop {
            for (number, host) in self.hosts.iter_mut().enumerate() {
                while let Some(report) = host.poll(self.now) {
                    line.push_back((Station::Host(number), report.packet));
                }
            }
            for number in 0..self.routers.len() {
                while let Some((port, item)) = self.routers[number].poll(self.now) {
                    match (port, item) {
                        (Port::Above(0), Item::Membership(membership)) => self.tell(number, membership),
                        (Port::Above(1), Item::Membership(membership)) => self.serve(number, membership),
                        (Port::Below(0), Item::Transit(Transit { packet, ingress: None, egress })) => {
                            assert_eq!(egress, Egress::Group([INTERFACE].into()));
                            line.push_back((Station::Router(number), packet));
                        }
                        other => panic!("{other:?}"),
                    }
                }
            }
            let Some((from, packet)) = line.pop_front() else { return };
            self.packets.push((self.now.as_nanos() / 1_000_000, from, packet.clone()));
            if !(self.lost)(self.packets.len()) && !self.off.contains(&from) {
                self.deliver(from, &packet);
            }
        }
    }

    /// Hands a packet to all stations but its sender.
    pub(crate) fn deliver(&mut self, from: Station, packet: &Buffer) {
        let header = ip::parse(packet).unwrap();
        for number in 0..self.hosts.len() {
            let to = Station::Host(number);
            if to != from && !self.off.contains(&to) {
                assert!(self.hosts[number].receive(self.now, 0, packet, &header));
            }
        }
        for number in 0..self.routers.len() {
            let to = Station::Router(number);
            if to != from && !self.off.contains(&to) {
                let transit = Transit::arrived(packet.clone(), INTERFACE);
                self.routers[number].handle(self.now, Port::Below(0), Item::Transit(transit));
            }
        }
    }

    fn tell(&mut self, router: usize, membership: Membership) {
        let Membership { group, source, joined, .. } = membership;
        note(&mut self.known[router], membership);
        self.told.push((self.now.as_nanos() / 1_000_000, router, membership));
        let has: BTreeSet<_> =
            self.routers[router].memberships().map(|one| (one.group, one.source)).collect();
        assert!(!joined || has.contains(&(group, source)) || self.known[router].len() > has.len());
    }

    fn serve(&mut self, router: usize, membership: Membership) {
        note(&mut self.served[router], membership);
    }

    /// Milliseconds since the beginning.
    pub(crate) fn millis(&self) -> u64 {
        self.now.as_nanos() / 1_000_000
    }

    /// The queries since a time in milliseconds, with the time and the sender.
    pub(crate) fn queries(&self, since: u64) -> Vec<(u64, Station, Query)> {
        let sent = self.packets.iter().filter(|(at, ..)| *at >= since);
        sent.filter_map(|(at, from, packet)| {
            let header = ip::parse(packet).unwrap();
            match hopcast_wire::membership::parse(packet, &header).unwrap().unwrap() {
                Message::Query(query, _) => Some((*at, *from, query)),
                _ => None,
            }
        })
        .collect()
    }

    pub(crate) fn counters(&self, router: usize) -> BTreeMap<&'static str, u64> {
        let mut counters = BTreeMap::new();
        self.routers[router].counters(&mut |name, value| {
            counters.insert(name, value);
        });
        counters
    }
}

/// Takes what a router has told, which must be news.
fn note(known: &mut BTreeSet<(IpAddr, Option<IpAddr>)>, membership: Membership) {
    let Membership { group, source, interface, joined } = membership;
    assert_eq!(interface, Some(INTERFACE));
    let news = if joined { known.insert((group, source)) } else { known.remove(&(group, source)) };
    assert!(news, "told twice: {membership:?}");
}

/// The addresses of a station; the lower the number of a router, the lower its address.
pub(crate) fn addresses(station: Station) -> (std::net::Ipv4Addr, Ipv6Addr) {
    let last = match station {
        Station::Host(number) => 100 + number as u8,
        Station::Router(number) => 1 + number as u8,
    };
    ([10, 0, 0, last].into(), Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, last.into()))
}

pub(crate) fn at(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(crate) fn include(sources: &[&str]) -> Filter {
    sources.iter().map(|source| Some(at(source))).collect()
}

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}
