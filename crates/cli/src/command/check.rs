//! `hopcast check`: the resolved network, without running it.

use std::path::Path;

use hopcast_twin::scenario;

use crate::failure::Failure;
use crate::options::OverrideOptions;
use crate::output;

pub(crate) fn check(file: &Path, overrides: &OverrideOptions) -> Result<(), Failure> {
    let plan = hopcast_runner::load(file, &overrides.resolve()).map_err(Failure::input)?;
    output::write(scenario::describe(&plan))
}

impl OverrideOptions {
    /// The overrides in the form of the scenario reader.
    pub(crate) fn resolve(&self) -> scenario::Overrides {
        scenario::Overrides {
            sets: self.sets.clone(),
            seed: self.seed,
            repeats: self.repeats,
            quick: self.quick,
        }
    }
}
