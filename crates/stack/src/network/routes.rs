//! Idealised shortest-path routes, converged at once: computed on demand from the whole network as it is now.
//!
//! A route goes over the fewest hops, among those over the minimum total delay, and among those over the link that
//! stands first in the file. Links that are down are not used, from the instant on at which their owner says so: that
//! at which they go down, or later, if the scenario gives routing a time to converge. All nodes change at that one
//! instant. Routes that the file writes itself win over them, for all destinations that they cover. Nodes whose
//! services route for themselves do without these routes: beyond their own links they have what those have found.
//!
//! An address in a segment's prefix is reached over that segment: by its hosts directly, as long as their own
//! attachment to it is up (the connected route), and by all others over the shortest path to any of them. Of a
//! connected route and one of the file that with the longer prefix wins.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use hopcast_core::Instant;
use hopcast_host::Prefix;
use hopcast_host::link_state::{Attached, RouteTable};
use hopcast_link::{Attachment, Change};

use super::address_plan::{AddressPlan, Subnet};
use super::groups::GroupTrees;
use super::numbering::{MacAddress, addresses_of, mac_address};
use super::services::RunningServices;
use super::shortest_paths::{Crossing, ShortestPaths, Step, Target};
use super::static_routes::{StaticRoute, StaticTable};
use super::{LinkId, NodeId, ServiceSpec};

/// The network as routing sees it.
pub struct GlobalRoutes {
    pub(super) paths: ShortestPaths,
    addresses: Arc<AddressPlan>,
    /// For each destination asked for, the step by which each node reaches it.
    tables: BTreeMap<Target, Table>,
    /// Their destinations, the oldest first, which makes room for others. By the order of destinations, the first ones
    /// would be searched for anew each time that they come again.
    oldest: VecDeque<Target>,
    /// Number of entries of all tables.
    entries: usize,
    pub(super) groups: GroupTrees,
    statics: StaticTable,
    /// The tables of the nodes whose services route for themselves.
    found: BTreeMap<NodeId, RouteTable>,
    /// Number of changes of those tables.
    found_changes: Rc<Cell<u64>>,
    pub(super) running: RunningServices,
    /// A number that changes whenever an idealised route, or a service on it, may have changed.
    pub(super) version: u64,
}

/// The first step from one node to another.
pub(super) struct FirstStep {
    /// The number of the interface by which it leaves.
    pub(super) interface: u32,
    /// The next node.
    pub(super) via: NodeId,
    /// The number of the next node's interface to the first.
    pub(super) far_interface: u32,
    /// The Ethernet address of that interface.
    pub(super) mac: MacAddress,
}

/// A route of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destinations.
    pub to: Prefix,
    /// The number of the interface that leads there.
    pub interface: u32,
    /// The next hop; `None` where the destinations are on the interface's segment.
    pub gateway: Option<Gateway>,
}

/// A next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Its address as a neighbour.
    pub address: IpAddr,
    /// Its Ethernet address.
    pub mac: MacAddress,
}

/// The next hop of packets from a node to one address, as the ends of the segment that they cross.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    /// The end that sends.
    pub(super) own: u32,
    /// The end that receives; `None` where nobody on the segment has the address.
    pub(super) far: Option<u32>,
    /// Whether the address is on the segment of these ends.
    connected: bool,
}

/// Maximum number of entries in all tables together. Chosen: a quarter of a gigabyte; with less, large networks search
/// for the same paths again and again.
const MAX_ENTRIES: usize = (1 << 28) / size_of::<(u32, Step)>();

/// Maximum number of hops: no packet has more (RFC 791, RFC 8200).
const MAX_HOPS: usize = 255;

/// The steps to one destination, in the order of the nodes that reach it: in networks of many parts those are few.
#[derive(Debug)]
struct Table(Vec<(u32, Step)>);

impl Table {
    /// The steps that the last search has found.
    fn of(paths: &ShortestPaths) -> Self {
        let step = |node: NodeId| paths.step(node).map(|step| (node as u32, step));
        if paths.found().len() > paths.nodes() / 2 {
            return Self((0..paths.nodes()).filter_map(step).collect());
        }
        let mut steps: Vec<(u32, Step)> = paths.found().iter().copied().filter_map(step).collect();
        steps.sort_unstable_by_key(|&(node, _)| node);
        Self(steps)
    }

