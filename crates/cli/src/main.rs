//! `hopcast`: describe a network in one file, run real protocol code over it, and see what happened and why.

mod command;
mod directory;
mod interrupt;
mod manifest;
mod output;
mod progress;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use hopcast_runner::Part;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Carry data across lossy, multi-hop networks, and prove it first on a twin of the network.
#[derive(Parser)]
#[command(version, max_term_width = 100, subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a scenario and show what happened
    Run {
        /// The scenario file
        file: PathBuf,
        #[command(flatten)]
        options: RunOptions,
    },
    /// Check a scenario and print the network it describes, without running it
    Check {
        /// The scenario file
        file: PathBuf,
        #[command(flatten)]
        overrides: OverrideOptions,
    },
    /// Print the network that a scenario describes in another program's format
    Export {
        /// The scenario file
        file: PathBuf,
        /// The format
        #[arg(long, value_enum)]
        to: command::export::NetworkFormat,
        #[command(flatten)]
        overrides: OverrideOptions,
    },
    /// Print the JSON Schema of the scenario format, by which editors complete and check
    Schema,
    /// Repeat a published experiment, with the published figures beside ours
    Study {
        /// The study's name, as `hopcast studies` lists it
        name: String,
        #[command(flatten)]
        options: RunOptions,
    },
    /// List the studies
    Studies,
    /// Carry traffic between sites: the daemon, and its status
    Node {
        #[command(flatten)]
        options: command::node::NodeOptions,
    },
    /// Check whether this machine can do live runs and nodes, and name the remedies where it cannot
    Doctor {
        /// Remove the remains of killed runs
        #[arg(long)]
        clean: bool,
    },
    /// List the protocols that a scenario can name
    Protocols,
    /// Write a run's report again; given two runs, compare them; given the shards of one, join them
    Report {
        /// The run directory, or several
        #[arg(required = true, value_name = "DIR")]
        dirs: Vec<PathBuf>,
        /// Where to write [default: the run's directory; of shards, the next free runs/NAME-NNN; of two runs, the
        /// second]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// What to print on standard output
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
        #[command(flatten)]
        choice: Choice,
    },
}

#[derive(Args)]
struct RunOptions {
    #[command(flatten)]
    overrides: OverrideOptions,
    /// What to print on standard output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    #[command(flatten)]
    choice: Choice,
    /// The run directory to write, or to go on with [default: the next free runs/NAME-NNN]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Run everything again, including the finished runs of the run directory
    #[arg(long)]
    fresh: bool,
    /// Run each N-th of the runs, from the I-th on; `hopcast report` joins the shards
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<Part>,
    /// Capture the interfaces of these nodes into the run directory, or of `all`
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    capture: Vec<String>,
    /// Run on this machine's kernel, in namespaces, and not in virtual time
    #[arg(long)]
    live: bool,
    /// Number of runs at a time [default: one for each core]
    #[arg(long, value_name = "N", conflicts_with = "live")]
    threads: Option<std::num::NonZeroUsize>,
}

/// The run and flow to print, for formats of one flow.
#[derive(Args)]
struct Choice {
    /// Which run `--format iperf3` prints: its place in summary.json, from 0
    #[arg(long = "run", value_name = "N")]
    run: Option<usize>,
    /// Which flow `--format iperf3` prints
    #[arg(long, value_name = "NAME")]
    flow: Option<String>,
}

#[derive(Args)]
struct OverrideOptions {
    /// Set a key of the scenario, e.g. --set topology.chain.hops=3 (repeatable)
    #[arg(long = "set", value_name = "PATH=VALUE")]
    sets: Vec<String>,
    /// Use this seed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Number of runs of each case
    #[arg(long, value_name = "N")]
    repeats: Option<u64>,
    /// Use the scenario's quick settings
    #[arg(long)]
    quick: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for a person
    Table,
    /// One JSON document
    Json,
    /// A row for each run and flow
    Csv,
    /// One flow of one run as `iperf3 --json` prints it
    Iperf3,
}

/// The text of `--shard` is not of the form I/N.
#[derive(Debug, thiserror::Error)]
#[error("expected I/N with I from 1 to N, for example 2/4")]
struct NotAShard;

fn shard(text: &str) -> Result<Part, NotAShard> {
    let numbers =
        text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
    numbers.and_then(|(number, of)| Part::new(number, of)).ok_or(NotAShard)
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run { file, options } => command::run::run(&file, &options),
        Command::Check { file, overrides } => command::check::check(&file, &overrides),
        Command::Export { file, to, overrides } => command::export::export(&file, to, &overrides),
        Command::Schema => output::write(hopcast_twin::scenario::SCHEMA),
        Command::Study { name, options } => command::study::study(&name, &options),
        Command::Studies => command::study::list(),
        Command::Node { options } => command::node::node(&options),
        Command::Doctor { clean } => command::doctor::doctor(clean),
        Command::Protocols => command::protocols::list(),
        Command::Report { dirs, out, format, choice } => {
            command::report::report(&dirs, out.as_deref(), format, &choice)
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                eprintln!("{}", failure.message);
            }
            ExitCode::from(failure.code)
        }
    }
}

/// The end of a command without success: the message for the user, and the exit code.
struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// A mistake in the user's input; nothing has been written.
    fn input(message: impl ToString) -> Self {
        Self { message: message.to_string(), code: 2 }
    }

    /// A failure after that.
    fn run(message: impl ToString) -> Self {
        Self { message: message.to_string(), code: 1 }
    }
}
