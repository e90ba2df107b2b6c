//! Frames to groups and reports, and what becomes of a frame.

use std::collections::{BTreeMap, BTreeSet};
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

/// Sends a frame. Returns the nodes whose hosts get it, each of which must get it once, and how many packets of each
/// type but those of routing were on the air.
pub(crate) fn sends(world: &mut World, node: usize, frame: &[u8]) -> (Vec<usize>, BTreeMap<u8, usize>) {
    let (nodes, on_air) = passes(world, node, frame);
    let once: BTreeSet<usize> = nodes.iter().copied().collect();
    assert_eq!(nodes.len(), once.len(), "a frame that was delivered twice");
    (nodes, on_air)
}

/// The same of a frame that hosts may get several times.
pub(crate) fn passes(world: &mut World, node: usize, frame: &[u8]) -> (Vec<usize>, BTreeMap<u8, usize>) {
    world.delivered.clear();
    world.captured.clear();
    world.max_captured = 10_000;
    world.send(node, frame);
    world.run(1);
    let mut nodes: Vec<usize> =
        world.delivered.iter().filter(|(_, _, bytes)| bytes == frame).map(|(_, node, _)| *node).collect();
    nodes.sort_unstable();
    let mut on_air = BTreeMap::new();
    world
        .captured
        .iter()
        .filter(|frame| ![0, 3, 4].contains(&frame[14]))
        .for_each(|frame| *on_air.entry(frame[14]).or_default() += 1);
    (nodes, on_air)
}

/// This many packets of one type.
pub(crate) fn only(kind: u8, number: usize) -> BTreeMap<u8, usize> {
    BTreeMap::from([(kind, number)])
}
