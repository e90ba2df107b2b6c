//! All programs of a run, from its start to its end.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hopcast_core::{Duration, Instant, earliest};
use hopcast_stack::transport::ProgramPair;
use hopcast_twin::scenario::model::{Action, App, Exec, Flow, FlowId, NodeId, Program, Scenario};

use super::command::{CommandLine, Commands, Ends, Outputs, Task};
use super::job::{Job, Process};
use super::measurement::{Measurement, seconds};
use super::spawn::Spawner;
use super::{Error, commands, copy, ffmpeg, group_file, parse};

/// Maximum duration of a client whose failure counts as a wrong use, and not as the network's. Chosen; longer counts
/// failures of the network too, shorter misses wrong options on a busy machine.
const MISUSE_TIME: Duration = Duration::from_millis(500);

/// All programs of a run: applications of flows, carriers of flows, and commands of `exec`.
///
/// Before time zero [`prepare`](Self::prepare) until it returns true; then [`step`](Self::step) at each
/// [`next_deadline`](Self::next_deadline), also after the end of the run, until [`is_done`](Self::is_done); then
/// [`finish`](Self::finish).
pub struct Programs {
    scenario: Arc<Scenario>,
    dir: PathBuf,
    /// Flows with programs, and their addresses at each receiver.
    flows: Vec<(FlowId, Vec<Ends>, Job)>,
    /// In the order of the scenario.
    execs: Vec<Job>,
    now: Instant,
    data_began: Option<Instant>,
}

/// Results of all programs.
#[derive(Debug, Default)]
pub struct Outcomes {
    /// The outcome of each flow whose application is a program.
    pub flows: Vec<FlowOutcome>,
    /// The outcome of each command of `exec`.
    pub execs: Vec<ExecOutcome>,
    /// The failures of programs that are the transport of another application, as messages.
    pub failures: Vec<(FlowId, String)>,
}

/// The result of a flow's program.
#[derive(Debug)]
pub struct FlowOutcome {
    /// The flow.
    pub flow: FlowId,
    /// Its measurement at each receiver, or the reason why there is none.
    pub measured: Vec<Result<Measurement, Error>>,
    /// A failure beside the measurement, as a message.
    pub note: Option<String>,
    /// Whether the programs failed by themselves: a missing measurement then says nothing about the network.
    pub failed: bool,
    /// The recording of a test picture.
    pub recording: Option<Recording>,
}

/// The recordings of a test picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The sender's: an MPEG transport stream.
    pub sent: PathBuf,
    /// The receiver's; the file may be absent or empty if nothing arrived.
    pub received: PathBuf,
    /// Frames per second.
    pub fps: u32,
}

impl Recording {
    /// Removes the files.
    pub fn remove(&self) {
        for path in [&self.sent, &self.received] {
            // A file may never have been made.
            let _ = fs::remove_file(path);
        }
    }
}

/// The result of a command of `exec`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecOutcome {
    /// Its name.
    pub name: String,
    /// Its exit status; `None` if a signal ended it, or if it was never started.
    pub exit: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether it ran until it was ended by a signal.
    pub was_signalled: bool,
    /// The deviation from the exit status that the scenario expects, as a message.
    pub failure: Option<String>,
}

impl Programs {
    /// The programs of `scenario`, which write into the folder `programs` of `dir`; `ends` has the addresses of each
    /// flow, for each of its receivers that has a server.
    ///
    /// # Errors
    /// A file that cannot be written, a program that is not installed, or programs that exclude each other.
    pub fn new(
        scenario: Arc<Scenario>,
        dir: &Path,
        ends: impl Fn(FlowId) -> Vec<Ends>,
    ) -> Result<Self, Error> {
        let dir = dir.join("programs");
        let (flows, execs, now) = (Vec::new(), Vec::new(), Instant::ZERO);
        let mut programs = Self { dir, flows, execs, now, data_began: None, scenario };
        let scenario = Arc::clone(&programs.scenario);
        let has_programs = |flow: &Flow| flow.is_over_program() || program_of(flow).is_some();
        if !scenario.flows.iter().any(has_programs) && scenario.execs.is_empty() {
            return Ok(programs);
        }
        fs::create_dir_all(&programs.dir).map_err(Error::file(&programs.dir))?;
        // Absolute, since programs may run in another directory.
        programs.dir = fs::canonicalize(&programs.dir).map_err(Error::file(&programs.dir))?;
        super::check(&scenario)?;
        for (number, flow) in scenario.flows.iter().enumerate().filter(|(_, flow)| has_programs(flow)) {
            let ends = ends(number);
            let job = programs.flow(number, flow, &ends)?;
            programs.flows.extend(job.map(|job| (number, ends, job)));
        }
        programs.execs = scenario.execs.iter().map(|exec| programs.exec(exec)).collect();
        Ok(programs)
    }

