//! The cost of recording what happens to each packet, and of finding packets in the log: six hops with and without, in
//! turns, by processor time; then one packet, and all of a flow, in the log of a run, beside a plain scan of all
//! contents for one packet's bytes. Another scenario may be named, with settings: `recording FILE PATH=VALUE ...`.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use hopcast_runner::{LogFile, load};
use hopcast_trace::verdict::verdicts;
use hopcast_trace::{Log, Query, Recorder, follow};
use hopcast_twin::scenario::Overrides;
use hopcast_twin::scenario::model::Scenario;
use hopcast_twin::{Monitor, World, run_end};
use rustix::time::{ClockId, clock_gettime};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of turns, each without and with a log.
const TURNS: usize = 5;
/// Simulated seconds of a turn.
const TURN: u64 = 5;
/// Maximum size of a log, in bytes. Chosen: all of a turn fits.
const MAX_LOG: u64 = 8 << 30;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = match arguments.next() {
        Some(file) => file.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("packet-hops.yaml"),
    };
    let sets = std::iter::once(format!("duration={TURN} s")).chain(arguments).collect();
    let plan = load(&file, &Overrides { sets, ..Overrides::default() })?;
    let scenario = plan.cases.first().ok_or("the scenario has no case")?.scenario.clone();
    let path = std::env::temp_dir().join(format!("hopcast-recording-{}.trace", std::process::id()));
    let mut ratios = Vec::new();
    for _ in 0..TURNS {
        let (hops, without, _) = run(&scenario, None)?;
        let (_, with, writing) = run(&scenario, Some(&path))?;
        let ratio = with / without;
        println!(
            "{hops} packet-hops: {without:.3} s, recorded {with:.3} s, {ratio:.2} times; {writing:.3} s of another core"
        );
        ratios.push(with / without);
    }
    ratios.sort_by(f64::total_cmp);
    println!("recording: {:.2} times (median of {TURNS} turns)", ratios[TURNS / 2]);
    let found = search(&path);
    fs::remove_file(&path)?;
    found
}

/// Packet-hops of a run, and the seconds of processor time that it took, and that the thread took which writes its log.
fn run(scenario: &Arc<Scenario>, log: Option<&Path>) -> Result<(u64, f64, f64), Box<dyn Error>> {
    let mut world = World::new(scenario.clone(), 0, None)?;
    let (began, all_began) = (processor_time(), time_of(ClockId::ProcessCPUTime));
    if let Some(path) = log {
        world.record(Recorder::new(Box::new(LogFile::create(path)?), MAX_LOG));
    }
    world.run_until(run_end(scenario), &Monitor::default());
    world.finish_recording()?;
    let (took, all_took) = (processor_time() - began, time_of(ClockId::ProcessCPUTime) - all_began);
    Ok((world.packet_hops(), took, all_took - took))
}

fn search(path: &Path) -> Result<(), Box<dyn Error>> {
    let began = processor_time();
    let log = Log::read(fs::read(path)?)?;
    let size = fs::metadata(path)?.len() / 1_000_000;
    println!("log: {} contents, {size} MB, read in {:.2} s", log.contents(), processor_time() - began);
    for query in ["frame at 2 s", "udp"] {
        let began = processor_time();
        let story = follow(&log, &Query::parse(query, &log)?);
        let line = verdicts(&story).first().map(ToString::to_string).unwrap_or_default();
        println!("`{query}`: {} packets, {:.2} s: {line}", story.packets.len(), processor_time() - began);
    }
    let began = processor_time();
    let wanted = log.content(log.contents()).ok_or("an empty log")?;
    let found =
        (1..=log.contents()).filter_map(|number| log.content(number)).filter(|frame| *frame == wanted);
    let found = found.count();
    println!("a scan of {} contents: {found} found, {:.3} s", log.contents(), processor_time() - began);
    Ok(())
}

fn processor_time() -> f64 {
    time_of(ClockId::ThreadCPUTime)
}

fn time_of(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
