//! The nodes of a flow over BATS: its edges, the relays between them, and the gateways that bring TCP to it.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use hopcast_coded::bats::{Config, Node};
use hopcast_coded::proxy;
use hopcast_core::Machine;

use super::sites::Sites;
use super::{Parts, address};
use crate::app::Ends;
use crate::scenario::model::{App, Flow, Layer, NodeId, Scenario};
use crate::world::cabling::Cabling;

/// A node that carries a flow, with its place between the sender and the receivers.
pub(super) struct Carrier {
    node: NodeId,
    address: SocketAddr,
    /// One, but at the end of several ways.
    parents: Vec<usize>,
    children: Vec<usize>,
}

/// Who carries a flow whose transport relays: a tree from the sender to the receivers, or disjoint ways to one of them.
pub(super) struct Tree {
    /// The first is the root.
    carriers: Vec<Carrier>,
}

impl Tree {
    /// From the sender to the receivers, or from a gateway that takes the sender's connections over to another, by those
    /// nodes of the routes that relay. A receiver on the way to another does both, its edge under the sender's port.
    pub(super) fn new(
        scenario: &Scenario,
        cabling: &Cabling,
        flow: &Flow,
        routes: &[Vec<(usize, usize)>],
        source: Ends,
    ) -> Self {
        let nodes = |route: &Vec<(usize, usize)>| -> Vec<NodeId> {
            route.iter().skip(1).map(|&(link, attachment)| cabling.ends[link][attachment].0).collect()
        };
        let role = |name: &str| scenario.roles.get(name);
        let proxies = role("proxy").filter(|_| flow.takes_connections_over());
        let relays = role("relay");
        let relays = |node: &&NodeId| relays.is_none_or(|relays| relays.contains(node));
        let at = |node| address(flow, node, source.remote.port());
        let relaying: BTreeSet<NodeId> = routes.iter().flat_map(nodes).filter(|node| relays(&node)).collect();
        let edge_at = |node| match relaying.contains(&node) {
            true => address(flow, node, source.local.port()),
            false => at(node),
        };
        let mut tree = Self { carriers: Vec::new() };
        // Several routes to one receiver are ways of their own.
        let receivers = flow.to.iter().chain(std::iter::repeat(&flow.to[0]));
        for (&receiver, route) in receivers.zip(routes) {
            let between = nodes(route);
            let is_proxy = |node: &NodeId| proxies.is_some_and(|proxies| proxies.contains(node));
            let gateways = (between.iter().position(is_proxy), between.iter().rposition(is_proxy));
            let mut way = vec![(flow.from, source.local)];
            match gateways {
                (Some(first), Some(last)) if first < last => {
                    way = vec![(between[first], at(between[first]))];
                    way.extend(between[first + 1..last].iter().filter(relays).map(|&node| (node, at(node))));
                    way.push((between[last], at(between[last])));
                }
                _ => {
                    way.extend(between.iter().filter(relays).map(|&node| (node, at(node))));
                    way.extend(relaying.get(&receiver).map(|&node| (node, at(node))));
                    way.push((receiver, edge_at(receiver)));
                }
            }
            tree.grow(&way);
        }
        tree
    }

    /// Adds a way from the root: what of it is not there yet, after the last carrier that leads to a new one.
    fn grow(&mut self, way: &[(NodeId, SocketAddr)]) {
        let known = |&(_, address)| self.carriers.iter().position(|carrier| carrier.address == address);
        let places: Vec<Option<usize>> = way.iter().map(known).collect();
        let end = way.len().saturating_sub(1);
        let joins = places[..end].iter().rposition(Option::is_some);
        let mut parent = joins.and_then(|at| places[at]);
        for (&(node, address), place) in way.iter().zip(places).skip(joins.map_or(0, |at| at + 1)) {
            let place = place.unwrap_or_else(|| {
                self.carriers.push(Carrier { node, address, parents: Vec::new(), children: Vec::new() });
                self.carriers.len() - 1
            });
            if let Some(parent) = parent {
                self.carriers[parent].children.push(place);
                self.carriers[place].parents.push(parent);
            }
            parent = Some(place);
        }
    }

    fn root(&self) -> &Carrier {
        &self.carriers[0]
    }

    /// Where the way begins.
    pub(super) fn root_address(&self) -> SocketAddr {
        self.root().address
    }

    /// The first carrier after the root.
    pub(super) fn beside_root(&self) -> Option<SocketAddr> {
        self.root().children.first().map(|&place| self.carriers[place].address)
    }

    /// The carriers between the ends of a single way, each with its node, its address and the next one's.
    pub(super) fn between(&self) -> impl Iterator<Item = (NodeId, SocketAddr, SocketAddr)> {
        let between = self.carriers.iter().filter(|carrier| !carrier.parents.is_empty());
        between.filter_map(|carrier| {
            let next = *carrier.children.first()?;
            Some((carrier.node, carrier.address, self.carriers[next].address))
        })
    }

    /// The edge at a node.
    fn end(&self, node: NodeId) -> Option<&Carrier> {
        let ends = |carrier: &&Carrier| carrier.parents.is_empty() || carrier.children.is_empty();
        self.carriers.iter().filter(ends).find(|carrier| carrier.node == node)
    }

