//! A scenario as the engine runs it: everything resolved, nothing that cannot be run.

use std::collections::BTreeMap;
use std::sync::Arc;

use hopcast_coded::{bats, franc};
use hopcast_core::{Duration, Instant};
use hopcast_link as link;
use hopcast_peers::{hop_arq, kcp, quic, tcp};

use crate::results::Source;

pub use super::programs::{
    Copy, CopyProgram, Crypt, Exec, Kcptun, LiveOnly, Load, Mode, Picture as TestPicture, Ping, Program,
    Signal, Socket,
};
pub use super::workload::{
    App, Arrivals, Frames, OnOff, Pattern, Picture, SizeLaw, Span, Spread, TraceFrame,
};
pub(crate) use super::workload::{LARGEST_FRAME, SHORT_FLOW};

/// A node's place in [`Scenario::nodes`].
pub type NodeId = usize;
/// A link's place in [`Scenario::links`].
pub type LinkId = usize;
/// A flow's place in [`Scenario::flows`].
pub type FlowId = usize;

/// All that a scenario file asks for: each case of its sweep, ready to run `repeats` times.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The title, from the file.
    pub title: String,
    /// How often each case is run.
    pub repeats: u64,
    /// The cases, in the order of the sweep; one without parameters if there is no sweep.
    pub cases: Vec<Case>,
    /// Published figures to show beside ours, or measured ones.
    pub published: Vec<Published>,
    /// Whether the figures in `published` are measurements that nobody published.
    pub measured: bool,
    /// The publication whose experiment this repeats.
    pub source: Option<Source>,
    /// Where to run it unless the command line says otherwise.
    pub world: World,
    /// What there is to be said of a transport, by its name in tables.
    pub notes: BTreeMap<String, String>,
    /// What is to be said of the comparison with published figures: a line each.
    pub remarks: Vec<String>,
}

/// Where a scenario is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum World {
    /// In virtual time.
    #[default]
    Virtual,
    /// On this machine's kernel.
    Live,
    /// In both, with the figures side by side.
    Both,
}

/// One case of a sweep.
#[derive(Clone, Debug)]
pub struct Case {
    /// Each swept path with its value as written in the file; an `over` stack or variant by the name tables show.
    pub parameters: Vec<(String, String)>,
    /// What to run.
    pub scenario: Arc<Scenario>,
    /// What of its network's file is left out, a line each.
    pub left_out: Vec<String>,
}

/// Published figures of one case: shown beside ours where the parameters and the flow agree.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The parameters that a case must have, as they are written in the file.
    pub parameters: Vec<(String, String)>,
    /// The flow they are of; `None` for every flow.
    pub flow: Option<String>,
    /// The published figures, by our name of the figure (`goodput_mbps`, `latency_ms.mean`).
    pub figures: BTreeMap<String, f64>,
}

/// One case, resolved.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The root of all randomness, together with the repeat.
    pub seed: u64,
    /// When the run ends.
    pub duration: Duration,
    /// When to measure.
    pub measure: Measure,
    /// The nodes, in the order of the file; names are unique.
    pub nodes: Vec<Node>,
    /// The links, in the order of the file; names are unique.
    pub links: Vec<Link>,
    /// What happens when, in the order of time and then of the file.
    pub events: Vec<Event>,
    /// The same in words, an entry for each event of the file, in the order of time: the first hundred.
    pub schedule: Vec<(Instant, String)>,
    /// The flows, in the order of the file; names are unique.
    pub flows: Vec<Flow>,
    /// Who does what, of `helper` and `relay`; protocols that relay read it, and without it every node on the path relays.
    pub roles: BTreeMap<String, Vec<NodeId>>,
    /// Which nodes' interfaces to capture.
    pub capture: Capture,
    /// Commands at nodes, in the order of the file; names are unique.
    pub execs: Vec<Exec>,
    /// What of it is for a live run alone: [`needs_live`](super::needs_live).
    pub live_only: LiveOnly,
}

/// The measurement window, for flow and link figures alike, and the step of the time series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The window's start.
    pub from: Instant,
    /// The window's end; the end of the run unless the file says otherwise.
    pub to: Instant,
    /// The step of the time series.
    pub interval: Duration,
}

