//! The bound that shared airtime sets on a flow over a medium on which each station hears only some of the others.
//!
//! A station receives a frame if it hears no other frame, and sends none, at the same time. So two hops from different
//! senders, of which one's receiver hears the other's sender, exclude each other: only one is crossed at a time. (That
//! a sender defers to those it hears is no bound, since two may begin at once.) In a set of hops of which any two
//! exclude each other, the times in which they are crossed add up to at most the whole time (K. Jain et al., "Impact of
//! Interference on Multi-hop Wireless Network Performance", MobiCom 2003, section 4.2: cliques of the conflict graph).
//! Over paths through such a set a flow therefore carries at most the inverse of the minimum time that a bit takes
//! there; the rest of the flow takes paths outside of the set.
//!
//! The bound holds for any choice of sets; the choice decides how tight it is. Examined are the sets at the stations of
//! a shortest path, and those that grow from its hops.

use std::collections::BTreeMap;

use hopcast_link::{Attachment, Mac};
use petgraph::Direction;
use petgraph::algo::{dijkstra, dinics};
use petgraph::graph::{DiGraph, EdgeIndex, NodeIndex};
use petgraph::visit::{EdgeRef, Reversed};

use super::timeline::{Sender, Timeline};
use super::{UNBOUNDED, weight};
use crate::scenario::model::{Link, LinkId, NodeId};

/// Maximum number of hops of a set that grows from one. Chosen: where each station hears ten others, a hop excludes
/// some ten; with fewer the bound is less tight, with more it takes longer, since each candidate is compared with the
/// set.
const MAX_GROWN: usize = 64;

/// A hop over a medium: the frames of one station to another that hears it.
#[derive(Debug)]
pub(super) struct AirtimeHop<'s> {
    link: &'s Link,
    number: LinkId,
    from: Attachment,
    to: Attachment,
    /// The hop's edge in the graph.
    edge: EdgeIndex,
    /// Minimum airtime for a bit that arrives, in seconds, over all times of the window; below, for a bit that is sent.
    arriving: f64,
    sending: f64,
}

