//! Shares of a node's memory.

use hopcast_coded::bats;

use crate::config::Config;

/// Minimum window, in batches: below it a hop of a few milliseconds is not filled.
const MIN_WINDOW: u64 = 16;

/// The shares of a node's machines.
pub(crate) struct Memory {
    /// Bytes of batches for each direction of a machine of a lane.
    way: u64,
    /// Bytes that wait to be sent at an edge, of all its streams.
    queue: u64,
}

impl Memory {
    /// Half for batches, in equal parts; a quarter for bytes that wait at edges; the rest for [`readers`].
    pub(crate) fn of(config: &Config) -> Self {
        let proxies = config.carriers.iter().filter(|carrier| carrier.tcp.is_some()).count() as u64;
        let tunnels = config.carriers.iter().filter(|carrier| carrier.packets.is_some()).count() as u64;
        // A relay has a machine for packets and one for connections, and each machine has two directions.
        let machines = proxies + tunnels + 2 * config.relays.len() as u64;
        Self { way: config.memory / 2 / (2 * machines).max(1), queue: config.memory / 4 / proxies.max(1) }
    }

    /// The settings of a lane's machine, with a window and a queue that fit its share.
    pub(crate) fn fit(&self, over: &bats::Config, datagram: u16) -> bats::Config {
        let batch =
            over.batch.symbols() as u64 * (u64::from(datagram) + hopcast_core::Buffer::HEADROOM as u64);
        let window = (self.way / batch).max(MIN_WINDOW).min(u64::from(over.window)) as u16;
        bats::Config { window, queue: self.queue.min(over.queue), ..over.clone() }
    }
}

/// Bytes that wait for slow readers, of all connections.
pub(crate) const fn readers(config: &Config) -> u64 {
    config.memory / 4
}
