//! What a node has to tell a person.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;

use hopcast_core::Duration;
use log::Level;

use crate::hello::wire::{Tag, VERSION};

/// Something that happened, worth one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// A peer is there.
    Up { peer: String, address: Option<SocketAddr>, round_trip: Duration },
    /// A peer was there, and is silent.
    Down { peer: String, silent: Duration },
    /// A peer has not been heard since the start.
    NoAnswer { peer: String, address: Option<SocketAddr> },
    /// A peer has said that it ends.
    Left { peer: String },
    /// A peer is another instance than before.
    Restarted { peer: String },
    /// A peer is somewhere else.
    Moved { peer: String, from: SocketAddr, to: SocketAddr },
    /// A peer speaks another version.
    Version { peer: String, version: u8 },
    /// Somebody else has a peer's name; whether the file says where the peer is.
    Rival { peer: String, address: SocketAddr, fixed: bool },
    /// A peer does not carry what this node does.
    Lane { peer: String, tag: Tag },
    /// A peer's datagrams have another size.
    Datagram { peer: String, theirs: u16, ours: u16 },
    /// Datagrams as long as the longest do not get to a peer; the longest IP packet that does, and whether even
    /// fragments do not.
    Full { peer: String, bytes: u16, passes: Option<u16>, fragments: bool },
}

impl Notice {
    pub(crate) const fn level(&self) -> Level {
        match self {
            Self::Up { .. } | Self::Left { .. } | Self::Restarted { .. } | Self::Moved { .. } => Level::Info,
            Self::Down { .. } | Self::NoAnswer { .. } | Self::Rival { .. } => Level::Warn,
            Self::Version { .. } | Self::Lane { .. } | Self::Datagram { .. } | Self::Full { .. } => {
                Level::Error
            }
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up { peer, address: Some(address), round_trip } => {
                let millis = round_trip.as_millis_f64();
                write!(f, "peer `{peer}` is up at {address}, {millis:.1} ms there and back")
            }
            Self::Up { peer, .. } => write!(f, "peer `{peer}` is up"),
            Self::Down { peer, silent } => {
                write!(f, "peer `{peer}` is down: nothing heard for {:.1} s", silent.as_secs_f64())
            }
            Self::NoAnswer { peer, address: Some(address) } => {
                write!(f, "peer `{peer}` does not answer at {address}: still trying")
            }
            Self::NoAnswer { peer, address: None } => {
                write!(f, "peer `{peer}` has not been heard of: still waiting")
            }
            Self::Left { peer } => write!(f, "peer `{peer}` was stopped"),
            Self::Restarted { peer } => write!(f, "peer `{peer}` was started anew"),
            Self::Moved { peer, from, to } => write!(f, "peer `{peer}` has moved from {from} to {to}"),
            Self::Version { peer, version } => {
                write!(f, "peer `{peer}` speaks version {version}, this node {VERSION}: not talking to it")
            }
            Self::Rival { peer, address, fixed: false } => {
                write!(
                    f,
                    "{address} says it is peer `{peer}`, which is heard from elsewhere: not believing it"
                )
            }
            Self::Rival { peer, address, fixed: true } => write!(
                f,
                "{address} says it is peer `{peer}`, which is elsewhere: not believing it (a peer that may move has `roams: yes`)"
            ),
            Self::Lane { peer, tag } => write!(
                f,
                "peer `{peer}` does not carry {} on channel {} with this node: look at `carry` and `relay` there and behind it",
                tag.what(),
                tag.channel()
            ),
            Self::Datagram { peer, theirs, ours } => write!(
                f,
                "peer `{peer}` sends datagrams of up to {theirs} bytes, this node {ours}: give both the same `mtu` and version of IP"
            ),
            Self::Full { peer, bytes, passes, fragments } => {
                write!(f, "datagrams of {bytes} bytes do not get to peer `{peer}`")?;
                match passes {
                    Some(mtu) => write!(f, ", those of IP packets of {mtu} do: ")?,
                    None => write!(f, ", though short ones do: ")?,
                }
                match fragments {
                    false => write!(f, "they may be cut into fragments from now on")?,
                    true => write!(f, "not even in fragments")?,
                }
                match passes {
                    Some(mtu) => write!(f, "; give every node of the way `mtu: {mtu}`"),
                    None => write!(f, "; give every node of the way a smaller `mtu`"),
                }
            }
        }
    }
}

/// Notices that nobody has read yet, so many at most.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    queue: VecDeque<Notice>,
    lost: u64,
}

/// Read ten times a second; what says more than this is a flood.
const MOST: usize = 64;

impl Notices {
    pub(crate) fn push(&mut self, notice: Notice) {
        if self.queue.len() < MOST {
            self.queue.push_back(notice);
        } else {
            self.lost += 1;
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Notice> {
        self.queue.pop_front()
    }

    /// How many were dropped since this was last asked.
    pub(crate) fn take_lost(&mut self) -> u64 {
        core::mem::take(&mut self.lost)
    }
}
