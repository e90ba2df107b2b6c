//! From a scenario to the network that a lab sets up: the same addresses, interfaces, link models and routes as in
//! virtual time.

use hopcast_core::Instant;
use hopcast_core::plug::Plug;
use hopcast_twin::capture::Carries;
use hopcast_twin::scenario::model::{Action, Capture, NodeId, Scenario};
use hopcast_twin::world::{Site, Way, Wiring};

use crate::layout::{
    Captured, InterfaceLayout, Layout, LinkChange, LinkLayout, NodeLayout, Reroute, Route, Scheduled,
};

/// The network of `scenario`, with the random streams of repeat number `repeat`.
pub fn layout(scenario: &Scenario, repeat: u64) -> Layout {
    let mut wiring = Wiring::of(scenario);
    let nodes: Vec<NodeLayout> =
        (0..scenario.nodes.len()).map(|node| node_layout(scenario, &mut wiring, node)).collect();
    let mut captures = Vec::new();
    let links = (0..scenario.links.len()).map(|number| {
        let ends = wiring.ends(number).to_vec();
        let capture = |&(node, interface): &(NodeId, u32)| {
            is_captured(&scenario.capture, node).then(|| {
                let name = format!("eth{interface}");
                captures.push(Captured { node, name, carries: Carries::Frames, by_link: true });
                captures.len() - 1
            })
        };
        let captured = ends.iter().map(capture).collect();
        let model = wiring.model(scenario, number, repeat);
        LinkLayout { name: scenario.links[number].name.clone(), model, ends, captured }
    });
    let links: Vec<LinkLayout> = links.collect();
    let (mut changes, mut reroutes) = (Vec::new(), Vec::new());
    let mut routes: Vec<Vec<Route>> = nodes.iter().map(|node| node.routes.clone()).collect();
    let mut events = scenario.events.iter().peekable();
    let mut moved = false;
    while let Some(event) = events.next() {
        if let Action::Link { link, from, change } = &event.action {
            let what = LinkChange { link: *link, from: *from, change: change.clone() };
            changes.push(Scheduled { at: event.at, what });
            moved |= wiring.change(*link, *from, change);
        }
        // What happens at one instant is one change of routes.
        if events.peek().is_none_or(|next| next.at > event.at) && std::mem::take(&mut moved) {
            reroutes.extend(new_routes(&mut wiring, &mut routes, event.at));
        }
    }
    Layout { nodes, links, changes, reroutes, captured: captures }
}

/// The devices of machines at nodes that are captured.
///
/// # Errors
/// What cannot be built, in one line.
pub fn captured_devices(scenario: &Scenario, repeat: u64) -> Result<Vec<Captured>, String> {
    let mut captured = Vec::new();
    if scenario.capture == Capture::Nothing {
        return Ok(captured);
    }
    for flow in 0..scenario.flows.len() {
        for site in Site::of_flow(scenario, repeat, flow)? {
            let node = site.node();
            let device = |plug: &Plug| match plug {
                Plug::Tun(device) => Some((device.name.clone(), Carries::Packets)),
                Plug::Tap(_, device) => Some((device.name.clone(), Carries::Frames)),
                Plug::Udp(_) | Plug::Tcp(_) | Plug::Frames(_) => None,
            };
            let devices = site.plugs().iter().filter_map(device);
            let devices = devices.filter(|_| is_captured(&scenario.capture, node));
            captured.extend(devices.map(|(name, carries)| Captured { node, name, carries, by_link: false }));
        }
    }
    Ok(captured)
}

/// The tables that are no longer what they were.
fn new_routes(wiring: &mut Wiring, known: &mut [Vec<Route>], at: Instant) -> Vec<Scheduled<Reroute>> {
    let mut changed = Vec::new();
    for (node, known) in known.iter_mut().enumerate() {
        let routes = routes(wiring, node);
        if routes != *known {
            known.clone_from(&routes);
            changed.push(Scheduled { at, what: Reroute { node, routes } });
        }
    }
    changed
}

fn node_layout(scenario: &Scenario, wiring: &mut Wiring, node: NodeId) -> NodeLayout {
    let interface = |&(link, attachment)| InterfaceLayout {
        link,
        attachment,
        mac: Wiring::mac(link, attachment),
        mtu: scenario.links[link].direction(attachment).mtu,
    };
    NodeLayout {
        name: scenario.nodes[node].name.clone(),
        addresses: Wiring::addresses(node).to_vec(),
        interfaces: wiring.interfaces(node).iter().map(interface).collect(),
        routes: routes(wiring, node),
    }
}

/// A node's routes to both addresses of each node that it can reach.
fn routes(wiring: &mut Wiring, node: NodeId) -> Vec<Route> {
    let each = |Way { to, interface, via, mac }: Way| {
        let pairs = Wiring::addresses(to).into_iter().zip(Wiring::addresses(via));
        pairs.map(move |(to, via)| Route { to, interface, via, via_mac: mac })
    };
    wiring.ways(node).into_iter().flat_map(each).collect()
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
    fn a_link_that_goes_down_changes_the_tables_of_those_whose_way_it_was() {
        let text = "title: t\nduration: 9s\ntopology: { nodes: [a, b, c], links: [{ between: [a, b], rate: 1 Mbit/s }, { between: [b, c], rate: 1 Mbit/s }, { between: [a, c], rate: 1 Mbit/s }] }\nevents: [{ at: 3s, links: a-c, down: true }, { at: 5s, links: a-c, up: true }]\nflows: [{ name: f, from: a, to: c, over: udp, app: bulk }]\n";
        let plan = load_text(std::path::Path::new("t.yaml"), text, &Overrides::default()).unwrap();
        let layout = layout(&plan.cases[0].scenario, 0);
        let to_c = |routes: &[Route]| {
            routes.iter().find(|route| route.to == Wiring::addresses(2)[0]).map(|route| route.via)
        };
        assert_eq!(to_c(&layout.nodes[0].routes), Some(Wiring::addresses(2)[0]));
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        let of_a = |reroute: &&Scheduled<Reroute>| reroute.what.node == 0;
        let tables: Vec<_> = layout.reroutes.iter().filter(of_a).collect();
        assert_eq!(tables.len(), 2);
        assert_eq!((tables[0].at, to_c(&tables[0].what.routes)), (at(3), Some(Wiring::addresses(1)[0])));
        assert_eq!((tables[1].at, &tables[1].what.routes), (at(5), &layout.nodes[0].routes));
        assert!(layout.reroutes.iter().all(|reroute| reroute.what.node != 1), "b's ways stay");
    }
}
