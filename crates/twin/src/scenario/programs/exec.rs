//! `exec`: commands at nodes.

use std::collections::BTreeSet;

use hopcast_core::{Duration, Instant};

use super::{Exec, Signal};
use crate::scenario::topology::Topology;
use hopcast_config::Diagnostic;
use hopcast_config::decode::words;
use hopcast_config::decode::{self, Fields, choice, duration, list, whole};
use hopcast_config::yaml::{Kind, Node};

const KEYS: [&str; 7] = ["name", "at", "command", "start", "stop", "stop-with", "expect"];
/// Maximum number of commands in `exec`. Chosen: each is a process of a live run.
const MAX_COMMANDS: usize = 1000;

/// All commands in the order of the file, and the reason why the first of them needs a live run.
pub(crate) fn execs(
    node: Option<&Node>,
    topology: &Topology,
) -> Result<(Vec<Exec>, Option<Diagnostic>), Diagnostic> {
    let Some(node) = node else { return Ok((Vec::new(), None)) };
    let items = list(node, "exec")?;
    if items.len() > MAX_COMMANDS {
        return Err(node.error(format!(
            "a scenario has at most {MAX_COMMANDS} commands in `exec`, this one {}",
            items.len()
        )));
    }
    let mut names = BTreeSet::new();
    let mut execs = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let exec = exec(item, number, topology)?;
        if !names.insert(exec.name.clone()) {
            return Err(item.error(format!("the name `{}` is taken already by another of `exec`", exec.name)));
        }
        execs.push(exec);
    }
    let live =
        items.first().map(|item| item.error("`exec`: commands are real programs: they run with --live only"));
    Ok((execs, live))
}

fn exec(item: &Node, number: usize, topology: &Topology) -> Result<Exec, Diagnostic> {
    let fields = Fields::of(item, "a command", &KEYS)?;
    let name = fields.read("name", decode::name)?.map_or_else(|| format!("exec{number}"), str::to_owned);
    let at = topology.node(fields.need("at", "at: n0")?, "at")?;
    let command = command(fields.need("command", "command: [ss, -tin]")?)?;
    let after = |span: Duration| Instant::ZERO + span;
    let start = fields.read("start", duration)?.map_or(Instant::ZERO, after);
    let stop = fields.read("stop", duration)?.map(after);
    if let (Some(node), Some(stop)) = (fields.get("stop"), stop)
        && start >= stop
    {
        return Err(node.error(format!("`stop`: expected a time after `start`, found {}", node.found())));
    }
    let signals = ["int", "term", "hup", "kill"];
    let stop_with = fields.read("stop-with", |node, key| Ok(choice(node, key, &signals)?.0))?;
    let stop_with = match stop_with {
        Some("term") => Signal::Term,
        Some("hup") => Signal::Hup,
        Some("kill") => Signal::Kill,
        _ => Signal::Int,
    };
    let expect = match fields.get("expect") {
        None => None,
        Some(node) => {
            let fields = Fields::of(node, "`expect`", &["exit"])?;
            Some(whole(fields.need("exit", "exit: 0")?, "exit", 0..=255)? as u8)
        }
    };
    Ok(Exec { name, at, command, start, stop, stop_with, expect })
}

/// Reads a command: a list is a program with its arguments, a text is for the shell.
fn command(node: &Node) -> Result<Vec<String>, Diagnostic> {
    match &node.kind {
        Kind::List(_) => {
            let words = words(node, "command")?;
            if words.is_empty() {
                return Err(
                    node.error("`command`: expected a program and its arguments, found an empty list")
                );
            }
            Ok(words)
        }
        Kind::Scalar(_) | Kind::Map(_) => {
            let script = decode::text(node, "command")?;
            Ok(["sh", "-c", script].map(str::to_owned).to_vec())
        }
    }
}
