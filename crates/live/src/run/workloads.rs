//! The real programs of a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time;

use hopcast_core::{Duration, Instant};
use hopcast_twin::collect::{LiveObservations, ProgramResult};
use hopcast_twin::results::{Figures, FramePictures};
use hopcast_twin::scenario::model::{NodeId, Scenario};

use super::ends::ends;
use super::error::Error;
use crate::lab::Lab;
use crate::programs::{
    self, ChildProcess, CommandLine, FlowOutcome, FramePair, Measurement, Programs, Recording, Running,
    Spawner, pictures,
};

/// Maximum time until all servers listen. Chosen; less fails on a busy machine, more delays the error of a server that
/// never listens.
const LISTEN_TIMEOUT: time::Duration = time::Duration::from_secs(10);
/// Time between two checks of whether servers listen. Chosen; shorter takes processor time from the programs that
/// start, longer delays the run.
const POLL_INTERVAL: time::Duration = time::Duration::from_millis(20);

/// Times of the frames of a video that the report shows, as shares of the measurement window. Chosen: its beginning,
/// middle and end; more make the report larger.
const SHOWN_FRAMES: [f64; 3] = [0.2, 0.5, 0.8];
/// Width of these frames, in pixels. Chosen; larger pictures reach the page's limit sooner, smaller ones hide damage.
const FRAME_WIDTH: u32 = 320;

pub(super) struct Workloads {
    programs: Programs,
    /// Directory for their output.
    dir: PathBuf,
}

/// Starts programs in the namespaces of a lab.
struct InLab<'l>(&'l Lab);

impl Spawner for InLab<'_> {
    fn spawn(
        &mut self,
        node: usize,
        line: &CommandLine,
        output: &Path,
    ) -> Result<Box<dyn Running>, programs::Error> {
        let mut command = self.0.command(node, &line.program);
        line.apply_to(&mut command, output)?;
        let child = self.0.start(command).map_err(|error| match error.kind() {
            // The started process is not the program, but `setpriv`, which enters the node for it.
            std::io::ErrorKind::NotFound => programs::Error::NoSetpriv,
            _ => programs::Error::start(&line.program, error),
        })?;
        Ok(Box::new(ChildProcess::new(child)))
    }
}

impl Workloads {
    /// The programs of a scenario, which write into `dir`.
    pub(super) fn new(scenario: &Arc<Scenario>, dir: &Path) -> Result<Self, Error> {
        let ends =
            (0..scenario.flows.len()).map(|flow| ends(scenario, flow)).collect::<Result<Vec<_>, _>>()?;
        let programs = Programs::new(scenario.clone(), dir, |flow| ends[flow].clone())?;
        Ok(Self { programs, dir: dir.to_owned() })
    }

    /// Starts the servers, and waits until they listen.
    pub(super) fn prepare(&mut self, lab: &Lab) -> Result<(), Error> {
        let mut waited = time::Duration::ZERO;
        while !self.programs.prepare(&mut InLab(lab)) {
            self.failure()?;
            if waited > LISTEN_TIMEOUT {
                return Err(Error::ServerSilent(LISTEN_TIMEOUT.as_secs()));
            }
            #[allow(clippy::disallowed_methods)] // real programs take real time
            std::thread::sleep(POLL_INTERVAL);
            waited += POLL_INTERVAL;
        }
        self.failure()
    }

    fn failure(&self) -> Result<(), Error> {
        let first = self.programs.failures().next();
        first.map_or(Ok(()), |failure| Err(Error::ProgramFailed(failure.to_owned())))
    }

    pub(super) fn step(&mut self, now: Instant, lab: &Lab) {
        self.programs.step(now, &mut InLab(lab));
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.programs.next_deadline()
    }

    /// Whether there are programs.
    pub(super) fn has_programs(&self) -> bool {
        self.programs.has_any()
    }

    pub(super) fn is_done(&self) -> bool {
        self.programs.is_done()
    }

