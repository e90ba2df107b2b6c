//! Control messages between two members, which UNICAST brings once each, in their order.

use hopcast_core::bytes::{Malformed, Reader};

use super::id::{MAX_MEMBERS, MemberId, Together, View, ViewId};

/// A control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// VERIFY_SUSPECT: nothing but a request to be acknowledged.
    AreYouAlive,
    /// To the coordinator: whoever sends this wants to be in the view.
    Join,
    /// To the coordinator: whoever sends this wants to leave the view.
    Leave,
    /// To the coordinator: a member is silent (FD_ALL), or does not acknowledge (STABLE).
    Suspect {
        /// The member.
        member: MemberId,
        /// Whether it is heard, but does not acknowledge what it was sent.
        is_stalled: bool,
    },
    /// From the leader of a change: send nothing new in your view, and say what you have of it.
    Prepare(ViewId),
    /// The answer: what a member has of its view.
    Flushed {
        /// The proposal.
        proposal: ViewId,
        /// The view that the member has.
        view: ViewId,
        /// Of each member of that view, the number up to which it has all messages; its lowest 32 bits.
        have: Vec<u32>,
    },
    /// The other answer: a later proposal has been promised, of this number.
    Refused {
        /// The proposal that is refused.
        proposal: ViewId,
        /// The number that is promised.
        promised: u32,
    },
    /// From the leader: fetch what you lack of your view.
    Fetch {
        /// The proposal.
        proposal: ViewId,
        /// Of each member of the view, the number up to which all messages will be delivered, and a member that has
        /// them.
        targets: Vec<(u32, MemberId)>,
    },
    /// All of it is there.
    Ready(ViewId),
    /// From the leader: this is the view from now on.
    Commit {
        /// The view.
        view: View,
        /// Its members that come from the same view as the receiver of this.
        together: Together,
    },
    /// Flow control: this number of bytes more of the member's may be sent in the view.
    Credit {
        /// The view, by its tag.
        tag: u32,
        /// Bytes.
        bytes: u64,
    },
}

impl Control {
    /// Reads a message that fills what is left.
    ///
    /// # Errors
    /// The field at fault.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let reader = &mut reader;
        let found = match reader.u8("kind of control")? {
            0 => Self::AreYouAlive,
            1 => Self::Join,
            2 => Self::Leave,
            3 => {
                let stalled = reader.u8("stalled")?;
                Malformed::unless(stalled < 2, "stalled")?;
                Self::Suspect { member: MemberId::read(reader)?, is_stalled: stalled == 1 }
            }
            4 => Self::Prepare(ViewId::read(reader)?),
            5 => Self::Flushed {
                proposal: ViewId::read(reader)?,
                view: ViewId::read(reader)?,
                have: list(reader, |reader| reader.u32("digest"))?,
            },
            6 => Self::Refused { proposal: ViewId::read(reader)?, promised: reader.u32("promised number")? },
            7 => Self::Fetch {
                proposal: ViewId::read(reader)?,
                targets: list(reader, |reader| Ok((reader.u32("target")?, MemberId::read(reader)?)))?,
            },
            8 => Self::Ready(ViewId::read(reader)?),
            9 => {
                let view = View::read(reader)?;
                let together = Together::read(reader, &view)?;
                Self::Commit { view, together }
            }
            10 => Self::Credit { tag: reader.u32("tag")?, bytes: reader.u64("credit")? },
            _ => return Err(Malformed { field: "kind of control" }),
        };
        Malformed::unless(reader.is_empty(), "end of control")?;
        Ok(found)
    }

    /// Its bytes.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::AreYouAlive => out.push(0),
            Self::Join => out.push(1),
            Self::Leave => out.push(2),
            Self::Suspect { member, is_stalled } => {
                out.extend([3, u8::from(*is_stalled)]);
                member.write(&mut out);
            }
            Self::Prepare(proposal) => {
                out.push(4);
                proposal.write(&mut out);
            }
            Self::Flushed { proposal, view, have } => {
                out.push(5);
                proposal.write(&mut out);
                view.write(&mut out);
                out.push(have.len() as u8);
                have.iter().for_each(|number| out.extend(number.to_be_bytes()));
            }
            Self::Refused { proposal, promised } => {
                out.push(6);
                proposal.write(&mut out);
                out.extend(promised.to_be_bytes());
            }
            Self::Fetch { proposal, targets } => {
                out.push(7);
                proposal.write(&mut out);
                out.push(targets.len() as u8);
                for (target, holder) in targets {
                    out.extend(target.to_be_bytes());
                    holder.write(&mut out);
                }
            }
            Self::Ready(proposal) => {
                out.push(8);
                proposal.write(&mut out);
            }
            Self::Commit { view, together } => {
                out.push(9);
                view.write(&mut out);
                together.write(&mut out);
            }
            Self::Credit { tag, bytes } => {
                out.push(10);
                out.extend(tag.to_be_bytes());
                out.extend(bytes.to_be_bytes());
            }
        }
        out
    }
}

/// A list of an entry for each member of a view.
fn list<T>(
    reader: &mut Reader<'_>,
    entry: impl Fn(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let count = usize::from(reader.u8("number of entries")?);
    Malformed::unless(count <= MAX_MEMBERS, "number of entries")?;
    (0..count).map(|_| entry(reader)).collect()
}
