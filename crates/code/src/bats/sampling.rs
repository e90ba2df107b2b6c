//! Symbols of a batch, and their coefficients: a function of its BID that both ends compute.

use super::parameters::{Parameters, Sampling, Start};
use super::tinymt::TinyMt32;
use super::{Degrees, precode};
use crate::rlnc::{Coefficients, Density};

/// Draws batches. The memory is what makes drawing them in order cheap; it does not change what is drawn.
#[derive(Debug)]
pub(super) struct Sampler {
    sampling: Sampling,
    start: Start,
    degrees: Degrees,
    source: usize,
    /// Source and precoded symbols together: what coded batches draw from.
    columns: usize,
    packets: usize,
    systematic: usize,
    /// Start of each coded batch, as far as that has been asked for.
    turns: Vec<Turn>,
    /// The indices that a matrix is drawn after.
    before: Vec<u32>,
    /// The order of the symbols in a pass.
    order: Vec<u32>,
    pass: Option<u32>,
}

/// A batch's place in the succession of passes over all symbols.
#[derive(Copy, Clone, Debug)]
struct Turn {
    pass: u32,
    at: u32,
    degree: u32,
}

/// The purposes for which numbers are drawn: no two see the same ones.
#[derive(Copy, Clone)]
pub(super) enum Purpose {
    Degree = 1,
    Indices = 2,
    Order = 3,
    Checks = 4,
    /// The coefficients of packet 0; those of packet i are i further.
    Packet = 256,
}

/// The degree from which on repair batches do not become sparser; also what a dense decoder is content with.
/// Chosen: with fewer, more packets are needed beyond K; with more, encoding takes longer.
const SPARSE: usize = 256;

/// The minimum number of symbols of a coded batch for each of its packets, with even sampling. Measured, packets needed
/// beyond K = 256 with M = 16: 0.18 at 1, 0.04 at 1.5, 0.01 at 2, and no fewer beyond; the inactive symbols, and so the
/// time to decode, grow with it.
const MIN_DEGREE_PER_PACKET: usize = 2;

/// 2^32 divided by the golden ratio: multiples of it fill a circle evenly, however many there are.
const GOLDEN: u32 = 0x9E37_79B9;

impl Sampler {
    pub(super) fn new(parameters: &Parameters) -> Self {
        let (sampling, start, degrees) = parameters.parts();
        Self {
            sampling,
            start,
            degrees: degrees.clone(),
            source: parameters.symbols(),
            columns: precode::columns(parameters),
            packets: parameters.batch().packets(),
            systematic: parameters.systematic_batches(),
            turns: Vec::new(),
            before: Vec::new(),
            order: Vec::new(),
            pass: None,
        }
    }

    /// The same for another session, in the same memory.
    pub(super) fn restart(&mut self, parameters: &Parameters) {
        (self.sampling, ..) = parameters.parts();
        self.turns.clear();
        self.pass = None;
    }

    /// Source and precoded symbols together.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// The symbols of a systematic batch: where they begin and how many they are.
    pub(super) fn span(&self, bid: u16) -> Option<(usize, usize)> {
        let first = usize::from(bid) * self.packets;
        (usize::from(bid) < self.systematic).then(|| (first, self.packets.min(self.source - first)))
    }

    /// The indices of the symbols of a batch, none twice.
    pub(super) fn indices(&mut self, bid: u16, indices: &mut Vec<u32>) {
        indices.clear();
        if let Some((first, count)) = self.span(bid) {
            indices.extend((first..first + count).map(|symbol| symbol as u32));
            return;
        }
        match self.sampling {
            Sampling::Rfc | Sampling::Separate { .. } => _ = self.draw_indices(bid, indices),
            Sampling::Even { .. } => {
                let Turn { pass, at, degree } = self.turn(bid);
                self.shuffle(pass);
                // Beyond the end of a pass, its beginning once more: other than the beginning of the next, that has
                // no symbol that the batch has.
                let (at, degree) = (at as usize, degree as usize);
                let tail = degree.min(self.columns - at);
                indices.extend_from_slice(&self.order[at..at + tail]);
                indices.extend_from_slice(&self.order[..degree - tail]);
            }
        }
    }

    /// The coefficients of a batch of that degree, those of one packet after those of another: G transposed.
    pub(super) fn rows(&mut self, bid: u16, degree: usize, rows: &mut Vec<u8>) {
        rows.clear();
        rows.resize(self.packets * degree, 0);
        if self.is_drawn_at_once(bid) {
            let mut random = self.draw_matrix(bid);
            for symbol in 0..degree {
                for packet in 0..self.packets {
                    rows[packet * degree + symbol] = random.draw() as u8;
                }
            }
            return;
        }
        for (packet, row) in rows.chunks_exact_mut(degree).enumerate() {
            self.row(bid, packet, row);
        }
    }

