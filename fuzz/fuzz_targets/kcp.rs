//! Two KCPs on a path that forges: nobody panics, runs away, or gives an application more than it asked for.
#![no_main]

use arbitrary::Arbitrary;
use hopcast_core::Seed;
use hopcast_fuzz::streams::{Step, address, drive};
use hopcast_peers::kcp::{Config, Kcp};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    variant: bool,
    seed: u8,
    steps: Vec<Step>,
}

fuzz_target!(|input: Input| {
    let config = if input.variant { Config::FAST3_FEC } else { Config::FAST3 };
    let seed = Seed::new(input.seed.into(), 0);
    let ends = [0, 1].map(|end: usize| {
        Kcp::new(config.clone(), address(end), address(1 - end), seed.stream(&["end"], end as u64))
    });
    drive(ends, false, &input.steps);
});
