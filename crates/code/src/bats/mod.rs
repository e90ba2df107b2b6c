//! BATS codes (RFC 9426): a fountain of batches, which relays mix again, each batch for itself.
//!
//! # The words
//!
//! - The source has K **symbols** of T bytes. A **batch** is M packets that are combinations of the same d symbols; d
//!   is its **degree**. Which symbols, and with which coefficients, follows from the batch's number, the **BID**, so no
//!   packet has to say so. This is the **outer code**. Its field is GF(2^8). There is no end of batches, but 8,192.
//! - A packet on its way carries its BID and a **vector** of M coefficients: which combination of the batch's packets
//!   it is. A relay sends combinations of what it received of a batch, and never mixes two batches: so vectors stay
//!   short and relays forget soon. This is the **inner code**, over GF(2^8) or GF(2). It is [`rlnc`](crate::rlnc) with
//!   the M packets of a batch as a generation: relays use [`rlnc::Recoder`](crate::rlnc::Recoder).
//! - The **rank** of a batch is the number of linearly independent vectors of it that a node has. Every lossy hop can
//!   lower it. At the destination a batch of rank r gives r equations for its d symbols; the outer code makes sure that
//!   any batches whose ranks sum to little more than K suffice. How many packets more is the code's **overhead**.
//!
//! Compared with random linear coding over all K symbols, vectors have M coefficients and not K, and relays combine M
//! packets; compared with an erasure code from end to end, the rate that passes is the worst link's, not the product of
//! all links'.
//!
//! # The pieces
//!
//! [`Parameters`] are what both ends agree on. An [`Encoder`] makes batches; a [`Decoder`] takes packets of any batches
//! in any order, gives symbols as soon as they can be known, and is complete as soon as any decoder could be.
//! [`Header`] is the RFC's. [`degrees`] has the distributions from which degrees are drawn, [`ranks`] how rank is lost
//! from hop to hop, [`recoding`] how many packets of a batch a relay should send.
//!
//! ```
//! use hopcast_code::bats::{BatchSize, Decoder, Encoder, InnerField, Parameters, Sampling, Start};
//! use hopcast_code::rlnc::{Coding, Packet, Recoder, Shape};
//!
//! const M: usize = 8;
//! let source: Vec<u8> = (0..100 * 32).map(|i| (i * i / 7) as u8).collect();
//! let parameters = Parameters::new(100, 32, BatchSize::new(M, InnerField::Gf256)?)?
//!     .sampling(Sampling::Even { session: 1 })
//!     .start(Start::Systematic);
//! let mut encoder = Encoder::new(&parameters, &source[..])?;
//! let mut relay: Recoder = Recoder::new(Shape::new(M, 32)?, 0, M, 5);
//! let mut decoder = Decoder::new(&parameters);
//!
//! let (mut batch, mut vector, mut payload) = ([0; M * 32], [0; M], [0; 32]);
//! for bid in 0.. {
//!     encoder.batch(bid, &mut batch)?;
//!     relay.start(bid.into());
//!     // Every fourth packet is lost on the first hop ..
//!     for (index, payload) in batch.chunks(32).enumerate().filter(|(index, _)| index % 4 != 1) {
//!         relay.push(&Packet { generation: bid.into(), coding: Coding::Symbol(index), payload })?;
//!     }
//!     // .. where the relay makes up for them, and one of eight on the second.
//!     for _ in 0..7 {
//!         relay.recode(&mut vector, &mut payload)?;
//!         decoder.push(bid, &vector, &payload)?;
//!     }
//!     if decoder.is_complete() {
//!         break;
//!     }
//! }
//! while let Some((index, symbol)) = decoder.poll() {
//!     assert_eq!(symbol, &source[index * 32..][..32]);
//! }
//! # assert_eq!(decoder.decoded(), [!0, (1 << 36) - 1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which sampling, which start
//!
//! [`Start::Systematic`] with [`Sampling::Even`] is what a transport wants: a source that loses nothing costs nothing,
//! a symbol can be used as soon as it arrives, and what is missing is repaired by whatever packets come.
//! [`Start::Coded`] with [`Sampling::Even`] is a fountain of equal batches: for many receivers that join when they
//! like. [`Sampling::Rfc`] understands others; as specified it needs many packets too many.
//!
//! Packets needed beyond K on average, and at most, M = 16, mean rank 0.82 M, 10,000 sessions (1,000 of the last line):
//!
//! | K | even, systematic | even, coded | the RFC's, seeds separate |
//! |---|---|---|---|
//! | 128 | 0.006, 1 | 0.006, 1 | 4.7, 185 |
//! | 256 | 0.009, 1 | 0.009, 2 | 20, 565 |
//! | 1,024 | 0.026, 1 | 0.031, 2 | 335, 1808 |
//!
//! For the last column the degrees are the linear program's for that K and those ranks with eta = 0.01, mean 54 to 62.
//! With [`Sampling::Rfc`] every session has the same batches, so that a K is lucky or not: 0.008, 0.08 and 18.
//!
//! # What it costs
//!
//! Encoding reads as many symbols for a packet as its batch's degree. With a systematic start, decoding what arrived as
//! it was sent is no arithmetic at all. Otherwise all elimination is on coefficients, and payloads are only multiplied
//! and added in blocked products. How many such terms that takes for each source symbol, K = 1,000, M = 16, ranks after
//! six hops of 10 % (mean 14.5), recoded packets only:
//!
//! | terms | systematic | coded |
//! |---|---|---|
//! | to take known symbols out of the packets that tell others | 20 | 14 |
//! | to tell these by the inverse of at most M x M coefficients | 13 | 11 |
//! | to take known symbols out of the packets that are left | 19 | 16 |
//! | for inactive symbols, by the inverse of what these packets say (91 and 238 symbols) | 8 | 56 |
//! | to correct the symbols that depend on inactive ones |  6 | 22 |
//! | in all | 66 | 120 |
//!
//! The rate of blocked products divided by that is the ceiling: where they run at 41 GB/s (AVX2, Zen 3) 0.62 and
//! 0.34 GB/s of source, where they run at 100 GB/s 1.5 and 0.83. Of the former, one core reaches 0.53 and 0.27 GB/s at
//! best, 85 and 80 %. The rest is the elimination, which with a coded start costs as much as 16 terms, and copying. So
//! 1 GB/s with a coded start would take kernels of 120 GB/s and elimination that costs nothing, or fewer inactive
//! symbols, whose number squared are the 56 terms: it is 236 to 247 in every greedy order of batches that was tried, by
//! what they lack, also in proportion to what they solve, at random among near ones, or with a look ahead.
//!
//! # Scope and departures
//!
//! Corrected in RFC 9426:
//!
//! - Figure 7 takes the first d with `r >= CDF[d]`, which is always 1. It is the first with `r < CDF[d]`.
//! - Coefficient vectors for q = 2 and M = 128 have 16 bytes, as the formula says, not 6 as the text does.
//! - The padding's deletion in figure 3 lacks a division by two in its `(1 + m) * m`; here padding is the caller's.
//! - Degree and first index come from one draw, since both samplers begin with the same seed. [`Sampling::Rfc`] keeps
//!   that, to be compatible; the others do not, and have a number for the session besides, so that what is unlucky once
//!   is not so always.
//!
//! Beyond it: even sampling, the systematic start, and the precode, which the RFC leaves open. Its tables too are
//! examples: with the degrees of [`degrees`], which rely on a precode and inactivation, RFC sampling without a precode
//! needs far too many packets; give it a distribution made for that.
//!
//! Not here: what identifies a session, addresses, feedback, rates, and the order in which packets are sent. Coded
//! packets are not authenticated: one that was forged spoils the symbols that are computed from it.

mod decoder;
pub mod degrees;
mod encoder;
mod parameters;
mod precode;
pub mod ranks;
pub mod recoding;
mod sampling;
mod tinymt;

#[cfg(test)]
mod tests;

pub use decoder::Decoder;
pub use degrees::Degrees;
pub use encoder::Encoder;
pub use parameters::{
    BatchSize, Error, Header, InnerField, MAX_BATCHES, MAX_SYMBOL_LEN, MAX_SYMBOLS, Parameters, Sampling,
    Start,
};
pub use tinymt::TinyMt32;
