//! Who is to hear what is sent to a group's address, and a flow to a group as its delivery sees it.

use std::net::IpAddr;
use std::rc::Rc;

use hopcast_core::Stream;

use super::{Group, Member};
use crate::network::{Network, NetworkPlan, NodeId, Segments};
use crate::service::ServiceRoutes;

/// Who is to hear what is sent to a group's address: what a transport asks of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// The members hear the flow's sender, and answer it at its own address.
    FromSender,
    /// All hear each other: the sender, the members, and the nodes of the role `peer`.
    Mutual,
    /// The same, hop by hop: each brings on what it hears, so it is enough that neighbours hear each other.
    HopByHop,
}

impl Exchange {
    /// Whether all send to the group's address.
    pub fn is_mutual(self) -> bool {
        self != Self::FromSender
    }

    /// Those of the nodes with the role `peer` that take part beside the ends of a flow.
    pub fn peers(self, named: &[NodeId], from: NodeId, to: &[NodeId]) -> Vec<NodeId> {
        let is_beside = |node: &NodeId| *node != from && !to.contains(node);
        if self.is_mutual() { named.iter().copied().filter(is_beside).collect() } else { Vec::new() }
    }
}

/// A flow to a group, as its delivery sees it.
#[derive(Clone, Copy)]
pub struct GroupFlow<'a> {
    /// The group.
    pub group: &'a Group,
    /// The flow's sender.
    pub sender: NodeId,
    /// Who is to hear what is sent to the group's address.
    pub exchange: Exchange,
    /// The nodes that take part beside sender and members.
    pub peers: &'a [NodeId],
}

impl GroupFlow<'_> {
    /// Whether a node of the flow sends to the group's address.
    fn sends(&self, node: NodeId) -> bool {
        node == self.sender || self.exchange.is_mutual()
    }

    /// The nodes that send to the group's address.
    pub fn senders(&self) -> impl Iterator<Item = NodeId> {
        let members = self.group.members.iter().map(|member| member.node);
        let all = [self.sender].into_iter().chain(members).chain(self.peers.iter().copied());
        all.filter(|&node| self.sends(node))
    }

    /// The times at which a node is to hear what is sent to the group's address; `None` if it never is.
    pub fn listener(&self, node: NodeId) -> Option<Member> {
        let is_always = node == self.sender || self.peers.contains(&node);
        match self.exchange.is_mutual() {
            true if is_always => Some(Member::always(node)),
            _ if node == self.sender => None,
            _ => self.group.member(node).cloned(),
        }
    }

    /// All that are to hear what `node` sends to the group's address.
    pub fn hearers(&self, node: NodeId) -> Vec<Member> {
        let members = self.group.members.iter().map(|member| member.node);
        let own = [self.sender].into_iter().chain(self.peers.iter().copied());
        let all = members.filter(|&member| member != self.sender).chain(own);
        all.filter(|&other| other != node).filter_map(|other| self.listener(other)).collect()
    }
}

/// A flow to a group in its network, for [`Delivery::refuses`](super::Delivery::refuses).
#[derive(Clone, Copy)]
pub struct GroupReach<'a> {
    /// The flow.
    pub flow: GroupFlow<'a>,
    /// The network.
    pub network: Network<'a>,
    /// Its segments.
    pub segments: &'a Segments,
    /// Whether the flow's packets are IPv6.
    pub ipv6: bool,
}

/// One end of a flow to a group, or a node that takes part beside its ends, as its delivery sees it.
#[derive(Clone)]
pub struct GroupEnd<'a> {
    /// The flow.
    pub flow: GroupFlow<'a>,
    /// The node.
    pub node: NodeId,
    /// The sender's address in the flow.
    pub source: IpAddr,
    /// Whether the flow's packets are IPv6.
    pub ipv6: bool,
    /// Whether machines are attached to the kernel here.
    pub on_kernel: bool,
    /// Nodes, and the links that they are attached to.
    pub plan: &'a NetworkPlan,
    /// Maximum length of a packet that fits the flow's routes, in bytes.
    pub mtu: u32,
    /// The node's routes, which a machine may keep.
    pub routes: Rc<dyn ServiceRoutes>,
    /// Random stream of the delivery's machine.
    pub random: Stream,
}

impl GroupEnd<'_> {
    /// Whether it sends to the group's address.
    pub fn sends(&self) -> bool {
        self.flow.sends(self.node)
    }

    /// The group's address.
    pub fn address(&self) -> IpAddr {
        self.flow.group.address(self.ipv6)
    }
}
