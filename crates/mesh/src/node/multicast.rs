//! How frames to groups enter the mesh, and multicast packets of other nodes.

use std::collections::BTreeSet;

use hopcast_core::{Buffer, Instant, Membership};
use hopcast_wire::ethernet::{BROADCAST, Mac};

use super::{Arrival, Mesh};
use crate::batman_iv::BatmanIvConfig;
use crate::bridge_loops::Encapsulation;
use crate::multicast::{
    ByNextHop, Decision, Kind, MAX_PACKET, MulticastMode, MulticastStatus, Received, Receiver, Surroundings,
    by_next_hop, kind, prepend,
};
use crate::translation::Key;
use crate::wire::data::{Broadcast, Unicast};
use crate::wire::tvlv::{self, multicast};
use crate::wire::{Header, TTL};

impl Mesh {
    /// Multicast in the node, as `batctl mcast_flags` shows it.
    pub fn multicast(&self) -> MulticastStatus {
        MulticastStatus {
            flags: self.multicast_flags(),
            groups: self.multicast.memberships.groups().collect(),
            others: self.multicast.listeners.iter().collect(),
        }
    }

    /// Whether the node forwards multicast packets: all its links have room for them.
    fn forwards_multicast(&self) -> bool {
        self.mtus.iter().all(|&mtu| mtu >= MAX_PACKET)
    }

    pub(super) fn multicast_flags(&self) -> u8 {
        self.multicast.memberships.flags(self.forwards_multicast())
    }

    /// Takes what a host or a bridge above wants.
    pub(super) fn take_membership(&mut self, now: Instant, membership: &Membership) {
        if self.multicast.memberships.take(membership) {
            self.announce_groups(now);
        }
    }

    /// Announces the groups that are wanted now, and no others.
    pub(super) fn announce_groups(&mut self, now: Instant) {
        let mut wanted = self.multicast.memberships.announced();
        let key = |address| Key { vlan: 0, address };
        let announced = std::mem::take(&mut self.multicast.announced);
        for &group in announced.difference(&wanted) {
            self.translation.withdraw(key(group));
        }
        let mut refused = Vec::new();
        for &group in wanted.difference(&announced) {
            if !self.translation.register(now, key(group), true, self.room()) {
                refused.push(group);
            }
        }
        if !refused.is_empty() {
            refused.iter().for_each(|&group| self.multicast.memberships.overflow(group));
            // What the flags cover now is not announced.
            let left = self.multicast.memberships.announced();
            wanted.difference(&left).for_each(|&group| self.translation.withdraw(key(group)));
            wanted = left;
        }
        self.multicast.announced = wanted;
    }

    /// Takes the containers of an originator's message: what its node wants of frames to groups.
    pub(super) fn receive_multicast_flags(&mut self, originator: Mac, containers: &[u8]) {
        let found = tvlv::values(containers, tvlv::MULTICAST, multicast::VERSION)
            .find_map(|value| multicast::parse(value).ok());
        self.multicast.listeners.set(originator, found);
    }

    /// Sends a frame of a client to a group.
    pub(super) fn send_to_group(&mut self, now: Instant, group: Key, frame: Buffer) {
        if group.address == BROADCAST {
            return self.send_broadcast(now, frame);
        }
        if self.multicast.memberships.hear(&frame) {
            self.announce_groups(now);
        }
        match self.decide(now, group, &frame) {
            Decision::Drop => {
                self.counters.multicast_without_receiver += 1;
                frame.recycle();
            }
            Decision::Flood => {
                self.counters.multicast_as_broadcast += 1;
                self.send_broadcast(now, frame);
            }
            Decision::Copies(receivers) => {
                self.counters.multicast_as_unicast += 1;
                for receiver in receivers {
                    self.counters.multicast_copies_sent += 1;
                    self.send_copy(receiver, frame.clone());
                }
                frame.recycle();
            }
            Decision::Packets(packets) => {
                self.counters.multicast_as_packet += 1;
                packets.iter().for_each(|receivers| self.send_multicast(&frame, receivers));
                frame.recycle();
            }
            Decision::Mixed(receivers, packets) => {
                self.counters.multicast_as_packet += u64::from(!packets.is_empty());
                self.counters.multicast_as_unicast += u64::from(packets.is_empty());
                packets.iter().for_each(|receivers| self.send_multicast(&frame, receivers));
                for receiver in receivers {
                    self.counters.multicast_copies_sent += 1;
                    self.send_copy(receiver, frame.clone());
                }
                frame.recycle();
            }
        }
    }

    fn decide(&mut self, now: Instant, group: Key, frame: &[u8]) -> Decision {
        if self.multicast.config.force_flood {
            return Decision::Flood;
        }
        let (ipv6, unsnoopable, routable) = match kind(frame) {
            Kind::ForAll => return Decision::Flood,
            Kind::Malformed => return Decision::Drop,
            Kind::Group { ipv6, unsnoopable, routable } => (ipv6, unsnoopable, routable),
        };
        let announcers = self.translation.announcers(group);
        let mut receivers = self.multicast.receivers(announcers, (ipv6, unsnoopable, routable));
        if let Some(receivers) = &mut receivers {
            // Nodes on the LAN from which it comes have it.
            receivers.retain(|&node| !self.bridge_loops.is_backbone(node, group.vlan));
        }
        match receivers {
            None => Decision::Flood,
            Some(receivers) if self.multicast.config.mode == MulticastMode::Auto => {
                self.decide_auto(now, group, frame.len(), receivers)
            }
            Some(receivers) => self.multicast.decide(frame.len(), receivers, self.forwards_multicast()),
        }
    }

