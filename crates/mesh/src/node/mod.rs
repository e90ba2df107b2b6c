//! A node of a mesh, between its links and its host: [`Mesh`].
//!
//! - `Below(i)` is interface i, whose frames of type [`ETHER_TYPE`] are the mesh's.
//! - `Above(0)` is the interface that the mesh makes, `bat0` in Linux: frames of its host, or of a bridge's stations,
//!   and the [memberships](Item::Membership) that either may state; see [`multicast`](crate::multicast).
//!
//! | file | state |
//! |---|---|
//! | `broadcast` | broadcasts that were heard, and those to be repeated |
//! | `fragments` | packets that are too long for a link: cutting and reassembly |
//! | `clients` | how a client's frame enters the mesh, and leaves it |
//! | `multicast` | the same of frames to groups; multicast packets of other nodes |
//! | `arp` | ARP of clients, answered for others or asked of nodes that keep entries |
//! | `bridge` | frames of a LAN that other nodes are bridged to, too |
//! | `gateways` | messages of DHCP that go to one node alone |
//! | `forwarding` | how packets for one originator go on |
//!
//! Routing and the translation table have modules of their own.

mod arp;
mod bridge;
mod broadcast;
mod clients;
mod config;
mod counters;
mod forwarding;
mod fragments;
mod gateways;
mod multicast;
#[cfg(test)]
mod tests;

use hopcast_core::{
    Buffer, Duration, Frame, Instant, Item, Machine, Outbox, Port, Stream, Timer, Timers, earliest,
};
use hopcast_wire::ethernet::{self, BROADCAST, Mac};

use crate::arp_table::{self, ArpTable};
use crate::bridge_loops::{self, BridgeLoops};
use crate::gateway::{self, Gateways};
use crate::multicast::Multicast;
use crate::routing::{Due, Event, Link, OriginatorStatus, PRIMARY, Removal, Routing, RoutingConfig, Via};
use crate::translation::{Key, Limits, Room, Translation};
use crate::wire::translation::TableData;
use crate::wire::{self, ETHER_TYPE, PacketType, tvlv};
use broadcast::Broadcasts;
pub use config::{MeshConfig, MeshInterface};
use counters::Counters;
use fragments::Fragments;

/// MTU of an interface that has not told its own.
const DEFAULT_MTU: usize = 1500;
/// Interval at which neighbours and originators that have gone are looked for (`BATADV_ORIG_WORK_PERIOD`).
const PURGE_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which clients that have gone are looked for (`BATADV_TT_WORK_PERIOD`).
const TABLE_PURGE_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alarm {
    /// When to begin.
    Start,
    /// When to look for originators and fragments of packets that are over.
    Purge,
    /// When to look for clients that are over.
    PurgeTable,
    /// When to announce the node to others on its LAN.
    BridgeLoops,
}

impl Timer for Alarm {
    const ALL: &'static [Self] = &[Self::Start, Self::Purge, Self::PurgeTable, Self::BridgeLoops];
    fn index(self) -> usize {
        self as usize
    }
}

/// A node of a mesh; see the [module's documentation](self).
pub struct Mesh {
    interfaces: Vec<MeshInterface>,
    mtus: Vec<usize>,
    mac: Mac,
    fragmentation: bool,
    routing: Routing,
    translation: Translation,
    multicast: Multicast,
    gateways: Gateways,
    arp_table: ArpTable,
    bridge_loops: BridgeLoops,
    broadcasts: Broadcasts,
    fragments: Fragments,
    timers: Timers<Alarm, 4>,
    counters: Counters,
    out: Outbox,
}

/// Where a packet came from.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    now: Instant,
    from: Via,
    /// Whether it was reassembled from fragments.
    merged: bool,
}

