//! TCP in virtual time.

mod ack;
mod aggregation;
mod bbr;
pub mod config;
mod congestion;
mod connection;
mod counters;
mod cubic;
mod handshake;
mod hystart;
mod input;
mod long_term;
mod minmax;
mod output;
mod pacer;
mod prr;
mod rack;
mod ranges;
mod rate;
mod receive;
mod recovery;
mod rtt;
mod sack;
mod scoreboard;
mod send_buffer;
mod sender;
mod seq;
#[allow(clippy::module_inception)]
mod tcp;
#[cfg(test)]
mod tests;
mod time_wait;
mod timeouts;
mod timer;
mod timestamps;
mod window;
mod wire;

pub use config::{Config, Congestion};
pub use tcp::Tcp;
