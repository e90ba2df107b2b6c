//! The row of a transport in the table.

use std::fmt;

use hopcast_config::Diagnostic;
use hopcast_config::yaml::Node;

use super::{Layer, PortKind, Ports};
use crate::table::{OptionDoc, TableRow, Worlds};

/// A row of the table of transports.
#[derive(Debug)]
pub struct Row {
    /// Its name in `over`.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// The ports that it offers to the layer above.
    pub offers: Ports,
    /// The port that it needs of the layer below.
    pub needs: PortKind,
    /// Number of receivers that it serves.
    pub receivers: Count,
    /// Whether it serves the members of a group over a delivery: it needs to hear nothing of them, or hears them all.
    pub groups: bool,
    /// Number of disjoint routes that it takes.
    pub paths: Count,
    /// The feedback from its receivers.
    pub feedback: Feedback,
    /// The worlds that it runs in.
    pub worlds: Worlds,
    /// Whether it codes: sends combinations of packets.
    pub coded: bool,
    /// Whether it holds back what has arrived until what comes before it has, or is decoded.
    pub holds_back: bool,
    /// Whether it carries several streams of a flow at a time.
    pub many_streams: bool,
    /// Whether it is a socket of the host, which a real program opens by itself: `None` if not.
    pub socket: Option<Socket>,
    /// Its options, each with its documentation.
    pub options: fn() -> Vec<OptionDoc>,
    /// Reads the options into a layer; without any, the defaults.
    pub read: ReadOptions,
}

/// Reads the options of a transport into a layer; without any, the defaults. Only [`Options`](crate::table::Options)
/// make layers, and note which options are not the default.
pub type ReadOptions = fn(&'static Row, Option<&Node>) -> Result<Layer, Diagnostic>;

impl Row {
    /// The columns that most transports share: one receiver, one route, feedback from end to end, both worlds, no
    /// options.
    pub const BASE: Self = Self {
        name: "",
        about: "",
        offers: Ports(&[]),
        needs: PortKind::Datagram,
        receivers: Count::One,
        groups: false,
        paths: Count::One,
        feedback: Feedback::EndToEnd,
        worlds: Worlds::Both,
        coded: false,
        holds_back: true,
        many_streams: true,
        socket: None,
        options: Vec::new,
        read: |row, _| Err(Diagnostic::of_file(row.name, "the row of this transport has no `read`")),
    };
}

/// One or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// One.
    One,
    /// One or several.
    Several,
}

/// The feedback from the receivers of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// No feedback.
    None,
    /// Datagrams or packets to the sender, end to end.
    EndToEnd,
    /// Reports from each hop to the one before it.
    HopByHop,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::One => "one",
            Self::Several => "several",
        })
    }
}

impl fmt::Display for Feedback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::EndToEnd => "end to end",
            Self::HopByHop => "hop by hop",
        })
    }
}

/// A socket of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Socket {
    /// ICMP, straight on packets.
    Icmp,
    /// UDP.
    Udp,
    /// TCP.
    Tcp {
        /// The congestion control, by the kernel's name; `None` for the host's own choice.
        congestion: Option<&'static str>,
    },
}

impl TableRow for Row {
    fn name(&self) -> &'static str {
        self.name
    }
}
