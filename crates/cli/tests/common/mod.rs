//! The command, run as a user runs it.

#![allow(clippy::unwrap_used, dead_code)] // each test file uses its part

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use hopcast_node::testing::{Requirement, require};
use serde_json::Value;

/// Runs `hopcast` with `arguments` in `dir`.
pub(crate) fn hopcast(dir: &Path, arguments: &[&str]) -> Output {
    command(dir, arguments).output().expect("hopcast starts")
}

/// `hopcast` with `arguments` in `dir`, not yet started.
pub(crate) fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopcast"));
    command.current_dir(dir).args(arguments);
    command
}

/// The run of a scenario in virtual time.
pub(crate) fn twin_run_in(dir: &Path, scenario: &str, arguments: &[&str]) -> Value {
    fs::write(dir.join("twin.yaml"), scenario).unwrap();
    let run = ["run", "twin.yaml", "--format", "json", "--out", "twin"];
    let output = hopcast(dir, &[&run[..], arguments].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["runs"][0].clone()
}

/// A machine of two processors carries one live run at a time.
static MACHINE: Mutex<()> = Mutex::new(());

/// The one run of a scenario live, which counts; `None` where something is missing that it needs, beside what every
/// live run does.
pub(crate) fn live_run(scenario: &str, needs: &[Requirement<'_>]) -> Option<Value> {
    let dir = tempfile::tempdir().unwrap();
    live_run_in(dir.path(), scenario, &[], needs)
}

/// The same, with what it leaves in `out` in a directory, and with further arguments.
pub(crate) fn live_run_in(
    dir: &Path,
    scenario: &str,
    arguments: &[&str],
    needs: &[Requirement<'_>],
) -> Option<Value> {
    let common =
        [Requirement::Root, Requirement::Tun, Requirement::Program("ip"), Requirement::Program("setpriv")];
    if !require(&[&common, needs].concat()) {
        return None;
    }
    let _machine = MACHINE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    fs::write(dir.join("live.yaml"), scenario).unwrap();
    let output = command(dir, &["run", "live.yaml", "--live", "--format", "json", "--out", "out"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = document["runs"][0].clone();
    assert!(run["live"]["invalid"].is_null() && run["live"]["programs"].is_null(), "{}", run["live"]);
    Some(run)
}

/// Frames in each direction of each link.
pub(crate) fn frames(run: &Value) -> BTreeMap<(String, String), u64> {
    let name = |value: &Value| value.as_str().unwrap().to_owned();
    let links = run["links"].as_array().unwrap().iter();
    let of =
        |link: &Value| ((name(&link["from"]), name(&link["to"])), link["sent_packets"].as_u64().unwrap());
    links.map(of).collect()
}

/// tshark's output on a capture, or `None` (loudly) where it is not installed.
pub(crate) fn tshark(file: &Path, arguments: &[&str]) -> Option<String> {
    if !require(&[Requirement::Program("tshark")]) {
        return None;
    }
    let output = Command::new("tshark").arg("-r").arg(file).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(text(&output.stdout))
}

/// A file of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path).canonicalize().expect("the file exists")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// A small scenario: a lossy chain under datagrams and a stream.
pub(crate) const SMALL: &str = "\
title: A small one
seed: 5
duration: 2 s
topology:
  chain: { hops: 2, link: { rate: 10 Mbit/s, delay: 2 ms, loss: 2 % } }
flows:
  - { name: flow, from: n0, to: n2, over: udp, app: bulk }
sweep:
  flows.flow.over: [udp, tcp-cubic]
repeats: 2
";
