//! NORM_CMD: the messages of a sender besides objects (RFC 5740, section 4.2.3).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |          instance_id          |     grtt      |backoff| gsize |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |    flavor     | 24 bits of the flavor's own, and what follows:
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! FLUSH 1       fec_id (8)  object_transport_id (16)  fec_payload_id    | members that are to acknowledge (32 each)
//! EOT 2         reserved (24)
//! SQUELCH 3     fec_id (8)  object_transport_id (16)  fec_payload_id    | objects that are no more (16 each)
//! CC 4          reserved (8)  cc_sequence (16)  send_time (32 + 32)  EXT_RATE    | receivers:
//!                   node id (32)  cc_flags (8)  cc_rtt (8)  cc_rate (16)
//! REPAIR_ADV 5  flags (8)  reserved (16)  EXT_CC    | requests for repair, as in NORM_NACK
//! ACK_REQ 6     reserved (8)  ack_type (8)  ack_id (8)    | members that are to acknowledge (32 each)
//! APPLICATION 7 reserved (24)    | the application's own
//! ```
//!
//! Fields after a bar are no part of the header that `hdr_len` counts.

use super::extension::Extensions;
use super::{
    CcFeedback, CcFlags, Fec, Header, Lengths, Malformed, NodeId, Position, Reader, Repair, Timestamp,
    Writer, read_nodes, repair, write_nodes,
};

// Flavors, as drawn above (RFC 5740, sections 4.2.3.1 to 4.2.3.7).

const FLUSH: u8 = 1;
const EOT: u8 = 2;
const SQUELCH: u8 = 3;
const CC: u8 = 4;
const REPAIR_ADV: u8 = 5;
const ACK_REQ: u8 = 6;
const APPLICATION: u8 = 7;

/// Flag of NORM_CMD(REPAIR_ADV): the list is cut short.
const LIMIT: u8 = 1;
/// Flag of libnorm in the reserved byte of NORM_CMD(CC): the sender has heard from no receiver yet.
const SYN: u8 = 1;

/// A NORM_CMD, without the sender's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// The sender has nothing more to send than up to this position.
    Flush {
        /// The last symbol sent.
        last: Position,
        /// Members that are to acknowledge that they have everything up to there.
        acknowledge: Vec<NodeId>,
    },
    /// The sender leaves.
    EndOfTransmission,
    /// Requests were for data that the sender no longer has.
    Squelch {
        /// The first symbol that can still be repaired.
        first: Position,
        /// Objects after it that cannot.
        invalid: Vec<u16>,
    },
    /// Probe for round trips and congestion control.
    CongestionControl {
        /// Sequence number of the probe.
        sequence: u16,
        /// The sender's clock.
        sent: Timestamp,
        /// The rate at which it sends, as [`quantise::rate`](super::quantise::rate) reads it; with congestion control.
        rate: Option<u16>,
        /// libnorm's flag: the sender has heard from no receiver yet.
        syn: bool,
        /// Receivers that limit the rate.
        nodes: Vec<CcNode>,
    },
    /// Requests that the sender has received by unicast, so that others need not repeat them.
    RepairAdvertisement {
        /// Whether there were more.
        limited: bool,
        /// Feedback for congestion control that others need not exceed.
        cc: Option<CcFeedback>,
        /// The requests.
        repairs: Vec<Repair>,
    },
    /// A request for acknowledgement.
    AcknowledgementRequest {
        /// `ack_type`; see [`Acknowledged`](super::Acknowledged).
        kind: u8,
        /// Identifier of the request.
        id: u8,
        /// Members that are to acknowledge.
        acknowledge: Vec<NodeId>,
    },
    /// A command of the application, which is delivered at best.
    Application(&'a [u8]),
}

/// A receiver in a NORM_CMD(CC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CcNode {
    /// The receiver.
    pub node: NodeId,
    /// Its state.
    pub flags: CcFlags,
    /// Its round trip, as [`quantise::rtt`](super::quantise::rtt) reads it.
    pub rtt: u8,
    /// Its rate, as [`quantise::rate`](super::quantise::rate) reads it.
    pub rate: u16,
}

impl CcNode {
    const LEN: usize = 8;
}

