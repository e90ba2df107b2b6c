//! The command, run as a user runs it.

#![allow(clippy::unwrap_used, dead_code)] // each test file uses its part

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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
