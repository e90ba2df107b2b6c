//! Stopping a runtime from another thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// Stops runtimes from another thread or a signal handler, for good; clones are the same stop.
#[derive(Clone, Debug)]
pub struct Stop(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    requested: AtomicBool,
    /// Readable from the request on: nobody reads it.
    event: OwnedFd,
}

impl Stop {
    /// A stop that is not requested yet.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Inner { requested: AtomicBool::new(false), event })))
    }

    /// Stops all runtimes that run until this stop. It sets a flag and writes to a descriptor, which a signal handler
    /// may do.
    pub fn request(&self) {
        self.0.requested.store(true, Ordering::Release);
        // Fails only after 2^64 writes, when the descriptor is readable anyway.
        let _ = rustix::io::write(&self.0.event, &1_u64.to_ne_bytes());
    }

    /// Whether it was requested.
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::Acquire)
    }

    /// Waits for `span`, or until it is requested.
    pub(crate) fn wait(&self, span: hopcast_core::Duration) {
        let nanos = span.as_nanos();
        let timeout =
            Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 };
        let event = self.as_fd();
        // The caller checks the reason.
        let _ = poll(&mut [PollFd::new(&event, PollFlags::IN)], Some(&timeout));
    }

    /// A descriptor that is readable once it is requested.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}
