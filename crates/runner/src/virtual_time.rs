//! One run in virtual time, with its capture and its log.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;

use hopcast_trace::Recorder;
use hopcast_twin::capture::PcapngWriter;
use hopcast_twin::results::Run;
use hopcast_twin::{Monitor, World};

use crate::error::RunError;
use crate::log_file::LogFile;
use crate::run::{Executor, Job};

/// The virtual-time world.
pub struct VirtualTime;

impl Executor for VirtualTime {
    fn run(&self, job: &Job<'_>, monitor: &Monitor) -> Result<Option<Run>, RunError> {
        let Job { case, repeat, bounds, .. } = *job;
        let path = job.capture.as_deref();
        let writing = |error: io::Error| unwritable(path.unwrap_or(Path::new("")), error);
        let file = path.map(File::create).transpose().map_err(writing)?;
        let capture = file.map(|file| PcapngWriter::new(Box::new(BufWriter::new(file))));
        let mut world = World::new(case.scenario.clone(), repeat, capture.transpose().map_err(writing)?)?;
        let log = job.record.as_ref().map(|(log, _)| &**log);
        if let Some((log, max_size)) = &job.record {
            let file = LogFile::create(log).map_err(|error| unwritable(log, error))?;
            world.record(Recorder::new(Box::new(file), *max_size));
        }
        let finished = world.run_to_end(case, repeat, bounds, monitor);
        let run = finished.map_err(|error| unwritable(log.or(path).unwrap_or(Path::new("")), error))?;
        for path in [path, log].into_iter().flatten().filter(|_| run.is_none()) {
            fs::remove_file(path).map_err(|error| unwritable(path, error))?;
        }
        Ok(run)
    }
}

fn unwritable(path: &Path, error: io::Error) -> RunError {
    RunError::Capture { path: path.to_owned(), error }
}
