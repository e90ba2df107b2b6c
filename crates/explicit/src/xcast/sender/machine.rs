//! The machine: datagrams of the application, as packets with lists.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use hopcast_core::{Datagram, Instant, Item, Machine, Outbox, Port, Reactive};
use hopcast_wire::{ip, udp};

use super::Config;
use crate::Bitmap;
use crate::address::is_host;
use crate::xcast::router::{self, NextHops, Router};
use crate::xcast::wire::{ALL_ROUTERS, Packet, overhead};

/// The port of packets.
const PACKETS: Port = Port::Below(1);

/// A sender of Xcast; see the [module's documentation](super).
pub struct Sender {
    config: Config,
    /// Address from which it sends.
    own: Ipv6Addr,
    /// Address whose datagrams go to all receivers.
    group: IpAddr,
    receivers: Vec<[u8; 16]>,
    /// Sends packets to the next hops of their receivers.
    router: Router,
    out: Outbox,
    /// Datagrams of the application.
    data: u64,
    /// Packets with a list.
    packets: u64,
    /// Receivers in their lists.
    listed: u64,
    /// Bytes of the headers with the lists.
    header_bytes: u64,
    /// Datagrams that were longer than a packet can be.
    unsendable: u64,
}

impl Sender {
    /// A sender at an address, to a group of these receivers. Those that are no addresses of single hosts are left out,
    /// and the second of two that are the same.
    pub fn new(
        config: Config,
        own: Ipv6Addr,
        group: IpAddr,
        receivers: impl IntoIterator<Item = Ipv6Addr>,
        next_hops: Box<dyn NextHops>,
    ) -> Self {
        let mut sender = Self {
            config,
            own,
            group,
            receivers: Vec::new(),
            router: Router::new(router::Config::default(), &[own.into()], next_hops),
            out: Outbox::new(),
            data: 0,
            packets: 0,
            listed: 0,
            header_bytes: 0,
            unsendable: 0,
        };
        receivers.into_iter().for_each(|receiver| sender.join(receiver));
        sender
    }

    /// Adds a receiver.
    pub fn join(&mut self, receiver: Ipv6Addr) {
        let octets = receiver.octets();
        if is_host(&octets) && receiver != self.own && !self.receivers.contains(&octets) {
            self.receivers.push(octets);
        }
    }

    /// Takes a receiver out.
    pub fn leave(&mut self, receiver: Ipv6Addr) {
        self.receivers.retain(|other| *other != receiver.octets());
    }

    /// Sends a datagram of the application to all receivers.
    fn send(&mut self, now: Instant, datagram: Datagram) {
        let Datagram { local, remote, payload: mut segment, attributes } = datagram;
        let longest = usize::from(u16::MAX) - self.config.overhead();
        if udp::HEADER + segment.len() > longest {
            self.unsendable += 1;
            return segment.recycle();
        }
        self.data += 1;
        let [source, destination] =
            [(self.own, local.port()), (ALL_ROUTERS, remote.port())].map(SocketAddr::from);
        udp::prepend(&mut segment, source, destination);
        let count = self.config.listed(segment.len());
        for list in self.receivers.chunks(count) {
            let packet = Packet {
                traffic: u32::from(attributes.traffic_class) << 20,
                hop_limit: attributes.hop_limit.unwrap_or(HOP_LIMIT),
                source: self.own,
                is_anonymous: false,
                stays: false,
                reserved: 0,
                channel: 0,
                marks: Bitmap::first(list.len()),
                list,
                ports: None,
                protocol: ip::UDP,
                payload: &segment,
            };
            if list.len() > 1 {
                self.packets += 1;
                self.listed += list.len() as u64;
                self.header_bytes += overhead(list.len(), false) as u64;
            }
            self.router.handle(now, Port::Above(0), Item::Packet(packet.emit()));
        }
        segment.recycle();
        while let Some((_, item)) = self.router.poll(now) {
            self.out.push(PACKETS, item);
        }
    }
}

/// Hop limit of packets unless the application has another: the maximum (RFC 8200).
const HOP_LIMIT: u8 = 255;

impl Reactive for Sender {
    fn react(&mut self, now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Above(0), Item::Datagram(datagram)) if datagram.remote.ip() == self.group => {
                self.send(now, datagram);
            }
            // A sender is no router: what its hook selects is handed back.
            (PACKETS, Item::Transit(transit)) => self.out.push(PACKETS, Item::Transit(transit)),
            (Port::Above(_), item) => self.out.down(item),
            (Port::Below(_), item) => self.out.up(item),
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("xcast_sender_data", self.data);
        report("xcast_sender_packets", self.packets);
        report("xcast_sender_listed", self.listed);
        report("xcast_sender_header_bytes", self.header_bytes);
        report("xcast_sender_unsendable", self.unsendable);
        self.router.counters(report);
    }
}
