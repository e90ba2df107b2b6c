//! What one flow puts on one node where nodes are real: machines that stand on a kernel.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use hopcast_core::plug::Plug;
use hopcast_core::{Assembly, Instant, Item, Machine, Port, Seed, Slot};
use serde::{Deserialize, Serialize};

use super::cabling::Cabling;
use super::flow::{application_ends, build_flow};
use super::node::{Builder, Ground};
use super::{RunningFlow, sum_counters};
use crate::meter::{Meters, PartialMeter};
use crate::scenario::model::{FlowId, NodeId, Scenario};

/// The machines of one flow on one node, with what they are plugged into.
///
/// Whoever runs it opens [`plugs`](Self::plugs), of which number i is the port `Below(i)` of
/// [`machine`](Self::machine), and asks for the [`report`](Self::report) in the end. A site stays on its thread.
pub struct Site {
    flow: FlowId,
    node: NodeId,
    plugs: Vec<Plug>,
    assembly: Rc<RefCell<Assembly>>,
    names: Vec<(String, Slot)>,
    meters: Meters,
    frame: u64,
}

impl Site {
    /// What flow number `flow` of `scenario` puts on each node; nodes on which it has nothing are left out.
    ///
    /// # Errors
    /// What cannot be built, in one line.
    pub fn of_flow(scenario: &Scenario, repeat: u64, flow: FlowId) -> Result<Vec<Self>, String> {
        let cabling = Cabling::new(scenario);
        let oracle = RefCell::new(cabling.oracle(scenario));
        let mut nodes: Vec<Builder> = scenario.nodes.iter().map(|_| Builder::on_kernel()).collect();
        let seed = Seed::new(scenario.seed, repeat);
        let running = build_flow(scenario, &cabling, &oracle, seed, &mut nodes, flow)?;
        let RunningFlow { meters, machines, frame } = running;
        meters.each(|meter| meter.split());
        let site = |(node, builder): (NodeId, Builder)| {
            let Ground::Kernel(plugs) = builder.ground else { return None };
            let own = machines.iter().filter(|&&(_, at, _)| at == node);
            let names: Vec<_> = own.map(|(name, _, slot)| (name.clone(), *slot)).collect();
            let (assembly, meters) = (Rc::new(RefCell::new(builder.assembly)), meters.clone());
            (!names.is_empty()).then_some(Self { flow, node, plugs, assembly, names, meters, frame })
        };
        Ok(nodes.into_iter().enumerate().filter_map(site).collect())
    }

    /// The addresses between which a flow's application speaks, at its sender and at each receiver: those of TUN devices
    /// where its stack has such.
    ///
    /// # Errors
    /// What cannot be built, in one line.
    pub fn ends_of_flow(scenario: &Scenario, flow: FlowId) -> Result<(SocketAddr, Vec<SocketAddr>), String> {
        let cabling = Cabling::new(scenario);
        let oracle = RefCell::new(cabling.oracle(scenario));
        application_ends(scenario, &cabling, &oracle, flow)
    }

    /// Which node it is for.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// What its ports are plugged into.
    pub fn plugs(&self) -> &[Plug] {
        &self.plugs
    }

    /// The machine that is to be run; the site keeps its figures.
    pub fn machine(&self) -> Box<dyn Machine> {
        Box::new(Shared(self.assembly.clone()))
    }

    /// What was measured and counted here.
    pub fn report(&self) -> SiteReport {
        let assembly = self.assembly.borrow();
        let counters = sum_counters(self.names.iter().map(|(name, slot)| (&**name, assembly.machine(*slot))));
        let meters = self.meters.iter().map(|meter| PartialMeter::from(&*meter.borrow())).collect();
        SiteReport { flow: self.flow, node: self.node, counters, meters, frame: self.frame }
    }
}

/// What a site has found, on its way to whoever joins it with the others.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct SiteReport {
    pub(crate) flow: FlowId,
    pub(crate) node: NodeId,
    pub(crate) counters: BTreeMap<String, u64>,
    /// One for each receiver of the flow.
    pub(crate) meters: Vec<PartialMeter>,
    pub(crate) frame: u64,
}

impl SiteReport {
    /// What was measured and counted here, a line each, for a person.
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

/// The assembly as the runner holds it.
struct Shared(Rc<RefCell<Assembly>>);

impl Machine for Shared {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.0.borrow_mut().handle(now, port, item);
    }

    fn wake(&mut self, now: Instant) {
        self.0.borrow_mut().wake(now);
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        self.0.borrow_mut().poll(now)
    }

    fn deadline(&self) -> Option<Instant> {
        self.0.borrow().deadline()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.0.borrow().counters(report);
    }
}
