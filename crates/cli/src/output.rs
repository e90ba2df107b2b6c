//! Standard output.

use std::io::{self, IsTerminal, Write};

use hopcast_report::table::{self, TableOptions};
use hopcast_report::{flows_csv, iperf3};
use hopcast_twin::results::Document;
use hopcast_twin::scenario::did_you_mean;

use crate::failure::Failure;
use crate::options::{Choice, Format};

/// Checks, before anything is run, that the options select one run and flow if the format needs that.
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

/// Prints the document in a format.
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
                // The selected run was not reached before the interruption.
                None => return Ok(()),
            }
        }
    };
    write(&text)
}

/// A value as a JSON document.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<Vec<u8>, Failure> {
    let mut text = serde_json::to_vec_pretty(value).map_err(Failure::run)?;
    text.push(b'\n');
    Ok(text)
}

/// Options of a table on standard output.
pub(crate) fn terminal() -> TableOptions {
    let terminal = io::stdout().is_terminal();
    TableOptions { width: width(terminal), color: terminal && color_wanted() }
}

/// Writes to standard output.
pub(crate) fn write(text: impl AsRef<[u8]>) -> Result<(), Failure> {
    match io::stdout().write_all(text.as_ref()) {
        // A reader that stops reading (`| head`) is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::run(error)),
        Err(_) | Ok(()) => Ok(()),
    }
}

fn color_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Maximum width of a table: `COLUMNS`, or else that of the terminal; `None` for a file.
fn width(terminal: bool) -> Option<u16> {
    let wanted = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    wanted.or_else(|| terminal_size::terminal_size().map(|(width, _)| width.0).filter(|_| terminal))
}
