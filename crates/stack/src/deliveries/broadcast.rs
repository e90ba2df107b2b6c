//! `broadcast`: one datagram to all hosts of one segment.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_core::Duration;

use crate::group::{
    Delivery, DeliveryMachines, DeliveryRow, GroupEnd, GroupFlow, GroupReach, Member, MemberMachine,
    SegmentBroadcast,
};
use crate::network::NodeId;
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
    fn refuses(&self, reach: &GroupReach<'_>) -> Option<String> {
        let GroupFlow { group, sender, peers, .. } = reach.flow;
        if reach.segments.joining(sender, &all(&reach.flow)).is_some() {
            return None;
        }
        let from = &reach.network.nodes[sender].name;
        let whom = match group.name.as_str() {
            "" => "all receivers".to_owned(),
            name => format!("all members of `{name}`"),
        };
        let peers = if peers.is_empty() { "" } else { " and peers" };
        Some(format!("`broadcast` reaches one segment, and none joins `{from}` with {whom}{peers}"))
    }

    fn machines(&self, end: &GroupEnd<'_>) -> DeliveryMachines {
        // RFC 4291 section 2.7.1: all nodes of the link; RFC 919 section 7: IPv4's limited broadcast.
        let everybody = match end.ipv6 {
            true => IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)),
            false => IpAddr::V4(Ipv4Addr::BROADCAST),
        };
        let is_told = end.on_kernel && end.flow.listener(end.node).is_some();
        let machines = DeliveryMachines::joining(is_told.then(|| listener(end.node, everybody)));
        let own = end.plan.joining(end.node, &all(&end.flow)).filter(|_| end.sends());
        match own.map(|own| SegmentBroadcast::new(end.address(), everybody, own.interface)) {
            Some(sender) => machines.sending("broadcast", sender),
            None => machines,
        }
    }
}

/// The machine at a receiver on the kernel, which joins the broadcast address: a socket that is bound to one address
/// does not receive it otherwise, while a simulated host always does.
fn listener(node: NodeId, everybody: IpAddr) -> MemberMachine {
    MemberMachine::new(everybody, None, &Member::always(node), Duration::ZERO)
}

/// Sender, members and peers, which the segment has to join.
fn all(flow: &GroupFlow<'_>) -> Vec<NodeId> {
    let members = flow.group.members.iter().map(|member| member.node);
    members.chain([flow.sender]).chain(flow.peers.iter().copied()).collect()
}
