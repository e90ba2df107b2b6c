//! NORM_NACK and NORM_ACK: what receivers send to a sender (RFC 5740, sections 4.3.1 and 4.3.2).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                           server_id                           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |          instance_id          | NACK: reserved                |
//! |                               | ACK: ack_type |    ack_id     |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                       grtt_response_sec                       |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                       grtt_response_usec                      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | header extensions: EXT_CC                                     …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | NACK: requests for repair    ACK: as its type has it          …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! The payload of an ACK of type FLUSH is a [`Position`], the one that was asked about.

use hopcast_core::{Duration, Instant};

use super::extension::Extensions;
use super::{CcFeedback, Lengths, Malformed, NodeId, Position, Reader, Repair, Writer, repair};

/// A sender's clock, as it sends it and receivers send it back; zero in feedback of a receiver that has not heard it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamp {
    /// Seconds.
    pub seconds: u32,
    /// Microseconds; below a million, but what others send may be anything.
    pub micros: u32,
}

impl Timestamp {
    /// Length on the wire, in bytes.
    pub(super) const LEN: usize = 8;

    /// The clock at `now`.
    pub const fn of(now: Instant) -> Self {
        let nanos = now.as_nanos();
        Self { seconds: (nanos / 1_000_000_000) as u32, micros: (nanos % 1_000_000_000 / 1000) as u32 }
    }

    /// Whether a receiver had nothing to send back.
    pub const fn is_zero(self) -> bool {
        self.seconds == 0 && self.micros == 0
    }

    /// The same some time later.
    #[must_use]
    pub const fn after(self, time: Duration) -> Self {
        let micros = self.micros as u64 + time.as_micros();
        let seconds = (micros / 1_000_000) as u32;
        Self { seconds: self.seconds.wrapping_add(seconds), micros: (micros % 1_000_000) as u32 }
    }

    /// Time from an `earlier` one to this one; `None` if it is not earlier.
    pub const fn since(self, earlier: Self) -> Option<Duration> {
        let seconds = self.seconds.wrapping_sub(earlier.seconds) as i32 as i64;
        let micros = seconds * 1_000_000 + self.micros as i64 - earlier.micros as i64;
        if micros < 0 { None } else { Some(Duration::from_micros(micros as u64)) }
    }

    pub(super) fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, Malformed> {
        Ok(Self { seconds: reader.u32(field)?, micros: reader.u32(field)? })
    }

    pub(super) fn write(self, out: &mut Writer<'_>) {
        out.u32(self.seconds);
        out.u32(self.micros);
    }
}

/// Length of the fields that NACK and ACK have in common, in bytes.
const COMMON: usize = 4 + 4 + Timestamp::LEN;

/// NORM_NACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nack {
    /// The sender that is meant.
    pub sender: NodeId,
    /// Its instance.
    pub instance: u16,
    /// The time that it last sent by its clock, and the time since then added; zero if nothing.
    pub grtt_response: Timestamp,
    /// Feedback for congestion control.
    pub cc: Option<CcFeedback>,
    /// The missing parts.
    pub repairs: Vec<Repair>,
}

impl Nack {
    /// Length of a NORM_NACK without requests, in bytes.
    pub const fn overhead(with_cc: bool) -> usize {
        super::COMMON_LEN + COMMON + if with_cc { CcFeedback::LEN } else { 0 }
    }

    pub(super) fn read(header: &mut Reader<'_>, rest: &mut Reader<'_>) -> Result<Self, Malformed> {
        let sender = NodeId(header.u32("server")?);
        let instance = header.u16("instance")?;
        let _ = header.u16("reserved")?;
        let grtt_response = Timestamp::read(header, "GRTT response")?;
        let cc = Extensions::read(header, None)?.cc;
        Ok(Self { sender, instance, grtt_response, cc, repairs: Repair::read_all(rest)? })
    }

    pub(super) fn lengths(&self) -> Lengths {
        let header = Self::overhead(self.cc.is_some()) - super::COMMON_LEN;
        Lengths { header, list: repair::len_of(&self.repairs) }
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        out.u32(self.sender.0);
        out.u16(self.instance);
        out.u16(0);
        self.grtt_response.write(out);
        Extensions { cc: self.cc, ..Extensions::default() }.write(out);
        self.repairs.iter().for_each(|repair| repair.write(out));
    }
}

/// NORM_ACK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// The sender that is meant.
    pub sender: NodeId,
    /// Its instance.
    pub instance: u16,
    /// Identifier of the request: of NORM_CMD(ACK_REQ) its own, otherwise 0.
    pub id: u8,
    /// The time that the sender last sent by its clock, and the time since then added; zero if nothing.
    pub grtt_response: Timestamp,
    /// Feedback for congestion control.
    pub cc: Option<CcFeedback>,
    /// The acknowledged part.
    pub what: Acknowledged<'a>,
}

/// The subject of a NORM_ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledged<'a> {
    /// A NORM_CMD(CC).
    CongestionControl,
    /// All up to this position: an answer to a NORM_CMD(FLUSH) that named the receiver.
    Flush(Position),
    /// The answer to a NORM_CMD(ACK_REQ) of this type; 16 and above are the applications'.
    Other {
        /// `ack_type`.
        kind: u8,
        /// The application's own.
        payload: &'a [u8],
    },
}

impl Acknowledged<'_> {
    /// `ack_type` of congestion control (this and the others: RFC 5740, section 4.2.3.6).
    pub const CONGESTION_CONTROL: u8 = 1;
    /// `ack_type` of an answer to NORM_CMD(FLUSH).
    pub const FLUSH: u8 = 2;
    /// The first `ack_type` of applications.
    pub const APPLICATION: u8 = 16;

    /// The number on the wire.
    pub const fn kind(&self) -> u8 {
        match *self {
            Self::CongestionControl => Self::CONGESTION_CONTROL,
            Self::Flush(_) => Self::FLUSH,
            Self::Other { kind, .. } => kind,
        }
    }
}

impl<'a> Ack<'a> {
    pub(super) fn read(header: &mut Reader<'a>, rest: &mut Reader<'a>) -> Result<Self, Malformed> {
        let sender = NodeId(header.u32("server")?);
        let instance = header.u16("instance")?;
        let (kind, id) = (header.u8("ACK type")?, header.u8("ACK id")?);
        let grtt_response = Timestamp::read(header, "GRTT response")?;
        let cc = Extensions::read(header, None)?.cc;
        let what = match kind {
            Acknowledged::CONGESTION_CONTROL => Acknowledged::CongestionControl,
            Acknowledged::FLUSH => Acknowledged::Flush(Position::read(rest, "ACK position")?),
            kind => Acknowledged::Other { kind, payload: rest.take_rest() },
        };
        Ok(Self { sender, instance, id, grtt_response, cc, what })
    }

    pub(super) fn lengths(&self) -> Lengths {
        let list = match self.what {
            Acknowledged::Flush(position) => Position::len(position.fec),
            Acknowledged::CongestionControl | Acknowledged::Other { .. } => 0,
        };
        Lengths { header: COMMON + if self.cc.is_some() { CcFeedback::LEN } else { 0 }, list }
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        out.u32(self.sender.0);
        out.u16(self.instance);
        out.u8(self.what.kind());
        out.u8(self.id);
        self.grtt_response.write(out);
        Extensions { cc: self.cc, ..Extensions::default() }.write(out);
        if let Acknowledged::Flush(position) = &self.what {
            position.write(out);
        }
    }
}
