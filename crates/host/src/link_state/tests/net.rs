//! A net of routers and links in virtual time, whose links may be cut, be silent or lose messages.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use hopcast_core::{Buffer, Duration, Instant, Item, Machine, Port, Seed, Stream, Transit};

use crate::link_state::{Attached, Attachments, Config, InterfaceConfig, LinkState, RouteTable};

pub(super) type RouterId = usize;
pub(super) type LinkId = usize;

/// Delay of a message on a link.
pub(super) const DELAY: Duration = Duration::from_millis(1);

pub(super) fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// An end of a link: its router and what its interface is set to.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) router: RouterId,
    pub(super) cost: u16,
    pub(super) area: u32,
}

/// A link of these routers, in the backbone, at a cost of 10.
pub(super) fn link(routers: &[RouterId]) -> Vec<End> {
    in_area(0, routers)
}

pub(super) fn in_area(area: u32, routers: &[RouterId]) -> Vec<End> {
    routers.iter().map(|&router| End { router, cost: 10, area }).collect()
}

/// The state of links as routers see it.
#[derive(Default)]
struct Carrier {
    is_up: Vec<bool>,
    version: u64,
}

struct Ports {
    /// The link of each interface.
    links: Vec<LinkId>,
    carrier: Rc<RefCell<Carrier>>,
    attached: Vec<Attached>,
}

impl Attachments for Ports {
    fn version(&self) -> u64 {
        self.carrier.borrow().version
    }

    fn is_up(&self, interface: u32) -> bool {
        self.carrier.borrow().is_up[self.links[interface as usize]]
    }

    fn attached(&self) -> Vec<Attached> {
        self.attached.clone()
    }
}

struct Router {
    machine: LinkState,
    table: RouteTable,
}

pub(super) struct Net {
    pub(super) now: Instant,
    pub(super) config: Config,
    links: Vec<Vec<End>>,
    /// Links that lose all messages, and whose routers are not told.
    pub(super) is_silent: Vec<bool>,
    carrier: Rc<RefCell<Carrier>>,
    routers: Vec<Option<Router>>,
    /// Identifiers that routers have, other than those of their addresses.
    pub(super) identifiers: BTreeMap<RouterId, u32>,
    pub(super) attached: BTreeMap<RouterId, Vec<Attached>>,
    pub(super) loss: f64,
    random: Stream,
    /// Messages on links: time and order, the router that it arrives at with its interface, the packet.
    under_way: BTreeMap<(Instant, u64), (RouterId, u32, Buffer)>,
    pub(super) sent: u64,
    starts: u64,
}

impl Net {
    /// Routers on these links; none has started.
    pub(super) fn stopped(config: Config, links: Vec<Vec<End>>) -> Self {
        let routers = links.iter().flatten().map(|end| end.router).max().map_or(0, |last| last + 1);
        let carrier = Carrier { is_up: vec![true; links.len()], version: 0 };
        Self {
            now: Instant::ZERO,
            config,
            is_silent: vec![false; links.len()],
            carrier: Rc::new(RefCell::new(carrier)),
            routers: (0..routers).map(|_| None).collect(),
            links,
            identifiers: BTreeMap::new(),
            attached: BTreeMap::new(),
            loss: 0.0,
            random: Seed::new(7, 0).stream(&["net"], 0),
            under_way: BTreeMap::new(),
            sent: 0,
            starts: 0,
        }
    }

    /// The same, all started.
    pub(super) fn new(config: Config, links: Vec<Vec<End>>) -> Self {
        let mut net = Self::stopped(config, links);
        net.start_all();
        net
    }

    pub(super) fn start_all(&mut self) {
        (0..self.routers.len()).for_each(|router| self.start(router));
    }

    pub(super) fn routers(&self) -> usize {
        self.routers.len()
    }

    fn links_of(&self, router: RouterId) -> Vec<LinkId> {
        let has = |link: &LinkId| self.links[*link].iter().any(|end| end.router == router);
        (0..self.links.len()).filter(has).collect()
    }

    fn end(&self, router: RouterId, link: LinkId) -> End {
        *self.links[link].iter().find(|end| end.router == router).unwrap()
    }

    pub(super) fn interface(&self, router: RouterId, link: LinkId) -> u32 {
        self.links_of(router).iter().position(|&one| one == link).unwrap() as u32
    }

