//! Transports: what each is, in one row of a table, and how it is put on nodes.
//!
//! A transport is a protocol's folder (in `coded`, `peers` and so on) and one file in
//! [`transports`](crate::transports): its [`Row`], which scenarios, checks and documentation read, and its settings,
//! which implement [`Transport`]: how its machines are put on the nodes of a flow. Nothing else names a protocol.

mod options;
mod ports;
mod program;
mod stack;

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;

use hopcast_config::Diagnostic;
use hopcast_config::yaml::Node;

use crate::configured::{Configured, TableRow};
use crate::error::BuildError;
use crate::flow::{End, Ends, FlowBuilder, FlowPlan};
use crate::network::NodeId;
use crate::platform::LowerPort;
use crate::site::SiteTransport;

pub use options::{Form, Opt, OptionDoc, Options};
pub use ports::{Port, Ports};
pub(crate) use program::on_loopback;
pub use program::{ProgramCommand, ProgramEnds, ProgramPair, ReadyAt};
pub use stack::{MAX_LAYERS, Stack, Variants, layer};

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
    pub needs: Port,
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

/// Reads the options of a transport into a layer; without any, the defaults. Only [`Options`] make layers, and note
/// which options are not the default.
pub type ReadOptions = fn(&'static Row, Option<&Node>) -> Result<Layer, Diagnostic>;

impl Row {
    /// The columns that most transports share: one receiver, one route, feedback from end to end, both worlds, no
    /// options.
    pub const BASE: Self = Self {
        name: "",
        about: "",
        offers: Ports(&[]),
        needs: Port::Datagram,
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
    /// Nothing.
    None,
    /// Datagrams or packets to the sender, end to end.
    EndToEnd,
    /// Reports from each hop to the one before it.
    HopByHop,
}

/// The worlds that a transport runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worlds {
    /// Virtual time and the kernel.
    Both,
    /// Virtual time only.
    Virtual,
    /// The kernel only: a real program. The names of its models in virtual time, in a person's words.
    Live {
        /// `kcp` and `kcp-fec` are its models, say.
        models: &'static str,
        /// The programs, each with the package of Debian and Ubuntu that has it.
        programs: &'static [(&'static str, &'static str)],
    },
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

impl fmt::Display for Worlds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Both => "both",
            Self::Virtual => "virtual time",
            Self::Live { .. } => "live",
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

/// The settings of a transport, and how it is put on the nodes of a flow.
pub trait Transport: fmt::Debug + Send + Sync + Any {
    /// Bytes that it puts before the payload of a full packet; `ip` is the length of the IP header.
    fn overhead(&self, ip: u64) -> u64;

    /// Bytes of the [`overhead`](Self::overhead) that only packets have which repair others: a bound on what a link
    /// carries does not count them.
    fn repair_overhead(&self) -> u64 {
        0
    }

    /// Puts its machine on one end of a flow, above [`End::below`]; says which port is above it, or `None` where the
    /// application has sockets of its own.
    ///
    /// # Errors
    /// See [`BuildError`].
    fn put_on_end(&self, end: &mut End<'_, '_>) -> Result<Option<LowerPort>, BuildError>;

    /// Puts its machines on those nodes between the ends that are [built here](FlowBuilder::builds); `depth` is its
    /// place in the stack, from the top. What a node gets depends on no other, so that a node's machines are the same
    /// wherever they are built.
    ///
    /// # Errors
    /// See [`BuildError`].
    fn put_between(&self, flow: &mut FlowBuilder<'_>, depth: usize) -> Result<(), BuildError> {
        let _ = (flow, depth);
        Ok(())
    }

    /// Whether it carries datagrams between any two neighbours of a flow, and not only between its ends: if all layers
    /// below a transport do, nodes between the ends can relay for it.
    fn reaches_relays(&self) -> bool {
        false
    }

    /// Puts it on a node between the ends, below a relay at `address`; says which port is above it. Only called if it
    /// [reaches relays](Self::reaches_relays); `below` is the port of the layer below it, `None` for the host.
    ///
    /// # Errors
    /// See [`BuildError`].
    fn put_below_relay(
        &self,
        flow: &mut FlowBuilder<'_>,
        (node, address): (NodeId, SocketAddr),
        below: Option<LowerPort>,
    ) -> Result<Option<LowerPort>, BuildError> {
        let _ = (flow, node, address);
        Ok(below)
    }

    /// Maximum length of a packet that it carries, in bytes, if its frames have a length of their own.
    fn packet_mtu(&self) -> Option<u32> {
        None
    }

    /// Bytes that it fills of each frame's payload, on a link whose frames it sends itself.
    fn frame_payload(&self) -> Option<u64> {
        None
    }

    /// The real programs at the ends, if it is one.
    fn programs(&self, at: ProgramEnds) -> Option<ProgramPair> {
        let _ = at;
        None
    }

    /// The same transport between the sites of a deployment, if it can be there.
    fn between_sites(&self) -> Option<&dyn SiteTransport> {
        None
    }

    /// Whether it ends the connections of the transport above it, and carries on their streams.
    fn ends_connections(&self) -> bool {
        false
    }

    /// Whether datagrams of an application that can wait are granted: it sends as fast as this takes them.
    fn grants_datagrams(&self) -> bool {
        false
    }

    /// Whether a station that overhears is to help.
    fn wants_helper(&self) -> bool {
        false
    }

    /// Why it cannot be on top of `lower`, beyond what the ports say; `own` is its row.
    fn refuses_below(&self, own: &'static Row, lower: &Layer) -> Option<String> {
        let _ = (own, lower);
        None
    }

    /// Why `upper` cannot be on top of it, beyond what the ports say; `own` is its row.
    fn refuses_above(&self, own: &'static Row, upper: &Layer) -> Option<String> {
        let _ = (own, upper);
        None
    }

    /// The address that the sender's application opens its connection to: the far end's, unless nodes between end it.
    fn first_hop(&self, plan: &FlowPlan<'_>, source: Ends) -> SocketAddr {
        let _ = plan;
        source.remote
    }

    /// The ends as an application on top of it sees them where the platform is the kernel.
    fn ends_on_kernel(&self, ends: Ends) -> Ends {
        ends
    }

    /// The option that has been changed and that the kernel's own transport does not have, if any.
    fn virtual_time_only(&self) -> Option<&'static str> {
        None
    }
}

/// One layer of a stack: a transport with its settings.
pub type Layer = Configured<Row, dyn Transport>;

impl Layer {
    /// Its settings, if they are of this type.
    pub fn settings_as<T: Transport>(&self) -> Option<&T> {
        let settings: &dyn Any = self.settings();
        settings.downcast_ref()
    }

    /// Whether the host itself is this layer where it is the lowest.
    pub fn is_hosts_own(&self) -> bool {
        self.row().socket == Some(Socket::Udp)
    }

    /// Whether it is a real program.
    pub fn is_program(&self) -> bool {
        matches!(self.row().worlds, Worlds::Live { .. })
    }
}

impl TableRow for Row {
    fn name(&self) -> &'static str {
        self.name
    }
}
