//! The shares of a node's memory.

use hopcast_stack::site::MemoryShare;

use crate::config::Config;

/// The share of each machine of a lane: half of the memory is for batches, in equal parts; a quarter for bytes that
/// wait at edges. [`readers`] is the rest.
pub(crate) fn share(config: &Config) -> MemoryShare {
    let proxies = config.carriers.iter().filter(|carrier| carrier.tcp.is_some()).count() as u64;
    let tunnels = config.carriers.iter().filter(|carrier| carrier.packets.is_some()).count() as u64;
    // A relay has a machine for packets and one for connections, and each machine has two directions; a group's is
    // one for files, beside which that for messages takes little.
    let machines = proxies + tunnels + 2 * config.relays.len() as u64 + config.groups.len() as u64;
    MemoryShare {
        batches: config.memory / 2 / (2 * machines).max(1),
        queue: config.memory / 4 / proxies.max(1),
    }
}

/// Memory for the bytes of all connections that wait for slow readers, in bytes.
pub(crate) const fn readers(config: &Config) -> u64 {
    config.memory / 4
}
