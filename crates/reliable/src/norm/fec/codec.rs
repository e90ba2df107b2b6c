//! Parity symbols of blocks, and source symbols out of them.

use hopcast_code::reed_solomon::Code;

use super::Unsupported;
use crate::norm::config::MAX_SYMBOLS;
use crate::norm::wire::{Fec, Fti};

/// Why the arguments of the code are right.
const KNOWN: &str = "the caller knows the code and the block";

/// A code for the blocks of objects of one sender.
///
/// It holds a matrix of as many bytes as the maximum numbers of source and parity symbols multiply to, 16 KiB at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Codec(Code);

/// A block of which too few symbols are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a block of {source_symbols} source symbols cannot be decoded from {present} symbols")]
pub struct Undecodable {
    /// Number of source symbols of the block.
    pub source_symbols: usize,
    /// Number of its symbols that are there, source and parity.
    pub present: usize,
}

impl Codec {
    /// The code for blocks of at most `max_source` source symbols with `parity` parity symbols.
    ///
    /// # Errors
    /// [`Unsupported::Symbols`] unless they are 1 to 255 together and at least one is a source symbol.
    pub fn new(max_source: u16, parity: u16) -> Result<Self, Unsupported> {
        Code::new(max_source.into(), parity.into())
            .map(Self)
            .map_err(|_| Unsupported::Symbols { source_symbols: max_source, parity })
    }

    /// The code of the objects that have this FTI.
    ///
    /// # Errors
    /// [`Unsupported`] if it is none of those of the [module](super).
    pub fn of(fti: &Fti) -> Result<Self, Unsupported> {
        Self::check(fti)?;
        Self::new(fti.source, fti.parity)
    }

    /// Whether there is a code for the objects that have this FTI; that costs nothing, where the code costs arithmetic.
    ///
    /// # Errors
    /// As for [`of`](Self::of).
    pub fn check(fti: &Fti) -> Result<(), Unsupported> {
        match fti.fec {
            Fec::ReedSolomon if !fti.is_8_bits() => return Err(Unsupported::Field(fti.field)),
            // RFC 5510, section 4.2.3: where nothing is said it is 1.
            Fec::ReedSolomon if fti.group > 1 => return Err(Unsupported::Group(fti.group)),
            Fec::SmallBlock if fti.instance != 0 => return Err(Unsupported::Instance(fti.instance)),
            Fec::ReedSolomon | Fec::ReedSolomon8 | Fec::SmallBlock => {}
        }
        let fits = fti.source > 0 && fti.source <= MAX_SYMBOLS && fti.parity <= MAX_SYMBOLS - fti.source;
        let (source_symbols, parity) = (fti.source, fti.parity);
        if fits { Ok(()) } else { Err(Unsupported::Symbols { source_symbols, parity }) }
    }

    /// Maximum number of source symbols of a block.
    pub fn max_source(&self) -> usize {
        self.0.source()
    }

    /// Number of parity symbols of a block.
    pub fn parity_symbols(&self) -> usize {
        self.0.parity_symbols()
    }

    /// Writes parity symbol `index` of a block, counted from 0. The block may have fewer source symbols than the
    /// maximum, and each may be shorter than `parity`, which is as long as the longest.
    ///
    /// # Panics
    /// If there is no such parity symbol, if there are more source symbols than the maximum, or if one is longer than
    /// `parity`.
    pub fn parity(&self, index: usize, source: &[&[u8]], parity: &mut [u8]) {
        if source.iter().all(|symbol| symbol.len() == parity.len()) {
            return self.0.parity(index, source, parity).expect(KNOWN);
        }
        parity.fill(0);
        for (position, symbol) in source.iter().enumerate() {
            self.0.accumulate(index, position, symbol, &mut parity[..symbol.len()]).expect(KNOWN);
        }
    }

    /// Fills in the source symbols that are missing of a block of `source` of them. `symbols` has these, then parity
    /// symbols in their order, `None` where one is missing; parity symbols that nobody has may be left out.
    ///
    /// Symbols count as if zeros followed, and get them: those that are used or filled in are as long as the longest
    /// then. Nothing changes if no source symbol is missing.
    ///
    /// # Errors
    /// [`Undecodable`] if fewer than `source` symbols are there, or if there are more of either kind than the code has;
    /// nothing changes then.
    pub fn decode(&self, source: usize, symbols: &mut [Option<Vec<u8>>]) -> Result<(), Undecodable> {
        let present = symbols.iter().flatten().count();
        let undecodable = Undecodable { source_symbols: source, present };
        if symbols.len() < source || symbols.len() - source > self.parity_symbols() {
            return Err(undecodable);
        }
        if symbols[..source].iter().all(Option::is_some) {
            return Ok(());
        }
        let used: Vec<usize> =
            (0..symbols.len()).filter(|&index| symbols[index].is_some()).take(source).collect();
        let mut decoder = self.0.decoder();
        decoder.prepare_short(source, &used).map_err(|_| undecodable)?;

        let len = symbols.iter().flatten().map(Vec::len).max().unwrap_or(0);
        for index in &used {
            if let Some(symbol) = &mut symbols[*index] {
                symbol.resize(len, 0);
            }
        }
        let received: Vec<&[u8]> = used.iter().filter_map(|&index| symbols[index].as_deref()).collect();
        let mut recovered = vec![vec![0; len]; decoder.missing().len()];
        for (&index, symbol) in decoder.missing().iter().zip(&mut recovered) {
            decoder.recover(index, &received, symbol).expect(KNOWN);
        }
        for (&index, symbol) in decoder.missing().iter().zip(recovered) {
            symbols[index] = Some(symbol);
        }
        Ok(())
    }
}