    fn step(&self, from: NodeId) -> Option<Step> {
        let has_all = self.0.get(from).filter(|(node, _)| *node as usize == from);
        let found =
            || self.0.binary_search_by_key(&from, |&(node, _)| node as usize).ok().map(|at| &self.0[at]);
        has_all.or_else(found).map(|&(_, step)| step)
    }
}

impl GlobalRoutes {
    /// The routes of these paths, in a network with these services.
    pub(super) fn new(paths: ShortestPaths, addresses: Arc<AddressPlan>, services: &[ServiceSpec]) -> Self {
        let (groups, statics) = (GroupTrees::default(), StaticTable::default());
        let running = RunningServices::of(services);
        let found_changes = Rc::new(Cell::new(0));
        let routing = services.iter().filter(|service| service.layer.settings().routes_unicast());
        let table = |&node: &NodeId| (node, RouteTable::counting_in(found_changes.clone()));
        let found = routing.flat_map(|service| &service.on).map(table).collect();
        Self {
            paths,
            addresses,
            tables: BTreeMap::new(),
            oldest: VecDeque::new(),
            entries: 0,
            groups,
            statics,
            found,
            found_changes,
            running,
            version: 0,
        }
    }

    /// A number that changes whenever a route of a node, or a service on it, may have changed.
    pub(super) fn version_of_nodes(&self) -> u64 {
        self.version + self.found_changes.get()
    }

    /// The table of a node whose service routes for itself.
    pub(super) fn found_table(&self, node: NodeId) -> Option<&RouteTable> {
        self.found.get(&node)
    }

    /// What a node reaches over its own links without another router that routes for itself: the prefixes of their
    /// segments, and the own addresses of the hosts there; whatever is down.
    pub(super) fn attached(&self, node: NodeId) -> Vec<Attached> {
        let mut attached = Vec::new();
        for own in self.paths.ends_at(node) {
            let interface = self.paths.interface(own);
            let prefixes = self.addresses.in_prefixes(node, interface);
            attached.extend(prefixes.map(|(_, to)| Attached { to, interface, gateway: None }));
            for step in self.paths.all_beside(own) {
                let other = self.paths.node(step.to);
                if !self.found.contains_key(&other) {
                    attached.extend([false, true].map(|ipv6| {
                        let to = Prefix::of(addresses_of(other)[usize::from(ipv6)]);
                        Attached { to, interface, gateway: Some(self.neighbour_address(step.to, ipv6)) }
                    }));
                }
            }
        }
        attached
    }

    /// Whether another node on the segment of an interface of a node has a service that routes for itself.
    pub(super) fn has_router(&self, node: NodeId, interface: u32) -> bool {
        let own = self.paths.ends_at(node).filter(|&end| self.paths.interface(end) == interface);
        own.flat_map(|own| self.paths.nodes_beside(own)).any(|other| self.found.contains_key(&other))
    }

    /// Whether a node can send by an interface.
    pub(super) fn is_up(&self, node: NodeId, interface: u32) -> bool {
        self.paths.ends_at(node).any(|end| self.paths.interface(end) == interface && self.paths.is_up(end))
    }

    /// Adds a static route to a node, which wins over the shortest paths of all destinations that it covers; false, and
    /// nothing is changed, if the next hop is no neighbour. The route stays when its link goes down.
    pub fn add_static(&mut self, route: &StaticRoute) -> bool {
        let step = self.paths.any_neighbour(route.node, route.via);
        if let Some(step) = step {
            self.statics.add(route.node, &route.to.prefixes(&self.addresses), step);
            self.version += 1;
        }
        step.is_some()
    }

    /// Follows a change of a link, for the direction that leaves attachment `from` or for all; true if routes may
    /// change with it.
    pub fn change_link(&mut self, link: LinkId, from: Option<Attachment>, change: &Change) -> bool {
        match change {
            Change::Up => self.paths.set_up(link, from, true),
            Change::Down => self.paths.set_up(link, from, false),
            Change::Delay(delay) => self.paths.set_delay(link, from, *delay),
            Change::Rate(_)
            | Change::Jitter(_)
            | Change::Loss(_)
            | Change::LossTo(..)
            | Change::Queue(_)
            | Change::Mtu(_)
            | Change::Reorder(_)
            | Change::Corrupt(_)
            | Change::Duplicate(_) => return false,
        }
        self.tables.clear();
        self.oldest.clear();
        self.entries = 0;
        self.groups.forget_trees();
        self.version += 1;
        true
    }

