//! `manifest.json`: how a run directory came about. The wall clock and the machine stand here and nowhere else.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// What to write beside the results of the scenario in `file`, whose contents were `text`.
pub(crate) fn manifest(file: &str, text: &[u8], plan: (usize, u64, u64), took: Duration) -> Value {
    let (cases, repeats, seed) = plan;
    let hash: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    // The program's name alone: where it stood says nothing to who repeats this.
    let command: Vec<String> =
        std::iter::once("hopcast".to_owned()).chain(std::env::args().skip(1)).collect();
    json!({
        "hopcast": env!("CARGO_PKG_VERSION"),
        "scenario_file": file,
        "scenario_sha256": hash,
        "command": command.join(" "),
        "cases": cases,
        "repeats": repeats,
        "seed": seed,
        "finished": now(),
        "took_s": (took.as_secs_f64() * 1e3).round() / 1e3,
        "cpu": cpu(),
        "kernel": kernel(),
    })
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
