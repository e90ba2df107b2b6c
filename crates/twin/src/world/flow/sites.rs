//! Where the machines of a flow stand while it is built.

use hopcast_coded::franc;
use hopcast_core::{Machine, Port, Slot};
use hopcast_host::{BindError, Hook};

use crate::scenario::model::{Flow, NodeId, Scenario};
use crate::world::node::Builder;

/// TCP's number among IP's protocols.
const TCP: u8 = 6;

/// The nodes of a world, and the machines that one flow has put on them so far.
pub(super) struct Sites<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) flow: &'a Flow,
    pub(super) nodes: &'a mut [Builder],
    /// (name in the counters, node, slot).
    pub(super) machines: Vec<(String, NodeId, Slot)>,
}

/// What a machine is plugged into.
#[derive(Clone, Copy)]
pub(super) enum Foot {
    /// This `Above` port of the node's host.
    Host(u32),
    /// A port of another machine of the node.
    Machine(Slot, Port),
}

impl Foot {
    /// The first port on top of a machine.
    pub(super) const fn on(slot: Slot) -> Self {
        Self::Machine(slot, Port::Above(0))
    }
}

impl Sites<'_> {
    /// Adds a machine; its counters go by `name`.
    pub(super) fn put(&mut self, name: &str, node: NodeId, machine: Box<dyn Machine>) -> Slot {
        let slot = self.nodes[node].assembly.add(machine);
        self.machines.push((name.to_owned(), node, slot));
        slot
    }

    /// Plugs a port of a machine into a foot of the same node.
    pub(super) fn plug(&mut self, node: NodeId, end: (Slot, Port), foot: Foot) {
        match foot {
            Foot::Host(above) => self.nodes[node].wire_to_host(above, end),
            Foot::Machine(slot, port) => self.nodes[node].assembly.wire((slot, port), end),
        }
    }

    /// Adds a machine and plugs its first port into a foot; says what stands on it.
    pub(super) fn stand(&mut self, name: &str, node: NodeId, machine: Box<dyn Machine>, foot: Foot) -> Foot {
        let slot = self.put(name, node, machine);
        self.plug(node, (slot, Port::Below(0)), foot);
        Foot::on(slot)
    }

    /// Datagrams to a port of the node.
    pub(super) fn udp(&mut self, node: NodeId, port: u16) -> Result<Foot, String> {
        let above = self.nodes[node].next_above();
        let bound = self.nodes[node].host.bind_udp(above, port);
        self.bound(node, above, bound)
    }

    /// TCP's packets to ports of the node.
    pub(super) fn tcp(&mut self, node: NodeId, ports: impl IntoIterator<Item = u16>) -> Result<Foot, String> {
        let above = self.nodes[node].next_above();
        for port in ports {
            let bound = self.nodes[node].host.bind_protocol(above, TCP, Some(port));
            self.bound(node, above, bound)?;
        }
        Ok(Foot::Host(above))
    }

    /// TCP's packets that the node would forward.
    pub(super) fn transit(&mut self, node: NodeId) -> Foot {
        let above = self.nodes[node].next_above();
        self.nodes[node].host.hook(above, Hook::Protocol(TCP));
        Foot::Host(above)
    }

    /// FRANC's frames on an interface, whoever they are for.
    pub(super) fn frames(&mut self, node: NodeId, interface: u32) -> Result<Foot, String> {
        let above = self.nodes[node].next_above();
        let bound = self.nodes[node].host.bind_frames(above, interface, franc::ETHER_TYPE, true);
        self.bound(node, above, bound)
    }

    fn bound(&self, node: NodeId, above: u32, bound: Result<(), BindError>) -> Result<Foot, String> {
        bound.map_err(|error| self.error(node, &error))?;
        Ok(Foot::Host(above))
    }

    /// One line on what cannot be built at a node.
    pub(super) fn error(&self, node: NodeId, error: &dyn std::fmt::Display) -> String {
        format!("flow `{}` at `{}`: {error}", self.flow.name, self.scenario.nodes[node].name)
    }
}
