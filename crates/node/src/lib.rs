//! Machines on a real host, and the daemon that runs them.

mod clock;
pub mod runtime;

pub use clock::Clock;
