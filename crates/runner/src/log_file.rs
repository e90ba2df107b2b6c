//! The file of a log, written by a thread of its own: while a run goes on, another core hands its bytes to the system.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use hopcast_trace::log::Sink;

/// Pieces of a log, as its recorder makes them.
type Batch = Vec<Vec<u8>>;

/// Number of pieces that are handed to the thread at once. Chosen: a hand-over costs some microseconds, and with more
/// the pieces do not stay in the processor's cache until they are written.
const BATCH: usize = 4;

/// Maximum number of batches that wait to be written. Chosen: a short pause of the disk does not stop the run, and they
/// take 512 kB.
const MAX_WAITING: usize = 8;

/// A file that a thread writes. If that is slower than the run, the run waits for it.
pub struct LogFile {
    /// Pieces that are not handed over yet.
    batch: Batch,
    /// Memory of pieces that are written.
    spares: Batch,
    /// Number of batches that are not written yet.
    waiting: usize,
    /// `None` once it is dropped.
    batches: Option<Sender<Batch>>,
    /// Each batch when it is written, or the error of writing it.
    written: Receiver<io::Result<Batch>>,
    thread: Option<JoinHandle<()>>,
}

impl LogFile {
    /// Creates the file, or overwrites it.
    ///
    /// # Errors
    /// If it cannot be created, or no thread can be started.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::of(File::create(path)?)
    }

    fn of(mut file: impl Write + Send + 'static) -> io::Result<Self> {
        let (batches, to_write) = mpsc::channel::<Batch>();
        let (done, written) = mpsc::channel();
        let write = move || {
            for batch in to_write {
                let result = batch.iter().try_for_each(|piece| file.write_all(piece)).map(|()| batch);
                // Nobody waits for it once the log is dropped.
                _ = done.send(result);
            }
        };
        let thread = thread::Builder::new().name("log".to_owned()).spawn(write)?;
        let (batch, spares) = (Batch::new(), Batch::new());
        Ok(Self { batch, spares, waiting: 0, batches: Some(batches), written, thread: Some(thread) })
    }

    /// Hands what is gathered to the thread.
    fn hand_over(&mut self) -> io::Result<()> {
        let batches = self.batches.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        batches.send(std::mem::take(&mut self.batch)).map_err(|_| io::ErrorKind::BrokenPipe)?;
        self.waiting += 1;
        Ok(())
    }

    /// Waits for the batch that is written next, whose memory may be used again.
    fn wait(&mut self) -> io::Result<()> {
        let written = self.written.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
        self.waiting -= 1;
        self.spares.append(&mut written?);
        Ok(())
    }
}

impl Sink for LogFile {
    fn write_piece(&mut self, piece: Vec<u8>) -> io::Result<Vec<u8>> {
        self.batch.push(piece);
        if self.batch.len() >= BATCH {
            self.hand_over()?;
            if self.waiting >= MAX_WAITING {
                self.wait()?;
            }
        }
        Ok(self.spares.pop().unwrap_or_default())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.hand_over()?;
        while self.waiting > 0 {
            self.wait()?;
        }
        Ok(())
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            // It ends with what waits; an error was returned by `finish`, or nobody asked for it.
            _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_log_is_written_in_its_order_and_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let bytes: Vec<u8> = (0..400_000).map(|number| (number % 251) as u8).collect();
        let mut log = LogFile::create(&path).unwrap();
        let mut piece = Vec::new();
        for part in bytes.chunks(1_007) {
            piece.clear();
            piece.extend_from_slice(part);
            piece = log.write_piece(piece).unwrap();
        }
        log.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes);
        log.write_piece(b"more".to_vec()).unwrap();
        log.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap().len(), bytes.len() + 4);
    }

    /// Takes some bytes, and is full then.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_error_of_writing_reaches_whoever_writes() {
        let mut log = LogFile::of(Full(1_000)).unwrap();
        log.write_piece(vec![1; 1_001]).unwrap();
        assert_eq!(log.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
        let mut log = LogFile::of(Full(0)).unwrap();
        let mut all = (0..3 * BATCH * MAX_WAITING).map(|_| log.write_piece(vec![1; 1_000]));
        assert!(all.any(|taken| taken.is_err()), "the run learns of it before it ends");
    }
}
