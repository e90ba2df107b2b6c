//! NORM: negative acknowledgements and erasure codes (RFC 5740, with RFC 5401, 5052 and 5510).
//!
//! [`wire`] has the messages, [`fec`] the blocks and their parity.

mod backlog;
mod config;
mod congestion;
pub mod fec;
mod receiver;
mod sender;
mod session;
mod streams;
pub mod wire;

pub use config::{Framing, Join, Proactive, RateControl, ReceiverConfig, SenderConfig};
pub use session::{Config, Session};

#[cfg(test)]
mod tests;