impl Mesh {
    /// A node that knows no other yet.
    ///
    /// # Panics
    /// If it has no interface.
    pub fn new(config: MeshConfig, mut random: Stream) -> Self {
        assert!(!config.interfaces.is_empty(), "a node of a mesh has an interface");
        let MeshConfig {
            interfaces,
            mac,
            routing,
            multicast,
            gateway,
            arp_table,
            bridge_loop_avoidance,
            fragmentation,
            max_clients,
            max_clients_of_node,
        } = config;
        let link = |interface: &MeshInterface| {
            let MeshInterface { mac, wireless, throughput } = *interface;
            Link { mac, wireless, throughput, mtu: DEFAULT_MTU }
        };
        let links = interfaces.iter().map(link).collect();
        let by_throughput = matches!(routing, RoutingConfig::BatmanV(_));
        let mut seqnos = random.fork();
        let mut timers = Timers::default();
        timers.set(Alarm::Start, Instant::ZERO);
        let broadcasts = Broadcasts::new(seqnos.bits() as u32);
        let fragments = Fragments::new(seqnos.bits() as u16);
        let address = interfaces[PRIMARY].mac;
        Self {
            mtus: vec![DEFAULT_MTU; interfaces.len()],
            interfaces,
            mac,
            fragmentation,
            routing: Routing::new(routing, links, random),
            translation: Translation::new(Limits { max_clients, max_clients_of_node }),
            multicast: Multicast::new(multicast),
            gateways: Gateways::new(&gateway, by_throughput),
            arp_table: ArpTable::new(arp_table),
            bridge_loops: BridgeLoops::new(bridge_loop_avoidance, address, seqnos),
            broadcasts,
            fragments,
            timers,
            counters: Counters::default(),
            out: Outbox::new(),
        }
    }

    /// Address of the node in the mesh: that of its first interface.
    pub fn address(&self) -> Mac {
        self.interfaces[0].mac
    }

    /// The originators to which there is a route, as `batctl o` shows them.
    pub fn originators(&self) -> Vec<OriginatorStatus> {
        self.routing.status()
    }

    /// The neighbours on an interface.
    pub fn neighbours(&self, interface: usize) -> Vec<Mac> {
        self.routing.neighbours_on(interface)
    }

    /// Throughput of the link to a neighbour, in units of 100 kbit/s, as `batctl n` shows it. `None` if it is not one,
    /// and with B.A.T.M.A.N. IV.
    pub fn throughput(&self, interface: usize, neighbour: Mac) -> Option<u32> {
        self.routing.throughput(interface, neighbour)
    }

    /// The clients behind this node, as `batctl tl` shows them.
    pub fn local_clients(&self) -> Vec<Key> {
        self.translation.local_clients().collect()
    }

    /// The clients behind other nodes with the node of each, as `batctl tg` shows them.
    pub fn global_clients(&self) -> Vec<(Key, Mac)> {
        self.translation.global_clients().collect()
    }

    /// The version of this node's table, and the checksum of its clients of a VLAN.
    pub fn table(&self, vlan: u16) -> (u8, Option<u32>) {
        (self.translation.ttvn(), self.translation.checksum(vlan))
    }

    /// The same of another node's table, as far as it is known here.
    pub fn table_of(&self, originator: Mac, vlan: u16) -> (u8, Option<u32>) {
        (self.translation.ttvn_of(originator), self.translation.checksum_of(originator, vlan))
    }

    fn start(&mut self, now: Instant) {
        let own = Key { vlan: 0, address: self.mac };
        self.translation.register(now, own, true, self.room());
        self.announce_groups(now);
        self.routing.start(now);
        self.timers.set(Alarm::Purge, now + PURGE_INTERVAL);
        self.timers.set(Alarm::PurgeTable, now + TABLE_PURGE_INTERVAL);
        if self.bridge_loops.is_enabled() {
            self.bridge_loops.start();
            self.apply_bridge_loops();
            self.timers.set(Alarm::BridgeLoops, now + bridge_loops::PERIOD);
        }
    }

    /// Makes the next message of an interface. Those of the first announce what has changed in the table.
    fn schedule(&mut self, now: Instant, interface: usize) {
        let mut containers = Vec::new();
        if interface == PRIMARY {
            let flags = tvlv::multicast::bytes(self.multicast_flags());
            tvlv::put(&mut containers, tvlv::MULTICAST, tvlv::multicast::VERSION, &flags);
            if let Some(gateway) = self.gateways.container() {
                tvlv::put(&mut containers, tvlv::GATEWAY, gateway::VERSION, &gateway);
            }
            if self.arp_table.is_enabled() {
                tvlv::put(&mut containers, tvlv::ARP_TABLE, arp_table::VERSION, &[]);
            }
            let announced = self.translation.announce(self.room().message);
            tvlv::put(&mut containers, tvlv::TRANSLATION, wire::translation::VERSION, announced);
        }
        self.routing.schedule(now, interface, &containers);
    }

