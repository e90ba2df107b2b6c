//! The log of a run: a file of records, each a header and bytes behind it.
//!
//! The first byte of a header is its kind, in the lower five bits, and how its content is given, in the upper three.
//! Then come numbers of seven bits a byte, the lowest bits first, the highest bit set in all but the last (LEB128):
//!
//! ```text
//! definition: place, length
//! end:        time, aux, events left out (lower and upper 32 bits)
//! event:      time, place, aux, cause, reason, content
//! ```
//!
//! A time is the difference from that of the record before, in nanoseconds. `place` is the number of an interface or a
//! machine, in the order of their definitions, which are the first records. `cause` is of kind 20 alone: the content
//! that the machine had received when it handed this one on, as a difference, or 0. `reason` is of kinds 19 and 21.
//!
//! | kind | `place` | `aux` | |
//! |---|---|---|---|
//! | 1 | its number | | definition of an interface or a machine |
//! | 2 | its number | | definition of a reason |
//! | 3 | | | definition of a node, a group or a flow |
//! | 4 | | 1 of an overrun | end of a log that is full, or was overrun |
//! | 16 | machine | port | it arrived; only where no other record has the content |
//! | 17 | interface | | it was sent; in logs of captures and of live runs, and where interfaces were captured beside |
//! | 18 | interface | the sender's interface less `place`; 0 where it is not known | it arrived |
//! | 19 | interface | 0, or 1 + the receiver's interface | the link dropped it |
//! | 20 | machine | port | the machine handed it on |
//! | 21 | machine | port | nothing like it was handed on; `reason` is the counter that rose, or 0 |
//! | 22 | interface | | a capture has it, and does not say whether it was sent or received |
//! | 23 | interface | | the node gave it to the link, to be sent; in logs of live runs |
//!
//! A content is a packet's bytes, of which the log has the first [`MAX_STORED`]; contents are numbered from 1 in the
//! order of the records that define them. How a record gives its content:
//!
//! | | | behind the header |
//! |---|---|---|
//! | 0 | it has none | |
//! | 1 | number of contents since it was defined | |
//! | 2, 3, 4 | defined, of the [`Layer`] 0, 1, 2: its length; number of bytes stored (one byte) | these bytes |
//! | 5, 6, 7 | as 2, 3, 4; then how many differ in front, and are missing at the end (one byte each) | these |
//!
//! A content that is given as 5, 6 or 7 has in between the bytes of its cause, both being aligned at their ends: a
//! packet that a router forwards is 26 bytes and not 128. Of a definition `length` is the length of the text behind
//! it, whose fields are lines. A port is twice its number, and 1 more if it is above. A difference that may be
//! negative is twice as much, and -1, -2, ... are 1, 3, ....
//!
//! A log ends where its maximum size is reached, and says how many events it has not: faults show where they begin. A
//! log that is cut off is read up to the cut.

mod memory;
mod reader;
mod record;
mod recorder;
mod sink;

pub use memory::MemoryLog;
pub use reader::{Content, Event, EventKind, Events, Flow, Log, LogError, Named, Truncation};
pub(crate) use recorder::mix;
pub use recorder::{ContentId, Recorded, Recorder, Written};
pub use sink::Sink;

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
