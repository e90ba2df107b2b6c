//! Packet-hops a second: UDP with IP and real bytes on one core, beside ns-3 where it is installed. To one receiver
//! over six hops, and to a group of 70 on the 204 nodes of the MEADcast thesis.
//!
//! A packet-hop is one completed link transmission, lost ones included; a frame to a group is one, however many
//! stations of a segment it is for. ns-3 carries no payload bytes; ours are written, summed and compared. Both take
//! turns, by processor time, and the ratio is the median of the turns' ratios: what disturbs the machine disturbs both.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use hopcast_runner::load;
use hopcast_twin::scenario::Overrides;
use hopcast_twin::scenario::model::{LinkModel, Scenario};
use hopcast_twin::{Monitor, World};
use rustix::time::{ClockId, clock_gettime};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Simulated seconds of a turn, and how many turns there are.
const TURN: u64 = 5;
const TURNS: usize = 5;

/// A comparison with ns-3.
struct Contest {
    title: &'static str,
    /// The scenario, and the program of the same for ns-3, in this directory.
    scenario: &'static str,
    program: &'static str,
    /// The libraries of ns-3 that the program needs.
    libraries: &'static [&'static str],
    /// Simulated seconds of ours, to begin with: flat over simulated time if both say about the same.
    lengths: &'static [u64],
}

const CONTESTS: [Contest; 2] = [
    Contest {
        title: "six hops, 300 Mbit/s",
        scenario: "packet-hops.yaml",
        program: "ns3/chain.cc",
        libraries: &["core", "network", "internet", "point-to-point", "applications"],
        lengths: &[10, 60],
    },
    Contest {
        title: "group of 70, 204 nodes",
        scenario: "multicast.yaml",
        program: "ns3/multicast.cc",
        libraries: &["core", "network", "internet", "point-to-point", "csma", "applications"],
        lengths: &[10, 30],
    },
];

/// Packet-hops, and the seconds of processor time that they took.
type Turn = (u64, f64);

fn main() -> Result<(), Box<dyn Error>> {
    let only = std::env::args().nth(1);
    let wanted = |contest: &&Contest| only.as_ref().is_none_or(|only| contest.scenario.starts_with(only));
    CONTESTS.iter().filter(wanted).try_for_each(compare)
}

fn compare(contest: &Contest) -> Result<(), Box<dyn Error>> {
    println!(
        "{:<28} {:>12} {:>10} {:>14} {:>12}",
        contest.title, "packet-hops", "CPU [s]", "hops/s", "memory [MB]"
    );
    for &seconds in contest.lengths {
        let turn = ours(contest, seconds)?;
        println!("{} {:>12.1}", line(&format!("hopcast, 1,400 B, {seconds} s"), turn), peak_memory_mb());
    }
    let Some(program) = build_ns3(contest)? else {
        println!("ns-3 is not installed (apt-get install libns3-dev g++): nothing to compare with");
        return Ok(());
    };
    let network = network(contest)?;
    let mut ratios = Vec::new();
    for _ in 0..TURNS {
        let (theirs, ours) = (ns3(&program, &network, TURN)?, ours(contest, TURN)?);
        println!("{}\n{}", line("ns-3", theirs), line("hopcast", ours));
        let difference = theirs.0.abs_diff(ours.0);
        if difference > ours.0 / 100 {
            return Err(
                format!("{}: not the same traffic: {} and {}", contest.title, theirs.0, ours.0).into()
            );
        }
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

fn world(contest: &Contest, seconds: u64) -> Result<(Arc<Scenario>, World), Box<dyn Error>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(contest.scenario);
    let overrides = Overrides { sets: vec![format!("duration={seconds} s")], ..Overrides::default() };
    let plan = load(&file, &overrides)?;
    let scenario = plan.cases[0].scenario.clone();
    let world = World::new(scenario.clone(), 0, None)?;
    Ok((scenario, world))
}

fn ours(contest: &Contest, seconds: u64) -> Result<Turn, Box<dyn Error>> {
    let (scenario, mut world) = world(contest, seconds)?;
    let began = processor_time();
    world.run_until(hopcast_twin::run_end(&scenario), &Monitor::default());
    let took = processor_time() - began;
    Ok((world.transmissions(), took))
}

/// The network, and the tree of the first flow's packets in it, as the programs for ns-3 read it.
fn network(contest: &Contest) -> Result<String, Box<dyn Error>> {
    let (scenario, mut world) = world(contest, 1)?;
    world.run_until(hopcast_twin::run_end(&scenario), &Monitor::default());
    let flow = &scenario.flows[0];
    let mut text = format!("{} {}\n", scenario.nodes.len(), flow.from);
    for link in &scenario.links {
        text.push_str(if matches!(link.model, LinkModel::PointToPoint(_)) { "pair" } else { "segment" });
        link.ends.iter().for_each(|end| _ = write!(text, " {end}"));
        text.push('\n');
    }
    let carrying = world.snapshot().links.into_iter().filter(|link| link.sent_packets > 0);
    let node = |name: &str| scenario.nodes.iter().position(|node| node.name == name);
    let link = |name: &str| scenario.links.iter().position(|link| link.name == name);
    let sends: BTreeSet<_> = carrying.filter_map(|state| node(&state.from).zip(link(&state.name))).collect();
    sends.iter().for_each(|(node, link)| _ = writeln!(text, "sends {node} {link}"));
    flow.to.iter().for_each(|node| _ = writeln!(text, "receiver {node}"));
    Ok(text)
}

fn ns3(program: &Path, network: &str, seconds: u64) -> Result<Turn, Box<dyn Error>> {
    let failed = |error: std::io::Error| format!("{}: {error}", program.display());
    let mut command = Command::new(program);
    command.arg(seconds.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    // The chain's program knows its network and reads nothing.
    if let Some(mut input) = child.stdin.take() {
        let _ = input.write_all(network.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.split_whitespace();
    let hops = numbers.next().and_then(|hops| hops.parse().ok());
    let took = numbers.next().and_then(|took| took.parse().ok());
    Ok(hops.zip(took).ok_or_else(|| format!("{}: unexpected output `{text}`", program.display()))?)
}

/// Builds the same for ns-3; none if its headers are not there.
fn build_ns3(contest: &Contest) -> Result<Option<PathBuf>, Box<dyn Error>> {
    if !Path::new("/usr/include/ns3").is_dir() {
        return Ok(None);
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(contest.program);
    let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let program = std::env::temp_dir().join(format!("hopcast-ns3-{name}-{}", std::process::id()));
    let mut build = Command::new("c++");
    // The libraries name further ones that this program does not touch.
    build.args(["-O3", "-march=native", "-Wl,--allow-shlib-undefined", "-o"]).arg(&program).arg(&source);
    build.args(contest.libraries.iter().map(|library| format!("-lns3-{library}")));
    let output = build.output().map_err(|error| format!("c++: {error}"))?;
    if !output.status.success() {
        return Err(format!("{}: {}", source.display(), String::from_utf8_lossy(&output.stderr)).into());
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
