//! The min-cut: the maximum rate that any protocol could deliver, over all paths together.

mod airtime;
mod branches;
mod coded_block;
mod contacts;
mod ferry;
mod max_flow;
mod medium;
mod timeline;

use hopcast_core::Instant;
use hopcast_link::Loss;

use self::airtime::AirtimeHop;
use self::branches::{Branches, Core};
pub use self::coded_block::BlockBound;
pub(crate) use self::ferry::{Ferry, TooMuchWork};
use self::max_flow::MaxFlow;
use self::medium::FlowMedium;
use self::timeline::{Sender, Timeline};
use super::model::{Flow, LinkId, LinkModel, NodeId, Scenario};

/// The max-flow from one node to another over rate x (1 - mean loss), averaged over the measurement window with all
/// scheduled changes, in bit/s, without helpers. `None` if it is unbounded, because a path has only links without a
/// rate.
///
/// For many flows of one scenario, make [`Capacities`] once.
pub fn capacity(scenario: &Scenario, from: NodeId, to: NodeId) -> Option<f64> {
    Capacities::of(scenario).between(from, to)
}

/// Mean capacity of each direction of each link, as a graph.
///
/// On a switch a station sends at its own rate, which its receivers share, and a receiver has no limit of its own.
///
/// A direction without a rate is unbounded if it is up at any time of the window. On a medium one station at a time
/// sends, directly to another: between two stations it carries rate x (1 - the mean loss of that pair), or with a
/// helper the inverse of the minimum airtime for a frame that the destination can use. A station that is no helper does
/// not repeat on a medium what it has heard there; no route leads that way. On a medium whose stations do not all hear
/// one another, several can send at once, and a station repeats what others do not hear: it bounds each sender alone,
/// and those together that cannot be received at once, by sets of hops that exclude each other (`airtime`).
#[derive(Debug)]
pub struct Capacities<'s> {
    scenario: &'s Scenario,
    timeline: Timeline<'s>,
    /// The point-to-point links, the switches, and the media that are only partly heard. Weights are thousandths of a
    /// bit per second, so that the flow is found exactly.
    wired: MaxFlow,
    /// The hops over media that are only partly heard.
    hops: Vec<AirtimeHop<'s>>,
    /// The branches that are trees; `None` if there is a medium, whose capacity depends on the flow.
    branches: Option<Branches>,
}

/// Capacity of a link without a rate, in thousandths of a bit per second. Chosen: a smaller one may be less than the
/// sum of a network's rates, and sums of larger ones might not fit `u128`.
const UNBOUNDED: u128 = 1 << 100;

impl<'s> Capacities<'s> {
    /// The capacities of a scenario in its measurement window.
    pub fn of(scenario: &'s Scenario) -> Self {
        Self::over(scenario, scenario.measure.from, scenario.measure.to)
    }

    /// The capacities of a scenario in another window; an empty one (`from` not before `to`) has the links as they are
    /// at `from`.
    pub fn over(scenario: &'s Scenario, from: Instant, to: Instant) -> Self {
        Self::along(scenario, Timeline::new(scenario, from, to))
    }

    /// As [`Self::over`], without random loss: each frame arrives unless its loss is certain. No run can carry more.
    pub fn without_loss(scenario: &'s Scenario, from: Instant, to: Instant) -> Self {
        Self::along(scenario, Timeline::new(scenario, from, to).lossless())
    }

