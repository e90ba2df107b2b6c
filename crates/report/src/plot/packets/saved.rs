//! The findings of a log, saved for the next time that its report is written.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use hopcast_trace::view::Marks;
use serde::{Deserialize, Serialize};

/// The file in a run directory.
const FILE: &str = "captures/packets.json";

/// Number of bytes at the end of a log by which it is told from others. Chosen: some thousand events with their times.
const TAIL: u64 = 1 << 16;

/// Marks by which the first log of a run directory is told from others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogKey {
    name: String,
    bytes: u64,
    /// Hash of its last bytes (FNV-1a).
    tail: u64,
    /// Number of logs of the directory.
    logs: usize,
}

impl LogKey {
    pub(super) fn of(logs: &[PathBuf]) -> Option<Self> {
        let first = logs.first()?;
        let mut file = File::open(first).ok()?;
        let bytes = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(bytes.saturating_sub(TAIL))).ok()?;
        let mut tail = Vec::new();
        file.take(TAIL).read_to_end(&mut tail).ok()?;
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let tail = tail.iter().fold(0xcbf2_9ce4_8422_2325, step);
        Some(Self { name: first.file_name()?.to_str()?.to_owned(), bytes, tail, logs: logs.len() })
    }
}

/// The content of a picture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Found {
    caption: String,
    /// Of pairs of nodes: frames that arrived, and frames that the link between them dropped.
    hops: Vec<(String, String, [u64; 2])>,
    died: BTreeMap<String, u64>,
    taken: BTreeMap<String, u64>,
}

impl Found {
    pub(super) fn new(caption: String, Marks { hops, died, taken }: Marks) -> Self {
        let hops = hops.into_iter().map(|((from, to), frames)| (from, to, frames)).collect();
        Self { caption, hops, died, taken }
    }

    pub(super) fn into_marks(self) -> (String, Marks) {
        let Self { caption, hops, died, taken } = self;
        let hops = hops.into_iter().map(|(from, to, frames)| ((from, to), frames)).collect();
        (caption, Marks { hops, died, taken })
    }
}

/// The findings of a log; nothing where no packet is missing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Saved {
    pub(super) log: LogKey,
    pub(super) found: Option<Found>,
}

impl Saved {
    pub(super) fn read(dir: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(dir.join(FILE)).ok()?).ok()
    }

    /// Without the file the log is read again, so that an error costs time alone.
    pub(super) fn write(&self, dir: &Path) {
        if let Ok(text) = serde_json::to_vec(self) {
            _ = fs::write(dir.join(FILE), text);
        }
    }
}
