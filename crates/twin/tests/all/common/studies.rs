//! The shipped studies, as their `quick` has them.

use hopcast_runner::{load, run};
use hopcast_twin::Monitor;
use hopcast_twin::results::{Document, Run};
use hopcast_twin::scenario::Overrides;

use super::scenarios::scenarios;

/// The results of a study, with some of its values set.
#[track_caller]
pub(crate) fn study(name: &str, sets: &[&str]) -> Document {
    let sets = sets.iter().map(|set| (*set).to_owned()).collect();
    let overrides = Overrides { sets, quick: true, ..Overrides::default() };
    let plan = load(&scenarios().join(format!("studies/{name}.yaml")), &overrides).unwrap();
    run(&plan, 1, None, &Monitor::default()).unwrap()
}

/// The value that a run has of what its study varies.
pub(crate) fn parameter<'r>(run: &'r Run, path: &str) -> &'r str {
    run.parameters[path].as_str().unwrap()
}
