//! From a scenario to a world: hosts on their links, and for each flow a stack of machines at both ends.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use hopcast_core::{Instant, Machine, Seed};

use super::cabling::Cabling;
use super::flow::build_flow;
use super::node::Builder;
use super::{Agenda, BuildError, LinkSamples, Script, Station, Wired, World};
use crate::capture::{Capture, Carries};
use crate::scenario::model::{Capture as Captured, NodeId, Scenario};
use crate::scenario::needs_live;

impl World {
    /// The world of `scenario`, for repeat number `repeat`, at time zero. With a capture, the interfaces that the
    /// scenario names are written to it.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn new(
        scenario: Arc<Scenario>,
        repeat: u64,
        mut capture: Option<Capture>,
    ) -> Result<Self, BuildError> {
        if let Some(why) = needs_live(&scenario) {
            return Err(BuildError::NeedsLive(why.to_owned()));
        }
        let seed = Seed::new(scenario.seed, repeat);
        let cabling = Cabling::new(&scenario);
        let oracle = Rc::new(RefCell::new(cabling.oracle(&scenario)));
        let mut links: Vec<Wired> =
            (0..scenario.links.len()).map(|link| cabling.wired(&scenario, link, seed)).collect();
        let mut nodes: Vec<Builder> = (0..scenario.nodes.len())
            .map(|node| Builder::simulated(&scenario, &cabling, node, &oracle))
            .collect();
        let flows = (0..scenario.flows.len())
            .map(|number| build_flow(&scenario, &cabling, &oracle, seed, &mut nodes, number))
            .collect::<Result<Vec<_>, _>>()?;
        let nodes: Vec<Station> = nodes.into_iter().filter_map(Builder::finish).collect();

        if let Some(capture) = &mut capture {
            capture_interfaces(&scenario, &mut links, capture);
        }
        let mut script = Script::new(&scenario);
        let mut agenda = Agenda::new(1 + links.len() + nodes.len());
        agenda.set(0, script.deadline());
        for (index, station) in nodes.iter().enumerate() {
            agenda.set(1 + links.len() + index, station.assembly.deadline());
        }
        let samples = links.iter().map(|wired| LinkSamples::new(wired.ends.len())).collect();
        Ok(Self {
            scenario,
            now: Instant::ZERO,
            agenda,
            script,
            links,
            nodes,
            oracle,
            flows,
            work: VecDeque::new(),
            capture,
            opened: Vec::new(),
            closed: Vec::new(),
            samples,
        })
    }
}

fn capture_interfaces(scenario: &Scenario, links: &mut [Wired], capture: &mut Capture) {
    for wired in links {
        for (attachment, &(node, interface)) in wired.ends.iter().enumerate() {
            if includes(&scenario.capture, node) {
                let name = format!("{}:eth{interface}", scenario.nodes[node].name);
                wired.captured[attachment] = Some(capture.add_interface(&name, Carries::Frames));
            }
        }
        wired.model.report_sent(wired.captured.iter().any(Option::is_some));
    }
}

fn includes(capture: &Captured, node: NodeId) -> bool {
    match capture {
        Captured::Nothing => false,
        Captured::Nodes(nodes) => nodes.contains(&node),
    }
}
