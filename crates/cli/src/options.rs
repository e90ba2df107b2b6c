//! Options that several commands have.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hopcast_core::units::Bytes;
use hopcast_runner::Part;

#[derive(Args)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    pub(crate) overrides: OverrideOptions,
    /// The format of standard output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) choice: Choice,
    /// The run directory to write, or to go on with [default: the next free runs/NAME-NNN]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Run everything again, including the finished runs of the run directory
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Run each N-th of the runs, from the I-th on; `hopcast report` joins the shards
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub(crate) shard: Option<Part>,
    /// Capture the interfaces of these nodes into the run directory, or of `all`
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    pub(crate) capture: Vec<String>,
    /// Record what happens to each packet, for `hopcast trace`, in a log of at most this size [without one: 1 GB]
    #[arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true, default_missing_value = "1 GB")]
    pub(crate) record: Option<Bytes>,
    /// Run on this machine's kernel, in namespaces, and not in virtual time
    #[arg(long)]
    pub(crate) live: bool,
    /// Number of runs at a time [default: one for each core]
    #[arg(long, value_name = "N", conflicts_with = "live")]
    pub(crate) threads: Option<std::num::NonZeroUsize>,
}

/// The run and flow to print, for formats of one flow.
#[derive(Args)]
pub(crate) struct Choice {
    /// Which run `--format iperf3` prints: its place in summary.json, from 0
    #[arg(long = "run", value_name = "N")]
    pub(crate) run: Option<usize>,
    /// Which flow `--format iperf3` prints
    #[arg(long, value_name = "NAME")]
    pub(crate) flow: Option<String>,
}

#[derive(Args)]
pub(crate) struct OverrideOptions {
    /// Set a key of the scenario, e.g. --set topology.chain.hops=3 (repeatable)
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Use this seed
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Number of runs of each case
    #[arg(long, value_name = "N")]
    pub(crate) repeats: Option<u64>,
    /// Use the scenario's quick settings
    #[arg(long)]
    pub(crate) quick: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for a person
    Table,
    /// One JSON document
    Json,
    /// A row for each run and flow
    Csv,
    /// One flow of one run as `iperf3 --json` prints it
    Iperf3,
}

/// The text of `--shard` does not have the form I/N.
#[derive(Debug, thiserror::Error)]
#[error("expected I/N with I from 1 to N, for example 2/4")]
struct NotAShard;

fn shard(text: &str) -> Result<Part, NotAShard> {
    let numbers =
        text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
    numbers.and_then(|(number, of)| Part::new(number, of)).ok_or(NotAShard)
}
