//! What follows the common header, of each type of packet.

use std::net::IpAddr;

use hopcast_core::Duration;

use super::{ACK, Malformed, NAK, NCF, NNAK, ODATA, POLL, POLR, RDATA, Reader, SPM, SPMR, Writer, address};

/// A packet's own header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// SPM: the path to the source, and its window.
    Spm(Spm),
    /// ODATA: data for the first time.
    Original(Data),
    /// RDATA: data again, or parity.
    Repair(Data),
    /// NAK: a request for repairs, to the next element towards the source, or to other receivers.
    Nak(Nak),
    /// NNAK: a repairer has repaired what these sequence numbers name.
    NullNak(Nak),
    /// NCF: a NAK has arrived.
    Confirmation(Nak),
    /// SPMR: a request for an SPM. It has no header of its own.
    SpmRequest,
    /// POLL: a question to children, receivers or elements.
    Poll(Poll),
    /// POLR: its answer.
    PollResponse(PollResponse),
    /// ACK: what the acker has received (PGMCC).
    Ack(Ack),
}

/// Source path message (RFC 3208, section 8.1): sequence number, trail, lead, path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spm {
    /// Number of this SPM.
    pub sequence: u32,
    /// First sequence number that can be repaired.
    pub trail: u32,
    /// Last sequence number that was sent.
    pub lead: u32,
    /// Address to which requests go: of the source, or of the network element that the SPM came through last.
    pub path: IpAddr,
}

impl Spm {
    /// Place of the path behind the common header.
    pub(super) const PATH: usize = 12;
}

/// Header of ODATA and RDATA (section 8.2): sequence number, trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Sequence number. Of parity: the first of its transmission group, plus the parity packet's number.
    pub sequence: u32,
    /// First sequence number that can be repaired.
    pub trail: u32,
}

impl Data {
    /// Length on the wire, in bytes.
    pub const LEN: usize = 8;
}

/// Header of NAK, NNAK and NCF (section 8.3): sequence number, source, group. More numbers are in an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nak {
    /// Sequence number that is asked for. Of parity: the first of its transmission group, plus the number of parity
    /// packets less one.
    pub sequence: u32,
    /// Address of the source.
    pub source: IpAddr,
    /// Address of the group.
    pub group: IpAddr,
}

/// Header of POLL (section 14.7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// Number of this poll.
    pub sequence: u32,
    /// Round of this poll.
    pub round: u16,
    /// Who is asked.
    pub kind: PollKind,
    /// Address to which answers go.
    pub path: IpAddr,
    /// Maximum back-off of an answer, in microseconds.
    pub backoff: u32,
    /// Random number, of which the bits of `mask` must be those of whoever answers.
    pub random: u32,
    /// The bits that are compared; 0 asks all.
    pub mask: u32,
}

impl Poll {
    /// Place of the path behind the common header.
    pub(super) const PATH: usize = 8;

    /// Maximum back-off of an answer.
    pub const fn max_backoff(&self) -> Duration {
        Duration::from_micros(self.backoff as u64)
    }

    /// Whether a node with this random identifier is asked.
    pub const fn matches(&self, node: u32) -> bool {
        (node ^ self.random) & self.mask == 0
    }
}

/// Who a poll asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollKind {
    /// All children.
    General,
    /// Repairers beside the tree (DLR).
    Repairers,
    /// Others, whom nobody knows: left unanswered.
    Other(u16),
}

/// Header of POLR (section 14.7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollResponse {
    /// Number of the poll.
    pub sequence: u32,
    /// Its round.
    pub round: u16,
}

/// Header of an ACK, as OpenPGM has it after Rizzo's PGMCC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Highest sequence number received.
    pub highest: u32,
    /// The 32 up to it that were received; the lowest bit is the highest number.
    pub bitmap: u32,
}

