//! The destination's side of a session.

mod dense;
mod elimination;
mod graph;
mod inactive;
mod packets;
mod plan;
mod solve;
mod substitution;

use self::dense::Dense;
use self::graph::{Graph, Kind};
use self::inactive::Inactive;
use self::packets::Packets;
use self::solve::Work;
use self::substitution::Substitution;
use super::parameters::{Error, MAX_BATCHES, Parameters, check_bid};
use super::precode::{Of, Precode};
use super::sampling::Sampler;
use crate::rlnc::Outcome;
use crate::store::Store;

/// Takes packets of any batches in any order, gives source symbols as soon as they can be known.
///
/// [`push`](Decoder::push) what arrives, then [`poll`](Decoder::poll) until `None`. Symbols that arrive as they are
/// need no arithmetic. Otherwise payloads are only kept on arrival. When polled, the decoder first peels: a batch with
/// no more unknown symbols than it has packets is solved, and its symbols are known in the other batches (belief
/// propagation). Once it has as many packets as there are unknown symbols, it takes some symbols as if they were zero,
/// the *inactive* ones, substitutes them in the others, solves the equations that are left for the inactive ones
/// (inactivation decoding), and corrects the symbols that depend on them, batch by batch: that is as many terms as a
/// batch has symbols, not as many as are inactive. Should the equations not suffice, each further packet is reduced to
/// one more. So it is complete as soon as any decoder could be.
///
/// It keeps at most one packet for each unknown symbol, and for each two coefficient vectors; the symbols; and for each
/// symbol that depends on inactive ones, by how much these change it, a coefficient for each, and at most as many for
/// the symbols of its batch.
#[derive(Debug)]
pub struct Decoder {
    parameters: Parameters,
    sampler: Sampler,
    precode: Option<Precode>,
    /// The symbols of each sparse sum, with the sum itself.
    sums: Vec<Vec<u32>>,
    columns: Vec<Column>,
    /// Symbols that arrived or were computed, each in its own slot.
    computed: Store,
    packets: Packets,
    graph: Graph,
    /// Number of columns that are known, and number of equations that are kept.
    known: usize,
    kept: usize,
    /// Once some symbols had to be inactive: how others depend on them, the equations for them, and what follows once
    /// they are solved.
    inactive: Inactive,
    dense: Dense,
    substitution: Substitution,
    is_planned: bool,
    is_complete: bool,
    /// Number of innovative packets of each batch.
    ranks: Vec<u8>,
    /// Indices of the source symbols that can be read, in the order in which they became so.
    ready: Vec<usize>,
    polled: usize,
    decoded: Vec<u64>,
    indices: Vec<u32>,
    vector: Vec<u8>,
    coefficients: Vec<u8>,
    work: Work,
}

/// The state of a symbol.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Column {
    /// Nothing.
    Unknown,
    /// It is in its slot.
    Known,
    /// In its slot is what it would be if all inactive symbols were zero; how it depends on them is a row of that
    /// number.
    Partial(usize),
    /// It is the inactive symbol of that number.
    Inactive(usize),
}

impl Decoder {
    /// A decoder for a session.
    pub fn new(parameters: &Parameters) -> Self {
        let sampler = Sampler::new(parameters);
        let (k, len, packets) = (parameters.symbols(), parameters.symbol_len(), parameters.batch().packets());
        let columns = sampler.columns();
        let precode = Precode::of(parameters);
        let mut decoder = Self {
            parameters: parameters.clone(),
            sampler,
            precode,
            sums: precode.map_or(Vec::new(), |precode| precode.sparse_symbols()),
            columns: vec![Column::Unknown; columns],
            computed: Store::new(columns, len),
            packets: Packets::new(columns, len, packets),
            graph: Graph::default(),
            known: 0,
            kept: 0,
            inactive: Inactive::new(),
            dense: Dense::default(),
            substitution: Substitution::new(columns, len),
            is_planned: false,
            is_complete: false,
            ranks: vec![0; MAX_BATCHES],
            ready: Vec::with_capacity(k),
            polled: 0,
            decoded: vec![0; k.div_ceil(64)],
            indices: Vec::new(),
            vector: Vec::with_capacity(packets),
            coefficients: Vec::new(),
            work: Work::default(),
        };
        decoder.begin();
        decoder
    }

    /// Forgets everything and begins with another session, in the same memory. Where the sampling has no session, the
    /// number is ignored.
    pub fn start(&mut self, session: u32) {
        self.parameters.restart(session);
        self.sampler.restart(&self.parameters);
        self.precode = Precode::of(&self.parameters);
        self.columns.fill(Column::Unknown);
        self.packets.clear();
        (self.known, self.kept, self.polled) = (0, 0, 0);
        (self.is_planned, self.is_complete) = (false, false);
        self.ranks.fill(0);
        self.ready.clear();
        self.decoded.fill(0);
        self.begin();
    }

