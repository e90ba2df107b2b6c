//! One trial of each code. Only coefficients matter, so symbols are one byte long, and zero where nobody looks.

use hopcast_code::bats::ranks::Ranks;
use hopcast_code::bats::{self, BatchSize, Degrees, InnerField, Parameters, Sampling};
use hopcast_code::field::{Field, Gf2, Gf16, Gf256};
use hopcast_code::reed_solomon;
use hopcast_code::rlnc::{Coding, Coefficients, Decoder, Density, Packet, Shape, window};

use crate::degrees::{RANKS, TABLES};
use crate::theory::Dense;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Code {
    /// A generation, of which only combinations arrive.
    Dense { q: u32, k: usize },
    /// The same, where coefficients are other than zero with this probability.
    Sparse { q: u32, k: usize, density: f64 },
    /// A generation sent as it is, of which some is lost and repaired by dense combinations.
    Repaired { q: u32, k: usize, lost: usize },
    /// The same of a sliding window.
    Window { q: u32, window: usize, lost: usize },
    /// Any k of k + n symbols, which are decoded to see.
    ReedSolomon { k: usize, n: usize },
    /// Batches of 16 of which 9 to 16 packets arrive, as [`RANKS`] has it.
    Bats { k: usize, sampling: Sampling },
}

/// In the order of the record.
pub(crate) fn all() -> Vec<Code> {
    const FIELDS: [u32; 3] = [2, 16, 256];
    let mut codes = Vec::new();
    for q in FIELDS {
        codes.extend([16, 64, 256].map(|k| Code::Dense { q, k }));
    }
    // ln k / k is 0.065, below which symbols are in no packet for long.
    for q in FIELDS {
        codes.extend([0.25, 0.13, 0.065].map(|density| Code::Sparse { q, k: 64, density }));
    }
    codes.extend(FIELDS.map(|q| Code::Repaired { q, k: 64, lost: 6 }));
    codes.extend(FIELDS.map(|q| Code::Window { q, window: 64, lost: 6 }));
    codes.extend([(16, 16), (64, 16), (223, 32)].map(|(k, n)| Code::ReedSolomon { k, n }));
    for sampling in [Sampling::Rfc, Sampling::Separate { session: 0 }, Sampling::Even { session: 0 }] {
        codes.extend([128, 256, 1024].map(|k| Code::Bats { k, sampling }));
    }
    codes
}

impl Code {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Dense { q, k } => format!("RLNC q {q}, k {k}"),
            Self::Sparse { q, k, density } => format!("RLNC q {q}, k {k}, density {density}"),
            Self::Repaired { q, k, lost } => format!("RLNC q {q}, k {k}, systematic, {lost} lost"),
            Self::Window { q, window, lost } => format!("RLNC q {q}, window {window}, {lost} lost"),
            Self::ReedSolomon { k, n } => format!("Reed-Solomon, k {k}, n {n}"),
            Self::Bats { k, sampling } => {
                let sampling = match sampling {
                    Sampling::Rfc => "sampling of RFC 9426",
                    Sampling::Separate { .. } => "separate sampling",
                    Sampling::Even { .. } => "even sampling",
                };
                format!("BATS K {k}, M 16, {sampling}")
            }
        }
    }

    /// Overhead by theory, of codes that it is known exactly of.
    pub(crate) fn theory(self) -> Option<Dense> {
        match self {
            Self::Dense { q, k } => Some(Dense::new(q, k)),
            Self::Repaired { q, lost, .. } | Self::Window { q, lost, .. } => Some(Dense::new(q, lost)),
            Self::Sparse { .. } | Self::ReedSolomon { .. } | Self::Bats { .. } => None,
        }
    }

    /// The overheads of the first trials.
    pub(crate) fn overheads(self, trials: u64) -> Vec<u64> {
        match self {
            Self::Dense { q: 2, .. } | Self::Sparse { q: 2, .. } => self.over::<Gf2>(trials),
            Self::Repaired { q: 2, .. } | Self::Window { q: 2, .. } => self.over::<Gf2>(trials),
            Self::Dense { q: 16, .. } | Self::Sparse { q: 16, .. } => self.over::<Gf16>(trials),
            Self::Repaired { q: 16, .. } | Self::Window { q: 16, .. } => self.over::<Gf16>(trials),
            _ => self.over::<Gf256>(trials),
        }
    }

    fn over<F: Field>(self, trials: u64) -> Vec<u64> {
        let random = |trial| Coefficients::new(trial << 24);
        let trials = 0..trials;
        match self {
            Self::Dense { k, .. } => {
                let mut decoder = generation::<F>(k);
                trials.map(|trial| dense(&mut decoder, random(trial), 0, Density::FULL)).collect()
            }
            Self::Sparse { k, density, .. } => {
                let mut decoder = generation::<F>(k);
                let density = Density::new((density * 65_535.0).round() as u16);
                trials.map(|trial| dense(&mut decoder, random(trial), 0, density)).collect()
            }
            Self::Repaired { k, lost, .. } => {
                let mut decoder = generation::<F>(k);
                trials.map(|trial| dense(&mut decoder, random(trial), k - lost, Density::FULL)).collect()
            }
            Self::Window { window, lost, .. } => {
                trials.map(|trial| sliding::<F>(window, lost, random(trial))).collect()
            }
            Self::ReedSolomon { k, n } => {
                let code = reed_solomon::Code::new(k, n).expect("it is not too large");
                let mut decoder = code.decoder();
                trials.map(|trial| any_k(&code, &mut decoder, random(trial))).collect()
            }
            Self::Bats { k, sampling } => {
                let batch = BatchSize::new(16, InnerField::Gf256).expect("there is this one");
                let parameters =
                    Parameters::new(k, 1, batch).expect("it is not too large").sampling(sampling);
                let parameters = match sampling {
                    Sampling::Even { .. } => parameters,
                    Sampling::Rfc | Sampling::Separate { .. } => parameters.degrees(degrees(k)),
                };
                let mut decoder = bats::Decoder::new(&parameters);
                let ranks = Ranks::new(&RANKS).expect("weights");
                trials.map(|trial| batches(&mut decoder, &ranks, trial as u32, random(trial))).collect()
            }
        }
    }
}

