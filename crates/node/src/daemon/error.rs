//! Errors of the daemon.

use std::io;

use thiserror::Error;

use crate::runtime::{OpenError, PlugError, RuntimeError};
use crate::status::AnswerError;

/// A node could not be started, or could not go on.
#[derive(Debug, Error)]
pub enum Error {
    /// Signals cannot be received.
    #[error("cannot receive signals: {0}")]
    Signals(#[source] io::Error),
    /// The system's random numbers cannot be read.
    #[error("/dev/urandom: {0}")]
    Random(#[source] io::Error),
    /// The host gives no socket with which to list its interfaces.
    #[error("no sockets: {0}")]
    Sockets(#[source] io::Error),
    /// The name of a TUN device belongs to an interface that the node has not made.
    #[error("cannot make TUN `{0}`: there is already an interface `{0}`")]
    DeviceInUse(String),
    /// The facts of an interface that a service needs cannot be read.
    #[error("cannot use the interface `{name}`: {source}")]
    Interface {
        /// Its name.
        name: String,
        /// The reason.
        source: PlugError,
    },
    /// The operating system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// The status or the metrics cannot be served.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// A socket or device could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The sockets or devices failed.
    #[error(transparent)]
    Run(#[from] RuntimeError),
}