    /// Starts a router that knows nothing.
    pub(super) fn start(&mut self, router: RouterId) {
        let links = self.links_of(router);
        let mac = |link: &LinkId| [2, 0, 0, *link as u8, 0, router as u8];
        let host = crate::Config {
            addresses: [false, true].map(|v6| address(router, v6)).to_vec(),
            interfaces: links.iter().map(|link| crate::Interface::new(mac(link), 1500)).collect(),
            ..crate::Config::default()
        };
        let of = |&link: &LinkId| {
            let End { area, cost, .. } = self.end(router, link);
            InterfaceConfig { area, cost }
        };
        let interfaces: Vec<InterfaceConfig> = links.iter().map(of).collect();
        let attached = self.attached.get(&router).cloned().unwrap_or_default();
        let ports = Ports { links, carrier: Rc::clone(&self.carrier), attached };
        let config = Config { router_id: self.identifiers.get(&router).copied(), ..self.config.clone() };
        let random = Seed::new(self.starts, 0).stream(&["link-state"], router as u64);
        self.starts += 1;
        let table = RouteTable::default();
        let mut machine = LinkState::new(config, &host, &interfaces, Box::new(ports), table.clone(), random);
        machine.wake(self.now);
        self.routers[router] = Some(Router { machine, table });
        self.settle(router);
    }

    /// Stops a router, which nobody is told.
    pub(super) fn stop(&mut self, router: RouterId) {
        self.routers[router] = None;
    }

    /// Cuts a link, or mends it, and its routers notice.
    pub(super) fn set_up(&mut self, link: LinkId, is_up: bool) {
        {
            let mut carrier = self.carrier.borrow_mut();
            carrier.is_up[link] = is_up;
            carrier.version += 1;
        }
        for router in self.links[link].iter().map(|end| end.router).collect::<Vec<_>>() {
            if let Some(one) = &mut self.routers[router] {
                one.machine.wake(self.now);
            }
            self.settle(router);
        }
    }

    fn passes(&self, link: LinkId) -> bool {
        self.carrier.borrow().is_up[link] && !self.is_silent[link]
    }

    /// Sends what a router hands over.
    fn settle(&mut self, router: RouterId) {
        let links = self.links_of(router);
        let Some(one) = &mut self.routers[router] else { return };
        let mut sent = Vec::new();
        while let Some((port, item)) = one.machine.poll(self.now) {
            assert_eq!(port, Port::Below(0));
            let Item::Transit(Transit { packet, ingress: None, egress }) = item else { panic!("{item:?}") };
            let hopcast_core::Egress::Group(interfaces) = egress else { panic!("{egress:?}") };
            sent.extend(interfaces.iter().map(|&interface| (links[interface as usize], packet.clone())));
        }
        assert!(one.machine.deadline().is_none_or(|at| at > self.now), "a deadline lies after now");
        for (link, packet) in sent.into_iter().filter(|&(link, _)| self.passes(link)).collect::<Vec<_>>() {
            let others = self.links[link].iter().map(|end| end.router).filter(|&other| other != router);
            for other in others.collect::<Vec<_>>() {
                let interface = self.interface(other, link);
                self.sent += 1;
                if !self.random.chance(self.loss) {
                    self.under_way.insert((self.now + DELAY, self.sent), (other, interface, packet.clone()));
                }
            }
        }
    }

    /// A packet arrives.
    pub(super) fn arrive(&mut self, router: RouterId, interface: u32, packet: Buffer) {
        if let Some(one) = &mut self.routers[router] {
            let transit = Transit::arrived(packet, interface);
            one.machine.handle(self.now, Port::Below(0), Item::Transit(transit));
        }
        self.settle(router);
    }

