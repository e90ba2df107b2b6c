//! The progress of runs, and their cancellation.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use hopcast_core::Duration;

/// The progress of runs, shared with the part of a program that shows or cancels them.
#[derive(Debug, Default)]
pub struct Monitor {
    simulated_ns: AtomicU64,
    total_ns: AtomicU64,
    done: AtomicUsize,
    total: AtomicUsize,
    cancelled: AtomicBool,
}

impl Monitor {
    /// The share of all virtual time that has been simulated, 0 to 1.
    pub fn share(&self) -> f64 {
        let total = self.total_ns.load(Ordering::Relaxed).max(1);
        (self.simulated_ns.load(Ordering::Relaxed) as f64 / total as f64).min(1.0)
    }

    /// Number of finished runs, and of all runs.
    pub fn runs(&self) -> (usize, usize) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// Ends every run at the next opportunity; what is finished is kept.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether someone has called [`cancel`](Self::cancel).
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Begins to count: `runs` runs of `virtual_ns` nanoseconds of virtual time together.
    pub fn begin(&self, runs: usize, virtual_ns: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.simulated_ns.store(0, Ordering::Relaxed);
        self.total.store(runs, Ordering::Relaxed);
        self.total_ns.store(virtual_ns, Ordering::Relaxed);
    }

    /// Counts a finished run.
    pub fn finished_one(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds virtual time by which a run has advanced.
    pub fn advance(&self, by: Duration) {
        self.simulated_ns.fetch_add(by.as_nanos(), Ordering::Relaxed);
    }
}
