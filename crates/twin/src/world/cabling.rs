//! Which interface of which node is which attachment of which link, and what follows from it: addresses, link models,
//! routes.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_core::{Instant, Rate, Seed};
use hopcast_link::{Change, Link, Medium, MediumConfig, PointToPoint, Station};

use super::routing::{Edge, Mac, Oracle};
use super::{Wired, directions};
use crate::scenario::model::{self, Action, LinkModel, NodeId, Scenario};

/// The cables of a scenario.
pub(super) struct Cabling {
    /// For each link, for each attachment, the node and its interface.
    pub(super) ends: Vec<Vec<(NodeId, u32)>>,
    /// For each node, for each interface, the link and the attachment.
    pub(super) interfaces: Vec<Vec<(usize, usize)>>,
    /// For each link, how many before it join the same two nodes: parallel links have random streams of their own.
    ordinals: Vec<u64>,
}

impl Cabling {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let mut interfaces: Vec<Vec<(usize, usize)>> = vec![Vec::new(); scenario.nodes.len()];
        let mut ends = Vec::with_capacity(scenario.links.len());
        let mut parallel: BTreeMap<Vec<NodeId>, u64> = BTreeMap::new();
        let mut ordinals = Vec::with_capacity(scenario.links.len());
        for (number, link) in scenario.links.iter().enumerate() {
            let plug = |(attachment, &node): (usize, &NodeId)| {
                interfaces[node].push((number, attachment));
                (node, interfaces[node].len() as u32 - 1)
            };
            ends.push(link.ends.iter().enumerate().map(plug).collect());
            // Whichever end is named first, it is the same two nodes.
            let mut nodes = link.ends.clone();
            nodes.sort_unstable();
            let before = parallel.entry(nodes).or_default();
            ordinals.push(*before);
            *before += 1;
        }
        Self { ends, interfaces, ordinals }
    }

    /// The Ethernet address of a link's attachment: locally administered, the link and the attachment in it.
    pub(super) fn mac(link: usize, attachment: usize) -> Mac {
        let link = (link as u32).to_be_bytes();
        // The scenario language bounds the stations of a medium to 256.
        [0x02, attachment as u8, link[0], link[1], link[2], link[3]]
    }

    /// The model of a link, on its nodes' interfaces.
    pub(super) fn wired(&self, scenario: &Scenario, link: usize, seed: Seed) -> Wired {
        let ends = self.ends[link].clone();
        Wired { model: self.model(scenario, link, seed), captured: vec![None; ends.len()], ends }
    }

    /// The model of a link.
    pub(crate) fn model(&self, scenario: &Scenario, link: usize, seed: Seed) -> Box<dyn Link + Send> {
        let spec = &scenario.links[link];
        let name = |end: usize| scenario.nodes[spec.ends[end]].name.as_str();
        let ordinal = self.ordinals[link];
        match &spec.model {
            LinkModel::PointToPoint(config) => {
                let stream = |from, to| seed.stream(&["link", name(from), name(to)], ordinal);
                Box::new(PointToPoint::new(config.clone(), [stream(0, 1), stream(1, 0)]))
            }
            LinkModel::Medium(config) => {
                // FRANC's stations listen to each other, and to what becomes of their own frames.
                let coded = scenario.flows.iter().any(model::Flow::is_franc);
                let station = |attachment| Station {
                    address: Self::mac(link, attachment),
                    promiscuous: coded,
                    echo: coded,
                };
                let stations = (0..spec.ends.len()).map(station).collect();
                // Two media may share some of their stations, but not their name.
                let stream = |from, to| seed.stream(&["medium", &spec.name, name(from), name(to)], 0);
                Box::new(Medium::new(MediumConfig { stations, ..config.clone() }, stream))
            }
        }
    }

    pub(super) fn oracle(&self, scenario: &Scenario) -> Oracle {
        Oracle::new(scenario.nodes.len(), self.edges(scenario))
    }

    fn edges(&self, scenario: &Scenario) -> Vec<Edge> {
        let mut edges = Vec::new();
        for (link, ends) in self.ends.iter().enumerate() {
            for (from, to) in directions(ends.len()) {
                edges.push(Edge {
                    from: ends[from].0,
                    to: ends[to].0,
                    interface: ends[from].1,
                    link,
                    attachment: from,
                    delay: scenario.links[link].direction(from).delay,
                    mac: Self::mac(link, to),
                });
            }
        }
        edges
    }

    /// The link directions from a node to another, as they are at the start.
    pub(super) fn route(&self, oracle: &mut Oracle, from: NodeId, to: NodeId) -> Vec<(usize, usize)> {
        let mut route = Vec::new();
        let mut node = from;
        while node != to
            && route.len() < self.interfaces.len()
            && let Some(edge) = oracle.next_edge(node, to)
        {
            let Edge { link, attachment, to, .. } = *edge;
            route.push((link, attachment));
            node = to;
        }
        route
    }

    /// A shortest route that shares no link and no node between the ends with `others`, as the network is at the start.
    pub(super) fn route_beside(
        &self,
        scenario: &Scenario,
        others: &[Vec<(usize, usize)>],
        from: NodeId,
        to: NodeId,
    ) -> Option<Vec<(usize, usize)>> {
        let taken = others.iter().flatten();
        let links: BTreeSet<usize> = taken.clone().map(|&(link, _)| link).collect();
        let mut nodes: BTreeSet<NodeId> =
            taken.map(|&(link, attachment)| self.ends[link][attachment].0).collect();
        nodes.remove(&from);
        let free = |edge: &Edge| {
            !links.contains(&edge.link) && !nodes.contains(&edge.from) && !nodes.contains(&edge.to)
        };
        let edges = self.edges(scenario).into_iter().filter(free).collect();
        let route = self.route(&mut Oracle::new(scenario.nodes.len(), edges), from, to);
        (!route.is_empty()).then_some(route)
    }

    /// The rate of one direction of a link over time, rising in time; `None` if it has none at some time.
    pub(super) fn rates(
        scenario: &Scenario,
        (link, attachment): (usize, usize),
    ) -> Option<Vec<(Instant, Rate)>> {
        let mut rates = vec![(Instant::ZERO, scenario.links[link].direction(attachment).rate?)];
        for event in &scenario.events {
            if let Action::Link { link: changed, from, change: Change::Rate(rate) } = &event.action
                && *changed == link
                && from.is_none_or(|from| from == attachment)
            {
                rates.push((event.at, (*rate)?));
            }
        }
        Some(rates)
    }
}

/// The longest packet that fits every link of `route`, in bytes.
pub(super) fn path_mtu(scenario: &Scenario, route: &[(usize, usize)]) -> u32 {
    let mtu =
        |&(link, attachment): &(usize, usize)| model::Link::direction(&scenario.links[link], attachment).mtu;
    route.iter().map(mtu).min().unwrap_or(1500)
}
