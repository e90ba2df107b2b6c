//! Where results go: the run directory, and standard output.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use hopcast_report::flows_csv;
use hopcast_report::table::{self, TableOptions};
use hopcast_twin::results::Document;

use crate::{Failure, Format};

/// The directory to write: `wanted`, or the next free `runs/NAME-NNN`. Nothing is created yet.
///
/// A directory that holds something else than a run is left alone.
pub(crate) fn run_directory(wanted: Option<&Path>, name: &str) -> Result<PathBuf, Failure> {
    let Some(dir) = wanted else {
        let numbered = |number: u32| Path::new("runs").join(format!("{name}-{number:03}"));
        let free = (1..=u32::MAX).map(numbered).find(|dir| !dir.exists());
        return free.ok_or_else(|| Failure::input("runs: no free name is left"));
    };
    let is_empty = || fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
    if dir.exists() && !dir.join("manifest.json").is_file() && !is_empty() {
        let message = format!(
            "--out {}: expected a new or empty directory or an earlier run's, found something else",
            dir.display()
        );
        return Err(Failure::input(message));
    }
    Ok(dir.to_owned())
}

/// Prints the document in the asked-for format.
pub(crate) fn print(document: &Document, format: Format) -> Result<(), Failure> {
    let text: Vec<u8> = match format {
        Format::Table => {
            let terminal = io::stdout().is_terminal();
            let width = terminal_size::terminal_size().map(|(width, _)| width.0).filter(|_| terminal);
            table::render(document, TableOptions { width, color: terminal && color_wanted() }).into_bytes()
        }
        Format::Json => {
            let mut text = serde_json::to_vec_pretty(document).map_err(Failure::run)?;
            text.push(b'\n');
            text
        }
        Format::Csv => flows_csv(document).map_err(Failure::run)?,
    };
    match io::stdout().write_all(&text) {
        // A reader that has seen enough (`| head`) is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::run(error)),
        Err(_) | Ok(()) => Ok(()),
    }
}

fn color_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
