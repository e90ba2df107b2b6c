//! Errors of reading a run directory back, and of joining shards.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// A run directory cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// A file is missing or cannot be read.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A JSON file is malformed.
    #[error("{}: {source}", .path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The reason and the place.
        source: serde_json::Error,
    },
    /// A CSV file is malformed.
    #[error("{}: {source}", .path.display())]
    Csv {
        /// The file.
        path: PathBuf,
        /// The reason and the place.
        source: csv::Error,
    },
    /// A CSV file has other columns.
    #[error("{}: the last columns should be {expected}", .path.display())]
    Columns {
        /// The file.
        path: PathBuf,
        /// The columns that it should end with.
        expected: String,
    },
    /// A row of a CSV file is wrong.
    #[error("{}: line {line}: {source}", .path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The reason.
        source: RowError,
    },
    /// The topology is impossible.
    #[error("{}: {source}", .path.display())]
    Topology {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: TopologyError,
    },
}

/// A row of a CSV file is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RowError {
    /// The row is of a run that the document does not have.
    #[error("run {0:?} is not in summary.json")]
    NoSuchRun(String),
    /// The row is of no known kind.
    #[error("kind {0:?} is neither flow nor link")]
    Kind(String),
    /// A field is not a number.
    #[error("{0:?} is not a number")]
    NotANumber(String),
}

/// A topology is impossible.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// An end of this link is no node.
    #[error("link {0:?} ends at a node that is not listed")]
    NoSuchNode(String),
    /// The position of this node is not finite.
    #[error("node {0:?} has a position that is not a number")]
    Position(String),
}

/// Shards cannot be joined.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JoinError {
    /// A directory holds a whole sweep, and no shard.
    #[error("{0}: expected a shard, found a whole run")]
    NotAShard(String),
    /// A shard is not finished.
    #[error("{0}: this shard was cut short; run it again with --out {0} to go on")]
    CutShort(String),
    /// No directory was given.
    #[error("there are no shards to join")]
    Nothing,
    /// Two shards are of different sweeps.
    #[error("{other}: expected a shard of the same sweep as {first}; scenario, options or program differ")]
    OtherSweep {
        /// The first directory.
        first: String,
        /// The one that does not fit.
        other: String,
    },
    /// Two directories hold the same shard.
    #[error("{} and {} are both shard {number} of {of}", .names[0], .names[1])]
    Twice {
        /// The directories.
        names: [String; 2],
        /// The shard's number.
        number: u64,
        /// Number of shards.
        of: u64,
    },
    /// Shards are missing.
    #[error("missing: shard {}", .0.join(", "))]
    Missing(Vec<String>),
}
