//! Logs in memory.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use super::Recorder;

/// The bytes of a log in memory, which its recorder writes: to be taken once that is finished.
#[derive(Clone, Debug, Default)]
pub struct MemoryLog(Rc<RefCell<Vec<u8>>>);

impl MemoryLog {
    /// A recorder that writes to this log at most about `max_size` bytes.
    pub fn recorder(&self, max_size: u64) -> Recorder {
        Recorder::new(Box::new(self.clone()), max_size)
    }

    /// The size of what has been written so far, in bytes; a recorder gathers some before it writes them.
    pub fn size(&self) -> u64 {
        self.0.borrow().len() as u64
    }

    /// The bytes that have been written so far, which are taken out.
    pub fn take(&self) -> Vec<u8> {
        self.0.take()
    }
}

impl Write for MemoryLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