impl Body {
    pub(super) fn read(kind: u8, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match kind {
            SPM => Self::Spm(Spm {
                sequence: reader.u32("SPM sequence number")?,
                trail: reader.u32("SPM trail")?,
                lead: reader.u32("SPM lead")?,
                path: address::read(reader, "SPM path")?,
            }),
            ODATA => Self::Original(read_data(reader)?),
            RDATA => Self::Repair(read_data(reader)?),
            NAK => Self::Nak(read_nak(reader)?),
            NNAK => Self::NullNak(read_nak(reader)?),
            NCF => Self::Confirmation(read_nak(reader)?),
            SPMR => Self::SpmRequest,
            POLL => Self::Poll(Poll {
                sequence: reader.u32("POLL sequence number")?,
                round: reader.u16("POLL round")?,
                kind: match reader.u16("POLL subtype")? {
                    0 => PollKind::General,
                    1 => PollKind::Repairers,
                    other => PollKind::Other(other),
                },
                path: address::read(reader, "POLL path")?,
                backoff: reader.u32("POLL back-off")?,
                random: reader.u32("POLL random string")?,
                mask: reader.u32("POLL mask")?,
            }),
            POLR => {
                let (sequence, round) = (reader.u32("POLR sequence number")?, reader.u16("POLR round")?);
                reader.u16("POLR reserved")?;
                Self::PollResponse(PollResponse { sequence, round })
            }
            ACK => Self::Ack(Ack { highest: reader.u32("ACK highest")?, bitmap: reader.u32("ACK bitmap")? }),
            _ => return Err(Malformed { field: "type" }),
        })
    }

    pub(super) const fn kind(&self) -> u8 {
        match self {
            Self::Spm(_) => SPM,
            Self::Original(_) => ODATA,
            Self::Repair(_) => RDATA,
            Self::Nak(_) => NAK,
            Self::NullNak(_) => NNAK,
            Self::Confirmation(_) => NCF,
            Self::SpmRequest => SPMR,
            Self::Poll(_) => POLL,
            Self::PollResponse(_) => POLR,
            Self::Ack(_) => ACK,
        }
    }

    pub(super) const fn len(&self) -> usize {
        match self {
            Self::Spm(spm) => Spm::PATH + address::len(spm.path),
            Self::Original(_) | Self::Repair(_) => Data::LEN,
            Self::Nak(nak) | Self::NullNak(nak) | Self::Confirmation(nak) => {
                4 + address::len(nak.source) + address::len(nak.group)
            }
            Self::SpmRequest => 0,
            Self::Poll(poll) => Poll::PATH + address::len(poll.path) + 12,
            Self::PollResponse(_) | Self::Ack(_) => 8,
        }
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        match self {
            Self::Spm(spm) => {
                out.u32(spm.sequence);
                out.u32(spm.trail);
                out.u32(spm.lead);
                address::write(spm.path, out);
            }
            Self::Original(data) | Self::Repair(data) => {
                out.u32(data.sequence);
                out.u32(data.trail);
            }
            Self::Nak(nak) | Self::NullNak(nak) | Self::Confirmation(nak) => {
                out.u32(nak.sequence);
                address::write(nak.source, out);
                address::write(nak.group, out);
            }
            Self::SpmRequest => {}
            Self::Poll(poll) => {
                out.u32(poll.sequence);
                out.u16(poll.round);
                out.u16(match poll.kind {
                    PollKind::General => 0,
                    PollKind::Repairers => 1,
                    PollKind::Other(other) => other,
                });
                address::write(poll.path, out);
                out.u32(poll.backoff);
                out.u32(poll.random);
                out.u32(poll.mask);
            }
            Self::PollResponse(response) => {
                out.u32(response.sequence);
                out.u16(response.round);
                out.u16(0);
            }
            Self::Ack(ack) => {
                out.u32(ack.highest);
                out.u32(ack.bitmap);
            }
        }
    }
}

fn read_data(reader: &mut Reader<'_>) -> Result<Data, Malformed> {
    Ok(Data { sequence: reader.u32("data sequence number")?, trail: reader.u32("data trail")? })
}

fn read_nak(reader: &mut Reader<'_>) -> Result<Nak, Malformed> {
    Ok(Nak {
        sequence: reader.u32("NAK sequence number")?,
        source: address::read(reader, "NAK source")?,
        group: address::read(reader, "NAK group")?,
    })
}
