//! Packet-hops a second: UDP with IP and real bytes over six hops, on one core, beside ns-3 where it is installed.
//!
//! A packet-hop is one completed link transmission, lost ones included. ns-3 carries no payload bytes; ours are
//! written, summed and compared. Both take turns, by processor time, and the ratio is the median of the turns' ratios:
//! what disturbs the machine disturbs both.

use std::path::{Path, PathBuf};
use std::process::Command;

use hopcast_runner::load;
use hopcast_twin::scenario::Overrides;
use hopcast_twin::{Monitor, World};
use rustix::time::{ClockId, clock_gettime};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Simulated seconds of a turn, and how many turns there are.
const TURN: u64 = 5;
const TURNS: usize = 5;
/// The libraries of ns-3 that its program needs.
const LIBRARIES: [&str; 5] =
    ["-lns3-core", "-lns3-network", "-lns3-internet", "-lns3-point-to-point", "-lns3-applications"];

/// Packet-hops, and the seconds of processor time that they took.
type Turn = (u64, f64);

fn main() -> Result<(), String> {
    println!(
        "{:<28} {:>12} {:>10} {:>14} {:>12}",
        "six hops, 300 Mbit/s", "packet-hops", "CPU [s]", "hops/s", "memory [MB]"
    );
    // Flat over simulated time if the second line says about the same as the first.
    for seconds in [10, 60] {
        let turn = ours(seconds)?;
        println!("{} {:>12.1}", line(&format!("hopcast, 1,400 B, {seconds} s"), turn), peak_memory_mb());
    }
    let Some(program) = build_ns3()? else {
        println!("ns-3 is not installed (apt-get install libns3-dev g++): nothing to compare with");
        return Ok(());
    };
    let mut ratios = Vec::new();
    for _ in 0..TURNS {
        let (theirs, ours) = (ns3(&program, TURN)?, ours(TURN)?);
        println!("{}\n{}", line("ns-3", theirs), line("hopcast", ours));
        ratios.push(rate(ours) / rate(theirs));
    }
    ratios.sort_by(f64::total_cmp);
    let (min, median, max) = (ratios[0], ratios[TURNS / 2], ratios[TURNS - 1]);
    println!("hopcast / ns-3: {median:.1} (median of {TURNS} turns, {min:.1} to {max:.1})");
    Ok(())
}

fn line(name: &str, turn: Turn) -> String {
    format!("{name:<28} {:>12} {:>10.2} {:>14.0}", turn.0, turn.1, rate(turn))
}

fn rate((hops, seconds): Turn) -> f64 {
    hops as f64 / seconds
}

fn ours(seconds: u64) -> Result<Turn, String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("packet-hops.yaml");
    let overrides = Overrides { sets: vec![format!("duration={seconds} s")], ..Overrides::default() };
    let plan = load(&file, &overrides).map_err(|error| error.to_string())?;
    let mut world = World::new(plan.cases[0].scenario.clone(), 0, None).map_err(|error| error.to_string())?;
    let began = processor_time();
    world.run_until(hopcast_twin::run_end(&plan.cases[0].scenario), &Monitor::default());
    Ok((world.packet_hops(), processor_time() - began))
}

fn ns3(program: &Path, seconds: u64) -> Result<Turn, String> {
    let output = Command::new(program).arg(seconds.to_string()).output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.split_whitespace();
    let hops = numbers.next().and_then(|hops| hops.parse().ok());
    let took = numbers.next().and_then(|took| took.parse().ok());
    hops.zip(took).ok_or_else(|| format!("{}: unexpected output `{text}`", program.display()))
}

/// Builds the same chain for ns-3; none if its headers are not there.
fn build_ns3() -> Result<Option<PathBuf>, String> {
    if !Path::new("/usr/include/ns3").is_dir() {
        return Ok(None);
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("ns3/chain.cc");
    let program = std::env::temp_dir().join(format!("hopcast-ns3-chain-{}", std::process::id()));
    let mut build = Command::new("c++");
    // The libraries name further ones that this program does not touch.
    build.args(["-O3", "-march=native", "-Wl,--allow-shlib-undefined", "-o"]).arg(&program).arg(&source);
    let output = build.args(LIBRARIES).output().map_err(|error| format!("c++: {error}"))?;
    if !output.status.success() {
        return Err(format!("{}: {}", source.display(), String::from_utf8_lossy(&output.stderr)));
    }
    Ok(Some(program))
}

fn processor_time() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// The largest resident size so far.
fn peak_memory_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map_or(f64::NAN, |kilobytes| kilobytes / 1e3)
}
