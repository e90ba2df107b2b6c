//! The capture and the log of a live run: links and devices hand over what happens to frames, and one thread writes
//! it.
//!
//! A capture is in the order of the times of one clock, those of the models. A log is in the order in which things
//! happened: a link that reads a frame late takes it as if it had come earlier, which may be before it arrived on the
//! link in front.

mod devices;
mod error;
mod sorted;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use hopcast_core::{Buffer, Instant};
use hopcast_link::DropReason;
use hopcast_trace::log::{Named, Place};
use hopcast_twin::capture::{InterfaceId, LinkType, PcapngWriter};

pub use devices::Devices;
pub use error::Error;
use sorted::Sorted;

use crate::layout::Captured;

/// Maximum size of the frames that wait to be written, in bytes: beyond it the disk is slower than the network. Chosen:
/// it bounds memory; with less, a short pause of the disk ends a capture.
const MAX_BACKLOG: usize = 256 << 20;

/// A capture, a log or both that are being written.
///
/// Dropping it writes the rest. Its recorders must be gone by then.
pub struct CaptureWriter {
    /// `None` once it is finished.
    recorder: Option<Recorder>,
    writer: Option<JoinHandle<Result<(), Error>>>,
}

/// The files to write.
#[derive(Default)]
pub struct Outputs {
    /// The capture in pcapng.
    pub capture: Option<Box<dyn Write + Send>>,
    /// The log.
    pub log: Option<LogOutput>,
}

/// The log of a run, to be written.
pub struct LogOutput {
    /// Its file.
    pub into: Box<dyn Write + Send>,
    /// Its maximum size in bytes.
    pub max_size: u64,
    /// Its places: those of the captured interfaces, in their order.
    pub places: Vec<Place>,
    /// The names that queries may use.
    pub names: Vec<Named>,
}

/// A thread's access to the capture and the log.
#[derive(Clone)]
pub struct Recorder {
    batches: Sender<Batch>,
    backlog: Arc<Backlog>,
    /// Whether there is a log.
    logs: bool,
}

/// What waits to be written, and what does not wait because too much does.
#[derive(Default)]
struct Backlog {
    bytes: AtomicUsize,
    /// Number of records left out.
    left_out: AtomicU64,
    /// The time of the first one, in nanoseconds.
    left_out_from: AtomicU64,
}

/// Records of one link or device that are handed over together.
struct Batch {
    /// Time at which they are handed over; that of things of which one follows from another has their order.
    order: Instant,
    records: Vec<Record>,
    size: usize,
    backlog: Arc<Backlog>,
}

/// A frame or packet to be written.
pub(crate) struct Record {
    pub(crate) at: Instant,
    /// The index of the interface in the layout's list.
    pub(crate) interface: usize,
    pub(crate) what: FrameEvent,
    pub(crate) bytes: Buffer,
}

/// What happens to a frame or packet at an interface.
pub(crate) enum FrameEvent {
    /// The node gave it to the link; only a log has it.
    Offered,
    Sent,
    /// It arrived, from this interface if that is captured or recorded too.
    Received {
        from: Option<usize>,
    },
    /// The link dropped it.
    Dropped {
        link: Arc<str>,
        /// Whether it had been sent.
        on_link: bool,
        /// The interface that missed it.
        to: Option<usize>,
        reason: DropReason,
    },
}

impl Record {
    fn size(&self) -> usize {
        self.bytes.len() + Buffer::HEADROOM + size_of::<Self>()
    }
}

impl Recorder {
    /// Whether there is a log, which has more events than a capture.
    pub(crate) fn logs(&self) -> bool {
        self.logs
    }

