//! The addresses of a flow's two ends.

use std::net::{IpAddr, SocketAddr};

use super::FlowSpec;
use crate::group::Exchange;
use crate::network::{NetworkPlan, NodeId, addresses_of};

/// The receiving end's port of the first flow; the sending end has the next, or the same one if all are to hear what is
/// sent to the group, and each flow two below the last. The
/// scenario language bounds their number. Chosen: so high that Wireshark knows no protocol by its port, and guesses
/// none.
const FIRST_PORT: u16 = 60_000;

/// The two ends of a flow, as one of them sees them.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// This end.
    pub local: SocketAddr,
    /// The other.
    pub remote: SocketAddr,
}

impl Ends {
    /// The first of `addresses` with `local_port`, and the second with `remote_port`.
    pub fn new(addresses: [IpAddr; 2], local_port: u16, remote_port: u16) -> Self {
        let [local, remote] = addresses;
        Self { local: SocketAddr::new(local, local_port), remote: SocketAddr::new(remote, remote_port) }
    }

    /// The same, as the other end sees them.
    #[must_use]
    pub fn other(self) -> Self {
        Self { local: self.remote, remote: self.local }
    }
}

impl FlowSpec<'_> {
    /// The two ends, with this receiver, as the sender sees them.
    pub(crate) fn ends(&self, plan: &NetworkPlan, to: NodeId) -> Ends {
        let port = self.port();
        let own = port + u16::from(!self.exchange().is_mutual());
        Ends::new([self.from, to].map(|node| self.address(plan, node)), own, port)
    }

    /// The port of its receivers, and of no other flow's; the next one is its sender's, or nobody's.
    pub const fn port(&self) -> u16 {
        FIRST_PORT - 2 * self.number as u16
    }

    /// Who is to hear what is sent to the group's address.
    pub fn exchange(&self) -> Exchange {
        let top = self.over.first().filter(|_| self.group.is_some());
        top.map_or(Exchange::FromSender, |top| top.settings().exchange())
    }

    /// The address of one of its ends. The routes to an address in a prefix all lead over that prefix's segment, so of
    /// several disjoint ones only one could: they are those to the node's own address.
    pub(super) fn address(&self, plan: &NetworkPlan, end: NodeId) -> IpAddr {
        match self.paths {
            0 | 1 => plan.address(end, self.ipv6),
            _ => addresses_of(end)[usize::from(self.ipv6)],
        }
    }
}
