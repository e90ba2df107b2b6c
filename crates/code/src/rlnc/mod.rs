//! Random linear network coding: packets that are sums, which relays may mix again.
//!
//! # The words
//!
//! - A **symbol** is what one packet carries, all of one length. A **generation** is a fixed number k of symbols that
//!   are coded together; [`Shape`] says how many and how long.
//! - A **coded packet** carries a linear combination of the generation's symbols, and the k coefficients that tell
//!   which one: the *coefficient vector*. A **systematic** packet is one symbol as it is.
//! - The **rank** of what a decoder has is the number of linearly independent vectors among them. A packet is
//!   **innovative** if it raises the rank, so if it says anything new. At rank k, everything is known; which packets
//!   were lost does not matter. A random packet over GF(2^8) is innovative for a receiver at rank r with probability
//!   1 - 256^(r - k): on average 0.004 packets too many are needed (over GF(2), 1.6).
//! - To **recode** is to send combinations of what was received, without decoding: the same combination of vectors and
//!   of payloads is a coded packet like any other. A chain of recoding relays carries the rate of its worst link, not
//!   the product of the rates of all.
//!
//! # The pieces
//!
//! [`Encoder`] takes symbols as they come and combines those it has. [`Decoder`] takes packets one by one and gives out
//! symbols as soon as they can be known. [`Recoder`] sits at a relay. A [`Packet`] says how it was made: systematic,
//! by a vector, or by a seed from which the vector is drawn, where nobody recodes. [`window`] has no generations.
//!
//! ```
//! use hopcast_code::rlnc::{Coding, Decoder, Encoder, Outcome, Packet, Shape};
//!
//! let shape = Shape::new(2, 5)?;
//! let mut encoder: Encoder = Encoder::new(shape);
//! encoder.push(b"hello")?;
//! encoder.push(b"world")?;
//! let mut sum = [0; 5];
//! encoder.encode(&[3, 7], &mut sum)?;
//!
//! let mut decoder: Decoder = Decoder::new(shape, 0);
//! decoder.push(&Packet { generation: 0, coding: Coding::Symbol(1), payload: b"world" })?;
//! assert_eq!(decoder.poll(), Some((1, &b"world"[..])));
//! let packet = Packet { generation: 0, coding: Coding::Vector(&[3, 7]), payload: &sum };
//! assert_eq!(decoder.push(&packet)?, Outcome::Innovative);
//! assert_eq!(decoder.poll(), Some((0, &b"hello"[..])));
//! # Ok::<(), hopcast_code::rlnc::Error>(())
//! ```
//!
//! # What it costs
//!
//! A dense combination reads k symbols, so encoding and decoding cannot be faster than the blocked kernel's rate
//! divided by k. Decoding costs in proportion to the losses alone: of a generation with e symbols lost, e combinations
//! are computed, and none if they arrive as they are. Coefficients are drawn by a generator that is not linear over
//! GF(2), because vectors from one that is (xorshift, say) may never exceed the rank of its state.

mod coefficients;
mod decoder;
mod elimination;
mod encoder;
mod packet;
mod recoder;
pub mod window;

#[cfg(test)]
mod tests;

pub use coefficients::{Coefficients, Density, pack, packed_len, unpack};
pub use decoder::Decoder;
pub use encoder::Encoder;
pub use packet::{Coding, Error, Outcome, Packet, Shape};
pub use recoder::Recoder;