    fn decide_auto(&mut self, now: Instant, group: Key, len: usize, receivers: BTreeSet<Mac>) -> Decision {
        if receivers.is_empty() {
            return Decision::Drop;
        }
        if self.floods(now, group, len, &receivers) {
            return Decision::Flood;
        }
        let found = self.next_hops(receivers.into_iter());
        self.multicast.by_routes(len, found, self.forwards_multicast())
    }

    /// Whether a frame of a flow is flooded. A broadcast is not cut, and B.A.T.M.A.N. V tells nothing about loss.
    fn floods(&mut self, now: Instant, group: Key, len: usize, receivers: &BTreeSet<Mac>) -> bool {
        let fits = self.mtus.iter().all(|&mtu| len + Broadcast::LEN <= mtu);
        let Some(routing) = self.routing.batman_iv().filter(|_| fits) else { return false };
        if let Some(floods) = self.multicast.auto.remembered(now, group, len) {
            return floods;
        }
        let path = |&node: &Mac| Receiver { node, path: routing.path(node) };
        let receivers: Vec<Receiver> = receivers.iter().map(path).collect();
        let packets = self.forwards_multicast()
            && self.multicast.listeners.are_capable()
            && self.multicast.config.size_limit.fits(len, 2);
        let around = self.surroundings(&routing.config, packets);
        self.multicast.auto.decide(now, group, &receivers, &around)
    }

    fn surroundings(&self, config: &BatmanIvConfig, packets: bool) -> Surroundings {
        let neighbours =
            (0..self.interfaces.len()).flat_map(|interface| self.routing.neighbours_on(interface));
        Surroundings {
            interval: config.interval,
            hop_penalty: config.hop_penalty,
            nodes: self.multicast.listeners.len() + 1,
            neighbours: neighbours.count(),
            wireless: self.interfaces.iter().any(|interface| interface.wireless),
            packets,
        }
    }

    /// Looks at the routes of all nodes, so that a flow that begins finds what they were worth.
    pub(super) fn observe_routes(&mut self, now: Instant) {
        let chooses = self.multicast.config.mode == MulticastMode::Auto;
        if let Some(routing) = self.routing.batman_iv().filter(|_| chooses) {
            let around = self.surroundings(&routing.config, true);
            for (node, _) in self.multicast.listeners.iter() {
                self.multicast.auto.observe(now, node, routing.path(node).as_ref(), &around);
            }
        }
    }

    fn send_copy(&mut self, destination: Mac, mut frame: Buffer) {
        Unicast { ttl: TTL, ttvn: self.translation.ttvn_of(destination), destination }.prepend(&mut frame);
        self.send_to(destination, None, frame);
    }

    /// Sends a frame in multicast packets, one to each next hop.
    fn send_multicast(&mut self, frame: &[u8], receivers: &[Mac]) {
        let found = self.next_hops(receivers.iter().copied());
        for (via, destinations) in found.hops {
            let mut packet = Buffer::copy_from(frame);
            prepend(&mut packet, &destinations);
            self.counters.multicast_packets_sent += 1;
            self.transmit(via.interface(), packet, via.address);
        }
    }

    fn next_hops(&mut self, destinations: impl Iterator<Item = Mac>) -> ByNextHop {
        let routing = &self.routing;
        let is_own = |address| routing.is_own(address);
        let found = by_next_hop(destinations, is_own, |to| routing.next_hop(to, None));
        self.counters.no_route += found.unreachable;
        found
    }

    /// Takes a multicast packet of another node.
    pub(super) fn receive_multicast(&mut self, arrival: Arrival, packet: Buffer) {
        let Ok(received) = Received::parse(&packet) else {
            self.counters.malformed += 1;
            return packet.recycle();
        };
        if received.header.ttl < 2 {
            self.counters.ttl_exceeded += 1;
            return packet.recycle();
        }
        self.counters.multicast_packets_received += 1;
        let found = self.next_hops(received.destinations());
        for (via, destinations) in found.hops {
            let copy = received.copy_for(&destinations);
            if copy.len() > self.mtus[via.interface()] {
                self.counters.too_long += 1;
                copy.recycle();
                continue;
            }
            self.counters.multicast_packets_forwarded += 1;
            self.transmit(via.interface(), copy, via.address);
        }
        let frame = found.own.then(|| Buffer::copy_from(received.frame));
        packet.recycle();
        if let Some(frame) = frame {
            self.counters.multicast_packets_delivered += 1;
            self.deliver(arrival.now, None, Encapsulation::Unicast, frame);
        }
    }
}
