//! The log of a run: a file of records, each with a header of 32 bytes.
//!
//! ```text
//!  0        8        12     16       20     24      28      30    31
//! | time ns | place | aux  | content | cause | length | reason | kind | stored | bytes …
//! ```
//!
//! All numbers are little-endian. `place` is the number of an interface or a machine, in the order of their
//! definitions, which are the first records. `content` is the number of a packet's bytes, from 1: the first record with
//! a number has the first [`MAX_STORED`] of them behind it, later ones refer to it. `cause` is the content that the
//! machine had received when it handed this one on, or 0.
//!
//! | `kind` | `place` | `aux` | |
//! |---|---|---|---|
//! | 1 | its number | | definition of an interface or a machine |
//! | 2 | its number | | definition of a reason |
//! | 3 | | | definition of a node, a group or a flow |
//! | 4 | | 1 of an overrun | end of a log that is full, or was overrun: events left out in `content` and `cause` |
//! | 16 | machine | port | it arrived; only where no other record has the content |
//! | 17 | interface | | it was sent; in logs of captures and of live runs, and where interfaces were captured beside |
//! | 18 | interface | the sender's interface; this one where the sender is not known | it arrived |
//! | 19 | interface | 0, or 1 + the receiver's interface | the link dropped it |
//! | 20 | machine | port | the machine handed it on |
//! | 21 | machine | port | nothing like it was handed on; `reason` is the counter that rose, or 0 |
//! | 22 | interface | | a capture has it, and does not say whether it was sent or received |
//! | 23 | interface | | the node gave it to the link, to be sent; in logs of live runs |
//!
//! The upper two bits of `kind` are the [`Layer`] of the content, the next one says that this record defines it. Of a
//! definition `length` is the length of the text behind it, whose fields are lines. A port is its number, and in the
//! highest bit whether it is above.
//!
//! A log ends where its maximum size is reached, and says how many events it has not: faults show where they begin. A
//! log that is cut off is read up to the cut.

mod memory;
mod reader;
mod record;
mod recorder;

pub use memory::MemoryLog;
pub use reader::{Content, Event, EventKind, Events, Flow, Log, LogError, Named, Truncation};
pub(crate) use recorder::mix;
pub use recorder::{ContentId, Recorder, Written};

use hopcast_core::Port;

/// The extension of the name of a log's file.
pub const EXTENSION: &str = "trace";

/// Maximum number of bytes of a packet that the log stores. Chosen: Ethernet, two tags, IPv6, a tunnel, IPv6 and UDP
/// fit; more makes logs larger, less hides inner headers.
pub const MAX_STORED: usize = 128;

/// The outermost layer of a packet's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// An Ethernet frame.
    Frame = 0,
    /// An IP packet.
    Packet = 1,
    /// The payload of a datagram, a message or a part of a stream.
    Payload = 2,
}

/// Where events take place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An interface of a node on a link.
    Interface {
        /// The node's name.
        node: String,
        /// The interface's name on the node.
        name: String,
        /// The link's name; empty in captures, which do not say it.
        link: String,
        /// Maximum length of a packet on the link, in bytes; 0 if it is not known.
        mtu: u32,
        /// Its Ethernet address; zeros if it is not known.
        mac: [u8; 6],
    },
    /// A machine on a node: its host, a service, or a layer of a flow.
    Machine {
        /// The node's name.
        node: String,
        /// The machine's name: `host`, the service's name, or the layer's; empty of an application.
        name: String,
        /// The name of its flow, if it belongs to one.
        flow: Option<String>,
    },
}

impl Place {
    /// The name of the node.
    pub fn node(&self) -> &str {
        match self {
            Self::Interface { node, .. } | Self::Machine { node, .. } => node,
        }
    }

    /// The name of its flow, if it belongs to one.
    pub fn flow(&self) -> Option<&str> {
        match self {
            Self::Machine { flow, .. } => flow.as_deref(),
            Self::Interface { .. } => None,
        }
    }

    /// Whether it is a machine of a flow between its ends.
    pub fn is_relay(&self) -> bool {
        matches!(self, Self::Machine { name, flow: Some(_), .. } if name == RELAY)
    }

    /// Whether it is a host: the IP layer of a node.
    pub fn is_host(&self) -> bool {
        matches!(self, Self::Machine { name, flow: None, .. } if name == HOST)
    }
}

/// The name of hosts' machines.
pub const HOST: &str = "host";
/// The name of a flow's machines between its ends.
pub const RELAY: &str = "relay";

const ABOVE: u32 = 1 << 31;

/// A port as a number of the log.
pub(crate) const fn port_number(port: Port) -> u32 {
    match port {
        Port::Below(number) => number & !ABOVE,
        Port::Above(number) => number | ABOVE,
    }
}

/// The port of a number of the log.
pub(crate) const fn numbered_port(number: u32) -> Port {
    if number & ABOVE == 0 { Port::Below(number) } else { Port::Above(number & !ABOVE) }
}