/// A host or router.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The name, which flows and links use.
    pub name: String,
    /// Where to draw it, if the file or the generator says: arbitrary units, y downwards.
    pub position: Option<(f64, f64)>,
}

/// A link between nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The name: `a-b` unless the file gives one.
    pub name: String,
    /// The nodes it joins, in the order of attachments.
    pub ends: Vec<NodeId>,
    /// Its model.
    pub model: LinkModel,
}

/// Which link model, with its configuration.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkModel {
    /// Between two nodes.
    PointToPoint(link::Config),
    /// Among all of `ends`; stations' addresses are filled in by the engine.
    Medium(link::MediumConfig),
}

impl Link {
    /// The direction that leaves attachment `from`; a medium has the same one for every station.
    pub fn direction(&self, from: link::Attachment) -> &link::Direction {
        match &self.model {
            LinkModel::PointToPoint(config) if from == 0 => &config.forward,
            LinkModel::PointToPoint(config) => &config.backward,
            LinkModel::Medium(config) => &config.direction,
        }
    }
}

/// Something that happens at a stated time.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When.
    pub at: Instant,
    /// What.
    pub action: Action,
}

/// What an event does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Changes a link, in the direction that leaves attachment `from` or in all.
    Link {
        /// Which link.
        link: LinkId,
        /// From which of its ends; `None` for all.
        from: Option<link::Attachment>,
        /// The change.
        change: link::Change,
    },
    /// Starts a flow whose app says `start: event`, or starts it again after a stop.
    Start(FlowId),
    /// Stops a flow: its application sends no more.
    Stop(FlowId),
}

/// A flow: an application's units, over a stack, from one node to another or to several.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The name.
    pub name: String,
    /// The sending node.
    pub from: NodeId,
    /// The receiving nodes, none twice; several where the stack serves a group.
    pub to: Vec<NodeId>,
    /// What tables show: the transport's, variant's or stack's name.
    pub protocol: String,
    /// The stack, from the top down; none is the host's packets, for ping.
    pub over: Vec<Layer>,
    /// What is sent.
    pub app: App,
    /// Whether the flow's packets are IPv6.
    pub ipv6: bool,
    /// How many ways without a common node it takes; more than one where the stack can.
    pub paths: usize,
}

/// The Ethernet header, without FCS.
pub const ETHERNET: u64 = 14;
/// What FRANC fills of a frame, in bytes.
pub const FRANC_FRAME: u64 = 1500;

impl Flow {
    /// Whether the application sends a stream, and not datagrams: what it prefers where the stack offers both.
    pub fn on_stream(&self) -> bool {
        let offered = match self.over.first() {
            Some(
                Layer::Tcp(_)
                | Layer::Split(_)
                | Layer::Kcp(_)
                | Layer::Kcptun(_)
                | Layer::Quic(_)
                | Layer::HopArq(_),
            ) => true,
            Some(Layer::Bats(config)) => config.delivery == bats::Delivery::Reliable,
            Some(Layer::Proxy(_)) => true,
            Some(Layer::Udp | Layer::Tunnel | Layer::Franc(_)) | None => false,
        };
        // A stream has one reader.
        offered && self.to.len() == 1 && !matches!(self.app, App::Cbr { .. })
    }

    /// Whether its transports hold back what has arrived until what comes before it has, or is decoded.
    pub fn holds_back(&self) -> bool {
        self.over.iter().any(|layer| !matches!(layer, Layer::Udp | Layer::Tunnel))
    }

    /// Whether a proxy ends its connections and carries them on.
    pub fn takes_connections_over(&self) -> bool {
        matches!(self.over.as_slice(), [Layer::Tcp(_), Layer::Proxy(_), ..])
    }

    /// Whether a coded transport takes part in its stack.
    pub fn is_coded(&self) -> bool {
        self.over.iter().any(|layer| layer.bats().is_some() || matches!(layer, Layer::Franc(_)))
    }

    /// Whether it stands on FRANC.
    pub fn is_franc(&self) -> bool {
        matches!(self.over.last(), Some(Layer::Franc(_)))
    }

