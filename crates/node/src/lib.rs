//! Machines on a real host, and the daemon that runs them.

mod clock;
pub mod config;
pub mod daemon;
mod group;
mod hello;
pub mod logging;
mod metrics;
pub mod runtime;
pub mod status;
mod store;
#[cfg(test)]
mod test_network;
#[doc(hidden)]
pub mod testing;

pub use clock::Clock;
