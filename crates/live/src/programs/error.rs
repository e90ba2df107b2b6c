//! Errors of real programs.

use std::fmt;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::not_installed;

/// A program cannot be used, started or understood.
#[derive(Debug, Error)]
pub enum Error {
    /// The program is not installed.
    #[error("{}", not_installed(.0))]
    NotInstalled(String),
    /// `setpriv`, which enters a node for a program, is not installed.
    #[error("`setpriv` is not installed: apt-get install util-linux")]
    NoSetpriv,
    /// The program cannot be started.
    #[error("`{program}` cannot be started: {source}")]
    Start {
        /// Its name.
        program: String,
        /// The reason.
        source: io::Error,
    },
    /// A program cannot be started at its node.
    #[error("{node}: {source}")]
    Node {
        /// The node's name.
        node: String,
        /// The reason.
        source: Box<Self>,
    },
    /// A file that programs read or write cannot be made.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A flow's program is not installed.
    #[error("flow `{flow}`: {}", not_installed(.program))]
    FlowNeeds {
        /// The flow's name.
        flow: String,
        /// The program.
        program: &'static str,
    },
    /// A flow's program would have to start again after it stopped.
    #[error("flow `{0}`: a program is started and stopped once: make the second time a flow of its own")]
    StartsAgain(String),
    /// A program takes its congestion control from its node, whose kernel does not allow that one.
    #[error(
        "flow `{flow}`: {program} has its congestion control from its node, which on this kernel cannot have {congestion} \
         (allowed: {allowed}): use `{instead}`"
    )]
    CongestionNotAllowed {
        /// The flow's name.
        flow: String,
        /// The program.
        program: &'static str,
        /// The congestion control.
        congestion: &'static str,
        /// Those that the kernel allows, separated by spaces.
        allowed: String,
        /// A program that chooses its own.
        instead: &'static str,
    },
    /// Two programs at one node would need different congestion controls.
    #[error(transparent)]
    CongestionConflict(Box<CongestionConflict>),
    /// The library is not installed with which a program of ours is built.
    #[error("{library} is not installed, with which `{app}` is built: {remedy}")]
    NoLibrary {
        /// The application.
        app: &'static str,
        /// The library.
        library: &'static str,
        /// The command that installs it.
        remedy: &'static str,
    },
    /// There is no directory for a program of ours that is built.
    #[error(
        "`{0}` is built into the cache directory of the user, and neither XDG_CACHE_HOME nor HOME is set"
    )]
    NoCache(&'static str),
    /// A program of ours cannot be built.
    #[error("`{app}` cannot be built: {said}")]
    NotBuilt {
        /// The application.
        app: &'static str,
        /// The compiler's first error.
        said: String,
    },
    /// A program that sends on one interface would have to send on several.
    #[error(
        "flow `{flow}`: `{program}` sends on one interface, and the routes from the sender to the group leave by {found}"
    )]
    NotOneInterface {
        /// The flow's name.
        flow: String,
        /// The program.
        program: &'static str,
        /// Number of interfaces.
        found: usize,
    },
    /// A program needs a rate.
    #[error("flow `{flow}`: `{program}` needs `rate`: the link by which it sends has none")]
    NeedsRate {
        /// The flow's name.
        flow: String,
        /// The program.
        program: &'static str,
    },
    /// The program failed.
    #[error("{0}")]
    Failed(String),
    /// A program printed no measurement.
    #[error("{program}: {missing}")]
    NoMeasurement {
        /// The program.
        program: &'static str,
        /// The missing part of its output.
        missing: Missing,
    },
    /// The recording of a video does not have a frame.
    #[error("{}: no frame {number}", .path.display())]
    NoFrame {
        /// The recording.
        path: PathBuf,
        /// The frame's number.
        number: u64,
    },
}

impl Error {
    /// The error of a program that could not be started.
    pub fn start(program: &str, source: io::Error) -> Self {
        let program = program.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotInstalled(program),
            _ => Self::Start { program, source },
        }
    }

    pub(super) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}

/// Two programs at one node need different congestion controls, and have them from the node.
#[derive(Debug, Error)]
#[error(
    "flows `{}` and `{}`: {program} has its congestion control from its node, and `{node}` cannot have {} and {}: use \
     `{instead}`",
    .flows[0], .flows[1], .congestion[0], .congestion[1]
)]
pub struct CongestionConflict {
    /// The names of the flows.
    pub flows: [String; 2],
    /// The program of the first one.
    pub program: &'static str,
    /// The node's name.
    pub node: String,
    /// The congestion controls.
    pub congestion: [&'static str; 2],
    /// A program that chooses its own.
    pub instead: &'static str,
}

/// The missing part of a program's output, and the program's message in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The missing part, as in "no report of what arrived".
    pub what: &'static str,
    /// The first line that the program printed.
    pub said: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.what, self.said)
    }
}