    /// Adds the measurements and failures of the programs to `observed`; a file to a group began at `data_began`.
    pub(super) fn finish(
        self,
        scenario: &Scenario,
        data_began: Option<Instant>,
        observed: &mut LiveObservations,
    ) {
        let Self { mut programs, dir } = self;
        if let Some(at) = data_began {
            programs.data_began(at);
        }
        let ended = programs.finish();
        let step = scenario.measure.interval;
        let steps = (scenario.duration.as_nanos() / step.as_nanos().max(1)) as usize;
        let (outcomes, failures) = (&mut observed.live.programs, &mut observed.live.failed_programs);
        for FlowOutcome { flow, measured, note, failed, recording } in ended.flows {
            let name = &scenario.flows[flow].name;
            // A program whose packets did not arrive has measured zero; one that never started has measured nothing.
            let has_figures = !failed || measured.iter().any(Result::is_ok);
            let mut why = None;
            let (to, one) = (&scenario.flows[flow].to, measured.len() == 1);
            let of_receiver = |(measured, &node): (Result<Measurement, programs::Error>, &NodeId)| {
                measured.unwrap_or_else(|error| {
                    let at = if one { String::new() } else { format!("{}: ", scenario.nodes[node].name) };
                    why.get_or_insert(format!("{at}{error}"));
                    Measurement::default()
                })
            };
            let receivers: Vec<Measurement> = measured.into_iter().zip(to).map(of_receiver).collect();
            *failures += u64::from(failed);
            if let Some(note) = why.or(note) {
                outcomes.insert(name.clone(), note);
            }
            if let Some(recording) = recording {
                let from = scenario.flows[flow].app.span().start.unwrap_or_default();
                let (from, to) = (scenario.measure.from.since(from), scenario.measure.to.since(from));
                let times = SHOWN_FRAMES
                    .map(|share| from.as_secs_f64() + (to.as_secs_f64() - from.as_secs_f64()) * share);
                match frames(&recording, &times, name, &dir) {
                    Ok(frames) => observed.live.pictures.extend(frames),
                    Err(error) => drop(outcomes.insert(format!("{name}, its frames"), error.to_string())),
                }
                recording.remove();
            }
            let window = (scenario.measure.from, scenario.measure.to);
            let figures = |measured: &Measurement| {
                if has_figures { measured.figures(window) } else { Figures::default() }
            };
            let measured = Measurement::together(&receivers);
            observed.programs.push(ProgramResult {
                flow,
                figures: figures(&measured),
                receivers: receivers.iter().map(figures).collect(),
                completed: completed(&measured),
                series: measured.series(step, steps),
                latency: measured.curves(name),
                counters: measured.counters,
            });
        }
        for exec in ended.execs {
            if exec.failure.is_none() && (exec.was_signalled || exec.exit == Some(0)) {
                continue;
            }
            let went = match (exec.exit, exec.signal) {
                (Some(status), _) => format!("ended with exit status {status}"),
                (None, Some(signal)) => format!("was ended by signal {signal}"),
                (None, None) => "never ran".to_owned(),
            };
            *failures += u64::from(exec.failure.is_some());
            outcomes.insert(exec.name, exec.failure.unwrap_or(went));
        }
        for (flow, failure) in ended.failures {
            *failures += 1;
            outcomes.insert(scenario.flows[flow].name.clone(), failure);
        }
    }
}

/// Writes frames of a video into the run's folder of the run directory, and returns their paths below that directory.
fn frames(
    recording: &Recording,
    times: &[f64],
    flow: &str,
    dir: &Path,
) -> Result<Vec<FramePictures>, programs::Error> {
    let folder = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let write = |number: u64, what: &str, png: &[u8]| {
        let name = format!("{flow}-{number}-{what}.png");
        let path = dir.join(&name);
        fs::write(&path, png).map_err(|source| programs::Error::File { path, source })?;
        Ok::<_, programs::Error>(format!("{folder}/{name}"))
    };
    let mut frames = Vec::new();
    for FramePair { number, sent, received } in pictures(recording, times, FRAME_WIDTH)? {
        let sent = write(number, "sent", &sent)?;
        let received = received.map(|png| write(number, "received", &png)).transpose()?;
        frames.push(FramePictures { flow: flow.to_owned(), number, sent, received });
    }
    Ok(frames)
}

/// The time at which the last receiver had all of a file.
fn completed(measured: &Measurement) -> Option<Instant> {
    measured.completed_s?;
    measured.lasted.map(|(_, to)| Instant::ZERO + Duration::from_secs_f64(to.max(0.0)))
}
