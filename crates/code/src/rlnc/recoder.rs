//! A relay's side of a generation.

use core::marker::PhantomData;

use super::elimination::Elimination;
use super::{Coding, Coefficients, Density, Error, Outcome, Packet, Shape};
use crate::field::{Field, Gf256, Symbols};
use crate::store::Store;

/// Sends combinations of the packets it was given, without decoding them.
///
/// It keeps the innovative ones, up to a capacity. Beyond that, each one that arrives, innovative or not, is added to
/// one that it has, with a random coefficient: what it keeps then drifts through the whole space. A capacity below k
/// saves memory and arithmetic, and the rank that passes in any short time is limited to it.
#[derive(Debug)]
pub struct Recoder<F: Field = Gf256> {
    shape: Shape,
    generation: u32,
    /// Knows which packets are innovative; holds no payloads.
    elimination: Elimination<F>,
    vectors: Store,
    payloads: Store,
    count: usize,
    /// The vector of the packet at work; how the kept ones are combined.
    vector: Vec<u8>,
    local: Vec<u8>,
    coefficients: Coefficients,
    field: PhantomData<F>,
}

impl<F: Field> Recoder<F> {
    /// A recoder that keeps up to `capacity` packets (at least 1, at most k), and draws from `seed`.
    pub fn new(shape: Shape, generation: u32, capacity: usize, seed: u64) -> Self {
        let k = shape.symbols();
        let capacity = capacity.clamp(1, k);
        Self {
            shape,
            generation,
            elimination: Elimination::new(k),
            vectors: Store::new(capacity, k),
            payloads: Store::new(capacity, shape.symbol_len()),
            count: 0,
            vector: vec![0; k],
            local: vec![0; AT_ONCE * capacity],
            coefficients: Coefficients::new(seed),
            field: PhantomData,
        }
    }

    /// Forgets everything and begins with another generation, in the same memory.
    pub fn start(&mut self, generation: u32) {
        self.generation = generation;
        self.elimination.clear();
        self.count = 0;
    }

    /// Number of innovative packets that have arrived.
    pub fn rank(&self) -> usize {
        self.elimination.rank()
    }

    /// Takes a packet.
    ///
    /// # Errors
    ///
    /// [`Error::Generation`], [`Error::PayloadLength`], [`Error::VectorLength`] or [`Error::Index`]; the packet has
    /// then changed nothing.
    pub fn push(&mut self, packet: &Packet<'_>) -> Result<Outcome, Error> {
        if packet.generation != self.generation {
            return Err(Error::Generation { expected: self.generation, found: packet.generation });
        }
        self.shape.check_payload(packet.payload)?;
        match packet.coding {
            Coding::Symbol(index) => {
                self.shape.check_index(index)?;
                self.vector.fill(0);
                self.vector[index] = 1;
            }
            Coding::Vector(vector) => {
                self.shape.check_vector(vector)?;
                self.vector.copy_from_slice(vector);
            }
            Coding::Seed(seed, density) => Coefficients::new(seed).fill::<F>(density, &mut self.vector),
        }
        if self.adds_to_the_rank() {
            self.keep(packet.payload);
            return Ok(Outcome::Innovative);
        }
        if self.count == self.payloads.slots() && self.count < self.shape.symbols() {
            self.keep(packet.payload);
        }
        Ok(Outcome::Redundant)
    }

    /// Writes a random combination of what was kept: its vector, as long as k, and its payload.
    ///
    /// # Errors
    ///
    /// [`Error::VectorLength`] or [`Error::PayloadLength`]; [`Error::Empty`] before the first packet.
    pub fn recode(&mut self, vector: &mut [u8], payload: &mut [u8]) -> Result<(), Error> {
        self.shape.check_payload(payload)?;
        self.recode_many(vector, payload)
    }

    /// Random combinations, as many as `payloads` has room for, which lie in it one after the other, as their vectors
    /// do in `vectors`; faster than one at a time.
    ///
    /// # Errors
    ///
    /// As for [`recode`](Self::recode), nothing having been written.
    pub fn recode_many(&mut self, vectors: &mut [u8], payloads: &mut [u8]) -> Result<(), Error> {
        let (k, len) = (self.shape.symbols(), self.shape.symbol_len());
        let rows = payloads.len() / len;
        if rows == 0 || !payloads.len().is_multiple_of(len) {
            return Err(Error::PayloadLength { expected: len, found: payloads.len() });
        }
        if vectors.len() != rows * k {
            return Err(Error::VectorLength { expected: rows * k, found: vectors.len() });
        }
        if self.count == 0 {
            return Err(Error::Empty);
        }
        let vector_at: [usize; AT_ONCE] = core::array::from_fn(|row| row * k);
        let payload_at: [usize; AT_ONCE] = core::array::from_fn(|row| row * len);
        for (vectors, payloads) in vectors.chunks_mut(AT_ONCE * k).zip(payloads.chunks_mut(AT_ONCE * len)) {
            let rows = payloads.len() / len;
            let local = &mut self.local[..rows * self.count];
            self.coefficients.fill::<F>(Density::FULL, local);
            let (vectors, payloads) = (
                Symbols::new(vectors, &vector_at[..rows], k),
                Symbols::new(payloads, &payload_at[..rows], len),
            );
            F::product_into(vectors, local, self.vectors.symbols(0..self.count));
            F::product_into(payloads, local, self.payloads.symbols(0..self.count));
        }
        Ok(())
    }

    fn adds_to_the_rank(&mut self) -> bool {
        if self.elimination.is_complete() {
            return false;
        }
        self.elimination.vector_mut().copy_from_slice(&self.vector);
        self.elimination.insert().is_some()
    }

    /// Keeps a payload with the vector at work.
    fn keep(&mut self, payload: &[u8]) {
        if self.count < self.payloads.slots() {
            self.vectors.slot_mut(self.count).copy_from_slice(&self.vector);
            self.payloads.slot_mut(self.count).copy_from_slice(payload);
            self.count += 1;
            return;
        }
        let random = self.coefficients.bits();
        let slot = (random >> 32) as usize % self.count;
        let coefficient = (random as u8 & F::MASK).max(1);
        F::axpy(self.vectors.slot_mut(slot), coefficient, &self.vector);
        F::axpy(self.payloads.slot_mut(slot), coefficient, payload);
    }
}

/// Combinations that are made together, their offsets on the stack. Chosen: with fewer, sources are loaded more often.
const AT_ONCE: usize = 16;
