//! PGM: Pragmatic General Multicast (RFC 3208).

pub mod wire;
