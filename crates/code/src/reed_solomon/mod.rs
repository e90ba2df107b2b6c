//! Reed-Solomon erasure codes: of k + n symbols, any k give the k source symbols back.
//!
//! The code is *systematic*: the first k symbols are the source as it is, the other n are **parity**. It is *maximum
//! distance separable*: any k of all of them suffice, with never one too many; in return, relays cannot recode, and
//! k + n is at most 255 (RFC 5510, section 8, for 8-bit elements).
//!
//! ```
//! use hopcast_code::reed_solomon::Code;
//!
//! let code = Code::new(3, 2)?;
//! let source: [&[u8]; 3] = [b"abc", b"def", b"ghi"];
//! let mut parity = [[0; 3]; 2];
//! for (i, parity) in parity.iter_mut().enumerate() {
//!     code.parity(i, &source, parity)?;
//! }
//!
//! // Source symbols 0 and 2 are lost, both parity symbols have arrived.
//! let mut decoder = code.decoder();
//! let [mut first, mut third] = [[0; 3]; 2];
//! decoder.prepare(&[1, 3, 4])?;
//! let received: [&[u8]; 3] = [b"def", &parity[0], &parity[1]];
//! decoder.recover(0, &received, &mut first)?;
//! decoder.recover(2, &received, &mut third)?;
//! assert_eq!((&first, &third), (b"abc", b"ghi"));
//! # Ok::<(), hopcast_code::reed_solomon::Error>(())
//! ```
//!
//! # The construction
//!
//! A Vandermonde matrix of k + n rows, row i the powers 0 to k - 1 of a point, is multiplied by the inverse of its
//! first k rows, so that those become the identity. RFC 5510, section 8.2 says that the points are the powers of the
//! generator α = 2: [`Points::Powers`]. libnorm and OpenPGM, both with Rizzo's code, have the points 0, 1, α, α², ...:
//! [`Points::Rizzo`], with the polynomial 0x11D (`reliable-peers.md`, from captures of libnorm 1.5.9).
//!
//! A code for fewer symbols than k is got by *shortening*: the missing ones count as zero and are never sent. Parity
//! depends on the k for which a code was made; libnorm makes it for the block length B that the session announces, and
//! shortens it for smaller blocks. [`Code::parity`] therefore accepts fewer than k source symbols, and
//! [`Decoder::prepare_short`] recovers them.
//!
//! # Scope and departures
//!
//! Only 8-bit elements; RFC 5510 allows 2 to 16 bits, and no peer here uses others. Sparse bits and pieces of RFC 5510
//! that are not the code itself (FEC payload identifiers, object transmission information) belong to the protocols.

mod code;
mod decoder;

#[cfg(test)]
mod tests;

pub use code::{Code, Error, Points};
pub use decoder::Decoder;
