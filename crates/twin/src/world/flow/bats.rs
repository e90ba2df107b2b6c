//! The nodes of a flow over BATS: its edges, the relays between them, and the gateways that bring TCP to it.

use std::net::SocketAddr;

use hopcast_coded::bats::{Config, Node};
use hopcast_coded::proxy;
use hopcast_core::Machine;

use super::sites::Sites;
use super::{Parts, address};
use crate::app::Ends;
use crate::scenario::model::{ETHERNET, Flow, Layer, NodeId, Scenario};
use crate::world::cabling::Cabling;

/// A node that carries a flow, with its address.
#[derive(Clone, Copy)]
pub(super) struct Carrier {
    node: NodeId,
    address: SocketAddr,
}

/// Who carries a flow whose transport relays: its ends, or the gateways that take its connections over, and between them
/// those nodes of its route that relay.
pub(super) fn carriers(
    scenario: &Scenario,
    cabling: &Cabling,
    flow: &Flow,
    route: &[(usize, usize)],
    source: Ends,
) -> Vec<Carrier> {
    let role = |name: &str| scenario.roles.get(name);
    let between = route.iter().skip(1).map(|&(link, attachment)| cabling.ends[link][attachment].0);
    let at = |node| Carrier { node, address: address(flow, node, source.remote.port()) };
    let between: Vec<Carrier> = between.map(at).collect();
    let proxies = role("proxy").filter(|_| flow.takes_connections_over());
    let is_proxy = |carrier: &Carrier| proxies.is_some_and(|proxies| proxies.contains(&carrier.node));
    let gateways = (between.iter().position(is_proxy), between.iter().rposition(is_proxy));
    let (first, between, last) = match gateways {
        (Some(first), Some(last)) if first < last => {
            (between[first], &between[first + 1..last], between[last])
        }
        _ => {
            let first = Carrier { node: flow.from, address: source.local };
            (first, between.as_slice(), Carrier { node: flow.to, address: source.remote })
        }
    };
    let relays = role("relay");
    let relaying = between.iter().filter(|at| relays.is_none_or(|relays| relays.contains(&at.node)));
    [first].into_iter().chain(relaying.copied()).chain([last]).collect()
}

impl Parts<'_> {
    /// The edge at one end of the flow.
    pub(super) fn edge(&self, config: &Config, depth: usize, node: NodeId, ends: Ends) -> Box<dyn Machine> {
        let neighbour = match (self.relays_at(depth), node == self.flow.from) {
            (false, _) => ends.remote,
            (true, true) => self.carriers[1].address,
            (true, false) => self.carriers[self.carriers.len() - 2].address,
        };
        let (config, random) = (self.bats(config, depth), self.random(node, depth));
        Box::new(Node::edge(config, 1, ends.local, (ends.local, ends.remote), &[neighbour], random))
    }

    /// Whether gateways take the flow's connections over, and not the ends themselves.
    pub(super) fn has_gateways(&self) -> bool {
        self.carriers[0].node != self.flow.from
    }

    /// Puts the gateways on their nodes: each ends the connections that cross it, and carries them on to the other.
    pub(super) fn gateways(&self, sites: &mut Sites<'_>, source: Ends) -> Result<(), String> {
        let [Layer::Tcp(tcp), Layer::Proxy(config), ..] = self.flow.over.as_slice() else { return Ok(()) };
        let last = self.carriers.len() - 1;
        if !self.has_gateways() {
            return Ok(());
        }
        for [own, far, next] in
            [[0, last, 1], [last, 0, last - 1]].map(|ends| ends.map(|at| self.carriers[at]))
        {
            let Carrier { node, address } = own;
            let name = &self.scenario.nodes[node].name;
            let (config, random) = (self.bats(config, 1), self.random(node, 1));
            let ends = (address, far.address);
            let edge = Node::edge(config, 1, address, ends, &[next.address], random);
            let foot = sites.udp(node, address.port())?;
            let edge = sites.stand(name, node, Box::new(edge), foot);
            let (tcp, port) = self.splice(sites, node, tcp, edge);
            let foot = sites.transit(node);
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
            for three in self.carriers.windows(3) {
                let [left, Carrier { node, address }, right] = three else { continue };
                let (config, random) = (self.bats(config, depth), self.random(*node, depth));
                let relay = Node::relay(config, *address, &[left.address], &[right.address], random);
                let foot = sites.udp(*node, address.port())?;
                sites.stand(&self.scenario.nodes[*node].name, *node, Box::new(relay), foot);
            }
        }
        Ok(())
    }

    /// Whether the layer stands on the hosts' own datagrams, so that other hosts may take part.
    fn relays_at(&self, depth: usize) -> bool {
        matches!(self.flow.over[depth..], [Layer::Bats(_) | Layer::Proxy(_), Layer::Udp])
    }

    fn bats(&self, config: &Config, depth: usize) -> Config {
        let datagram = (u64::from(self.mtu) + ETHERNET).saturating_sub(self.flow.overhead(depth + 1));
        Config { datagram: u16::try_from(datagram).unwrap_or(u16::MAX), ..config.clone() }
    }
}
