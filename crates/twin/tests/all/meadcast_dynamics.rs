//! The studies of MEADcast under firewalls and routes that change: how long members are without packets.

#![allow(clippy::unwrap_used)]

use crate::common::studies::{parameter, study};
use hopcast_twin::results::Run;

/// Steps of the series, in seconds.
const STEP: f64 = 0.5;

/// From when to when less than 98 % of 1 Mbit/s came to members, on average over all senders.
fn interruption(run: &Run) -> (f64, f64) {
    assert_eq!(run.series.step_s, STEP);
    let flows = &run.series.flows;
    let mean = |step: usize| flows.iter().map(|(_, rates)| rates[step]).sum::<f64>() / flows.len() as f64;
    let steps = flows[0].1.len();
    let from = (20.0 / STEP) as usize;
    let low: Vec<usize> = (from..steps).filter(|&step| mean(step) < 0.98).collect();
    (low[0] as f64 * STEP, (low[low.len() - 1] + 1) as f64 * STEP)
}

#[test]
fn a_firewall_interrupts_until_the_discovery_after_it_has_ended() {
    let document = study("meadcast-dynamics-firewall", &["groups.conference.delivery=mead"]);
    for run in &document.runs {
        // It begins at 21 s; discoveries begin each 5 s and take 2, so the first to find it ends at 27 s.
        assert_eq!(interruption(run), (21.0, 27.0), "{:?}", run.parameters);
    }
    assert_eq!(document.runs.len(), 2);
}

#[test]
fn routes_that_change_interrupt_until_they_are_found_and_lists_by_receivers_until_the_next_discovery() {
    let document = study("meadcast-dynamics-routes", &[]);
    for run in &document.runs {
        let (from, until) = interruption(run);
        let most =
            match (parameter(run, "services.core.carrier"), parameter(run, "groups.conference.delivery")) {
                // `spf-delay`, in one step of the series.
                ("on", _) => STEP,
                // `dead`, and the same.
                (_, "unicast" | "mead-next-hop") => 4.0 + STEP,
                // A discovery that begins after that, at most an interval and its own time later.
                _ => 4.0 + STEP + 5.0 + 2.0,
            };
        assert_eq!(from, 35.0, "{:?}", run.parameters);
        assert!(until - from <= most, "{:?}: {} s", run.parameters, until - from);
    }
    assert_eq!(document.runs.len(), 6);
}
