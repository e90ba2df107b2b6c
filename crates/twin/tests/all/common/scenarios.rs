//! Scenarios for tests of the scenario language, and the folder of the shipped ones.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hopcast_runner::load_text;
use hopcast_twin::scenario::model::{Plan, Scenario};
use hopcast_twin::scenario::{Diagnostic, Overrides};

pub(crate) fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

pub(crate) fn plan_with(text: &str, sets: &[&str]) -> Result<Plan, Diagnostic> {
    let sets = sets.iter().map(|set| (*set).to_owned()).collect();
    load_text(Path::new("test.yaml"), text, &Overrides { sets, ..Overrides::default() })
}

#[track_caller]
pub(crate) fn plan(text: &str) -> Plan {
    plan_with(text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
pub(crate) fn only(text: &str) -> Arc<Scenario> {
    Arc::clone(&plan(text).cases[0].scenario)
}

pub(crate) const CHAIN: &str = "\
duration: 10s
topology: { chain: { hops: 2, link: { rate: 10 Mbit/s, delay: 1ms } } }
events: [{ name: loss, at: 1s, links: all }]
flows: [{ name: bulk, from: n0, to: n2, over: udp, app: bulk }]
";

pub(crate) fn with(lines: &str) -> String {
    format!("{CHAIN}{lines}\n").replace("links: all }", "links: all, loss: 5 % }")
}

/// A scenario without a mistake.
pub(crate) const GOOD: &str = "duration: 10s
measure: { from: 1s }
topology:
  chain:
    hops: 2
    link: { rate: 10 Mbit/s, delay: 1ms, loss: 1 % }
events:
  - { name: loss, at: 1s, links: all, loss: 5 % }
flows:
  - { name: bulk, from: n0, to: n2, over: tcp-cubic, app: bulk }
";

/// The application that sends a file.
pub(crate) const FILE: &str = "{ file: { path: ../../Cargo.lock } }";

/// A flow across four alike links; `head` has the duration.
pub(crate) fn four_hops(head: &str, link: &str, roles: &str, over: &str, app: &str) -> String {
    format!(
        "
seed: 1
{head}
topology:
  chain: {{ hops: 4, link: {{ {link} }} }}
roles: {{ {roles} }}
flows:
  - {{ name: file, from: n0, to: n4, over: {over}, app: {app} }}
"
    )
}

/// A flow over a medium whose direct link loses half, with a station that may help.
pub(crate) fn on_air(head: &str, over: &str, app: &str) -> String {
    format!(
        "
seed: 1
{head}
topology:
  nodes: [{{ name: s }}, {{ name: h }}, {{ name: d }}]
  links:
    - name: air
      medium: [s, h, d]
      rate: 12 Mbit/s
      mac: csma
      pairs: [{{ from: s, to: d, loss: 50 % }}, {{ from: d, to: s, loss: 50 % }}]
roles: {{ helper: [h] }}
flows:
  - {{ name: data, from: s, to: d, over: {over}, app: {app} }}
"
    )
}

/// The error of a text, or that there is none.
pub(crate) fn error_of(text: &str, overrides: &Overrides) -> String {
    match load_text(Path::new("bad.yaml"), text, overrides) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}
