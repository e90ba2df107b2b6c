//! The source's side of a generation.

use core::marker::PhantomData;

use super::{Coefficients, Density, Error, Shape};
use crate::field::{Field, Gf256, Symbols};
use crate::store::Store;

/// Combines a generation's symbols, of which it need not have all yet.
///
/// Several combinations at once ([`encode_many`](Encoder::encode_many)) are up to three times as fast as one at a time,
/// since each symbol is then loaded once for four of them.
#[derive(Debug)]
pub struct Encoder<F: Field = Gf256> {
    shape: Shape,
    symbols: Store,
    count: usize,
    /// A vector drawn from a seed.
    vector: Vec<u8>,
    field: PhantomData<F>,
}

impl<F: Field> Encoder<F> {
    /// An encoder without symbols.
    pub fn new(shape: Shape) -> Self {
        Self {
            shape,
            symbols: Store::new(shape.symbols(), shape.symbol_len()),
            count: 0,
            vector: vec![0; shape.symbols()],
            field: PhantomData,
        }
    }

    /// Forgets the symbols, for the next generation; keeps the memory.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Number of symbols.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Takes the next symbol, gives its index.
    ///
    /// # Errors
    ///
    /// [`Error::PayloadLength`], or [`Error::Full`] when there are k.
    pub fn push(&mut self, symbol: &[u8]) -> Result<usize, Error> {
        self.shape.check_payload(symbol)?;
        if self.count == self.shape.symbols() {
            return Err(Error::Full);
        }
        self.symbols.slot_mut(self.count).copy_from_slice(symbol);
        self.count += 1;
        Ok(self.count - 1)
    }

    /// A symbol as it is: the payload of a systematic packet.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] if it has not been given one of that index.
    pub fn symbol(&self, index: usize) -> Result<&[u8], Error> {
        if index < self.count {
            Ok(self.symbols.slot(index))
        } else {
            Err(Error::Index { symbols: self.count, index })
        }
    }

    /// Writes the combination with these coefficients to `payload`.
    ///
    /// Coefficients of symbols that are still missing must be 0.
    ///
    /// # Errors
    ///
    /// [`Error::VectorLength`], [`Error::PayloadLength`], or [`Error::Index`] for a symbol that is missing.
    pub fn encode(&self, vector: &[u8], payload: &mut [u8]) -> Result<(), Error> {
        self.encode_many(vector, payload)
    }

    /// Combinations, as many as `payloads` has room for, which lie in it one after the other, as their vectors do in
    /// `vectors`.
    ///
    /// # Errors
    ///
    /// As for [`encode`](Self::encode), nothing having been written.
    pub fn encode_many(&self, vectors: &[u8], payloads: &mut [u8]) -> Result<(), Error> {
        let (k, len) = (self.shape.symbols(), self.shape.symbol_len());
        let rows = payloads.len() / len;
        if rows == 0 || !payloads.len().is_multiple_of(len) {
            return Err(Error::PayloadLength { expected: len, found: payloads.len() });
        }
        if vectors.len() != rows * k {
            return Err(Error::VectorLength { expected: rows * k, found: vectors.len() });
        }
        if self.count < k {
            self.none_missing(vectors)?;
        }
        // Offsets on the stack, so a few rows at a time. Chosen: with fewer, sources are loaded more often.
        const AT_ONCE: usize = 16;
        let at: [usize; AT_ONCE] = core::array::from_fn(|row| row * len);
        for (vectors, payloads) in vectors.chunks(AT_ONCE * k).zip(payloads.chunks_mut(AT_ONCE * len)) {
            let payloads = Symbols::new(payloads, &at[..vectors.len() / k], len);
            F::product_into(payloads, vectors, self.symbols.symbols(0..k));
        }
        Ok(())
    }

    /// Writes the combination of a seed to `payload`, over the whole generation.
    ///
    /// # Errors
    ///
    /// As for [`encode`](Self::encode).
    pub fn encode_seeded(&mut self, seed: u64, density: Density, payload: &mut [u8]) -> Result<(), Error> {
        let mut vector = core::mem::take(&mut self.vector);
        Coefficients::new(seed).fill::<F>(density, &mut vector);
        let result = self.encode(&vector, payload);
        self.vector = vector;
        result
    }

    /// Draws a vector over the symbols that it has, and writes it and its combination.
    ///
    /// # Errors
    ///
    /// [`Error::VectorLength`] or [`Error::PayloadLength`]; [`Error::Empty`] without symbols.
    pub fn encode_random(
        &self,
        coefficients: &mut Coefficients,
        density: Density,
        vector: &mut [u8],
        payload: &mut [u8],
    ) -> Result<(), Error> {
        self.shape.check_vector(vector)?;
        if self.count == 0 {
            return Err(Error::Empty);
        }
        coefficients.fill::<F>(density, &mut vector[..self.count]);
        vector[self.count..].fill(0);
        self.encode(vector, payload)
    }

    fn none_missing(&self, vectors: &[u8]) -> Result<(), Error> {
        for vector in vectors.chunks_exact(self.shape.symbols()) {
            if let Some(beyond) = vector[self.count..].iter().position(|c| c & F::MASK != 0) {
                return Err(Error::Index { symbols: self.count, index: self.count + beyond });
            }
        }
        Ok(())
    }
}
