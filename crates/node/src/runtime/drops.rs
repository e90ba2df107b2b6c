//! What the kernel dropped since it was not read in time, from its own tables.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// A row of one of the kernel's tables under `/proc/net`.
///
/// It is of the network namespace in which it was opened, wherever it is read.
pub(super) struct Drops {
    table: Option<File>,
    /// Which row: the column that tells rows apart, and what stands there.
    row: (usize, String),
}

/// Where the drops stand in both tables: in proc(5)'s `udp` the last column, in its `dev` the transmitting side's
/// `drop`.
const COLUMN: usize = 12;

impl Drops {
    /// Of the UDP socket with this inode.
    pub(super) fn of_udp(v6: bool, inode: u64) -> Self {
        Self::open(if v6 { "udp6" } else { "udp" }, (9, inode.to_string()))
    }

    /// Of what the host sent into an interface.
    pub(super) fn of_interface(name: &str) -> Self {
        Self::open("dev", (0, format!("{name}:")))
    }

    fn open(table: &str, row: (usize, String)) -> Self {
        Self { table: File::open(format!("/proc/thread-self/net/{table}")).ok(), row }
    }

    pub(super) fn count(&self) -> u64 {
        let Some(table) = &self.table else { return 0 };
        let (mut text, mut chunk) = (Vec::new(), [0; 4096]);
        while let Ok(len @ 1..) = table.read_at(&mut chunk, text.len() as u64) {
            text.extend_from_slice(&chunk[..len]);
        }
        let text = String::from_utf8_lossy(&text);
        let (column, name) = &self.row;
        let mut rows = text.lines().map(|line| line.split_whitespace());
        let row = rows.find(|row| row.clone().nth(*column) == Some(name));
        row.and_then(|mut row| row.nth(COLUMN)?.parse().ok()).unwrap_or(0)
    }
}
