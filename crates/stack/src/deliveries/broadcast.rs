//! `broadcast`: one datagram to all hosts of one segment.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_core::{Duration, Instant};

use crate::error::BuildError;
use crate::group::{Delivery, DeliveryRow, Group, GroupEnd, Member, MemberMachine, OnSegment};
use crate::network::{Network, NodeId, Segments};
use crate::platform::LowerPort;
use crate::table::{Options, Worlds};

pub(super) static BROADCAST: DeliveryRow = DeliveryRow {
    name: "broadcast",
    about: "each datagram is sent once, to all hosts of the one segment, a link or a VLAN on it, that joins the sender and the members",
    worlds: Worlds::Both,
    options: Vec::new,
    read: |row, options| Options(&[]).delivery(row, options, Broadcast),
};

/// No settings.
#[derive(Clone, Debug)]
struct Broadcast;

impl Delivery for Broadcast {
    fn refuses(
        &self,
        group: &Group,
        from: NodeId,
        network: Network<'_>,
        segments: &Segments,
    ) -> Option<String> {
        if segments.joining(from, &members(group)).is_some() {
            return None;
        }
        let from = &network.nodes[from].name;
        let whom = match group.name.as_str() {
            "" => "all receivers".to_owned(),
            name => format!("all members of `{name}`"),
        };
        Some(format!("`broadcast` reaches one segment, and none joins `{from}` with {whom}"))
    }

    fn put_on_end(&self, end: GroupEnd<'_, '_>) -> Result<LowerPort, BuildError> {
        let flow = end.flow();
        // RFC 4291 section 2.7.1: all nodes of the link; RFC 919 section 7: IPv4's limited broadcast.
        let everybody = match flow.spec.ipv6 {
            true => IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)),
            false => IpAddr::V4(Ipv4Addr::BROADCAST),
        };
        if !end.is_sender() {
            return Ok(listen(end, everybody));
        }
        let Some(own) = flow.plan.joining(end.node, &members(end.group)) else { return Ok(end.lower) };
        let machine = OnSegment::new(end.group.address(flow.spec.ipv6), everybody, own.interface);
        let name = flow.counter_name("broadcast");
        Ok(end.builder.attach(name, end.node, Box::new(machine), end.lower))
    }
}

/// Lets a receiver hear what is for everybody. A simulated host does so in any case; a socket of the kernel that is
/// bound to one address does not.
fn listen(end: GroupEnd<'_, '_>, everybody: IpAddr) -> LowerPort {
    if !end.builder.is_on_kernel() {
        return end.lower;
    }
    let always = Member { node: end.node, spans: vec![(Instant::ZERO, None)] };
    let machine = MemberMachine::new(everybody, None, &always, Duration::ZERO);
    end.builder.attach_member(end.node, Box::new(machine), vec![Instant::ZERO], end.lower)
}

/// The nodes that the first segment to join them all is to have.
fn members(group: &Group) -> Vec<NodeId> {
    group.members.iter().map(|member| member.node).collect()
}
