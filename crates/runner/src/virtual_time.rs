//! One run in virtual time, with its capture.

use std::fs::{self, File};
use std::io::{self, BufWriter};

use hopcast_twin::capture::PcapngWriter;
use hopcast_twin::results::Run;
use hopcast_twin::{Monitor, World};

use crate::error::RunError;
use crate::run::{Executor, Job};

/// The virtual-time world.
pub struct VirtualTime;

impl Executor for VirtualTime {
    fn run(&self, job: &Job<'_>, monitor: &Monitor) -> Result<Option<Run>, RunError> {
        let Job { case, repeat, bounds, .. } = *job;
        let path = job.capture.as_deref();
        let writing = |error: io::Error| {
            let path = path.map(ToOwned::to_owned).unwrap_or_default();
            RunError::Capture { path, error }
        };
        let file = path.map(File::create).transpose().map_err(writing)?;
        let capture = file.map(|file| PcapngWriter::new(Box::new(BufWriter::new(file))));
        let world = World::new(case.scenario.clone(), repeat, capture.transpose().map_err(writing)?)?;
        let run = world.run_to_end(case, repeat, bounds, monitor).map_err(writing)?;
        if let (None, Some(path)) = (&run, path) {
            fs::remove_file(path).map_err(writing)?;
        }
        Ok(run)
    }
}
