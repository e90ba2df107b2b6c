//! `hopcast report`: a run directory's report, again.

use std::path::Path;

use hopcast_report::{read_run_directory, write_run_directory};

use crate::{Failure, Format, output};

pub(crate) fn report(dir: &Path, format: Format) -> Result<(), Failure> {
    let run = read_run_directory(dir).map_err(Failure::input)?;
    write_run_directory(dir, &run.document, &run.topology, run.manifest).map_err(Failure::run)?;
    output::print(&run.document, format)?;
    eprintln!("report: {}", dir.join("report.html").display());
    Ok(())
}
