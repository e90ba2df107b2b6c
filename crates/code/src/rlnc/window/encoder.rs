//! The source's side of a sliding window.

use core::marker::PhantomData;

use crate::field::{Field, Gf256, Symbols};
use crate::rlnc::{Coefficients, Density, Error, Shape};
use crate::store::Store;

/// Remembers the latest symbols of a stream, and combines them.
#[derive(Debug)]
pub struct Encoder<F: Field = Gf256> {
    shape: Shape,
    symbols: Store,
    /// The symbols in the window: from `first` up to before `next`.
    first: u64,
    next: u64,
    /// Coefficients by slot.
    by_slot: Vec<u8>,
    field: PhantomData<F>,
}

/// The symbols that a repair packet combines; there are as many coefficients.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The number of the first one.
    pub first: u64,
    /// Number of these symbols.
    pub count: usize,
}

impl<F: Field> Encoder<F> {
    /// An encoder whose window is the number of symbols of `shape`.
    pub fn new(shape: Shape) -> Self {
        Self {
            shape,
            symbols: Store::new(shape.symbols(), shape.symbol_len()),
            first: 0,
            next: 0,
            by_slot: vec![0; shape.symbols()],
            field: PhantomData,
        }
    }

    /// Takes the next symbol, gives its number. The oldest leaves a window that is full.
    ///
    /// # Errors
    ///
    /// [`Error::PayloadLength`].
    pub fn push(&mut self, symbol: &[u8]) -> Result<u64, Error> {
        self.shape.check_payload(symbol)?;
        let number = self.next;
        let slot = self.slot(number);
        self.symbols.slot_mut(slot).copy_from_slice(symbol);
        self.next += 1;
        self.first = self.first.max(self.next.saturating_sub(self.shape.symbols() as u64));
        Ok(number)
    }

    /// Forgets the symbols before `number`, because they have been acknowledged, say: repair is then cheaper.
    pub fn forget(&mut self, number: u64) {
        self.first = number.clamp(self.first, self.next);
    }

    /// The symbols in the window.
    pub fn span(&self) -> Span {
        Span { first: self.first, count: (self.next - self.first) as usize }
    }

    /// A symbol in the window.
    pub fn symbol(&self, number: u64) -> Option<&[u8]> {
        (self.first..self.next).contains(&number).then(|| self.symbols.slot(self.slot(number)))
    }

    /// Draws a vector over the window and writes it to the front of `vector`, and its combination to `payload`. Seed
    /// the [`Coefficients`] for each packet, and the receiver can draw the same.
    ///
    /// # Errors
    ///
    /// [`Error::PayloadLength`]; [`Error::VectorLength`] if `vector` is shorter than the span; [`Error::Empty`] if
    /// there are no symbols.
    pub fn repair(
        &mut self,
        coefficients: &mut Coefficients,
        density: Density,
        vector: &mut [u8],
        payload: &mut [u8],
    ) -> Result<Span, Error> {
        let (span, len) = (self.span(), self.shape.symbol_len());
        self.shape.check_payload(payload)?;
        if span.count == 0 {
            return Err(Error::Empty);
        }
        if vector.len() < span.count {
            return Err(Error::VectorLength { expected: span.count, found: vector.len() });
        }
        let vector = &mut vector[..span.count];
        coefficients.fill::<F>(density, vector);
        self.by_slot.fill(0);
        for (number, &coefficient) in (span.first..).zip(&*vector) {
            let slot = self.slot(number);
            self.by_slot[slot] = coefficient;
        }
        let all = self.symbols.symbols(0..self.symbols.slots());
        F::product_into(Symbols::new(payload, &[0], len), &self.by_slot, all);
        Ok(span)
    }

    fn slot(&self, number: u64) -> usize {
        (number % self.shape.symbols() as u64) as usize
    }
}
