//! NAKACK.
mod assembly;
mod config;
mod credit;
mod epoch;
mod gms;
mod member;
mod order;
mod outgoing;
mod requests;
mod round_trip;
mod stability;
mod unicast;
mod window;
pub mod wire;

pub use config::{Config, Ordering, Repairs, Stack, Start};
pub use member::Member;

#[cfg(test)]
mod tests;
