//! The data that every contender gets: k random symbols, and random coefficients to combine them with.

use hopcast_code::field::Gf256;
use hopcast_code::rlnc::{Coefficients, Density, Encoder, Shape};

/// A generation.
pub(crate) struct Block {
    pub(crate) k: usize,
    pub(crate) len: usize,
    /// The symbols, one after the other.
    pub(crate) source: Vec<u8>,
    /// Coefficients of [`packets`](Self::packets) combinations, one vector after the other.
    pub(crate) vectors: Vec<u8>,
}

impl Block {
    pub(crate) fn new(k: usize, len: usize) -> Self {
        let mut random = Coefficients::new((k * 65_536 + len) as u64);
        let mut source = vec![0; k * len];
        random.fill::<Gf256>(Density::FULL, &mut source);
        // `rlnc` pads, and ends its data with a 1 of its own. With this one in its place, symbols are of equal length.
        source[k * len - 1] = 0x81;
        let mut block = Self { k, len, source, vectors: Vec::new() };
        block.vectors = vec![0; block.packets() * k];
        random.fill::<Gf256>(Density::FULL, &mut block.vectors);
        block
    }

    /// Number of combinations: some more than k, should a few not be innovative.
    pub(crate) fn packets(&self) -> usize {
        self.k + 4
    }

    pub(crate) fn bytes(&self) -> usize {
        self.k * self.len
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape::new(self.k, self.len).expect("within the limits")
    }

    pub(crate) fn symbols(&self) -> impl Iterator<Item = &[u8]> {
        self.source.chunks(self.len)
    }

    pub(crate) fn symbol(&self, index: usize) -> &[u8] {
        &self.source[index * self.len..][..self.len]
    }

    pub(crate) fn vector(&self, packet: usize) -> &[u8] {
        &self.vectors[packet * self.k..][..self.k]
    }

    /// An encoder with all symbols.
    pub(crate) fn encoder(&self) -> Encoder {
        let mut encoder = Encoder::new(self.shape());
        for symbol in self.symbols() {
            encoder.push(symbol).expect("a symbol that fits");
        }
        encoder
    }
}

/// Whether the channel that loses 10 % loses the symbol of this index.
pub(crate) fn is_lost(index: usize) -> bool {
    index % 10 == 5
}

/// Symbols of which each begins at a multiple of a cache line: as those who can choose would have them.
pub(crate) struct Aligned {
    bytes: Vec<u8>,
    first: usize,
    len: usize,
}

impl Aligned {
    pub(crate) const LINE: usize = 64;

    pub(crate) fn zeroed(count: usize, len: usize) -> Self {
        let bytes = vec![0; count * len.next_multiple_of(Self::LINE) + Self::LINE];
        let first = bytes.as_ptr().align_offset(Self::LINE);
        Self { bytes, first, len }
    }

    pub(crate) fn copy_of(symbols: &[u8], len: usize) -> Self {
        let mut aligned = Self::zeroed(symbols.len() / len, len);
        for (i, symbol) in symbols.chunks(len).enumerate() {
            aligned.symbol_mut(i).copy_from_slice(symbol);
        }
        aligned
    }

    pub(crate) fn offset(&self, i: usize) -> usize {
        self.first + i * self.len.next_multiple_of(Self::LINE)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    pub(crate) fn symbol(&self, i: usize) -> &[u8] {
        &self.bytes[self.offset(i)..][..self.len]
    }

    pub(crate) fn symbol_mut(&mut self, i: usize) -> &mut [u8] {
        let at = self.offset(i);
        &mut self.bytes[at..][..self.len]
    }
}
