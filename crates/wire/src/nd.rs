//! Neighbour discovery for IPv6 (RFC 4861): the two messages of ICMPv6 that find a neighbour's Ethernet address.
//!
//! ```text
//!  solicitation  | 135 | 0 | checksum |        reserved      | target |  options …
//!                 0      1   2          4                      8       24
//!  advertisement | 136 | 0 | checksum | R S O |   reserved   | target |  options …
//!                 0      1   2          4                      8       24
//!  option        | type | length in 8 bytes | contents …
//!                 0      1                   2
//! ```
//!
//! The options that are read are the Ethernet addresses of the source (1) and of the target (2), of 8 bytes each;
//! others are skipped. Router solicitations and advertisements, and redirects, are not read.

use std::net::Ipv6Addr;

use hopcast_core::Buffer;

use crate::ethernet::Mac;
use crate::{Malformed, checksum, ip};

// Types of messages (RFC 4861 sections 4.3 and 4.4), and of options (section 4.6.1).

const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const SOURCE_ADDRESS: u8 = 1;
const TARGET_ADDRESS: u8 = 2;

/// The hop limit of every message: one that a router has forwarded has less, and is not read (RFC 4861 section 7.1).
pub const HOP_LIMIT: u8 = 255;
/// All nodes of a link (RFC 4291 section 2.7.1).
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Bytes in front of the options (RFC 4861 section 4.3).
const HEADER: usize = 24;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Whose is this address?
    Solicitation {
        /// The address that is asked for.
        target: Ipv6Addr,
        /// The sender's Ethernet address, if it says.
        source: Option<Mac>,
    },
    /// It is mine.
    Advertisement {
        /// The sender's address.
        target: Ipv6Addr,
        /// The sender's Ethernet address, if it says.
        mac: Option<Mac>,
        /// The three flags.
        flags: Flags,
    },
}

/// The flags of an advertisement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// R: the sender is a router.
    pub router: bool,
    /// S: it answers a solicitation of the receiver.
    pub solicited: bool,
    /// O: its Ethernet address replaces one that the receiver knows.
    pub replaces: bool,
}

/// Whether a message of ICMPv6 of this type is one of these.
pub const fn is_nd(kind: u8) -> bool {
    matches!(kind, SOLICITATION | ADVERTISEMENT)
}

/// The group by which the neighbour with an address is asked for it (RFC 4291 section 2.7.1).
pub const fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., high, low] = address.segments();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | high & 0xff, low)
}

/// Reads a message (the payload of the packet of `header`) and verifies all that RFC 4861 sections 7.1.1 and 7.1.2 ask
/// for: its checksum, a hop limit of 255, its length and options, and what source, destination and target are. `None`
/// if it is another message of ICMPv6, whose checksum is not looked at.
pub fn parse(
    (source, destination): (Ipv6Addr, Ipv6Addr),
    hop_limit: u8,
    bytes: &[u8],
) -> Result<Option<Message>, Malformed> {
    let Some(&kind) = bytes.first() else {
        return Err(Malformed::truncated("ND", "type", 1, 0));
    };
    if !is_nd(kind) {
        return Ok(None);
    }
    if checksum::transport(source.into(), destination.into(), ip::ICMPV6, bytes) != 0 {
        return Err(Malformed::corrupt("ND", "checksum"));
    }
    if hop_limit != HOP_LIMIT {
        return Err(Malformed::value("ND", "hop limit", hop_limit.into()));
    }
    let Some((head, options)) = bytes.split_first_chunk::<HEADER>() else {
        return Err(Malformed::truncated("ND", "message", HEADER, bytes.len()));
    };
    if head[1] != 0 {
        return Err(Malformed::value("ND", "code", head[1].into()));
    }
    let mut target = [0; 16];
    target.copy_from_slice(&head[8..]);
    let target = Ipv6Addr::from(target);
    if target.is_multicast() || target.is_unspecified() {
        return Err(Malformed::value("ND", "target", target.segments()[0].into()));
    }
    let wanted = if kind == SOLICITATION { SOURCE_ADDRESS } else { TARGET_ADDRESS };
    let mac = option(options, wanted)?;
    if kind == SOLICITATION {
        // A question before the sender has an address: to the group, and without an Ethernet address to keep.
        if source.is_unspecified() && (mac.is_some() || destination != solicited_node(target)) {
            return Err(Malformed::value("ND", "source", 0));
        }
        return Ok(Some(Message::Solicitation { target, source: mac }));
    }
    let flag = |bit: u8| head[4] & bit != 0;
    let flags = Flags { router: flag(0x80), solicited: flag(0x40), replaces: flag(0x20) };
    if flags.solicited && destination.is_multicast() {
        return Err(Malformed::value("ND", "flags", head[4].into()));
    }
    Ok(Some(Message::Advertisement { target, mac, flags }))
}

/// The Ethernet address in the first option of this kind. All options must read.
fn option(mut options: &[u8], wanted: u8) -> Result<Option<Mac>, Malformed> {
    let mut found = None;
    while let Some(&kind) = options.first() {
        let length = 8 * options.get(1).copied().map_or(0, usize::from);
        if length == 0 {
            return Err(Malformed::value("ND", "option length", 0));
        }
        let Some((option, rest)) = options.split_at_checked(length) else {
            return Err(Malformed::truncated("ND", "option", length, options.len()));
        };
        if let (true, &[_, _, a, b, c, d, e, f]) = (kind == wanted && found.is_none(), option) {
            found = Some([a, b, c, d, e, f]);
        }
        options = rest;
    }
    Ok(found)
}

/// Puts a message, with its checksum, in front of what is in `buffer`, usually nothing.
pub fn prepend(buffer: &mut Buffer, source: Ipv6Addr, destination: Ipv6Addr, message: &Message) {
    let (kind, target, flags, option) = match *message {
        Message::Solicitation { target, source } => {
            (SOLICITATION, target, 0, source.map(|mac| (SOURCE_ADDRESS, mac)))
        }
        Message::Advertisement { target, mac, flags } => {
            let bit = |flag: bool, bit: u8| if flag { bit } else { 0 };
            let flags = bit(flags.router, 0x80) | bit(flags.solicited, 0x40) | bit(flags.replaces, 0x20);
            (ADVERTISEMENT, target, flags, mac.map(|mac| (TARGET_ADDRESS, mac)))
        }
    };
    if let Some((kind, mac)) = option {
        let bytes = buffer.prepend(8);
        bytes[..2].copy_from_slice(&[kind, 1]);
        bytes[2..].copy_from_slice(&mac);
    }
    let bytes = buffer.prepend(HEADER);
    bytes[..8].copy_from_slice(&[kind, 0, 0, 0, flags, 0, 0, 0]);
    bytes[8..].copy_from_slice(&target.octets());
    let sum = checksum::transport(source.into(), destination.into(), ip::ICMPV6, buffer);
    buffer[2..4].copy_from_slice(&sum.to_be_bytes());
}