    /// Follows the changes of a service at an instant, which is that of its number.
    pub fn change_service(&mut self, number: usize, service: &ServiceSpec, at: Instant) {
        let kind = service.layer.row().name;
        for change in service.changes.iter().filter(|change| change.at == at) {
            for &node in &change.on {
                self.running.change((number, kind), node, change.to.is_some());
            }
        }
        self.version += 1;
    }

    /// Notes that a delivery sends from a node, from the beginning on.
    pub(crate) fn note_sender(&mut self, node: NodeId, delivery: &'static str) {
        self.running.change((0, delivery), node, true);
    }

    /// Number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.paths.nodes()
    }

    /// A number that changes whenever a tree of a group may have changed.
    pub(super) fn groups_version(&self) -> u64 {
        self.version + self.groups.changes
    }

    /// The addresses of all nodes.
    pub(super) fn addresses(&self) -> &AddressPlan {
        &self.addresses
    }

    /// The first step of a node on its way to another.
    pub(super) fn first_step(&mut self, from: NodeId, to: NodeId) -> Option<FirstStep> {
        let Step { from: own, to: far } = self.step(from, Target::Node(to))?;
        let (interface, far_interface) = (self.paths.interface(own), self.paths.interface(far));
        Some(FirstStep { interface, via: self.paths.node(far), far_interface, mac: self.mac(far) })
    }

    /// A node's routes of one version of IP: to the own address of each other node that it can reach now, in the order
    /// of nodes, and to each prefix, as a whole but for the parts of it that the file routes.
    pub fn from(&mut self, node: NodeId, ipv6: bool) -> Vec<Route> {
        let mut routes = Vec::new();
        for to in (0..self.nodes()).filter(|&to| to != node) {
            let own = addresses_of(to)[usize::from(ipv6)];
            let leg = self.leg(node, own);
            routes.extend(leg.and_then(|leg| self.route_by(leg, Prefix::of(own))));
        }
        let addresses = self.addresses.clone();
        for subnet in addresses.subnets().filter(|subnet| subnet.prefix.first().is_ipv6() == ipv6) {
            let parts = self.statics.within(node, subnet.prefix);
            let leg = self.leg_to_subnet(node, subnet, None);
            routes.extend(leg.and_then(|leg| self.route_by(leg, subnet.prefix)));
            for (part, step) in parts {
                let leg = Leg { own: step.from, far: Some(step.to), connected: false };
                routes.extend(self.route_by(leg, part));
            }
        }
        routes
    }

    /// Whether a node sends what is for an address by this interface, straight to the node that has it.
    pub fn is_direct(&mut self, node: NodeId, interface: u32, address: IpAddr) -> bool {
        let Some(leg) = self.leg(node, address) else { return false };
        let is_next = |far| self.neighbour_address(far, address.is_ipv6()) == address;
        self.paths.interface(leg.own) == interface && (leg.connected || leg.far.is_some_and(is_next))
    }

    /// The first hop from a node towards an address, over links that are up and whatever routes the file has, and the
    /// node that it leads to.
    pub(super) fn next_hop(&mut self, from: NodeId, to: IpAddr) -> Option<(Crossing, NodeId)> {
        let leg = match self.addresses.subnet(to) {
            Some(subnet) => self.dynamic_leg_to_subnet(from, subnet, Some(to)),
            None => self.dynamic_leg(from, to),
        }?;
        Some((self.paths.crossing(leg.own), self.paths.node(leg.far?)))
    }

    /// The crossing by which packets come to a node against its shortest path to a root, as those to groups do, and
    /// the node that they come from.
    pub(super) fn last_hop(&mut self, root: NodeId, node: NodeId) -> Option<(Crossing, NodeId)> {
        let Step { to: far, .. } = self.step(node, Target::Node(root))?;
        Some((self.paths.crossing(far), self.paths.node(far)))
    }

    /// The nodes behind one on the route towards an address, with that which has it as the last; of a route that leads
    /// nowhere, as far as it does.
    pub(super) fn nodes_towards(&mut self, from: NodeId, to: IpAddr) -> Vec<NodeId> {
        let owner = self.addresses.owner(to);
        let (mut nodes, mut node) = (Vec::new(), from);
        // Static routes may lead in a circle.
        while Some(node) != owner && nodes.len() < MAX_HOPS {
            let Some(far) = self.leg(node, to).and_then(|leg| leg.far) else { break };
            node = self.paths.node(far);
            nodes.push(node);
        }
        nodes
    }

    pub(super) fn mac(&self, end: u32) -> MacAddress {
        let hop = self.paths.crossing(end).hop;
        mac_address(hop.link, hop.attachment)
    }

    /// The address by which the host of an end is a neighbour there.
    fn neighbour_address(&self, end: u32, ipv6: bool) -> IpAddr {
        self.addresses.on(self.paths.node(end), self.paths.interface(end), ipv6)
    }

    /// The address to ask for on the segment of a leg: the destination's own if it is there, or else the gateway's.
    pub(super) fn neighbour_on(&self, leg: Leg, destination: IpAddr) -> Option<IpAddr> {
        match leg.connected {
            true => Some(destination),
            false => Some(self.neighbour_address(leg.far?, destination.is_ipv6())),
        }
    }

    fn route_by(&self, leg: Leg, to: Prefix) -> Option<Route> {
        let gateway =
            |far| Gateway { address: self.neighbour_address(far, to.first().is_ipv6()), mac: self.mac(far) };
        let gateway = if leg.connected { None } else { Some(gateway(leg.far?)) };
        Some(Route { to, interface: self.paths.interface(leg.own), gateway })
    }

    /// The next hop from a node towards an address.
    pub(super) fn leg(&mut self, from: NodeId, to: IpAddr) -> Option<Leg> {
        match self.addresses.subnet(to) {
            Some(subnet) => {
                // What the file routes of the prefix, it routes whatever is connected.
                let part = self.statics.find(from, to, subnet.prefix.length().saturating_add(1));
                match part {
                    Some(step) => Some(Leg { own: step.from, far: Some(step.to), connected: false }),
                    None => self.leg_to_subnet(from, subnet, Some(to)),
                }
            }
            None => {
                // An address of nobody has no route, whatever the file routes.
                self.addresses.owner(to)?;
                match self.statics.find(from, to, 0) {
                    Some(step) => Some(Leg { own: step.from, far: Some(step.to), connected: false }),
                    None if self.found.contains_key(&from) => self.found_leg(from, to),
                    None => self.dynamic_leg(from, to),
                }
            }
        }
    }

    /// The next hop from a node towards a prefix, or one address in it.
    fn leg_to_subnet(&mut self, from: NodeId, subnet: Subnet, to: Option<IpAddr>) -> Option<Leg> {
        if self.paths.on_segment(from, subnet.segment).is_none()
            && let Some(step) = self.statics.covering(from, subnet.prefix)
        {
            return Some(Leg { own: step.from, far: Some(step.to), connected: false });
        }
        if self.found.contains_key(&from) && self.paths.on_segment(from, subnet.segment).is_none() {
            return self.found_leg(from, to.unwrap_or(subnet.prefix.first()));
        }
        self.dynamic_leg_to_subnet(from, subnet, to)
    }

    /// The next hop towards an address that a node's service has found.
    fn found_leg(&self, from: NodeId, to: IpAddr) -> Option<Leg> {
        let found = self.found.get(&from)?.find(to)?;
        let next = self.addresses.owner(found.gateway)?;
        let step = self.paths.neighbour(from, found.interface, next)?;
        Some(Leg { own: step.from, far: Some(step.to), connected: false })
    }

    /// The next hop towards a prefix, or one address in it, whatever routes the file has.
    fn dynamic_leg_to_subnet(&mut self, from: NodeId, subnet: Subnet, to: Option<IpAddr>) -> Option<Leg> {
        if let Some(own) = self.paths.on_segment(from, subnet.segment) {
            let owner = to.and_then(|to| self.addresses.owner(to));
            let far = owner.and_then(|owner| self.paths.beside(own, owner)).map(|step| step.to);
            return Some(Leg { own, far, connected: true });
        }
        let step = self.step(from, Target::Segment(subnet.segment))?;
        Some(Leg { own: step.from, far: Some(step.to), connected: false })
    }

    /// The next hop from a node towards the own address of another, whatever routes the file has.
    fn dynamic_leg(&mut self, from: NodeId, to: IpAddr) -> Option<Leg> {
        let node = self.addresses.owner(to)?;
        let step = self.step(from, Target::Node(node))?;
        Some(Leg { own: step.from, far: Some(step.to), connected: false })
    }

    fn step(&mut self, from: NodeId, to: Target) -> Option<Step> {
        if !self.tables.contains_key(&to) {
            self.paths.search(to);
            let table = Table::of(&self.paths);
            while self.entries + table.0.len() > MAX_ENTRIES
                && let Some(oldest) = self.oldest.pop_front()
            {
                self.entries -= self.tables.remove(&oldest).map_or(0, |table| table.0.len());
            }
            self.entries += table.0.len();
            self.tables.insert(to, table);
            self.oldest.push_back(to);
        }
        self.tables[&to].step(from)
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Duration;
    use hopcast_link::{Config, Direction, SwitchConfig};

    use super::*;
    use crate::network::{Destinations, Link, LinkModel, Network, NetworkPlan, Node};

    /// 0 - 1 - 3 and 0 - 2 - 3, the second with more delay.
    fn square() -> GlobalRoutes {
        let links = [(0, 1, 10), (0, 2, 90), (1, 3, 10), (2, 3, 10)].map(|(a, b, micros)| {
            let direction = Direction { delay: Duration::from_micros(micros), ..Direction::default() };
            let (forward, backward) = (direction.clone(), direction);
            let model = LinkModel::PointToPoint(Config { forward, backward, ..Config::default() });
            let (name, ends, prefixes) = (String::new(), vec![a, b], Vec::new());
            Link { name, ends, prefixes, model }
        });
        routes(4, &links)
    }

    fn routes(nodes: usize, links: &[Link]) -> GlobalRoutes {
        let node = |number| Node { name: format!("n{number}"), position: None, claims: Vec::new() };
        let (nodes, roles): (Vec<Node>, _) = ((0..nodes).map(node).collect(), BTreeMap::new());
        let network = Network { nodes: &nodes, links, roles: &roles, services: &[] };
        NetworkPlan::of(network).routes(network)
    }

    fn prefix(text: &str) -> Prefix {
        let (first, length) = text.split_once('/').unwrap();
        Prefix::new(first.parse().unwrap(), length.parse().unwrap()).unwrap()
    }

    fn via(routes: &mut GlobalRoutes) -> Option<LinkId> {
        let to = addresses_of(3)[0];
        routes.next_hop(0, to).map(|(crossing, _)| crossing.hop.link)
    }

    #[test]
    fn among_equal_hops_the_lesser_delay_wins_and_a_link_that_is_down_is_avoided() {
        let mut routes = square();
        assert_eq!(via(&mut routes), Some(0));
        routes.change_link(2, None, &Change::Down);
        assert_eq!(via(&mut routes), Some(1));
        routes.change_link(3, Some(0), &Change::Down);
        assert_eq!(via(&mut routes), None);
        routes.change_link(2, None, &Change::Up);
        assert_eq!(via(&mut routes), Some(0));
    }

    #[test]
    fn a_network_of_many_parts_has_small_tables_with_the_same_steps() {
        // Triples of nodes in a row, not joined.
        let pair = |parts: usize| {
            (0..parts).flat_map(|part| [(3 * part, 3 * part + 1), (3 * part + 1, 3 * part + 2)])
        };
        let link = |(a, b): (NodeId, NodeId)| {
            let model = LinkModel::PointToPoint(Config::default());
            Link { name: format!("{a}-{b}"), ends: vec![a, b], prefixes: Vec::new(), model }
        };
        let links: Vec<Link> = pair(4).map(link).collect();
        let mut routes = routes(12, &links);
        for to in 0..12 {
            for from in (0..12).filter(|&from| from != to) {
                let step = routes.first_step(from, to).map(|step| step.via);
                let expected =
                    (from / 3 == to / 3).then(|| if from.abs_diff(to) == 2 { from / 3 * 3 + 1 } else { to });
                assert_eq!(step, expected, "from {from} to {to}");
            }
        }
        assert_eq!(routes.entries, 12 * 2);
        routes.change_link(0, None, &Change::Down);
        assert_eq!((routes.entries, routes.first_step(0, 2).is_none()), (0, true));
    }

    #[test]
    fn a_new_delay_moves_the_route_and_of_equals_the_first_link_wins() {
        let mut routes = square();
        routes.change_link(0, None, &Change::Delay(Duration::from_micros(500)));
        assert_eq!(via(&mut routes), Some(1));
        routes.change_link(0, None, &Change::Delay(Duration::from_micros(90)));
        assert_eq!(via(&mut routes), Some(0));
    }

    #[test]
    fn a_route_names_the_interface_that_it_leaves_by_and_the_address_that_it_leads_to() {
        let route = |ipv6: usize, interface, via, link, attachment| {
            let (address, mac) = (addresses_of(via)[ipv6], mac_address(link, attachment));
            let gateway = Some(Gateway { address, mac });
            Route { to: Prefix::of(addresses_of(2)[ipv6]), interface, gateway }
        };
        let mut routes = square();
        assert_eq!(routes.from(0, false)[1], route(0, 1, 2, 1, 1));
        assert_eq!(routes.from(3, true)[2], route(1, 1, 2, 3, 0));
        assert_eq!(routes.from(1, false)[1], route(0, 1, 3, 2, 1), "by less delay");
    }

    /// 0 and 1 on a segment of 10.7.0.0/24 with 2, behind which is 3.
    fn lan() -> GlobalRoutes {
        let link = |ends: &[NodeId], prefixes: &[&str]| {
            let directions = vec![Direction::default(); ends.len()];
            let model = LinkModel::Switch(SwitchConfig { directions, ..SwitchConfig::default() });
            let prefixes = prefixes.iter().map(|text| prefix(text)).collect();
            Link { name: format!("{ends:?}"), ends: ends.to_vec(), prefixes, model }
        };
        routes(4, &[link(&[0, 1, 2], &["10.7.0.0/24", "fd07::/64"]), link(&[2, 3], &[])])
    }

    fn next(routes: &mut GlobalRoutes, from: NodeId, to: &str) -> Option<(bool, NodeId)> {
        let leg = routes.leg(from, to.parse().unwrap())?;
        Some((leg.connected, leg.far.map_or(usize::MAX, |far| routes.paths.node(far))))
    }

    #[test]
    fn a_prefix_is_one_route_for_all_of_its_hosts() {
        let mut routes = lan();
        assert_eq!(next(&mut routes, 0, "10.7.0.2"), Some((true, 1)));
        assert_eq!(next(&mut routes, 0, "10.7.0.9"), Some((true, usize::MAX)), "nobody has it");
        assert_eq!(next(&mut routes, 3, "10.7.0.9"), Some((false, 2)), "it is the segment's all the same");
        assert_eq!(next(&mut routes, 3, "10.8.0.1"), None);
        let of_prefix = |routes: Vec<Route>| {
            let shown = |route: &Route| (route.to.to_string(), route.gateway.map(|gateway| gateway.address));
            routes.iter().map(shown).next_back().unwrap()
        };
        let lan = "10.7.0.0/24".to_owned();
        assert_eq!(of_prefix(routes.from(0, false)), (lan.clone(), None));
        assert_eq!(of_prefix(routes.from(3, false)), (lan, Some(addresses_of(2)[0])));
        // On the segment a router is a neighbour by its address there.
        let router =
            routes.from(0, true).into_iter().find(|route| route.to == Prefix::of(addresses_of(3)[1]));
        let gateway = router.unwrap().gateway.unwrap();
        assert_eq!(gateway, Gateway { address: "fd07::3".parse().unwrap(), mac: mac_address(0, 2) });
    }

    #[test]
    fn a_host_whose_own_attachment_is_down_is_connected_no_more() {
        let mut routes = lan();
        routes.change_link(0, Some(0), &Change::Down);
        assert_eq!(next(&mut routes, 0, "10.7.0.2"), None);
        assert_eq!(next(&mut routes, 1, "10.7.0.1"), Some((true, 0)));
        routes.change_link(0, None, &Change::Down);
        assert_eq!(next(&mut routes, 3, "10.7.0.1"), None, "nobody is on the segment");
        routes.change_link(0, None, &Change::Up);
        assert_eq!(next(&mut routes, 3, "10.7.0.1"), Some((false, 2)));
    }

    #[test]
    fn of_a_connected_route_and_one_of_the_file_the_longer_prefix_wins() {
        let mut routes = lan();
        let to = |text| Destinations::Prefix(prefix(text));
        assert!(routes.add_static(&StaticRoute { node: 0, to: to("10.7.0.0/24"), via: 2 }));
        assert_eq!(next(&mut routes, 0, "10.7.0.2"), Some((true, 1)));
        assert!(routes.add_static(&StaticRoute { node: 0, to: to("10.7.0.2/31"), via: 2 }));
        assert_eq!(next(&mut routes, 0, "10.7.0.2"), Some((false, 2)));
        assert_eq!(next(&mut routes, 0, "10.7.0.1"), Some((true, 0)));
        let all: Vec<_> = routes.from(0, false).iter().map(|route| route.to.to_string()).collect();
        assert_eq!(all[3..], ["10.7.0.0/24", "10.7.0.2/31"]);
    }
}
