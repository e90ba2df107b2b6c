//! Machines between a sender's packets and a network that loses them: the coded transports of [`bats`], and the plain
//! [`Tunnel`], and the [`proxy`] that brings TCP to them.

pub mod bats;
pub mod franc;
pub mod proxy;
mod repeat;
mod tunnel;

pub use repeat::Repeat;
pub use tunnel::Tunnel;
