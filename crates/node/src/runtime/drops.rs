//! Counts of packets that the kernel dropped since they were not read in time, from its own tables.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// A row of one of the kernel's tables below `/proc/net`, of the network namespace in which it was opened.
pub(super) struct Drops {
    table: Option<File>,
    /// The row: the column that identifies it, and its content there.
    row: (usize, String),
}

/// Column of the drops in both tables: the last one of `/proc/net/udp`, and the transmitting side's `drop` of
/// `/proc/net/dev` (proc(5)).
const COLUMN: usize = 12;

impl Drops {
    /// The drops of the UDP socket with this inode.
    pub(super) fn of_udp(v6: bool, inode: u64) -> Self {
        Self::open(if v6 { "udp6" } else { "udp" }, (9, inode.to_string()))
    }

    /// The drops of packets that the host sent into an interface.
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
