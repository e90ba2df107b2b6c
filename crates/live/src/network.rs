//! From a scenario to the network that a lab sets up: the same addresses, interfaces, link models and routes as in
//! virtual time.

mod groups;

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopcast_core::Seed;
use hopcast_core::plug::Plug;
use hopcast_core::{Instant, earliest};
use hopcast_link::Change;
use hopcast_stack::network::{
    self, GlobalRoutes, Hop, HostInterface, NetworkPlan, Segment, SegmentEnd, addresses_of, interface_name,
};
use hopcast_stack::service::{GroupEgress, GroupEgresses};
use hopcast_twin::capture::LinkType;
use hopcast_twin::scenario::model::{Action, Capture, Neighbours, NodeId, Reporting, Scenario};
use hopcast_twin::world::{NodeInstance, WorldError};

use crate::layout::{
    Captured, GroupRouteLayout, InterfaceLayout, LinkChange, LinkLayout, MadeInterface, NetworkLayout,
    NodeLayout, NodeRoutes, Reroute, RouteLayout, Scheduled,
};

use self::groups::Groups;

/// The network of `scenario`, with the random streams of repeat number `repeat`. Where the run is `recorded`, all
/// interfaces are among those that are captured.
pub fn layout(scenario: &Scenario, repeat: u64, recorded: bool) -> NetworkLayout {
    let plan = NetworkPlan::of(scenario.network());
    let mut global = scenario.global_routes(&plan);
    let seed = Seed::new(scenario.seed, repeat);
    let mut groups = Groups::of(scenario, &plan);
    groups.change(Instant::ZERO, &mut global);
    let segments = SegmentsByEnd::of(&plan);
    let nodes: Vec<NodeLayout> = (0..scenario.nodes.len())
        .map(|node| node_layout(scenario, (&plan, &segments, &groups), &mut global, node))
        .collect();
    let mut captures = Vec::new();
    let links = (0..scenario.links.len()).map(|number| {
        let ends = plan.ends(number).to_vec();
        let capture = |&(node, interface): &(NodeId, u32)| {
            let in_capture = is_captured(&scenario.capture, node);
            (recorded || in_capture).then(|| {
                let (name, carries) = (interface_name(interface), LinkType::Frames);
                captures.push(Captured { node, name, carries, by_link: true, in_capture });
                captures.len() - 1
            })
        };
        let captured = ends.iter().map(capture).collect();
        let model = plan.model(scenario.network(), number, scenario.overhears(), seed);
        LinkLayout { name: scenario.links[number].name.clone(), model, ends, captured }
    });
    let links: Vec<LinkLayout> = links.collect();
    let (mut changes, mut reroutes) = (Vec::new(), Vec::new());
    let mut known: Vec<NodeRoutes> = nodes
        .iter()
        .map(|node| NodeRoutes { routes: node.routes.clone(), groups: node.group_routes.clone() })
        .collect();
    for event in &scenario.events {
        if let Action::Link { link, from, change } = &event.action {
            let what = LinkChange { link: *link, from: *from, change: change.clone() };
            changes.push(Scheduled { at: event.at, what });
            if let Change::Mtu(mtu) = change {
                let ends = plan.ends(*link).iter().enumerate();
                let ends = ends.filter(|(attachment, _)| from.is_none_or(|from| from == *attachment));
                let reroute = |(_, &(node, interface)): (usize, &(NodeId, u32))| Scheduled {
                    at: event.at,
                    what: Reroute { node, tables: None, mtus: vec![(interface, *mtu)] },
                };
                reroutes.extend(ends.map(reroute));
            }
        }
    }
    let convergence = scenario.routing.convergence;
    let mut events = scenario.events.iter().map(|event| (event.at + convergence, event)).peekable();
    // All changes at one instant are one change of routes.
    while let Some(at) = earliest(events.peek().map(|&(at, _)| at), groups.next_at()) {
        let mut moved = false;
        while let Some((_, event)) = events.next_if(|&(follows, _)| follows <= at) {
            if let Action::Link { link, from, change } = &event.action {
                moved |= global.change_link(*link, *from, change);
            }
        }
        if groups.change(at, &mut global) || moved {
            reroutes.extend(new_routes(scenario, &mut global, (&groups, moved), &mut known, at));
        }
    }
    // All changes of a node at one instant are made at once.
    let reroutes = merged(reroutes);
    let mut layout = NetworkLayout { nodes, links, changes, reroutes, captured: captures };
    groups::settle(&mut layout);
    layout
}

