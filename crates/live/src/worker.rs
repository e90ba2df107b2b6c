//! A node's process in a live run: the machines of every flow that has any there.
//!
//! It is the process that a deployment runs. Whoever conducts the run speaks with it line by line:
//!
//! ```text
//!  conductor                         node
//!      │        <- loaded IDENTITY     │   its part of this case is built
//!      │  zero N ->                    │   the clock's zero, in nanoseconds of the monotonic clock
//!      │        <- ready               │   sockets and devices are open
//!      │  (end of input) ->            │   the run is over, or its conductor is gone
//!      │        <- report {...}        │   what was measured, and it ends
//! ```
//!
//! In place of any of its lines it may say `failed ...`, and end.

mod error;

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::SystemTime;

use hopcast_core::Duration;
use hopcast_core::plug::Plug;
use hopcast_node::Clock;
use hopcast_node::runtime::{Runtime, Stop};
use hopcast_twin::end_of;
use hopcast_twin::scenario::model::{NodeId, Scenario};
use hopcast_twin::world::{Site, SiteReport};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

pub use self::error::Error;

/// What a node says of itself at the end.
#[derive(Default, Serialize, Deserialize)]
pub struct NodeReport {
    /// What was measured and counted there, for each flow that it had a part in.
    pub sites: Vec<SiteReport>,
    /// The figures of its sockets.
    pub sockets: BTreeMap<String, u64>,
    /// Seconds of processor time.
    pub cpu_s: f64,
}

/// Runs a node's part of repeat number `repeat` of a scenario, as its conductor says. By `identity` the conductor knows
/// that it is the same case.
///
/// # Errors
/// What could not be built or opened, or the conductor's line that makes no sense; one line, which the conductor is
/// told too.
pub fn conducted(
    (scenario, identity): (&Scenario, &str),
    node: NodeId,
    repeat: u64,
    input: impl BufRead + Send + 'static,
    mut output: impl Write,
) -> Result<(), Error> {
    let result = converse((scenario, identity), node, repeat, input, &mut output);
    if let Err(error) = &result {
        // It may be gone.
        let _ = say(&mut output, &format!("failed {error}"));
    }
    result
}

fn converse(
    (scenario, identity): (&Scenario, &str),
    node: NodeId,
    repeat: u64,
    input: impl BufRead + Send + 'static,
    output: &mut impl Write,
) -> Result<(), Error> {
    let (tell, news) = mpsc::channel();
    let ear = tell.clone();
    // Until it ends, or nobody listens.
    let listen = move || {
        let mut lines = input.lines().map_while(Result::ok);
        let _ = lines.try_for_each(|line| ear.send(News::Line(line)));
        let _ = ear.send(News::End);
    };
    std::thread::Builder::new().spawn(listen).map_err(Error::Thread)?;
    let flows = flows_at(scenario, node, repeat)?;
    say(output, &format!("loaded {identity}"))?;
    // The run was given up before it began.
    let Ok(News::Line(zero)) = news.recv() else { return Ok(()) };
    let zero = zero.strip_prefix("zero ").and_then(|zero| zero.parse().ok());
    let zero = zero.ok_or(Error::NoZero)?;
    let work = Work::begin((scenario, node, repeat), &flows, Clock::with_zero(zero), &tell)?;
    say(output, "ready")?;
    loop {
        match news.recv() {
            Ok(News::Line(_)) => {}
            Ok(News::End) | Err(_) => break,
            Ok(News::Failed) => break,
        }
    }
    let report = work.end()?;
    let report = serde_json::to_string(&report).map_err(Error::Report)?;
    say(output, &format!("report {report}"))
}

/// Runs a node's part of a scenario on this host, from the time that `begin` says by its clock until the run's end or
/// until `stop` is pulled; says what it measured and counted, as text. This host must have the node's addresses, and
/// its clock the time of the others': what would arrive before it was sent is not believed.
///
/// # Errors
/// What could not be built or opened, or a time that has gone by; one line.
pub fn alone(
    scenario: &Scenario,
    node: NodeId,
    repeat: u64,
    begin: impl FnOnce() -> SystemTime,
    stop: &Stop,
) -> Result<String, Error> {
    let flows = flows_at(scenario, node, repeat)?;
    // Now that it does not take long any more.
    let begin = begin();
    #[allow(clippy::disallowed_methods)] // hosts have nothing else in common
    let left = begin.duration_since(SystemTime::now()).map_err(|_| Error::TooLate)?;
    let clock = Clock::starting_in(Duration::from_nanos(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)));
    let (tell, news) = mpsc::channel();
    let work = Work::begin((scenario, node, repeat), &flows, clock, &tell)?;
    while !stop.is_pulled() && clock.now() < end_of(scenario) && news.try_recv().is_err() {
        #[allow(clippy::disallowed_methods)] // real time is what passes here
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let report = work.end()?;
    let mut text = String::new();
    for site in &report.sites {
        text.push_str(&site.text(scenario));
    }
    Ok(text)
}

