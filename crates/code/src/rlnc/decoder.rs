//! The receiver's side of a generation.

use super::elimination::{Column, Elimination};
use super::{Coding, Coefficients, Error, Outcome, Packet, Shape};
use crate::field::{Field, Gf256};
use crate::store::Heap;

/// Takes packets of one generation, gives its symbols as soon as they can be known.
///
/// [`push`](Decoder::push) what arrives, then [`poll`](Decoder::poll) until `None`. Payloads are only stored on
/// arrival, and combined when polled, all that can be known together, so that the destinations stay in registers; the
/// elimination of coefficients is finished in the same way. Polling less often is therefore faster, and never is wrong.
///
/// It holds two generations' worth of symbols and k² coefficients at most, allocated at the beginning.
#[derive(Debug)]
pub struct Decoder<F: Field = Gf256> {
    shape: Shape,
    generation: u32,
    elimination: Elimination<F>,
    /// Payloads as they arrived, and symbols that were computed.
    payloads: Heap,
    /// For each [`Column`], where the payload is of which it holds the coefficients. 0 while it holds none.
    payload_at: Vec<usize>,
    /// Place at which each symbol can be read.
    symbol_at: Vec<usize>,
    /// Rows of the elimination that are recipes, but whose symbols have not been computed.
    ready: Vec<usize>,
    /// Indices of the symbols that can be read, in the order in which they became so.
    known: Vec<usize>,
    /// Number of those that have been polled.
    polled: usize,
    decoded: Vec<u64>,
    /// Number of the known ones that have been entered there.
    entered: usize,
    matrix: Vec<u8>,
}

/// Place of a symbol that cannot be read yet.
const NOWHERE: usize = usize::MAX;

/// Rows that are computed together. Chosen: enough that their sources stay in cache, few enough that their
/// coefficients do.
const TOGETHER: usize = 64;

impl<F: Field> Decoder<F> {
    /// A decoder for a generation.
    pub fn new(shape: Shape, generation: u32) -> Self {
        let (k, len) = (shape.symbols(), shape.symbol_len());
        Self {
            shape,
            generation,
            elimination: Elimination::new(k),
            payloads: Heap::new(2 * k, len),
            payload_at: vec![0; k],
            symbol_at: vec![NOWHERE; k],
            ready: Vec::with_capacity(k),
            known: Vec::with_capacity(k),
            polled: 0,
            decoded: vec![0; k.div_ceil(64)],
            entered: 0,
            matrix: Vec::with_capacity(k.min(TOGETHER) * k),
        }
    }

    /// Forgets everything and begins with another generation of the same shape, in the same memory.
    pub fn start(&mut self, generation: u32) {
        self.generation = generation;
        self.elimination.clear();
        self.payloads.clear();
        self.payload_at.fill(0);
        self.symbol_at.fill(NOWHERE);
        self.ready.clear();
        self.known.clear();
        self.polled = 0;
        self.decoded.fill(0);
        self.entered = 0;
    }

    /// The generation at work.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Number of innovative packets that have arrived.
    pub fn rank(&self) -> usize {
        self.elimination.rank()
    }

    /// Whether the rank is k: every symbol can be polled, and no packet is innovative any more.
    pub fn is_complete(&self) -> bool {
        self.elimination.is_complete()
    }

    /// Bitmap of the symbols that have been or can be polled: symbol i is bit `i % 64` of word `i / 64`.
    pub fn decoded(&mut self) -> &[u64] {
        self.elimination.settle(&mut self.ready);
        let ready = self.ready.iter().map(|&row| self.elimination.pivot(row));
        for symbol in self.known[self.entered..].iter().copied().chain(ready) {
            self.decoded[symbol / 64] |= 1 << (symbol % 64);
        }
        self.entered = self.known.len();
        &self.decoded
    }

    /// Takes a packet.
    ///
    /// # Errors
    ///
    /// [`Error::Generation`], [`Error::PayloadLength`], [`Error::VectorLength`] or [`Error::Index`]; the packet has
    /// then changed nothing.
    #[inline]
    pub fn push(&mut self, packet: &Packet<'_>) -> Result<Outcome, Error> {
        if packet.generation != self.generation {
            return Err(Error::Generation { expected: self.generation, found: packet.generation });
        }
        self.shape.check_payload(packet.payload)?;
        if let Coding::Symbol(index) = packet.coding {
            self.shape.check_index(index)?;
            if self.elimination.column(index) == Column::Unknown {
                self.elimination.receive(index);
                let at = self.payloads.push(packet.payload);
                self.payload_at[index] = at;
                self.symbol_at[index] = at;
                self.known.push(index);
                return Ok(Outcome::Innovative);
            }
        }
        self.push_combination(packet)
    }

    /// The next symbol that has become known, with its index. Symbols come in no particular order, each once.
    #[inline]
    pub fn poll(&mut self) -> Option<(usize, &[u8])> {
        if self.polled == self.known.len() {
            self.compute();
        }
        let symbol = *self.known.get(self.polled)?;
        self.polled += 1;
        Some((symbol, self.payloads.slot(self.symbol_at[symbol])))
    }

    /// A symbol that arrived as it is or has been computed by [`poll`](Self::poll); once all are polled, any.
    pub fn symbol(&self, index: usize) -> Option<&[u8]> {
        let at = *self.symbol_at.get(index)?;
        (at != NOWHERE).then(|| self.payloads.slot(at))
    }

    /// Takes what is not a symbol of which nothing was known.
    #[inline(never)]
    fn push_combination(&mut self, packet: &Packet<'_>) -> Result<Outcome, Error> {
        if let Coding::Vector(vector) = packet.coding {
            self.shape.check_vector(vector)?;
        }
        if self.is_complete() {
            return Ok(Outcome::Redundant);
        }
        if let Coding::Symbol(index) = packet.coding
            && self.elimination.column(index) == Column::Received
        {
            return Ok(Outcome::Redundant);
        }
        let vector = self.elimination.vector_mut();
        match packet.coding {
            // Its column is another payload's: an ordinary combination, of one symbol.
            Coding::Symbol(index) => {
                vector.fill(0);
                vector[index] = 1;
            }
            Coding::Vector(given) => vector.copy_from_slice(given),
            Coding::Seed(seed, density) => Coefficients::new(seed).fill::<F>(density, vector),
        }
        let Some(column) = self.elimination.insert() else { return Ok(Outcome::Redundant) };
        self.payload_at[column] = self.payloads.push(packet.payload);
        Ok(Outcome::Innovative)
    }

    /// Finds out which rows are ready, and computes their symbols.
    #[inline(never)]
    fn compute(&mut self) {
        self.elimination.settle(&mut self.ready);
        for rows in self.ready.chunks(TOGETHER) {
            self.matrix.clear();
            let (mut at, stride) = self.payloads.next();
            for &row in rows {
                let symbol = self.elimination.pivot(row);
                self.matrix.extend_from_slice(self.elimination.row(row));
                self.symbol_at[symbol] = at;
                self.known.push(symbol);
                at += stride;
            }
            self.payloads.combine::<F>(rows.len(), &self.matrix, &self.payload_at);
        }
        self.ready.clear();
    }
}
