//! Errors of a live run.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use hopcast_core::Duration;
use thiserror::Error;

use crate::{capture, emulator, lab, programs};

/// A live run could not be made.
#[derive(Debug, Error)]
pub enum Error {
    /// The scenario asks for something that only virtual time has.
    #[error("{0}")]
    NeedsVirtualTime(String),
    /// A flow cannot be built.
    #[error(transparent)]
    Flow(#[from] hopcast_twin::world::WorldError),
    /// The network cannot be set up or changed.
    #[error(transparent)]
    Lab(#[from] lab::Error),
    /// The links cannot be run.
    #[error(transparent)]
    Emulator(#[from] emulator::Error),
    /// A program cannot be used.
    #[error(transparent)]
    Programs(#[from] programs::Error),
    /// A member of a group to which no route leads, so that its program has no interface to join on.
    #[error("flow `{flow}`: no route leads from `{from}` to the member `{member}` of its group")]
    NoTree {
        /// The flow's name.
        flow: String,
        /// The sender's name.
        from: String,
        /// The member's name.
        member: String,
    },
    /// A program failed before the run began; the message names it.
    #[error("{0}")]
    ProgramFailed(String),
    /// A program's server does not listen.
    #[error("a program's server does not listen after {0} s")]
    ServerSilent(u64),
    /// The capture cannot be begun.
    #[error(transparent)]
    Capture(#[from] capture::Error),
    /// The capture's file cannot be made.
    #[error("{}: {source}", .path.display())]
    CaptureFile {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The capture lacks frames.
    #[error("the capture is not complete: {0}")]
    CaptureIncomplete(#[source] capture::Error),
    /// The log that the run has written cannot be read.
    #[error(transparent)]
    Log(#[from] hopcast_trace::log::LogError),
    /// The machine was too busy to begin in time.
    #[error("the machine was too busy: nodes and programs took more than {0} to begin")]
    SlowStart(Duration),
    /// The machine was too busy to capture all packets.
    #[error("the machine was too busy to capture: {0}")]
    CaptureMissed(#[source] capture::Error),
    /// A node's process failed.
    #[error("node `{name}`{failure}")]
    Node {
        /// The node's name.
        name: String,
        /// The failure.
        failure: NodeFailure,
    },
}

impl Error {
    /// Whether the machine could not keep up: the next attempt may succeed.
    pub(super) const fn is_overload(&self) -> bool {
        matches!(self, Self::SlowStart(_) | Self::CaptureMissed(_))
    }

    /// The error of a node's process.
    pub(super) fn node(name: &str, failure: NodeFailure) -> Self {
        Self::Node { name: name.to_owned(), failure }
    }
}

/// A node's process failed.
#[derive(Debug, Error)]
pub enum NodeFailure {
    /// It cannot be started.
    #[error(": cannot be started: {0}")]
    Start(#[source] io::Error),
    /// It has read another scenario than the run.
    #[error(" has loaded another scenario: the file was changed")]
    OtherScenario,
    /// It reported an error.
    #[error(": {0}")]
    Failed(String),
    /// Its line is not the one that the protocol requires.
    #[error(": expected `{expected}`, found `{found}`")]
    Unexpected {
        /// The required first word.
        expected: &'static str,
        /// The line that it wrote.
        found: String,
    },
    /// It was silent for this number of seconds.
    #[error(" says nothing for {0} s")]
    Silent(u64),
    /// Its report cannot be read.
    #[error(": its report makes no sense: {0}")]
    Report(#[source] serde_json::Error),
    /// It ended before the run did.
    #[error(" ended ({}): {words}", .status.as_ref().map_or_else(|error| error.to_string(), |status| status.to_string()))]
    Ended {
        /// Its exit status, or the reason why it is not known.
        status: io::Result<ExitStatus>,
        /// Its last message.
        words: String,
    },
}
