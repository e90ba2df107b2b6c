//! The nodes of a flow, and the machines that it puts on them.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use hopcast_core::plug::{DevicePlug, Plug, TcpPlug};
use hopcast_core::{Machine, Port, Slot};
use hopcast_host::{BindError, Hook};

use super::{FlowPlan, Participant};
use crate::error::{BuildError, Cause};
use crate::network::NodeId;
use crate::platform::{BuiltNodes, LowerPort, PlacedMachine, Platform, add};
use crate::service::ServiceRoutes;

/// The nodes that are built here, and the machines that one flow has put on them so far.
pub struct FlowNodes<'a> {
    /// The flow.
    pub flow: &'a FlowPlan<'a>,
    nodes: &'a mut BuiltNodes,
    machines: Vec<PlacedMachine>,
}

impl<'a> FlowNodes<'a> {
    /// These nodes, without any machine of the flow.
    pub(crate) const fn new(flow: &'a FlowPlan<'a>, nodes: &'a mut BuiltNodes) -> Self {
        Self { flow, nodes, machines: Vec::new() }
    }

    /// The machines that were put on nodes, in that order.
    pub(crate) fn into_machines(self) -> Vec<PlacedMachine> {
        self.machines
    }

    /// Puts the layers below `depth` on a node between the ends, for a relay at `address`; says which port is above
    /// them.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn put_below_relay(
        &mut self,
        depth: usize,
        node: NodeId,
        address: SocketAddr,
    ) -> Result<LowerPort, BuildError> {
        let mut below = None;
        for layer in self.flow.spec.over[depth + 1..].iter().rev() {
            below = layer.settings().put_below_relay(self, (node, address), below)?;
        }
        below.ok_or_else(|| self.error(node, Cause::NoLowerLayer))
    }

    /// Adds a machine, which nothing is wired to yet; its counters go by `name`.
    pub fn add(&mut self, name: &str, node: NodeId, machine: Box<dyn Machine>) -> Slot {
        let slot = self.nodes[node].assembly.add(machine);
        self.machines.push(PlacedMachine { name: name.to_owned(), node, slot });
        slot
    }

    /// Wires a port of a machine to the port below it on the same node.
    pub fn wire(&mut self, node: NodeId, end: (Slot, Port), lower: LowerPort) {
        self.nodes[node].wire(end, lower);
    }

    /// Adds a machine and attaches its first lower port; says which port is above it.
    pub fn attach(
        &mut self,
        name: &str,
        node: NodeId,
        machine: Box<dyn Machine>,
        lower: LowerPort,
    ) -> LowerPort {
        let slot = self.add(name, node, machine);
        self.wire(node, (slot, Port::Below(0)), lower);
        LowerPort::above(slot)
    }

    /// Joins two ports of a node by a machine with two lower ports, whose counters go by `name`.
    pub fn join(&mut self, name: &str, node: NodeId, machine: Box<dyn Machine>, ports: [LowerPort; 2]) {
        let slot = self.add(name, node, machine);
        for (number, port) in ports.into_iter().enumerate() {
            self.wire(node, (slot, Port::Below(number as u32)), port);
        }
    }

    /// The name before the counters of a machine of the stack: its own at the ends, a node's beside them.
    pub(crate) fn counter_name(&self, node: NodeId, name: &'static str) -> &'a str {
        if self.flow.peers.contains(&node) { self.node_name(node) } else { self.flow.counter_name(name) }
    }

    /// A node's name, by which the counters of machines between the ends go.
    pub fn node_name(&self, node: NodeId) -> &'a str {
        &self.flow.network.nodes[node].name
    }

    /// Whether a node's machines are built here; nothing is put on another.
    pub fn builds(&self, node: NodeId) -> bool {
        self.nodes.range().contains(&node)
    }

    /// The participants between the ends whose machines are built here.
    pub fn relays(&self) -> impl Iterator<Item = &'a Participant> + use<'a> {
        let built = self.nodes.range();
        self.flow.participants.between().filter(move |participant| built.contains(&participant.node))
    }

    /// Whether machines are attached to the kernel.
    pub fn is_on_kernel(&self) -> bool {
        self.nodes.is_on_kernel()
    }

    /// Datagrams to an address of a node.
    ///
    /// # Errors
    /// The port is another machine's.
    pub fn udp(&mut self, node: NodeId, local: SocketAddr) -> Result<LowerPort, BuildError> {
        let bound = self.nodes[node].platform.udp(local);
        self.bound(node, bound)
    }

    /// Packets of a protocol of IP: whole ones in virtual time, datagrams to and from `local` on the kernel.
    ///
    /// # Errors
    /// The protocol is another machine's.
    pub fn ip_protocol(
        &mut self,
        node: NodeId,
        protocol: u8,
        local: IpAddr,
    ) -> Result<LowerPort, BuildError> {
        let bound = self.nodes[node].platform.ip_protocol(protocol, local);
        self.bound(node, bound)
    }

    /// Packets that hooks take out of a node's host, behind those of services and of machines before.
    pub(crate) fn hook(&mut self, node: NodeId, hooks: Vec<Hook>) -> LowerPort {
        self.nodes[node].hook(hooks, false)
    }

    /// A node's routes.
    pub(crate) fn routes(&self, node: NodeId) -> Rc<dyn ServiceRoutes> {
        self.nodes[node].routes.clone()
    }

    /// Frames of one EtherType on an interface of a node, to any address.
    ///
    /// # Errors
    /// The EtherType is another machine's.
    pub fn frames(&mut self, node: NodeId, interface: u32, ether_type: u16) -> Result<LowerPort, BuildError> {
        let bound = self.nodes[node].platform.frames(interface, ether_type);
        self.bound(node, bound)
    }

    /// TCP's packets to ports of a node, in virtual time.
    ///
    /// # Errors
    /// A port is another machine's, or TCP is the kernel's.
    pub fn tcp_packets(
        &mut self,
        node: NodeId,
        ports: impl IntoIterator<Item = u16>,
    ) -> Result<LowerPort, BuildError> {
        let Platform::Virtual(host) = &mut self.nodes[node].platform else {
            return Err(self.error(node, Cause::OnKernel));
        };
        let bound = host.tcp(ports);
        self.bound(node, bound)
    }

    /// TCP's packets that a node would forward, in virtual time.
    ///
    /// # Errors
    /// TCP is the kernel's.
    pub fn tcp_in_transit(&mut self, node: NodeId) -> Result<LowerPort, BuildError> {
        let Platform::Virtual(host) = &mut self.nodes[node].platform else {
            return Err(self.error(node, Cause::OnKernel));
        };
        Ok(LowerPort::Platform(host.tcp_in_transit()))
    }

    /// The answers to echo requests of a node, in virtual time; the identifier is the port of `local`.
    ///
    /// # Errors
    /// The identifier is another machine's, or ICMP is the kernel's.
    pub(crate) fn echo_replies(&mut self, node: NodeId, local: SocketAddr) -> Result<LowerPort, BuildError> {
        let Platform::Virtual(host) = &mut self.nodes[node].platform else {
            return Err(self.error(node, Cause::OnKernel));
        };
        let bound = host.echo_replies(local.port(), local.is_ipv6());
        self.bound(node, bound)
    }

    /// The kernel's TCP.
    ///
    /// # Errors
    /// In virtual time there is none.
    pub fn kernel_tcp(&mut self, node: NodeId, tcp: TcpPlug) -> Result<LowerPort, BuildError> {
        self.plug(node, Plug::Tcp(tcp))
    }

    /// A TUN device of the kernel.
    ///
    /// # Errors
    /// In virtual time there is none.
    pub(crate) fn tun(&mut self, node: NodeId, tun: DevicePlug) -> Result<LowerPort, BuildError> {
        self.plug(node, Plug::Tun(tun))
    }

    fn plug(&mut self, node: NodeId, plug: Plug) -> Result<LowerPort, BuildError> {
        match &mut self.nodes[node].platform {
            Platform::Kernel(kernel) => Ok(LowerPort::Platform(add(&mut kernel.plugs, plug))),
            Platform::Virtual(_) => Err(self.error(node, Cause::NotOnKernel)),
        }
    }

    fn bound(&self, node: NodeId, bound: Result<u32, BindError>) -> Result<LowerPort, BuildError> {
        bound.map(LowerPort::Platform).map_err(|error| self.error(node, error.into()))
    }

    /// The error of a machine at a node.
    pub fn error(&self, node: NodeId, cause: Cause) -> BuildError {
        let (flow, node) = (self.flow.spec.name.to_owned(), self.node_name(node).to_owned());
        BuildError::AtNode { flow, node, cause }
    }
}
