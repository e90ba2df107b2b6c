//! ARP for IPv4 on Ethernet (RFC 826).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! |       hardware type (1)       |    protocol type (0x0800)     |
//! | hardware len 6| protocol len 4|           operation           |
//! |                  sender's Ethernet address …                  |
//! |              …                |        sender's IPv4 …        |
//! |              …                |  target's Ethernet address …  |
//! |                               …                               |
//! |                     target's IPv4 address                     |
//! ```

use std::net::Ipv4Addr;

use hopcast_core::Buffer;

use crate::Malformed;
use crate::ethernet::{self, Mac};

/// The length of a packet.
pub const LEN: usize = 28;
/// The type of a frame that carries ARP (RFC 826, "Packet format"; IANA, Ethernet numbers).
pub const ETHER_TYPE: u16 = 0x0806;

/// Ethernet's number among ARP's hardware types (RFC 826, "Packet format").
const HARDWARE: u16 = 1;

/// A packet: a question for an address, or the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Whether it asks or answers.
    pub operation: Operation,
    /// The sender's addresses. Its IPv4 address is unspecified in a probe (RFC 5227 section 1.1).
    pub sender: Station,
    /// The target's addresses. Its Ethernet address means nothing in a request.
    pub target: Station,
}

/// A packet's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A request for the owner of an address.
    Request,
    /// The answer of its owner.
    Reply,
    /// Any other, such as those of RARP.
    Other(u16),
}

/// A station's two addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    /// Its Ethernet address.
    pub mac: Mac,
    /// Its IPv4 address.
    pub address: Ipv4Addr,
}

/// Reads a packet (a frame's payload); bytes behind it are Ethernet's padding. One of another hardware or protocol
/// type is malformed here, since nothing else runs on Ethernet.
pub fn parse(bytes: &[u8]) -> Result<Packet, Malformed> {
    let Some(bytes) = bytes.first_chunk::<LEN>() else {
        return Err(Malformed::truncated("ARP", "packet", LEN, bytes.len()));
    };
    let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let must = |field, found: u16, value: u16| match found == value {
        true => Ok(()),
        false => Err(Malformed::value("ARP", field, found.into())),
    };
    must("hardware type", word(0), HARDWARE)?;
    must("protocol type", word(2), ethernet::IPV4)?;
    must("hardware length", bytes[4].into(), 6)?;
    must("protocol length", bytes[5].into(), 4)?;
    let operation = match word(6) {
        1 => Operation::Request,
        2 => Operation::Reply,
        other => Operation::Other(other),
    };
    Ok(Packet { operation, sender: station(bytes, 8), target: station(bytes, 18) })
}

fn station(bytes: &[u8; LEN], at: usize) -> Station {
    let mut mac = [0; 6];
    mac.copy_from_slice(&bytes[at..at + 6]);
    let mut address = [0; 4];
    address.copy_from_slice(&bytes[at + 6..at + 10]);
    Station { mac, address: address.into() }
}

/// Puts a packet in front of what is in `buffer`, usually nothing.
pub fn prepend(buffer: &mut Buffer, packet: &Packet) {
    let operation = match packet.operation {
        Operation::Request => 1,
        Operation::Reply => 2,
        Operation::Other(other) => other,
    };
    let bytes = buffer.prepend(LEN);
    bytes[0..2].copy_from_slice(&HARDWARE.to_be_bytes());
    bytes[2..4].copy_from_slice(&ethernet::IPV4.to_be_bytes());
    bytes[4..6].copy_from_slice(&[6, 4]);
    bytes[6..8].copy_from_slice(&operation.to_be_bytes());
    for (station, at) in [(&packet.sender, 8), (&packet.target, 18)] {
        bytes[at..at + 6].copy_from_slice(&station.mac);
        bytes[at + 6..at + 10].copy_from_slice(&station.address.octets());
    }
}
