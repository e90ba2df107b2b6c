//! The capture of a live run: threads hand over what they saw, and one thread writes it down.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use hopcast_core::{Buffer, Instant};
use hopcast_link::{Attachment, Event};
use hopcast_twin::capture::{Capture, InterfaceId};

/// What may wait to be written, in bytes. More means that the disk is slower than the network.
const BACKLOG: usize = 256 << 20;

/// A capture being written.
pub(super) struct Tape {
    recorder: Recorder,
    writer: JoinHandle<Result<(), String>>,
}

/// A thread's way to the capture.
#[derive(Clone)]
pub(super) struct Recorder {
    batches: Sender<Vec<Record>>,
    waiting: Arc<AtomicUsize>,
}

/// Something that is written down.
pub(super) struct Record {
    at: Instant,
    link: usize,
    what: What,
}

enum What {
    Sent(Attachment, Buffer),
    Received(Attachment, Buffer),
    Dropped(Attachment, Buffer, String),
}

impl Record {
    /// What is written down of an event at an attachment that is captured.
    pub(super) fn of(
        at: Instant,
        link: usize,
        name: &str,
        event: &Event,
        captured: impl Fn(Attachment) -> bool,
    ) -> Option<Self> {
        let (end, what) = match event {
            Event::Sent { from, frame } => (from, What::Sent(*from, frame.clone())),
            Event::Delivered { to, frame, .. } if captured(*to) => (to, What::Received(*to, frame.clone())),
            Event::Delivered { .. } => return None,
            Event::Dropped { from, to, frame, reason } => {
                let place = if to.is_some() { "on" } else { "before" };
                (from, What::Dropped(*from, frame.clone(), format!("dropped {place} {name}: {reason}")))
            }
        };
        captured(*end).then_some(Self { at, link, what })
    }

    fn size(&self) -> usize {
        let (What::Sent(_, frame) | What::Received(_, frame) | What::Dropped(_, frame, _)) = &self.what;
        frame.len() + Buffer::HEADROOM + size_of::<Self>()
    }
}

impl Recorder {
    /// Hands over what one link saw, in order.
    pub(super) fn record(&self, batch: Vec<Record>) {
        let size = batch.iter().map(Record::size).sum::<usize>();
        // Once it is full nothing more is written: a capture with a hole would lie.
        if self.waiting.load(Ordering::Relaxed) < BACKLOG
            && self.waiting.fetch_add(size, Ordering::Relaxed) < BACKLOG
        {
            let _ = self.batches.send(batch);
        } else {
            self.waiting.fetch_add(BACKLOG, Ordering::Relaxed);
        }
    }
}

impl Tape {
    /// Begins a capture; `interfaces` are the names of each link's attachments, where they are captured.
    pub(super) fn start(
        into: Box<dyn Write + Send>,
        interfaces: Vec<Vec<Option<String>>>,
    ) -> Result<Self, String> {
        let (batches, inbox) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let read = waiting.clone();
        let writer = std::thread::Builder::new()
            .name("capture".to_owned())
            .spawn(move || write_all(into, &interfaces, &inbox, &read))
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Self { recorder: Recorder { batches, waiting }, writer })
    }

    pub(super) fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// Writes the rest, once all other recorders are gone.
    ///
    /// # Errors
    /// One line, if not all of it could be written.
    pub(super) fn finish(self) -> Result<(), String> {
        let Self { recorder, writer } = self;
        drop(recorder);
        writer.join().unwrap_or_else(|_| Err("the thread that writes the capture panicked".to_owned()))
    }
}

fn write_all(
    into: Box<dyn Write>,
    interfaces: &[Vec<Option<String>>],
    inbox: &Receiver<Vec<Record>>,
    waiting: &AtomicUsize,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("capture: {error}");
    let mut capture = Capture::new(into).map_err(failed)?;
    let mut number = |name: &Option<String>| name.as_ref().map(|name| capture.add_interface(name));
    let ids: Vec<Vec<Option<InterfaceId>>> =
        interfaces.iter().map(|ends| ends.iter().map(&mut number).collect()).collect();
    for batch in inbox {
        for record in batch {
            let size = record.size();
            let Record { at, link, what } = record;
            let id = |end: Attachment| ids[link][end];
            match what {
                What::Sent(from, frame) => {
                    if let Some(id) = id(from) {
                        capture.sent(at, id, &frame);
                    }
                }
                What::Received(to, frame) => {
                    if let Some(id) = id(to) {
                        capture.received(at, id, &frame);
                    }
                }
                What::Dropped(from, frame, comment) => {
                    if let Some(id) = id(from) {
                        capture.dropped(at, id, &frame, comment);
                    }
                }
            }
            waiting.fetch_sub(size, Ordering::Relaxed);
        }
    }
    capture.finish().map_err(failed)?;
    if waiting.load(Ordering::Relaxed) >= BACKLOG {
        return Err("capture: it could not be written as fast as frames came, and ends early".to_owned());
    }
    Ok(())
}
