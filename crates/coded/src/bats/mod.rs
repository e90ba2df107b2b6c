//! BATS transports: BTP and BRTP.

mod batch;
mod config;
mod counters;
mod direction;
mod edge;
mod framing;
mod idle;
mod margin;
mod machine;
mod marks;
mod need;
mod node;
mod rate;
mod receiver;
mod sender;
mod sink;
mod span;
mod store;
mod strict;
mod streams;
#[cfg(test)]
mod tests;
mod transmit;
mod wire;

pub use config::{BatchSize, Config, Delivery, Feedback};
pub use machine::Node;
