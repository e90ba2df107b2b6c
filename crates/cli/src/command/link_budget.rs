//! `hopcast link-budget`: why there is a radio link between two ships, or none.

use std::path::Path;

use clap::Args;
use hopcast_core::{Duration, Instant};
use hopcast_twin::link_budget;

use crate::failure::Failure;
use crate::options::OverrideOptions;
use crate::output;

#[derive(Args)]
pub(crate) struct LinkBudgetOptions {
    /// A ship
    a: String,
    /// Another ship
    b: String,
    /// The time in the scenario
    #[arg(long, value_name = "TIME", default_value = "0s")]
    at: Duration,
    /// The radio link, of several that both are on [default: the first]
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
    #[command(flatten)]
    overrides: OverrideOptions,
}

/// Prints the budget of two ships in a scenario's first case.
pub(crate) fn run(file: &Path, options: &LinkBudgetOptions) -> Result<(), Failure> {
    let LinkBudgetOptions { a, b, at, link, overrides } = options;
    let plan = hopcast_runner::load(file, &overrides.resolve()).map_err(Failure::input)?;
    let Some(case) = plan.cases.first() else { return Ok(()) };
    let budget = link_budget(&case.scenario, [a, b], link.as_deref(), Instant::ZERO + *at);
    output::write(budget.map_err(Failure::input)?.to_string())
}
