//! A scenario as the engine runs it: everything resolved, nothing that cannot be run.

use std::collections::BTreeMap;
use std::sync::Arc;

use hopcast_core::{Duration, Instant};
use hopcast_link as link;
use hopcast_stack::flow;
use hopcast_stack::network::{Addresses, GlobalRoutes, Network, NetworkPlan, Target};
use hopcast_stack::table::Worlds;
use hopcast_stack::transport::{Port, Ports, ProgramEnds, ProgramPair};

use crate::results::Source;

pub use super::programs::{
    Copy, CopyProgram, Exec, LiveOnly, Load, Picture as TestPicture, Ping, Program, Signal,
};
pub use super::workload::{
    App, Arrivals, Frames, OnOff, Pattern, Picture, SizeLaw, Span, Spread, TraceFrame,
};
pub(crate) use super::workload::{MAX_FRAME, SHORT_FLOW};

pub use hopcast_stack::flow::ETHERNET;
pub use hopcast_stack::group::{Group, Member};
pub use hopcast_stack::network::{Destinations, Link, LinkId, LinkModel, Node, NodeId, StaticRoute};
pub use hopcast_stack::service::ServiceSpec;
pub use hopcast_stack::transport::{Layer, Socket};
/// A flow's place in [`Scenario::flows`].
pub type FlowId = usize;
/// A group's place in [`Scenario::groups`].
pub type GroupId = usize;

/// All that a scenario file asks for: each case of its sweep, ready to run `repeats` times.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The title, from the file.
    pub title: String,
    /// Number of runs of each case.
    pub repeats: u64,
    /// The cases, in the order of the sweep; one without parameters if there is no sweep.
    pub cases: Vec<Case>,
    /// Published figures to show beside ours, or measured ones.
    pub published: Vec<Published>,
    /// Whether the figures in `published` are measurements that nobody published.
    pub measured: bool,
    /// The publication whose experiment this repeats.
    pub source: Option<Source>,
    /// World to run it in unless the command line says otherwise.
    pub world: World,
    /// Notes on transports, by their names in tables.
    pub notes: BTreeMap<String, String>,
    /// Remarks on the comparison with published figures, a line each.
    pub remarks: Vec<String>,
}

/// World that a scenario is run in.
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
    /// The scenario to run.
    pub scenario: Arc<Scenario>,
    /// The parts of its network's file that are left out, a line each.
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
    /// Time at which the run ends.
    pub duration: Duration,
    /// Span in which figures are taken.
    pub measure: Measure,
    /// The nodes, in the order of the file; names are unique.
    pub nodes: Vec<Node>,
    /// The links, in the order of the file; names are unique.
    pub links: Vec<Link>,
    /// How hosts know the Ethernet addresses of their neighbours.
    pub neighbours: Neighbours,
    /// How routers know of a host's memberships.
    pub membership: Reporting,
    /// How routes follow the network.
    pub routing: Routing,
    /// The routes of the file, which win over shortest paths; each leads to a neighbour.
    pub routes: Vec<StaticRoute>,
    /// The events, in the order of time and then of the file.
    pub events: Vec<Event>,
    /// The same in words, an entry for each event of the file, in the order of time: the first hundred.
    pub schedule: Vec<(Instant, String)>,
    /// The services of nodes, in the order of the file; names are unique.
    pub services: Vec<ServiceSpec>,
    /// The groups of receivers, in the order of the file, and then those that flows to several nodes make.
    pub groups: Vec<Group>,
    /// The flows, in the order of the file; names are unique.
    pub flows: Vec<Flow>,
    /// Nodes by role, `helper` or `relay`; protocols that relay read it, and without it every node on the path relays.
    pub roles: BTreeMap<String, Vec<NodeId>>,
    /// Nodes whose interfaces are captured.
    pub capture: Capture,
    /// Commands at nodes, in the order of the file; names are unique.
    pub execs: Vec<Exec>,
    /// The part of it that is for live runs only: [`needs_live`](super::needs_live).
    pub live_only: LiveOnly,
}

/// How routers know of hosts' memberships in groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reporting {
    /// By the plan: nothing is sent.
    #[default]
    Plan,
    /// Hosts report them by IGMP and MLD.
    Report,
}

