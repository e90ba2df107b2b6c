//! The nodes of a flow over FRANC: two edges on each link of its route, and a helper where one is wanted.

use hopcast_coded::franc::{self, Config};
use hopcast_core::{Machine, Port, Stream};

use super::Parts;
use super::sites::{Foot, Sites};
use crate::scenario::model::{Layer, LinkId, NodeId};
use crate::world::cabling::Cabling;
use crate::world::routing::Mac;

/// One link of the route, with the stations that are its ends.
#[derive(Clone, Copy)]
struct Segment {
    link: LinkId,
    from: usize,
    to: usize,
}

impl Parts<'_> {
    /// The edge at one end of the flow, and what it is plugged into.
    pub(super) fn franc_end(
        &self,
        sites: &mut Sites<'_>,
        node: NodeId,
        config: &Config,
    ) -> Result<(Box<dyn Machine>, Foot), String> {
        let segments = self.segments();
        let first = node == self.flow.from;
        let segment = if first { segments.first() } else { segments.last() };
        // The route of a flow has a link.
        let &Segment { link, from, to } = segment.ok_or_else(|| sites.error(node, &"no link to code on"))?;
        let (own, peer) = if first { (from, to) } else { (to, from) };
        self.franc_edge(sites, config, link, own, peer)
    }

    /// Puts the pairs of edges on the nodes between segments, and the helpers.
    pub(super) fn between_segments(&self, sites: &mut Sites<'_>) -> Result<(), String> {
        let Some(Layer::Franc(config)) = self.flow.over.last() else { return Ok(()) };
        let segments = self.segments();
        for two in segments.windows(2) {
            let [left, right] = [two[0], two[1]];
            let node = self.node(right.link, right.from);
            let name = &self.scenario.nodes[node].name;
            let (edge, foot) = self.franc_edge(sites, config, left.link, left.to, left.from)?;
            let on_left = sites.stand(name, node, edge, foot);
            let (edge, foot) = self.franc_edge(sites, config, right.link, right.from, right.to)?;
            let slot = sites.put(name, node, edge);
            sites.plug(node, (slot, Port::Below(0)), foot);
            sites.plug(node, (slot, Port::Above(0)), on_left);
        }
        if config.helper {
            segments.iter().try_for_each(|segment| self.franc_helper(sites, config, *segment))?;
        }
        Ok(())
    }

    fn franc_helper(&self, sites: &mut Sites<'_>, config: &Config, segment: Segment) -> Result<(), String> {
        let Segment { link, from, to } = segment;
        let helpers = self.scenario.roles.get("helper").map_or(&[][..], Vec::as_slice);
        let hears = |station: &usize| {
            *station != from && *station != to && helpers.contains(&self.node(link, *station))
        };
        let Some(station) = (0..self.cabling.ends[link].len()).find(hears) else {
            let (name, node) = (&self.scenario.links[link].name, self.node(link, from));
            return Err(sites.error(node, &format!("`roles` names no `helper` on `{name}`")));
        };
        let node = self.node(link, station);
        let mac = |attachment| Cabling::mac(link, attachment);
        let random = self.franc_random(link, station);
        let helper = franc::helper(config.clone(), mac(station), [mac(from), mac(to)], random);
        let helper = helper.map_err(|error| sites.error(node, &error))?;
        let foot = sites.frames(node, self.cabling.ends[link][station].1)?;
        sites.stand(&self.scenario.nodes[node].name, node, helper, foot);
        Ok(())
    }

    fn franc_edge(
        &self,
        sites: &mut Sites<'_>,
        config: &Config,
        link: LinkId,
        own: usize,
        peer: usize,
    ) -> Result<(Box<dyn Machine>, Foot), String> {
        let (node, interface) = self.cabling.ends[link][own];
        let [own_mac, peer_mac]: [Mac; 2] = [own, peer].map(|attachment| Cabling::mac(link, attachment));
        let edge = franc::edge(config.clone(), own_mac, peer_mac, self.franc_random(link, own));
        let edge = edge.map_err(|error| sites.error(node, &error))?;
        Ok((edge, sites.frames(node, interface)?))
    }

    fn franc_random(&self, link: LinkId, station: usize) -> Stream {
        let name = |node: NodeId| &*self.scenario.nodes[node].name;
        let link_name = &*self.scenario.links[link].name;
        self.seed.stream(&["flow", &self.flow.name, name(self.node(link, station)), link_name], 0)
    }

    fn segments(&self) -> Vec<Segment> {
        let next = |place: usize| match self.route.get(place + 1) {
            Some(&(link, attachment)) => self.node(link, attachment),
            None => self.flow.to[0],
        };
        let segment = |(place, &(link, from)): (usize, &(usize, usize))| {
            let to = self.cabling.ends[link].iter().position(|&(node, _)| node == next(place))?;
            Some(Segment { link, from, to })
        };
        self.route.iter().enumerate().filter_map(segment).collect()
    }

    fn node(&self, link: LinkId, station: usize) -> NodeId {
        self.cabling.ends[link][station].0
    }
}