    /// Starts the servers of flows that begin with the run; returns whether all of them listen.
    pub fn prepare(&mut self, spawner: &mut dyn Spawner) -> bool {
        for (_, _, job) in &mut self.flows {
            job.step(Instant::ZERO, true, spawner);
        }
        self.flows.iter().all(|(_, _, job)| job.is_ready())
    }

    /// Starts and ends the programs that are due.
    pub fn step(&mut self, now: Instant, spawner: &mut dyn Spawner) {
        self.now = now;
        let jobs = self.flows.iter_mut().map(|(_, _, job)| job).chain(&mut self.execs);
        jobs.for_each(|job| job.step(now, false, spawner));
    }

    /// The time of the next step; `None` when all is over.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.jobs().fold(None, |first, job| earliest(first, job.deadline(self.now)))
    }

    /// Whether there are any.
    pub fn has_any(&self) -> bool {
        self.jobs().next().is_some()
    }

    /// Whether all programs have ended.
    pub fn is_done(&self) -> bool {
        self.jobs().all(Job::is_done)
    }

    /// Failures so far, as messages.
    pub fn failures(&self) -> impl Iterator<Item = &str> {
        self.jobs().filter_map(|job| job.failure.as_deref())
    }

    /// Notes when the first frame of a file to a group was sent: its programs find each other before.
    pub fn data_began(&mut self, at: Instant) {
        self.data_began = Some(at);
    }

    /// Reads the output of all programs, and ends those that still run.
    pub fn finish(self) -> Outcomes {
        let mut ended = Outcomes::default();
        for (flow, ends, job) in &self.flows {
            match program_of(&self.scenario.flows[*flow]) {
                Some(program) => ended.flows.push(self.outcome(*flow, program, ends, job)),
                None => ended.failures.extend(job.failure.clone().map(|failure| (*flow, failure))),
            }
        }
        let execs = self.scenario.execs.iter().zip(&self.execs);
        ended.execs = execs.filter_map(|(exec, job)| exec_outcome(exec, job, self.now)).collect();
        ended
    }

    fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.flows.iter().map(|(_, _, job)| job).chain(&self.execs)
    }

    /// The programs of a flow; `None` if it never starts.
    fn flow(&self, number: FlowId, flow: &Flow, receivers: &[Ends]) -> Result<Option<Job>, Error> {
        let Some(&ends) = receivers.first() else { return Ok(None) };
        let process = |line: CommandLine, node: NodeId, role: &str| {
            // Names have no dots, so a file of a flow is never one of `exec`.
            let output = self.dir.join(format!("{}.{role}", flow.name));
            Process::new(line, node, &self.scenario.nodes[node].name, output)
        };
        let mut servers = Vec::new();
        let receiver = flow.to[0];
        if let Some(ProgramPair { server, client }) = flow.transport_programs(ends.of_programs()) {
            for (command, node) in [(server, receiver), (client, flow.from)] {
                let role = command.program;
                servers.push(process(CommandLine::of_transport(command), node, role));
            }
        }
        let end = Instant::ZERO + self.scenario.duration;
        let Some(program) = program_of(flow) else {
            // Its application is a machine of ours, which programs carry as long as the run lasts.
            return Ok(Some(Job::new(Instant::ZERO, end, servers, None)));
        };
        let Some(task) = self.task(number, ends, receivers) else { return Ok(None) };
        match program {
            Program::Copy(copy) => copy::prepare(copy, &task)?,
            Program::GroupFile(file) => group_file::prepare(file, &task)?,
            _ => {}
        }
        // The client is the same for all of them.
        let Commands { client, .. } = commands(program, &task);
        for (&ends, &receiver) in receivers.iter().zip(&flow.to) {
            let role = match receivers {
                [_] => "server".to_owned(),
                _ => format!("server-{}", self.scenario.nodes[receiver].name),
            };
            let server = commands(program, &Task { ends: task_ends(flow, ends), ..task }).server;
            servers.extend(server.map(|server| process(server, receiver, &role)));
        }
        let client = process(client, flow.from, "client");
        Ok(Some(Job::new(task.start, task.stop, servers, Some(client))))
    }

    /// The task of a flow's program; `None` if it never starts.
    fn task<'t>(&'t self, number: FlowId, ends: Ends, receivers: &'t [Ends]) -> Option<Task<'t>> {
        let scenario = &self.scenario;
        let flow = &scenario.flows[number];
        let (start, stop) = span(scenario, number)?;
        Some(Task {
            flow: &flow.name,
            ends: task_ends(flow, ends),
            receivers,
            socket: flow.socket()?,
            start,
            stop,
            window: (scenario.measure.from, scenario.measure.to),
            step: scenario.measure.interval,
            dir: &self.dir,
        })
    }

    fn exec(&self, exec: &Exec) -> Job {
        let Exec { name, at, command, start, stop, stop_with, .. } = exec;
        let (program, arguments) =
            command.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
        let line =
            CommandLine { stop_with: *stop_with, ..CommandLine::new(program, arguments.iter().cloned()) };
        let client = Process::new(line, *at, &self.scenario.nodes[*at].name, self.dir.join(name));
        let end = Instant::ZERO + self.scenario.duration;
        Job::new(*start, stop.unwrap_or(end).min(end), Vec::new(), Some(client))
    }

    fn outcome(&self, flow: FlowId, program: &Program, receivers: &[Ends], job: &Job) -> FlowOutcome {
        let task = receivers.first().and_then(|&ends| self.task(flow, ends, receivers));
        let (Some(task), Some(end)) = (task, job.client_end(self.now)) else {
            let measured = receivers.iter().map(|_| Ok(Measurement::default())).collect();
            return FlowOutcome { flow, measured, note: None, failed: false, recording: None };
        };
        let (more, recording) = match program {
            Program::Copy(copy) => (vec![copy::inspect(copy, &task)], None),
            Program::Ffmpeg(picture) => {
                let (sent, received) = (ffmpeg::sent(&task), ffmpeg::received(&task));
                (ffmpeg::inspect(&task), Some(Recording { sent, received, fps: picture.fps }))
            }
            // Of a file to a group there is one at each member.
            Program::Iperf3(_)
            | Program::Iperf2(_)
            | Program::Nuttcp(_)
            | Program::Ping(_)
            | Program::GroupFile(_) => (Vec::new(), None),
        };
        let (started, ended) = end.span;
        let started_wall = end.started_wall;
        let [client, client_errors] = job.written_by_client();
        let data_began = self.data_began.map(seconds);
        let mut outputs = Outputs {
            client,
            client_errors,
            more,
            started,
            started_wall,
            ended,
            data_began,
            ..Outputs::default()
        };
        let failed = !end.was_signalled && end.exit != Some(0);
        let failure = job.failure.clone().or_else(|| failed.then_some(end.words));
        let of_flow = &self.scenario.flows[flow];
        let measured = receivers.iter().zip((0..receivers.len()).rev()).map(|(&ends, from_last)| {
            [outputs.server, outputs.server_errors] = job.written_by_server(from_last);
            // The measurement of a failed program is kept, with the failure as a note.
            let task = Task { ends: task_ends(of_flow, ends), ..task };
            if let Program::GroupFile(_) = program {
                outputs.more = vec![group_file::inspect(&task)];
            }
            let measured = parse(program, &task, &outputs);
            measured.map_err(|error| job.failure.clone().map_or(error, Error::Failed))
        });
        let measured: Vec<_> = measured.collect();
        if let Program::GroupFile(_) = program {
            group_file::clean_up(&task);
        }
        // A failure caused by the network takes longer.
        let at_once = failed && measured.iter().all(Result::is_err) && end.ran < MISUSE_TIME;
        FlowOutcome { flow, measured, note: failure, failed: job.failure.is_some() || at_once, recording }
    }
}

