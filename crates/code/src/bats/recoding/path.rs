//! A chain of hops and the budget that suits it.

use super::Plan;
use crate::bats::ranks::{Channel, Ranks, Scheme};

/// A chain of hops with one budget for each, every node following the best plan for the ranks that reach it.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// The plan of each node, the source's first.
    plans: Vec<Plan>,
    budget: f64,
}

impl Path {
    /// With a given budget: packets a batch on every link, on average.
    pub fn new(hops: &[Channel], batch: usize, scheme: Scheme, phases: usize, budget: f64) -> Self {
        let mut plans: Vec<Plan> = Vec::with_capacity(hops.len());
        let full = Ranks::full(batch);
        for channel in hops {
            let ranks = plans.last().map_or(&full, Plan::after);
            let plan = Plan::new(ranks, channel, scheme, phases, budget);
            plans.push(plan);
        }
        Self { plans, budget }
    }

    /// With the budget at which a packet carries most to the far end, found in `steps` steps between 0.6 and 1.8 times
    /// the packets that the worst link needs for a whole batch. (Among whole numbers of packets there are ripples, so
    /// nothing cleverer would find it for certain.)
    pub fn best(hops: &[Channel], batch: usize, scheme: Scheme, phases: usize, steps: usize) -> Self {
        let arrives = hops.iter().map(|channel| 1.0 - channel.loss()).fold(1.0, f64::min);
        let needed = batch as f64 / arrives;
        let steps = steps.max(1);
        let with = |budget: f64| Self::new(hops, batch, scheme, phases, budget);
        (0..steps)
            .map(|step| with(needed * (0.6 + 1.2 * step as f64 / steps as f64)))
            .max_by(|one, other| one.efficiency().total_cmp(&other.efficiency()))
            .unwrap_or_else(|| with(needed))
    }

    /// The plan of each node, the source's first.
    pub fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// The packets a batch may take on each link.
    pub fn budget(&self) -> f64 {
        self.budget
    }

    /// The rank at the far end for each packet on a link; no more than 1 - loss.
    pub fn efficiency(&self) -> f64 {
        self.plans.last().map_or(1.0, |plan| plan.rank() / self.budget)
    }
}