    /// The parameters that both ends share.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Number of packets of a batch that were [innovative](Outcome::Innovative): its rank, until packets of other
    /// batches express what it would have. 0 for a BID of more than 13 bits.
    pub fn rank(&self, bid: u16) -> usize {
        self.ranks.get(usize::from(bid)).map_or(0, |&rank| rank.into())
    }

    /// Whether every source symbol can be polled.
    pub fn is_complete(&mut self) -> bool {
        self.settle();
        self.is_complete
    }

    /// Bitmap of the source symbols that have been or can be polled: symbol i is bit `i % 64` of word `i / 64`.
    pub fn decoded(&mut self) -> &[u64] {
        self.settle();
        &self.decoded
    }

    /// Takes a packet: the M coefficients of its vector, one in each byte, and its payload.
    ///
    /// It is innovative if it says something that no packet of the same batch has said, as long as symbols of that
    /// batch are unknown. Once the decoder has had to look at all batches together, what counts is whether none of any
    /// batch has.
    ///
    /// # Errors
    ///
    /// [`Error::Batch`], [`Error::VectorLength`] or [`Error::PayloadLength`]; the packet has then changed nothing.
    pub fn push(&mut self, bid: u16, vector: &[u8], payload: &[u8]) -> Result<Outcome, Error> {
        check_bid(bid)?;
        let expected = self.parameters.batch().packets();
        if vector.len() != expected {
            return Err(Error::VectorLength { expected, found: vector.len() });
        }
        self.parameters.check_payload(payload.len())?;
        if self.is_complete {
            return Ok(Outcome::Redundant);
        }
        if self.is_due() {
            self.settle();
        }
        let mask = self.parameters.batch().mask();
        self.vector.clear();
        self.vector.extend(vector.iter().map(|coefficient| coefficient & mask));
        let is_new = match self.plain_symbol(bid) {
            _ if self.is_complete => false,
            _ if self.is_planned => self.push_equation(bid, payload),
            Some(symbol) => self.push_symbol(symbol, payload),
            None => self.push_packet(bid, payload),
        };
        if is_new {
            let rank = &mut self.ranks[usize::from(bid)];
            *rank = (*rank + 1).min(expected as u8);
        }
        Ok(if is_new { Outcome::Innovative } else { Outcome::Redundant })
    }

    /// The next source symbol that has become known, with its index. Symbols come in no particular order, each once.
    pub fn poll(&mut self) -> Option<(usize, &[u8])> {
        if self.polled == self.ready.len() {
            self.settle();
        }
        let symbol = *self.ready.get(self.polled)?;
        self.polled += 1;
        self.symbol(symbol).map(|payload| (symbol, payload))
    }

    /// A source symbol that can be polled or has been.
    pub fn symbol(&self, index: usize) -> Option<&[u8]> {
        if self.decoded.get(index / 64)? >> (index % 64) & 1 == 0 {
            return None;
        }
        match self.columns[index] {
            Column::Inactive(number) => Some(self.substitution.inactive(number)),
            Column::Known | Column::Partial(_) | Column::Unknown => Some(self.computed.slot(index)),
        }
    }

    /// The equations that the precode gives.
    fn begin(&mut self) {
        self.graph.start(self.columns.len());
        let Some(precode) = self.precode else { return };
        for sum in &self.sums {
            let Some(slot) = self.packets.take() else { break };
            self.packets.payloads.slot_mut(slot).fill(0);
            let group = self.graph.add(Kind::Sum, sum, |_| false);
            self.graph.groups[group].chain = self.packets.alone(slot);
        }
        self.kept = precode.checks();
    }

    /// Whether there are as many equations as unknown symbols.
    fn is_due(&self) -> bool {
        !self.is_planned && self.known + self.kept >= self.columns.len()
    }

    /// The symbol that the vector at work says has arrived as it is.
    fn plain_symbol(&self, bid: u16) -> Option<usize> {
        let (first, count) = self.sampler.span(bid)?;
        let packet = self.vector.iter().position(|&coefficient| coefficient != 0)?;
        let alone = self.vector[packet] == 1 && self.vector[packet + 1..].iter().all(|&other| other == 0);
        (alone && packet < count).then_some(first + packet)
    }

    /// Whether the packets of a batch are symbols as they are, all of them.
    fn is_plain(&self, bid: u16) -> bool {
        self.sampler.span(bid).is_some_and(|(_, count)| count == self.parameters.batch().packets())
    }

