//! The file of a log, written by a thread of its own: while a run goes on, another core hands its bytes to the system.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

/// Length of the pieces that are handed to the thread, in bytes. Chosen: a hand-over costs some microseconds, and
/// larger pieces do not stay in the processor's cache until they are written.
const PIECE: usize = 1 << 18;

/// Maximum number of pieces that wait to be written. Chosen: a short pause of the disk does not stop the run, and they
/// take 2 MB.
const MAX_WAITING: usize = 8;

/// A file that a thread writes. If that is slower than the run, the run waits for it.
pub struct LogFile {
    piece: Vec<u8>,
    /// Number of pieces that are not written yet.
    waiting: usize,
    /// `None` once it is dropped.
    pieces: Option<Sender<Vec<u8>>>,
    /// Each piece when it is written, to be filled again, or the error of writing it.
    written: Receiver<io::Result<Vec<u8>>>,
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
        let (pieces, to_write) = mpsc::channel::<Vec<u8>>();
        let (done, written) = mpsc::channel();
        let write = move || {
            for piece in to_write {
                let result = file.write_all(&piece).map(|()| piece);
                // Nobody waits for it once the log is dropped.
                _ = done.send(result);
            }
        };
        let thread = thread::Builder::new().name("log".to_owned()).spawn(write)?;
        let piece = Vec::with_capacity(PIECE);
        Ok(Self { piece, waiting: 0, pieces: Some(pieces), written, thread: Some(thread) })
    }

    /// Hands what is gathered to the thread; `spare` is filled next.
    fn hand_over(&mut self, spare: Vec<u8>) -> io::Result<()> {
        let piece = std::mem::replace(&mut self.piece, spare);
        let pieces = self.pieces.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        pieces.send(piece).map_err(|_| io::ErrorKind::BrokenPipe)?;
        self.waiting += 1;
        Ok(())
    }

    /// Waits for the piece that is written next; returns its memory.
    fn wait(&mut self) -> io::Result<Vec<u8>> {
        let written = self.written.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
        self.waiting -= 1;
        let mut spare = written?;
        spare.clear();
        Ok(spare)
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.piece.len() >= PIECE {
            let spare = if self.waiting < MAX_WAITING { Vec::with_capacity(PIECE) } else { self.wait()? };
            self.hand_over(spare)?;
        }
        let room = bytes.len().min(PIECE - self.piece.len());
        self.piece.extend_from_slice(&bytes[..room]);
        Ok(room)
    }

    /// Returns when everything is written.
    fn flush(&mut self) -> io::Result<()> {
        self.hand_over(Vec::new())?;
        while self.waiting > 0 {
            self.wait()?;
        }
        Ok(())
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        self.pieces = None;
        if let Some(thread) = self.thread.take() {
            // It ends with what waits; an error was returned by `flush`, or nobody asked for it.
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
        let bytes: Vec<u8> = (0..3 * PIECE * MAX_WAITING + 5).map(|number| (number % 251) as u8).collect();
        let mut log = LogFile::create(&path).unwrap();
        for part in bytes.chunks(10_007) {
            log.write_all(part).unwrap();
        }
        log.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes);
        log.write_all(b"more").unwrap();
        log.flush().unwrap();
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
        let mut log = LogFile::of(Full(PIECE)).unwrap();
        log.write_all(&vec![1; PIECE + 1]).unwrap();
        assert_eq!(log.flush().unwrap_err().kind(), io::ErrorKind::StorageFull);
        let mut log = LogFile::of(Full(0)).unwrap();
        let mut all = (0..3 * MAX_WAITING).map(|_| log.write_all(&vec![1; PIECE]));
        assert!(all.any(|written| written.is_err()), "the run learns of it before it ends");
    }
}
