//! What stations share of the airtime of a medium on which each hears only some of the others.
//!
//! A station receives a frame if nothing else that it hears, and nothing of its own, is sent meanwhile. So of two hops
//! from different senders, of which one's receiver hears the other's sender, only one is crossed at a time; that
//! senders keep silent for one another is no bound, since two may begin at once. The time in which the hops of a set
//! are crossed, of which any two exclude each other so, adds up to no more than all of it (K. Jain et al., "Impact of
//! Interference on Multi-hop Wireless Network Performance", MobiCom 2003, section 4.2: cliques of the conflict graph).
//! What a flow carries over paths through such a set is therefore at most the inverse of the least time that a bit
//! takes there; the rest goes past it.
//!
//! Which sets are looked at decides how tight that is, and not whether it is true: those at the stations of a shortest
//! path, and those that grow from its hops.

use std::collections::BTreeMap;

use hopcast_link::{Attachment, Mac};
use petgraph::Direction;
use petgraph::algo::{dijkstra, dinics};
use petgraph::graph::{DiGraph, EdgeIndex, NodeIndex};
use petgraph::visit::{EdgeRef, Reversed};

use super::timeline::{Sender, Timeline};
use super::{UNBOUNDED, weight};
use crate::scenario::model::{Link, LinkId, NodeId};

/// Maximum number of hops of a set that grows from one. Chosen: a hop that leads on excludes some ten others where each
/// station hears ten, and each that is looked at is held against all of the set.
const MAX_GROWN: usize = 64;

/// What one station sends to another that hears it.
#[derive(Debug)]
pub(super) struct Hop<'s> {
    link: &'s Link,
    number: LinkId,
    from: Attachment,
    to: Attachment,
    /// Its edge, which no other hop has.
    edge: EdgeIndex,
    /// The least time on the air for a bit that arrives, and for any bit, in seconds, at any instant of the window.
    arriving: f64,
    sending: f64,
}

impl<'s> Hop<'s> {
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

    /// Whether it is never crossed while the other is: their senders differ.
    fn excludes(&self, other: &Self) -> bool {
        let Some(medium) = self.link.partly_heard() else { return false };
        let hears =
            |from, to| from == to || medium.hears.as_ref().is_some_and(|hears| hears.contains(&(from, to)));
        let disturbs = hears(self.from, other.to) || hears(other.from, self.to);
        self.number == other.number && (medium.mac == Mac::Perfect || disturbs)
    }

    /// Whether it may stand in a set with the other.
    fn joins(&self, other: &Self) -> bool {
        (self.number, self.from) == (other.number, other.from) || self.excludes(other)
    }
}

/// The max-flow that the airtime of `hops` leaves from one node to another, in thousandths of a bit per second.
pub(super) fn bound(hops: &[Hop<'_>], graph: &DiGraph<(), u128>, (from, to): (NodeId, NodeId)) -> u128 {
    let (from, to) = (NodeIndex::new(from), NodeIndex::new(to));
    let sets = sets(hops, graph, (from, to));
    sets.iter().map(|set| past_and_through(set, hops, graph, (from, to))).min().unwrap_or(UNBOUNDED)
}

/// Sets of hops of which any two from different senders exclude each other, each by their places in order.
fn sets(hops: &[Hop<'_>], graph: &DiGraph<(), u128>, (from, to): (NodeIndex, NodeIndex)) -> Vec<Vec<usize>> {
    // How far each node is from the source and from the destination; a hop leads on if it ends nearer to that.
    let open = |capacity: u128| if capacity == 0 { f64::INFINITY } else { 1.0 };
    let gone = dijkstra(graph, from, None, |edge| open(*edge.weight()));
    let left = dijkstra(Reversed(graph), to, None, |edge| open(*edge.weight()));
    let gone = |node: NodeIndex| gone.get(&node).copied().unwrap_or(f64::INFINITY);
    let left = |node: NodeIndex| left.get(&node).copied().unwrap_or(f64::INFINITY);
    let node = |hop: &Hop<'_>, station: Attachment| NodeIndex::new(hop.link.ends[station]);
    let leads_on = |hop: &Hop<'_>| left(node(hop, hop.to)) < left(node(hop, hop.from));

    // The hops of a shortest path of those that cross any.
    let detour = |hop: &Hop<'_>| gone(node(hop, hop.from)) + left(node(hop, hop.to));
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
        // What the receiver hears and sends; and what the sender sends.
        for station in [seed.from, seed.to] {
            let here = hops.iter().enumerate().filter(|(_, hop)| hop.number == seed.number);
            let of_it = here.filter(|(_, hop)| hop.to == station || hop.from == station);
            let of_it: Vec<usize> = of_it.map(|(place, _)| place).collect();
            sets.push(of_it.iter().copied().filter(|&place| hops[place].to == station).collect());
            sets.push(of_it);
        }
        // The hops that lead on first, the nearest to the seed's before others.
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

/// What can go past a set, and through it.
fn past_and_through(
    set: &[usize],
    hops: &[Hop<'_>],
    graph: &DiGraph<(), u128>,
    (from, to): (NodeIndex, NodeIndex),
) -> u128 {
    // What a station sends may be received by several in one time: then only the time of sending is sure.
    let alone = |hop: &Hop<'_>| set.iter().filter(|&&other| hops[other].from == hop.from).count() == 1;
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
    let least = through.fold(f64::INFINITY, f64::min);
    let through = weight(1.0 / least);
    if there.get(&to).is_some_and(|time| *time > 0.0) {
        return through;
    }
    let mut past = graph.clone();
    times.keys().for_each(|&edge| past[edge] = 0);
    dinics(&past, from, to).0.saturating_add(through)
}
