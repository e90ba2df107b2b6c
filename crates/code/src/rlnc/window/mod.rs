//! A sliding window: network coding of a stream, without generations.
//!
//! The source numbers its symbols from 0, sends each as it is, and from time to time a **repair** packet: a combination
//! of the latest ones. A loss is repaired by the next repair packet, not at the end of a generation, so the delay is
//! that of the repair rate. Encoder and decoder remember a *window* of symbols; what is lost and not repaired before
//! the window has passed is lost for good. The window bounds the decoder's memory and the cost of a packet: its density
//! times the window in multiply-adds, and nothing for a symbol that arrives as it is while none is missing.
//!
//! ```
//! use hopcast_code::rlnc::{Coefficients, Density, Shape, window};
//!
//! let shape = Shape::new(8, 3)?;
//! let mut encoder: window::Encoder = window::Encoder::new(shape);
//! encoder.push(b"one")?;
//! encoder.push(b"two")?;
//! let (mut vector, mut payload) = ([0; 8], [0; 3]);
//! let span = encoder.repair(&mut Coefficients::new(1), Density::FULL, &mut vector, &mut payload)?;
//!
//! let mut decoder: window::Decoder = window::Decoder::new(shape);
//! decoder.push_symbol(1, b"two")?;
//! assert_eq!(decoder.poll(), Some((1, &b"two"[..])));
//! decoder.push_repair(span.first, &vector[..span.count], &payload)?;
//! assert_eq!(decoder.poll(), Some((0, &b"one"[..])));
//! # Ok::<(), hopcast_code::rlnc::Error>(())
//! ```

mod decoder;
mod encoder;

#[cfg(test)]
mod tests;

pub use decoder::Decoder;
pub use encoder::{Encoder, Span};
