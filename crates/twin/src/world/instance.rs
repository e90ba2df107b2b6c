//! The machines of all flows on one real node, which are attached to its kernel.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;

use hopcast_core::plug::Plug;
use hopcast_core::{Assembly, Instant, Machine, Seed, Shared, Slot};
use serde::{Deserialize, Serialize};

use hopcast_stack::group::Shown;
use hopcast_stack::network::NetworkPlan;
use hopcast_stack::service::{GroupEgresses, ServiceStatus};
use hopcast_stack::{BuiltNodes, KernelNode, NodeBuilder, PlacedMachine};

use super::flow::{application_ends, build_flow};
use super::route_changes::OnChangingRoutes;
use super::tables::Tables;
use super::{RunningFlow, WorldError, lines, sum_counters};
use crate::meter::{Meters, PartialMeter};
use crate::results::ServiceTable;
use crate::scenario::model::{FlowId, NodeId, Scenario};

/// The machines of all flows on one node, with their plugs.
///
/// Its runtime opens [`plugs`](Self::plugs), of which number i is the port `Below(i)` of [`machine`](Self::machine),
/// and reads the [`reports`](Self::reports) in the end. An instance stays on its thread.
pub struct NodeInstance {
    node: NodeId,
    plugs: Vec<Plug>,
    machine: Shared<OnChangingRoutes<Assembly>>,
    flows: Vec<FlowPart>,
    services: Vec<PlacedMachine>,
    statuses: Vec<ServiceStatus>,
}

/// The part of a flow that is on the node.
struct FlowPart {
    flow: FlowId,
    /// The range of its plugs among those of the node.
    plugs: Range<usize>,
    names: Vec<(String, Slot)>,
    meters: Meters,
    shown: Vec<Shown>,
    frame: u64,
}

impl NodeInstance {
    /// The machines of all flows and services on a node; `None` if it has none. Members of a group from the start have
    /// joined it already. Packets to groups that services hand back follow `groups`.
    ///
    /// # Errors
    /// See [`WorldError`].
    pub fn at(
        scenario: &Scenario,
        repeat: u64,
        node: NodeId,
        groups: &GroupEgresses,
    ) -> Result<Option<Self>, WorldError> {
        let plan = NetworkPlan::of(scenario.network());
        let routes = Rc::new(RefCell::new(scenario.global_routes(&plan)));
        let seed = Seed::new(scenario.seed, repeat);
        let random = seed.stream(&["services", &scenario.nodes[node].name], 0);
        let mut built = BuiltNodes::only(node, NodeBuilder::on_kernel(&plan, node, &routes, random));
        let (mut flows, mut joins, mut known_plugs) = (Vec::new(), Vec::new(), 0);
        for flow in 0..scenario.flows.len() {
            let running = build_flow(scenario, &plan, &routes, seed, &mut built, flow)?;
            let RunningFlow { meters, machines, joins: of_flow, shown, frame } = running;
            let names: Vec<_> = machines.into_iter().map(|machine| (machine.name, machine.slot)).collect();
            let plugs = known_plugs..built[node].plugs().len();
            known_plugs = plugs.end;
            if names.is_empty() {
                continue;
            }
            meters.each(|meter| meter.split());
            joins.extend(of_flow.into_iter().filter(|join| join.at == Instant::ZERO));
            flows.push(FlowPart { flow, plugs, names, meters, shown, frame });
        }
        let left: Vec<_> = routes.borrow().left_to_services().collect();
        let (services, statuses) =
            built[node].put_services_on_kernel(scenario.network(), &plan, node, (groups, &left));
        let built = built.into_builders().into_iter().find_map(NodeBuilder::into_kernel);
        let Some(KernelNode { mut assembly, plugs }) = built else { return Ok(None) };
        for join in joins {
            assembly.wake_machine(Instant::ZERO, join.slot);
        }
        let is_idle = flows.is_empty() && services.is_empty();
        let machine = Shared::new(OnChangingRoutes::new(assembly, scenario, routes));
        let instance = Self { node, plugs, machine, flows, services, statuses };
        Ok((!is_idle).then_some(instance))
    }

