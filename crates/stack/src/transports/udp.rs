//! `udp`: the host's datagrams, or datagrams in the packets of a tunnel.

use std::net::SocketAddr;

use hopcast_host::Udp as UdpMachine;

use crate::error::BuildError;
use crate::network::{HOP_LIMIT, NodeId};
use crate::platform::LowerPort;
use crate::table::Options;
use crate::transport::{End, Feedback, FlowNodes, PortKind, Ports, Row, Socket, Transport};

pub(super) static UDP: Row = Row {
    name: "udp",
    about: "datagrams as they are; bulk and files are paced at the first link's rate (RFC 768)",
    offers: Ports(&[PortKind::Datagram]),
    needs: PortKind::Packet,
    groups: true,
    feedback: Feedback::None,
    holds_back: false,
    many_streams: false,
    socket: Some(Socket::Udp),
    read: |row, options| Options(&[]).layer(row, options, Udp),
    ..Row::BASE
};

/// No settings.
#[derive(Clone, Debug)]
struct Udp;

impl Transport for Udp {
    fn overhead(&self, ip: u64) -> u64 {
        ip + 8
    }

    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError> {
        let local = end.ends.local;
        if end.below.is_some() && !end.is_on_kernel() {
            return end.attach("udp", Box::new(UdpMachine::new(local, HOP_LIMIT))).map(Some);
        }
        end.nodes.udp(end.node, local).map(Some)
    }

    fn reaches_relays(&self) -> bool {
        true
    }

    fn put_below_relay(
        &self,
        nodes: &mut FlowNodes<'_>,
        (node, address): (NodeId, SocketAddr),
        _: Option<LowerPort>,
    ) -> Result<Option<LowerPort>, BuildError> {
        nodes.udp(node, address).map(Some)
    }
}
