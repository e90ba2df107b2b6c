//! One run in virtual time from its first instant to its last, and the document of all runs of a plan.

use std::io;

use hopcast_core::{Duration, Instant};

use crate::World;
use crate::bounds::Bounds;
use crate::collect::collect;
use crate::monitor::Monitor;
use crate::results::{Document, Run};
use crate::saving::relate;
use crate::scenario::model::{Case, Plan, Scenario};
use crate::stats::summarise;

/// Virtual time after the end of a run in which applications send no more, and data under way may arrive. Chosen; with
/// less, data that is repaired after long timeouts counts as lost; more costs time only where something still happens.
pub(crate) const DRAIN: Duration = Duration::from_secs(60);

/// The end of a run of `scenario`.
pub fn run_end(scenario: &Scenario) -> Instant {
    Instant::ZERO + scenario.duration
}

impl World {
    /// Runs this world, that of repeat number `repeat` of `case`, to its end; `None` if `monitor` was cancelled.
    ///
    /// # Errors
    /// If the capture or the log cannot be written.
    pub fn run_to_end(
        mut self,
        case: &Case,
        repeat: u64,
        bounds: &Bounds,
        monitor: &Monitor,
    ) -> io::Result<Option<Run>> {
        let end = run_end(&case.scenario);
        let finished = self.run_until(end, monitor) && self.drain_until(end + DRAIN, monitor);
        self.finish_capture()?;
        self.finish_recording()?;
        Ok(finished.then(|| collect(case, repeat, bounds, self.observe())))
    }
}

/// The document of `plan`: its runs in order, or those that were finished before it was `interrupted`.
pub fn document(plan: &Plan, mut runs: Vec<Run>, interrupted: bool) -> Document {
    relate(&mut runs, &plan.reference);
    let summary = summarise(&runs, &plan.published);
    Document {
        scenario: plan.title.clone(),
        runs,
        summary,
        interrupted,
        beside: (plan.origin != "published").then(|| plan.origin.to_owned()),
        notes: plan.notes.clone(),
        remarks: plan.remarks.clone(),
        source: plan.source.clone(),
        reference: plan.reference.clone(),
        axis: plan.axis.clone(),
    }
}