    /// The nodes that may repeat what they overhear of this flow on a medium.
    pub fn helpers<'s>(&self, scenario: &'s Scenario) -> &'s [NodeId] {
        match self.over.last() {
            Some(Layer::Franc(config)) if config.helper => {
                scenario.roles.get("helper").map_or(&[], Vec::as_slice)
            }
            _ => &[],
        }
    }

    /// What the layers from number `from` on down, and Ethernet, put before the payload, in bytes a full frame.
    pub fn overhead(&self, from: usize) -> u64 {
        // What a proxy ends goes no further.
        let from = self
            .over
            .iter()
            .position(|layer| matches!(layer, Layer::Proxy(_)))
            .map_or(from, |at| from.max(at));
        let ip = if self.ipv6 { 40 } else { 20 };
        let of_layer = |layer: &Layer| match layer {
            Layer::Udp => ip + 8,
            // The header with timestamps, which every segment has.
            Layer::Tcp(_) | Layer::Split(_) => ip + 32,
            Layer::Tunnel => 0,
            // Its header, and that of parity.
            Layer::Kcp(config) => {
                if config.fec.is_some() {
                    24 + 8
                } else {
                    24
                }
            }
            Layer::Kcptun(config) => config.overhead(),
            Layer::HopArq(_) => hop_arq::OVERHEAD,
            // The short header with eight bytes of connection id and one of packet number, the tag, and a STREAM frame's
            // kind, stream and offset without a length: the least that a full packet of a long transfer has.
            Layer::Quic(_) => 1 + 8 + 1 + 16 + 1 + 1 + 4,
            Layer::Bats(config) | Layer::Proxy(config) => config.overhead() as u64,
            Layer::Franc(config) => FRANC_FRAME - u64::from(config.mtu),
        };
        ETHERNET + self.over[from..].iter().map(of_layer).sum::<u64>()
    }

    /// How much of that only packets have that repair others: a bound on what a link carries does not count it.
    pub fn repair_overhead(&self) -> u64 {
        self.over.iter().filter_map(Layer::bats).map(|config| config.batch.symbols() as u64).sum()
    }
}

/// One layer of a stack with its options.
#[derive(Clone, Debug, PartialEq)]
pub enum Layer {
    /// `udp`: datagrams as they are.
    Udp,
    /// `tcp-cubic`, `tcp-bbr`: a stream.
    Tcp(tcp::Config),
    /// `split-bbr`: TCP that ends at every node of the way, and begins anew.
    Split(tcp::Config),
    /// `kcp`, `kcp-fec`: a stream over KCP.
    Kcp(kcp::Config),
    /// `kcptun`: a stream through real kcptuns at both ends, in a live run only.
    Kcptun(Kcptun),
    /// `hop-arq`: a stream that every hop of the way repairs for itself.
    HopArq(hop_arq::Config),
    /// `quic`, `quic-bbr`: a stream over QUIC.
    Quic(quic::Config),
    /// `tunnel`: IP packets inside the datagrams of the layer below.
    Tunnel,
    /// `btp`, `brtp`: BATS, with relays on the way that recode.
    Bats(bats::Config),
    /// `bats-proxy`: BATS that carries on the TCP connections above it.
    Proxy(bats::Config),
    /// `franc`: packets coded over each shared medium of the way, with the help of a station that overhears.
    Franc(franc::Config),
}

impl Layer {
    /// The settings of BATS, if that is what it is.
    pub const fn bats(&self) -> Option<&bats::Config> {
        match self {
            Self::Bats(config) | Self::Proxy(config) => Some(config),
            Self::Udp
            | Self::Tcp(_)
            | Self::Split(_)
            | Self::Kcp(_)
            | Self::Kcptun(_)
            | Self::Quic(_)
            | Self::HopArq(_)
            | Self::Tunnel
            | Self::Franc(_) => None,
        }
    }
}

/// What to capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Capture {
    /// Nothing.
    #[default]
    Nothing,
    /// Every interface of these nodes.
    Nodes(Vec<NodeId>),
}
