//! The packets of PGM (RFC 3208, section 8), each an IP packet of protocol 113, or a UDP datagram. Integers are in
//! network byte order.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |         source port           |       destination port        |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |version|  type |P|V| |     |N|E|           checksum            |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        global source id                       …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |   ... global source id        |    payload length (TSDU)      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | the rest of the packet's own header                           …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | options, if E is set                                          …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | payload                                                       …
//! ```
//!
//! The version is 0. P says parity, V that the packets of its transmission group have several lengths, N that network
//! elements must read the options. From receivers to a source the ports are swapped; ports here are PGM's, beside
//! those of UDP. The checksum is that of the Internet, over the whole packet; 0 is none, which data must not have.
//!
//! In UDP the packet is the datagram, on port [`UDP_MULTICAST`] to a group and on [`UDP_UNICAST`] to one address.

use std::net::IpAddr;

use hopcast_core::Buffer;
pub use hopcast_core::bytes::Malformed;
use hopcast_core::bytes::{Reader, Writer};

mod address;
mod body;
mod checksum;
mod option;

#[cfg(test)]
mod tests;

pub use body::{Ack, Body, Data, Nak, Poll, PollKind, PollResponse, Spm};
pub use checksum::checksum;
pub(super) use option::MAX_NAK_LIST;
pub use option::{
    AsOf, BackOffInterval, BackOffRange, CongestionData, CongestionFeedback, Fragment, Member, Options,
    Parity,
};

/// Number of the protocol in an IP header (RFC 3208, section 8).
pub const IP_PROTOCOL: u8 = 113;
/// Port of UDP for packets to one address, as OpenPGM and others have it.
pub const UDP_UNICAST: u16 = 3055;
/// Port of UDP for packets to a group.
pub const UDP_MULTICAST: u16 = 3056;

/// Length of the header that all packets have, in bytes.
pub const HEADER_LEN: usize = 16;
/// Place of the type.
const TYPE: usize = 4;
/// Place of the checksum.
const CHECKSUM: std::ops::Range<usize> = 6..8;

const SPM: u8 = 0x00;
const POLL: u8 = 0x01;
const POLR: u8 = 0x02;
const ODATA: u8 = 0x04;
const RDATA: u8 = 0x05;
const NAK: u8 = 0x08;
const NNAK: u8 = 0x09;
const NCF: u8 = 0x0A;
const SPMR: u8 = 0x0C;
const ACK: u8 = 0x0D;

/// Flags of the header: parity, several lengths, options for network elements, options at all.
const PARITY: u8 = 0x80;
const VARIABLE: u8 = 0x40;
const NETWORK: u8 = 0x02;
const PRESENT: u8 = 0x01;

/// Identifier of a transport session: of a source, and of one run of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tsi {
    /// Global source id.
    pub gsi: [u8; 6],
    /// Port of the source, by which it tells its sessions apart.
    pub port: u16,
}

