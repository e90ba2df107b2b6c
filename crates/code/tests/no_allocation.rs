//! After warm-up, no packet allocates: a whole generation through encoder, recoder and decoder, and the next.

use hopcast_code::bats::{self, BatchSize, InnerField, Parameters, Sampling, Start};
use hopcast_code::rlnc::{Coding, Coefficients, Decoder, Density, Encoder, Packet, Recoder, Shape, window};
use hopcast_counting::{Counting, allocations};

#[global_allocator]
static COUNTING: Counting = Counting;

const K: usize = 100;
const LEN: usize = 200;

#[test]
fn generations_do_not_allocate() {
    let shape = Shape::new(K, LEN).unwrap();
    let mut encoder: Encoder = Encoder::new(shape);
    let mut recoder: Recoder = Recoder::new(shape, 0, K, 1);
    let mut decoder: Decoder = Decoder::new(shape, 0);
    let mut random = Coefficients::new(1);
    let (mut vector, mut payload) = ([0; K], [0; LEN]);
    let mut generation = |generation| {
        encoder.clear();
        recoder.start(generation);
        decoder.start(generation);
        for symbol in 0..K {
            encoder.push(&[symbol as u8; LEN]).unwrap();
            let payload = encoder.symbol(symbol).unwrap();
            if symbol % 3 != 0 {
                decoder.push(&Packet { generation, coding: Coding::Symbol(symbol), payload }).unwrap();
            }
        }
        while !decoder.is_complete() {
            encoder.encode_random(&mut random, Density::FULL, &mut vector, &mut payload).unwrap();
            recoder.push(&Packet { generation, coding: Coding::Vector(&vector), payload: &payload }).unwrap();
            recoder.recode(&mut vector, &mut payload).unwrap();
            decoder.push(&Packet { generation, coding: Coding::Vector(&vector), payload: &payload }).unwrap();
            while decoder.poll().is_some() {}
        }
    };
    assert!(allocations(|| _ = vec![0; 9]) > 0, "they are counted");
    generation(0);
    assert_eq!(allocations(|| generation(1)), 0);
}

#[test]
fn a_window_does_not_allocate() {
    let shape = Shape::new(50, LEN).unwrap();
    let (mut encoder, mut decoder): (window::Encoder, window::Decoder) =
        (window::Encoder::new(shape), window::Decoder::new(shape));
    let mut random = Coefficients::new(1);
    let (mut vector, mut payload) = ([0; 50], [0; LEN]);
    let count = allocations(|| {
        for n in 0..1_000_u64 {
            encoder.push(&[n as u8; LEN]).unwrap();
            if !random.bits().is_multiple_of(4) {
                decoder.push_symbol(n, &[n as u8; LEN]).unwrap();
            }
            let span = encoder.repair(&mut random, Density::new(30_000), &mut vector, &mut payload).unwrap();
            if !random.bits().is_multiple_of(2) {
                decoder.push_repair(span.first, &vector[..span.count], &payload).unwrap();
            }
            while decoder.poll().is_some() {}
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn batches_do_not_allocate() {
    const M: usize = 16;
    let size = BatchSize::new(M, InnerField::Gf256).unwrap();
    for start in [Start::Systematic, Start::Coded] {
        let sampling = Sampling::Even { session: 0 };
        let parameters = Parameters::new(K, LEN, size).unwrap().sampling(sampling).start(start);
        let mut encoder = bats::Encoder::new(&parameters, Vec::with_capacity(K * LEN)).unwrap();
        let mut decoder = bats::Decoder::new(&parameters);
        let (mut payloads, unit) = ([0; M * LEN], |i| core::array::from_fn::<u8, M, _>(|j| u8::from(i == j)));
        let mut session = |number| {
            encoder.start(number);
            decoder.start(number);
            (0..K).for_each(|symbol| _ = encoder.push(&[symbol as u8; LEN]).unwrap());
            let mut bid = 0;
            while !decoder.is_complete() {
                encoder.batch(bid, &mut payloads).unwrap();
                for (i, payload) in payloads.chunks(LEN).enumerate().filter(|(i, _)| i % 5 != 2) {
                    decoder.push(bid, &unit(i), payload).unwrap();
                }
                while decoder.poll().is_some() {}
                bid += 1;
            }
        };
        session(1);
        assert_eq!(allocations(|| session(1)), 0);
    }
}
