//! From a scenario to the network that a lab sets up: the same addresses, interfaces, link models and routes as in
//! virtual time.

mod groups;

use std::collections::BTreeMap;

use hopcast_core::Seed;
use hopcast_core::plug::Plug;
use hopcast_core::{Instant, earliest};
use hopcast_link::Change;
use hopcast_stack::network::{self, GlobalRoutes, Hop, NetworkPlan, addresses_of, interface_name};
use hopcast_twin::capture::LinkType;
use hopcast_twin::scenario::model::{Action, Capture, Neighbours, NodeId, Scenario};
use hopcast_twin::world::NodeInstance;

use crate::layout::{
    Captured, GroupRoute, InterfaceLayout, LinkChange, LinkLayout, NetworkLayout, NodeLayout, Reroute, Route,
    Scheduled,
};
use crate::run;

use self::groups::Groups;

/// The network of `scenario`, with the random streams of repeat number `repeat`.
pub fn layout(scenario: &Scenario, repeat: u64) -> NetworkLayout {
    let plan = NetworkPlan::of(scenario.network());
    let mut global = plan.routes(scenario.network());
    let seed = Seed::new(scenario.seed, repeat);
    let mut groups = Groups::of(scenario);
    groups.change(Instant::ZERO, &mut global);
    let nodes: Vec<NodeLayout> = (0..scenario.nodes.len())
        .map(|node| node_layout(scenario, (&plan, &groups), &mut global, node))
        .collect();
    let mut captures = Vec::new();
    let links = (0..scenario.links.len()).map(|number| {
        let ends = plan.ends(number).to_vec();
        let capture = |&(node, interface): &(NodeId, u32)| {
            is_captured(&scenario.capture, node).then(|| {
                let name = interface_name(interface);
                captures.push(Captured { node, name, carries: LinkType::Frames, by_link: true });
                captures.len() - 1
            })
        };
        let captured = ends.iter().map(capture).collect();
        let model = plan.model(scenario.network(), number, scenario.overhears(), seed);
        LinkLayout { name: scenario.links[number].name.clone(), model, ends, captured }
    });
    let links: Vec<LinkLayout> = links.collect();
    let (mut changes, mut reroutes) = (Vec::new(), Vec::new());
    let mut known: Vec<Tables> =
        nodes.iter().map(|node| (node.routes.clone(), node.group_routes.clone())).collect();
    let mut events = scenario.events.iter().peekable();
    // All changes at one instant are one change of routes.
    while let Some(at) = earliest(events.peek().map(|event| event.at), groups.next_at()) {
        let mut moved = false;
        let mut mtus = Mtus::new();
        while let Some(event) = events.next_if(|event| event.at <= at) {
            if let Action::Link { link, from, change } = &event.action {
                let what = LinkChange { link: *link, from: *from, change: change.clone() };
                changes.push(Scheduled { at, what });
                moved |= global.change_link(*link, *from, change);
                if let Change::Mtu(mtu) = change {
                    let ends = plan.ends(*link).iter().enumerate();
                    let ends = ends.filter(|(attachment, _)| from.is_none_or(|from| from == *attachment));
                    mtus.extend(ends.map(|(_, &end)| (end, *mtu)));
                }
            }
        }
        if groups.change(at, &mut global) || moved {
            reroutes.extend(new_routes(scenario, &mut global, (&groups, moved), &mut known, &mut mtus, at));
        }
        if !mtus.is_empty() {
            reroutes.extend(new_mtus(&known, mtus, at));
        }
    }
    let mut layout = NetworkLayout { nodes, links, changes, reroutes, captured: captures };
    groups::settle(&mut layout);
    layout
}

/// A node's routes to others, and those of groups.
type Tables = (Vec<Route>, Vec<GroupRoute>);

/// The captured devices of machines at nodes.
///
/// # Errors
/// [`run::Error::Flow`], if a flow cannot be built.
pub fn captured_devices(scenario: &Scenario, repeat: u64) -> Result<Vec<Captured>, run::Error> {
    let mut captured = Vec::new();
    if scenario.capture == Capture::Nothing {
        return Ok(captured);
    }
    for node in (0..scenario.nodes.len()).filter(|&node| is_captured(&scenario.capture, node)) {
        let instance = NodeInstance::at(scenario, repeat, node).map_err(run::Error::Flow)?;
        let device = |plug: &Plug| match plug {
            Plug::Tun(device) => Some((device.name.clone(), LinkType::Packets)),
            Plug::Tap(_, device) => Some((device.name.clone(), LinkType::Frames)),
            Plug::Udp(_) | Plug::Tcp(_) | Plug::Frames(_) => None,
        };
        let devices = instance.iter().flat_map(|instance| instance.plugs()).filter_map(device);
        captured.extend(devices.map(|(name, carries)| Captured { node, name, carries, by_link: false }));
    }
    Ok(captured)
}

/// New MTUs of interfaces, by node and number.
type Mtus = BTreeMap<(NodeId, u32), u32>;

/// The new MTUs of nodes whose routes stay.
fn new_mtus(known: &[Tables], changed: Mtus, at: Instant) -> Vec<Scheduled<Reroute>> {
    let mut of_nodes: BTreeMap<NodeId, Vec<(u32, u32)>> = BTreeMap::new();
    for ((node, interface), mtu) in changed {
        of_nodes.entry(node).or_default().push((interface, mtu));
    }
    let change = |(node, mtus): (NodeId, Vec<(u32, u32)>)| {
        let (routes, group_routes) = known[node].clone();
        Scheduled { at, what: Reroute { node, routes, group_routes, mtus } }
    };
    of_nodes.into_iter().map(change).collect()
}

