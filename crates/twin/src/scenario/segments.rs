//! The segments of a scenario's network: their prefixes, and the nodes that they join.

use std::collections::BTreeSet;

use hopcast_config::Diagnostic;
use hopcast_config::decode::{list, one_or_list};
use hopcast_config::yaml::Node;
use hopcast_stack::network::{
    AddressPlan, Layers, Network, PrefixError, Segment, SegmentPrefix, Segments, ServiceSpec, ShortestPaths,
    Target, read_prefixes,
};

use super::model::{LinkId, NodeId};
use super::topology::Topology;

/// The segments of a network, with the addresses of its hosts and the nodes that they join.
pub(crate) struct SegmentMap<'a> {
    pub(crate) network: Network<'a>,
    pub(crate) segments: Segments,
    pub(crate) addresses: AddressPlan,
    /// The number of the connected part of the network that each node is in.
    parts: Vec<usize>,
}

impl<'a> SegmentMap<'a> {
    /// The segments of a network whose services have been placed, of the file `root`.
    pub(crate) fn of(
        topology: &'a Topology,
        services: &'a [ServiceSpec],
        root: &Node,
    ) -> Result<Self, Diagnostic> {
        let network = Network { services, ..topology.network() };
        let segments = Layers::segments_of(network);
        check_used(topology, &segments)?;
        let addresses = AddressPlan::of(network, &segments);
        let addresses = addresses.map_err(|error| located(error, topology, root))?;
        let parts = parts(topology.nodes.len(), &segments);
        Ok(Self { network, segments, addresses, parts })
    }

    /// The reason why segments do not lead from one node to another, as a part of a sentence; `None` if they do.
    pub(crate) fn no_path(&self, from: NodeId, to: NodeId) -> Option<String> {
        if self.parts[from] == self.parts[to] {
            return None;
        }
        let [from_name, to_name] = [from, to].map(|node| &self.network.nodes[node].name);
        Some(match self.broken(from, to) {
            None => format!("no links lead from `{from_name}` to `{to_name}`"),
            Some(why) => format!("no route from `{from_name}` to `{to_name}`: {why}"),
        })
    }

    /// The paths over the segments, all of which are up.
    pub(crate) fn paths(&self) -> ShortestPaths {
        ShortestPaths::over(self.network.nodes.len(), self.network.links, &self.segments)
    }

    /// The place at which the path over links is interrupted, if links do lead from one node to another.
    fn broken(&self, from: NodeId, to: NodeId) -> Option<String> {
        let Network { nodes, links, .. } = self.network;
        let plain = Segments::plain(nodes.len(), links);
        let mut paths = ShortestPaths::over(nodes.len(), links, &plain);
        paths.search_from(Target::Node(to), &[from]);
        let hops: Vec<_> = paths.path(from, to).map(|crossing| crossing.hop).collect();
        let next = hops.iter().skip(1).map(|hop| links[hop.link].ends[hop.attachment]).chain([to]);
        hops.iter().zip(next).find_map(|(hop, next)| {
            let node = links[hop.link].ends[hop.attachment];
            self.breaks_at(hop.link, [node, next])
        })
    }

    /// The reason why two nodes on a link are not on one segment of it; `None` if they are.
    fn breaks_at(&self, link: LinkId, pair: [NodeId; 2]) -> Option<String> {
        let joins = |segment: &Segment, node: NodeId| segment.ends.iter().any(|end| end.node == node);
        let on_link = || self.segments.iter().filter(|segment| segment.covers(link));
        if on_link().any(|segment| pair.iter().all(|&node| joins(segment, node))) {
            return None;
        }
        // The names of the VLANs of each node; empty for a host on the link itself.
        let vlans = pair.map(|node| {
            let own = on_link().filter(|segment| joins(segment, node));
            own.filter_map(Segment::vlan).collect::<Vec<_>>()
        });
        let at = usize::from(vlans[0].is_empty());
        if vlans[at].is_empty() {
            let on = |node: NodeId| self.segments.iter().any(|it| it.covers(link) && joins(it, node));
            let taken = pair.iter().find(|&&node| !on(node)).map(|&node| &self.network.nodes[node].name);
            let (link, node) =
                (&self.network.links[link].name, taken.unwrap_or(&self.network.nodes[pair[1]].name));
            return Some(format!("on the link `{link}`, a service has taken the interface of `{node}`"));
        }
        let [one, other] = [pair[at], pair[1 - at]].map(|node| &self.network.nodes[node].name);
        let (ending, there) = (vlans[at].join(" and "), &vlans[1 - at]);
        let verb = if vlans[at].len() == 1 { "ends" } else { "end" };
        let there = if there.is_empty() { "no VLAN".to_owned() } else { there.join(" and ") };
        let link = &self.network.links[link].name;
        Some(format!("{ending} {verb} at `{one}`: on the link `{link}`, `{other}` has {there}"))
    }
}

/// Checks that each link with a prefix has a host: services may have taken all of its ends.
fn check_used(topology: &Topology, segments: &Segments) -> Result<(), Diagnostic> {
    let bare: BTreeSet<LinkId> = segments.iter().flat_map(Segment::untagged_links).collect();
    match topology.written_prefixes().find(|(link, _)| !bare.contains(link)) {
        Some((link, node)) => {
            let name = &topology.links[link].name;
            Err(node.error(format!(
                "`prefix`: services have taken all interfaces on `{name}`: write it at the service whose interfaces have it"
            )))
        }
        None => Ok(()),
    }
}

/// The diagnostic of a prefix's error, at its place in the file.
fn located(error: PrefixError, topology: &Topology, root: &Node) -> Diagnostic {
    let PrefixError { given: SegmentPrefix { prefix, service }, link, cause } = error;
    let of_service = |number: usize| list(root.get("services")?, "services").ok()?.get(number)?.get("prefix");
    let node = match service {
        Some(number) => of_service(number),
        None => topology.written_prefix(link),
    };
    let is_it = |item: &&Node| read_prefixes(item, "prefix").is_ok_and(|read| read == [prefix]);
    let item = node.and_then(|node| one_or_list(node).iter().find(is_it));
    item.or(node).unwrap_or(root).error(format!("`prefix`: {cause}"))
}

fn parts(nodes: usize, segments: &Segments) -> Vec<usize> {
    let mut parts = petgraph::unionfind::UnionFind::new(nodes);
    for segment in segments.iter() {
        for ends in segment.ends.windows(2) {
            parts.union(ends[0].node, ends[1].node);
        }
    }
    parts.into_labeling()
}