/// The flows that have anything at the node.
fn flows_at(scenario: &Scenario, node: NodeId, repeat: u64) -> Result<Vec<usize>, Error> {
    let mut flows = Vec::new();
    for flow in 0..scenario.flows.len() {
        let sites = Site::of_flow(scenario, repeat, flow).map_err(Error::Flow)?;
        if sites.iter().any(|site| site.node() == node) {
            flows.push(flow);
        }
    }
    Ok(flows)
}

fn say(output: &mut impl Write, line: &str) -> Result<(), Error> {
    writeln!(output, "{line}").and_then(|()| output.flush()).map_err(Error::Write)
}

/// What a node hears while it works.
enum News {
    /// Its conductor says this.
    Line(String),
    /// Its conductor says no more.
    End,
    /// One of its threads has failed.
    Failed,
}

/// A node's machines at work: a thread for each flow.
struct Work {
    stop: Stop,
    threads: Vec<JoinHandle<Result<Found, Error>>>,
}

type Found = (SiteReport, Vec<(&'static str, u64)>);

impl Work {
    /// Opens what the machines of `flows` at `node` are plugged into, and begins to run them.
    ///
    /// # Errors
    /// What could not be opened, in one line.
    fn begin(
        (scenario, node, repeat): (&Scenario, NodeId, u64),
        flows: &[usize],
        clock: Clock,
        tell: &mpsc::Sender<News>,
    ) -> Result<Self, Error> {
        let stop = Stop::new().map_err(Error::Thread)?;
        let mut work = Self { stop, threads: Vec::new() };
        for &flow in flows {
            let (scenario, stop, tell) = (scenario.clone(), work.stop.clone(), tell.clone());
            let (ready, opened) = mpsc::channel();
            let thread = std::thread::Builder::new().name(scenario.flows[flow].name.clone());
            // Machines stay on the thread on which they are made.
            let thread = thread.spawn(move || {
                let (site, mut runtime) = open(&scenario, node, repeat, flow, clock)?;
                let _ = ready.send(());
                if let Err(error) = runtime.run(None, &stop) {
                    // A run without it need not go on to its end.
                    let _ = tell.send(News::Failed);
                    return Err(error.into());
                }
                let mut sockets = Vec::new();
                runtime.counters(&mut |name, value| sockets.push((name, value)));
                Ok((site.report(), sockets))
            });
            work.threads.push(thread.map_err(Error::Thread)?);
            // A thread that fails says nothing here, and ends with its error.
            if opened.recv().is_err() {
                work.end()?;
                return Err(Error::Panicked);
            }
        }
        Ok(work)
    }

    /// Stops the machines, and returns their report.
    ///
    /// # Errors
    /// The first thread's that failed.
    fn end(mut self) -> Result<NodeReport, Error> {
        self.stop.pull();
        let mut report = NodeReport::default();
        let threads = std::mem::take(&mut self.threads).into_iter();
        let ended: Vec<_> = threads.map(|thread| thread.join().unwrap_or(Err(Error::Panicked))).collect();
        for found in ended {
            let (site, sockets) = found?;
            report.sites.push(site);
            for (name, value) in sockets {
                let sum = report.sockets.entry(name.to_owned()).or_default();
                *sum = if name.starts_with("latest") { value.max(*sum) } else { *sum + value };
            }
        }
        let time = clock_gettime(ClockId::ProcessCPUTime);
        report.cpu_s = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
        Ok(report)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.stop.pull();
        for thread in std::mem::take(&mut self.threads) {
            // There is nobody left to be told.
            let _ = thread.join();
        }
    }
}

fn open(
    scenario: &Scenario,
    node: NodeId,
    repeat: u64,
    flow: usize,
    clock: Clock,
) -> Result<(Site, Runtime), Error> {
    let sites = Site::of_flow(scenario, repeat, flow).map_err(Error::Flow)?;
    let site = sites.into_iter().find(|site| site.node() == node);
    let site = site.ok_or(Error::NothingHere)?;
    let plugs: &[Plug] = site.plugs();
    let failed = |source| Error::Open { flow: scenario.flows[flow].name.clone(), source };
    let runtime = Runtime::open(site.machine(), plugs, clock).map_err(failed)?;
    Ok((site, runtime))
}
