//! The shape of a session: how many symbols a batch and a block have, and how long they are.

use super::config::{BatchSize, Config};
use super::framing::MIN_SYMBOL;
use super::wire;

/// The shape of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) batch: BatchSize,
    /// The number of symbols of a block, K.
    pub(super) block: u16,
    /// The length of a symbol, T, in bytes.
    pub(super) symbol: u16,
}

impl Shape {
    /// The shape of the session that an edge begins, whose blocks have at most `max_batches` batches.
    pub(super) fn begun(config: &Config, max_batches: u16) -> Self {
        let symbols = config.batch.symbols() as u16;
        Self {
            batch: config.batch,
            block: (config.block / symbols).clamp(1, max_batches) * symbols,
            symbol: wire::symbol_len(usize::from(config.datagram), config.batch).max(MIN_SYMBOL) as u16,
        }
    }

    /// The shape of a session that another edge has begun.
    pub(super) const fn told(info: &wire::Info) -> Self {
        Self { batch: info.batch, block: info.block, symbol: info.symbol }
    }

    /// M.
    pub(super) const fn symbols(&self) -> u64 {
        self.batch.symbols() as u64
    }

    /// Systematic batches of a block.
    pub(super) const fn batches(&self) -> u64 {
        self.block as u64 / self.symbols()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_small_datagrams_are_a_symbol_has_a_checksum_and_64_bytes() {
        // A datagram has 33 bytes besides a symbol.
        for (datagram, symbol) in [(1472, 1439), (102, 69), (101, 68), (100, 68), (0, 68)] {
            let config = Config { datagram, ..Config::default() };
            assert_eq!(Shape::begun(&config, u16::MAX).symbol, symbol, "{datagram}");
        }
    }
}