/// The routes of packets to groups that services of a node hand back, over the run.
pub fn group_egresses(scenario: &Scenario, repeat: u64, node: NodeId) -> GroupEgresses {
    if !scenario.services.iter().any(|service| service.on.contains(&node)) {
        return Vec::new();
    }
    let layout = layout(scenario, repeat, false);
    let of = |routes: &[GroupRouteLayout]| {
        let each = |route: &GroupRouteLayout| GroupEgress {
            source: route.source,
            group: route.group,
            ingress: route.ingress,
            egress: route.egress.clone(),
        };
        routes.iter().map(each).collect()
    };
    let later = layout.reroutes.iter().filter(|reroute| reroute.what.node == node);
    let later = later.filter_map(|reroute| Some((reroute.at, of(&reroute.what.tables.as_ref()?.groups))));
    [(Instant::ZERO, of(&layout.nodes[node].group_routes))].into_iter().chain(later).collect()
}

/// The captured devices of machines at nodes; all of them where the run is `recorded`.
///
/// # Errors
/// A flow that cannot be built.
pub fn captured_devices(
    scenario: &Scenario,
    repeat: u64,
    recorded: bool,
) -> Result<Vec<Captured>, WorldError> {
    let mut captured = Vec::new();
    for node in 0..scenario.nodes.len() {
        let in_capture = is_captured(&scenario.capture, node);
        if !recorded && !in_capture {
            continue;
        }
        let instance = NodeInstance::at(scenario, repeat, node, &Vec::new())?;
        let device = |plug: &Plug| match plug {
            Plug::Tun(device) => Some((device.name.clone(), LinkType::Packets)),
            Plug::Tap(_, device) => Some((device.name.clone(), LinkType::Frames)),
            Plug::Udp(_)
            | Plug::Raw(..)
            | Plug::Tcp(_)
            | Plug::Frames(_)
            | Plug::Interface(_)
            | Plug::Hook(_)
            | Plug::Local(_) => None,
        };
        let devices = instance.iter().flat_map(|instance| instance.plugs()).filter_map(device);
        captured.extend(devices.map(|(name, carries)| Captured {
            node,
            name,
            carries,
            by_link: false,
            in_capture,
        }));
    }
    Ok(captured)
}

/// Merges the changes of each node at each instant, in the order of time.
fn merged(reroutes: Vec<Scheduled<Reroute>>) -> Vec<Scheduled<Reroute>> {
    let mut merged: BTreeMap<(Instant, NodeId), Reroute> = BTreeMap::new();
    for Scheduled { at, what: Reroute { node, tables, mtus } } in reroutes {
        let known = merged.entry((at, node)).or_insert(Reroute { node, tables: None, mtus: Vec::new() });
        known.tables = tables.or(known.tables.take());
        known.mtus.extend(mtus);
    }
    merged.into_iter().map(|((at, _), what)| Scheduled { at, what }).collect()
}

/// The routing tables that have changed: the routes of groups, and if links have `moved` the other routes too.
fn new_routes(
    scenario: &Scenario,
    global: &mut GlobalRoutes,
    (groups, moved): (&Groups, bool),
    known: &mut [NodeRoutes],
    at: Instant,
) -> Vec<Scheduled<Reroute>> {
    let mut changed = Vec::new();
    for (node, known) in known.iter_mut().enumerate() {
        let routes = if moved { routes(scenario, global, node) } else { known.routes.clone() };
        let tables = NodeRoutes { routes, groups: groups.routes(global, node) };
        if tables != *known {
            known.clone_from(&tables);
            changed.push(Scheduled { at, what: Reroute { node, tables: Some(tables), mtus: Vec::new() } });
        }
    }
    changed
}

fn node_layout(
    scenario: &Scenario,
    (plan, segments, groups): (&NetworkPlan, &SegmentsByEnd<'_>, &Groups),
    global: &mut GlobalRoutes,
    node: NodeId,
) -> NodeLayout {
    let resolves = scenario.neighbours == Neighbours::Resolve;
    let link_local = resolves || scenario.membership == Reporting::Report;
    let of_host = |number: u32| {
        let neighbours = if resolves { Vec::new() } else { segments.others_beside(plan, node, number) };
        let in_prefixes = plan.addresses().in_prefixes(node, number);
        let mut addresses: Vec<_> = in_prefixes.map(|(address, prefix)| (address, prefix.length())).collect();
        let [_, own] = addresses_of(node);
        if resolves && addresses.iter().all(|(address, _)| address.is_ipv4()) {
            // The kernel answers only for the IPv6 addresses of the interface on which the request arrives.
            addresses.push((own, 128));
        }
        (addresses, neighbours)
    };
    let host: Vec<_> = (0..).zip(plan.host_interfaces(node)).collect();
    let interface = |(attached, &Hop { link, attachment }): (u32, &Hop)| {
        let number = host.iter().find(|(_, interface)| interface.attachment == Some(attached));
        let (addresses, neighbours) = number.map(|&(number, _)| of_host(number)).unwrap_or_default();
        let mac = NetworkPlan::mac(link, attachment);
        let mtu = scenario.links[link].direction(attachment).mtu;
        InterfaceLayout { link, attachment, mac, mtu, addresses, neighbours, is_taken: number.is_none() }
    };
    let made = host.iter().zip(plan.mtus(scenario.network(), node));
    let made = made.filter(|((_, interface), _)| interface.attachment.is_none());
    let made = made.map(|(&(number, HostInterface { name, mac, .. }), mtu)| {
        let (addresses, neighbours) = of_host(number);
        MadeInterface { name: name.to_owned(), mac, mtu, addresses, neighbours }
    });
    NodeLayout {
        name: scenario.nodes[node].name.clone(),
        addresses: plan
            .addresses()
            .all(node)
            .into_iter()
            .chain(scenario.nodes[node].claims.clone())
            .collect(),
        interfaces: (0..).zip(plan.interfaces(node)).map(interface).collect(),
        made: made.collect(),
        routes: routes(scenario, global, node),
        link_local,
        group_routes: groups.routes(global, node),
        group_interfaces: Vec::new(),
    }
}

/// The first segment of each interface of nodes' kernels.
struct SegmentsByEnd<'p>(BTreeMap<(NodeId, u32), &'p Segment>);

