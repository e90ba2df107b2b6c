//! NORM: negative acknowledgements and erasure codes (RFC 5740, with RFC 5401, 5052 and 5510).
//!
//! [`wire`] has the messages, [`fec`] the blocks and their parity.

pub mod fec;
pub mod wire;