    /// The coefficients of one packet of a batch, as many as its degree.
    pub(super) fn row(&mut self, bid: u16, packet: usize, row: &mut [u8]) {
        row.fill(0);
        if self.span(bid).is_some_and(|(_, count)| packet < count) {
            row[packet] = 1;
        } else if self.is_drawn_at_once(bid) {
            let mut random = self.draw_matrix(bid);
            for coefficient in row {
                for of in 0..self.packets {
                    let drawn = random.draw() as u8;
                    if of == packet {
                        *coefficient = drawn;
                    }
                }
            }
        } else {
            let seed = seed(self.session(), bid, Purpose::Packet as usize + packet);
            Coefficients::new(seed).fill::<crate::field::Gf256>(Density::FULL, row);
        }
    }

    /// Whether the batch's matrix comes from the one stream that drew its indices.
    fn is_drawn_at_once(&self, bid: u16) -> bool {
        !matches!(self.sampling, Sampling::Even { .. }) && usize::from(bid) >= self.systematic
    }

    /// The generator once it has drawn a batch's indices.
    fn draw_matrix(&mut self, bid: u16) -> TinyMt32 {
        let mut before = core::mem::take(&mut self.before);
        before.clear();
        let random = self.draw_indices(bid, &mut before);
        self.before = before;
        random
    }

    /// RFC 9426's `DegreeSampler` and `BatchSampler` up to where the matrix is drawn, which the generator given does.
    fn draw_indices(&self, bid: u16, indices: &mut Vec<u32>) -> TinyMt32 {
        let (for_degree, for_indices) = match self.sampling {
            Sampling::Rfc => (u32::from(bid), u32::from(bid)),
            Sampling::Separate { session } | Sampling::Even { session } => {
                let of = |purpose| Coefficients::new(seed(session, bid, purpose as usize)).bits() as u32;
                (of(Purpose::Degree), of(Purpose::Indices))
            }
        };
        let degree = self.degrees.sample(TinyMt32::new(for_degree).draw()).min(self.columns);
        let mut random = TinyMt32::new(for_indices);
        for _ in 0..degree {
            let mut index = random.draw() % self.columns as u32;
            while indices.contains(&index) {
                index = random.draw() % self.columns as u32;
            }
            indices.push(index);
        }
        random
    }

    fn session(&self) -> u32 {
        match self.sampling {
            Sampling::Rfc => 0,
            Sampling::Separate { session } | Sampling::Even { session } => session,
        }
    }

    /// Start of a coded batch. Those before it are counted once.
    fn turn(&mut self, bid: u16) -> Turn {
        let coded = usize::from(bid) - self.systematic;
        while self.turns.len() <= coded {
            let (pass, at) = self.turns.last().map_or((0, 0), |last| {
                let end = last.at + last.degree;
                if end < self.columns as u32 { (last.pass, end) } else { (last.pass + 1, 0) }
            });
            self.turns.push(Turn { pass, at, degree: self.degree(self.turns.len()) as u32 });
        }
        self.turns[coded]
    }

    /// The degree of a coded batch with even sampling.
    fn degree(&self, coded: usize) -> usize {
        match self.start {
            Start::Systematic => (self.columns / (coded + 1)).max(SPARSE.min(self.columns)),
            Start::Coded => {
                let first =
                    Coefficients::new(seed(self.session(), 0, Purpose::Degree as usize)).bits() as u32;
                let drawn = self.degrees.sample(first.wrapping_add(GOLDEN.wrapping_mul(coded as u32)));
                // Of two small batches with some symbols in common, some packets would say nothing new.
                drawn.max(MIN_DEGREE_PER_PACKET * self.packets).min(self.columns)
            }
        }
    }

    /// Brings the order to that of a pass (Fisher and Yates).
    fn shuffle(&mut self, pass: u32) {
        if self.pass == Some(pass) {
            return;
        }
        self.pass = Some(pass);
        let mut random =
            Coefficients::new(seed(self.session(), 0, Purpose::Order as usize) ^ u64::from(pass) << 48);
        self.order.clear();
        self.order.extend(0..self.columns as u32);
        for left in (2..=self.columns).rev() {
            let other = ((random.bits() >> 32) * left as u64) >> 32;
            self.order.swap(left - 1, other as usize);
        }
    }
}

/// The seed of a stream of coefficients.
pub(super) fn seed(session: u32, bid: u16, purpose: usize) -> u64 {
    u64::from(session) << 32 | u64::from(bid) << 16 | purpose as u64
}
