//! A scenario as the engine runs it: everything is resolved and can be run.

use std::collections::BTreeMap;
use std::sync::Arc;

use hopcast_core::{Duration, Instant};
use hopcast_link as link;
use hopcast_radio::Fleet;
use hopcast_stack::group::Exchange;
use hopcast_stack::network::{AddressPlan, GlobalRoutes, Network, NetworkPlan, Target};
use hopcast_stack::table::Worlds;
use hopcast_stack::transport::{self, PortKind, Ports, ProgramEnds, ProgramPair};

use crate::results::{Parameters, Publication};

pub use super::programs::{
    CopyProgram, Exec, FileCopy, GroupFile, GroupFileProgram, LiveOnly, Load, PingOptions, Program, Signal,
    TestPicture,
};
pub use super::workload::{
    App, Arrivals, FrameType, Frames, OnOff, Pattern, SendSpan, SizeLaw, Spread, TraceFrame,
};
pub(crate) use super::workload::{MAX_FRAME, SHORT_FLOW};

pub use hopcast_stack::group::{Group, Member};
pub use hopcast_stack::network::{
    Destinations, Link, LinkId, LinkModel, Node, NodeId, ServiceSpec, StaticRoute,
};
pub use hopcast_stack::transport::{ETHERNET_HEADER, Layer, Socket};
/// A flow's index in [`Scenario::flows`].
pub type FlowId = usize;
/// A group's index in [`Scenario::groups`].
pub type GroupId = usize;

/// A scenario file, resolved: each case of its sweep, ready to be run `repeats` times.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The title, from the file.
    pub title: String,
    /// Number of runs of each case.
    pub repeats: u64,
    /// The cases, in the order of the sweep; one without parameters if there is no sweep.
    pub cases: Vec<Case>,
    /// Figures to show beside ours.
    pub published: Vec<Published>,
    /// Origin of the figures in `published`: `published`, `measured` or `expected`.
    pub origin: &'static str,
    /// The publication whose experiment this repeats.
    pub source: Option<Publication>,
    /// Swept paths with the values of the runs against which savings are told, as they are written in the file.
    pub reference: Parameters,
    /// The swept path along which plots go; `None` leaves it to the report.
    pub axis: Option<String>,
    /// World to run it in, unless the command line has another.
    pub world: WorldChoice,
    /// Notes on transports, by their names in tables.
    pub notes: BTreeMap<String, String>,
    /// Remarks on the comparison with published figures, a line each.
    pub remarks: Vec<String>,
}

/// The world in which a scenario is run, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorldChoice {
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
    /// Each swept path with its value as written in the file; a stack or variant of `over` by its name in tables.
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
    /// The name of the flow that they are of; `None` for every flow.
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
    /// The radio links, each with its ships: the stations of its medium, in their order.
    pub fleets: Vec<(LinkId, Arc<Fleet>)>,
    /// The source of neighbours' Ethernet addresses.
    pub neighbours: Neighbours,
    /// The source of routers' knowledge of hosts' memberships.
    pub membership: Reporting,
    /// The way in which routes follow the network.
    pub routing: Routing,
    /// The routes of the file, which have priority over shortest paths; each leads to a neighbour.
    pub routes: Vec<StaticRoute>,
    /// The events, in the order of time and then of the file.
    pub events: Vec<Event>,
    /// The first hundred events of the file in words, in the order of time.
    pub schedule: Vec<(Instant, String)>,
    /// The services of nodes, in the order of the file; names are unique.
    pub services: Vec<ServiceSpec>,
    /// The groups of receivers, in the order of the file, and then those that flows to several nodes make.
    pub groups: Vec<Group>,
    /// The flows, in the order of the file; names are unique.
    pub flows: Vec<Flow>,
    /// Nodes by role, such as `helper` or `relay`, for protocols that relay; without roles every node on the path
    /// relays.
    pub roles: BTreeMap<String, Vec<NodeId>>,
    /// Nodes whose interfaces are captured.
    pub capture: Capture,
    /// Commands at nodes, in the order of the file; names are unique.
    pub execs: Vec<Exec>,
    /// The part of the scenario that needs a live run, if any: [`needs_live`](super::needs_live).
    pub live_only: LiveOnly,
}

