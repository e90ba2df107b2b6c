//! Frames to groups, and reports.

use std::net::Ipv4Addr;

use hopcast_core::Buffer;
use hopcast_wire::ethernet::{self, Header};
use hopcast_wire::{igmp, ip, membership};

use super::{World, host};

/// A frame from the host of a node to a group, with a packet of this protocol and payload.
fn ip_frame(node: usize, group: Ipv4Addr, protocol: u8, payload: Buffer) -> Vec<u8> {
    let mut frame = payload;
    let source = Ipv4Addr::new(10, 0, 0, node as u8);
    ip::prepend(&mut frame, source.into(), group.into(), protocol, 1, 0);
    let destination = ethernet::of_group(group.into());
    ethernet::prepend(&mut frame, Header { destination, source: host(node), ether_type: ethernet::IPV4 });
    frame.to_vec()
}

/// A frame of this length from the host of a node to a group.
pub(crate) fn data(node: usize, group: Ipv4Addr, len: usize) -> Vec<u8> {
    let payload = len - ethernet::HEADER - ip::V4_HEADER;
    ip_frame(node, group, ip::UDP, Buffer::copy_from(&vec![node as u8; payload]))
}

/// Has the host of a node report that it is a member.
pub(crate) fn join(world: &mut World, node: usize, group: Ipv4Addr) {
    let mut report = Buffer::copy_from(&[]);
    igmp::prepend_older_report(&mut report, membership::Version::V2, group);
    world.send(node, &ip_frame(node, group, ip::IGMP, report));
}

pub(crate) fn leave(world: &mut World, node: usize, group: Ipv4Addr) {
    let mut message = Buffer::copy_from(&[]);
    igmp::prepend_leave(&mut message, group);
    world.send(node, &ip_frame(node, Ipv4Addr::new(224, 0, 0, 2), ip::IGMP, message));
}
