//! ICMP for IPv4 (RFC 792) and for IPv6 (RFC 4443), read into one [`Message`].
//!
//! ```text
//! | type | code | checksum | rest of the header |  body …
//!  0      1      2          4                    8
//! ```
//!
//! The rest of the header is an echo's identifier and sequence number, or an MTU. The body is an echo's payload, or the
//! beginning of the packet that an error is about ([`quote`]).

use std::net::IpAddr;

use hopcast_core::Buffer;

use crate::ip::{self, Version};
use crate::{Malformed, checksum};

/// The length of the header, in front of the body.
pub const HEADER: usize = 8;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Please send this back.
    EchoRequest {
        /// Number of the process that sent the request.
        identifier: u16,
        /// Number of the request among its requests.
        sequence: u16,
    },
    /// Here it is back.
    EchoReply {
        /// As in the request.
        identifier: u16,
        /// As in the request.
        sequence: u16,
    },
    /// The packet cannot be delivered.
    Unreachable(Unreachable),
    /// The packet used up its hop limit, or its fragments did not all come in time.
    TimeExceeded,
    /// The packet is too big for the next link (IPv4: fragmentation needed and *don't fragment* set, RFC 1191).
    PacketTooBig {
        /// The next link's MTU in bytes; 0 from a router that predates RFC 1191.
        mtu: u32,
    },
    /// Any other.
    Other {
        /// The type.
        kind: u8,
        /// The code.
        code: u8,
    },
}

/// Why a packet cannot be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// There is no route.
    Network,
    /// There is a route, and the host does not answer.
    Host,
    /// The host does not speak the protocol (IPv6: *unrecognised next header*, a parameter problem).
    Protocol,
    /// Nobody listens on the port.
    Port,
    /// It is forbidden.
    Prohibited,
    /// The version's own code.
    Other(u8),
}

impl Message {
    /// Whether the message is an error, about which no error may be sent (RFC 1122 section 3.2.2, RFC 4443 section
    /// 2.4). Of IPv4's types, those that are not known to be queries count as errors.
    pub fn is_error(&self, version: Version) -> bool {
        match (*self, version) {
            (Self::EchoRequest { .. } | Self::EchoReply { .. }, _) => false,
            (Self::Unreachable(_) | Self::TimeExceeded | Self::PacketTooBig { .. }, _) => true,
            // Router advertisement and solicitation, timestamps, information, address masks: RFC 1122, 792.
            (Self::Other { kind, .. }, Version::V4) => !matches!(kind, 9 | 10 | 13..=18),
            (Self::Other { kind, .. }, Version::V6) => kind < 128,
        }
    }

    /// The type and code that stand for the message.
    fn kind_and_code(&self, version: Version) -> (u8, u8) {
        use Unreachable as U;
        match (*self, version) {
            (Self::EchoRequest { .. }, Version::V4) => (8, 0),
            (Self::EchoReply { .. }, Version::V4) => (0, 0),
            (Self::TimeExceeded, Version::V4) => (11, 0),
            (Self::PacketTooBig { .. }, Version::V4) => (3, 4),
            (Self::Unreachable(reason), Version::V4) => match reason {
                U::Network => (3, 0),
                U::Host => (3, 1),
                U::Protocol => (3, 2),
                U::Port => (3, 3),
                U::Prohibited => (3, 13),
                U::Other(code) => (3, code),
            },
            (Self::EchoRequest { .. }, Version::V6) => (128, 0),
            (Self::EchoReply { .. }, Version::V6) => (129, 0),
            (Self::TimeExceeded, Version::V6) => (3, 0),
            (Self::PacketTooBig { .. }, Version::V6) => (2, 0),
            (Self::Unreachable(reason), Version::V6) => match reason {
                U::Network => (1, 0),
                U::Prohibited => (1, 1),
                U::Host => (1, 3),
                U::Port => (1, 4),
                U::Protocol => (4, 1),
                U::Other(code) => (1, code),
            },
            (Self::Other { kind, code }, _) => (kind, code),
        }
    }

    /// The four bytes behind the checksum.
    fn rest(&self, version: Version) -> [u8; 4] {
        match *self {
            Self::EchoRequest { identifier, sequence } | Self::EchoReply { identifier, sequence } => {
                let ([i0, i1], [s0, s1]) = (identifier.to_be_bytes(), sequence.to_be_bytes());
                [i0, i1, s0, s1]
            }
            // RFC 1191 section 4: the MTU stands in the lower 16 bits.
            Self::PacketTooBig { mtu } if version == Version::V4 => mtu.min(0xffff).to_be_bytes(),
            Self::PacketTooBig { mtu } => mtu.to_be_bytes(),
            // RFC 4443 section 3.4: where the next-header field is. Exact when there are no extension headers.
            Self::Unreachable(Unreachable::Protocol) if version == Version::V6 => 6u32.to_be_bytes(),
            Self::Unreachable(_) | Self::TimeExceeded | Self::Other { .. } => [0; 4],
        }
    }

