//! The links of a live run: the same models as in virtual time, between the TAPs of a [`Lab`].
//!
//! A thread owns whole links. It reads the frames that nodes send, offers each to the link's model with the time of the
//! read, and delivers the frames that the model delivers. The model decides at exact times, however busy the machine
//! is: rates, losses and delays are those of the model, and lateness changes only the time of a delivery. Lateness is
//! measured, and so are the drops of the kernel; see [`Fidelity`].

mod error;
mod figures;
mod link;
mod transfer;
mod waking;
mod worker;

use std::num::NonZeroUsize;
use std::sync::mpsc;
use std::thread::JoinHandle;

use hopcast_core::{Duration, earliest};
use hopcast_node::Clock;
use hopcast_node::runtime::Stop;

pub use error::Error;
pub use figures::{DirectionReport, EmulatorReport, Fidelity, MAX_LATENESS};
pub use link::Readings;
pub use transfer::{Transfer, TransferReport};

use crate::capture::Recorder;
use crate::lab::{KernelDrops, Lab};
use crate::layout::{LinkChange, LinkLayout, MAX_FRAME, Scheduled};
use crate::wakeups::{KeepAwake, request_timely_wakeups};
use figures::Tally;
use link::{Changes, EmulatedLink};
use worker::{Worker, WorkerReport};

/// Options of the emulation.
#[derive(Default)]
pub struct Options {
    /// Number of threads that share the links; `None` for one for each processor. There are never more threads than
    /// links.
    pub threads: Option<NonZeroUsize>,
    /// Times at which counters are read.
    pub readings: Readings,
    /// Receiver of what happens to frames at interfaces that are captured or recorded.
    pub capture: Option<Recorder>,
    /// Whether the kernels' reports of memberships are left out: routers know the members already, and links then carry
    /// the same frames as in virtual time.
    pub without_reports: bool,
    /// The transfer whose traffic is reported.
    pub transfer: Option<Transfer>,
}

/// Running links.
pub struct Emulator {
    threads: Vec<JoinHandle<Result<WorkerReport, Error>>>,
    stop: Stop,
    before: Vec<KernelDrops>,
    _keep_awake: KeepAwake,
}

impl Emulator {
    /// Starts `links` between the interfaces that `lab` has for them. Frames sent before are discarded. Until the clock
    /// has reached its zero, time stands still: frames are read, but none is delivered.
    ///
    /// # Errors
    /// A lab for another number of links, or a thread that cannot be started.
    pub fn start(
        lab: &mut Lab,
        links: Vec<LinkLayout>,
        changes: Vec<Scheduled<LinkChange>>,
        clock: Clock,
        options: Options,
    ) -> Result<Self, Error> {
        let taps = lab.take_taps();
        if taps.len() != links.len() {
            return Err(Error::Interfaces { found: taps.len(), expected: links.len() });
        }
        let before = lab.kernel_drops()?;
        let stop = Stop::new().map_err(Error::Start)?;
        let mut emulator = Self { threads: Vec::new(), stop, before, _keep_awake: KeepAwake::keep() };

        let mut of_link: Vec<Changes> = links.iter().map(|_| Vec::new()).collect();
        for Scheduled { at, what: LinkChange { link, from, change } } in changes {
            of_link[link].push(Scheduled { at, what: (from, change) });
        }
        let mut emulated = links.into_iter().zip(taps).zip(of_link).enumerate();
        let mut emulated = emulated.by_ref().map(|(number, ((link, taps), changes))| {
            let recorder = options.capture.clone();
            EmulatedLink::new((number, link), taps, changes, options.readings, recorder)
                .without_reports(options.without_reports)
                .metering(options.transfer)
        });
        let processors = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let (count, threads) = (emulated.len(), options.threads.unwrap_or(processors).get());
        let threads = threads.min(count);
        let mut buffer = vec![0; MAX_FRAME];
        for number in 0..threads {
            // Links next to each other in the file are mostly next to each other in the network: their frames stay on
            // one thread.
            let share = (number + 1) * count / threads - number * count / threads;
            let links: Vec<_> = emulated.by_ref().take(share).collect();
            links.iter().for_each(|link| link.discard_pending(&mut buffer));
            emulator.spawn(number, links, clock)?;
        }
        Ok(emulator)
    }

    fn spawn(&mut self, number: usize, links: Vec<EmulatedLink>, clock: Clock) -> Result<(), Error> {
        let worker = Worker::new(links, &self.stop, clock).map_err(Error::Start)?;
        let (prepared, ready) = mpsc::channel();
        let thread = std::thread::Builder::new().name(format!("links-{number}")).spawn(move || {
            request_timely_wakeups();
            drop(prepared);
            worker.run().map_err(Error::Stopped)
        });
        self.threads.push(thread.map_err(Error::Start)?);
        let _: Result<(), _> = ready.recv();
        Ok(())
    }

    /// Stops the links, and reports their traffic and whether it is valid.
    ///
    /// # Errors
    /// The reason, if they had stopped by themselves.
    pub fn finish(mut self, lab: &Lab) -> Result<EmulatorReport, Error> {
        // Read while the interfaces exist: they go with the links.
        let after = lab.kernel_drops()?;
        let reports = self.stop()?;
        let mut tally = Tally::new();
        let mut links = Vec::new();
        let mut transfer = TransferReport::default();
        let mut processor: Vec<Duration> = Vec::new();
        for part in reports {
            tally.add(&part.tally);
            for (number, directions, meter) in part.links {
                links.push((number, directions));
                if let Some(meter) = meter {
                    transfer.began = earliest(transfer.began, meter.began);
                    transfer.sent.links.push(meter.sent);
                }
            }
            processor.push(part.processor);
        }
        links.sort_by_key(|&(number, _)| number);
        let dropped = |figure: fn(&KernelDrops) -> u64| -> u64 {
            let pairs = self.before.iter().zip(&after);
            pairs.map(|(before, after)| figure(after).saturating_sub(figure(before))).sum()
        };
        let unseen = dropped(|drops| drops.to_link.iter().sum());
        let fidelity = tally.fidelity(unseen, dropped(|drops| drops.socket_full));
        let verdict = fidelity.verdict();
        let links = links.into_iter().map(|(_, directions)| directions).collect();
        Ok(EmulatorReport { links, fidelity, processor, verdict, transfer })
    }

    fn stop(&mut self) -> Result<Vec<WorkerReport>, Error> {
        self.stop.request();
        let threads = std::mem::take(&mut self.threads);
        let reports: Vec<_> = threads.into_iter().map(JoinHandle::join).collect();
        reports.into_iter().map(|report| report.unwrap_or(Err(Error::Panicked))).collect()
    }
}

/// Stops the links.
impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
