//! A node's process in a live run: the machines of all flows that have any at the node.
//!
//! It is the same program as in a deployment. The supervisor of the run and the process exchange lines:
//!
//! ```text
//!  supervisor                         node
//!      │        <- loaded IDENTITY     │   its part of this case is built
//!      │  zero N ->                    │   the clock's zero, in nanoseconds of the monotonic clock
//!      │        <- ready               │   sockets and devices are open
//!      │        <- complete            │   it has received all of the only flow, which is of bounded size
//!      │  (end of input) ->            │   the run is over, or its supervisor is gone
//!      │        <- report {...}        │   what was measured, and it ends
//! ```
//!
//! In place of any of its lines the node may write `failed ...` and end.

mod error;

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::SystemTime;

use hopcast_core::Duration;
use hopcast_node::Clock;
use hopcast_node::runtime::{Runtime, Stop};
use hopcast_twin::results::ServiceTable;
use hopcast_twin::run_end;
use hopcast_twin::scenario::model::{NodeId, Scenario};
use hopcast_twin::world::{InstanceReport, NodeInstance};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::network;

pub use self::error::Error;

/// The line of a node that has received all of a transfer.
pub(crate) const COMPLETE: &str = "complete";
/// Time between two looks at whether a transfer is complete. Chosen; shorter takes processor time from the run, longer
/// lets it last longer.
const LOOK: Duration = Duration::from_millis(200);

/// Report of a node at the end of a run.
#[derive(Default, Serialize, Deserialize)]
pub struct NodeReport {
    /// Measurements and counters at this node, for each of its flows.
    pub sites: Vec<InstanceReport>,
    /// Counters of its services, by service and name.
    #[serde(default)]
    pub services: BTreeMap<String, u64>,
    /// Tables of what its services know in the end.
    #[serde(default)]
    pub tables: Vec<ServiceTable>,
    /// Counters of its sockets, by name.
    pub sockets: BTreeMap<String, u64>,
    /// Processor time, in seconds.
    pub cpu_s: f64,
}

