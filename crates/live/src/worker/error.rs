//! Errors of a node's process.

use std::io;

use hopcast_node::runtime::{OpenError, RuntimeError};
use thiserror::Error;

/// A node's part of a scenario could not be run.
#[derive(Debug, Error)]
pub enum Error {
    /// A flow cannot be built.
    #[error(transparent)]
    Flow(#[from] hopcast_twin::world::WorldError),
    /// The sockets or devices of a flow cannot be opened.
    #[error("flow `{flow}`: {source}")]
    Open {
        /// The flow's name.
        flow: String,
        /// The reason.
        source: OpenError,
    },
    /// The sockets or devices failed during the run.
    #[error(transparent)]
    Run(#[from] RuntimeError),
    /// The operating system gives no thread or no descriptor.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// A thread panicked.
    #[error("a thread panicked")]
    Panicked,
    /// The supervisor's first line is not the clock's zero.
    #[error("expected the clock's zero")]
    NoZero,
    /// The report cannot be written as JSON.
    #[error("the report: {0}")]
    Report(#[source] serde_json::Error),
    /// The supervisor cannot be reached.
    #[error("cannot write: {0}")]
    Write(#[source] io::Error),
    /// The time to begin is in the past.
    #[error("the time to begin has gone by")]
    TooLate,
}
