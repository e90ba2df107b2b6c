//! The scheduled steps of a run: changes, and the times at which figures are read.

use hopcast_core::{Duration, Instant};
use hopcast_stack::flow::Join;

use crate::scenario::model::{Event, Scenario};
use crate::ship_maps::{has_maps, moments};

/// A step of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Carry out the event of this number in the scenario.
    Event(usize),
    /// Change the routes that follow from the event of this number.
    Routes(usize),
    /// Let a receiver join a group or leave it.
    Join(Join),
    /// Open the measurement window.
    Open,
    /// Close the measurement window.
    Close,
    /// Note the routes of flows, for a moment of the maps of ships.
    Routings,
    /// End a step of the time series.
    Sample,
}

/// The steps in order of time; at one instant, changes come before readings.
pub(super) struct Script {
    steps: std::iter::Peekable<std::vec::IntoIter<(Instant, Step)>>,
    sample: Option<Instant>,
    interval: Duration,
    end: Instant,
}

impl Script {
    pub(super) fn new(scenario: &Scenario, repeat: u64, joins: impl Iterator<Item = Join>) -> Self {
        let end = Instant::ZERO + scenario.duration;
        // Events after the end of the run do not happen: in the drain the network does not change.
        let events = scenario.events.iter().enumerate().filter(|(_, event)| event.at <= end);
        let mut steps: Vec<(Instant, Step)> = events.map(|(i, event)| (event.at, Step::Event(i))).collect();
        let convergence = scenario.routing.convergence;
        if convergence > Duration::ZERO {
            let follows = |(i, event): (usize, &Event)| (event.at + convergence, Step::Routes(i));
            let routes = scenario.events.iter().enumerate().map(follows);
            steps.extend(routes.filter(|&(at, _)| at <= end));
        }
        steps.extend(joins.filter(|join| join.at <= end).map(|join| (join.at, Step::Join(join))));
        steps.push((scenario.measure.from, Step::Open));
        steps.push((scenario.measure.to, Step::Close));
        if !scenario.fleets.is_empty() && has_maps(repeat) {
            steps.extend(moments(scenario).map(|at| (at, Step::Routings)));
        }
        // Stable, so that events of one instant keep the order of the file and come before the window's edges.
        steps.sort_by_key(|&(at, _)| at);
        let interval = scenario.measure.interval;
        Self {
            steps: steps.into_iter().peekable(),
            sample: Some(Instant::ZERO + interval).filter(|&at| at <= end),
            interval,
            end,
        }
    }

    /// Time of the next step.
    pub(super) fn deadline(&mut self) -> Option<Instant> {
        hopcast_core::earliest(self.steps.peek().map(|&(at, _)| at), self.sample)
    }

    /// The next step that is due; call until `None`.
    pub(super) fn next(&mut self, now: Instant) -> Option<Step> {
        if let Some((_, step)) = self.steps.next_if(|&(at, _)| at <= now) {
            return Some(step);
        }
        let due = self.sample.filter(|&at| at <= now)?;
        self.sample = Some(due + self.interval).filter(|&at| at <= self.end && at > due);
        Some(Step::Sample)
    }
}