/// A packet of PGM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The session that it belongs to, whoever sends it.
    pub session: Tsi,
    /// Data-destination port, by which applications are told apart.
    pub port: u16,
    /// Whether it is about parity: a parity packet, a request for parity, or its confirmation.
    pub is_parity: bool,
    /// Of a parity packet, whether the packets of its transmission group have several lengths: the last two bytes of
    /// its payload are then parity of their lengths.
    pub is_variable: bool,
    /// The packet itself.
    pub body: Body,
    /// Its options.
    pub options: Options,
    /// The payload; of all but data it is empty.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// A packet without options and payload.
    pub fn new(session: Tsi, port: u16, body: Body) -> Self {
        Self {
            session,
            port,
            is_parity: false,
            is_variable: false,
            body,
            options: Options::default(),
            payload: &[],
        }
    }

    /// Reads a packet, which is all of `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] with the field that is cut off or has a value that it must not have.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let ports = (reader.u16("source port")?, reader.u16("destination port")?);
        let kind = reader.u8("type")?;
        Malformed::unless(kind >> 6 == 0, "version")?;
        let flags = reader.u8("options flags")?;
        let sum = reader.u16("checksum")?;
        let gsi = reader.array("global source id")?;
        let payload_len = reader.u16("payload length")?;
        let is_data = matches!(kind, ODATA | RDATA);
        Malformed::unless(sum == 0 && !is_data || sum != 0 && checksum(bytes) == sum, "checksum")?;

        let is_upstream = matches!(kind, NAK | NNAK | SPMR | POLR | ACK);
        let (port, source) = if is_upstream { ports } else { (ports.1, ports.0) };
        let body = Body::read(kind, &mut reader)?;
        let options = if flags & PRESENT == 0 { Options::default() } else { Options::read(&mut reader)? };
        let payload = reader.take_rest();
        Malformed::unless(payload.len() == usize::from(payload_len), "payload length")?;
        Ok(Self {
            session: Tsi { gsi, port: source },
            port,
            is_parity: flags & PARITY != 0,
            is_variable: flags & VARIABLE != 0,
            body,
            options,
            payload,
        })
    }

    /// Length of the packet, in bytes.
    pub fn len(&self) -> usize {
        self.header_len() + self.payload.len()
    }

    /// Never: a packet has a header.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Length before the payload, options included.
    pub fn header_len(&self) -> usize {
        HEADER_LEN + self.body.len() + self.options.len()
    }

    /// The packet, with its checksum.
    pub fn emit(&self) -> Buffer {
        self.emit_before(Buffer::copy_from(self.payload))
    }

    /// The packet, where `payload` already holds the payload: what the packet itself points to is not looked at.
    pub fn emit_before(&self, mut payload: Buffer) -> Buffer {
        let payload_len = payload.len() as u16;
        let kind = self.body.kind();
        let mut out = Writer::new(payload.prepend(self.header_len()));
        let is_upstream = self.is_upstream();
        let ports = if is_upstream { (self.port, self.session.port) } else { (self.session.port, self.port) };
        out.u16(ports.0);
        out.u16(ports.1);
        out.u8(kind);
        out.u8(if self.is_parity { PARITY } else { 0 }
            | if self.is_variable { VARIABLE } else { 0 }
            | if self.options.is_for_network(kind) { NETWORK } else { 0 }
            | if self.options.is_empty() { 0 } else { PRESENT });
        out.u16(0);
        out.put(&self.session.gsi);
        out.u16(payload_len);
        self.body.write(&mut out);
        self.options.write(&mut out);
        debug_assert!(out.rest().is_empty(), "the lengths are those of what is written");
        seal(&mut payload);
        payload
    }

    /// Whether it goes from a receiver to a source, so that its ports are swapped.
    pub const fn is_upstream(&self) -> bool {
        matches!(
            self.body,
            Body::Nak(_) | Body::NullNak(_) | Body::SpmRequest | Body::PollResponse(_) | Body::Ack(_)
        )
    }
}

/// Whether a packet is of a type that network elements look at, whoever it is addressed to, so that its IP header bears
/// a Router Alert: SPM, NCF, RDATA and POLL (RFC 3208, section 8).
pub fn alerts_routers(packet: &[u8]) -> bool {
    matches!(packet.get(TYPE), Some(&(SPM | NCF | RDATA | POLL)))
}

/// Replaces the path in an SPM or POLL by a network element's own address, of the same family, and its checksum.
///
/// # Errors
/// [`Malformed`] if it is none of these, or the addresses are of two families.
pub fn set_path(bytes: &mut [u8], path: IpAddr) -> Result<(), Malformed> {
    let kind = Packet::parse(bytes)?.body.kind();
    let place = match kind {
        SPM => Spm::PATH,
        POLL => Poll::PATH,
        _ => return Err(Malformed { field: "type" }),
    };
    let place = HEADER_LEN + place;
    let before = address::read(&mut Reader::new(&bytes[place..]), "path")?;
    Malformed::unless(before.is_ipv4() == path.is_ipv4(), "path")?;
    address::write(path, &mut Writer::new(&mut bytes[place..]));
    seal(bytes);
    Ok(())
}

/// Writes the checksum of a packet.
fn seal(packet: &mut [u8]) {
    let sum = checksum(packet);
    packet[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
}
