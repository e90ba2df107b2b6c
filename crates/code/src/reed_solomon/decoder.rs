//! Source symbols out of any k.

use super::code::{invert, same_length};
use super::{Code, Error};
use crate::field::axpy_rows;

/// Recovers lost source symbols: [`prepare`](Decoder::prepare) with what has arrived, then
/// [`recover`](Decoder::recover) each that is missing.
///
/// Only as large a system is solved as source symbols are missing.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    code: &'a Code,
    /// The number of source symbols of the block; fewer than k if it is shortened.
    block: usize,
    /// The missing source symbols, ascending.
    missing: Vec<usize>,
    /// The coefficients of each source symbol and each parity symbol: a row of `received` coefficients for each missing
    /// one.
    recipes: Vec<u8>,
    received: usize,
    system: Vec<u8>,
    inverse: Vec<u8>,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(code: &'a Code) -> Self {
        let (missing, recipes, system, inverse) = Default::default();
        Self { code, block: code.source(), missing, recipes, received: 0, system, inverse }
    }

    /// Notes which k symbols have arrived: indices from 0 are source symbols, from k on parity symbols.
    ///
    /// # Errors
    ///
    /// [`Error::Count`] if they are not k, [`Error::Index`] or [`Error::Duplicate`].
    pub fn prepare(&mut self, received: &[usize]) -> Result<(), Error> {
        self.prepare_short(self.code.source(), received)
    }

    /// The same for a shortened block of `block` source symbols, of which `block` symbols have arrived. Parity symbols
    /// then begin with index `block`, as their encoding symbol identifiers do in NORM.
    ///
    /// # Errors
    ///
    /// As for [`prepare`](Self::prepare).
    pub fn prepare_short(&mut self, block: usize, received: &[usize]) -> Result<(), Error> {
        self.received = 0;
        self.missing.clear();
        if block == 0 || block > self.code.source() {
            return Err(Error::Count { expected: self.code.source(), found: block });
        }
        if received.len() != block {
            return Err(Error::Count { expected: block, found: received.len() });
        }
        let symbols = block + self.code.parity_symbols();
        let mut have = [false; Code::MAX_SYMBOLS];
        for &index in received {
            if index >= symbols {
                return Err(Error::Index { symbols, index });
            }
            if core::mem::replace(&mut have[index], true) {
                return Err(Error::Duplicate { index });
            }
        }
        self.block = block;
        self.missing.extend((0..block).filter(|&index| !have[index]));
        self.solve(received);
        self.received = block;
        Ok(())
    }

    /// The source symbols that are missing, ascending.
    pub fn missing(&self) -> &[usize] {
        &self.missing
    }

    /// Writes the missing source symbol `index`, out of the symbols received, in the order in which they were prepared.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] if it is not [`missing`](Self::missing), [`Error::Count`] if there are not as many symbols as
    /// were prepared, [`Error::Length`] if one of them is not as long as `symbol`.
    pub fn recover(&self, index: usize, received: &[&[u8]], symbol: &mut [u8]) -> Result<(), Error> {
        if received.len() != self.received {
            return Err(Error::Count { expected: self.received, found: received.len() });
        }
        let Ok(row) = self.missing.binary_search(&index) else {
            return Err(Error::Index { symbols: self.missing.len(), index });
        };
        same_length(received, symbol)?;
        symbol.fill(0);
        axpy_rows(symbol, &self.recipes[row * self.received..][..self.received], received);
        Ok(())
    }

    /// Each parity symbol received is a sum over missing and over present source symbols. With S the coefficients of
    /// the missing ones: missing = inverse(S) * (parity - sum over the present ones).
    fn solve(&mut self, received: &[usize]) {
        let (block, missing) = (self.block, self.missing.len());
        self.system.clear();
        for &index in received.iter().filter(|&&index| index >= block) {
            let row = self.code.row(index - block);
            self.system.extend(self.missing.iter().map(|&column| row[column]));
        }
        self.inverse.clear();
        self.inverse.resize(missing * missing, 0);
        let regular = invert(missing, &mut self.system, &mut self.inverse);
        // Any k rows of the generator are independent, which is what makes the code one.
        debug_assert!(regular, "every square part of the parity matrix is regular");

        self.recipes.clear();
        self.recipes.resize(missing * received.len(), 0);
        let parities = || received.iter().enumerate().filter(|&(_, &index)| index >= block);
        for (recipe, inverse) in
            self.recipes.chunks_exact_mut(received.len()).zip(self.inverse.chunks_exact(missing.max(1)))
        {
            for ((place, &parity), &factor) in parities().zip(inverse) {
                recipe[place] = factor;
                let row = self.code.row(parity - block);
                for (place, &index) in received.iter().enumerate().filter(|&(_, &index)| index < block) {
                    recipe[place] ^= crate::field::mul(factor, row[index]);
                }
            }
        }
    }
}
