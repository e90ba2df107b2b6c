//! A flow's plan: its routes through the network, and the nodes that take part in it.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::ops::Range;

use hopcast_core::{Duration, Instant, Seed, Stream};

use super::layer::{ETHERNET_HEADER, Layer, can_relay, overhead};
use super::{Ends, Participants};
use crate::error::BuildError;
use crate::group::{Group, GroupFlow};
use crate::network::{GlobalRoutes, Hop, Network, NetworkPlan, NodeId};

/// A flow as the scenario has it, for [`FlowPlan::of`].
#[derive(Clone, Debug)]
pub struct FlowSpec<'a> {
    /// Its place among the scenario's flows: its ports and TUN devices are numbered by it.
    pub number: usize,
    /// Its name.
    pub name: &'a str,
    /// The sending node.
    pub from: NodeId,
    /// The receiving nodes, at least one.
    pub to: &'a [NodeId],
    /// The group that they are, unless the flow goes to one node, or by its transport's own tree.
    pub group: Option<&'a Group>,
    /// The stack, from the top down; none is the host's own packets.
    pub over: &'a [Layer],
    /// Whether its packets are IPv6.
    pub ipv6: bool,
    /// Number of routes without a common node that it takes.
    pub paths: usize,
    /// Whether a real program is what sends, with sockets of its own.
    pub is_program: bool,
    /// The local ports of a sender that opens many connections; empty for one that opens one.
    pub client_ports: Range<u16>,
    /// Whether the application can wait until its transport grants it datagrams.
    pub app_can_wait: bool,
    /// The nodes that begin anew while it runs, and when, in the order of time.
    pub restarts: Vec<(Instant, NodeId)>,
}

/// A flow with its routes, and who takes part in it.
pub struct FlowPlan<'a> {
    /// The network.
    pub network: Network<'a>,
    /// Nodes, and the links that they are attached to.
    pub plan: &'a NetworkPlan,
    /// The flow.
    pub spec: FlowSpec<'a>,
    /// The hops from one end to the other, or to the first of several receivers.
    pub route: Vec<Hop>,
    /// Maximum length of a packet that fits its routes, in bytes.
    pub mtu: u32,
    /// The nodes that take part where nodes between the ends relay.
    pub participants: Participants,
    /// The nodes of the role `peer` that take part in a flow to a group, where its transport has such.
    pub peers: Vec<NodeId>,
    /// Maximum delay of the nodes' wake-ups.
    pub slack: Duration,
    seed: Seed,
}

impl<'a> FlowPlan<'a> {
    /// A flow of a network, on its routes as they are at the start.
    ///
    /// # Errors
    /// [`BuildError::TooFewPaths`].
    pub fn of(
        network: Network<'a>,
        plan: &'a NetworkPlan,
        global: &RefCell<GlobalRoutes>,
        seed: Seed,
        spec: FlowSpec<'a>,
    ) -> Result<Self, BuildError> {
        // A group may have every node of a large network, and the search for a route is one through all of it. Where
        // links agree on their MTU, or packets come by one tree, a route to one member says what else is to be known.
        if let Some(group) = spec.group.filter(|group| group.delivery.settings().is_left_to_services()) {
            global.borrow_mut().leave_to_services(group.address(spec.ipv6));
        }
        let has_tree = spec.group.is_some_and(|group| group.delivery.settings().is_routed());
        let one_does = has_tree || spec.group.is_some() && plan.has_one_mtu();
        let searched = if one_does { &spec.to[..1] } else { spec.to };
        let to = |&to: &NodeId| match has_tree {
            true => plan.tree_route(network, &mut global.borrow_mut(), (spec.from, to)),
            false => plan.route(network, &mut global.borrow_mut(), (spec.from, to), spec.address(plan, to)),
        };
        let routes = match spec.paths {
            0 | 1 => searched.iter().map(to).collect(),
            several => plan.disjoint_routes(network, (spec.from, spec.to[0]), several),
        };
        if routes.len() < spec.paths {
            let (flow, wanted, found) = (spec.name.to_owned(), spec.paths, routes.len());
            return Err(BuildError::TooFewPaths { flow, wanted, found });
        }
        let on_tree = || plan.tree_mtu(network, &mut global.borrow_mut(), spec.from, spec.to);
        let tree_mtu = has_tree.then(on_tree).flatten();
        let route_mtu = || routes.iter().map(|path| path.mtu).min().unwrap_or(1500);
        let mtu = tree_mtu.unwrap_or_else(route_mtu);
        // What goes to a group is relayed by no transport.
        let relayed = if spec.group.is_some() { &routes[..1] } else { &routes };
        let participants = Participants::of(network, plan, &spec, relayed);
        let route = routes.into_iter().next().map(|path| path.hops).unwrap_or_default();
        let peers = spec.exchange().peers(network.role("peer"), spec.from, spec.to);
        let flow = Self { network, plan, spec, route, mtu, participants, peers, slack: Duration::ZERO, seed };
        if let Some(to_group) = flow.to_group() {
            let delivery = to_group.group.delivery.row().name;
            to_group.senders().for_each(|node| global.borrow_mut().note_sender(node, delivery));
        }
        Ok(flow)
    }

