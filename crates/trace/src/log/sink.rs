//! Where a log goes: [`Sink`].

use std::io::{self, Write};

/// A place for the bytes of a log, which come in pieces.
pub trait Sink {
    /// Takes the next piece. Returns memory for another one, whatever is in it: so nobody copies the bytes.
    ///
    /// # Errors
    /// If a piece cannot be written, this one or one before.
    fn take(&mut self, piece: Vec<u8>) -> io::Result<Vec<u8>>;

    /// Returns when everything is written.
    ///
    /// # Errors
    /// If not all of it can be written.
    fn finish(&mut self) -> io::Result<()>;
}

impl<W: Write> Sink for W {
    fn take(&mut self, piece: Vec<u8>) -> io::Result<Vec<u8>> {
        self.write_all(&piece)?;
        Ok(piece)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.flush()
    }
}
