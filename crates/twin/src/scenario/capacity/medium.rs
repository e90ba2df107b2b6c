//! The capacity of a medium between its stations, of which one sends at a time.

use hopcast_link::Attachment;

use super::max_flow::MaxFlow;
use super::timeline::{Sender, Timeline};
use super::weight;
use crate::scenario::model::{Link, LinkId, LinkModel, NodeId, Scenario};

/// A medium on the paths of one flow.
pub(super) struct FlowMedium<'s> {
    number: LinkId,
    link: &'s Link,
    /// Stations that the flow reaches over other links, or its source.
    senders: Vec<Attachment>,
    /// Stations from which its destination is reached over other links, or the destination itself.
    receivers: Vec<Attachment>,
}

impl<'s> FlowMedium<'s> {
    /// All media that a flow can cross.
    pub(super) fn all(scenario: &'s Scenario, wired: &MaxFlow, from: NodeId, to: NodeId) -> Vec<Self> {
        let is_medium =
            |link: &Link| matches!(link.model, LinkModel::Medium(_)) && link.partly_heard().is_none();
        let media: Vec<(LinkId, &Link)> =
            scenario.links.iter().enumerate().filter(|(_, link)| is_medium(link)).collect();
        let medium = |&(number, link): &(LinkId, &'s Link)| {
            let others = |other: &&(LinkId, &Link)| other.0 != number;
            let stations = |start, incoming| -> Vec<Attachment> {
                let others = media.iter().filter(others).map(|(_, link)| *link);
                let reached = reached((wired, scenario.nodes.len()), others, start, incoming);
                (0..link.ends.len()).filter(|station| reached[link.ends[*station]]).collect()
            };
            Self { number, link, senders: stations(from, false), receivers: stations(to, true) }
        };
        let mut all: Vec<Self> = media.iter().map(medium).collect();
        all.retain(|air| !air.senders.is_empty() && !air.receivers.is_empty());
        all
    }

    /// Adds the medium to a graph whose first nodes are those of the scenario, as an edge that all its traffic crosses.
    /// Its weight is the capacity of the best pair of stations, since they share the airtime.
    pub(super) fn add_to(&self, graph: &mut MaxFlow, timeline: &Timeline<'_>, helpers: &[NodeId]) {
        let pairs = self.senders.iter().flat_map(|&from| {
            let apart = move |to: &&Attachment| **to != from;
            self.receivers.iter().filter(apart).map(move |&to| (from, to))
        });
        let pairs: Vec<_> = pairs.map(|pair| (pair, weight(self.between(pair, timeline, helpers)))).collect();
        let best = |of: &dyn Fn((Attachment, Attachment)) -> bool| {
            pairs.iter().filter(|(pair, _)| of(*pair)).map(|(_, weight)| *weight).max().unwrap_or(0)
        };
        let (sent, heard) = (graph.add_node(), graph.add_node());
        graph.add_edge([sent, heard], [best(&|_| true), 0]);
        for &station in &self.senders {
            graph.add_edge([self.link.ends[station], sent], [best(&|(from, _)| from == station), 0]);
        }
        for &station in &self.receivers {
            graph.add_edge([heard, self.link.ends[station]], [best(&|(_, to)| to == station), 0]);
        }
    }

    /// Capacity from one station to another, with the helper if there is one, in bit/s.
    fn between(
        &self,
        (from, to): (Attachment, Attachment),
        timeline: &Timeline<'_>,
        helpers: &[NodeId],
    ) -> f64 {
        let sender = |from, to| Sender::new(self.link, from, to);
        let helps = |station: &Attachment| {
            *station != from && *station != to && helpers.contains(&self.link.ends[*station])
        };
        let Some(helper) = (0..self.link.ends.len()).find(helps) else {
            return timeline.mean(self.number, sender(from, to));
        };
        let mut phases = Vec::new();
        let senders = [sender(from, to), sender(from, helper), sender(helper, to)];
        timeline.phases(self.number, senders, |share, [direct, overheard, helped]| {
            let missed_by_both = (1.0 - direct.pass()) * (1.0 - overheard.pass());
            phases.push(Phase {
                share,
                direct: direct.rate() * direct.pass(),
                either: direct.rate() * (1.0 - missed_by_both),
                helped: helped.rate() * helped.pass(),
            });
        });
        with_helper(&phases)
    }
}

/// Whether each node can be reached from `start`, or `start` from it, over the media and the links with any capacity.
fn reached<'l>(
    (wired, nodes): (&MaxFlow, usize),
    media: impl Iterator<Item = &'l Link>,
    start: NodeId,
    incoming: bool,
) -> Vec<bool> {
    let mut media: Vec<&Link> = media.collect();
    let mut reached = vec![false; nodes];
    reached[start] = true;
    let mut next = vec![start];
    while let Some(node) = next.pop() {
        let mut reach = |found: NodeId| {
            // Behind the nodes are the lines of switches.
            if found >= reached.len() {
                reached.resize(found + 1, false);
            }
            if !std::mem::replace(&mut reached[found], true) {
                next.push(found);
            }
        };
        wired.neighbours(node, incoming).for_each(&mut reach);
        media.retain(|link| {
            let attached = link.ends.contains(&node);
            if attached {
                link.ends.iter().copied().for_each(&mut reach);
            }
            !attached
        });
    }
    reached
}

