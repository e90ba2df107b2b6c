//! Two QUICs joined by a path of several hops.

pub(super) use crate::chain::{CLIENT, Hop, SERVER, ms};
use crate::chain::{Chain, address};
use crate::quic::{Config, Congestion, Quic};

pub(super) type Pair = Chain<Quic>;

pub(super) const CUBIC: Congestion = Congestion::Cubic;
pub(super) const BBR: Congestion = Congestion::Bbr;

pub(super) fn with(congestion: Congestion) -> Config {
    Config { congestion, ..Config::default() }
}

impl Pair {
    pub(super) fn new(seed: u64, config: &Config, hops: &[Hop]) -> Self {
        Self::of(seed, 2, hops, |end, random| {
            Quic::new(config.clone(), address(end), address(1 - end), random)
        })
    }
}
