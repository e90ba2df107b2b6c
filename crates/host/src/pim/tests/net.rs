//! A net of routers and links in virtual time, with shortest paths that change at once, and packets to a group that
//! cross it at one instant.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use hopcast_core::{Buffer, Duration, Instant, Item, Machine, Membership, Port, Seed, Transit};
use hopcast_wire::ip::{self, Version};

use crate::groups::GroupRoutes;
use crate::pim::{Config, GroupTable, Pim};
use crate::routes::{NextHop, RouteEntry, Routes};

pub(super) type RouterId = usize;
pub(super) type LinkId = usize;

/// Delay of a message on a link.
pub(super) const DELAY: Duration = Duration::from_millis(1);
/// Last part of the address of a host on a link, which no router has.
const HOST: u8 = 200;

pub(super) fn after(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// The links, each with its routers, and which of both are there.
struct Topology {
    links: Vec<Vec<RouterId>>,
    is_up: Vec<bool>,
    is_alive: Vec<bool>,
    version: u64,
}

impl Topology {
    /// The routers on a link that can be reached over it.
    fn on(&self, link: LinkId) -> impl Iterator<Item = RouterId> {
        let there = self.links[link].iter().copied().filter(move |_| self.is_up[link]);
        there.filter(|&router| self.is_alive[router])
    }

    fn links_of(&self, router: RouterId) -> impl Iterator<Item = LinkId> {
        (0..self.links.len()).filter(move |&link| self.links[link].contains(&router))
    }

    /// The number of hops of each router to the hosts of a link.
    fn distances(&self, to: LinkId) -> BTreeMap<RouterId, u32> {
        let mut found: BTreeMap<RouterId, u32> = self.on(to).map(|router| (router, 1)).collect();
        let mut queue: VecDeque<RouterId> = found.keys().copied().collect();
        while let Some(router) = queue.pop_front() {
            let hops = found[&router];
            for other in self.links_of(router).flat_map(|link| self.on(link)).collect::<Vec<_>>() {
                found.entry(other).or_insert_with(|| {
                    queue.push_back(other);
                    hops + 1
                });
            }
        }
        found
    }

    /// The link and router by which a router reaches the hosts of a link, and the number of hops; no router at the end.
    fn next(&self, router: RouterId, to: LinkId) -> Option<(LinkId, Option<RouterId>, u32)> {
        let distances = self.distances(to);
        let hops = *distances.get(&router)?;
        if hops == 1 {
            return Some((to, None, 1));
        }
        // Of several the one with the highest address, which wins asserts, too.
        let nearer = |link: LinkId| self.on(link).filter(|other| distances[other] == hops - 1);
        let all = self.links_of(router).filter(|&link| self.is_up[link]);
        let (other, link) = all.flat_map(|link| nearer(link).map(move |other| (other, link))).max()?;
        Some((link, Some(other), hops))
    }
}

/// The unicast routes of one router.
struct ShortestPaths {
    router: RouterId,
    topology: Rc<RefCell<Topology>>,
}

impl Routes for ShortestPaths {
    fn next_hop(&mut self, _destination: IpAddr) -> Option<NextHop> {
        None
    }

    fn version(&self) -> u64 {
        self.topology.borrow().version
    }

    fn route(&mut self, destination: IpAddr) -> Option<RouteEntry> {
        let topology = self.topology.borrow();
        let to = match destination {
            IpAddr::V4(address) => address.octets()[1].into(),
            IpAddr::V6(address) => address.segments()[1].into(),
        };
        let is_there = to < topology.links.len();
        let (link, next, metric) = if is_there { topology.next(self.router, to)? } else { return None };
        let interface = topology.links_of(self.router).position(|one| one == link)? as u32;
        let neighbour = next.map_or(destination, |next| address(link, next as u8 + 1, destination.is_ipv6()));
        Some(RouteEntry { interface, neighbour, metric })
    }
}

fn address(link: LinkId, host: u8, v6: bool) -> IpAddr {
    if v6 {
        Ipv6Addr::new(0xfd00, link as u16, 0, 0, 0, 0, 0, host.into()).into()
    } else {
        Ipv4Addr::new(10, link as u8, 0, host).into()
    }
}

/// The address of a host on a link.
pub(super) fn host(link: LinkId, v6: bool) -> IpAddr {
    address(link, HOST, v6)
}

pub(super) fn group(v6: bool) -> IpAddr {
    if v6 { "ff3e::8000:1".parse().unwrap() } else { "232.1.1.1".parse().unwrap() }
}

struct Router {
    pim: Pim,
    table: GroupTable,
}

pub(super) struct Net {
    pub(super) now: Instant,
    config: Config,
    v6: bool,
    /// Link of the sender of the one channel.
    pub(super) source: LinkId,
    topology: Rc<RefCell<Topology>>,
    routers: Vec<Option<Router>>,
    /// Messages on links: time and order, the router that it arrives at with its interface, the packet.
    under_way: BTreeMap<(Instant, u64), (RouterId, u32, Buffer)>,
    sent: u64,
    members: BTreeSet<LinkId>,
    /// Routers that have been started, each with its own random numbers.
    starts: u64,
    /// Routers that neither send nor hear, though routes lead through them.
    pub(super) silent: BTreeSet<RouterId>,
}

impl Net {
    /// Routers on these links, and a sender on the link `source`.
    pub(super) fn new(config: Config, links: Vec<Vec<RouterId>>, source: LinkId, v6: bool) -> Self {
        let routers = links.iter().flatten().max().map_or(0, |last| last + 1);
        let (is_up, is_alive) = (vec![true; links.len()], vec![true; routers]);
        let topology = Rc::new(RefCell::new(Topology { links, is_up, is_alive, version: 0 }));
        let mut net = Self {
            now: Instant::ZERO,
            config,
            v6,
            source,
            topology,
            routers: (0..routers).map(|_| None).collect(),
            under_way: BTreeMap::new(),
            sent: 0,
            members: BTreeSet::new(),
            starts: 0,
            silent: BTreeSet::new(),
        };
        (0..routers).for_each(|router| net.start(router));
        net
    }

    /// Starts a router, which knows nothing but the members that its queriers find.
    pub(super) fn start(&mut self, router: RouterId) {
        let links: Vec<LinkId> = self.topology.borrow().links_of(router).collect();
        let of = |&link: &LinkId| {
            let [v4, v6] = [false, true].map(|v6| address(link, router as u8 + 1, v6));
            crate::Interface {
                mac: [2, 0, 0, 0, link as u8, router as u8 + 1],
                mtu: 1500,
                v4: if let IpAddr::V4(own) = v4 { Some(own) } else { None },
                v6: if let IpAddr::V6(own) = v6 { Some(own) } else { None },
            }
        };
        let host = crate::Config { interfaces: links.iter().map(of).collect(), ..crate::Config::default() };
        let own = links.iter().flat_map(|&link| [false, true].map(|v6| address(link, router as u8 + 1, v6)));
        let table = GroupTable::new(own.collect());
        let routes = Box::new(ShortestPaths { router, topology: Rc::clone(&self.topology) });
        let random = Seed::new(self.starts, 0).stream(&["pim"], router as u64);
        self.starts += 1;
        let pim = Pim::new(self.config, &host, routes, table.clone(), random);
        self.routers[router] = Some(Router { pim, table });
        {
            let mut topology = self.topology.borrow_mut();
            topology.is_alive[router] = true;
            topology.version += 1;
        }
        for link in self.members.clone().into_iter().filter(|link| links.contains(link)) {
            let is_up = self.is_up(link);
            self.report(router, link, is_up);
        }
        self.settle(router);
    }

    /// Stops a router, and routes lead around it.
    pub(super) fn stop(&mut self, router: RouterId) {
        self.routers[router] = None;
        let mut topology = self.topology.borrow_mut();
        topology.is_alive[router] = false;
        topology.version += 1;
    }

    /// Cuts a link, or mends it; queriers notice.
    pub(super) fn set_up(&mut self, link: LinkId, is_up: bool) {
        {
            let mut topology = self.topology.borrow_mut();
            topology.is_up[link] = is_up;
            topology.version += 1;
        }
        if self.members.contains(&link) {
            self.report_all(link, is_up);
        }
    }

    pub(super) fn is_alive(&self, router: RouterId) -> bool {
        self.routers[router].is_some()
    }

    pub(super) fn is_up(&self, link: LinkId) -> bool {
        self.topology.borrow().is_up[link]
    }

    /// Hosts on a link join the channel, or leave it.
    pub(super) fn set_members(&mut self, link: LinkId, joined: bool) {
        if joined {
            self.members.insert(link);
        } else {
            self.members.remove(&link);
        }
        if self.is_up(link) {
            self.report_all(link, joined);
        }
    }

    /// The queriers of a link report to their routers.
    fn report_all(&mut self, link: LinkId, joined: bool) {
        let routers = self.topology.borrow().links[link].clone();
        for router in routers {
            self.report(router, link, joined);
            self.settle(router);
        }
    }

    pub(super) fn has_members(&self, link: LinkId) -> bool {
        self.members.contains(&link)
    }

    fn report(&mut self, router: RouterId, link: LinkId, joined: bool) {
        let interface = self.interface(router, link);
        let (group, source) = (group(self.v6), Some(host(self.source, self.v6)));
        let membership = Membership { group, source, interface: Some(interface), joined };
        if let Some(one) = &mut self.routers[router] {
            one.pim.handle(self.now, Port::Above(0), Item::Membership(membership));
        }
    }

    fn interface(&self, router: RouterId, link: LinkId) -> u32 {
        self.topology.borrow().links_of(router).position(|one| one == link).unwrap() as u32
    }

    fn link(&self, router: RouterId, interface: u32) -> LinkId {
        self.topology.borrow().links_of(router).nth(interface as usize).unwrap()
    }

    /// A packet arrives at a router.
    pub(super) fn arrive(&mut self, router: RouterId, interface: u32, packet: Buffer) {
        if self.silent.contains(&router) {
            return;
        }
        if let Some(one) = &mut self.routers[router] {
            one.pim.handle(self.now, Port::Below(0), Item::Transit(Transit::arrived(packet, interface)));
        }
        self.settle(router);
    }

    /// Puts what a router sends on the links.
    fn settle(&mut self, router: RouterId) {
        while let Some((port, item)) = self.routers[router].as_mut().and_then(|one| one.pim.poll(self.now)) {
            let (Port::Below(0), Item::Transit(Transit { packet, ingress: None, egress })) = (port, item)
            else {
                panic!("only messages of its own leave");
            };
            let hopcast_core::Egress::Group(interfaces) = egress else { panic!("they are for a link") };
            let link = self.link(router, interfaces[0]);
            assert!(packet.len() <= 1500);
            let others: Vec<RouterId> =
                self.topology.borrow().on(link).filter(|&other| other != router).collect();
            for other in others.into_iter().filter(|_| !self.silent.contains(&router)) {
                self.sent += 1;
                let arrival = (other, self.interface(other, link), packet.clone());
                self.under_way.insert((self.now + DELAY, self.sent), arrival);
            }
        }
    }

    /// Lets time pass.
    pub(super) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let wakes = self.routers.iter().flatten().filter_map(|one| one.pim.deadline()).min();
            let arrival = self.under_way.first_key_value().map(|(&(at, _), _)| at);
            let Some(next) = hopcast_core::earliest(wakes, arrival).filter(|&next| next <= end) else {
                break;
            };
            // A router that has just been started is due at once.
            let next = next.max(self.now);
            self.now = next;
            if arrival == Some(next)
                && let Some((_, (router, interface, packet))) = self.under_way.pop_first()
            {
                self.arrive(router, interface, packet);
                continue;
            }
            for router in 0..self.routers.len() {
                if let Some(one) = &mut self.routers[router]
                    && one.pim.deadline().is_some_and(|at| at <= next)
                {
                    one.pim.wake(next);
                    self.settle(router);
                    let after = self.routers[router].as_ref().and_then(|one| one.pim.deadline());
                    assert!(after.is_none_or(|after| after > next), "a deadline lies ahead");
                }
            }
        }
        self.now = end;
    }

    /// The sender sends a packet; returns the number of copies on each link but its own.
    pub(super) fn send(&mut self) -> Vec<u32> {
        let mut copies = vec![0; self.topology.borrow().links.len()];
        let (source, to) = (host(self.source, self.v6), group(self.v6));
        let mut on_links = VecDeque::from([(self.source, None)]);
        let mut hops = 0;
        while let Some((link, from)) = on_links.pop_front() {
            hops += 1;
            assert!(hops < 1000, "a packet goes round in circles");
            let hears = |router: &RouterId| Some(*router) != from && !self.silent.contains(router);
            let there: Vec<RouterId> = self.topology.borrow().on(link).filter(hears).collect();
            for router in there {
                let interface = self.interface(router, link);
                let Some(route) = self.routers[router].as_mut().and_then(|one| one.table.route(source, to))
                else {
                    continue;
                };
                if route.ingress == Some(interface) {
                    for &egress in &*route.egress {
                        let link = self.link(router, egress);
                        if self.is_up(link) {
                            copies[link] += 1;
                            on_links.push_back((link, Some(router)));
                        }
                    }
                } else {
                    let mut packet = Buffer::zeroed(8);
                    ip::prepend(&mut packet, source, to, ip::UDP, 9, 0);
                    self.arrive(router, interface, packet);
                }
            }
        }
        copies
    }

    /// Lets time pass with a packet every `interval`; returns the copies of each.
    pub(super) fn run_sending(&mut self, span: Duration, interval: Duration) -> Vec<Vec<u32>> {
        let mut all = Vec::new();
        let end = self.now + span;
        while self.now < end {
            self.run(interval);
            all.push(self.send());
        }
        all
    }

    /// The number of copies on each link when all is said: each link that members or others' reverse paths need has the
    /// one of the nearest of those that may forward to it.
    pub(super) fn expected(&self) -> Vec<u32> {
        let topology = self.topology.borrow();
        let distances = topology.distances(self.source);
        let next = |router: RouterId| topology.next(router, self.source);
        let mut forwarders: BTreeMap<LinkId, RouterId> = BTreeMap::new();
        for _ in 0..100 {
            let mut candidates: BTreeMap<LinkId, BTreeSet<RouterId>> = BTreeMap::new();
            let mut joined: BTreeSet<RouterId> = forwarders.values().copied().collect();
            for &link in &self.members {
                let Some(designated) = topology.on(link).max() else { continue };
                match next(designated) {
                    Some((towards, ..)) if towards == link => _ = joined.insert(designated),
                    Some(_) => _ = candidates.entry(link).or_default().insert(designated),
                    None => {}
                }
            }
            for router in joined {
                if let Some((link, Some(other), _)) = next(router) {
                    candidates.entry(link).or_default().insert(other);
                }
            }
            let best = |routers: &BTreeSet<RouterId>| {
                routers.iter().copied().min_by_key(|router| (distances[router], Reverse(*router))).unwrap()
            };
            let found = candidates.iter().map(|(&link, routers)| (link, best(routers))).collect();
            if forwarders == found {
                break;
            }
            forwarders = found;
        }
        (0..topology.links.len()).map(|link| u32::from(forwarders.contains_key(&link))).collect()
    }

    pub(super) fn state(&self) -> String {
        let topology = self.topology.borrow();
        format!(
            "from {}, members {:?}, up {:?}, alive {:?}",
            self.source, self.members, topology.is_up, topology.is_alive
        )
    }

    pub(super) fn is_designated(&self, router: RouterId, link: LinkId) -> bool {
        let version = if self.v6 { Version::V6 } else { Version::V4 };
        let interface = self.interface(router, link);
        self.routers[router].as_ref().is_some_and(|one| one.pim.is_designated(interface, version))
    }

    pub(super) fn counter(&self, router: RouterId, name: &str) -> u64 {
        let mut found = None;
        let pim = &self.routers[router].as_ref().unwrap().pim;
        pim.counters(&mut |one, value| found = if one == name { Some(value) } else { found });
        found.unwrap_or_else(|| panic!("a counter {name}"))
    }
}
