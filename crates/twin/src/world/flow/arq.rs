//! The nodes of a flow whose hops repeat for themselves what they lose.

use hopcast_core::Machine;
use hopcast_peers::hop_arq::{Config, HopArq};

use super::Parts;
use super::sites::Sites;
use crate::app::Ends;
use crate::scenario::model::{Layer, NodeId};

impl Parts<'_> {
    /// The edge at one end of the flow.
    pub(super) fn arq_edge(
        &self,
        config: &Config,
        depth: usize,
        node: NodeId,
        ends: Ends,
    ) -> Box<dyn Machine> {
        let neighbour = self.neighbours_of_end(depth, node, ends).first().copied().unwrap_or(ends.remote);
        let (config, random) = (self.arq(config, depth), self.random(node, depth));
        Box::new(HopArq::edge(config, ends.local, (ends.local, ends.remote), neighbour, random))
    }

    /// Puts the relays on their nodes.
    pub(super) fn arq_relays(&self, sites: &mut Sites<'_>) -> Result<(), String> {
        for (depth, layer) in self.flow.over.iter().enumerate() {
            let Layer::HopArq(config) = layer else { continue };
            if !self.relays_at(depth) {
                continue;
            }
            let mut before = self.tree.root_address();
            for (node, own, next) in self.tree.between() {
                let random = self.random(node, depth).fork();
                let relay = HopArq::relay(self.arq(config, depth), own, [before, next], random);
                let foot = sites.udp(node, own)?;
                sites.stand(&self.scenario.nodes[node].name, node, Box::new(relay), foot);
                before = own;
            }
        }
        Ok(())
    }

    fn arq(&self, config: &Config, depth: usize) -> Config {
        Config { datagram: self.room(depth), slack: self.slack, ..config.clone() }
    }
}
