//! A process of a live run builds the machines of its own node, and those are what they are where all are built.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use hopcast_config::yaml::{Source, parse};
use hopcast_core::Seed;
use hopcast_link::{Direction, MediumConfig};
use hopcast_stack::flow::FlowBuilder;
use hopcast_stack::network::{Link, LinkModel, Network, NetworkPlan, Node, NodeId};
use hopcast_stack::table::Worlds;
use hopcast_stack::transport::{FlowPlan, FlowSpec, Ports};
use hopcast_stack::{BuiltNodes, NodeBuilder, TRANSPORTS, Variants};

/// The last node of a chain, whose first is 0; each of its links has a station more, which may help.
const LAST: NodeId = 4;
const NODES: NodeId = 2 * LAST + 1;

fn nodes() -> Vec<Node> {
    (0..NODES).map(|node| Node { name: format!("n{node}"), position: None, claims: Vec::new() }).collect()
}

fn links() -> Vec<Link> {
    let link = |from: NodeId| {
        let direction = Direction { mtu: 1500, ..Direction::default() };
        let model = LinkModel::Medium(MediumConfig { direction, ..MediumConfig::default() });
        Link {
            name: format!("l{from}"),
            ends: vec![from, from + 1, LAST + 1 + from],
            model,
            prefixes: Vec::new(),
        }
    };
    (0..LAST).map(link).collect()
}

/// For each node that is built, one or all, the names of the flow's machines and the plugs.
fn built(over: &str, only: Option<NodeId>) -> BTreeMap<NodeId, (Vec<String>, Vec<String>)> {
    let source = Arc::new(Source { name: "test".to_owned(), dir: PathBuf::new(), lines: true });
    let stack = parse(over, &source).and_then(|node| Variants::default().stack(&node));
    let stack = stack.unwrap_or_else(|error| panic!("{over}: {error}"));
    let (names, links) = (self::nodes(), links());
    let helpers: Vec<NodeId> = (LAST + 1..NODES).collect();
    let roles = BTreeMap::from([("helper".to_owned(), helpers), ("proxy".to_owned(), vec![1, 3])]);
    let network = Network { nodes: &names, links: &links, roles: &roles, services: &[] };
    let plan = NetworkPlan::of(network);
    let routes = Rc::new(RefCell::new(plan.routes(network)));
    let on_kernel = |node| NodeBuilder::on_kernel(&plan, node, &routes, Seed::new(1, 0).stream(&["n"], 0));
    let mut nodes = match only {
        Some(node) => BuiltNodes::only(node, on_kernel(node)),
        None => BuiltNodes::all((0..NODES).map(on_kernel).collect()),
    };
    let spec = FlowSpec {
        number: 0,
        name: "f",
        from: 0,
        to: &[LAST],
        group: None,
        over: &stack.layers,
        ipv6: false,
        paths: 1,
        is_program: false,
        client_ports: 0..0,
        app_can_wait: false,
        restarts: Vec::new(),
    };
    let flow = FlowPlan::of(network, &plan, &routes, Seed::new(1, 0), spec);
    let flow = flow.unwrap_or_else(|error| panic!("{over}: {error}"));
    let mut builder = FlowBuilder::new(&flow, &mut nodes);
    for (node, ends) in [(0, flow.source()), (LAST, flow.sink(LAST))] {
        if builder.nodes.builds(node) {
            let top = builder.put_stack(node, ends);
            top.unwrap_or_else(|error| panic!("{over}: {error}"));
        }
    }
    builder.put_between().unwrap_or_else(|error| panic!("{over}: {error}"));
    let machines = builder.finish().machines;
    let of = |node: NodeId| {
        let own = machines.iter().filter(|machine| machine.node == node);
        let names = own.map(|machine| format!("{} {:?}", machine.name, machine.slot)).collect();
        (node, (names, nodes[node].plugs().iter().map(|plug| format!("{plug:?}")).collect()))
    };
    let found: BTreeMap<_, (Vec<String>, Vec<String>)> = nodes.range().map(of).collect();
    assert_eq!(machines.len(), found.values().map(|(names, _)| names.len()).sum::<usize>());
    found
}

/// Every transport that runs on the kernel, alone or with what it needs on top.
fn stacks() -> Vec<String> {
    let rows = TRANSPORTS.iter().filter(|row| row.worlds == Worlds::Both);
    let stack = |row: &&hopcast_stack::transport::Row| match row.offers == Ports::PACKETS {
        true => format!("[udp, {}]", row.name),
        false => row.name.to_owned(),
    };
    let more = ["[tcp-cubic, bats-proxy]", "[udp, { franc: { helper: on } }]", "[udp, tunnel, brtp]"];
    rows.map(stack).chain(more.map(str::to_owned)).collect()
}

#[test]
fn a_nodes_machines_are_the_same_where_no_other_node_is_built() {
    let mut relayed = Vec::new();
    for over in stacks() {
        let all = built(&over, None);
        for (&node, expected) in &all {
            let own = built(&over, Some(node));
            assert_eq!(own, BTreeMap::from([(node, expected.clone())]), "{over} at {node}");
        }
        if !all[&2].0.is_empty() {
            relayed.push(over);
        }
    }
    // Those that have something between the ends, so that there was something to leave out.
    let known = ["hop-arq", "split-bbr", "btp", "brtp", "[udp, franc]", "[tcp-cubic, bats-proxy]"];
    for over in known {
        assert!(relayed.iter().any(|found| found == over), "{over} is not among {relayed:?}");
    }
}
