//! `broadcast`: one datagram to all hosts of one segment.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_core::{Duration, Instant};

use crate::group::{
    Delivery, DeliveryMachine, DeliveryRow, Group, GroupEnd, Member, MemberMachine, SegmentBroadcast,
};
use crate::network::{Network, NodeId, Segments};
use crate::table::{Options, Worlds};

pub(super) static BROADCAST: DeliveryRow = DeliveryRow {
    name: "broadcast",
    about: "each datagram is sent once, to all hosts of the one segment (a link or VLAN) that sender and members share",
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

    fn machine(&self, end: &GroupEnd<'_>) -> Option<DeliveryMachine> {
        // RFC 4291 section 2.7.1: all nodes of the link; RFC 919 section 7: IPv4's limited broadcast.
        let everybody = match end.ipv6 {
            true => IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)),
            false => IpAddr::V4(Ipv4Addr::BROADCAST),
        };
        if !end.is_sender() {
            return end.on_kernel.then(|| listener(end.node, everybody));
        }
        let own = end.plan.joining(end.node, &members(end.group))?;
        Some(DeliveryMachine::new(
            "broadcast",
            SegmentBroadcast::new(end.address(), everybody, own.interface),
        ))
    }
}

/// The machine at a receiver on the kernel, which joins the broadcast address: a socket that is bound to one address
/// does not receive it otherwise, while a simulated host always does.
fn listener(node: NodeId, everybody: IpAddr) -> DeliveryMachine {
    let always = Member { node, spans: vec![(Instant::ZERO, None)] };
    DeliveryMachine::member(MemberMachine::new(everybody, None, &always, Duration::ZERO))
}

/// The members, which the segment has to join.
fn members(group: &Group) -> Vec<NodeId> {
    group.members.iter().map(|member| member.node).collect()
}
