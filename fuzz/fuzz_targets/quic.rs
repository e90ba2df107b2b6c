//! Two QUICs on a path that forges: nobody panics, runs away, or sends what does not fit, and what comes out are the
//! bytes that went in, in order.
#![no_main]

use arbitrary::Arbitrary;
use hopcast_core::Seed;
use hopcast_fuzz::streams::{Step, address, drive};
use hopcast_peers::quic::{Config, Congestion, Quic};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    bbr: bool,
    seed: u8,
    steps: Vec<Step>,
}

fuzz_target!(|input: Input| {
    let congestion = if input.bbr { Congestion::Bbr } else { Congestion::Cubic };
    let config = Config { congestion, ..Config::default() };
    let seed = Seed::new(input.seed.into(), 0);
    let ends = [0, 1].map(|end: usize| {
        Quic::new(config.clone(), address(end), address(1 - end), seed.stream(&["end"], end as u64))
    });
    drive(ends, true, &input.steps);
});
