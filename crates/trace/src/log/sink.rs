//! Destinations of a log: a file, a thread that writes one, memory.

use std::io::{self, Write};

/// A place for the bytes of a log, which come in pieces.
pub trait Sink {
    /// Writes the next piece. Returns a buffer for another one, with any contents: so pieces are not copied.
    ///
    /// # Errors
    /// If a piece cannot be written, this one or one before.
    fn write_piece(&mut self, piece: Vec<u8>) -> io::Result<Vec<u8>>;

    /// Returns when everything is written.
    ///
    /// # Errors
    /// If not all of it can be written.
    fn finish(&mut self) -> io::Result<()>;
}

impl<W: Write> Sink for W {
    fn write_piece(&mut self, piece: Vec<u8>) -> io::Result<Vec<u8>> {
        self.write_all(&piece)?;
        Ok(piece)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush()
    }
}
