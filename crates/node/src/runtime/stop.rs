//! How a runtime is stopped from elsewhere.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// Stops runtimes from another thread or a signal handler. Once pulled it stays so; its clones are the same one.
#[derive(Clone, Debug)]
pub struct Stop(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pulled: AtomicBool,
    /// Readable once it has been pulled, for good: nobody reads it.
    event: OwnedFd,
}

impl Stop {
    /// One that has not been pulled.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Inner { pulled: AtomicBool::new(false), event })))
    }

    /// Stops whoever runs until this is pulled. It only sets a flag and writes to a descriptor, so a signal handler
    /// may.
    pub fn pull(&self) {
        self.0.pulled.store(true, Ordering::Release);
        // It can only fail if it was written to 2^64 times, and then it is readable.
        let _ = rustix::io::write(&self.0.event, &1_u64.to_ne_bytes());
    }

    /// Whether it has been pulled.
    pub fn is_pulled(&self) -> bool {
        self.0.pulled.load(Ordering::Acquire)
    }

    /// Waits for so long, or until it has been pulled.
    pub(crate) fn wait(&self, span: hopcast_core::Duration) {
        let nanos = span.as_nanos();
        let timeout =
            Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 };
        let event = self.as_fd();
        // Whatever ends it, who waits looks again.
        let _ = poll(&mut [PollFd::new(&event, PollFlags::IN)], Some(&timeout));
    }

    /// A descriptor that is readable once it has been pulled.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}
