//! A flow being built: a stack of machines at each of its ends, and what its transports have on the nodes between.

mod echo;
mod tun;

use hopcast_core::{Instant, Port, Slot};

use crate::error::BuildError;
use crate::group::{DeliveryMachines, GroupEnd, Shown};
use crate::network::NodeId;
use crate::platform::{BuiltNodes, LowerPort, PlacedMachine};
use crate::transport::{End, Ends, FlowNodes, FlowPlan, Layer, Ports, Socket};

/// Builds a flow: puts its stack on its ends, and the machines of its transports between them.
pub struct FlowBuilder<'a> {
    /// The flow's nodes, and its machines on them.
    pub nodes: FlowNodes<'a>,
    joins: Vec<Join>,
    shown: Vec<Shown>,
}

/// The machines of one flow, on their nodes.
#[derive(Default)]
pub struct PlacedFlow {
    /// The machines, in the order in which they were put on nodes.
    pub machines: Vec<PlacedMachine>,
    /// The times at which receivers join and leave: in virtual time they are woken then before anything is sent at that
    /// instant.
    pub joins: Vec<Join>,
    /// How the deliveries of its senders serve the members, of those that say so.
    pub shown: Vec<Shown>,
}

/// A machine that joins or leaves a group at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// The time.
    pub at: Instant,
    /// The node.
    pub node: NodeId,
    /// Its place in the node's assembly.
    pub slot: Slot,
}

impl<'a> FlowBuilder<'a> {
    /// A builder that has put nothing on these nodes yet.
    pub const fn new(flow: &'a FlowPlan<'a>, nodes: &'a mut BuiltNodes) -> Self {
        Self { nodes: FlowNodes::new(flow, nodes), joins: Vec::new(), shown: Vec::new() }
    }

    /// The machines that were put on nodes.
    pub fn finish(self) -> PlacedFlow {
        PlacedFlow { machines: self.nodes.into_machines(), joins: self.joins, shown: self.shown }
    }

    /// Puts the flow's stack on one of its ends, or on a node that takes part beside them, from the bottom up; says
    /// which port is above it, or `None` where the application has sockets of its own.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn put_stack(&mut self, node: NodeId, ends: Ends) -> Result<Option<LowerPort>, BuildError> {
        let (flow, on_kernel) = (self.nodes.flow, self.nodes.is_on_kernel());
        let over = flow.own_layers();
        let mut below = None;
        for (depth, layer) in over.iter().enumerate().rev() {
            let above = depth.checked_sub(1).map(|above| &over[above]);
            if on_kernel {
                let is_socket = matches!(layer.row().socket, Some(Socket::Udp | Socket::Tcp { .. }));
                let program_above = above.map_or(flow.spec.is_program, Layer::is_program);
                if program_above && layer.is_program() {
                    return Ok(None);
                }
                if program_above && is_socket {
                    below = None;
                    continue;
                }
            }
            let ends = if on_kernel { flow.ends_on_kernel(depth + 1, ends) } else { ends };
            below =
                layer.settings().put_on_end(&mut End { nodes: &mut self.nodes, node, depth, ends, below })?;
            if let (Some(lower), true) = (below, depth + 1 == over.len()) {
                below = Some(self.put_delivery(node, lower));
            }
            // The kernel takes packets from a device, and has them for whatever is above.
            if let (true, Some(packets)) = (on_kernel, below)
                && layer.row().offers == Ports::PACKETS
            {
                let ends = flow.ends_on_kernel(depth, ends);
                self.put_tun(node, depth, ends, packets)?;
                below = None;
            }
        }
        Ok(below)
    }

    /// Puts the machines of every layer on the nodes between the ends, and the whole stack on those that take part
    /// beside them, as far as they are built here.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn put_between(&mut self) -> Result<(), BuildError> {
        let flow = self.nodes.flow;
        for (depth, layer) in flow.spec.over.iter().enumerate() {
            layer.settings().put_between(&mut self.nodes, depth)?;
        }
        for &node in &flow.peers {
            if self.nodes.builds(node) {
                self.put_stack(node, flow.peer(node))?;
            }
        }
        Ok(())
    }

    /// Puts the machines of the group's delivery on an end of the flow, above the host's datagrams; says which port is
    /// above them. Without a group, or where the delivery has no machine, it is theirs.
    fn put_delivery(&mut self, node: NodeId, lower: LowerPort) -> LowerPort {
        let flow = self.nodes.flow;
        let Some(to_group) = flow.to_group() else { return lower };
        let end = GroupEnd {
            flow: to_group,
            node,
            source: flow.source().local.ip(),
            ipv6: flow.spec.ipv6,
            on_kernel: self.nodes.is_on_kernel(),
            plan: flow.plan,
            mtu: flow.mtu,
            routes: self.nodes.routes(node),
            random: flow.delivery_random(node),
        };
        let machines = to_group.group.delivery.settings().machines(&end);
        let DeliveryMachines { member, sender, hooks, shown } = machines;
        self.shown.extend(shown);
        let mut lower = lower;
        if let Some(member) = member {
            let changes: Vec<Instant> = member.times().collect();
            let slot = self.nodes.add("", node, Box::new(member));
            self.nodes.wire(node, (slot, Port::Below(0)), lower);
            self.joins.extend(changes.into_iter().map(|at| Join { at, node, slot }));
            lower = LowerPort::above(slot);
        }
        match sender {
            Some((name, machine)) => {
                let slot = self.nodes.add(self.nodes.counter_name(node, name), node, machine);
                self.nodes.wire(node, (slot, Port::Below(0)), lower);
                if !hooks.is_empty() {
                    let packets = self.nodes.hook(node, hooks);
                    self.nodes.wire(node, (slot, Port::Below(1)), packets);
                }
                LowerPort::above(slot)
            }
            None => lower,
        }
    }
}
