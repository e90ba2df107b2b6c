//! `hopcast probe`: who reaches whom in a scenario's network, checked in stages.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use hopcast_core::{Duration, Instant};
use hopcast_twin::Monitor;
use hopcast_twin::probe::{Check, Findings, Pairs, Stage, probe};
use hopcast_twin::scenario::Overrides;
use hopcast_twin::scenario::model::Case;

use super::run::{become_capable, node_command};
use crate::failure::Failure;
use crate::interrupt;
use crate::options::OverrideOptions;
use crate::output;

/// Maximum number of failed checks of a stage that the text lists.
const LISTED: usize = 8;

#[derive(Args)]
pub(crate) struct ProbeOptions {
    /// The time in the scenario whose network is checked
    #[arg(long, value_name = "TIME", default_value = "0s")]
    at: Duration,
    /// Check all pairs of nodes end to end, not those of flows alone
    #[arg(long)]
    all: bool,
    /// Check the network on this machine's kernel, in namespaces, with real packets
    #[arg(long)]
    live: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    overrides: OverrideOptions,
}

/// Checks the network of a scenario's first case, as it is at a time.
pub(crate) fn run(file: &Path, options: &ProbeOptions) -> Result<(), Failure> {
    let ProbeOptions { at, all, live, json, overrides } = options;
    let overrides = overrides.resolve();
    let plan = hopcast_runner::load(file, &overrides).map_err(Failure::input)?;
    let Some(case) = plan.cases.first() else { return Ok(()) };
    let pairs = if *all { Pairs::All } else { Pairs::OfFlows };
    let findings = if *live {
        on_kernel(file, &overrides, case, (*at, pairs))?
    } else {
        probe(&case.scenario, Instant::ZERO + *at, pairs).map_err(Failure::input)?
    };
    if *json {
        output::write(output::json(&findings)?)?;
    } else {
        output::write(text(&findings))?;
    }
    match findings.first_failure() {
        None => Ok(()),
        Some(check) => Err(Failure::run(format!("{}: {}", check.stage, line(check)))),
    }
}

/// Checks the network of a case in a lab.
fn on_kernel(
    file: &Path,
    overrides: &Overrides,
    case: &Case,
    (at, pairs): (Duration, Pairs),
) -> Result<Findings, Failure> {
    hopcast_live::run::check(&case.scenario).map_err(Failure::input)?;
    become_capable()?;
    let mut node = node_command(file, overrides)?;
    node.extend(["--probed-at".into(), format!("{}ns", at.as_nanos()).into()]);
    let monitor = Arc::new(Monitor::default());
    interrupt::cancel_live_on_ctrl_c(&monitor);
    let findings = hopcast_live::run::probe(&node, case, Instant::ZERO + at, pairs, &monitor);
    let interrupted = || Failure { message: "interrupted".to_owned(), code: 130 };
    findings.map_err(Failure::run)?.ok_or_else(interrupted)
}

/// The findings for a person: a line for each stage, and its failed checks below.
fn text(findings: &Findings) -> String {
    let mut text = format!("{:<12}{:>8}{:>8}\n", "stage", "checks", "passed");
    for stage in Stage::ALL {
        let (passed, all) = findings.of_stage(stage);
        let _ = writeln!(text, "{stage:<12}{all:>8}{passed:>8}");
        let failed = findings.checks.iter().filter(|check| check.stage == stage && !check.passed);
        for check in failed.clone().take(LISTED) {
            let _ = writeln!(text, "  failed: {}", line(check));
        }
        let more = failed.count().saturating_sub(LISTED);
        if more > 0 {
            let _ = writeln!(text, "  and {more} more, which --json lists");
        }
    }
    for left_out in &findings.left_out {
        let _ = writeln!(text, "not checked: {left_out}");
    }
    text
}

/// A check that failed, with the first of its reasons.
fn line(check: &Check) -> String {
    let Check { from, to, over, sent, answered_ms, reasons, .. } = check;
    // What became of other packets of the same check is in the JSON document.
    let why = reasons.first().map_or("", String::as_str);
    match (*sent, answered_ms) {
        // A check of a node, which sends nothing of its own.
        (0, _) => format!("{over} at {from}: {why}"),
        (_, Some(_)) => format!("{from} to {to} over {over}: answered, but {why}"),
        (_, None) if why.is_empty() => format!("{from} to {to} over {over}: nothing arrived of {sent}"),
        (_, None) => format!("{from} to {to} over {over}: nothing arrived of {sent}: {why}"),
    }
}
