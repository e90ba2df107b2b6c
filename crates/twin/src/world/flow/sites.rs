//! Where the machines of a flow stand while it is built.

use std::net::SocketAddr;

use hopcast_core::plug::{DevicePlug, TcpPlug};
use hopcast_core::{Machine, Port, Slot};
use hopcast_host::BindError;

use crate::scenario::model::{Flow, NodeId, Scenario};
use crate::world::node::{Builder, Ground, tcp_plug, tun_plug};

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
    /// This port of what the node stands on.
    Ground(u32),
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
            Foot::Ground(number) => self.nodes[node].wire_to_ground(number, end),
            Foot::Machine(slot, port) => self.nodes[node].assembly.wire((slot, port), end),
        }
    }

    /// Adds a machine and plugs its first port into a foot; says what stands on it.
    pub(super) fn stand(&mut self, name: &str, node: NodeId, machine: Box<dyn Machine>, foot: Foot) -> Foot {
        let slot = self.put(name, node, machine);
        self.plug(node, (slot, Port::Below(0)), foot);
        Foot::on(slot)
    }

    /// Datagrams to an address of the node.
    pub(super) fn udp(&mut self, node: NodeId, local: SocketAddr) -> Result<Foot, String> {
        let bound = self.nodes[node].ground.udp(local);
        self.bound(node, bound)
    }

    /// FRANC's frames on an interface, whoever they are for.
    pub(super) fn frames(&mut self, node: NodeId, interface: u32) -> Result<Foot, String> {
        let bound = self.nodes[node].ground.franc(interface);
        self.bound(node, bound)
    }

    /// TCP's packets to ports of the node, in virtual time.
    pub(super) fn tcp(&mut self, node: NodeId, ports: impl IntoIterator<Item = u16>) -> Result<Foot, String> {
        let Ground::Virtual(host) = &mut self.nodes[node].ground else {
            return Err(self.error(node, &"packets of TCP are the kernel's own"));
        };
        let bound = host.tcp(ports);
        self.bound(node, bound)
    }

    /// TCP's packets that the node would forward, in virtual time.
    pub(super) fn transit(&mut self, node: NodeId) -> Result<Foot, String> {
        let Ground::Virtual(host) = &mut self.nodes[node].ground else {
            return Err(self.error(node, &"packets of TCP are the kernel's own"));
        };
        Ok(Foot::Ground(host.transit()))
    }

    /// The kernel's TCP.
    pub(super) fn kernel_tcp(&mut self, node: NodeId, tcp: TcpPlug) -> Result<Foot, String> {
        let Ground::Kernel(plugs) = &mut self.nodes[node].ground else {
            return Err(self.error(node, &"in virtual time there is no kernel"));
        };
        Ok(Foot::Ground(tcp_plug(plugs, tcp)))
    }

    /// A TUN device of the kernel.
    pub(super) fn tun(&mut self, node: NodeId, tun: DevicePlug) -> Result<Foot, String> {
        let Ground::Kernel(plugs) = &mut self.nodes[node].ground else {
            return Err(self.error(node, &"in virtual time there is no kernel"));
        };
        Ok(Foot::Ground(tun_plug(plugs, tun)))
    }

    /// Whether machines stand on the kernel here.
    pub(super) fn on_kernel(&self, node: NodeId) -> bool {
        matches!(self.nodes[node].ground, Ground::Kernel(_))
    }

    fn bound(&self, node: NodeId, bound: Result<u32, BindError>) -> Result<Foot, String> {
        bound.map(Foot::Ground).map_err(|error| self.error(node, &error))
    }

    /// One line on what cannot be built at a node.
    pub(super) fn error(&self, node: NodeId, error: &dyn std::fmt::Display) -> String {
        format!("flow `{}` at `{}`: {error}", self.flow.name, self.scenario.nodes[node].name)
    }
}
