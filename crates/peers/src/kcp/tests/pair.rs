//! Two KCPs joined by a path of several hops.

pub(super) use crate::chain::{CLIENT, Hop, SERVER, ms};
use crate::chain::{Chain, address};
use crate::kcp::{Config, Kcp};

pub(super) type Pair = Chain<Kcp>;

impl Pair {
    pub(super) fn new(seed: u64, config: &Config, hops: &[Hop]) -> Self {
        Self::of(seed, 2, hops, |end, random| {
            Kcp::new(config.clone(), address(end), address(1 - end), random)
        })
    }
}
