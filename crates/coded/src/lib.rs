//! Machines between a sender's packets and a network that loses them: the coded transports of [`bats`], and the plain
//! [`Tunnel`], and the [`proxy`] that brings TCP to them.

pub mod bats;
mod block_fec;
pub mod franc;
pub mod proxy;
mod repeat;
mod tunnel;

pub use block_fec::{BlockFec, BlockFecConfig};
pub use repeat::Repeat;
pub use tunnel::Tunnel;
