//! A host above one of our nodes: it answers echo requests in every VLAN, sends its own, and notes what it gets.

use std::net::{IpAddr, Ipv4Addr};

use hopcast_core::Buffer;
use hopcast_wire::ethernet::{self, Header, Mac};
use hopcast_wire::icmp::{self, Message};
use hopcast_wire::vlan::{self, CUSTOMER, Tag};
use hopcast_wire::{arp, ip};

const ICMP: u8 = 1;
const IDENTIFIER: u16 = 0x6f63;

pub(crate) struct Host {
    mac: Mac,
    /// Last byte of its address; see [`address`].
    number: u8,
    /// The frames that came, but for those that it answered.
    pub(crate) received: Vec<Vec<u8>>,
    /// VLAN, address and number of the replies that came, and the lengths of their bodies.
    pub(crate) replies: Vec<(u8, IpAddr, u16, usize)>,
}

/// A node's address in a VLAN, or outside of any (0).
pub(crate) const fn address(vlan: u8, number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, vlan, number)
}

impl Host {
    pub(crate) const fn new(mac: Mac, number: u8) -> Self {
        Self { mac, number, received: Vec::new(), replies: Vec::new() }
    }

    /// An echo request to another node's host, of this many bytes.
    pub(crate) fn echo_request(&self, vlan: u8, to: (Mac, u8), sequence: u16, len: usize) -> Buffer {
        let addresses = (address(vlan, self.number).into(), address(vlan, to.1).into());
        let message = Message::EchoRequest { identifier: IDENTIFIER, sequence };
        self.packet(vlan, to.0, addresses, message, &vec![b'.'; len])
    }

    /// Takes a frame. Returns the answer.
    pub(crate) fn receive(&mut self, frame: &[u8]) -> Option<Buffer> {
        let mut whole = Buffer::copy_from(frame);
        let vlan = vlan::tag(frame).map_or(0, |tag| tag.id as u8);
        if vlan != 0 {
            vlan::pop(&mut whole);
        }
        let header = ethernet::parse(&whole).ok()?;
        let payload = &whole[ethernet::HEADER..];
        let answer = match header.ether_type {
            arp::ETHER_TYPE => self.answer_arp(vlan, payload),
            ethernet::IPV4 => self.receive_ip(vlan, header.source, payload),
            _ => None,
        };
        if answer.is_none() {
            self.received.push(frame.to_vec());
        }
        answer
    }

    fn answer_arp(&self, vlan: u8, payload: &[u8]) -> Option<Buffer> {
        let asked = arp::parse(payload).ok()?;
        let own = arp::Station { mac: self.mac, address: address(vlan, self.number) };
        if asked.operation != arp::Operation::Request || asked.target.address != own.address {
            return None;
        }
        let mut answer = Buffer::copy_from(&[]);
        let reply = arp::Packet { operation: arp::Operation::Reply, sender: own, target: asked.sender };
        arp::prepend(&mut answer, &reply);
        Some(self.frame(vlan, asked.sender.mac, arp::ETHER_TYPE, answer))
    }

    fn receive_ip(&mut self, vlan: u8, from: Mac, packet: &[u8]) -> Option<Buffer> {
        let header = ip::parse(packet).ok()?;
        let payload = packet.get(header.payload())?;
        let own = IpAddr::from(address(vlan, self.number));
        if header.protocol != ICMP || header.destination != own {
            return None;
        }
        let body = payload.get(icmp::HEADER..)?;
        match icmp::parse(header.source, own, payload).ok()? {
            Message::EchoRequest { identifier, sequence } => {
                let reply = Message::EchoReply { identifier, sequence };
                Some(self.packet(vlan, from, (own, header.source), reply, body))
            }
            Message::EchoReply { identifier: IDENTIFIER, sequence } => {
                self.replies.push((vlan, header.source, sequence, body.len()));
                None
            }
            _ => None,
        }
    }

    fn packet(
        &self,
        vlan: u8,
        to: Mac,
        (source, destination): (IpAddr, IpAddr),
        message: Message,
        body: &[u8],
    ) -> Buffer {
        let mut packet = Buffer::copy_from(body);
        icmp::prepend(&mut packet, source, destination, message);
        ip::prepend(&mut packet, source, destination, ICMP, 64, 0);
        self.frame(vlan, to, ethernet::IPV4, packet)
    }

    fn frame(&self, vlan: u8, destination: Mac, ether_type: u16, mut payload: Buffer) -> Buffer {
        ethernet::prepend(&mut payload, Header { destination, source: self.mac, ether_type });
        if vlan != 0 {
            vlan::push(&mut payload, Tag { kind: CUSTOMER, id: vlan.into() });
        }
        payload
    }
}