/// The source of routers' knowledge of hosts' memberships in groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reporting {
    /// From the plan of the network: nothing is sent.
    #[default]
    Plan,
    /// Hosts report them by IGMP and MLD.
    Report,
}

/// The source of neighbours' Ethernet addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Neighbours {
    /// From the plan of the network, without sending a frame.
    #[default]
    Plan,
    /// By ARP and neighbour discovery.
    Resolve,
}

/// The way in which routes follow the network.
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

/// A scheduled event.
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
        /// The attachment that the changed direction leaves; `None` for all directions.
        from: Option<link::Attachment>,
        /// The change.
        change: link::Change,
    },
    /// Starts a flow whose app has `start: event`, or starts it again after a stop.
    Start(FlowId),
    /// Stops a flow: its application sends no more.
    Stop(FlowId),
    /// Stops, starts or sets a service at nodes.
    Service {
        /// Its index among the services.
        service: usize,
        /// The nodes.
        on: Vec<NodeId>,
        /// The verb: `stops`, `starts`, `is set`.
        what: &'static str,
    },
    /// A node begins anew: the transports of its flows have what they keep over that, and nothing else.
    Restart(NodeId),
    /// A node becomes a member of a group.
    Join {
        /// Which group.
        group: GroupId,
        /// Which node.
        node: NodeId,
    },
    /// A node ceases to be a member of a group.
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
    /// The name in the file, if that names several senders: each has a flow, whose name ends with the node's.
    pub senders: Option<String>,
    /// The sending node.
    pub from: NodeId,
    /// The receiving nodes, none twice; of a group, all that are members at some time.
    pub to: Vec<NodeId>,
    /// The group of the receivers, if its delivery brings the datagrams to them; `None` for one receiver, and for
    /// several that the transport reaches by a tree of its own.
    pub group: Option<GroupId>,
    /// The name in tables: the transport's, variant's or stack's name.
    pub protocol: String,
    /// The stack, from the top down; empty for `ping` over the host's packets.
    pub over: Vec<Layer>,
    /// The application.
    pub app: App,
    /// Whether the flow's packets are IPv6.
    pub ipv6: bool,
    /// Number of disjoint routes that it uses; more than one only if the stack supports that.
    pub paths: usize,
}

impl Scenario {
    /// Its only flow, if that is of bounded size and to several receivers.
    pub fn transfer(&self) -> Option<&Flow> {
        let [flow] = &*self.flows else { return None };
        (flow.transfer().is_some() && flow.is_to_several()).then_some(flow)
    }
}

impl Flow {
    /// Whether the application sends a stream, and not datagrams or messages: it prefers a stream to datagrams where
    /// the stack offers both.
    pub fn on_stream(&self) -> bool {
        let top = self.over.first().map(|top| top.row()).filter(|row| row.offers.has(PortKind::Stream));
        let Some(row) = top.filter(|_| !self.on_messages()) else { return false };
        match self.app {
            App::Cbr { .. } | App::Bulk { port: Some(PortKind::Datagram), .. } => false,
            App::Bulk { port: Some(_), .. } => true,
            // A stream has one reader unless a file says otherwise.
            _ => !self.is_to_several() && (row.two_way_streams || !self.is_echoed()),
        }
    }

    /// Whether it ends by itself, once a file or a number of bytes has been sent.
    pub fn is_bounded(&self) -> bool {
        self.transfer().is_some()
    }

    /// Bytes of payload after which it ends by itself; `None` if it does not, or if a real program alone knows.
    pub fn transfer(&self) -> Option<u64> {
        match &self.app {
            App::Bulk { bytes: Some(bytes), .. } => Some(bytes.get()),
            App::File { contents, .. } => Some(contents.len() as u64),
            App::Program { program: Program::GroupFile(file), .. } => Some(file.bytes.get()),
            _ => None,
        }
    }

    /// Whether it is to several receivers, or to a group that may have several.
    pub fn is_to_several(&self) -> bool {
        self.group.is_some() || self.to.len() > 1
    }

