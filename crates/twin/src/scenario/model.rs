//! A scenario as the engine runs it: everything resolved, nothing that cannot be run.

use std::collections::BTreeMap;
use std::sync::Arc;

use hopcast_core::{Bytes, Duration, Instant, Rate};
use hopcast_link as link;
use hopcast_peers::tcp;

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
    /// Published figures to show beside ours.
    pub published: Vec<Published>,
}

/// One case of a sweep.
#[derive(Clone, Debug)]
pub struct Case {
    /// Each swept path with its value as written in the file; an `over` stack or variant by the name tables show.
    pub parameters: Vec<(String, String)>,
    /// What to run.
    pub scenario: Arc<Scenario>,
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
    /// The flows, in the order of the file; names are unique.
    pub flows: Vec<Flow>,
    /// Who does what, of `helper` and `relay`; protocols that relay read it, and without it every node on the path relays.
    pub roles: BTreeMap<String, Vec<NodeId>>,
    /// Which nodes' interfaces to capture.
    pub capture: Capture,
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
    Medium(link::Direction),
}

impl Link {
    /// The direction that leaves attachment `from`; a medium has the same one for every station.
    pub fn direction(&self, from: link::Attachment) -> &link::Direction {
        match &self.model {
            LinkModel::PointToPoint(config) if from == 0 => &config.forward,
            LinkModel::PointToPoint(config) => &config.backward,
            LinkModel::Medium(direction) => direction,
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

/// A flow: an application's units, over a stack, from one node to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The name.
    pub name: String,
    /// The sending node.
    pub from: NodeId,
    /// The receiving node.
    pub to: NodeId,
    /// What tables show: the transport's, variant's or stack's name.
    pub protocol: String,
    /// The stack, from the top down; at least one layer.
    pub over: Vec<Layer>,
    /// What is sent.
    pub app: App,
    /// Whether the flow's packets are IPv6.
    pub ipv6: bool,
}

/// The Ethernet header, without FCS.
pub const ETHERNET: u64 = 14;

impl Flow {
    /// What the layers from number `from` on down, and Ethernet, put before the payload, in bytes a full frame.
    pub fn overhead(&self, from: usize) -> u64 {
        let ip = if self.ipv6 { 40 } else { 20 };
        let of_layer = |layer: &Layer| match layer {
            Layer::Udp => ip + 8,
            // The header with timestamps, which every segment has.
            Layer::Tcp(_) => ip + 32,
            Layer::Tunnel => 0,
        };
        ETHERNET + self.over[from..].iter().map(of_layer).sum::<u64>()
    }
}

/// One layer of a stack with its options.
#[derive(Clone, Debug, PartialEq)]
pub enum Layer {
    /// `udp`: datagrams as they are.
    Udp,
    /// `tcp-cubic`, `tcp-bbr`: a stream.
    Tcp(tcp::Config),
    /// `tunnel`: IP packets inside the datagrams of the layer below.
    Tunnel,
}

/// A workload.
#[derive(Clone, Debug, PartialEq)]
pub enum App {
    /// Datagrams at a constant rate, like iperf2's UDP.
    Cbr {
        /// Of UDP payload; `None` saturates the first link.
        rate: Option<Rate>,
        /// UDP payload of each datagram.
        size: Bytes,
        /// When.
        span: Span,
    },
    /// As much as the transport takes.
    Bulk {
        /// How much in all; `None` for no end.
        bytes: Option<Bytes>,
        /// When.
        span: Span,
    },
    /// A real file, whose hash is checked at the end.
    File {
        /// The contents, read when the scenario was.
        contents: Arc<[u8]>,
        /// When.
        span: Span,
    },
    /// Messages of a fixed size at a fixed rate, echoed by the receiver.
    Messages {
        /// Each message's payload.
        size: Bytes,
        /// The time between two.
        every: Duration,
        /// When.
        span: Span,
    },
}

/// When an application sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// From when; `None` waits for a `start` event.
    pub start: Option<Instant>,
    /// Until when; `None` until the end of the run.
    pub stop: Option<Instant>,
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
