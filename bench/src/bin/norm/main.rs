//! One sender of NORM and ten receivers that lose 5 % each, on one core: payload delivered in a second of processor
//! time, summed over the receivers, beside libnorm.
//!
//! Three contenders. *Machines* are ours alone, their datagrams handed from one to the next in virtual time.
//! *Sockets* are the same machines, each on a UDP socket and a thread of its own, and libnorm a process for each
//! member; both of these send over the loopback interface of a network namespace of their own, lose at the receivers,
//! and may use one core. What counts is processor time, the kernel's included, so that a busy machine does not count;
//! each object is compared with what was sent.

mod libnorm;
mod machines;
mod member;
mod sockets;

use std::error::Error;
use std::process::ExitCode;

use hopcast_core::Rate;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Any error, which ends the measurement; it can come from another thread.
type Failure = Box<dyn Error + Send + Sync>;

/// Receivers, and the share of packets that each of them loses.
const RECEIVERS: usize = 10;
const LOSS: f64 = 0.05;
/// Bytes of an object, and how many are sent.
const OBJECT: usize = 8 << 20;
const OBJECTS: usize = 12;
/// Turns of which the median counts.
const TURNS: usize = 5;
/// Payload that is to be delivered in a second of processor time, in Gbit/s.
const WANTED: f64 = 1.0;
/// Rates at which members with sockets are told to send, headers included. Chosen: a rate that their core does not
/// carry costs losses and repairs, and which one it carries best differs from one to the other.
const RATES: [Rate; 4] =
    [Rate::from_mbit(50), Rate::from_mbit(100), Rate::from_mbit(200), Rate::from_mbit(400)];

/// A measurement: bytes delivered to all receivers, and seconds of processor time and of a clock that it took.
#[derive(Clone, Copy, Debug)]
struct Seen {
    bytes: u64,
    cpu: f64,
    seconds: f64,
}

impl Seen {
    /// Payload in a second of processor time, in Gbit/s.
    fn rate(self) -> f64 {
        self.bytes as f64 * 8e-9 / self.cpu
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        // A process of its own in the namespace, whose time is told apart from this one's.
        [sockets::WORD, rate] => sockets::run(rate),
        [] => compare(),
        _ => Err("expected no arguments".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("norm: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compare() -> Result<(), Failure> {
    let total = RECEIVERS * OBJECTS * OBJECT;
    println!(
        "{RECEIVERS} receivers that lose {} %, {} MB to each",
        LOSS * 100.0,
        OBJECTS * OBJECT / 1_000_000
    );
    println!("{:<34} {:>10} {:>10} {:>16}", "", "CPU [s]", "time [s]", "Gbit/s a core");
    let machines = median("ours, machines", |turn| machines::run(turn as u64))?;
    let namespace = ["-n", "true"];
    let can =
        std::process::Command::new("unshare").args(namespace).status().is_ok_and(|status| status.success());
    if can {
        let sockets = best("ours, sockets", sockets::start)?;
        match libnorm::build()? {
            Some(program) => {
                let theirs = best("libnorm, sockets", |rate| libnorm::run(program.path(), rate))?;
                println!(
                    "hopcast / libnorm: {:.1} with sockets, {:.1} without",
                    sockets.rate() / theirs.rate(),
                    machines.rate() / theirs.rate()
                );
            }
            None => println!(
                "libnorm is not installed (apt-get install libnorm-dev g++): nothing to compare with"
            ),
        }
    } else {
        println!("no network namespace without root: nothing with sockets");
    }
    debug_assert_eq!(machines.bytes, total as u64);
    let met = if machines.rate() >= WANTED { "met" } else { "missed" };
    println!("wanted of the machines: {WANTED} Gbit/s, {met}");
    Ok(())
}

/// The turn whose rate is the median of all.
fn median(name: &str, run: impl Fn(usize) -> Result<Seen, Failure>) -> Result<Seen, Failure> {
    let mut turns = (0..TURNS).map(run).collect::<Result<Vec<_>, _>>()?;
    turns.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
    let (first, median, last) = (turns[0], turns[TURNS / 2], turns[TURNS - 1]);
    let spread = format!("{:.2} ({:.2} to {:.2})", median.rate(), first.rate(), last.rate());
    println!("{name:<34} {:>10.2} {:>10.2} {spread:>22}", median.cpu, median.seconds);
    Ok(median)
}

/// The best of the medians at several rates, of those at which each turn completes.
fn best(name: &str, run: impl Fn(Rate) -> Result<Seen, Failure>) -> Result<Seen, Failure> {
    let mut all = Vec::new();
    for rate in RATES {
        let name = format!("{name}, {rate}");
        match median(&name, |_| run(rate)) {
            Ok(seen) => all.push(seen),
            Err(why) => println!("{name:<34} not all of it arrives: {why}"),
        }
    }
    let best = all.into_iter().max_by(|a, b| a.rate().total_cmp(&b.rate()));
    best.ok_or_else(|| format!("{name}: nothing arrives").into())
}