    fn read(version: Version, kind: u8, code: u8, rest: [u8; 4]) -> Self {
        use Unreachable as U;
        let [r0, r1, r2, r3] = rest;
        let (identifier, sequence) = (u16::from_be_bytes([r0, r1]), u16::from_be_bytes([r2, r3]));
        match (version, kind, code) {
            (Version::V4, 8, 0) | (Version::V6, 128, 0) => Self::EchoRequest { identifier, sequence },
            (Version::V4, 0, 0) | (Version::V6, 129, 0) => Self::EchoReply { identifier, sequence },
            (Version::V4, 11, _) | (Version::V6, 3, _) => Self::TimeExceeded,
            (Version::V4, 3, 4) => Self::PacketTooBig { mtu: sequence.into() },
            (Version::V6, 2, _) => Self::PacketTooBig { mtu: u32::from_be_bytes(rest) },
            (Version::V4, 3, 0) | (Version::V6, 1, 0) => Self::Unreachable(U::Network),
            (Version::V4, 3, 1) | (Version::V6, 1, 3) => Self::Unreachable(U::Host),
            (Version::V4, 3, 2) | (Version::V6, 4, 1) => Self::Unreachable(U::Protocol),
            (Version::V4, 3, 3) | (Version::V6, 1, 4) => Self::Unreachable(U::Port),
            (Version::V4, 3, 13) | (Version::V6, 1, 1) => Self::Unreachable(U::Prohibited),
            (Version::V4, 3, code) | (Version::V6, 1, code) => Self::Unreachable(U::Other(code)),
            (_, kind, code) => Self::Other { kind, code },
        }
    }
}

/// Reads a message (an IP packet's payload) and verifies its checksum, which in IPv6 covers the addresses. The body
/// begins at [`HEADER`].
pub fn parse(source: IpAddr, destination: IpAddr, bytes: &[u8]) -> Result<Message, Malformed> {
    let message = parse_quoted(Version::of(source), bytes)?;
    if checksum_of(source, destination, bytes) != 0 {
        return Err(Malformed::corrupt("ICMP", "checksum"));
    }
    Ok(message)
}

/// Reads the header of a message that an error quotes: its end may be missing, so its checksum is not looked at.
pub fn parse_quoted(version: Version, bytes: &[u8]) -> Result<Message, Malformed> {
    let Some(&[kind, code, _, _, r0, r1, r2, r3]) = bytes.first_chunk::<HEADER>() else {
        return Err(Malformed::truncated("ICMP", "header", HEADER, bytes.len()));
    };
    Ok(Message::read(version, kind, code, [r0, r1, r2, r3]))
}

/// Puts the header of `message`, with its checksum, in front of the body in `buffer`. The version is the addresses'.
pub fn prepend(buffer: &mut Buffer, source: IpAddr, destination: IpAddr, message: Message) {
    let version = Version::of(source);
    let (kind, code) = message.kind_and_code(version);
    let [r0, r1, r2, r3] = message.rest(version);
    buffer.prepend(HEADER).copy_from_slice(&[kind, code, 0, 0, r0, r1, r2, r3]);
    let sum = checksum_of(source, destination, buffer);
    buffer[2..4].copy_from_slice(&sum.to_be_bytes());
}

/// The body of an error about `packet`: as much of it as fits an error of 576 bytes in IPv4 (RFC 1812 section
/// 4.3.2.3), of 1280 in IPv6 (RFC 4443 section 2.4).
pub fn quote(version: Version, packet: &[u8]) -> &[u8] {
    let longest = match version {
        Version::V4 => 576,
        Version::V6 => 1280,
    };
    let room = longest - version.header_len() - HEADER;
    &packet[..packet.len().min(room)]
}

/// The protocol number that carries ICMP.
pub const fn protocol(version: Version) -> u8 {
    match version {
        Version::V4 => ip::ICMP,
        Version::V6 => ip::ICMPV6,
    }
}

fn checksum_of(source: IpAddr, destination: IpAddr, bytes: &[u8]) -> u16 {
    match source {
        IpAddr::V4(_) => checksum::checksum(bytes),
        IpAddr::V6(_) => checksum::transport(source, destination, ip::ICMPV6, bytes),
    }
}
