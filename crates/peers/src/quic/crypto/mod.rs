//! A stand-in for TLS 1.3: a handshake of the same messages and sizes, and packets whose tag finds any bit flipped on
//! the way. It hides nothing and proves nobody's identity.
//!
//! A real session draws its keys from the machine's entropy, so that no run would be repeatable; and what is under test
//! is how a transport fares, of which the bytes on the wire are a part and the secrecy is not. So what is kept is what
//! can be seen from outside: three flights over one round trip (`session`), an authentication tag of 16 bytes on each
//! packet, header protection that needs a sample (`keys`). A dissector that knows QUIC finds the headers, and cannot
//! open the packets.

mod keys;
mod session;

pub(super) use keys::{ResetKey, TAG, TokenKey};
pub(super) use session::Hello;