/// How hosts know the Ethernet addresses of their neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Neighbours {
    /// From the plan of the network: at once, and without a frame.
    #[default]
    Plan,
    /// By asking: ARP and neighbour discovery.
    Resolve,
}

/// How routes follow the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Routing {
    /// Time between a change of a link and the change of the routes, and of the trees of groups, that follows from it.
    pub convergence: Duration,
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

/// Something that happens at a stated time.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Time at which it happens.
    pub at: Instant,
    /// The action.
    pub action: Action,
}

/// The action of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Changes a link, in the direction that leaves attachment `from` or in all.
    Link {
        /// Link that changes.
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
    /// A service stops, starts or is set at nodes.
    Service {
        /// Its place among the services.
        service: usize,
        /// The nodes.
        on: Vec<NodeId>,
        /// The verb: `stops`, `starts`, `is set`.
        what: &'static str,
    },
    /// A node becomes a member of a group.
    Join {
        /// Which group.
        group: GroupId,
        /// Which node.
        node: NodeId,
    },
    /// A node is a member of a group no more.
    Leave {
        /// Which group.
        group: GroupId,
        /// Which node.
        node: NodeId,
    },
}

/// A flow: an application's units, over a stack, from one node to another or to several.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The name.
    pub name: String,
    /// The sending node.
    pub from: NodeId,
    /// The receiving nodes, none twice; of a group, all that are members at some time.
    pub to: Vec<NodeId>,
    /// The group that they are, if its delivery brings to them what is sent; `None` of one receiver, and of several
    /// that the transport's own tree leads to.
    pub group: Option<GroupId>,
    /// The name in tables: the transport's, variant's or stack's name.
    pub protocol: String,
    /// The stack, from the top down; none is the host's packets, for `ping`.
    pub over: Vec<Layer>,
    /// The application.
    pub app: App,
    /// Whether the flow's packets are IPv6.
    pub ipv6: bool,
    /// Number of routes without a common node that it takes; more than one where the stack can.
    pub paths: usize,
}

impl Flow {
    /// Whether the application sends a stream, and not datagrams: what it prefers where the stack offers both.
    pub fn on_stream(&self) -> bool {
        let offered = self.over.first().is_some_and(|top| top.row().offers.has(Port::Stream));
        // A stream has one reader.
        offered && self.group.is_none() && self.to.len() == 1 && !matches!(self.app, App::Cbr { .. })
    }

    /// Whether it ends by itself, once a file or a number of bytes has been sent.
    pub fn is_bounded(&self) -> bool {
        matches!(self.app, App::File { .. } | App::Bulk { bytes: Some(_), .. })
    }

    /// Whether it is to several receivers, or to a group that may have several.
    pub fn is_to_several(&self) -> bool {
        self.group.is_some() || self.to.len() > 1
    }

    /// Whether the application hands over its units whole: a file, and messages that are not echoed, where the stack
    /// takes them.
    pub fn on_messages(&self) -> bool {
        let offered = self.over.first().is_some_and(|top| top.row().offers.has(Port::Message));
        let sends_units = match self.app {
            App::File { .. } => true,
            App::Messages { .. } => !self.is_echoed(),
            _ => false,
        };
        offered && sends_units && !self.on_stream()
    }

    /// Whether its receiver sends back what it receives, which one of several does not.
    pub fn is_echoed(&self) -> bool {
        matches!(self.app, App::Messages { .. }) && !self.is_to_several()
    }

    /// Whether its transports hold back what has arrived until what comes before it has, or is decoded.
    pub fn holds_back(&self) -> bool {
        self.over.iter().any(|layer| layer.row().holds_back)
    }

    /// Whether a coded transport takes part in its stack.
    pub fn is_coded(&self) -> bool {
        self.over.iter().any(|layer| layer.row().coded)
    }

    /// Bytes that its lowest transport fills of each frame, if it sends frames itself.
    pub fn frame_payload(&self) -> Option<u64> {
        self.over.last().and_then(|lowest| lowest.settings().frame_payload())
    }

