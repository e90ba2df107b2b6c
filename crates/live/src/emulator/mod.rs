//! The links of a live run: the same models as in virtual time, between the TAPs of a [`Lab`].
//!
//! A thread owns whole links. It takes the frames that nodes send as they come, offers them to the link's model with
//! the time at which it took them, and hands over what the model delivers. The model decides at exact times whatever
//! the machine is doing: rates, losses and delays are those of the model, and being late changes only when a frame is
//! handed over. How late that was is measured, and so is everything that the kernel drops by itself; see [`Truth`].

mod error;
mod figures;
mod wired;
mod worker;

use std::num::NonZeroUsize;
use std::sync::mpsc;
use std::thread::JoinHandle;

use hopcast_core::Duration;
use hopcast_node::Clock;
use hopcast_node::runtime::Stop;

pub use error::Error;
pub use figures::{DirectionReport, EmulatorReport, LATE, Truth};
pub use wired::Readings;

use crate::capture::Recorder;
use crate::lab::{KernelDrops, Lab};
use crate::layout::{LinkChange, LinkLayout, Scheduled};
use crate::punctual::{Awake, be_punctual};
use figures::Tally;
pub(crate) use wired::LONGEST;
use wired::{Changes, Wired};
use worker::{Left, Worker};

/// How to run links.
#[derive(Default)]
pub struct Options {
    /// How many threads share the links; `None` for as many as there are processors. More than links are of no use.
    pub threads: Option<NonZeroUsize>,
    /// When their figures are read.
    pub readings: Readings,
    /// Where to hand what passes the interfaces that the links say are captured.
    pub capture: Option<Recorder>,
}

/// Links in motion.
pub struct Emulator {
    threads: Vec<JoinHandle<Result<Left, Error>>>,
    stop: Stop,
    before: Vec<KernelDrops>,
    _awake: Awake,
}

impl Emulator {
    /// Sets `links` in motion, between the interfaces that `lab` has for them. Frames that were sent before are
    /// forgotten. Until the clock has reached its zero, time stands still for them: frames are taken, and are under
    /// way.
    ///
    /// # Errors
    /// A lab for other links, or no thread to be had.
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
        let mut emulator = Self { threads: Vec::new(), stop, before, _awake: Awake::keep() };

        let mut of_link: Vec<Changes> = links.iter().map(|_| Vec::new()).collect();
        for Scheduled { at, what: LinkChange { link, from, change } } in changes {
            of_link[link].push(Scheduled { at, what: (from, change) });
        }
        let mut wired = links.into_iter().zip(taps).zip(of_link).enumerate();
        let mut wired = wired.by_ref().map(|(number, ((link, taps), changes))| {
            Wired::new(number, link, taps, changes, options.readings, options.capture.clone())
        });
        let processors = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let (count, threads) = (wired.len(), options.threads.unwrap_or(processors).get());
        let threads = threads.min(count);
        let mut buffer = vec![0; LONGEST];
        for number in 0..threads {
            // Neighbours in the file are neighbours in the network, more often than not: a frame stays with its thread.
            let share = (number + 1) * count / threads - number * count / threads;
            let links: Vec<_> = wired.by_ref().take(share).collect();
            links.iter().for_each(|link| link.empty(&mut buffer));
            emulator.spawn(number, links, clock)?;
        }
        Ok(emulator)
    }

    fn spawn(&mut self, number: usize, links: Vec<Wired>, clock: Clock) -> Result<(), Error> {
        let worker = Worker::new(links, &self.stop, clock).map_err(Error::Start)?;
        let (prepared, ready) = mpsc::channel();
        let thread = std::thread::Builder::new().name(format!("links-{number}")).spawn(move || {
            be_punctual();
            drop(prepared);
            worker.run().map_err(Error::Stopped)
        });
        self.threads.push(thread.map_err(Error::Start)?);
        let _: Result<(), _> = ready.recv();
        Ok(())
    }

    /// Stops the links, and reports what they carried and whether that is valid.
    ///
    /// # Errors
    /// The reason, if they had stopped by themselves.
    pub fn finish(mut self, lab: &Lab) -> Result<EmulatorReport, Error> {
        // As long as the interfaces are there: they go with the links.
        let after = lab.kernel_drops()?;
        let left = self.stop()?;
        let mut tally = Tally::new();
        let mut links = Vec::new();
        let mut processor: Vec<Duration> = Vec::new();
        for part in left {
            tally.add(&part.tally);
            links.extend(part.links);
            processor.push(part.processor);
        }
        links.sort_by_key(|&(number, _)| number);
        let dropped = |figure: fn(&KernelDrops) -> u64| -> u64 {
            let pairs = self.before.iter().zip(&after);
            pairs.map(|(before, after)| figure(after).saturating_sub(figure(before))).sum()
        };
        let unseen = dropped(|drops| drops.to_link.iter().sum());
        let truth = tally.truth(unseen, dropped(|drops| drops.socket_full));
        let verdict = truth.verdict();
        let links = links.into_iter().map(|(_, directions)| directions).collect();
        Ok(EmulatorReport { links, truth, processor, verdict })
    }

    fn stop(&mut self) -> Result<Vec<Left>, Error> {
        self.stop.pull();
        let threads = std::mem::take(&mut self.threads);
        let left: Vec<_> = threads.into_iter().map(JoinHandle::join).collect();
        left.into_iter().map(|left| left.unwrap_or(Err(Error::Panicked))).collect()
    }
}

/// Stops the links.
impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
