//! The source's side of a session.

use super::parameters::{Error, Parameters, check_bid};
use super::precode::{Precode, Sums};
use super::sampling::Sampler;
use crate::field::{self, Symbols};

/// Makes batches out of source symbols, which lie one after the other in `B`: bytes of its own or borrowed.
///
/// [`batch`](Encoder::batch) makes the M packets of one, [`packet`](Encoder::packet) any one of them. What is coded
/// needs the whole source; what carries it as it is needs only that, so an `Encoder<Vec<u8>>` can send while the source
/// still [grows](Encoder::push).
#[derive(Debug)]
pub struct Encoder<B> {
    parameters: Parameters,
    sampler: Sampler,
    source: B,
    precode: Option<Precode>,
    sums: Option<Sums>,
    /// Whether the sums are those of this source.
    is_precoded: bool,
    /// Places of the source's symbols.
    at: Vec<usize>,
    /// The batch at work: its symbols, and where those are that are source symbols; its coefficients; and of these,
    /// those that belong to source symbols.
    indices: Vec<u32>,
    chosen: Vec<usize>,
    rows: Vec<u8>,
    matrix: Vec<u8>,
}

impl<B: AsRef<[u8]>> Encoder<B> {
    /// An encoder for a source of whole symbols, K or as yet fewer.
    ///
    /// # Errors
    ///
    /// [`Error::PayloadLength`] if it has more than K symbols, or a part of one.
    pub fn new(parameters: &Parameters, source: B) -> Result<Self, Error> {
        let (expected, found) = (parameters.symbols() * parameters.symbol_len(), source.as_ref().len());
        if found > expected || !found.is_multiple_of(parameters.symbol_len()) {
            return Err(Error::PayloadLength { expected, found });
        }
        let len = parameters.symbol_len();
        let precode = Precode::of(parameters);
        Ok(Self {
            parameters: parameters.clone(),
            sampler: Sampler::new(parameters),
            source,
            precode,
            sums: precode.map(|precode| Sums::new(precode, len)),
            is_precoded: false,
            at: (0..parameters.symbols()).map(|symbol| symbol * len).collect(),
            indices: Vec::new(),
            chosen: Vec::new(),
            rows: Vec::new(),
            matrix: Vec::new(),
        })
    }

    /// The parameters that both ends share.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Number of symbols that the source has as yet.
    pub fn count(&self) -> usize {
        self.source.as_ref().len() / self.parameters.symbol_len()
    }

    /// A source symbol; with a systematic start, packet i of batch b is symbol b M + i as it is.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`].
    pub fn symbol(&self, index: usize) -> Result<&[u8], Error> {
        let len = self.parameters.symbol_len();
        let missing = Error::Missing { symbols: self.count(), index };
        if index < self.count() { Ok(&self.source.as_ref()[index * len..][..len]) } else { Err(missing) }
    }

    /// Writes the M packets of a batch, one after the other. The coefficient vector of packet i is the i-th unit
    /// vector.
    ///
    /// # Errors
    ///
    /// [`Error::Batch`], [`Error::PayloadLength`], or [`Error::Missing`] if the source is not complete enough.
    pub fn batch(&mut self, bid: u16, payloads: &mut [u8]) -> Result<(), Error> {
        let (expected, found) =
            (self.parameters.batch().packets() * self.parameters.symbol_len(), payloads.len());
        if found != expected {
            return Err(Error::PayloadLength { expected, found });
        }
        self.packets(bid, 0, payloads)
    }

    /// Writes one packet of a batch.
    ///
    /// # Errors
    ///
    /// As for [`batch`](Self::batch), and [`Error::Packet`].
    pub fn packet(&mut self, bid: u16, index: usize, payload: &mut [u8]) -> Result<(), Error> {
        self.parameters.check_payload(payload.len())?;
        let packets = self.parameters.batch().packets();
        if index >= packets {
            return Err(Error::Packet { packets, index });
        }
        self.packets(bid, index, payload)
    }

