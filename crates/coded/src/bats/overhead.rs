//! Overhead of a unit in a full datagram.

use super::age::STAMP;
use super::config::Config;
use super::framing::{CHUNK_HEADER, SEAL};
use super::wire::symbol_len;

impl Config {
    /// Bytes that a full datagram carries beside a unit: headers, a vector, the symbol's checksum, the mark before the
    /// unit, and where delivery has a deadline the unit's stamp.
    pub const fn overhead(&self) -> usize {
        let datagram = self.datagram as usize;
        let stamp = if self.delivery.is_reliable() { 0 } else { STAMP };
        datagram - symbol_len(datagram, self.batch) + SEAL + CHUNK_HEADER + stamp
    }
}
