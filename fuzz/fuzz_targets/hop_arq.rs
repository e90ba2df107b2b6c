//! Two edges of a hop-by-hop ARQ on a path that forges: nobody panics, runs away, or gives an application more than it
//! asked for.
#![no_main]

use arbitrary::Arbitrary;
use hopcast_core::{Bytes, Seed};
use hopcast_fuzz::streams::{Step, address, drive};
use hopcast_peers::hop_arq::{Config, HopArq};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    variant: bool,
    seed: u8,
    steps: Vec<Step>,
}

fuzz_target!(|input: Input| {
    let mut config = Config::default();
    if input.variant {
        (config.send_buffer, config.receive_buffer) = (Bytes::new(10_000), Bytes::new(5_000));
    }
    let seed = Seed::new(input.seed.into(), 0);
    let ends = [0, 1].map(|end: usize| {
        let (own, far) = (address(end), address(1 - end));
        HopArq::edge(config.clone(), own, (own, far), far, seed.stream(&["end"], end as u64))
    });
    drive(ends, false, &input.steps);
});
