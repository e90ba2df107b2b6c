//! PGM: Pragmatic General Multicast (RFC 3208).

mod config;
mod framing;
mod parity;
mod receiver;
mod session;
mod source;
pub mod wire;

pub use config::{Framing, Proactive, RateControl, ReceiverConfig, SourceConfig};
pub use session::{Config, Session};

pub use crate::{Join, Order};

#[cfg(test)]
mod tests;