    /// The ends as the sender sees them: with the group, or with the first receiver, where the transport brings to all
    /// what is sent to the first.
    pub fn source(&self) -> Ends {
        let ends = self.spec.ends(self.plan, self.spec.to[0]);
        let Some(group) = self.spec.group else { return ends };
        Ends { remote: SocketAddr::new(group.address(self.spec.ipv6), ends.remote.port()), ..ends }
    }

    /// The ends with this receiver, as the receiver sees them.
    pub fn sink(&self, to: NodeId) -> Ends {
        let own = self.spec.ends(self.plan, to).other();
        Ends { local: self.participants.address(to).unwrap_or(own.local), ..own }
    }

    /// The times at which a node begins anew, ascending.
    pub fn restarts_of(&self, node: NodeId) -> impl Iterator<Item = Instant> + '_ {
        self.spec.restarts.iter().filter(move |&&(_, other)| other == node).map(|&(at, _)| at)
    }

    /// The ends as one of the [`peers`](Self::peers) sees them: it sends to the group too.
    pub fn peer(&self, node: NodeId) -> Ends {
        let remote = self.source().remote;
        Ends { local: SocketAddr::new(self.spec.address(self.plan, node), remote.port()), remote }
    }

    /// The flow as the delivery of its group sees it, if it has one.
    pub fn to_group(&self) -> Option<GroupFlow<'_>> {
        let (sender, exchange) = (self.spec.from, self.spec.exchange());
        self.spec.group.map(|group| GroupFlow { group, sender, exchange, peers: &self.peers })
    }

    /// The ends as the sending application sees them: it opens its connection to the node that ends it first.
    pub fn application_source(&self) -> Ends {
        let source = self.source();
        let remote = self.spec.over.first().map(|top| top.settings().first_hop(self, source));
        Ends { remote: remote.unwrap_or(source.remote), ..source }
    }

    /// Whether the application is granted datagrams as fast as its transport takes them.
    pub fn is_granted(&self) -> bool {
        self.spec.app_can_wait && self.spec.over.first().is_some_and(|top| top.settings().grants_datagrams())
    }

    /// Maximum length of a frame that fits the flow's routes, in bytes.
    pub fn longest_frame(&self) -> u64 {
        u64::from(self.mtu) + ETHERNET_HEADER
    }

    /// Bytes of the route's packets that the layers below this one leave for a datagram.
    pub fn room(&self, depth: usize) -> u16 {
        let room = self.longest_frame().saturating_sub(self.overhead(depth + 1));
        u16::try_from(room).unwrap_or(u16::MAX)
    }

    /// The headers of the layers from number `from` on down, of the group's delivery, and Ethernet's, in bytes a full
    /// frame.
    pub fn overhead(&self, from: usize) -> u64 {
        let delivery = self.spec.group.map_or(0, |group| group.delivery.settings().overhead());
        overhead(self.spec.over, from, self.spec.ipv6) + delivery
    }

    /// Maximum length of a packet of the layer at `depth` in the datagrams of those below it, in bytes.
    pub(crate) fn tunnel_mtu(&self, depth: usize) -> u32 {
        self.longest_frame().saturating_sub(self.overhead(depth)) as u32
    }

    /// Maximum length of a packet that a node's host can send, in bytes, or that the layer below `depth` carries: what
    /// a transport on packets knows at the start. It finds a shorter one on the route by itself.
    pub fn packet_mtu(&self, node: NodeId, depth: usize) -> Option<u32> {
        let own = self.plan.mtus(self.network, node).max();
        let below = self.spec.over.get(depth + 1).and_then(|layer| layer.settings().packet_mtu());
        own.into_iter().chain(below).min()
    }

    /// The random stream of a layer's machine at a node.
    pub fn random(&self, node: NodeId, depth: usize) -> Stream {
        self.seed.stream(&["flow", self.spec.name, &self.network.nodes[node].name], depth as u64)
    }

    /// The random stream of the group's delivery at a node.
    pub(crate) fn delivery_random(&self, node: NodeId) -> Stream {
        self.seed.stream(&["delivery", self.spec.name, &self.network.nodes[node].name], 0)
    }

    /// The random stream of a machine on one link of a node.
    pub(crate) fn random_on_link(&self, node: NodeId, link: &str) -> Stream {
        self.seed.stream(&["flow", self.spec.name, &self.network.nodes[node].name, link], 0)
    }

    /// Whether nodes between the ends may take part in the layer at `depth`.
    pub fn others_take_part(&self, depth: usize) -> bool {
        can_relay(self.spec.over, depth)
    }

    /// The layers at the ends themselves: where gateways take connections over, the ends know nothing of the others.
    pub(crate) fn own_layers(&self) -> &'a [Layer] {
        if self.has_gateways() { &self.spec.over[..1] } else { self.spec.over }
    }

    /// Whether gateways take the flow's connections over, and not the ends themselves.
    pub fn has_gateways(&self) -> bool {
        self.participants.root().node != self.spec.from
    }

    /// A name for a machine's counters: none where the end has no other machine.
    pub(crate) fn counter_name(&self, name: &'static str) -> &'static str {
        let over = self.own_layers();
        let hosts_own = over.last().is_some_and(Layer::is_hosts_own);
        if over.len() > 1 + usize::from(hosts_own) { name } else { "" }
    }
}
