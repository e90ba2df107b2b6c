//! The messages of NORM (RFC 5740, section 4), each a UDP datagram. Integers are in network byte order.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |version|  type |    hdr_len    |           sequence            |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                           source_id                           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | the rest of the message's own header                          …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | header extensions                                             …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | payload, or a list                                            …
//! ```
//!
//! The version is 1. `hdr_len` counts 32-bit words, extensions included. Types are INFO 1, DATA 2, CMD 3, NACK 4 and
//! ACK 5; libnorm also numbers a REPORT 6, which it never sends and nobody need read.
//!
//! [`Message::parse`] copies no payload: [`Info`], [`Data`] and others point into the datagram. Lists are as long as
//! the datagram has them, and no longer. Reserved bits are sent as zeros and ignored.

use hopcast_core::Buffer;
pub use hopcast_core::bytes::Malformed;
use hopcast_core::bytes::{Reader, Writer};

mod bits;
mod command;
mod extension;
mod fec_id;
mod feedback;
mod object;
pub mod quantise;
mod repair;
pub mod serial;

#[cfg(test)]
pub(crate) mod fti;
#[cfg(test)]
mod tests;

pub use command::{CcNode, Command};
pub use extension::{CcFeedback, CcFlags, Fti};
pub use fec_id::{Fec, PayloadId, Position};
pub use feedback::{Ack, Acknowledged, Nack, Timestamp};
pub use object::{Data, Flags, Header, Info, StreamHeader};
pub use repair::{Repair, RepairFlags, RepairForm};

/// Length of the header that all messages have, in bytes.
const COMMON_LEN: usize = 8;
/// The only version (RFC 5740, section 4.1).
const VERSION: u8 = 1;

const INFO: u8 = 1;
const DATA: u8 = 2;
const COMMAND: u8 = 3;
const NACK: u8 = 4;
const ACK: u8 = 5;

/// Identifier of a member of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// Nobody.
    pub const NONE: Self = Self(0);
    /// Everybody.
    pub const ANY: Self = Self(u32::MAX);
}

/// A message of NORM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Sequence number of the datagram: of each member one for all that it sends, whatever it is.
    pub sequence: u16,
    /// The member that sends it.
    pub source: NodeId,
    /// The message itself.
    pub body: Body<'a>,
}

/// The body of a message, after the header that all have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// NORM_INFO, from a sender.
    Info(Info<'a>),
    /// NORM_DATA, from a sender.
    Data(Data<'a>),
    /// NORM_CMD, from a sender.
    Command(Header, Command<'a>),
    /// NORM_NACK, from a receiver.
    Nack(Nack),
    /// NORM_ACK, from a receiver.
    Ack(Ack<'a>),
}

impl<'a> Message<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// [`Malformed`] with the field that is cut off or has a value that it must not have.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(datagram);
        let first = reader.u8("version")?;
        Malformed::unless(first >> 4 == VERSION, "version")?;
        let header_len = 4 * usize::from(reader.u8("header length")?);
        let sequence = reader.u16("sequence")?;
        let source = NodeId(reader.u32("source")?);
        let (header, rest) =
            datagram.split_at_checked(header_len).ok_or(Malformed { field: "header length" })?;
        let header = header.get(COMMON_LEN..).ok_or(Malformed { field: "header length" })?;
        let (mut header, mut rest) = (Reader::new(header), Reader::new(rest));
        let body = match first & 0xF {
            INFO => Body::Info(Info::read(&mut header, &mut rest)?),
            DATA => Body::Data(Data::read(&mut header, &mut rest)?),
            COMMAND => {
                let sender = Header::read(&mut header)?;
                Body::Command(sender, Command::read(&mut header, &mut rest)?)
            }
            NACK => Body::Nack(Nack::read(&mut header, &mut rest)?),
            ACK => Body::Ack(Ack::read(&mut header, &mut rest)?),
            _ => return Err(Malformed { field: "type" }),
        };
        Ok(Self { sequence, source, body })
    }

    /// Length of the datagram, in bytes.
    pub fn len(&self) -> usize {
        self.lengths().total() + self.payload().len()
    }

    /// Never: a message has a header.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The datagram.
    pub fn emit(&self) -> Buffer {
        self.emit_before(Buffer::copy_from(self.payload()))
    }

    /// The datagram, where `payload` already holds the payload: what the message itself points to is not looked at.
    /// Lists count as the message's own and are written.
    pub fn emit_before(&self, mut payload: Buffer) -> Buffer {
        let lengths = self.lengths();
        let mut out = Writer::new(payload.prepend(lengths.total()));
        let kind = match &self.body {
            Body::Info(_) => INFO,
            Body::Data(_) => DATA,
            Body::Command(..) => COMMAND,
            Body::Nack(_) => NACK,
            Body::Ack(_) => ACK,
        };
        out.u8(VERSION << 4 | kind);
        out.u8((lengths.header / 4) as u8);
        out.u16(self.sequence);
        out.u32(self.source.0);
        match &self.body {
            Body::Info(info) => info.write(&mut out),
            Body::Data(data) => data.write(&mut out),
            Body::Command(header, command) => {
                header.write(&mut out);
                command.write(&mut out);
            }
            Body::Nack(nack) => nack.write(&mut out),
            Body::Ack(ack) => ack.write(&mut out),
        }
        debug_assert!(out.rest().is_empty(), "the lengths are those of what is written");
        payload
    }

    fn payload(&self) -> &'a [u8] {
        match &self.body {
            Body::Info(info) => info.payload,
            Body::Data(data) => data.payload,
            Body::Command(_, Command::Application(payload)) => payload,
            Body::Ack(Ack { what: Acknowledged::Other { payload, .. }, .. }) => payload,
            Body::Command(..) | Body::Nack(_) | Body::Ack(_) => &[],
        }
    }

    fn lengths(&self) -> Lengths {
        let own = match &self.body {
            Body::Info(info) => info.lengths(),
            Body::Data(data) => data.lengths(),
            Body::Command(_, command) => command.lengths(),
            Body::Nack(nack) => nack.lengths(),
            Body::Ack(ack) => ack.lengths(),
        };
        Lengths { header: COMMON_LEN + own.header, ..own }
    }
}

/// Lengths of the fields before a message's payload, in bytes.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    /// Header and extensions; a multiple of 4.
    header: usize,
    list: usize,
}

impl Lengths {
    const fn total(self) -> usize {
        self.header + self.list
    }
}

/// The members that a list names.
fn read_nodes(reader: &mut Reader<'_>, field: &'static str) -> Result<Vec<NodeId>, Malformed> {
    let bytes = reader.take_rest();
    let (nodes, rest) = bytes.as_chunks();
    Malformed::unless(rest.is_empty(), field)?;
    Ok(nodes.iter().map(|&node| NodeId(u32::from_be_bytes(node))).collect())
}

fn write_nodes(nodes: &[NodeId], out: &mut Writer<'_>) {
    nodes.iter().for_each(|node| out.u32(node.0));
}