    /// The address of the edge at a receiver.
    pub(super) fn address(&self, receiver: NodeId) -> Option<SocketAddr> {
        self.end(receiver).map(|carrier| carrier.address)
    }

    fn addresses(&self, places: &[usize]) -> Vec<SocketAddr> {
        places.iter().map(|&place| self.carriers[place].address).collect()
    }

    /// Those next to a carrier, on the root's side and on the others.
    fn neighbours(&self, carrier: &Carrier) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
        (self.addresses(&carrier.parents), self.addresses(&carrier.children))
    }
}

impl Parts<'_> {
    /// The edge at one end of the flow.
    pub(super) fn edge(&self, config: &Config, depth: usize, node: NodeId, ends: Ends) -> Box<dyn Machine> {
        let neighbours = self.neighbours_of_end(depth, node, ends);
        let random = self.random(node, depth);
        let config = Config { unit_credit: depth == 0 && self.is_granted(), ..self.bats(config, depth) };
        Box::new(Node::edge(config, ends.local, (ends.local, ends.remote), &neighbours, random))
    }

    /// Whether the application waits until the transport grants it datagrams.
    pub(super) fn is_granted(&self) -> bool {
        let can_wait = matches!(self.flow.app, App::File { .. } | App::Bulk { .. }) && !self.flow.on_stream();
        can_wait && matches!(self.flow.over[0], Layer::Bats(_))
    }

    /// Whom the machine at an end of the flow speaks with: the other end, unless nodes between take part.
    pub(super) fn neighbours_of_end(&self, depth: usize, node: NodeId, ends: Ends) -> Vec<SocketAddr> {
        let Some(carrier) = self.tree.end(node).filter(|_| self.relays_at(depth)) else {
            return vec![ends.remote];
        };
        let (parents, children) = self.tree.neighbours(carrier);
        if carrier.parents.is_empty() { children } else { parents }
    }

    /// Whether gateways take the flow's connections over, and not the ends themselves.
    pub(super) fn has_gateways(&self) -> bool {
        self.tree.root().node != self.flow.from
    }

    /// Puts the gateways on their nodes: each ends the connections that cross it, and carries them on to the other.
    pub(super) fn gateways(&self, sites: &mut Sites<'_>, source: Ends) -> Result<(), String> {
        let [Layer::Tcp(tcp), Layer::Proxy(config), ..] = self.flow.over.as_slice() else { return Ok(()) };
        if !self.has_gateways() {
            return Ok(());
        }
        let root = self.tree.root();
        let far_end = self.tree.carriers.iter().find(|carrier| carrier.children.is_empty()).unwrap_or(root);
        for (own, far) in [(root, far_end), (far_end, root)] {
            let (parents, children) = self.tree.neighbours(own);
            let neighbours = [parents, children].concat();
            let &Carrier { node, address, .. } = own;
            let name = &self.scenario.nodes[node].name;
            let (config, random) = (self.bats(config, 1), self.random(node, 1));
            let ends = (address, far.address);
            let edge = Node::edge(config, address, ends, &neighbours, random);
            let foot = sites.udp(node, address)?;
            let edge = sites.stand(name, node, Box::new(edge), foot);
            if sites.on_kernel(node) {
                self.kernel_gateway(sites, node, tcp, source.remote, edge)?;
                continue;
            }
            let (tcp, port) = self.splice(sites, node, tcp, edge);
            let foot = sites.transit(node)?;
            let intercept = proxy::Intercept::new([source.local, source.remote]);
            let intercept = sites.stand(name, node, Box::new(intercept), foot);
            sites.plug(node, (tcp, port), intercept);
        }
        Ok(())
    }

    /// Puts the relays on their nodes.
    pub(super) fn relays(&self, sites: &mut Sites<'_>) -> Result<(), String> {
        let layers = self.flow.over.iter().enumerate();
        let relaying = layers.filter(|(depth, _)| self.relays_at(*depth));
        for (depth, config) in relaying.filter_map(|(depth, layer)| Some((depth, layer.bats()?))) {
            let between = |carrier: &&Carrier| !carrier.parents.is_empty() && !carrier.children.is_empty();
            for carrier in self.tree.carriers.iter().filter(between) {
                let &Carrier { node, address, .. } = carrier;
                let (left, right) = self.tree.neighbours(carrier);
                let (config, random) = (self.bats(config, depth), self.random(node, depth).fork());
                let relay = Node::relay(config, address, &left, &right, random);
                let foot = sites.udp(node, address)?;
                sites.stand(&self.scenario.nodes[node].name, node, Box::new(relay), foot);
            }
        }
        Ok(())
    }

    /// Whether the layer stands on the hosts' own datagrams, so that other hosts may take part.
    pub(super) fn relays_at(&self, depth: usize) -> bool {
        matches!(self.flow.over[depth..], [Layer::Bats(_) | Layer::Proxy(_) | Layer::HopArq(_), Layer::Udp])
    }

    fn bats(&self, config: &Config, depth: usize) -> Config {
        let (datagram, split) = (self.room(depth), self.flow.paths > 1);
        // Live, too, the nodes of a scenario are processes of one machine.
        Config { datagram, split, slack: self.slack, one_clock: true, ..config.clone() }
    }
}