/// Runs a node's part of repeat number `repeat` of a scenario under a supervisor, which recognises the case by
/// `identity`.
///
/// # Errors
/// A flow, socket or device that could not be built or opened, or a malformed line of the supervisor. The supervisor
/// receives the error too.
pub fn run_supervised(
    (scenario, identity): (&Scenario, &str),
    node: NodeId,
    repeat: u64,
    input: impl BufRead + Send + 'static,
    mut output: impl Write,
) -> Result<(), Error> {
    let result = converse((scenario, identity), node, repeat, input, &mut output);
    if let Err(error) = &result {
        // The supervisor may be gone.
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
    let (event_sender, events) = mpsc::channel();
    let line_sender = event_sender.clone();
    // Until the input ends, or nobody listens.
    let listen = move || {
        let mut lines = input.lines().map_while(Result::ok);
        let _ = lines.try_for_each(|line| line_sender.send(Event::Line(line)));
        let _ = line_sender.send(Event::End);
    };
    std::thread::Builder::new().spawn(listen).map_err(Error::Thread)?;
    let loaded = LoadedNode::build(scenario, node, repeat)?;
    say(output, &format!("loaded {identity}"))?;
    // Otherwise the run was cancelled before it began.
    let Ok(Event::Line(zero)) = events.recv() else { return Ok(()) };
    let zero = zero.strip_prefix("zero ").and_then(|zero| zero.parse().ok());
    let zero = zero.ok_or(Error::NoZero)?;
    let running = loaded.begin(Clock::with_zero(zero), &event_sender)?;
    say(output, "ready")?;
    // Until the input ends or a thread fails.
    loop {
        match events.recv() {
            Ok(Event::Line(_)) => {}
            Ok(Event::Complete) => say(output, COMPLETE)?,
            Ok(Event::End | Event::Failed) | Err(_) => break,
        }
    }
    let report = running.end()?;
    let report = serde_json::to_string(&report).map_err(Error::Report)?;
    say(output, &format!("report {report}"))
}

/// Runs a node's part of a scenario on this host, from the time `begin()` to the end of the run or until `stop` is
/// requested; returns its measurements and counters as text. The host must have the node's addresses, and its clock
/// must agree with the other hosts': a datagram that arrives before it was sent is rejected.
///
/// # Errors
/// A flow, socket or device that could not be built or opened, or a begin in the past.
pub fn run_standalone(
    scenario: &Scenario,
    node: NodeId,
    repeat: u64,
    begin: impl FnOnce() -> SystemTime,
    stop: &Stop,
) -> Result<String, Error> {
    let loaded = LoadedNode::build(scenario, node, repeat)?;
    // `begin` is called only now, since building the flows may take long.
    let begin = begin();
    #[allow(clippy::disallowed_methods)] // hosts have nothing else in common
    let left = begin.duration_since(SystemTime::now()).map_err(|_| Error::TooLate)?;
    let clock = Clock::starting_in(Duration::from_nanos(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)));
    let (event_sender, events) = mpsc::channel();
    let running = loaded.begin(clock, &event_sender)?;
    let is_over = |event| matches!(event, Ok(Event::Line(_) | Event::End | Event::Failed));
    while !stop.is_requested() && clock.now() < run_end(scenario) && !is_over(events.try_recv()) {
        #[allow(clippy::disallowed_methods)] // real time is what passes here
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let report = running.end()?;
    let mut text = String::new();
    for site in &report.sites {
        text.push_str(&site.text(scenario));
    }
    for (name, value) in report.services.iter().filter(|&(_, &value)| value > 0) {
        text.push_str(&format!("{name:<42} {value:>14}\n"));
    }
    Ok(text)
}

fn say(output: &mut impl Write, line: &str) -> Result<(), Error> {
    writeln!(output, "{line}").and_then(|()| output.flush()).map_err(Error::Write)
}

/// An event that ends or begins the run of a node.
enum Event {
    /// A line of the supervisor.
    Line(String),
    /// End of the supervisor's input.
    End,
    /// All of a transfer was received.
    Complete,
    /// Failure of the node's machines.
    Failed,
}

/// The machines of a node, built on a thread of their own, which they do not leave.
struct LoadedNode {
    /// The sender of the start. It must be dropped before `running`: that waits for the thread, which waits for this.
    begin: mpsc::Sender<(Clock, mpsc::Sender<Event>)>,
    running: RunningNode,
    opened: mpsc::Receiver<()>,
}

/// The machines of a node, running.
struct RunningNode {
    stop: Stop,
    /// The thread; `None` once it was joined.
    thread: Option<JoinHandle<Result<NodeReport, Error>>>,
}

impl LoadedNode {
    /// Builds the machines of all flows at `node`.
    ///
    /// # Errors
    /// A flow that cannot be built.
    fn build(scenario: &Scenario, node: NodeId, repeat: u64) -> Result<Self, Error> {
        let stop = Stop::new().map_err(Error::Thread)?;
        let (built, is_built) = mpsc::channel();
        let (begin, to_begin) = mpsc::channel::<(Clock, mpsc::Sender<Event>)>();
        let (ready, opened) = mpsc::channel();
        let (scenario, own_stop) = (scenario.clone(), stop.clone());
        let work = move || {
            let groups = network::group_egresses(&scenario, repeat, node);
            let instance = NodeInstance::at(&scenario, repeat, node, &groups).map_err(Error::Flow)?;
            let _ = built.send(());
            // Nobody sends a clock where the run was cancelled before it began.
            let (Some(instance), Ok((clock, events))) = (instance, to_begin.recv()) else {
                let _ = ready.send(());
                return Ok(NodeReport::default());
            };
            run(&scenario, &instance, clock, (&ready, &events), &own_stop).inspect_err(|_| {
                // Without this node the run has no valid result.
                let _ = events.send(Event::Failed);
            })
        };
        let thread = std::thread::Builder::new().name("machines".to_owned());
        let running = RunningNode { stop, thread: Some(thread.spawn(work).map_err(Error::Thread)?) };
        // A thread that fails sends nothing here, and ends with its error.
        if is_built.recv().is_err() {
            running.end()?;
            return Err(Error::Panicked);
        }
        Ok(Self { running, begin, opened })
    }

    /// Opens the sockets and devices of the machines, and starts the machines.
    ///
    /// # Errors
    /// The first socket or device that could not be opened.
    fn begin(self, clock: Clock, events: &mpsc::Sender<Event>) -> Result<RunningNode, Error> {
        let Self { running, begin, opened } = self;
        // A thread without machines has ended already.
        let _ = begin.send((clock, events.clone()));
        if opened.recv().is_err() {
            running.end()?;
            return Err(Error::Panicked);
        }
        Ok(running)
    }
}

/// Runs the machines until they are stopped; says when they are `ready`, and when a transfer is complete.
fn run(
    scenario: &Scenario,
    instance: &NodeInstance,
    clock: Clock,
    (ready, events): (&mpsc::Sender<()>, &mpsc::Sender<Event>),
    stop: &Stop,
) -> Result<NodeReport, Error> {
    let opened = Runtime::open(instance.machine(), instance.plugs(), clock);
    let mut runtime = opened.map_err(|source| {
        let flow = source.plug().and_then(|plug| instance.flow_of_plug(plug));
        Error::Open { flow: flow.map_or_else(String::new, |flow| scenario.flows[flow].name.clone()), source }
    })?;
    let _ = ready.send(());
    while instance.has_transfer(scenario) == Some(false) && !stop.is_requested() {
        runtime.run(Some(clock.now() + LOOK), stop)?;
    }
    if instance.has_transfer(scenario) == Some(true) {
        let _ = events.send(Event::Complete);
    }
    runtime.run(None, stop)?;
    let mut report = NodeReport {
        sites: instance.reports(),
        services: instance.service_counters(),
        tables: instance.service_tables(scenario),
        ..NodeReport::default()
    };
    runtime.counters(&mut |name, value| _ = report.sockets.insert(name.to_owned(), value));
    Ok(report)
}

impl RunningNode {
    /// Stops the machines, and returns their report.
    ///
    /// # Errors
    /// The thread's error.
    fn end(mut self) -> Result<NodeReport, Error> {
        self.stop.request();
        let thread = self.thread.take().ok_or(Error::Panicked)?;
        let mut report = thread.join().unwrap_or(Err(Error::Panicked))?;
        let time = clock_gettime(ClockId::ProcessCPUTime);
        report.cpu_s = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
        Ok(report)
    }
}

impl Drop for RunningNode {
    fn drop(&mut self) {
        self.stop.request();
        if let Some(thread) = self.thread.take() {
            // Nobody is left to receive the result.
            let _ = thread.join();
        }
    }
}