    /// Does what is due.
    fn work(&mut self, now: Instant) {
        while let Some(alarm) = self.timers.expired(now) {
            match alarm {
                Alarm::Start => self.start(now),
                Alarm::Purge => {
                    let mut removals = Vec::new();
                    self.routing.purge(now, |what| removals.push(what));
                    removals.into_iter().for_each(|what| self.apply_removal(what));
                    self.fragments.purge(now);
                    self.observe_routes(now);
                    self.gateways.elect(|node| self.routing.metric(node));
                    self.timers.set(Alarm::Purge, now + PURGE_INTERVAL);
                }
                Alarm::PurgeTable => {
                    self.translation.purge(now);
                    self.arp_table.purge(now);
                    self.timers.set(Alarm::PurgeTable, now + TABLE_PURGE_INTERVAL);
                }
                Alarm::BridgeLoops => {
                    self.bridge_loops.pass_period(now);
                    self.apply_bridge_loops();
                    self.timers.set(Alarm::BridgeLoops, now + bridge_loops::PERIOD);
                }
            }
        }
        while let Some(due) = self.routing.due(now) {
            match due {
                Due::Packet { interface, destination, bytes } => {
                    self.transmit(interface, Buffer::copy_from(&bytes), destination);
                }
                Due::Schedule(interface) => self.schedule(now, interface),
            }
        }
        while let Some((interface, packet)) = self.broadcasts.due(now) {
            self.counters.broadcasts_repeated += 1;
            self.transmit(interface, packet, BROADCAST);
        }
        self.flood_requests(now);
        self.send_pending();
    }

    fn apply_removal(&mut self, what: Removal) {
        match what {
            Removal::Route(originator) => self.translation.forget(originator, false),
            Removal::Originator(originator) => {
                self.translation.forget(originator, true);
                self.multicast.listeners.forget(originator);
                self.gateways.forget(originator);
                self.arp_table.forget(originator);
                self.broadcasts.forget(originator);
                self.fragments.forget(originator);
            }
        }
    }

    /// Sends a packet to a station on an interface.
    fn transmit(&mut self, interface: usize, mut packet: Buffer, destination: Mac) {
        let source = self.interfaces[interface].mac;
        ethernet::prepend(&mut packet, ethernet::Header { destination, source, ether_type: ETHER_TYPE });
        self.out.push(Port::Below(interface as u32), Item::Frame(Frame::new(packet)));
    }

    /// Takes a frame of an interface.
    fn receive(&mut self, now: Instant, interface: usize, Frame { mut bytes, reception, .. }: Frame) {
        let header = match ethernet::parse(&bytes) {
            Ok(header) if header.ether_type == ETHER_TYPE && !ethernet::is_group(header.source) => header,
            _ => {
                self.counters.malformed += 1;
                return bytes.recycle();
            }
        };
        bytes.advance(ethernet::HEADER);
        let Ok(kind) = wire::packet_type(&bytes) else {
            self.counters.malformed += 1;
            return bytes.recycle();
        };
        let for_all = header.destination == BROADCAST;
        let fits = match kind {
            PacketType::OgmIv | PacketType::Broadcast | PacketType::Ogm2 => for_all,
            PacketType::Elp => for_all || self.routing.is_own(header.destination),
            _ => self.routing.is_own(header.destination),
        };
        if !fits {
            self.counters.wrong_destination += 1;
            return bytes.recycle();
        }
        if self.routing.is_own(header.source) {
            self.counters.from_own += 1;
            return bytes.recycle();
        }
        if for_all && let Some(rate) = reception.and_then(|reception| reception.rate) {
            self.multicast.auto.broadcast_rate = Some(rate);
        }
        let from = Via::new(interface, header.source);
        if !for_all {
            self.routing.note_received(from, kind, reception.and_then(|reception| reception.rate));
            if kind == PacketType::Elp {
                return bytes.recycle();
            }
        }
        self.receive_packet(Arrival { now, from, merged: false }, kind, bytes);
    }

    fn receive_packet(&mut self, arrival: Arrival, kind: PacketType, packet: Buffer) {
        match kind {
            kind if self.routing.takes(kind) && !arrival.merged => {
                self.receive_routing(arrival, kind, &packet);
                packet.recycle();
            }
            PacketType::Broadcast if !arrival.merged => self.receive_broadcast(arrival, packet),
            PacketType::Unicast | PacketType::Unicast4Addr => self.receive_unicast(arrival, kind, packet),
            PacketType::UnicastTvlv => self.receive_containers(arrival, packet),
            PacketType::Icmp => self.receive_icmp(arrival, packet),
            PacketType::Fragment if !arrival.merged => self.receive_fragment(arrival, packet),
            PacketType::Multicast if !arrival.merged => self.receive_multicast(arrival, packet),
            PacketType::OgmIv | PacketType::Elp | PacketType::Ogm2 if !arrival.merged => {
                self.counters.of_other_routing += 1;
            }
            PacketType::OgmIv
            | PacketType::Elp
            | PacketType::Ogm2
            | PacketType::Broadcast
            | PacketType::Fragment
            | PacketType::Multicast => self.counters.malformed += 1,
            PacketType::Coded => self.counters.not_supported += 1,
        }
    }