/// The degrees for a code of `k` symbols that has no precode.
fn degrees(k: usize) -> Degrees {
    let table = TABLES.iter().find(|(symbols, _)| *symbols == k).expect("one for each K of the record").1;
    let mut probabilities = vec![0.0; k];
    table.iter().for_each(|&(degree, share)| probabilities[degree - 1] = share);
    Degrees::new(&probabilities).expect("probabilities")
}

fn generation<F: Field>(k: usize) -> Decoder<F> {
    Decoder::new(Shape::new(k, 1).expect("it is not too large"), 0)
}

/// `plain` symbols arrive as they are, then combinations.
fn dense<F: Field>(
    decoder: &mut Decoder<F>,
    mut random: Coefficients,
    plain: usize,
    density: Density,
) -> u64 {
    let k = decoder.shape().symbols();
    decoder.start(0);
    for &index in &shuffled(k, &mut random)[..plain] {
        let packet = Packet { generation: 0, coding: Coding::Symbol(index), payload: &[0] };
        decoder.push(&packet).expect("it fits");
    }
    let mut vector = vec![0; k];
    let mut packets = plain;
    while !decoder.is_complete() {
        random.fill::<F>(density, &mut vector);
        let packet = Packet { generation: 0, coding: Coding::Vector(&vector), payload: &[0] };
        decoder.push(&packet).expect("it fits");
        packets += 1;
    }
    (packets - k) as u64
}

fn sliding<F: Field>(window: usize, lost: usize, mut random: Coefficients) -> u64 {
    let mut decoder = window::Decoder::<F>::new(Shape::new(window, 1).expect("it is not too large"));
    for &number in &shuffled(window, &mut random)[lost..] {
        decoder.push_symbol(number as u64, &[0]).expect("it fits");
    }
    let mut vector = vec![0; window];
    let mut packets = 0;
    while decoder.rank() < window {
        random.fill::<F>(Density::FULL, &mut vector);
        decoder.push_repair(0, &vector, &[0]).expect("it fits");
        packets += 1;
    }
    packets - lost as u64
}

/// The first k that arrive suffice, or this panics.
fn any_k(
    code: &reed_solomon::Code,
    decoder: &mut reed_solomon::Decoder<'_>,
    mut random: Coefficients,
) -> u64 {
    let (k, n) = (code.source(), code.parity_symbols());
    let source: Vec<[u8; 1]> = (0..k).map(|_| [random.bits() as u8]).collect();
    let source: Vec<&[u8]> = source.iter().map(|symbol| &symbol[..]).collect();
    let mut parity = vec![[0]; n];
    for (index, parity) in parity.iter_mut().enumerate() {
        code.parity(index, &source, parity).expect("there is such a one");
    }
    let order = shuffled(k + n, &mut random);
    let symbol = |&index: &usize| source.get(index).copied().unwrap_or_else(|| &parity[index - k]);
    let received: Vec<&[u8]> = order[..k].iter().map(symbol).collect();
    decoder.prepare(&order[..k]).expect("any k do");
    for &index in decoder.missing() {
        let mut symbol = [0];
        decoder.recover(index, &received, &mut symbol).expect("it is missing");
        assert_eq!(symbol, source[index]);
    }
    0
}

/// Whole packets of each batch are lost, which leaves it the rank that it would have after relays had recoded it.
fn batches(decoder: &mut bats::Decoder, ranks: &Ranks, session: u32, mut random: Coefficients) -> u64 {
    let k = decoder.parameters().symbols() as u64;
    decoder.start(session);
    // The RFC's batches are the same in every session, so a trial begins with another one.
    let first = random.bits() as usize;
    let mut packets = 0;
    for number in 0..bats::MAX_BATCHES {
        let bid = (first.wrapping_add(number) % bats::MAX_BATCHES) as u16;
        let rank = ranks.sample(random.bits() as u32);
        for &packet in &shuffled(16, &mut random)[..rank] {
            let mut vector = [0; 16];
            vector[packet] = 1;
            decoder.push(bid, &vector, &[0]).expect("it fits");
            packets += 1;
            if packets >= k && decoder.is_complete() {
                return packets - k;
            }
        }
    }
    panic!("no batches are left");
}

/// The numbers below `n` in random order (Fisher and Yates).
fn shuffled(n: usize, random: &mut Coefficients) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        numbers.swap(last, (random.bits() % (last as u64 + 1)) as usize);
    }
    numbers
}
