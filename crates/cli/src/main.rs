//! `hopcast`: describe a network in one file, run real protocol code over it, and see what happened and why.

mod command;
mod interrupt;
mod manifest;
mod output;
mod progress;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    /// Repeat a published experiment, with the published figures beside ours
    Study {
        /// The study's name, as `hopcast studies` lists it
        name: String,
        #[command(flatten)]
        options: RunOptions,
    },
    /// List the studies
    Studies,
    /// List the protocols that a scenario can name
    Protocols,
    /// Write a run directory's report and plots again, and print its table
    Report {
        /// The run directory
        dir: PathBuf,
        /// What to print
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
}

#[derive(Args)]
struct RunOptions {
    #[command(flatten)]
    overrides: OverrideOptions,
    /// What to print on standard output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// The run directory to write [default: the next free runs/NAME-NNN]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Capture the interfaces of these nodes into the run directory, or of `all`
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    capture: Vec<String>,
    /// How many runs at once [default: one for each core]
    #[arg(long, value_name = "N")]
    threads: Option<std::num::NonZeroUsize>,
}

#[derive(Args)]
struct OverrideOptions {
    /// Set a key of the scenario, e.g. --set topology.chain.hops=3 (repeatable)
    #[arg(long = "set", value_name = "PATH=VALUE")]
    sets: Vec<String>,
    /// Use this seed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run each case so often
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
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run { file, options } => command::run::run(&file, &options),
        Command::Check { file, overrides } => command::check::check(&file, &overrides),
        Command::Study { name, options } => command::study::study(&name, &options),
        Command::Studies => command::study::list(),
        Command::Protocols => command::protocols::list(),
        Command::Report { dir, format } => command::report::report(&dir, format),
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

/// Why a command ends without success: what to tell the user, and the exit code.
struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// A mistake in what the user gave; nothing has been written.
    fn input(message: impl ToString) -> Self {
        Self { message: message.to_string(), code: 2 }
    }

    /// What went wrong afterwards.
    fn run(message: impl ToString) -> Self {
        Self { message: message.to_string(), code: 1 }
    }
}
