//! The receiver's side of a generation.

use super::tableau::{Column, Tableau};
use super::{Coding, Coefficients, Error, Outcome, Packet, Shape};
use crate::field::{Field, Gf256};
use crate::store::Store;

/// Takes packets of one generation, gives its symbols as soon as they can be known.
///
/// [`push`](Decoder::push) what arrives, then [`poll`](Decoder::poll) until `None`. Payloads are only stored on arrival,
/// and combined when polled, all that can be known together, so that the destinations stay in registers; the elimination
/// of coefficients is finished in the same way. Polling less often is therefore faster, and never is wrong.
///
/// It holds two generations' worth of symbols and k² coefficients at most, allocated at the beginning.
#[derive(Debug)]
pub struct Decoder<F: Field = Gf256> {
    shape: Shape,
    generation: u32,
    tableau: Tableau<F>,
    /// Payloads as they arrived, each in the slot of its [`Column`].
    received: Store,
    /// Symbols that were computed, each in its own slot.
    computed: Store,
    /// Rows of the tableau that are recipes, but whose symbols have not been computed.
    ready: Vec<usize>,
    /// Indices of the symbols that can be read, in the order in which they became so.
    known: Vec<usize>,
    /// How many of those have been polled.
    polled: usize,
    decoded: Vec<u64>,
    matrix: Vec<u8>,
    offsets: Vec<usize>,
}

/// Rows that are computed together: enough that their sources stay in cache, few enough that their coefficients do.
const TOGETHER: usize = 64;

impl<F: Field> Decoder<F> {
    /// A decoder for a generation.
    pub fn new(shape: Shape, generation: u32) -> Self {
        let (k, len) = (shape.symbols(), shape.symbol_len());
        Self {
            shape,
            generation,
            tableau: Tableau::new(k),
            received: Store::new(k, len),
            computed: Store::new(k, len),
            ready: Vec::with_capacity(k),
            known: Vec::with_capacity(k),
            polled: 0,
            decoded: vec![0; k.div_ceil(64)],
            matrix: Vec::with_capacity(k.min(TOGETHER) * k),
            offsets: Vec::with_capacity(k.min(TOGETHER)),
        }
    }

    /// Forgets everything and begins with another generation of the same shape, in the same memory.
    pub fn start(&mut self, generation: u32) {
        self.generation = generation;
        self.tableau.clear();
        self.ready.clear();
        self.known.clear();
        self.polled = 0;
        self.decoded.fill(0);
    }

    /// The generation at work.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// How many innovative packets have arrived.
    pub fn rank(&self) -> usize {
        self.tableau.rank()
    }

    /// Whether the rank is k: every symbol can be polled, and no packet is innovative any more.
    pub fn is_complete(&self) -> bool {
        self.tableau.is_complete()
    }

    /// Which symbols have been or can be polled: symbol i is bit `i % 64` of word `i / 64`.
    pub fn decoded(&mut self) -> &[u64] {
        self.settle();
        &self.decoded
    }

    /// Takes a packet.
    ///
    /// # Errors
    ///
    /// [`Error::Generation`], [`Error::PayloadLength`], [`Error::VectorLength`] or [`Error::Index`]; the packet has then
    /// changed nothing.
    pub fn push(&mut self, packet: &Packet<'_>) -> Result<Outcome, Error> {
        if packet.generation != self.generation {
            return Err(Error::Generation { expected: self.generation, found: packet.generation });
        }
        self.shape.check_payload(packet.payload)?;
        match packet.coding {
            Coding::Symbol(index) => self.shape.check_index(index)?,
            Coding::Vector(vector) => self.shape.check_vector(vector)?,
            Coding::Seed(..) => {}
        }
        if self.is_complete() {
            return Ok(Outcome::Redundant);
        }
        let Some(slot) = self.place(packet.coding) else { return Ok(Outcome::Redundant) };
        self.received.slot_mut(slot).copy_from_slice(packet.payload);
        Ok(Outcome::Innovative)
    }

    /// The next symbol that has become known, with its index. Symbols come in no particular order, each once.
    pub fn poll(&mut self) -> Option<(usize, &[u8])> {
        if self.polled == self.known.len() {
            self.settle();
            self.compute();
        }
        let symbol = *self.known.get(self.polled)?;
        self.polled += 1;
        self.symbol(symbol).map(|payload| (symbol, payload))
    }

    /// A symbol that arrived as it is or has been computed by [`poll`](Self::poll); once all are polled, any.
    pub fn symbol(&self, index: usize) -> Option<&[u8]> {
        if index >= self.shape.symbols() {
            return None;
        }
        match self.tableau.column(index) {
            Column::Received => Some(self.received.slot(index)),
            Column::Pivot if self.is_decoded(index) && !self.is_pending(index) => {
                Some(self.computed.slot(index))
            }
            Column::Pivot | Column::Unknown => None,
        }
    }

    fn is_decoded(&self, symbol: usize) -> bool {
        self.decoded[symbol / 64] >> (symbol % 64) & 1 == 1
    }

    fn is_pending(&self, symbol: usize) -> bool {
        self.ready.iter().any(|&row| self.tableau.pivot(row) == symbol)
    }

    /// Where an innovative payload belongs.
    fn place(&mut self, coding: Coding<'_>) -> Option<usize> {
        match coding {
            Coding::Symbol(index) => match self.tableau.column(index) {
                Column::Received => return None,
                Column::Unknown => {
                    self.tableau.receive(index);
                    self.known.push(index);
                    self.decoded[index / 64] |= 1 << (index % 64);
                    return Some(index);
                }
                // Its slot is another payload's: an ordinary combination, of one symbol.
                Column::Pivot => {
                    let vector = self.tableau.vector_mut();
                    vector.fill(0);
                    vector[index] = 1;
                }
            },
            Coding::Vector(vector) => self.tableau.vector_mut().copy_from_slice(vector),
            Coding::Seed(seed, density) => {
                Coefficients::new(seed).fill::<F>(density, self.tableau.vector_mut());
            }
        }
        self.tableau.insert()
    }

    /// Finds out which rows are ready.
    fn settle(&mut self) {
        let before = self.ready.len();
        self.tableau.settle(&mut self.ready);
        for &row in &self.ready[before..] {
            let symbol = self.tableau.pivot(row);
            self.decoded[symbol / 64] |= 1 << (symbol % 64);
        }
    }

    /// Computes the symbols of the rows that are ready.
    fn compute(&mut self) {
        let k = self.shape.symbols();
        for rows in self.ready.chunks(TOGETHER) {
            self.matrix.clear();
            self.offsets.clear();
            for &row in rows {
                let symbol = self.tableau.pivot(row);
                self.matrix.extend_from_slice(self.tableau.row(row));
                self.offsets.push(self.computed.offset(symbol));
                self.known.push(symbol);
            }
            F::product_into(
                self.computed.symbols_at(&self.offsets),
                &self.matrix,
                self.received.symbols(0..k),
            );
        }
        self.ready.clear();
    }
}
