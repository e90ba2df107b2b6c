//! The rivals in virtual time: the transports that a user would pick instead.

pub mod kcp;
pub mod tcp;