    /// The addresses that a flow's application uses, at its sender and at each receiver: those of TUN devices where its
    /// stack has such.
    ///
    /// # Errors
    /// See [`WorldError`].
    pub fn ends_of_flow(
        scenario: &Scenario,
        flow: FlowId,
    ) -> Result<(SocketAddr, Vec<SocketAddr>), WorldError> {
        let plan = NetworkPlan::of(scenario.network());
        let routes = RefCell::new(scenario.global_routes(&plan));
        application_ends(scenario, &plan, &routes, flow)
    }

    /// The plugs of its ports.
    pub fn plugs(&self) -> &[Plug] {
        &self.plugs
    }

    /// The flow of a plug.
    pub fn flow_of_plug(&self, plug: usize) -> Option<FlowId> {
        self.flows.iter().find(|part| part.plugs.contains(&plug)).map(|part| part.flow)
    }

    /// The machine to be run; the instance keeps access to its figures.
    pub fn machine(&self) -> Box<dyn Machine> {
        Box::new(self.machine.clone())
    }

    /// Whether this node has received all of a run's only flow, which is of bounded size; `None` unless it is one of
    /// its several receivers.
    pub fn has_transfer(&self, scenario: &Scenario) -> Option<bool> {
        let flow = scenario.transfer()?;
        let place = flow.to.iter().position(|&to| to == self.node)?;
        let meter = self.flows.first()?.meters.iter().nth(place)?;
        let completed = meter.borrow().completed;
        Some(completed.is_some())
    }

    /// The counters of the node's services, each under the service's name before a dot.
    pub fn service_counters(&self) -> BTreeMap<String, u64> {
        let machine = self.machine.get();
        let assembly = machine.inner();
        sum_counters(self.services.iter().map(|placed| (&*placed.name, assembly.machine(placed.slot))))
    }

    /// The tables of the node's services as they are now, as the document has them.
    pub fn service_tables(&self, scenario: &Scenario) -> Vec<ServiceTable> {
        let mut tables = Tables::new(scenario);
        for (placed, status) in self.services.iter().zip(&self.statuses) {
            status.tables().iter().for_each(|table| tables.add(self.node, &placed.name, table));
        }
        tables.finish()
    }

    /// The measurements and counters of each flow at this node.
    pub fn reports(&self) -> Vec<InstanceReport> {
        let machine = self.machine.get();
        let assembly = machine.inner();
        let report = |part: &FlowPart| {
            let machines = part.names.iter().map(|(name, slot)| (&**name, assembly.machine(*slot)));
            let meters = part.meters.iter().map(|meter| PartialMeter::from(&*meter.borrow())).collect();
            let (flow, frame, counters) = (part.flow, part.frame, sum_counters(machines));
            InstanceReport { flow, node: self.node, counters, meters, delivery: lines(&part.shown), frame }
        };
        self.flows.iter().map(report).collect()
    }
}

/// The figures of a flow at one node, to be joined with those of other nodes.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct InstanceReport {
    pub(crate) flow: FlowId,
    pub(crate) node: NodeId,
    pub(crate) counters: BTreeMap<String, u64>,
    /// The meter of each receiver of the flow; empty at a node between the ends.
    pub(crate) meters: Vec<PartialMeter>,
    /// How the delivery of a sender there serves the members, in lines for people.
    pub(crate) delivery: Vec<String>,
    pub(crate) frame: u64,
}

impl InstanceReport {
    /// The report as text, a line for each figure.
    pub fn text(&self, scenario: &Scenario) -> String {
        let mut text = format!("{} at {}\n", scenario.flows[self.flow].name, scenario.nodes[self.node].name);
        for line in self.meters.iter().flat_map(|meter| meter.lines(scenario.measure)) {
            text.push_str(&format!("  {line}\n"));
        }
        for (name, value) in self.counters.iter().filter(|&(_, &value)| value > 0) {
            text.push_str(&format!("  {name:<40} {value:>14}\n"));
        }
        for line in &self.delivery {
            text.push_str(&format!("  {line}\n"));
        }
        text
    }
}
