//! From a scenario to a world: hosts on their links, and for each flow a stack of machines at both ends.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use hopcast_core::{Instant, Machine, Seed, Slot};
use hopcast_stack::network::{NetworkPlan, interface_name};
use hopcast_stack::{BuiltNodes, NodeBuilder, PlacedMachine, VirtualNode};

use super::flow::build_flow;
use super::{Agenda, LinkSamples, Script, Transfer, Wired, World, WorldError};
use crate::capture::{LinkType, PcapngWriter};
use crate::scenario::model::{Capture, Neighbours, NodeId, Reporting, Scenario, ServiceSpec};
use crate::scenario::needs_live;

impl World {
    /// The world of `scenario`, for repeat number `repeat`, at time zero. With a capture, the interfaces that the
    /// scenario names are written to it.
    ///
    /// # Errors
    /// See [`WorldError`].
    pub fn new(
        scenario: Arc<Scenario>,
        repeat: u64,
        capture: Option<PcapngWriter>,
    ) -> Result<Self, WorldError> {
        Self::with(scenario, repeat, capture, |_| Ok(()))
    }

    /// As [`new`](Self::new), with what `put` puts on the nodes beside the flows.
    pub(crate) fn with(
        scenario: Arc<Scenario>,
        repeat: u64,
        mut capture: Option<PcapngWriter>,
        put: impl FnOnce(&mut BuiltNodes) -> Result<(), WorldError>,
    ) -> Result<Self, WorldError> {
        if let Some(why) = needs_live(&scenario) {
            return Err(WorldError::NeedsLive(why.to_owned()));
        }
        let seed = Seed::new(scenario.seed, repeat);
        let network = scenario.network();
        let plan = NetworkPlan::of(network);
        let routes = Rc::new(RefCell::new(scenario.global_routes(&plan)));
        let overhears = scenario.overhears();
        let wired = |link| {
            let ends = plan.ends(link).to_vec();
            let model = plan.model(network, link, overhears, seed);
            Wired { model, captured: vec![None; ends.len()], ends }
        };
        let mut links: Vec<Wired> = (0..scenario.links.len()).map(wired).collect();
        let mut nodes: Vec<NodeBuilder> = (0..scenario.nodes.len())
            .map(|node| {
                let random = seed.stream(&["services", &scenario.nodes[node].name], 0);
                NodeBuilder::simulated(network, &plan, node, &routes, random)
            })
            .collect();
        if scenario.membership == Reporting::Report {
            for (node, spec) in nodes.iter_mut().zip(&scenario.nodes) {
                node.report_memberships(seed.stream(&["membership", &spec.name], 0));
            }
        }
        if scenario.neighbours == Neighbours::Resolve {
            for (node, spec) in nodes.iter_mut().zip(&scenario.nodes) {
                node.resolve_neighbours(seed.stream(&["neighbours", &spec.name], 0));
            }
        }
        let mut nodes = BuiltNodes::all(nodes);
        let flows = (0..scenario.flows.len())
            .map(|number| build_flow(&scenario, &plan, &routes, seed, &mut nodes, number))
            .collect::<Result<Vec<_>, _>>()?;
        put(&mut nodes)?;
        let nodes = nodes.into_builders().into_iter();
        let nodes: Vec<VirtualNode> = nodes.filter_map(NodeBuilder::into_virtual).collect();
        let route_finders = route_finders(&scenario, &nodes);

        if let Some(capture) = &mut capture {
            capture_interfaces(&scenario, &mut links, capture);
        }
        let joins = flows.iter().flat_map(|flow| flow.joins.iter().copied());
        let mut script = Script::new(&scenario, repeat, joins);
        let mut agenda = Agenda::new(1 + links.len() + nodes.len());
        agenda.set(0, script.deadline());
        for (index, node) in nodes.iter().enumerate() {
            agenda.set(1 + links.len() + index, node.assembly.deadline());
        }
        let is_transfer = matches!(&*scenario.flows, [flow] if flow.is_bounded());
        let transfer = is_transfer.then_some(Transfer::UnderWay { complete: 0 });
        let samples = links.iter().map(|wired| LinkSamples::new(wired.ends.len())).collect();
        Ok(Self {
            scenario,
            now: Instant::ZERO,
            agenda,
            script,
            links,
            nodes,
            routes,
            route_finders,
            flows,
            work: VecDeque::new(),
            capture,
            recording: None,
            opened: Vec::new(),
            closed: Vec::new(),
            sent: <[_; 2]>::default(),
            transfer,
            samples,
            flow_routes: Vec::new(),
        })
    }
}

/// The services of each node that find its routes.
fn route_finders(scenario: &Scenario, nodes: &[VirtualNode]) -> BTreeMap<NodeId, Vec<Slot>> {
    let finds = |service: &&ServiceSpec| service.layer.settings().routes_unicast();
    let names: BTreeSet<&str> =
        scenario.services.iter().filter(finds).map(|service| &*service.name).collect();
    let placed = nodes.iter().flat_map(|node| &node.services);
    let mut found: BTreeMap<NodeId, Vec<Slot>> = BTreeMap::new();
    for PlacedMachine { node, slot, .. } in placed.filter(|placed| names.contains(&*placed.name)) {
        found.entry(*node).or_default().push(*slot);
    }
    found
}

fn capture_interfaces(scenario: &Scenario, links: &mut [Wired], capture: &mut PcapngWriter) {
    for wired in links {
        for (attachment, &(node, interface)) in wired.ends.iter().enumerate() {
            if includes(&scenario.capture, node) {
                let name = format!("{}:{}", scenario.nodes[node].name, interface_name(interface));
                wired.captured[attachment] = Some(capture.add_interface(&name, LinkType::Frames));
            }
        }
        wired.model.report_sent(wired.captured.iter().any(Option::is_some));
    }
}

fn includes(capture: &Capture, node: NodeId) -> bool {
    match capture {
        Capture::Nothing => false,
        Capture::Nodes(nodes) => nodes.contains(&node),
    }
}
