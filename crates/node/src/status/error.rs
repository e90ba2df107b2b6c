//! Errors of the status: of answering, and of asking.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A node cannot serve its status or metrics.
#[derive(Debug, Error)]
pub enum AnswerError {
    /// Another node answers on the same socket.
    #[error("a node is already running that answers at {}", .0.display())]
    NodeRunning(PathBuf),
    /// It is unknown whether another node answers there.
    #[error("cannot find out whether a node answers at {}: {kind}", .path.display())]
    Unknown {
        /// The socket.
        path: PathBuf,
        /// The reason.
        kind: io::ErrorKind,
    },
    /// The path exists and is no socket.
    #[error("cannot answer at {}: there is something else than a socket", .0.display())]
    NotASocket(PathBuf),
    /// The socket cannot be made.
    #[error("cannot answer at {}: {source}", .path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The address of the metrics cannot be listened on.
    #[error("cannot serve metrics at {address}: {source}")]
    Metrics {
        /// The address.
        address: std::net::SocketAddr,
        /// The reason.
        source: io::Error,
    },
    /// The operating system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}

/// The status of a node cannot be read.
#[derive(Debug, Error)]
pub enum AskError {
    /// No node answers on this socket.
    #[error("{}: no node is running there", .0.display())]
    NoNodeAt(PathBuf),
    /// The caller may not connect to the socket.
    #[error("{}: only root and the node's own user may ask", .0.display())]
    Forbidden(PathBuf),
    /// The connection failed.
    #[error("{}: {source}", .path.display())]
    Connection {
        /// The socket.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The answer is no status.
    #[error("{}: this is no status: {source}", .path.display())]
    NoStatus {
        /// The socket.
        path: PathBuf,
        /// The error of JSON, with its place.
        source: serde_json::Error,
    },
    /// No node runs on this host.
    #[error("no node is running here (looked in {})", .0.display())]
    NoNode(PathBuf),
    /// Several nodes run on this host, and none was named.
    #[error("several nodes are running here: say which one ({})", .0.join(", "))]
    Several(Vec<String>),
}
