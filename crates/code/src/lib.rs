//! Erasure and network codes: symbols in and symbols out, without time or I/O.
//!
//! - [`bats`]: batches of random combinations, which relays mix again each for itself; for long paths.
//! - [`field`]: GF(2), GF(2^4) and GF(2^8), and sums of whole symbols with the machine's vector instructions. All codes
//!   use it, and no other module has `unsafe` code.
//! - [`reed_solomon`]: any k of k + n symbols suffice; NORM's and PGM's code.
//! - [`rlnc`]: random combinations, in generations and in a sliding window, which relays mix again without decoding.
//!
//! A code is a function of its input: what is random is drawn from a seed that the caller gives, so the same calls give
//! the same bytes on every machine, whichever instructions it has.

pub mod bats;
pub mod field;
pub mod reed_solomon;
pub mod rlnc;

mod store;
