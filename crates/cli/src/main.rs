//! `hopcast`: describe a network in one file, run real protocol code over it, and see what happened and why.

mod command;
mod directory;
mod failure;
mod interrupt;
mod manifest;
mod options;
mod output;
mod progress;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use options::{Choice, Format, OverrideOptions, RunOptions};

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
    /// Check in stages who reaches whom in a scenario's network: links, meshes, neighbours, VLANs, end to end, groups
    ///
    /// Exits with 1 if a check fails.
    Probe {
        /// The scenario file
        file: PathBuf,
        #[command(flatten)]
        options: command::probe::ProbeOptions,
    },
    /// Explain why there is a radio link between two ships of a scenario, or none, and at which rate
    LinkBudget {
        /// The scenario file
        file: PathBuf,
        #[command(flatten)]
        options: command::link_budget::LinkBudgetOptions,
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
    /// Follow packets through a run: where each copy went, and where and why it died
    Trace {
        #[command(flatten)]
        options: command::trace::TraceOptions,
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
        /// The format of standard output
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
        #[command(flatten)]
        choice: Choice,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run { file, options } => command::run::run(&file, &options),
        Command::Check { file, overrides } => command::check::check(&file, &overrides),
        Command::Export { file, to, overrides } => command::export::export(&file, to, &overrides),
        Command::Probe { file, options } => command::probe::run(&file, &options),
        Command::LinkBudget { file, options } => command::link_budget::run(&file, &options),
        Command::Schema => output::write(hopcast_twin::scenario::SCHEMA),
        Command::Study { name, options } => command::study::study(&name, &options),
        Command::Studies => command::study::list(),
        Command::Node { options } => command::node::node(&options),
        Command::Trace { options } => command::trace::trace(&options),
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
