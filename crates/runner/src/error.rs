//! Errors of running a plan, and of the journal of its runs.

use std::error;
use std::io;
use std::path::PathBuf;

use hopcast_twin::WorldError;
use thiserror::Error;

/// A plan cannot be run.
#[derive(Debug, Error)]
pub enum RunError {
    /// A world cannot be built.
    #[error(transparent)]
    Build(#[from] WorldError),
    /// The file of a capture or a log cannot be written.
    #[error("{}: {error}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        error: io::Error,
    },
    /// The journal cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An executor's own reason, which prints as one line.
    #[error(transparent)]
    Executor(Box<dyn error::Error + Send + Sync>),
}

/// A journal cannot be read or written.
#[derive(Debug, Error)]
#[error("{}: {error}", path.display())]
pub struct JournalError {
    /// The journal's file.
    pub path: PathBuf,
    /// The operating system's reason.
    pub error: io::Error,
}
