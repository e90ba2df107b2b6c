//! One thread of the emulator, with the links that it owns.

use std::io;
use std::os::fd::OwnedFd;

use hopcast_core::{Duration, Instant};
use hopcast_link::Attachment;
use hopcast_node::Clock;
use hopcast_node::runtime::Stop;
use rustix::event::{Timespec, epoll};
use rustix::time::{ClockId, clock_gettime};

use super::figures::Tally;
use super::link::{EmulatedLink, FinishedLink};
use super::waking::Waking;
use crate::layout::MAX_FRAME;

/// Maximum number of frames taken from one interface before the others get their turn. A frame takes one or two
/// microseconds, so that a delivery that falls due meanwhile is less than 0.1 ms late. Chosen; fewer cost more system
/// calls.
const BATCH: usize = 32;

/// Time between two reads of a busy thread from its interfaces. A wake-up costs as much as a few frames, and frames
/// that arrive in between are handled together, as if they had arrived in the middle. Longer changes the delay of
/// links, which must be exact to 200 µs for 99 % of frames; shorter takes processor time from the programs: at 100 µs,
/// seven nodes on two processors carried a tenth less (measured).
const PAUSE: Duration = Duration::from_micros(140);

/// Maximum sum of pauses that an idle thread may skip later, so that single frames never wait. Chosen: a round trip
/// over a dozen links; more keeps an idle machine busy for longer.
const MAX_SKIPPED_PAUSES: Duration = Duration::from_nanos(PAUSE.as_nanos() * 32);

/// Key of the event that stops the thread.
const STOP_EVENT: u64 = u64::MAX;

/// A thread's links, and the epoll instance with which it waits for all of them.
pub(super) struct Worker {
    links: Vec<EmulatedLink>,
    /// For each event key, the link and the attachment.
    ports: Vec<(usize, Attachment)>,
    epoll: OwnedFd,
    clock: Clock,
    waking: Waking,
    /// Time up to which all due events have been carried out.
    done: Instant,
    tally: Tally,
}

/// Results of a thread.
pub(super) struct WorkerReport {
    pub(super) links: Vec<FinishedLink>,
    pub(super) tally: Tally,
    pub(super) processor: Duration,
}

impl Worker {
    /// A worker that runs `links` until `stop` is requested.
    pub(super) fn new(links: Vec<EmulatedLink>, stop: &Stop, clock: Clock) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, stop.as_fd(), epoll::EventData::new_u64(STOP_EVENT), epoll::EventFlags::IN)?;
        let mut ports = Vec::new();
        for (number, link) in links.iter().enumerate() {
            for (attachment, tap) in link.taps().iter().enumerate() {
                let data = epoll::EventData::new_u64(ports.len() as u64);
                epoll::add(&epoll, tap, data, epoll::EventFlags::IN)?;
                ports.push((number, attachment));
            }
        }
        let (waking, tally) = (Waking::default(), Tally::new());
        Ok(Self { links, ports, epoll, clock, waking, done: Instant::ZERO, tally })
    }

    /// Runs until it is stopped.
    pub(super) fn run(mut self) -> io::Result<WorkerReport> {
        let mut buffer = vec![0; MAX_FRAME];
        let mut ready = Vec::with_capacity(self.ports.len() + 1);
        let mut looked = self.clock.now();
        let mut saved = MAX_SKIPPED_PAUSES;
        loop {
            self.catch_up();
            let now = self.clock.now();
            self.tally.gap(now.since(looked));
            let next = self.links.iter().filter_map(EmulatedLink::deadline).min();
            self.waking.looks_ahead_to(next);
            let rested = self.rest(now, PAUSE.saturating_sub(saved + now.since(looked)));
            let before = looked;
            looked = self.wait(rested, next, &mut ready)?;
            saved = (saved + looked.since(before)).saturating_sub(PAUSE).min(MAX_SKIPPED_PAUSES);
            let came = self.came(rested, looked);
            for event in ready.drain(..) {
                match event.data.u64() {
                    STOP_EVENT => return Ok(self.leave()),
                    port => self.fetch(port as usize, came, &mut buffer),
                }
            }
        }
    }

    fn catch_up(&mut self) {
        self.done = self.clock.now();
        for link in &mut self.links {
            link.catch_up(self.done, self.clock, &mut self.tally);
        }
    }

    /// Arrival time of frames found after a wait from `asked` to `woken`. If the thread slept, they have woken it;
    /// otherwise they arrived before, and the middle of the time since the last read is taken. A frame that is dated
    /// too early leaves too early, so a thread that was kept from its processor dates frames no further back than
    /// usual.
    fn came(&self, asked: Instant, woken: Instant) -> Instant {
        let slept = woken.since(asked) > self.waking.takes() + Waking::MAX_AWAKE_WAIT;
        let waited = if slept { self.waking.takes() } else { woken.since(self.done) / 2 };
        let came = woken - waited.min(PAUSE / 2);
        came.max(self.done)
    }

    /// Sleeps for `span`, and returns the end.
    fn rest(&mut self, now: Instant, span: Duration) -> Instant {
        let asleep = span.saturating_sub(self.waking.takes());
        if asleep.is_zero() || self.waking.is_awake() {
            return now;
        }
        let _ = rustix::thread::nanosleep(&timespec(asleep));
        let woken = self.clock.now();
        let late = woken.since(now + asleep);
        self.tally.gap(late);
        self.waking.took(late);
        woken
    }

    /// Waits until an interface is readable or the deadline `next` is near, and returns that time.
    fn wait(
        &mut self,
        now: Instant,
        next: Option<Instant>,
        ready: &mut Vec<epoll::Event>,
    ) -> io::Result<Instant> {
        let asleep = next.map(|at| self.waking.sleep(self.clock.until(at)));
        let timeout = asleep.map(timespec);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(ready), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let woken = self.clock.now();
        let late = asleep.map(|asleep| woken.since(now + asleep)).unwrap_or_default();
        self.tally.gap(late);
        self.waking.woke(late, next.filter(|_| ready.is_empty()).map(|at| at.since(woken)));
        Ok(woken)
    }

    /// Reads frames of an interface as if they had arrived at `came`.
    fn fetch(&mut self, port: usize, came: Instant, buffer: &mut [u8]) {
        let (link, attachment) = self.ports[port];
        let link = &mut self.links[link];
        link.catch_up(came, self.clock, &mut self.tally);
        link.fetch(attachment, BATCH, (came, self.clock), buffer);
        link.drain(came, self.clock, &mut self.tally);
    }

    fn leave(self) -> WorkerReport {
        let now = self.clock.now();
        let links = self.links.into_iter().map(|link| link.finish(now)).collect();
        let processor = clock_gettime(ClockId::ThreadCPUTime);
        let processor =
            Duration::from_secs(processor.tv_sec as u64) + Duration::from_nanos(processor.tv_nsec as u64);
        WorkerReport { links, tally: self.tally, processor }
    }
}

fn timespec(span: Duration) -> Timespec {
    let nanos = span.as_nanos();
    Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 }
}
