//! Machines between a sender's packets and a network that loses them. So far: the plain [`Tunnel`].

mod tunnel;

pub use tunnel::Tunnel;