    /// Hands over the records of one link or device at one instant, in order. Before anything can follow from them:
    /// `order` is the time at which they are handed over, and less than that of what follows.
    pub(crate) fn record(&self, order: Instant, records: Vec<Record>) {
        let size = records.iter().map(Record::size).sum::<usize>();
        let backlog = &self.backlog;
        // Once it is full nothing more is written: a capture with a gap would mislead.
        if backlog.bytes.load(Ordering::Relaxed) < MAX_BACKLOG
            && backlog.bytes.fetch_add(size, Ordering::Relaxed) < MAX_BACKLOG
        {
            let _ = self.batches.send(Batch { order, records, size, backlog: backlog.clone() });
            return;
        }
        backlog.bytes.fetch_add(MAX_BACKLOG, Ordering::Relaxed);
        if backlog.left_out.fetch_add(records.len() as u64, Ordering::Relaxed) == 0 {
            backlog.left_out_from.store(order.as_nanos(), Ordering::Relaxed);
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.backlog.bytes.fetch_sub(self.size, Ordering::Relaxed);
    }
}

impl CaptureWriter {
    /// Begins to write what happens at these interfaces, each with its name in the capture.
    ///
    /// # Errors
    /// [`Error::Thread`], if no thread can be started.
    pub fn start(outputs: Outputs, interfaces: Vec<(String, Captured)>) -> Result<Self, Error> {
        let (batches, inbox) = mpsc::channel();
        let (backlog, logs) = (Arc::new(Backlog::default()), outputs.log.is_some());
        let read = backlog.clone();
        let writer = std::thread::Builder::new()
            .name("capture".to_owned())
            .spawn(move || write_all(outputs, &interfaces, &inbox, &read))
            .map_err(Error::Thread)?;
        Ok(Self { recorder: Some(Recorder { batches, backlog, logs }), writer: Some(writer) })
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
    /// The reason, if not all of it could be written. A log that was overrun says so itself.
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
    outputs: Outputs,
    interfaces: &[(String, Captured)],
    inbox: &Receiver<Batch>,
    backlog: &Backlog,
) -> Result<(), Error> {
    let capture = outputs.capture.map(|into| CaptureFile::begin(into, interfaces)).transpose()?;
    let mut capture = capture.map(|file| (file, Sorted::default()));
    let mut log = outputs.log.map(|output| (LogFile::begin(output, interfaces), Sorted::default()));
    for batch in inbox {
        let batch = Arc::new(batch);
        if let Some((file, held)) = &mut log {
            held.add(batch.order, batch.clone(), |batch| file.write(&batch));
        }
        if let Some((file, held)) = &mut capture
            && let Some(at) = batch.records.first().map(|record| record.at)
        {
            held.add(at, batch, |batch| file.write(&batch));
        }
    }
    let left_out = backlog.left_out.load(Ordering::Relaxed);
    if let Some((mut file, held)) = log {
        held.drain(|batch| file.write(&batch));
        if left_out > 0 {
            let from = Instant::from_nanos(backlog.left_out_from.load(Ordering::Relaxed));
            file.recorder.overrun(from, left_out);
        }
        file.recorder.finish().map_err(Error::WriteLog)?;
    }
    if let Some((mut file, held)) = capture {
        held.drain(|batch| file.write(&batch));
        file.capture.finish().map_err(Error::Write)?;
        if left_out > 0 {
            return Err(Error::Overrun);
        }
    }
    Ok(())
}

/// The capture in pcapng.
struct CaptureFile {
    capture: PcapngWriter,
    /// The number in the file of each interface that is in it.
    ids: Vec<Option<InterfaceId>>,
}

impl CaptureFile {
    fn begin(into: Box<dyn Write>, interfaces: &[(String, Captured)]) -> Result<Self, Error> {
        let mut capture = PcapngWriter::new(into).map_err(Error::Write)?;
        let id = |(name, captured): &(String, Captured)| {
            captured.in_capture.then(|| capture.add_interface(name, captured.carries))
        };
        let ids = interfaces.iter().map(id).collect();
        Ok(Self { capture, ids })
    }

    fn write(&mut self, batch: &Batch) {
        for Record { at, interface, what, bytes } in &batch.records {
            let Some(id) = self.ids[*interface] else { continue };
            match what {
                FrameEvent::Offered => {}
                FrameEvent::Sent => self.capture.sent(*at, id, bytes),
                FrameEvent::Received { .. } => self.capture.received(*at, id, bytes),
                FrameEvent::Dropped { link, on_link, reason, .. } => {
                    let place = if *on_link { "on" } else { "before" };
                    self.capture.dropped(*at, id, bytes, format!("dropped {place} {link}: {reason}"));
                }
            }
        }
    }
}

/// The log, whose places have the numbers of the interfaces.
struct LogFile {
    recorder: hopcast_trace::Recorder,
    /// Whether each interface carries frames; otherwise it is a device of packets.
    has_frames: Vec<bool>,
}

impl LogFile {
    fn begin(output: LogOutput, interfaces: &[(String, Captured)]) -> Self {
        let mut recorder = hopcast_trace::Recorder::new(Box::new(output.into), output.max_size);
        output.places.iter().for_each(|place| _ = recorder.place(place));
        output.names.iter().for_each(|named| recorder.name(named));
        let has_frames = |(_, captured): &(String, Captured)| captured.carries == LinkType::Frames;
        Self { recorder, has_frames: interfaces.iter().map(has_frames).collect() }
    }

    fn write(&mut self, batch: &Batch) {
        for Record { at, interface, what, bytes } in &batch.records {
            let place = *interface as u32;
            match what {
                FrameEvent::Offered => self.recorder.offered(*at, place, bytes),
                FrameEvent::Sent if !self.has_frames[*interface] => {
                    self.recorder.into_device(*at, place, bytes);
                }
                FrameEvent::Sent => self.recorder.sent(*at, place, bytes),
                FrameEvent::Received { .. } if !self.has_frames[*interface] => {
                    self.recorder.out_of_device(*at, place, bytes);
                }
                FrameEvent::Received { from } => {
                    self.recorder.delivered(*at, place, from.unwrap_or(*interface) as u32, bytes);
                }
                FrameEvent::Dropped { to, reason, .. } => {
                    self.recorder.dropped(*at, place, to.map(|to| to as u32), bytes, reason.words());
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Mutex;

    use hopcast_core::Duration;
    use hopcast_link::DropReason;
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
            let (name, carries) = (String::new(), LinkType::Frames);
            ("n".to_owned(), Captured { node, name, carries, by_link: true, in_capture: true })
        };
        let outputs = Outputs { capture: Some(Box::new(file.clone())), log: None };
        let writer = CaptureWriter::start(outputs, vec![interface(0), interface(1)]).unwrap();
        let record = |micros: u64, interface: usize, what: FrameEvent| Record {
            at: Instant::ZERO + Duration::from_micros(micros),
            interface,
            what,
            bytes: Buffer::copy_from(&micros.to_be_bytes()),
        };
        let (one, other) = (writer.recorder(), writer.recorder());
        for step in 1..1000 {
            let lost = FrameEvent::Dropped {
                link: "l".into(),
                on_link: true,
                to: Some(1),
                reason: DropReason::Lost,
            };
            let sent = record(step * 1000, 0, FrameEvent::Sent);
            one.record(sent.at, vec![sent, record(step * 1000, 0, lost)]);
            // The other one is up to 50 ms behind, as it comes.
            let received = FrameEvent::Received { from: Some(0) };
            let received = record(step * 1000 - step % 50 * 1000 + 500, 1, received);
            other.record(received.at, vec![received]);
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
