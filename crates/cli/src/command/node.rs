//! `hopcast node`: the daemon, and its status.

use std::io::{IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use hopcast_node::config::Config;
use hopcast_node::status::{ask, table::table};
use hopcast_node::{daemon, logging};

use super::worker;
use crate::failure::Failure;
use crate::output;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct NodeOptions {
    /// The node's configuration; see docs/node.md
    #[arg(required = true, value_name = "CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    of_scenario: worker::WorkerOptions,
    /// Only check the configuration
    #[arg(long)]
    check: bool,
    #[command(subcommand)]
    question: Option<Question>,
}

#[derive(Subcommand)]
enum Question {
    /// Show what a running node does: its peers, their loss and rates, what it carries and repairs
    Status {
        /// The node's name [default: the only one that runs here]
        name: Option<String>,
        /// The socket on which it answers, if its configuration names one
        #[arg(long, value_name = "PATH", conflicts_with = "name")]
        socket: Option<PathBuf>,
        /// Show it again every second, until Ctrl-C
        #[arg(long)]
        watch: bool,
        /// Print the JSON document
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn node(options: &NodeOptions) -> Result<(), Failure> {
    match (&options.question, &options.config) {
        (Some(Question::Status { name, socket, watch, json }), _) => {
            let socket = socket.clone().map_or_else(|| ask::socket_of(name.as_deref()), Ok);
            status(&socket.map_err(Failure::run)?, *watch, *json)
        }
        (None, Some(config)) => match options.of_scenario.node() {
            Some(name) => worker::work(config, name, &options.of_scenario),
            None => run(config, options.check),
        },
        (None, None) => Err(Failure::input("expected a configuration, for example `hopcast node node.yaml`")),
    }
}

fn run(config: &Path, check: bool) -> Result<(), Failure> {
    let config = Config::load(config).map_err(Failure::input)?;
    if check {
        return Ok(());
    }
    let _log = logging::begin(config.log).map_err(Failure::run)?;
    daemon::run(&config).map_err(Failure::run)
}

#[allow(clippy::disallowed_methods)] // A person watches.
fn status(socket: &Path, watch: bool, json: bool) -> Result<(), Failure> {
    loop {
        let (text, status) = ask::status(socket).map_err(Failure::run)?;
        let shown = if json { text } else { table(&status) };
        if watch && !json && stdout().is_terminal() {
            // Cursor to the first line, and clear the screen (ECMA-48: CUP, ED).
            let _ = write!(stdout(), "\x1b[H\x1b[2J");
        }
        output::write(shown)?;
        if !watch {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}
