//! TCP in virtual time.

pub mod config;

pub use config::{Config, Congestion};
