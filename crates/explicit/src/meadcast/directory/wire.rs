//! Messages between members and the directory: UDP over IPv6, all of one length.
//!
//! ```text
//! | "MD" | version 1 | kind | hold time in s | 0 | nonce, 8 bytes | cookie, 8 bytes | group, 16 bytes |
//!  0      2           3      4                6   8                16                24                40
//! ```
//!
//! Kinds are 1 join, 2 leave, 3 challenge and 4 accepted; the hold time is that of an acceptance, and 0 of all others.
//! Both ports are the same.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use hopcast_core::{Buffer, Hook, Reader, Writer};
use hopcast_wire::{ip, udp};

use crate::address::is_host;

/// Port of the messages, one of the two for experiments (RFC 4727).
pub const PORT: u16 = 1021;
/// Bytes of a message.
pub const LEN: usize = 40;
/// The hook that selects the messages.
pub const HOOK: Hook = Hook::Transport { protocol: ip::UDP, port: Some(PORT) };

const START: &[u8; 3] = b"MD\x01";
const HOP_LIMIT: u8 = 64;

/// The purpose of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The source becomes a member, or stays one.
    Join,
    /// The source is no member any more.
    Leave,
    /// A request needs the cookie of this message.
    Challenge,
    /// A request is granted.
    Accepted {
        /// Seconds for which the membership holds; 0 of a leave.
        hold: u16,
    },
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its sender.
    pub source: Ipv6Addr,
    /// Its receiver.
    pub destination: Ipv6Addr,
    /// Its purpose.
    pub kind: Kind,
    /// The number that a request has, and that its answer repeats.
    pub nonce: u64,
    /// The directory's cookie; 0 is none.
    pub cookie: u64,
    /// Address of the group.
    pub group: Ipv6Addr,
}

impl Message {
    /// Writes the packet.
    pub fn emit(&self) -> Buffer {
        let mut bytes = [0; LEN];
        let mut writer = Writer::new(&mut bytes);
        let (kind, hold) = match self.kind {
            Kind::Join => (1, 0),
            Kind::Leave => (2, 0),
            Kind::Challenge => (3, 0),
            Kind::Accepted { hold } => (4, hold),
        };
        writer.put(START);
        writer.put(&[kind]);
        writer.u16(hold);
        writer.u16(0);
        writer.u64(self.nonce);
        writer.u64(self.cookie);
        writer.put(&self.group.octets());
        let mut packet = Buffer::copy_from(&bytes);
        let ends = [self.source, self.destination];
        let [source, destination] = ends.map(|address| SocketAddr::from((address, PORT)));
        udp::prepend(&mut packet, source, destination);
        ip::prepend(&mut packet, self.source.into(), self.destination.into(), ip::UDP, HOP_LIMIT, 0);
        packet
    }

    /// Reads a packet; `None` if it is none, or not as [`emit`](Self::emit) writes it.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let header = ip::parse(packet).ok()?;
        let (IpAddr::V6(source), IpAddr::V6(destination)) = (header.source, header.destination) else {
            return None;
        };
        if header.fragment || header.protocol != ip::UDP || ![source, destination].iter().all(is_single) {
            return None;
        }
        let segment = &packet[header.payload()];
        let udp = udp::parse(header.source, header.destination, segment).ok()?;
        let payload: &[u8; LEN] = segment[udp::HEADER..udp.len].try_into().ok()?;
        let mut reader = Reader::new(payload);
        let is_start = reader.take(START.len(), "magic").ok()? == START;
        if !is_start || [udp.source, udp.destination] != [PORT; 2] {
            return None;
        }
        let kind = reader.u8("kind").ok()?;
        let (hold, zero) = (reader.u16("hold time").ok()?, reader.u16("zero").ok()?);
        let kind = match (kind, hold, zero) {
            (1, 0, 0) => Kind::Join,
            (2, 0, 0) => Kind::Leave,
            (3, 0, 0) => Kind::Challenge,
            (4, hold, 0) => Kind::Accepted { hold },
            _ => return None,
        };
        let (nonce, cookie) = (reader.u64("nonce").ok()?, reader.u64("cookie").ok()?);
        let group = Ipv6Addr::from(reader.array("group").ok()?);
        Some(Self { source, destination, kind, nonce, cookie, group })
    }
}

const fn is_single(address: &Ipv6Addr) -> bool {
    is_host(&address.octets())
}
