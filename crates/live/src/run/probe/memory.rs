//! A log that is written to memory.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that one thread writes and another one takes in the end.
#[derive(Clone, Default)]
pub(super) struct SharedMemory(Arc<Mutex<Vec<u8>>>);

impl SharedMemory {
    /// The bytes that were written.
    pub(super) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for SharedMemory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