    fn along(scenario: &'s Scenario, timeline: Timeline<'s>) -> Self {
        let mut wired = MaxFlow::default();
        for _ in &scenario.nodes {
            wired.add_node();
        }
        let mut hops = Vec::new();
        for (number, link) in scenario.links.iter().enumerate() {
            let node = |end: usize| link.ends[end];
            let mean = |from, to| weight(timeline.mean(number, Sender::new(link, from, to)));
            match link.model {
                LinkModel::PointToPoint(_) => {
                    wired.add_edge([node(0), node(1)], [mean(0, 1), mean(1, 0)]);
                }
                // It is added for each flow, since its capacity depends on the flow's stations.
                LinkModel::Medium(_) if link.partly_heard().is_none() => {}
                LinkModel::Switch(_) | LinkModel::Medium(_) => {
                    for from in 0..link.ends.len() {
                        let line = wired.add_node();
                        let others = (0..link.ends.len()).filter(|&to| link.reaches(from, to));
                        let any = others.clone().next().map(|to| Sender::new(link, from, to));
                        let rate = any.map_or(0.0, |sender| timeline.mean_rate(number, sender));
                        wired.add_edge([node(from), line], [weight(rate), 0]);
                        for to in others {
                            let edge = wired.add_edge([line, node(to)], [mean(from, to), 0]);
                            if link.partly_heard().is_some() {
                                hops.push(AirtimeHop::new((number, link), (from, to), edge, &timeline));
                            }
                        }
                    }
                }
            }
        }
        let has_media = scenario.links.iter().any(|link| matches!(link.model, LinkModel::Medium(_)));
        let branches = (!has_media).then(|| Branches::of(scenario.nodes.len(), &scenario.links));
        Self { scenario, timeline, wired, hops, branches }
    }

    /// The max-flow in bit/s, without helpers; `None` if it is unbounded.
    pub fn between(&mut self, from: NodeId, to: NodeId) -> Option<f64> {
        in_bits(self.with_helpers((from, to), &[], UNBOUNDED))
    }

    /// The max-flow in bit/s from the source of a flow to one of its receivers, with the helpers that the flow has.
    pub fn of_flow(&mut self, flow: &Flow, to: NodeId) -> Option<f64> {
        in_bits(self.with_helpers((flow.from, to), flow.helpers(self.scenario), UNBOUNDED))
    }

    /// The minimum max-flow in bit/s from the source of a flow to any of its receivers; `None` if all are unbounded. A
    /// search stops at the minimum found so far.
    pub fn min_of_flow(&mut self, flow: &Flow) -> Option<f64> {
        let mut min = UNBOUNDED;
        for &to in &flow.to {
            min = self.with_helpers((flow.from, to), flow.helpers(self.scenario), min);
        }
        in_bits(min)
    }

    /// The max-flow, at most `limit`, where on each medium the first station of `helpers` that neither sends nor
    /// receives there itself may repeat the frames that it overhears.
    fn with_helpers(&mut self, (from, to): (NodeId, NodeId), helpers: &[NodeId], limit: u128) -> u128 {
        if from == to {
            return limit;
        }
        if let Some(branches) = &self.branches {
            let capacity = |link: LinkId, end| {
                let spec = &self.scenario.links[link];
                weight(self.timeline.mean(link, Sender::new(spec, end, 1 - end)))
            };
            let (min, core) = branches.between((from, to), capacity);
            let min = min.min(limit);
            return match core {
                Core::Within => min,
                Core::Between(from, to) => self.wired.between(from, to, min),
            };
        }
        let wired = self.wired.size();
        for medium in FlowMedium::all(self.scenario, &self.wired, from, to) {
            medium.add_to(&mut self.wired, &self.timeline, helpers);
        }
        let mut flow = self.wired.between(from, to, limit);
        if !self.hops.is_empty() {
            flow = flow.min(airtime::bound(&self.hops, &self.wired.graph(), (from, to)));
        }
        self.wired.truncate(wired);
        flow
    }
}

/// A flow in bit/s; `None` if it is unbounded.
fn in_bits(flow: u128) -> Option<f64> {
    (flow < UNBOUNDED).then_some(flow as f64 / 1e3)
}

/// The share of frames that a loss model takes in the long run.
pub(crate) fn mean_loss(loss: &Loss) -> f64 {
    loss.stationary().get()
}

/// A rate in bit/s as the weight of an edge.
fn weight(rate: f64) -> u128 {
    // `as` saturates; an unlimited rate becomes `UNBOUNDED`.
    ((rate * 1e3).round() as u128).min(UNBOUNDED)
}
