//! Generations: everything from intake to the last symbol polled, memory reused.

use std::hint::black_box;

use hopcast_code::rlnc::{Coding, Coefficients, Decoder, Density, Encoder, Packet, Recoder, Shape};

use super::measure::{LEN, rate};

/// The figures of generations of `k` symbols.
pub(super) fn line(k: usize, ceiling: f64) {
    let generation = Generation::new(k);
    let share = |rate: f64| format!("{rate:7.3} ({:3.0} %)", 100.0 * rate * k as f64 / ceiling);
    println!(
        "{k:>4} {:>16} {:>16} {:>14.2} {:>12.1} {:>12.1} {:>8.2}",
        share(generation.encode()),
        share(generation.decode(|_| true)),
        generation.decode(|i| i % 10 == 5),
        generation.decode(|_| false),
        generation.copy(),
        generation.recode(16),
    );
}

/// A source, and as many dense packets as it has symbols.
struct Generation {
    k: usize,
    shape: Shape,
    encoder: Encoder,
    source: Vec<u8>,
    vectors: Vec<u8>,
    payloads: Vec<u8>,
}

impl Generation {
    fn new(k: usize) -> Self {
        let shape = Shape::new(k, LEN).expect("within the limits");
        let mut encoder: Encoder = Encoder::new(shape);
        let mut random = Coefficients::new(k as u64);
        let source: Vec<u8> = (0..k * LEN).map(|_| random.bits() as u8).collect();
        source.chunks(LEN).for_each(|symbol| _ = encoder.push(symbol).expect("a symbol that fits"));
        // Some more than k, should a few not be innovative.
        let (mut vectors, mut payloads) = (vec![0; (k + 4) * k], vec![0; (k + 4) * LEN]);
        random.fill::<hopcast_code::field::Gf256>(Density::FULL, &mut vectors);
        encoder.encode_many(&vectors, &mut payloads).expect("buffers that fit");
        Self { k, shape, encoder, source, vectors, payloads }
    }

    fn encode(&self) -> f64 {
        let mut payloads = vec![0; self.k * LEN];
        let vectors = &self.vectors[..self.k * self.k];
        rate(self.k * LEN, || {
            self.encoder.encode_many(black_box(vectors), black_box(&mut payloads)).expect("buffers that fit");
        })
    }

    /// Symbols that are not lost, then as many combinations as needed.
    fn decode(&self, lost: impl Fn(usize) -> bool) -> f64 {
        let mut decoder: Decoder = Decoder::new(self.shape, 0);
        let mut run = |check: bool| {
            decoder.start(0);
            for (index, payload) in self.source.chunks(LEN).enumerate().filter(|&(index, _)| !lost(index)) {
                push(&mut decoder, Coding::Symbol(index), payload);
            }
            for (vector, payload) in self.vectors.chunks(self.k).zip(self.payloads.chunks(LEN)) {
                if decoder.is_complete() {
                    break;
                }
                push(&mut decoder, Coding::Vector(vector), payload);
            }
            let mut count = 0;
            while let Some((index, symbol)) = decoder.poll() {
                if check {
                    assert_eq!(symbol, &self.source[index * LEN..][..LEN]);
                }
                black_box(symbol);
                count += 1;
            }
            assert_eq!(count, self.k);
        };
        run(true);
        rate(self.k * LEN, || run(false))
    }

    fn copy(&self) -> f64 {
        let mut to = vec![0; self.k * LEN];
        rate(self.k * LEN, || {
            to.chunks_mut(LEN).zip(self.source.chunks(LEN)).for_each(|(to, from)| {
                black_box(to).copy_from_slice(black_box(from));
            });
        })
    }

    /// Packets made of `inputs` received ones, in GB/s of what is sent.
    fn recode(&self, inputs: usize) -> f64 {
        let mut recoder: Recoder = Recoder::new(self.shape, 0, inputs, 1);
        for (vector, payload) in self.vectors.chunks(self.k).zip(self.payloads.chunks(LEN)).take(inputs) {
            let packet = Packet { generation: 0, coding: Coding::Vector(vector), payload };
            recoder.push(&packet).expect("a packet that fits");
        }
        let (mut vectors, mut payloads) = (vec![0; inputs * self.k], vec![0; inputs * LEN]);
        rate(inputs * LEN, || {
            recoder.recode_many(black_box(&mut vectors), black_box(&mut payloads)).expect("buffers that fit");
        })
    }
}

fn push(decoder: &mut Decoder, coding: Coding<'_>, payload: &[u8]) {
    decoder.push(&Packet { generation: 0, coding, payload }).expect("a packet that fits");
}