    pub(super) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let message = self.under_way.first_key_value().map(|(&(at, _), _)| at);
            let deadline = |(number, one): (RouterId, &Option<Router>)| {
                Some((one.as_ref()?.machine.deadline()?, number))
            };
            let wake = self.routers.iter().enumerate().filter_map(deadline).min();
            let next = hopcast_core::earliest(message, wake.map(|(at, _)| at));
            let Some(at) = next.filter(|&at| at <= end) else { break };
            self.now = self.now.max(at);
            if message == Some(at) {
                let (_, (router, interface, packet)) = self.under_way.pop_first().unwrap();
                self.arrive(router, interface, packet);
            } else if let Some((_, router)) = wake {
                self.routers[router].as_mut().unwrap().machine.wake(self.now);
                self.settle(router);
            }
        }
        self.now = end;
    }

    /// The next hop of a router towards an address.
    fn next(&self, router: RouterId, to: IpAddr) -> Option<(LinkId, RouterId)> {
        let found = self.routers[router].as_ref()?.table.find(to)?;
        let link = self.links_of(router)[found.interface as usize];
        let next = (0..self.routers.len()).find(|&one| address(one, to.is_ipv6()) == found.gateway)?;
        (self.passes(link) && self.links[link].iter().any(|end| end.router == next)).then_some((link, next))
    }

    /// The way from a router to another: its cost, or `None` if it does not lead there.
    pub(super) fn cost(&self, from: RouterId, to: RouterId, v6: bool) -> Option<u32> {
        let (mut at, mut cost) = (from, 0);
        for _ in 0..self.routers.len() {
            if at == to {
                return self.routers[to].is_some().then_some(cost);
            }
            let (link, next) = self.next(at, address(to, v6))?;
            cost += u32::from(self.end(at, link).cost);
            at = next;
        }
        None
    }

    /// The lowest cost from each router to each other over links that pass and routers that run: Floyd and Warshall's.
    pub(super) fn expected(&self) -> Vec<Vec<Option<u32>>> {
        let count = self.routers.len();
        let runs = |router: RouterId| self.routers[router].is_some();
        let mut costs = vec![vec![None; count]; count];
        for router in (0..count).filter(|&router| runs(router)) {
            costs[router][router] = Some(0);
        }
        for ends in (0..self.links.len()).filter(|&link| self.passes(link)).map(|link| &self.links[link]) {
            for one in ends.iter().filter(|one| runs(one.router)) {
                for other in ends.iter().filter(|other| runs(other.router) && other.router != one.router) {
                    let known = &mut costs[one.router][other.router];
                    let new = u32::from(one.cost);
                    *known = Some(known.map_or(new, |known| new.min(known)));
                }
            }
        }
        for over in 0..count {
            for from in 0..count {
                for to in 0..count {
                    if let (Some(first), Some(second)) = (costs[from][over], costs[over][to]) {
                        let known = costs[from][to];
                        costs[from][to] =
                            Some(known.map_or(first + second, |known| known.min(first + second)));
                    }
                }
            }
        }
        costs
    }

    /// The first way that is not the shortest, in words.
    pub(super) fn first_wrong(&self) -> Option<String> {
        let expected = self.expected();
        for from in (0..self.routers()).filter(|&from| self.routers[from].is_some()) {
            for (to, &wanted) in expected[from].iter().enumerate() {
                for v6 in [false, true] {
                    let found = self.cost(from, to, v6);
                    if found != wanted {
                        return Some(format!("{from} to {to} costs {found:?} in place of {wanted:?}"));
                    }
                }
            }
        }
        None
    }

    /// Runs until all ways are the shortest, and says how long that took.
    pub(super) fn converge(&mut self, limit: Duration) -> Duration {
        let began = self.now;
        while let Some(wrong) = self.first_wrong() {
            let passed = self.now.since(began);
            assert!(passed < limit, "after {passed}: {wrong}");
            self.run(Duration::from_millis(10));
        }
        self.now.since(began)
    }

    pub(super) fn counter(&self, router: RouterId, name: &str) -> u64 {
        let mut found = None;
        let machine = &self.routers[router].as_ref().unwrap().machine;
        machine.counters(&mut |one, value| found = if one == name { Some(value) } else { found });
        found.unwrap_or_else(|| panic!("a counter {name}"))
    }

    pub(super) fn route(&self, router: RouterId, to: IpAddr) -> Option<IpAddr> {
        self.routers[router].as_ref()?.table.find(to).map(|found| found.gateway)
    }

    /// A router's routes, in words.
    pub(super) fn routes(&self, router: RouterId) -> Vec<String> {
        let routes = self.routers[router].as_ref().unwrap().table.routes();
        routes.iter().map(|(to, found)| format!("{to} {} {}", found.interface, found.gateway)).collect()
    }
}

pub(super) fn address(router: RouterId, v6: bool) -> IpAddr {
    if v6 {
        Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, router as u16 + 1).into()
    } else {
        Ipv4Addr::new(10, 0, (router >> 8) as u8, router as u8 + 1).into()
    }
}