impl<'p> SegmentsByEnd<'p> {
    fn of(plan: &'p NetworkPlan) -> Self {
        let mut by_end = BTreeMap::new();
        for segment in plan.segments().iter() {
            for end in &segment.ends {
                by_end.entry((end.node, end.interface)).or_insert(segment);
            }
        }
        Self(by_end)
    }

    /// The addresses of the other hosts of the prefixes that an interface of a node's kernel has, with their Ethernet
    /// addresses.
    fn others_beside(&self, plan: &NetworkPlan, node: NodeId, interface: u32) -> Vec<(IpAddr, [u8; 6])> {
        let Some(segment) = self.0.get(&(node, interface)) else { return Vec::new() };
        let of_end = |end: &SegmentEnd| {
            let mac = NetworkPlan::mac(end.link, end.attachment);
            plan.addresses().in_prefixes(end.node, end.interface).map(move |(address, _)| (address, mac))
        };
        segment.ends.iter().filter(|end| end.node != node).flat_map(of_end).collect()
    }
}

/// A node's routes to the own addresses of each node that it can reach, and to the prefixes of segments.
fn routes(scenario: &Scenario, global: &mut GlobalRoutes, node: NodeId) -> Vec<RouteLayout> {
    let planned = scenario.neighbours == Neighbours::Plan;
    let each = |network::Route { to, interface, gateway }: network::Route| RouteLayout {
        to,
        interface,
        via: gateway.map(|gateway| gateway.address),
        via_mac: gateway.filter(|_| planned).map(|gateway| gateway.mac),
    };
    [false, true].into_iter().flat_map(|ipv6| global.from(node, ipv6)).map(each).collect()
}