impl<'a> Command<'a> {
    pub(super) fn read(header: &mut Reader<'a>, rest: &mut Reader<'a>) -> Result<Self, Malformed> {
        match header.u8("command flavor")? {
            FLUSH => {
                let last = read_position(header)?;
                Extensions::read(header, Some(last.fec))?;
                Ok(Self::Flush { last, acknowledge: read_nodes(rest, "acknowledging nodes")? })
            }
            EOT => {
                header.take(3, "reserved")?;
                Extensions::read(header, None)?;
                Ok(Self::EndOfTransmission)
            }
            SQUELCH => {
                let first = read_position(header)?;
                Extensions::read(header, Some(first.fec))?;
                let (objects, odd) = rest.take_rest().as_chunks();
                Malformed::unless(odd.is_empty(), "invalid objects")?;
                let invalid = objects.iter().map(|&object| u16::from_be_bytes(object)).collect();
                Ok(Self::Squelch { first, invalid })
            }
            CC => {
                let syn = header.u8("reserved")? & SYN != 0;
                let sequence = header.u16("congestion control sequence")?;
                let sent = Timestamp::read(header, "send time")?;
                let rate = Extensions::read(header, None)?.rate;
                let mut nodes = Vec::with_capacity(rest.rest().len() / CcNode::LEN);
                while !rest.is_empty() {
                    nodes.push(read_cc_node(rest)?);
                }
                Ok(Self::CongestionControl { sequence, sent, rate, syn, nodes })
            }
            REPAIR_ADV => {
                let limited = header.u8("repair flags")? & LIMIT != 0;
                let _ = header.u16("reserved")?;
                let cc = Extensions::read(header, None)?.cc;
                Ok(Self::RepairAdvertisement { limited, cc, repairs: Repair::read_all(rest)? })
            }
            ACK_REQ => {
                let _ = header.u8("reserved")?;
                let (kind, id) = (header.u8("ACK type")?, header.u8("ACK id")?);
                Extensions::read(header, None)?;
                let acknowledge = read_nodes(rest, "acknowledging nodes")?;
                Ok(Self::AcknowledgementRequest { kind, id, acknowledge })
            }
            APPLICATION => {
                header.take(3, "reserved")?;
                Extensions::read(header, None)?;
                Ok(Self::Application(rest.take_rest()))
            }
            _ => Err(Malformed { field: "command flavor" }),
        }
    }

    pub(super) fn lengths(&self) -> Lengths {
        let (own, list) = match self {
            Self::Flush { last, acknowledge } => (last.fec.payload_id_len(), 4 * acknowledge.len()),
            Self::Squelch { first, invalid } => (first.fec.payload_id_len(), 2 * invalid.len()),
            Self::CongestionControl { rate, nodes, .. } => {
                let extensions = Extensions { rate: *rate, ..Extensions::default() };
                (Timestamp::LEN + extensions.len(), CcNode::LEN * nodes.len())
            }
            Self::RepairAdvertisement { cc, repairs, .. } => {
                (Extensions { cc: *cc, ..Extensions::default() }.len(), repair::len_of(repairs))
            }
            Self::AcknowledgementRequest { acknowledge, .. } => (0, 4 * acknowledge.len()),
            Self::EndOfTransmission | Self::Application(_) => (0, 0),
        };
        Lengths { header: Header::LEN + 4 + own, list }
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        match self {
            Self::Flush { last, acknowledge } => {
                write_position(FLUSH, last, out);
                write_nodes(acknowledge, out);
            }
            Self::EndOfTransmission => {
                out.u8(EOT);
                out.u24(0);
            }
            Self::Squelch { first, invalid } => {
                write_position(SQUELCH, first, out);
                invalid.iter().for_each(|&object| out.u16(object));
            }
            Self::CongestionControl { sequence, sent, rate, syn, nodes } => {
                out.u8(CC);
                out.u8(if *syn { SYN } else { 0 });
                out.u16(*sequence);
                sent.write(out);
                Extensions { rate: *rate, ..Extensions::default() }.write(out);
                nodes.iter().for_each(|node| write_cc_node(node, out));
            }
            Self::RepairAdvertisement { limited, cc, repairs } => {
                out.u8(REPAIR_ADV);
                out.u8(if *limited { LIMIT } else { 0 });
                out.u16(0);
                Extensions { cc: *cc, ..Extensions::default() }.write(out);
                repairs.iter().for_each(|repair| repair.write(out));
            }
            Self::AcknowledgementRequest { kind, id, acknowledge } => {
                out.u8(ACK_REQ);
                out.u8(0);
                out.u8(*kind);
                out.u8(*id);
                write_nodes(acknowledge, out);
            }
            Self::Application(_) => {
                out.u8(APPLICATION);
                out.u24(0);
            }
        }
    }
}

fn read_position(header: &mut Reader<'_>) -> Result<Position, Malformed> {
    let fec = Fec::of(header.u8("FEC encoding id")?)?;
    Position::read_after(fec, header, "object")
}

fn write_position(flavor: u8, position: &Position, out: &mut Writer<'_>) {
    out.u8(flavor);
    out.u8(position.fec.id());
    position.write_after(out);
}

fn read_cc_node(rest: &mut Reader<'_>) -> Result<CcNode, Malformed> {
    const FIELD: &str = "congestion control nodes";
    Ok(CcNode {
        node: NodeId(rest.u32(FIELD)?),
        flags: CcFlags(rest.u8(FIELD)?),
        rtt: rest.u8(FIELD)?,
        rate: rest.u16(FIELD)?,
    })
}

fn write_cc_node(node: &CcNode, out: &mut Writer<'_>) {
    out.u32(node.node.0);
    out.u8(node.flags.0);
    out.u8(node.rtt);
    out.u16(node.rate);
}
