//! Packet-hops a second: UDP with IP and real bytes over six hops, on one core.
//!
//! A packet-hop is one completed link transmission, lost ones included. ns-3 3.37 as Debian packages it does 184,000
//! of them a second for the same chain on the machines this was written on; ns-3 carries no payload bytes.

#![allow(clippy::disallowed_methods)] // this program measures the wall clock

use std::path::Path;
use std::time::Instant;

use hopcast_twin::scenario::{Overrides, load};
use hopcast_twin::{Monitor, World};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NS3: f64 = 184_000.0;

fn main() -> Result<(), String> {
    println!(
        "{:<28} {:>12} {:>10} {:>14} {:>10} {:>12}",
        "six hops, 300 Mbit/s", "packet-hops", "wall [s]", "hops/s", "of ns-3", "memory [MB]"
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("packet-hops.yaml");
    for (name, seconds) in [("1,400 B, 10 s", 10u64), ("1,400 B, 60 s", 60)] {
        let overrides = Overrides { sets: vec![format!("duration={seconds} s")], ..Overrides::default() };
        let plan = load(&file, &overrides).map_err(|error| error.to_string())?;
        let mut world = World::new(plan.cases[0].scenario.clone(), 0, None)?;
        let began = Instant::now();
        world.run_until(hopcast_twin::end_of(&plan.cases[0].scenario), &Monitor::default());
        let took = began.elapsed().as_secs_f64();
        let hops = world.packet_hops();
        let rate = hops as f64 / took;
        println!(
            "{name:<28} {hops:>12} {took:>10.2} {rate:>14.0} {:>9.1}x {:>12.1}",
            rate / NS3,
            peak_memory_mb()
        );
    }
    Ok(())
}

/// The largest resident size so far: flat over simulated time if the second line says about the same as the first.
fn peak_memory_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map_or(f64::NAN, |kilobytes| kilobytes / 1e3)
}
