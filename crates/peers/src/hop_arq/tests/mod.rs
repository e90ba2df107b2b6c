mod chains;
mod hostile;

use crate::chain::{Chain, Hop, address};
use crate::hop_arq::{Config, HopArq};

type Path = Chain<HopArq>;

/// Edges at both ends of `hops` hops, with relays between.
fn path(seed: u64, config: &Config, hops: usize, each: &Hop) -> Path {
    Chain::of(seed, hops + 1, std::slice::from_ref(each), |place, random| {
        let config = config.clone();
        if place == 0 {
            let ends = (address(0), address(hops));
            return HopArq::edge(config, address(0), ends, address(1), random);
        }
        if place == hops {
            let ends = (address(hops), address(0));
            return HopArq::edge(config, address(hops), ends, address(hops - 1), random);
        }
        HopArq::relay(config, address(place), [place - 1, place + 1].map(address), random)
    })
}