/// The routing tables that have changed: those of groups, and if links have `moved` the others too. With them come the
/// new MTUs of their nodes, which are taken out of `mtus`.
fn new_routes(
    scenario: &Scenario,
    global: &mut GlobalRoutes,
    (groups, moved): (&Groups, bool),
    known: &mut [Tables],
    mtus: &mut Mtus,
    at: Instant,
) -> Vec<Scheduled<Reroute>> {
    let mut changed = Vec::new();
    for (node, known) in known.iter_mut().enumerate() {
        let routes = if moved { routes(scenario, global, node) } else { known.0.clone() };
        let tables = (routes, groups.routes(global, node));
        if tables != *known {
            known.clone_from(&tables);
            let (routes, group_routes) = tables;
            let own = mtus.extract_if((node, 0)..=(node, u32::MAX), |_, _| true);
            let mtus = own.map(|((_, interface), mtu)| (interface, mtu)).collect();
            changed.push(Scheduled { at, what: Reroute { node, routes, group_routes, mtus } });
        }
    }
    changed
}

fn node_layout(
    scenario: &Scenario,
    (plan, groups): (&NetworkPlan, &Groups),
    global: &mut GlobalRoutes,
    node: NodeId,
) -> NodeLayout {
    let interface = |&Hop { link, attachment }: &Hop| InterfaceLayout {
        link,
        attachment,
        mac: NetworkPlan::mac(link, attachment),
        mtu: scenario.links[link].direction(attachment).mtu,
    };
    NodeLayout {
        name: scenario.nodes[node].name.clone(),
        addresses: addresses_of(node).to_vec(),
        interfaces: plan.interfaces(node).iter().map(interface).collect(),
        routes: routes(scenario, global, node),
        resolves: scenario.neighbours == Neighbours::Resolve,
        group_routes: groups.routes(global, node),
        group_interfaces: Vec::new(),
    }
}

/// A node's routes to both addresses of each node that it can reach.
fn routes(scenario: &Scenario, global: &mut GlobalRoutes, node: NodeId) -> Vec<Route> {
    let planned = scenario.neighbours == Neighbours::Plan;
    let each = |network::Route { to, interface, via, mac }: network::Route| {
        let pairs = addresses_of(to).into_iter().zip(addresses_of(via));
        pairs.map(move |(to, via)| Route { to, interface, via, via_mac: planned.then_some(mac) })
    };
    global.from(node).into_iter().flat_map(each).collect()
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
    use hopcast_twin::scenario::Overrides;

    #[test]
    fn a_new_mtu_of_a_link_is_set_on_the_interfaces_that_send_on_it() {
        let text = "title: t\nduration: 9s\ntopology: { nodes: [a, b, c], links: [{ between: [a, b], rate: 1 Mbit/s }, { between: [b, c], rate: 1 Mbit/s }, { between: [a, c], rate: 1 Mbit/s }] }\nevents: [{ at: 3s, links: [a-b, a-c], mtu: 1300 }, { at: 3s, links: a-c, down: true }, { at: 5s, links: b-c, from: c, mtu: 9000 }]\nflows: [{ name: f, from: a, to: c, over: udp, app: bulk }]\n";
        let plan = load_text(std::path::Path::new("t.yaml"), text, &Overrides::default()).unwrap();
        let layout = layout(&plan.cases[0].scenario, 0);
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let mtus =
            layout.reroutes.iter().map(|reroute| (reroute.at, reroute.what.node, reroute.what.mtus.clone()));
        let expected = [
            (at(3), 0, vec![(0, 1300), (1, 1300)]),
            // Its route to a went over a-c, as that of a to c.
            (at(3), 2, vec![(1, 1300)]),
            (at(3), 1, vec![(0, 1300)]),
            (at(5), 2, vec![(0, 9000)]),
        ];
        assert_eq!(mtus.collect::<Vec<_>>(), expected);
        // Routes stay as they are where only an MTU changes.
        assert_eq!(layout.reroutes[2].what.routes, layout.nodes[1].routes);
    }

    #[test]
    fn a_link_that_goes_down_changes_the_tables_of_those_whose_way_it_was() {
        let text = "title: t\nduration: 9s\ntopology: { nodes: [a, b, c], links: [{ between: [a, b], rate: 1 Mbit/s }, { between: [b, c], rate: 1 Mbit/s }, { between: [a, c], rate: 1 Mbit/s }] }\nevents: [{ at: 3s, links: a-c, down: true }, { at: 5s, links: a-c, up: true }]\nflows: [{ name: f, from: a, to: c, over: udp, app: bulk }]\n";
        let plan = load_text(std::path::Path::new("t.yaml"), text, &Overrides::default()).unwrap();
        let layout = layout(&plan.cases[0].scenario, 0);
        let to_c = |routes: &[Route]| {
            routes.iter().find(|route| route.to == addresses_of(2)[0]).map(|route| route.via)
        };
        assert_eq!(to_c(&layout.nodes[0].routes), Some(addresses_of(2)[0]));
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let of_a = |reroute: &&Scheduled<Reroute>| reroute.what.node == 0;
        let tables: Vec<_> = layout.reroutes.iter().filter(of_a).collect();
        assert_eq!(tables.len(), 2);
        assert_eq!((tables[0].at, to_c(&tables[0].what.routes)), (at(3), Some(addresses_of(1)[0])));
        assert_eq!((tables[1].at, &tables[1].what.routes), (at(5), &layout.nodes[0].routes));
        assert!(layout.reroutes.iter().all(|reroute| reroute.what.node != 1), "b's routes stay");
    }
}