    fn push_symbol(&mut self, symbol: usize, payload: &[u8]) -> bool {
        if self.columns[symbol] != Column::Unknown {
            return false;
        }
        self.computed.slot_mut(symbol).copy_from_slice(payload);
        self.know(symbol);
        true
    }

    /// Keeps a packet with its batch.
    fn push_packet(&mut self, bid: u16, payload: &[u8]) -> bool {
        if self.vector.iter().all(|&coefficient| coefficient == 0) {
            return false;
        }
        let group = match self.graph.of_batch(bid) {
            Some(group) => group,
            None => {
                self.sampler.indices(bid, &mut self.indices);
                let unknown = |&symbol: &u32| self.columns[symbol as usize] == Column::Unknown;
                if !self.indices.iter().any(unknown) {
                    return false;
                }
                let narrow = self.indices.len() <= self.parameters.batch().packets();
                let kind = if narrow { Kind::Narrow(bid) } else { Kind::Wide(bid) };
                self.graph.add(kind, &self.indices, |symbol| self.columns[symbol] != Column::Unknown)
            }
        };
        let degree = self.graph.symbols(group).len();
        match self.graph.groups[group].kind {
            Kind::Narrow(_) if !self.is_plain(bid) => {
                self.work.of_symbols(&mut self.sampler, bid, &self.vector, degree, &mut self.coefficients);
            }
            Kind::Narrow(_) | Kind::Wide(_) | Kind::Sum => self.coefficients.clone_from(&self.vector),
        }
        let of = &mut self.graph.groups[group];
        if matches!(of.kind, Kind::Wide(_)) && of.unknown() == 0 {
            return false;
        }
        let before = of.chain.len;
        let is_new = self.packets.insert(&mut of.chain, of.known, &self.coefficients, payload).is_some();
        self.kept = self.kept + of.chain.len - before;
        if is_new {
            self.graph.grow(group, &self.coefficients);
        }
        is_new
    }

    /// Reduces a packet to an equation of the inactive symbols.
    fn push_equation(&mut self, bid: u16, payload: &[u8]) -> bool {
        let Some(slot) = self.packets.take() else { return false };
        self.packets.payloads.slot_mut(slot).copy_from_slice(payload);
        let mut work = core::mem::take(&mut self.work);
        self.sampler.indices(bid, &mut work.symbols);
        let mut equations = core::mem::take(&mut work.equations);
        work.of_symbols(&mut self.sampler, bid, &self.vector, work.symbols.len(), &mut equations);
        work.equations = equations;
        work.slots.clear();
        work.slots.push(slot);
        work.tails.clear();
        work.constraints.clear();
        self.reduce(&mut work);
        let is_new = self.constrain(&mut work) > 0;
        self.work = work;
        is_new
    }

    /// A symbol is in its slot.
    fn know(&mut self, symbol: usize) {
        self.columns[symbol] = Column::Known;
        self.known += 1;
        self.graph.resolve(symbol);
        self.announce(symbol);
    }

    /// A symbol can be read.
    fn announce(&mut self, symbol: usize) {
        if symbol < self.parameters.symbols() {
            self.ready.push(symbol);
            self.decoded[symbol / 64] |= 1 << (symbol % 64);
            self.is_complete |= self.ready.len() == self.parameters.symbols();
        }
    }

    /// Finds out all that can be known.
    fn settle(&mut self) {
        if self.is_complete || self.is_planned {
            return;
        }
        while let Some(group) = self.graph.pop() {
            self.solve(group);
            if self.is_complete {
                return;
            }
        }
        if self.is_due() {
            self.plan();
        }
    }

    /// The dense sums' equations.
    fn dense_sums(&mut self, precode: Precode, work: &mut Work) {
        let (k, s, h) = (self.parameters.symbols(), precode.sparse(), precode.dense());
        let Work { equations, symbols, slots, matrix, sparse, .. } = work;
        precode.dense_sums(Of::Source, matrix);
        precode.dense_sums(Of::Sparse, sparse);
        symbols.clear();
        symbols.extend(0..(k + s + h) as u32);
        equations.clear();
        slots.clear();
        for sum in 0..h {
            let Some(slot) = self.packets.take() else { break };
            self.packets.payloads.slot_mut(slot).fill(0);
            slots.push(slot);
            equations.extend_from_slice(&matrix[sum * k..][..k]);
            equations.extend_from_slice(&sparse[sum * s..][..s]);
            equations.extend((0..h).map(|other| u8::from(other == sum)));
        }
    }
}
