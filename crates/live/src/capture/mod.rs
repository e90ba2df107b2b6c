//! The capture of a live run: links and devices hand over frames, and one thread writes them in the order of one clock.

mod devices;
mod error;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use hopcast_core::{Buffer, Duration, Instant};
use hopcast_twin::capture::{InterfaceId, PcapngWriter};

pub use devices::Devices;
pub use error::Error;

use crate::layout::Captured;

/// Maximum size of the frames that wait to be written, in bytes: beyond it the disk is slower than the network. Chosen:
/// it bounds memory; with less, a short pause of the disk ends a capture.
const MAX_BACKLOG: usize = 256 << 20;

/// Time for which frames are held back, since another thread may hand over older ones. Chosen; with less, frames of a
/// thread that was delayed are out of order in the file; with more, more frames wait in memory.
const REORDER_WINDOW: Duration = Duration::from_millis(100);

/// A capture that is being written.
///
/// Dropping it writes the rest. Its recorders must be gone by then.
pub struct CaptureWriter {
    /// `None` once it is finished.
    recorder: Option<Recorder>,
    writer: Option<JoinHandle<Result<(), Error>>>,
}

/// A thread's access to the capture.
#[derive(Clone)]
pub struct Recorder {
    batches: Sender<Vec<Record>>,
    waiting: Arc<AtomicUsize>,
}

/// A frame or packet to be written.
pub(crate) struct Record {
    pub(crate) at: Instant,
    /// The index of the interface in the layout's list.
    pub(crate) interface: usize,
    pub(crate) what: FrameEvent,
    pub(crate) bytes: Buffer,
}

/// The fate of a frame or packet at an interface.
pub(crate) enum FrameEvent {
    Sent,
    Received,
    /// Dropped, with the reason and the place.
    Dropped(String),
}

impl Record {
    fn size(&self) -> usize {
        self.bytes.len() + Buffer::HEADROOM + size_of::<Self>()
    }
}

impl Recorder {
    /// Hands over the records of one link or device at one instant, in order.
    pub(crate) fn record(&self, batch: Vec<Record>) {
        let size = batch.iter().map(Record::size).sum::<usize>();
        // Once it is full nothing more is written: a capture with a gap would mislead.
        if self.waiting.load(Ordering::Relaxed) < MAX_BACKLOG
            && self.waiting.fetch_add(size, Ordering::Relaxed) < MAX_BACKLOG
        {
            let _ = self.batches.send(batch);
        } else {
            self.waiting.fetch_add(MAX_BACKLOG, Ordering::Relaxed);
        }
    }
}

impl CaptureWriter {
    /// Begins a capture of these interfaces, each with its name in the file.
    ///
    /// # Errors
    /// [`Error::Thread`], if no thread can be started.
    pub fn start(into: Box<dyn Write + Send>, interfaces: Vec<(String, Captured)>) -> Result<Self, Error> {
        let (batches, inbox) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let read = waiting.clone();
        let writer = std::thread::Builder::new()
            .name("capture".to_owned())
            .spawn(move || write_all(into, &interfaces, &inbox, &read))
            .map_err(Error::Thread)?;
        Ok(Self { recorder: Some(Recorder { batches, waiting }), writer: Some(writer) })
    }

    /// Access for one more thread.
    ///
    /// # Panics
    /// Never: `finish` consumes the writer.
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone().expect("not finished yet")
    }

    /// Writes the rest, once all recorders are gone.
    ///
    /// # Errors
    /// The reason, if not all of it could be written.
    pub fn finish(mut self) -> Result<(), Error> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Error> {
        drop(self.recorder.take());
        let joined = self.writer.take().map_or(Ok(Ok(())), JoinHandle::join);
        joined.unwrap_or(Err(Error::Panicked("writes the capture")))
    }
}

/// Waits for the thread, so that it no longer writes to a file that another run may write next.
impl Drop for CaptureWriter {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

fn write_all(
    into: Box<dyn Write>,
    interfaces: &[(String, Captured)],
    inbox: &Receiver<Vec<Record>>,
    waiting: &AtomicUsize,
) -> Result<(), Error> {
    let mut capture = PcapngWriter::new(into).map_err(Error::Write)?;
    let ids: Vec<InterfaceId> =
        interfaces.iter().map(|(name, captured)| capture.add_interface(name, captured.carries)).collect();
    let mut write = |record: Record| {
        let size = record.size();
        let Record { at, interface, what, bytes } = record;
        let id = ids[interface];
        match what {
            FrameEvent::Sent => capture.sent(at, id, &bytes),
            FrameEvent::Received => capture.received(at, id, &bytes),
            FrameEvent::Dropped(comment) => capture.dropped(at, id, &bytes, comment),
        }
        waiting.fetch_sub(size, Ordering::Relaxed);
    };
    let (mut held, mut newest) = (BTreeMap::new(), Instant::ZERO);
    for (number, batch) in inbox.iter().enumerate() {
        let Some(at) = batch.first().map(|record| record.at) else { continue };
        newest = newest.max(at);
        held.insert((at, number), batch);
        while let Some(oldest) = held.first_entry().filter(|it| it.key().0 + REORDER_WINDOW <= newest) {
            oldest.remove().into_iter().for_each(&mut write);
        }
    }
    held.into_values().flatten().for_each(write);
    capture.finish().map_err(Error::Write)?;
    if waiting.load(Ordering::Relaxed) >= MAX_BACKLOG {
        return Err(Error::Overrun);
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Mutex;

    use hopcast_twin::capture::LinkType;
    use pcap_file::pcapng::{Block, PcapNgReader};

    use super::*;

    #[derive(Clone, Default)]
    struct File(Arc<Mutex<Vec<u8>>>);

    impl Write for File {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_several_threads_saw_stands_in_the_order_of_its_time() {
        let file = File::default();
        let interface = |node| {
            ("n".to_owned(), Captured { node, name: String::new(), carries: LinkType::Frames, by_link: true })
        };
        let writer = CaptureWriter::start(Box::new(file.clone()), vec![interface(0), interface(1)]).unwrap();
        let record = |micros: u64, interface: usize, what: FrameEvent| Record {
            at: Instant::ZERO + Duration::from_micros(micros),
            interface,
            what,
            bytes: Buffer::copy_from(&micros.to_be_bytes()),
        };
        let (one, other) = (writer.recorder(), writer.recorder());
        for step in 1..1000 {
            let lost = || FrameEvent::Dropped("lost".to_owned());
            one.record(vec![record(step * 1000, 0, FrameEvent::Sent), record(step * 1000, 0, lost())]);
            // The other one is up to 50 ms behind, as it comes.
            other.record(vec![record(step * 1000 - step % 50 * 1000 + 500, 1, FrameEvent::Received)]);
        }
        drop((one, other));
        writer.finish().unwrap();
        let bytes = file.0.lock().unwrap().clone();
        let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
        let (mut times, mut lost) = (Vec::new(), 0);
        while let Some(block) = reader.next_block() {
            let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
            times.push(packet.timestamp);
            lost += usize::from(packet.options.len() == 2);
        }
        assert!(times.is_sorted());
        assert_eq!((times.len(), lost), (2 * 999, 999), "a frame and why it was lost are one");
    }
}