    fn receive_routing(&mut self, Arrival { now, from, .. }: Arrival, kind: PacketType, packet: &[u8]) {
        let mut events = Vec::new();
        if !self.routing.receive(now, from, kind, packet, &mut events) {
            self.counters.malformed += 1;
        }
        for event in events {
            match event {
                Event::Removed(what) => self.apply_removal(what),
                Event::Containers(originator, containers) => {
                    self.receive_multicast_flags(originator, containers);
                    self.gateways.hear(originator, containers, |node| self.routing.metric(node));
                    self.arp_table.hear(originator, containers);
                    let tables = tvlv::values(containers, tvlv::TRANSLATION, wire::translation::VERSION);
                    for data in tables.filter_map(|value| TableData::parse(value).ok()) {
                        self.translation.receive_announcement(now, originator, data);
                    }
                }
            }
        }
        self.send_pending();
    }

    /// Maximum length of a packet that the node sends for others to receive whole.
    fn max_packet(&self) -> usize {
        max_packet(self.min_mtu(), self.fragmentation)
    }

    fn min_mtu(&self) -> usize {
        self.mtus.iter().copied().min().unwrap_or(DEFAULT_MTU)
    }

    /// Bounds of the table of the node's own clients.
    fn room(&self) -> Room {
        // The container has headers of its own, and its length 16 bits; see `max_packet`. Others are beside it.
        let message = self.min_mtu().min(usize::from(u16::MAX) / 2);
        let gateway = self.gateways.container().map_or(0, |value| tvlv::HEADER + value.len());
        let arp_table = if self.arp_table.is_enabled() { tvlv::HEADER } else { 0 };
        let others = tvlv::HEADER + tvlv::multicast::LEN + gateway + arp_table;
        Room { packet: self.max_packet(), message: message.saturating_sub(others) }
    }

    /// Maximum length of a packet that leaves by the interface above, if the shortest of those below takes packets of
    /// `mtu` bytes (`batadv_hardif_min_mtu`).
    pub fn mtu_above(mtu: u32, fragmentation: bool) -> u32 {
        let max = max_packet(mtu as usize, fragmentation);
        max.saturating_sub(clients::OVERHEAD).min(DEFAULT_MTU) as u32
    }

    /// Sets the MTU of an interface, in bytes; until then it is 1500. The interface above is told its own.
    ///
    /// # Panics
    /// If there is no such interface.
    pub fn set_mtu(&mut self, interface: usize, mtu: u32) {
        self.mtus[interface] = mtu as usize;
        self.routing.set_mtu(interface, mtu as usize);
        self.translation.shrink(self.room());
        let longest = self.max_packet().saturating_sub(clients::OVERHEAD);
        self.out.up(Item::Mtu(longest.min(DEFAULT_MTU) as u32));
    }
}

/// Maximum length of a packet that a node sends, if its shortest interface takes packets of `mtu` bytes.
fn max_packet(mtu: usize, fragmentation: bool) -> usize {
    // A table's container has a length of 16 bits.
    if fragmentation { fragments::max_packet(mtu) } else { mtu.min(usize::from(u16::MAX)) }
}

impl Machine for Mesh {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.work(now);
        match (port, item) {
            (Port::Below(number), Item::Frame(frame)) if (number as usize) < self.interfaces.len() => {
                self.receive(now, number as usize, frame);
            }
            (Port::Above(0), Item::Frame(frame)) => self.send(now, frame.bytes),
            (Port::Above(0), Item::Membership(membership)) => self.take_membership(now, &membership),
            (Port::Below(number), Item::Mtu(mtu)) if (number as usize) < self.interfaces.len() => {
                self.set_mtu(number as usize, mtu);
            }
            // What becomes of a frame on its way through the mesh is not known.
            (Port::Above(0), Item::ReportFrameStatus) => {}
            _ => self.counters.wrong_items += 1,
        }
        self.work(now);
    }

    fn wake(&mut self, now: Instant) {
        self.work(now);
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        let packets = earliest(self.routing.deadline(), self.broadcasts.deadline());
        earliest(self.timers.next(), earliest(packets, self.arp_table.deadline()))
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.report(report);
    }
}
