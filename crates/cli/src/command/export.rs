//! `hopcast export`: a scenario's network for other programs.

use std::path::Path;

use clap::ValueEnum;
use hopcast_twin::scenario;

use crate::failure::Failure;
use crate::options::OverrideOptions;
use crate::output;

/// A format for networks.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum NetworkFormat {
    /// The format of graph editors and libraries, and of `topology: { graphml: FILE }`
    Graphml,
    /// A drawing that Markdown can hold
    Mermaid,
}

pub(crate) fn export(file: &Path, to: NetworkFormat, overrides: &OverrideOptions) -> Result<(), Failure> {
    let plan = hopcast_runner::load(file, &overrides.resolve()).map_err(Failure::input)?;
    let Some(case) = plan.cases.first() else { return Ok(()) };
    if let (NetworkFormat::Graphml, Some((link, _))) = (to, case.scenario.fleets.first()) {
        let name = &case.scenario.links[*link].name;
        return Err(Failure::input(format!(
            "GraphML has no radios, such as the link `{name}` of this scenario"
        )));
    }
    output::write(match to {
        NetworkFormat::Graphml => scenario::to_graphml(&case.scenario),
        NetworkFormat::Mermaid => scenario::to_mermaid(&case.scenario),
    })
}