impl<'s> AirtimeHop<'s> {
    pub(super) fn new(
        (number, link): (LinkId, &'s Link),
        (from, to): (Attachment, Attachment),
        edge: EdgeIndex,
        timeline: &Timeline<'_>,
    ) -> Self {
        let (mut arriving, mut sending) = (0.0f64, 0.0f64);
        timeline.phases(number, [Sender::new(link, from, to)], |_, [sender]| {
            arriving = arriving.max(sender.rate() * sender.pass());
            sending = sending.max(sender.rate());
        });
        Self { link, number, from, to, edge, arriving: 1.0 / arriving, sending: 1.0 / sending }
    }

    /// Whether it is never crossed at the same time as the other, which has another sender.
    fn excludes(&self, other: &Self) -> bool {
        let Some(medium) = self.link.partly_heard() else { return false };
        let hears =
            |from, to| from == to || medium.hears.as_ref().is_some_and(|hears| hears.contains(&(from, to)));
        let disturbs = hears(self.from, other.to) || hears(other.from, self.to);
        self.number == other.number && (medium.mac == Mac::Perfect || disturbs)
    }

    /// Whether both may be in one set.
    fn joins(&self, other: &Self) -> bool {
        (self.number, self.from) == (other.number, other.from) || self.excludes(other)
    }
}

/// The max-flow from one node to another that the airtime of `hops` permits, in thousandths of a bit per second.
pub(super) fn bound(
    hops: &[AirtimeHop<'_>],
    graph: &DiGraph<(), u128>,
    (from, to): (NodeId, NodeId),
) -> u128 {
    let (from, to) = (NodeIndex::new(from), NodeIndex::new(to));
    let sets = sets(hops, graph, (from, to));
    sets.iter().map(|set| past_and_through(set, hops, graph, (from, to))).min().unwrap_or(UNBOUNDED)
}

/// Sets of hops of which any two from different senders exclude each other, as sorted indices.
fn sets(
    hops: &[AirtimeHop<'_>],
    graph: &DiGraph<(), u128>,
    (from, to): (NodeIndex, NodeIndex),
) -> Vec<Vec<usize>> {
    // Distances of each node from the source and to the destination; a hop leads on if it ends nearer to the latter.
    let open = |capacity: u128| if capacity == 0 { f64::INFINITY } else { 1.0 };
    let gone = dijkstra(graph, from, None, |edge| open(*edge.weight()));
    let left = dijkstra(Reversed(graph), to, None, |edge| open(*edge.weight()));
    let gone = |node: NodeIndex| gone.get(&node).copied().unwrap_or(f64::INFINITY);
    let left = |node: NodeIndex| left.get(&node).copied().unwrap_or(f64::INFINITY);
    let node = |hop: &AirtimeHop<'_>, station: Attachment| NodeIndex::new(hop.link.ends[station]);
    let leads_on = |hop: &AirtimeHop<'_>| left(node(hop, hop.to)) < left(node(hop, hop.from));

    // The hops of a shortest path among the paths that cross a hop.
    let detour = |hop: &AirtimeHop<'_>| gone(node(hop, hop.from)) + left(node(hop, hop.to));
    let first = (0..hops.len()).min_by(|&one, &other| detour(&hops[one]).total_cmp(&detour(&hops[other])));
    let Some(first) = first.filter(|&first| detour(&hops[first]).is_finite()) else { return Vec::new() };
    let place_of: BTreeMap<EdgeIndex, usize> =
        hops.iter().enumerate().map(|(place, hop)| (hop.edge, place)).collect();
    let mut on_path = vec![first];
    let mut at = node(&hops[first], hops[first].to);
    while at != to {
        let next = graph.edges(at).find(|edge| *edge.weight() > 0 && left(edge.target()) < left(at));
        let Some(next) = next else { break };
        on_path.extend(place_of.get(&next.id()));
        at = next.target();
    }
    let mut at = node(&hops[first], hops[first].from);
    while at != from {
        let mut before = graph.edges_directed(at, Direction::Incoming);
        let before = before.find(|edge| *edge.weight() > 0 && gone(edge.source()) < gone(at));
        let Some(before) = before else { break };
        on_path.extend(place_of.get(&before.id()));
        at = before.source();
    }

    let mut sets: Vec<Vec<usize>> = Vec::new();
    for &place in &on_path {
        let seed = &hops[place];
        // The hops that the receiver hears or sends, and those that the sender sends.
        for station in [seed.from, seed.to] {
            let here = hops.iter().enumerate().filter(|(_, hop)| hop.number == seed.number);
            let of_it = here.filter(|(_, hop)| hop.to == station || hop.from == station);
            let of_it: Vec<usize> = of_it.map(|(place, _)| place).collect();
            sets.push(of_it.iter().copied().filter(|&place| hops[place].to == station).collect());
            sets.push(of_it);
        }
        // Hops that lead on come first, and of these the ones nearest to the first hop of the set.
        let mut order: Vec<usize> =
            (0..hops.len()).filter(|&other| hops[other].number == seed.number).collect();
        let distance =
            |place: usize| (left(node(seed, seed.to)) - left(node(&hops[place], hops[place].to))).abs();
        order.sort_by(|&one, &other| {
            let leads = leads_on(&hops[other]).cmp(&leads_on(&hops[one]));
            leads.then(distance(one).total_cmp(&distance(other)))
        });
        let mut set = vec![place];
        let mut leading = None;
        for other in order {
            if !leads_on(&hops[other]) {
                leading.get_or_insert_with(|| set.clone());
            }
            if other != place
                && set.len() < MAX_GROWN
                && set.iter().all(|&of_it| hops[of_it].joins(&hops[other]))
            {
                set.push(other);
            }
        }
        sets.extend(leading);
        sets.push(set);
    }
    sets.iter_mut().for_each(|set| set.sort_unstable());
    sets.sort_unstable();
    sets.dedup();
    sets
}

/// The max-flow past a set of hops, and the capacity through it.
fn past_and_through(
    set: &[usize],
    hops: &[AirtimeHop<'_>],
    graph: &DiGraph<(), u128>,
    (from, to): (NodeIndex, NodeIndex),
) -> u128 {
    // A frame may be received by several stations at once: then only the airtime of sending counts.
    let alone = |hop: &AirtimeHop<'_>| set.iter().filter(|&&other| hops[other].from == hop.from).count() == 1;
    let time = |&place: &usize| {
        let hop = &hops[place];
        (hop.edge, if alone(hop) { hop.arriving } else { hop.sending })
    };
    let times: BTreeMap<EdgeIndex, f64> = set.iter().map(time).collect();
    let cost = |id: EdgeIndex, capacity: u128| match times.get(&id) {
        _ if capacity == 0 => f64::INFINITY,
        Some(time) => *time,
        None => 0.0,
    };
    let there = dijkstra(graph, from, None, |edge| cost(edge.id(), *edge.weight()));
    let back = dijkstra(Reversed(graph), to, None, |edge| cost(edge.id(), *edge.weight()));
    let through = times.keys().filter_map(|&edge| {
        let (begin, end) = graph.edge_endpoints(edge)?;
        Some(there.get(&begin)? + cost(edge, graph[edge]) + back.get(&end)?)
    });
    let min = through.fold(f64::INFINITY, f64::min);
    let through = weight(1.0 / min);
    if there.get(&to).is_some_and(|time| *time > 0.0) {
        return through;
    }
    let mut past = graph.clone();
    times.keys().for_each(|&edge| past[edge] = 0);
    dinics(&past, from, to).0.saturating_add(through)
}