    /// Whether the application hands over whole units, a file or messages that are not echoed, since the stack accepts
    /// them.
    pub fn on_messages(&self) -> bool {
        let offered = self.over.first().is_some_and(|top| top.row().offers.has(PortKind::Message));
        let sends_units = match self.app {
            App::File { .. } => true,
            App::Messages { .. } => !self.is_echoed(),
            _ => false,
        };
        offered && sends_units
    }

    /// Whether its receiver echoes what it receives, which one of several receivers does not.
    pub fn is_echoed(&self) -> bool {
        matches!(self.app, App::Messages { .. }) && !self.is_to_several()
    }

    /// Whether its transports hold back data that has arrived until earlier data has arrived or is decoded.
    pub fn holds_back(&self) -> bool {
        self.over.iter().any(|layer| layer.row().holds_back)
    }

    /// Whether a coded transport takes part in its stack.
    pub fn is_coded(&self) -> bool {
        self.over.iter().any(|layer| layer.row().coded)
    }

    /// Payload of each frame of its lowest transport, in bytes, if that sends frames itself.
    pub fn frame_payload(&self) -> Option<u64> {
        self.over.last().and_then(|lowest| lowest.settings().frame_payload())
    }

    /// The nodes that may repeat what they overhear of this flow on a medium.
    pub fn helpers<'s>(&self, scenario: &'s Scenario) -> &'s [NodeId] {
        let wanted = self.over.last().is_some_and(|lowest| lowest.settings().wants_helper());
        if wanted { scenario.network().role("helper") } else { &[] }
    }

    /// Who is to hear what is sent to its group's address.
    pub fn exchange(&self) -> Exchange {
        let top = self.over.first().filter(|_| self.group.is_some());
        top.map_or(Exchange::FromSender, |top| top.settings().exchange())
    }

    /// The nodes of the role `peer` that take part in it.
    pub fn peers(&self, scenario: &Scenario) -> Vec<NodeId> {
        self.exchange().peers(scenario.network().role("peer"), self.from, &self.to)
    }

    /// The target of the routes to one of its ends: its first address, or the node itself for several disjoint routes.
    pub(crate) fn target(&self, addresses: &AddressPlan, end: NodeId) -> Target {
        if self.paths > 1 { Target::Node(end) } else { addresses.target_of(end, self.ipv6) }
    }

    /// Whether its packets follow a group's tree: each member's own route to the sender, backwards.
    pub(crate) fn has_tree(&self, groups: &[Group]) -> bool {
        self.group.is_some_and(|group| groups[group].delivery.settings().is_routed())
    }

    /// The headers of the layers from number `from` downwards, and Ethernet's, in bytes for a full frame.
    pub fn overhead(&self, from: usize) -> u64 {
        transport::overhead(&self.over, from, self.ipv6)
    }

    /// All headers before the payload, including Ethernet's and a program's own, in bytes for a full frame.
    pub fn full_overhead(&self) -> u64 {
        let own = match &self.app {
            App::Program { program, .. } => program.headers(self.ipv6),
            _ => 0,
        };
        self.overhead(0) + own
    }

    /// The part of these headers that only repair packets have, which a bound of a link's payload does not count.
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

    /// The kind of sockets that a program would use as this flow's application; `None` if the top of the stack is not
    /// the host's.
    pub fn socket(&self) -> Option<Socket> {
        socket(&self.over)
    }

    /// The real programs that are its transport, if any; `at` has their addresses.
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

/// The kind of sockets by which a program uses the top of a stack, if that is the host's.
pub(crate) fn socket(layers: &[Layer]) -> Option<Socket> {
    match layers.first() {
        // No layers at all are the host itself.
        None => Some(Socket::Icmp),
        Some(top) if top.row().offers == Ports::PACKETS => Some(Socket::Icmp),
        Some(top) => top.row().socket,
    }
}

impl Scenario {
    /// The ships of a radio link.
    pub fn fleet(&self, link: LinkId) -> Option<&Fleet> {
        self.fleets.iter().find(|(number, _)| *number == link).map(|(_, fleet)| &**fleet)
    }

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

    /// Whether stations of media must receive frames for others, since a transport sends frames itself.
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
