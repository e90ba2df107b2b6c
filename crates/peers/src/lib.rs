//! The rivals in virtual time: the transports that a user would pick instead.

#[cfg(test)]
mod chain;
pub mod hop_arq;
pub mod kcp;
#[cfg(feature = "quic")]
pub mod quic;
pub mod tcp;
