//! One end of a flow, as the transport of one layer sees it while the stack is put there.

use std::net::SocketAddr;

use hopcast_core::plug::Accept;
use hopcast_core::{Machine, Stream};

use super::{Ends, FlowNodes, FlowPlan, Layer};
use crate::error::{BuildError, Cause};
use crate::network::NodeId;
use crate::platform::LowerPort;

/// One end of a flow, with the layers below [`depth`](Self::depth) on it already.
pub struct End<'b, 'a> {
    /// The flow's nodes, and its machines on them.
    pub nodes: &'b mut FlowNodes<'a>,
    /// The node.
    pub node: NodeId,
    /// The layer's place in the stack, from the top.
    pub depth: usize,
    /// The two ends, as the layer at this node sees them.
    pub ends: Ends,
    /// The port above the layer below; `None` where that is the host itself.
    pub below: Option<LowerPort>,
}

impl<'a> End<'_, 'a> {
    /// The flow.
    pub fn flow(&self) -> &'a FlowPlan<'a> {
        self.nodes.flow
    }

    /// Whether machines are attached to the kernel here.
    pub fn is_on_kernel(&self) -> bool {
        self.nodes.is_on_kernel()
    }

    /// Whether this is the flow's sender.
    pub fn is_sender(&self) -> bool {
        self.node == self.flow().spec.from
    }

    /// Connections that the kernel's TCP takes here: those to `local` at a receiver, none at the sender.
    pub fn accepts(&self, local: SocketAddr) -> Option<Accept> {
        self.flow().spec.to.contains(&self.node).then_some(Accept::At(local))
    }

    /// The layer above.
    pub fn above(&self) -> Option<&'a Layer> {
        self.depth.checked_sub(1).map(|above| &self.flow().spec.over[above])
    }

    /// Bytes that the layers below leave for a datagram.
    pub fn room(&self) -> u16 {
        self.flow().room(self.depth)
    }

    /// The random stream of the machine here.
    pub fn random(&self) -> Stream {
        self.flow().random(self.node, self.depth)
    }

    /// The addresses that the machine here exchanges datagrams with: the other end, unless nodes between take part.
    pub fn neighbours(&self) -> Vec<SocketAddr> {
        let participants = &self.flow().participants;
        let own = participants.end(self.node).filter(|_| self.flow().others_take_part(self.depth));
        let Some(own) = own else { return vec![self.ends.remote] };
        let (parents, children) = participants.neighbours(own);
        if parents.is_empty() { children } else { parents }
    }

    /// Attaches a machine to the layer below; its counters go by `name` where the end has several machines. Says which
    /// port is above it.
    ///
    /// # Errors
    /// There is no layer below.
    pub fn attach(&mut self, name: &'static str, machine: Box<dyn Machine>) -> Result<LowerPort, BuildError> {
        let below = self.below.ok_or_else(|| self.nodes.error(self.node, Cause::NoLowerLayer))?;
        Ok(self.attach_to(name, machine, below))
    }

    /// Attaches a machine to a port of the node. Says which port is above it.
    pub fn attach_to(
        &mut self,
        name: &'static str,
        machine: Box<dyn Machine>,
        lower: LowerPort,
    ) -> LowerPort {
        self.nodes.attach(self.nodes.counter_name(self.node, name), self.node, machine, lower)
    }

    /// Joins two ports by a machine with two lower ports, whose counters go by `name`.
    pub fn join(&mut self, name: &str, machine: Box<dyn Machine>, ports: [LowerPort; 2]) {
        self.nodes.join(name, self.node, machine, ports);
    }
}
