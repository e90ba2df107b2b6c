//! Where results go: the run directory, and standard output.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use hopcast_report::table::{self, TableOptions};
use hopcast_report::{flows_csv, iperf3};
use hopcast_twin::results::Document;
use hopcast_twin::scenario::did_you_mean;

use crate::{Choice, Failure, Format, manifest};

/// The file of a run directory that holds its finished runs.
pub(crate) const JOURNAL: &str = "runs.journal";

/// The directory that a run is written to: made before the run, so that what cannot be written is known at once and no
/// other run takes the same.
pub(crate) struct RunDirectory {
    path: PathBuf,
    made: bool,
}

impl RunDirectory {
    /// Takes `wanted`, or the next free `runs/NAME-NNN`. A directory that holds something else than a run is left
    /// alone.
    pub(crate) fn take(wanted: Option<&Path>, name: &str) -> Result<Self, Failure> {
        let failure = |path: &Path, error| Failure::input(format!("{}: {error}", path.display()));
        let Some(path) = wanted else {
            fs::create_dir_all("runs").map_err(|error| failure(Path::new("runs"), error))?;
            for number in 1..=u32::MAX {
                let path = Path::new("runs").join(format!("{name}-{number:03}"));
                match fs::create_dir(&path) {
                    Ok(()) => return Ok(Self { path, made: true }),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(failure(&path, error)),
                }
            }
            return Err(Failure::input("runs: no free name is left"));
        };
        let made = !path.exists();
        fs::create_dir_all(path).map_err(|error| failure(path, error))?;
        let entries = fs::read_dir(path).map_err(|error| failure(path, error))?;
        // What a run that was cut short leaves, too; of one in both worlds, that is in a directory of its own at first.
        let here = |path: &Path| {
            ["manifest.json", "summary.json", JOURNAL].iter().any(|file| path.join(file).is_file())
        };
        let run = here(path) || here(&path.join("virtual"));
        let empty = entries.flatten().all(|entry| entry.file_name() == "captures");
        if !empty && !run {
            let message = format!(
                "--out {}: expected a new or empty directory or an earlier run's, found something else",
                path.display()
            );
            return Err(Failure::input(message));
        }
        Ok(Self { path: path.to_owned(), made })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the finished runs are.
    pub(crate) fn journal(&self) -> PathBuf {
        self.path.join(JOURNAL)
    }

    /// Where captures go, without those of an earlier run.
    pub(crate) fn captures(&self) -> Result<PathBuf, Failure> {
        let captures = self.path.join("captures");
        let failure = |error| Failure::run(format!("{}: {error}", captures.display()));
        fs::create_dir_all(&captures).map_err(failure)?;
        self.drop_captures()?;
        Ok(captures)
    }

    /// Takes away the captures of an earlier run, which would not be this one's.
    pub(crate) fn drop_captures(&self) -> Result<(), Failure> {
        let Ok(entries) = fs::read_dir(self.path.join("captures")) else { return Ok(()) };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "pcapng") {
                fs::remove_file(&path)
                    .map_err(|error| Failure::run(format!("{}: {error}", path.display())))?;
            }
        }
        Ok(())
    }

    /// Gives the directory up, when there is nothing to write: it is gone again if it was new and no run in it is finished.
    /// If one is, the command that goes on.
    pub(crate) fn give_up(self) -> Option<String> {
        let holds = |path: PathBuf| fs::metadata(path).is_ok_and(|file| file.len() > 0);
        if holds(self.journal()) || holds(self.path.join("virtual").join(JOURNAL)) {
            return Some(format!(
                "what is finished is kept; to go on:\n  {}",
                manifest::resuming(&self.path)
            ));
        }
        if self.made {
            // What is not empty stays; then it is not ours alone.
            let _ = self.drop_captures();
            let _ = fs::remove_dir(self.path.join("captures"));
            // Made by a run in both worlds, and by programs of live runs.
            let _ = fs::remove_dir_all(self.path.join("virtual"));
            for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().starts_with("case-") {
                    let _ = fs::remove_dir_all(entry.path());
                }
            }
            let _ = fs::remove_file(self.journal());
            let _ = fs::remove_dir(&self.path);
        }
        None
    }
}

/// Says what is missing to print one run and flow, before anything is run.
pub(crate) fn check(format: Format, choice: &Choice, runs: usize, flows: &[&str]) -> Result<(), Failure> {
    if format != Format::Iperf3 {
        return match choice {
            Choice { run: None, flow: None } => Ok(()),
            _ => Err(Failure::input("--run and --flow go with --format iperf3")),
        };
    }
    match choice.run {
        None if runs > 1 => {
            let message = format!(
                "--format iperf3 prints one of the {runs} runs: choose it with --run 0 to --run {}, as flows.csv counts them",
                runs - 1
            );
            return Err(Failure::input(message));
        }
        Some(run) if run >= runs => {
            return Err(Failure::input(format!("--run {run}: expected at most {}", runs.saturating_sub(1))));
        }
        _ => {}
    }
    match &choice.flow {
        None if flows.len() > 1 => {
            let message = format!(
                "--format iperf3 prints one flow: choose it with --flow (flows: {})",
                flows.join(", ")
            );
            Err(Failure::input(message))
        }
        Some(name) if !flows.contains(&name.as_str()) => {
            let hint = did_you_mean(name, flows.iter().copied());
            let message = format!("--flow {name}: no flow has this name{hint} (flows: {})", flows.join(", "));
            Err(Failure::input(message))
        }
        _ => Ok(()),
    }
}

/// Prints the document in the asked-for format.
pub(crate) fn print(document: &Document, format: Format, choice: &Choice) -> Result<(), Failure> {
    let text: Vec<u8> = match format {
        Format::Table => table::render(document, terminal()).into_bytes(),
        Format::Json => json(document)?,
        Format::Csv => flows_csv(document).map_err(Failure::run)?,
        Format::Iperf3 => {
            let run = document.runs.get(choice.run.unwrap_or(0));
            let flow = run.and_then(|run| {
                run.flows.iter().find(|flow| choice.flow.as_ref().is_none_or(|name| *name == flow.name))
            });
            match run.zip(flow) {
                Some((run, flow)) => json(&iperf3::json(document, run, flow))?,
                // An interrupted run, of which that one was not reached.
                None => return Ok(()),
            }
        }
    };
    write(&text)
}

/// A value as a JSON document of its own.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<Vec<u8>, Failure> {
    let mut text = serde_json::to_vec_pretty(value).map_err(Failure::run)?;
    text.push(b'\n');
    Ok(text)
}

/// How to print a table on standard output.
pub(crate) fn terminal() -> TableOptions {
    let terminal = io::stdout().is_terminal();
    TableOptions { width: width(terminal), color: terminal && color_wanted() }
}

/// Writes to standard output.
pub(crate) fn write(text: impl AsRef<[u8]>) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_ref()) {
        // A reader that has seen enough (`| head`) is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::run(error)),
        Err(_) | Ok(()) => Ok(()),
    }
}

fn color_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// How many columns the table may have: what `COLUMNS` says, or else the terminal; as wide as it gets in a file.
fn width(terminal: bool) -> Option<u16> {
    let wanted = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    wanted.or_else(|| terminal_size::terminal_size().map(|(width, _)| width.0).filter(|_| terminal))
}
