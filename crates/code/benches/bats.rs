//! Rates of BATS codes, and their distance from what the kernels allow: `cargo bench -p hopcast-code --bench bats`.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;

use hopcast_code::bats::ranks::{Channel, Ranks, Scheme};
use hopcast_code::bats::{BatchSize, Decoder, Encoder, InnerField, Parameters, Sampling, Start};
use hopcast_code::field::{self, Gf256, Kernel, Symbols};
use hopcast_code::rlnc::{Coefficients, Density};

mod measure;

use measure::{LEN, ceiling, rate};

const M: usize = 16;

fn main() {
    let ceiling = ceiling();
    let ranks = six_hops();
    println!(
        "{:?}: blocked product {ceiling:.0} GB/s; ranks after six hops of 10 %: mean {:.2} of {M}",
        Kernel::best(),
        ranks.mean()
    );
    println!(
        "symbols of {LEN} bytes, GB/s of source data (in brackets: terms a symbol at the ceiling's rate)"
    );
    println!("{:>12} {:>6} {:>16} {:>16} {:>10}", "start", "K", "encode", "decode", "in order");
    for k in [128, 256, 1_000] {
        line("systematic", k, Start::Systematic, &ranks, ceiling);
        line("coded", k, Start::Coded, &ranks, ceiling);
    }
}

fn line(name: &str, k: usize, start: Start, ranks: &Ranks, ceiling: f64) {
    let session = Session::new(k, start, ranks);
    let share = |rate: f64| format!("{rate:7.3} ({:4.0})", ceiling / rate);
    let in_order = if start == Start::Systematic { session.in_order() } else { f64::NAN };
    println!(
        "{name:>12} {k:>6} {:>16} {:>16} {in_order:>10.2}",
        share(session.encode()),
        share(session.decode())
    );
}

/// The ranks at the end of six hops that each lose a tenth of 18 packets.
fn six_hops() -> Ranks {
    let hop = Channel::independent(0.1, 256).expect("a probability");
    (0..6).fold(Ranks::full(M), |ranks, _| ranks.after(&hop, Scheme::Systematic, |_| 18))
}

/// A source, and packets enough to decode it.
struct Session {
    parameters: Parameters,
    source: Vec<u8>,
    batches: u16,
    packets: Vec<(u16, Vec<u8>, Vec<u8>)>,
}

impl Session {
    fn new(k: usize, start: Start, ranks: &Ranks) -> Self {
        let batch = BatchSize::new(M, InnerField::Gf256).expect("one of the eight");
        let parameters = Parameters::new(k, LEN, batch)
            .expect("within the limits")
            .sampling(Sampling::Even { session: 1 })
            .start(start);
        let mut random = Coefficients::new(k as u64);
        let source: Vec<u8> = (0..k * LEN).map(|_| random.bits() as u8).collect();
        let mut session = Self { parameters, source, batches: 0, packets: Vec::new() };
        let mut encoder = Encoder::new(&session.parameters, &session.source[..]).expect("a whole source");
        let mut decoder = Decoder::new(&session.parameters);
        let mut payloads = vec![0; M * LEN];
        let at: Vec<usize> = (0..M).map(|i| i * LEN).collect();
        while !decoder.is_complete() {
            let bid = session.batches;
            encoder.batch(bid, &mut payloads).expect("a buffer that fits");
            let worth = session.parameters.packets(bid);
            for _ in 0..ranks.sample(random.bits() as u32).min(worth) {
                let (mut vector, mut payload) = (vec![0; M], vec![0; LEN]);
                random.fill::<Gf256>(Density::FULL, &mut vector[..worth]);
                let to = Symbols::new(&mut payload[..], &[0], LEN);
                field::product_into(to, &vector, Symbols::new(&payloads[..], &at, LEN));
                decoder.push(bid, &vector, &payload).expect("a packet that fits");
                session.packets.push((bid, vector, payload));
            }
            session.batches += 1;
        }
        session
    }

    /// All batches that it took, systematic ones included.
    fn encode(&self) -> f64 {
        let mut payloads = vec![0; M * LEN];
        let mut encoder = Encoder::new(&self.parameters, &self.source[..]).expect("a whole source");
        rate(self.source.len(), || {
            for bid in 0..self.batches {
                encoder.batch(bid, black_box(&mut payloads)).expect("a buffer that fits");
            }
        })
    }

    fn decode(&self) -> f64 {
        let mut decoder = Decoder::new(&self.parameters);
        rate(self.source.len(), || {
            decoder.start(1);
            for (bid, vector, payload) in &self.packets {
                decoder.push(*bid, black_box(vector), black_box(payload)).expect("a packet that fits");
            }
            self.drain(&mut decoder);
        })
    }

    fn in_order(&self) -> f64 {
        let mut decoder = Decoder::new(&self.parameters);
        let unit: Vec<[u8; M]> = (0..M).map(|i| core::array::from_fn(|j| u8::from(i == j))).collect();
        rate(self.source.len(), || {
            decoder.start(1);
            for (index, payload) in self.source.chunks(LEN).enumerate() {
                decoder
                    .push((index / M) as u16, &unit[index % M], black_box(payload))
                    .expect("a packet that fits");
            }
            self.drain(&mut decoder);
        })
    }

    fn drain(&self, decoder: &mut Decoder) {
        let mut count = 0;
        while let Some((index, symbol)) = decoder.poll() {
            debug_assert_eq!(symbol, &self.source[index * LEN..][..LEN]);
            black_box((index, symbol));
            count += 1;
        }
        assert_eq!(count, self.parameters.symbols());
    }
}
