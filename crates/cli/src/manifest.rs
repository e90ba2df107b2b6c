//! `manifest.json`: the circumstances of a run. The wall clock and the machine are here and nowhere else.

use std::path::Path;
use std::time::{Duration, SystemTime};

use hopcast_report::Shard;
use hopcast_twin::scenario::model::Plan;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The version, and the hash of all sources that make results, which identify finished runs together with the scenario.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("HOPCAST_SOURCES"));

/// The manifest of the results of the scenario in `file`, whose contents were `text`.
pub(crate) fn manifest(
    file: &Path,
    text: &[u8],
    plan: &Plan,
    shard: Option<&Shard>,
    took: Duration,
) -> Value {
    let hash: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut manifest = json!({
        "hopcast": env!("CARGO_PKG_VERSION"),
        "sources": env!("HOPCAST_SOURCES"),
        "scenario_file": file.display().to_string(),
        "scenario_sha256": hash,
        "command": command(std::env::args().skip(1)),
        "cases": plan.cases.len(),
        "repeats": plan.repeats,
        "seed": plan.cases.first().map_or(0, |case| case.scenario.seed),
        "finished": now(),
        "took_s": (took.as_secs_f64() * 1e3).round() / 1e3,
        "cpu": cpu(),
        "kernel": kernel(),
        "scenario": String::from_utf8_lossy(text),
    });
    if let Some(shard) = shard {
        manifest["shard"] = shard.to_json();
    }
    manifest
}

/// The command as a user types it, with only the name of the program: its path is of no use elsewhere.
pub(crate) fn command(arguments: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = std::iter::once("hopcast".to_owned()).chain(arguments.map(quoted)).collect();
    words.join(" ")
}

/// The command that resumes this one in `dir`.
pub(crate) fn resuming(dir: &Path) -> String {
    let mut arguments = Vec::new();
    let mut all = std::env::args().skip(1);
    while let Some(argument) = all.next() {
        match argument.as_str() {
            "--out" => drop(all.next()),
            "--fresh" => {}
            other if other.starts_with("--out=") => {}
            _ => arguments.push(argument),
        }
    }
    arguments.extend(["--out".to_owned(), dir.display().to_string()]);
    command(arguments.into_iter())
}

/// An argument, quoted for a shell.
fn quoted(argument: String) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !argument.is_empty() && argument.chars().all(bare) {
        return argument;
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[allow(clippy::disallowed_methods)] // the manifest is the one place for the wall clock
fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

fn cpu() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn kernel() -> Option<String> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(format!("{} {} {}", std::env::consts::OS, release.trim(), std::env::consts::ARCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let arguments = ["run", "a b.yaml", "--set", "loss=[0 %, it's]", "--seed=3"].map(str::to_owned);
        assert_eq!(
            command(arguments.into_iter()),
            r"hopcast run 'a b.yaml' --set 'loss=[0 %, it'\''s]' --seed=3"
        );
    }
}