    /// The nodes that may repeat what they overhear of this flow on a medium.
    pub fn helpers<'s>(&self, scenario: &'s Scenario) -> &'s [NodeId] {
        let wanted = self.over.last().is_some_and(|lowest| lowest.settings().wants_helper());
        if wanted { scenario.network().role("helper") } else { &[] }
    }

    /// Where the routes to one of its ends lead: to its first address, and several disjoint ones to the node itself.
    pub(crate) fn target(&self, addresses: &Addresses, end: NodeId) -> Target {
        if self.paths > 1 { Target::Node(end) } else { addresses.target_of(end, self.ipv6) }
    }

    /// Whether its packets come by the tree of a group: to each member by the member's route to the sender, backwards.
    pub(crate) fn has_tree(&self, groups: &[Group]) -> bool {
        self.group.is_some_and(|group| groups[group].delivery.settings().is_routed())
    }

    /// The headers of the layers from number `from` on down, and Ethernet's, in bytes a full frame.
    pub fn overhead(&self, from: usize) -> u64 {
        flow::overhead(&self.over, from, self.ipv6)
    }

    /// The headers before the payload, Ethernet's and a program's own among them, in bytes a full frame.
    pub fn full_overhead(&self) -> u64 {
        let own = match &self.app {
            App::Program { program, .. } => program.headers(self.ipv6),
            _ => 0,
        };
        self.overhead(0) + own
    }

    /// Bytes of these that only packets have that repair others: a bound on what a link carries does not count them.
    pub fn repair_overhead(&self) -> u64 {
        self.over.iter().map(|layer| layer.settings().repair_overhead()).sum()
    }

    /// Whether a real program is its application.
    pub fn is_program(&self) -> bool {
        matches!(self.app, App::Program { .. })
    }

    /// Whether its application sends echo requests, which the hosts answer.
    pub fn is_ping(&self) -> bool {
        matches!(self.app, App::Program { program: Program::Ping(_), .. })
    }

    /// The sockets that a program would use as this flow's application; `None` if the top of the stack is none of the
    /// host's.
    pub fn socket(&self) -> Option<Socket> {
        socket(&self.over)
    }

    /// The real programs that are its transport, if it has such; `at` is where they meet.
    pub fn transport_programs(&self, at: ProgramEnds) -> Option<ProgramPair> {
        self.over.first().and_then(|top| top.settings().programs(at))
    }

    /// The real programs that its transport needs, in a live run.
    pub fn needed_programs(&self) -> impl Iterator<Item = &'static str> {
        let top = self.over.first().map(|top| top.row().worlds);
        let needed = match top {
            Some(Worlds::Live { programs, .. }) => programs,
            Some(Worlds::Both | Worlds::Virtual) | None => &[],
        };
        needed.iter().map(|(program, _)| *program)
    }

    /// Whether a real program is its transport.
    pub fn is_over_program(&self) -> bool {
        self.over.first().is_some_and(Layer::is_program)
    }
}

/// The sockets by which a program reaches what is on top of a stack, if they are the host's.
pub(crate) fn socket(layers: &[Layer]) -> Option<Socket> {
    match layers.first() {
        // No layers at all are the host itself.
        None => Some(Socket::Icmp),
        Some(top) if top.row().offers == Ports::PACKETS => Some(Socket::Icmp),
        Some(top) => top.row().socket,
    }
}

impl Scenario {
    /// The network, as flows are built on it.
    pub fn network(&self) -> Network<'_> {
        Network { nodes: &self.nodes, links: &self.links, roles: &self.roles, services: &self.services }
    }

    /// The routes of the network as it is at the start.
    pub fn global_routes(&self, plan: &NetworkPlan) -> GlobalRoutes {
        let mut routes = plan.routes(self.network());
        for route in &self.routes {
            routes.add_static(route);
        }
        routes
    }

    /// The times at which a receiver of a flow is a member of its group; `None` of a flow without a group.
    pub fn member(&self, flow: &Flow, receiver: NodeId) -> Option<&Member> {
        flow.group.and_then(|group| self.groups[group].member(receiver))
    }

    /// Whether stations of media hear the frames for others, since a transport sends frames itself.
    pub fn overhears(&self) -> bool {
        self.flows.iter().any(|flow| flow.frame_payload().is_some())
    }
}

/// The interfaces to capture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Capture {
    /// Nothing.
    #[default]
    Nothing,
    /// Every interface of these nodes.
    Nodes(Vec<NodeId>),
}