/// A part of the window in which nothing changes, with the rates of delivery in bit/s while one station sends all the
/// time.
struct Phase {
    /// The part's share of the window.
    share: f64,
    /// Rate from the source to the destination.
    direct: f64,
    /// Rate from the source to the destination or the helper.
    either: f64,
    /// Rate from the helper to the destination.
    helped: f64,
}

/// Capacity of a source with its helper, in bit/s: the inverse of the minimum airtime for a frame that the destination
/// can use, over all ways to share the airtime (min-cut over the hyperedges of the broadcasts).
///
/// With the airtime x of the source and y of the helper, x + y = 1, both cuts between source and destination bound it:
/// that around the source, x (1 - e1 e3), and that around source and helper, x (1 - e3) + y (1 - e2). Random linear
/// coding reaches the lesser of the two. Its maximum over x and y is, by duality, the minimum over w from 0 to 1 of the
/// best single sender's share of w times the first cut and 1 - w times the second. That is convex and piecewise linear
/// in w, and bends where in some phase source and helper are equally good.
fn with_helper(phases: &[Phase]) -> f64 {
    let bound = |weight: f64| -> f64 {
        let of = |phase: &Phase| {
            let source = weight * phase.either + (1.0 - weight) * phase.direct;
            phase.share * source.max((1.0 - weight) * phase.helped)
        };
        phases.iter().map(of).sum()
    };
    let bend = |phase: &Phase| (phase.helped - phase.direct) / (phase.helped - phase.direct + phase.either);
    let bends = phases.iter().map(bend).filter(|weight| (0.0..=1.0).contains(weight));
    let mut bends: Vec<f64> = bends.chain([0.0, 1.0]).collect();
    bends.sort_by(f64::total_cmp);
    // Convex: it falls up to the minimum and rises behind it.
    let (mut first, mut last) = (0, bends.len() - 1);
    while first < last {
        let middle = (first + last) / 2;
        if bound(bends[middle + 1]) < bound(bends[middle]) {
            first = middle + 1;
        } else {
            last = middle;
        }
    }
    bound(bends[first])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(share: f64, e1: f64, e2: f64, e3: f64) -> Phase {
        Phase { share, direct: 1.0 - e3, either: 1.0 - e1 * e3, helped: 1.0 - e2 }
    }

    /// Maximum capacity over many ways to share the airtime of two phases.
    fn tried(phases: &[Phase; 2]) -> f64 {
        const STEPS: usize = 400;
        let mut max = 0.0f64;
        for first in 0..=STEPS {
            for second in 0..=STEPS {
                let (mut source, mut both) = (0.0, 0.0);
                for (phase, x) in phases.iter().zip([first, second]) {
                    let x = x as f64 / STEPS as f64;
                    source += phase.share * x * phase.either;
                    both += phase.share * (x * phase.direct + (1.0 - x) * phase.helped);
                }
                max = max.max(source.min(both));
            }
        }
        max
    }

    #[test]
    fn the_least_airtime_is_that_of_playncools_budgets() {
        // The authors' example: 110.7 transmissions for 64 packets.
        let airtime = 1.0 / with_helper(&[phase(1.0, 0.1, 0.3, 0.5)]);
        assert!((airtime * 64.0 - 110.7).abs() < 0.05, "{airtime}");
        // x = 1 / 0.95, and the helper fills up what is missing of one: (1 - 0.5 x) / 0.7.
        assert!((airtime - (1.0 / 0.95 + (1.0 - 0.5 / 0.95) / 0.7)).abs() < 1e-12);
    }

    #[test]
    fn a_helper_that_is_no_better_than_the_source_adds_nothing() {
        for (e1, e2) in [(0.0, 0.4), (0.0, 0.9), (1.0, 0.0)] {
            assert!((with_helper(&[phase(1.0, e1, e2, 0.4)]) - 0.6).abs() < 1e-12, "{e1} {e2}");
        }
        // Without a direct link each frame is sent twice.
        assert!((with_helper(&[phase(1.0, 0.0, 0.0, 1.0)]) - 0.5).abs() < 1e-12);
        assert_eq!(with_helper(&[phase(1.0, 1.0, 0.0, 1.0)]), 0.0);
    }

    #[test]
    fn what_changes_meanwhile_is_shared_as_well_as_can_be() {
        for phases in [
            // The helper hears everything first, and is heard only then.
            [phase(0.5, 0.0, 1.0, 1.0), phase(0.5, 1.0, 0.0, 1.0)],
            [phase(0.25, 0.2, 0.1, 0.7), phase(0.75, 0.5, 0.3, 0.9)],
            [phase(0.6, 0.1, 0.3, 0.5), phase(0.4, 0.3, 0.5, 0.2)],
        ] {
            let (found, tried) = (with_helper(&phases), tried(&phases));
            assert!(found >= tried - 1e-12 && found <= tried + 0.005, "{found} for {tried}");
        }
    }
}
