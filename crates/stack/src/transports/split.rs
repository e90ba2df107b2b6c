//! `split-bbr`: TCP with BBR that ends at every node of the route and begins anew.

use std::net::SocketAddr;

use hopcast_coded::proxy::Splice;
use hopcast_core::plug::Accept;
use hopcast_peers::tcp::{Congestion, Tcp as TcpMachine};

use super::tcp::{OPTIONS, Tcp, docs};
use crate::error::BuildError;
use crate::platform::LowerPort;
use crate::transport::{End, Ends, FlowNodes, FlowPlan, Layer, PortKind, Ports, Row, Transport};

pub(super) static BBR: Row = Row {
    name: "split-bbr",
    about: "TCP with BBR that ends at every node of the route and begins anew; nothing carries it inside",
    offers: Ports(&[PortKind::Stream]),
    needs: PortKind::Packet,
    many_streams: false,
    options: docs,
    read: |row, options| {
        let defaults = || Tcp::with(Congestion::Bbr);
        OPTIONS.layer_as(row, options, defaults(), |_| defaults(), |tcp| Ok(Split(tcp)))
    },
    ..Row::BASE
};

/// The settings of the TCP of every hop.
#[derive(Clone, Debug)]
struct Split(Tcp);

impl Transport for Split {
    fn overhead(&self, ip: u64) -> u64 {
        self.0.overhead(ip)
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        self.0.put(end)
    }

    /// Two TCPs on each node between the ends, joined to each other.
    fn put_between(&self, nodes: &mut FlowNodes<'_>, _: usize) -> Result<(), BuildError> {
        let plan = nodes.flow;
        for participant in nodes.relays() {
            let (node, own) = (participant.node, participant.address);
            let Some(next) = plan.participants.after(participant) else { continue };
            let name = nodes.node_name(node);
            let (ports, local) = if nodes.is_on_kernel() {
                let left = nodes.kernel_tcp(node, self.0.on_kernel(Some(Accept::At(own))))?;
                let right = nodes.kernel_tcp(node, self.0.on_kernel(None))?;
                ([left, right], SocketAddr::new(own.ip(), 0))
            } else {
                let onwards = SocketAddr::new(own.ip(), own.port() + 1);
                let mut random = plan.random(node, 0);
                let mut side = |nodes: &mut FlowNodes<'_>, port: u16, listens: Option<u16>| {
                    let below = nodes.tcp_packets(node, [port])?;
                    let config = self.0.on(plan, node, 0);
                    let tcp = TcpMachine::new(config, listens, vec![own.ip()], random.fork());
                    Ok::<_, BuildError>(nodes.attach(name, node, Box::new(tcp), below))
                };
                let left = side(nodes, own.port(), Some(own.port()))?;
                ([left, side(nodes, onwards.port(), None)?], onwards)
            };
            nodes.join(name, node, Box::new(Splice::towards(local, next)), ports);
        }
        Ok(())
    }

    fn refuses_below(&self, own: &'static Row, _: &Layer) -> Option<String> {
        let name = own.name;
        Some(format!("`over`: `{name}` ends at every node, so nothing can carry it inside: write it alone"))
    }

    fn first_hop(&self, plan: &FlowPlan<'_>, source: Ends) -> SocketAddr {
        plan.participants.first_after_root().unwrap_or(source.remote)
    }

    fn virtual_time_only(&self) -> Option<&'static str> {
        self.0.changed_option()
    }
}
