//! `bats-proxy`: TCP connections ended at the edges, or at gateways, and carried between them by BATS.

use std::net::SocketAddr;

use hopcast_coded::bats::{Config, Node as BatsMachine};
use hopcast_coded::proxy::{Intercept, Splice};
use hopcast_core::Port;
use hopcast_core::plug::{Accept, Destination, TcpPlug};
use hopcast_peers::tcp::Tcp as TcpMachine;

use super::bats::{BRTP_OPTIONS, Bats};
use super::tcp::Tcp;
use crate::error::BuildError;
use crate::network::NodeId;
use crate::platform::LowerPort;
use crate::transport::{Count, End, Feedback, FlowNodes, Layer, PortKind, Ports, Row, Transport};

pub(super) static BATS_PROXY: Row = Row {
    name: "bats-proxy",
    about: "TCP connections ended at the edges and carried by brtp; under a TCP it ends that one's",
    offers: Ports(&[PortKind::Stream, PortKind::Packet]),
    paths: Count::Several,
    feedback: Feedback::HopByHop,
    coded: true,
    options: || BRTP_OPTIONS.docs(&Bats::new(Config::default())),
    read: |row, options| {
        let defaults = Bats::new(Config::default());
        BRTP_OPTIONS.layer_as(row, options, defaults, Bats::usual, |bats| Ok(BatsProxy(bats)))
    },
    ..Row::BASE
};

/// The settings of the BATS between the edges.
#[derive(Clone, Debug)]
struct BatsProxy(Bats);

impl Transport for BatsProxy {
    fn overhead(&self, ip: u64) -> u64 {
        Transport::overhead(&self.0, ip)
    }

    fn repair_overhead(&self) -> u64 {
        self.0.repair_overhead()
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        let edge = self.0.edge(end);
        let edge = end.attach("bats", edge)?;
        let Some(tcp) = end.above().and_then(Layer::settings_as::<Tcp>) else { return Ok(Some(edge)) };
        let node = end.node;
        if end.is_on_kernel() {
            let local_output = Accept::LocalOutput { to: vec![destination(end.ends.remote)] };
            let accept = end.is_sender().then_some(local_output);
            splice_kernel(end.nodes, node, tcp.on_kernel(accept), edge)?;
            // The TCP above is the kernel's too.
            return Ok(None);
        }
        // What the client's TCP sends, this one takes as if a network had brought it.
        Ok(Some(splice(end.nodes, node, tcp, edge)))
    }

    fn put_between(&self, nodes: &mut FlowNodes<'_>, depth: usize) -> Result<(), BuildError> {
        if nodes.flow.has_gateways() {
            self.put_gateways(nodes, depth)?;
        }
        self.0.put_relays(nodes, depth)
    }

    fn ends_connections(&self) -> bool {
        true
    }

    fn refuses_above(&self, own: &'static Row, upper: &Layer) -> Option<String> {
        upper.settings_as::<Tcp>().is_none().then(|| {
            format!(
                "`over`: `{}` ends TCP connections, and `{}` makes none: use `tunnel` over `brtp`",
                own.name,
                upper.row().name
            )
        })
    }
}

impl BatsProxy {
    /// Puts the gateways on their nodes: each ends the connections that cross it, and carries them on to the other.
    fn put_gateways(&self, nodes: &mut FlowNodes<'_>, depth: usize) -> Result<(), BuildError> {
        let plan = nodes.flow;
        let Some(tcp) = plan.spec.over.first().and_then(Layer::settings_as::<Tcp>) else { return Ok(()) };
        let source = plan.application_source();
        let (root, far_end) = (plan.participants.root(), plan.participants.far_end());
        for (own, far) in [(root, far_end), (far_end, root)] {
            if !nodes.builds(own.node) {
                continue;
            }
            let (parents, children) = plan.participants.neighbours(own);
            let neighbours = [parents, children].concat();
            let (node, address) = (own.node, own.address);
            let name = nodes.node_name(node);
            let random = plan.random(node, depth);
            let edge = BatsMachine::edge(
                self.0.on(plan, depth),
                address,
                (address, far.address),
                &neighbours,
                random,
            );
            let below = nodes.put_below_relay(depth, node, address)?;
            let edge = nodes.attach(name, node, Box::new(edge), below);
            if nodes.is_on_kernel() {
                // The connections to the flow's receiver are taken out of transit, and those opened come from its
                // sender.
                let accept = Accept::Forwarded { to: vec![destination(source.remote)] };
                let plug = TcpPlug { spoof: true, ..tcp.on_kernel(Some(accept)) };
                splice_kernel(nodes, node, plug, edge)?;
                continue;
            }
            let lower = splice(nodes, node, tcp, edge);
            let transit = nodes.tcp_in_transit(node)?;
            let intercept = Intercept::new([source.local, source.remote]);
            let intercept = nodes.attach(name, node, Box::new(intercept), transit);
            if let LowerPort::Machine(slot, port) = lower {
                nodes.wire(node, (slot, port), intercept);
            }
        }
        Ok(())
    }
}

/// A TCP that ends a client's connections, joined to the edge that carries them on; says which port takes the packets.
fn splice(nodes: &mut FlowNodes<'_>, node: NodeId, tcp: &Tcp, edge: LowerPort) -> LowerPort {
    let random = nodes.flow.random(node, 0).fork();
    let ending = TcpMachine::transparent(tcp.on(nodes.flow, node, 0), random);
    let slot = nodes.add("proxy", node, Box::new(ending));
    nodes.join("splice", node, Box::new(Splice::new()), [LowerPort::above(slot), edge]);
    LowerPort::Machine(slot, Port::Below(0))
}

/// The kernel's TCP, joined to the edge that carries its connections on.
fn splice_kernel(
    nodes: &mut FlowNodes<'_>,
    node: NodeId,
    tcp: TcpPlug,
    edge: LowerPort,
) -> Result<(), BuildError> {
    let tcp = nodes.kernel_tcp(node, tcp)?;
    nodes.join("splice", node, Box::new(Splice::new()), [tcp, edge]);
    Ok(())
}

/// Exactly one socket.
fn destination(address: SocketAddr) -> Destination {
    let prefix = if address.is_ipv4() { 32 } else { 128 };
    Destination { network: address.ip(), prefix, port: Some(address.port()) }
}
