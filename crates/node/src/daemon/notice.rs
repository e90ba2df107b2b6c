//! Events of a node that are logged.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;

use hopcast_core::Duration;
use log::Level;

use crate::hello::wire::{Tag, VERSION};

/// An event, one line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// A peer is up.
    Up { peer: String, address: Option<SocketAddr>, round_trip: Duration },
    /// A peer was up, and is silent.
    Down { peer: String, silent: Duration },
    /// A peer has not been heard since the start.
    NoAnswer { peer: String, address: Option<SocketAddr> },
    /// A peer has announced its end.
    Left { peer: String },
    /// A peer has restarted.
    Restarted { peer: String },
    /// A peer has another address.
    Moved { peer: String, from: SocketAddr, to: SocketAddr },
    /// A peer has another version.
    Version { peer: String, version: u8 },
    /// Another host uses a peer's name; `fixed` if the configuration has the peer's address.
    NameInUse { peer: String, address: SocketAddr, fixed: bool },
    /// A peer does not have a lane of this node.
    Lane { peer: String, tag: Tag },
    /// A peer's datagrams have another maximum length.
    Datagram { peer: String, theirs: u16, ours: u16 },
    /// Full datagrams do not reach a peer: the maximum length of an IP packet that does, and whether not even fragments
    /// do.
    Full { peer: String, bytes: u16, passes: Option<u16>, fragments: bool },
}

impl Notice {
    pub(crate) const fn level(&self) -> Level {
        match self {
            Self::Up { .. } | Self::Left { .. } | Self::Restarted { .. } | Self::Moved { .. } => Level::Info,
            Self::Down { .. } | Self::NoAnswer { .. } | Self::NameInUse { .. } => Level::Warn,
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
            Self::NameInUse { peer, address, fixed: false } => {
                write!(
                    f,
                    "{address} says it is peer `{peer}`, which is heard from elsewhere: not believing it"
                )
            }
            Self::NameInUse { peer, address, fixed: true } => write!(
                f,
                "{address} says it is peer `{peer}`, which is elsewhere: not believing it (a peer that may move has `roams: yes`)"
            ),
            Self::Lane { peer, tag } => write!(
                f,
                "peer `{peer}` does not carry {} on channel {} with this node: look at `carry` and `relay` there and behind it",
                tag.payload(),
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
                    Some(mtu) => write!(f, "; give every node of the route `mtu: {mtu}`"),
                    None => write!(f, "; give every node of the route a smaller `mtu`"),
                }
            }
        }
    }
}

/// Unread notices, up to a maximum.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    queue: VecDeque<Notice>,
    lost: u64,
}

/// Maximum number of unread notices: they are read ten times a second, so more of them are a flood. Chosen: it bounds
/// memory and the log.
const MAX_PENDING: usize = 64;

impl Notices {
    pub(crate) fn push(&mut self, notice: Notice) {
        if self.queue.len() < MAX_PENDING {
            self.queue.push_back(notice);
        } else {
            self.lost += 1;
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Notice> {
        self.queue.pop_front()
    }

    /// Number of notices dropped since the last call.
    pub(crate) fn take_lost(&mut self) -> u64 {
        core::mem::take(&mut self.lost)
    }
}