fn is_captured(capture: &Capture, node: NodeId) -> bool {
    match capture {
        Capture::Nothing => false,
        Capture::Nodes(nodes) => nodes.contains(&node),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopcast_runner::load_text;
    use hopcast_stack::network::Prefix;
    use hopcast_twin::scenario::Overrides;

    #[test]
    fn a_new_mtu_of_a_link_is_set_on_the_interfaces_that_send_on_it() {
        let text = "title: t\nduration: 9s\ntopology: { nodes: [a, b, c], links: [{ between: [a, b], rate: 1 Mbit/s }, { between: [b, c], rate: 1 Mbit/s }, { between: [a, c], rate: 1 Mbit/s }] }\nevents: [{ at: 3s, links: [a-b, a-c], mtu: 1300 }, { at: 3s, links: a-c, down: true }, { at: 5s, links: b-c, from: c, mtu: 9000 }]\nflows: [{ name: f, from: a, to: c, over: udp, app: bulk }]\n";
        let plan = load_text(std::path::Path::new("t.yaml"), text, &Overrides::default()).unwrap();
        let layout = layout(&plan.cases[0].scenario, 0, false);
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let mtus =
            layout.reroutes.iter().map(|reroute| (reroute.at, reroute.what.node, reroute.what.mtus.clone()));
        let expected = [
            (at(3), 0, vec![(0, 1300), (1, 1300)]),
            (at(3), 1, vec![(0, 1300)]),
            (at(3), 2, vec![(1, 1300)]),
            (at(5), 2, vec![(0, 9000)]),
        ];
        assert_eq!(mtus.collect::<Vec<_>>(), expected);
        // Routes between a and c went over a-c; where only an MTU changes they stay as they are.
        let moved: Vec<bool> = layout.reroutes.iter().map(|reroute| reroute.what.tables.is_some()).collect();
        assert_eq!(moved, [true, false, true, false]);
    }

    #[test]
    fn a_link_that_goes_down_changes_the_tables_of_those_whose_way_it_was() {
        let text = "title: t\nduration: 9s\ntopology: { nodes: [a, b, c], links: [{ between: [a, b], rate: 1 Mbit/s }, { between: [b, c], rate: 1 Mbit/s }, { between: [a, c], rate: 1 Mbit/s }] }\nevents: [{ at: 3s, links: a-c, down: true }, { at: 5s, links: a-c, up: true }]\nflows: [{ name: f, from: a, to: c, over: udp, app: bulk }]\n";
        let plan = load_text(std::path::Path::new("t.yaml"), text, &Overrides::default()).unwrap();
        let layout = layout(&plan.cases[0].scenario, 0, false);
        let to_c = |routes: &[RouteLayout]| {
            let to = Prefix::of(addresses_of(2)[0]);
            routes.iter().find(|route| route.to == to).and_then(|route| route.via)
        };
        assert_eq!(to_c(&layout.nodes[0].routes), Some(addresses_of(2)[0]));
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let of_a = |reroute: &&Scheduled<Reroute>| reroute.what.node == 0;
        let tables: Vec<_> = layout.reroutes.iter().filter(of_a).collect();
        assert_eq!(tables.len(), 2);
        assert_eq!(
            (tables[0].at, to_c(&tables[0].what.tables.as_ref().unwrap().routes)),
            (at(3), Some(addresses_of(1)[0]))
        );
        assert_eq!(
            (tables[1].at, &tables[1].what.tables.as_ref().unwrap().routes),
            (at(5), &layout.nodes[0].routes)
        );
        assert!(layout.reroutes.iter().all(|reroute| reroute.what.node != 1), "b's routes stay");
    }

    #[test]
    fn hosts_of_a_prefix_have_one_route_for_it_and_know_each_other() {
        let text = "title: t\nduration: 9s\ntopology: { nodes: [a, b, c], links: [{ switch: [a, b], rate: 1 Mbit/s, prefix: [10.7.0.0/24, \"fd07::/64\"] }, { between: [b, c], rate: 1 Mbit/s }] }\nevents: [{ at: 3s, links: a-b, from: b, down: true }]\nflows: [{ name: f, from: c, to: a, over: udp, app: { cbr: { rate: 1 Mbit/s } } }]\n";
        let plan = load_text(std::path::Path::new("t.yaml"), text, &Overrides::default()).unwrap();
        let layout = layout(&plan.cases[0].scenario, 0, false);
        let lan = Prefix::new("10.7.0.0".parse().unwrap(), 24).unwrap();
        let via = |routes: &[RouteLayout]| routes.iter().find(|route| route.to == lan).map(|route| route.via);
        assert_eq!(via(&layout.nodes[0].routes), Some(None), "connected");
        assert_eq!(via(&layout.nodes[2].routes), Some(Some(addresses_of(1)[0])), "over the router");
        let [own, other] = ["10.7.0.1", "10.7.0.2"].map(|text| text.parse::<IpAddr>().unwrap());
        let interface = &layout.nodes[0].interfaces[0];
        assert_eq!(interface.addresses[0], (own, 24));
        assert_eq!(interface.neighbours[0], (other, NetworkPlan::mac(0, 1)));
        assert_eq!(layout.nodes[0].addresses[0], own, "the first, so that packets leave with it");
        assert!(layout.nodes[2].interfaces[0].addresses.is_empty());
        // b's own attachment is down: it is not on the segment any more, and nobody else leads there.
        let later = layout.reroutes.iter().find(|reroute| reroute.what.node == 1).unwrap();
        assert_eq!(via(&later.what.tables.as_ref().unwrap().routes), None);
    }

    #[test]
    fn a_static_route_is_in_the_kernels_table_of_its_version() {
        let text = "title: t\nduration: 9s\ntopology: { nodes: [a, b, c], links: [{ between: [a, b] }, { between: [b, c] }, { between: [a, c] }] }\nroutes: [{ node: a, to: 10.0.0.3, via: b }]\nflows: [{ name: f, from: a, to: c, over: udp, app: { cbr: { rate: 1 Mbit/s } } }]\n";
        let plan = load_text(std::path::Path::new("t.yaml"), text, &Overrides::default()).unwrap();
        let layout = layout(&plan.cases[0].scenario, 0, false);
        let via = |v6: usize| {
            let routes = &layout.nodes[0].routes;
            let to = Prefix::of(addresses_of(2)[v6]);
            routes.iter().find(|route| route.to == to).and_then(|route| route.via)
        };
        assert_eq!(via(0), Some(addresses_of(1)[0]));
        assert_eq!(via(1), Some(addresses_of(2)[1]));
    }
}
