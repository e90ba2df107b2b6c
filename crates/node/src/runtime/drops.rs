//! Counts of packets that the kernel dropped since they were not read in time, from its own tables.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// A row of one of the kernel's tables below `/proc/net`, of the network namespace in which it was opened.
pub(super) struct Drops {
    table: Option<File>,
    /// The row: the column that identifies it, and its content there.
    row: (usize, String),
    /// The column of the drops.
    column: usize,
}

impl Drops {
    /// The drops of the UDP socket with this inode: the last column of `/proc/net/udp` (proc(5)).
    pub(super) fn of_udp(v6: bool, inode: u64) -> Self {
        Self::open(if v6 { "udp6" } else { "udp" }, (9, inode.to_string()), 12)
    }

    /// The drops of packets that the host sent into an interface: the transmitting side's `drop` of `/proc/net/dev`.
    pub(super) fn of_interface(name: &str) -> Self {
        Self::open("dev", (0, format!("{name}:")), 12)
    }

    /// The drops of the netlink socket with this inode: the last column but one of `/proc/net/netlink`.
    pub(super) fn of_netlink(inode: u64) -> Self {
        Self::open("netlink", (9, inode.to_string()), 8)
    }

    fn open(table: &str, row: (usize, String), column: usize) -> Self {
        Self { table: File::open(format!("/proc/thread-self/net/{table}")).ok(), row, column }
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
        row.and_then(|mut row| row.nth(self.column)?.parse().ok()).unwrap_or(0)
    }
}
