//! Errors of a lab.

use std::io;
use std::path::PathBuf;

use hopcast_core::Instant;
use thiserror::Error;

/// A lab could not be set up, changed, read or removed.
#[derive(Debug, Error)]
pub enum Error {
    /// A namespace of this name exists, and is not this lab's.
    #[error(
        "there is a network namespace `{name}` already, not this lab's{}",
        if *.left_over { ": a run that was killed left it; `hopcast doctor --clean` removes it" } else { "" }
    )]
    NameTaken {
        /// The name.
        name: String,
        /// Whether a lab without an owner left it.
        left_over: bool,
    },
    /// A living process has a lab of this id.
    #[error("a lab called `{id}` is in use by process {pid} ({})", .path.display())]
    IdInUse {
        /// The id.
        id: String,
        /// The process.
        pid: u32,
        /// The lab's record.
        path: PathBuf,
    },
    /// The calling process is not found in `/proc`.
    #[error("cannot read /proc/self/stat: is /proc mounted?")]
    NoProc,
    /// A file or directory cannot be read, written or removed.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A namespace does not exist or cannot be opened.
    #[error("network namespace `{name}`: {source}")]
    Open {
        /// Its name.
        name: String,
        /// The reason.
        source: io::Error,
    },
    /// A namespace cannot be entered: a missing privilege.
    #[error("cannot enter network namespace `{name}`: {source}")]
    Enter {
        /// Its name.
        name: String,
        /// The reason.
        source: io::Error,
    },
    /// `ip` cannot be run.
    #[error("cannot run `ip` (iproute2): {0}")]
    NoIp(#[source] io::Error),
    /// A command of `ip` failed.
    #[error("`ip {command}`: {message}")]
    Ip {
        /// Its arguments.
        command: String,
        /// The first line that `ip` printed.
        message: String,
    },
    /// The machine has no TUN and TAP driver.
    #[error("there is no /dev/net/tun")]
    NoTun,
    /// A TAP device cannot be made.
    #[error("cannot create a TAP device: {0}")]
    Tap(#[source] io::Error),
    /// A setting of the kernel cannot be changed.
    #[error("setting net/{key} to {value}: {source}")]
    Setting {
        /// Its path below `/proc/sys/net`.
        key: &'static str,
        /// The value that is needed.
        value: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// A node's kernel cannot route groups over this number of interfaces.
    #[error("groups go over {found} interfaces, and the kernel routes them over at most {max}")]
    GroupInterfaces {
        /// The number of interfaces.
        found: usize,
        /// The maximum.
        max: usize,
    },
    /// The kernel cannot route groups.
    #[error("cannot route groups (multicast routing of the kernel): {0}")]
    GroupRouting(#[source] io::Error),
    /// An end of a link names no interface of a node.
    #[error("link `{0}` has an end that is no node's interface")]
    LooseEnd(String),
    /// A node cannot be set up.
    #[error("node `{name}`: {source}")]
    Node {
        /// Its name.
        name: String,
        /// The reason.
        source: Box<Self>,
    },
    /// Routes cannot be changed during a run.
    #[error("routes at {}: {source}", .at.as_secs_f64())]
    Reroute {
        /// The time at which they were to change.
        at: Instant,
        /// The reason.
        source: Box<Self>,
    },
    /// The operating system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// The thread that changes routes panicked.
    #[error("the thread that changes routes panicked")]
    Panicked,
}
