//! The machines of one flow on one node where nodes are real: they are attached to the kernel.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use hopcast_core::plug::Plug;
use hopcast_core::{Assembly, Machine, Seed, Shared, Slot};
use serde::{Deserialize, Serialize};

use hopcast_stack::network::NetworkPlan;
use hopcast_stack::{KernelNode, NodeBuilder};

use super::flow::{application_ends, build_flow};
use super::{BuildError, RunningFlow, sum_counters};
use crate::meter::{Meters, PartialMeter};
use crate::scenario::model::{FlowId, NodeId, Scenario};

/// The machines of one flow on one node, with what they are plugged into.
///
/// Whoever runs it opens [`plugs`](Self::plugs), of which number i is the port `Below(i)` of
/// [`machine`](Self::machine), and asks for the [`report`](Self::report) in the end. An instance stays on its thread.
pub struct NodeInstance {
    flow: FlowId,
    node: NodeId,
    plugs: Vec<Plug>,
    assembly: Shared<Assembly>,
    names: Vec<(String, Slot)>,
    meters: Meters,
    frame: u64,
}

impl NodeInstance {
    /// The machines of flow number `flow` on each node; nodes on which it has none are left out.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn of_flow(scenario: &Scenario, repeat: u64, flow: FlowId) -> Result<Vec<Self>, BuildError> {
        let plan = NetworkPlan::of(scenario.network());
        let routes = RefCell::new(plan.routes(scenario.network()));
        let mut nodes: Vec<NodeBuilder> = scenario.nodes.iter().map(|_| NodeBuilder::on_kernel()).collect();
        let seed = Seed::new(scenario.seed, repeat);
        let running = build_flow(scenario, &plan, &routes, seed, &mut nodes, flow)?;
        let RunningFlow { meters, machines, frame, .. } = running;
        meters.each(|meter| meter.split());
        let instance = |(node, builder): (NodeId, NodeBuilder)| {
            let KernelNode { assembly, plugs } = builder.into_kernel()?;
            let own = machines.iter().filter(|machine| machine.node == node);
            let names: Vec<_> = own.map(|machine| (machine.name.clone(), machine.slot)).collect();
            let (assembly, meters) = (Shared::new(assembly), meters.clone());
            (!names.is_empty()).then_some(Self { flow, node, plugs, assembly, names, meters, frame })
        };
        Ok(nodes.into_iter().enumerate().filter_map(instance).collect())
    }

    /// The addresses between which a flow's application speaks, at its sender and at each receiver: those of TUN
    /// devices where its stack has such.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn ends_of_flow(
        scenario: &Scenario,
        flow: FlowId,
    ) -> Result<(SocketAddr, Vec<SocketAddr>), BuildError> {
        let plan = NetworkPlan::of(scenario.network());
        let routes = RefCell::new(plan.routes(scenario.network()));
        application_ends(scenario, &plan, &routes, flow)
    }

    /// The node that it is for.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The plugs of its ports.
    pub fn plugs(&self) -> &[Plug] {
        &self.plugs
    }

    /// The machine that is to be run; the instance keeps its figures.
    pub fn machine(&self) -> Box<dyn Machine> {
        Box::new(self.assembly.clone())
    }

    /// The figures that were measured and counted here.
    pub fn report(&self) -> InstanceReport {
        let assembly = self.assembly.get();
        let counters = sum_counters(self.names.iter().map(|(name, slot)| (&**name, assembly.machine(*slot))));
        let meters = self.meters.iter().map(|meter| PartialMeter::from(&*meter.borrow())).collect();
        InstanceReport { flow: self.flow, node: self.node, counters, meters, frame: self.frame }
    }
}

/// The figures of an instance, on their way to whoever joins them with the others'.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct InstanceReport {
    pub(crate) flow: FlowId,
    pub(crate) node: NodeId,
    pub(crate) counters: BTreeMap<String, u64>,
    /// One for each receiver of the flow.
    pub(crate) meters: Vec<PartialMeter>,
    pub(crate) frame: u64,
}

impl InstanceReport {
    /// The same, a line each, for a person.
    pub fn text(&self, scenario: &Scenario) -> String {
        let mut text = format!("{} at {}\n", scenario.flows[self.flow].name, scenario.nodes[self.node].name);
        for line in self.meters.iter().flat_map(|meter| meter.lines(scenario.measure)) {
            text.push_str(&format!("  {line}\n"));
        }
        for (name, value) in self.counters.iter().filter(|&(_, &value)| value > 0) {
            text.push_str(&format!("  {name:<40} {value:>14}\n"));
        }
        text
    }
}
