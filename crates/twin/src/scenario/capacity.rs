//! The min-cut: how much any protocol could deliver at most, over all paths together.

use hopcast_core::{Instant, Rate};
use hopcast_link::{Change, Direction, Loss};
use petgraph::algo::dinics;
use petgraph::graph::{DiGraph, NodeIndex};

use super::model::{Action, Link, LinkModel, NodeId, Scenario};

/// The max-flow from one node to another over rate x (1 - mean loss), averaged over the measurement window with all
/// that is scheduled, in bit/s. `None` if it is unbounded, because links without a rate lead all the way.
///
/// For many flows of one scenario, make [`Capacities`] once.
pub fn capacity(scenario: &Scenario, from: NodeId, to: NodeId) -> Option<f64> {
    Capacities::of(scenario).between(from, to)
}

/// What each direction of each link carries on the average, as a graph.
///
/// A direction without a rate is unbounded if it is up at any time of the window. A medium is a node that all of its
/// traffic crosses: one station at a time sends directly to another.
#[derive(Debug)]
pub struct Capacities {
    /// Weights are thousandths of a bit per second, so that the flow is found exactly.
    graph: DiGraph<(), u128>,
}

/// More than all links of any network with rates, and far from the end of `u128`.
const UNBOUNDED: u128 = 1 << 100;

impl Capacities {
    /// Of a scenario, in its measurement window.
    pub fn of(scenario: &Scenario) -> Self {
        Self::over(scenario, scenario.measure.from, scenario.measure.to)
    }

    /// Of a scenario, in another window; an empty one (`from` not before `to`) sees the links as they are at `from`.
    pub fn over(scenario: &Scenario, from: Instant, to: Instant) -> Self {
        let means = means(scenario, from, to);
        let mut graph = DiGraph::with_capacity(scenario.nodes.len(), scenario.links.len() * 2);
        for _ in &scenario.nodes {
            graph.add_node(());
        }
        for (link, means) in scenario.links.iter().zip(&means) {
            let ends: Vec<_> = link.ends.iter().map(|end| NodeIndex::new(*end)).collect();
            match link.model {
                LinkModel::PointToPoint(_) => {
                    graph.add_edge(ends[0], ends[1], means[0]);
                    graph.add_edge(ends[1], ends[0], means[1]);
                }
                LinkModel::Medium(_) => {
                    let (sent, heard) = (graph.add_node(()), graph.add_node(()));
                    graph.add_edge(sent, heard, means.iter().copied().max().unwrap_or(0));
                    for (end, mean) in ends.into_iter().zip(means) {
                        graph.add_edge(end, sent, *mean);
                        graph.add_edge(heard, end, UNBOUNDED);
                    }
                }
            }
        }
        Self { graph }
    }

    /// The max-flow in bit/s; `None` if it is unbounded.
    pub fn between(&self, from: NodeId, to: NodeId) -> Option<f64> {
        if from == to {
            return None;
        }
        let (flow, _) = dinics(&self.graph, NodeIndex::new(from), NodeIndex::new(to));
        (flow < UNBOUNDED).then_some(flow as f64 / 1e3)
    }
}

/// The share of frames that a loss model takes in the long run.
pub(crate) fn mean_loss(loss: &Loss) -> f64 {
    loss.stationary().get()
}

/// One direction while its events pass.
struct State {
    rate: Option<Rate>,
    loss: f64,
    up: bool,
    since: Instant,
    /// Bits so far within the window; infinite if unbounded.
    bits: f64,
}

impl State {
    fn new(direction: &Direction, from: Instant) -> Self {
        Self { rate: direction.rate, loss: mean_loss(&direction.loss), up: true, since: from, bits: 0.0 }
    }

    /// What passes now, in bit/s; infinite if unbounded.
    fn passes(&self) -> f64 {
        let share = 1.0 - self.loss;
        if !self.up || share <= 0.0 {
            return 0.0;
        }
        self.rate.map_or(f64::INFINITY, |rate| rate.bits_per_sec() as f64) * share
    }

    /// Counts what passes until `now`.
    fn advance(&mut self, now: Instant) {
        if now > self.since {
            self.bits += self.passes() * now.since(self.since).as_secs_f64();
            self.since = now;
        }
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::Rate(rate) => self.rate = *rate,
            Change::Loss(loss) => self.loss = mean_loss(loss),
            Change::Down => self.up = false,
            Change::Up => self.up = true,
            // Towards one of several listeners: the direction as a whole is what is counted here.
            Change::LossTo(..)
            | Change::Delay(_)
            | Change::Jitter(_)
            | Change::Corrupt(_)
            | Change::Duplicate(_) => {}
        }
    }
}

/// For each link, what leaves each of its attachments, in thousandths of a bit per second.
fn means(scenario: &Scenario, start: Instant, end: Instant) -> Vec<Vec<u128>> {
    let states = |link: &Link| {
        (0..link.ends.len()).map(|end| State::new(link.direction(end), start)).collect::<Vec<_>>()
    };
    let mut links: Vec<_> = scenario.links.iter().map(states).collect();
    // What happens at the very end of a window has no time to count; at its very start, it has.
    for event in scenario.events.iter().take_while(|event| event.at <= start.max(end)) {
        let Action::Link { link, from, change } = &event.action else { continue };
        for (attachment, state) in links[*link].iter_mut().enumerate() {
            if from.is_none_or(|from| from == attachment) {
                state.advance(event.at);
                state.change(change);
            }
        }
    }
    let mean = |mut state: State| {
        let rate = if start < end {
            state.advance(end);
            state.bits / end.since(start).as_secs_f64()
        } else {
            state.passes()
        };
        // `as` saturates; an infinite mean is the unbounded one.
        ((rate * 1e3).round() as u128).min(UNBOUNDED)
    };
    links.into_iter().map(|states| states.into_iter().map(mean).collect()).collect()
}