    /// The packets of a batch from one on.
    fn packets(&mut self, bid: u16, mut first: usize, mut payloads: &mut [u8]) -> Result<(), Error> {
        check_bid(bid)?;
        let len = self.parameters.symbol_len();
        if let Some((start, count)) = self.sampler.span(bid) {
            if start + count > self.count() {
                return Err(Error::Missing { symbols: self.count(), index: start + count - 1 });
            }
            let plain = count.saturating_sub(first).min(payloads.len() / len);
            let (symbols, rest) = payloads.split_at_mut(plain * len);
            symbols.copy_from_slice(&self.source.as_ref()[(start + first.min(count)) * len..][..plain * len]);
            payloads = rest;
            first += plain;
            if payloads.is_empty() {
                return Ok(());
            }
        } else if self.count() < self.parameters.symbols() {
            return Err(Error::Missing { symbols: self.count(), index: self.parameters.symbols() - 1 });
        }
        self.draw(bid, first, payloads.len() / len);
        self.combine(payloads);
        Ok(())
    }

    /// Draws a batch's symbols, and the coefficients of some of its packets.
    fn draw(&mut self, bid: u16, first: usize, packets: usize) {
        self.sampler.indices(bid, &mut self.indices);
        let degree = self.indices.len();
        if packets == 1 {
            self.rows.clear();
            self.rows.resize(degree, 0);
            self.sampler.row(bid, first, &mut self.rows);
        } else {
            self.sampler.rows(bid, degree, &mut self.rows);
            self.rows.copy_within(first * degree..(first + packets) * degree, 0);
            self.rows.truncate(packets * degree);
        }
    }

    /// Writes the packets whose coefficients were drawn.
    fn combine(&mut self, payloads: &mut [u8]) {
        let len = self.parameters.symbol_len();
        let source = self.source.as_ref();
        let (k, degree) = (self.parameters.symbols() as u32, self.indices.len());
        if let (Some(precode), Some(sums), false) = (self.precode, &mut self.sums, self.is_precoded) {
            sums.compute(precode, source, &self.at, len);
            self.is_precoded = true;
        }

        self.chosen.clear();
        self.chosen.extend(self.indices.iter().filter(|&&i| i < k).map(|&i| i as usize * len));
        let matrix = if self.chosen.len() == degree {
            &self.rows
        } else {
            self.matrix.clear();
            for row in self.rows.chunks_exact(degree) {
                let of_source = row.iter().zip(&self.indices).filter(|&(_, &i)| i < k);
                self.matrix.extend(of_source.map(|(&coefficient, _)| coefficient));
            }
            &self.matrix
        };
        // Offsets on the stack, so as many rows at a time as the largest batches of RFC 9426 have
        // (section 4.2).
        const AT_ONCE: usize = 32;
        let at: [usize; AT_ONCE] = core::array::from_fn(|row| row * len);
        let lines = (self.chosen.len() * AT_ONCE).max(1);
        for (n, payloads) in payloads.chunks_mut(AT_ONCE * len).enumerate() {
            let rows = payloads.len() / len;
            let matrix = &matrix[n * lines..][..rows * self.chosen.len()];
            let to = Symbols::new(payloads, &at[..rows], len);
            field::product_into(to, matrix, Symbols::new(source, &self.chosen, len));
        }
        if let Some(sums) = &self.sums {
            for (column, &index) in self.indices.iter().enumerate().filter(|&(_, &index)| index >= k) {
                let sum = sums.get((index - k) as usize);
                for (payload, row) in payloads.chunks_exact_mut(len).zip(self.rows.chunks_exact(degree)) {
                    field::axpy(payload, row[column], sum);
                }
            }
        }
    }
}

impl Encoder<Vec<u8>> {
    /// Takes the next source symbol, gives its index.
    ///
    /// # Errors
    ///
    /// [`Error::PayloadLength`], or [`Error::Missing`] when there are K already.
    pub fn push(&mut self, symbol: &[u8]) -> Result<usize, Error> {
        self.parameters.check_payload(symbol.len())?;
        let (index, symbols) = (self.count(), self.parameters.symbols());
        if index == symbols {
            return Err(Error::Missing { symbols, index });
        }
        self.source.extend_from_slice(symbol);
        Ok(index)
    }

    /// Forgets the source and begins another session, in the same memory. Where the sampling has no session, the number
    /// is ignored.
    pub fn start(&mut self, session: u32) {
        self.source.clear();
        self.parameters.restart(session);
        self.sampler.restart(&self.parameters);
        self.precode = Precode::of(&self.parameters);
        self.is_precoded = false;
    }
}