/// The addresses of a flow as its application sees them.
fn task_ends(flow: &Flow, ends: Ends) -> Ends {
    if flow.is_over_program() { ends.behind_program() } else { ends }
}

/// The program that is a flow's application.
pub(super) fn program_of(flow: &Flow) -> Option<&Program> {
    match &flow.app {
        App::Program { program, .. } => Some(program),
        _ => None,
    }
}

/// Start and stop of a flow's application, by its options and by events; `None` if it never starts.
pub(super) fn span(scenario: &Scenario, number: FlowId) -> Option<(Instant, Instant)> {
    let span = scenario.flows[number].app.span();
    let end = Instant::ZERO + scenario.duration;
    let at = |wanted: &Action, after: Instant| {
        scenario
            .events
            .iter()
            .find(|event| event.at >= after && event.action == *wanted)
            .map(|event| event.at)
    };
    let start =
        earliest(span.start, at(&Action::Start(number), Instant::ZERO)).filter(|start| *start < end)?;
    let stop = earliest(span.stop, at(&Action::Stop(number), start)).unwrap_or(end).min(end);
    (start < stop).then_some((start, stop))
}

fn exec_outcome(exec: &Exec, job: &Job, now: Instant) -> Option<ExecOutcome> {
    let end = job.client_end(now)?;
    let wrong = exec.expect.filter(|expected| end.exit != Some(i32::from(*expected)));
    let failure = job.failure.clone().or_else(|| {
        Some(format!("exec `{}`: expected exit status {}, but {}", exec.name, wrong?, end.words))
    });
    let (name, was_signalled) = (exec.name.clone(), end.was_signalled);
    Some(ExecOutcome { name, exit: end.exit, signal: end.signal, was_signalled, failure })
}
