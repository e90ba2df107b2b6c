//! Generations: whatever arrives, the symbols are those of the source.

use proptest::prelude::*;

use super::*;
use crate::field::{Field, Gf2, Gf16, Gf256};

const LEN: usize = 45;

fn source<F: Field>(k: usize, seed: u64) -> (Vec<Vec<u8>>, Encoder<F>) {
    let mut random = Coefficients::new(seed);
    let symbols: Vec<Vec<u8>> = (0..k).map(|_| (0..LEN).map(|_| random.bits() as u8).collect()).collect();
    let mut encoder = Encoder::new(Shape::new(k, LEN).unwrap());
    for (i, symbol) in symbols.iter().enumerate() {
        assert_eq!(encoder.push(symbol), Ok(i));
    }
    (symbols, encoder)
}

/// Polls everything and holds it against the source; gives how many came.
fn drain<F: Field>(decoder: &mut Decoder<F>, symbols: &[Vec<u8>], seen: &mut [bool]) -> usize {
    let mut count = 0;
    while let Some((index, symbol)) = decoder.poll() {
        assert_eq!(symbol, symbols[index], "symbol {index}");
        assert!(!std::mem::replace(&mut seen[index], true), "symbol {index} came twice");
        count += 1;
    }
    count
}

/// Number of dense packets beyond k that a receiver needed.
fn dense_overhead<F: Field>(k: usize, seed: u64) -> usize {
    let (symbols, mut encoder) = source::<F>(k, seed);
    let mut decoder = Decoder::<F>::new(Shape::new(k, LEN).unwrap(), 7);
    let mut payload = [0; LEN];
    let mut sent = 0;
    while !decoder.is_complete() {
        let coding_seed = seed << 20 | sent;
        encoder.encode_seeded(coding_seed, Density::FULL, &mut payload).unwrap();
        let coding = Coding::Seed(coding_seed, Density::FULL);
        decoder.push(&Packet { generation: 7, coding, payload: &payload }).unwrap();
        sent += 1;
    }
    assert_eq!(drain(&mut decoder, &symbols, &mut vec![false; k]), k);
    sent as usize - k
}

#[test]
fn dense_packets_reach_full_rank_at_every_size() {
    for k in [1, 2, 3, 63, 64].into_iter().chain(65..=256) {
        assert!(dense_overhead::<Gf256>(k, k as u64) <= 2, "k = {k}");
    }
    for k in [1, 16, 64, 65, 66, 128, 200, 256] {
        assert!(dense_overhead::<Gf16>(k, k as u64) <= 4, "k = {k}");
        assert!(dense_overhead::<Gf2>(k, k as u64) <= 16, "k = {k}");
    }
}

#[test]
fn the_overhead_is_what_theory_says() {
    let mean = |overhead: fn(usize, u64) -> usize| {
        (0..2_000).map(|seed| overhead(16, seed + 1)).sum::<usize>() as f64 / 2_000.0
    };
    let gf2 = mean(dense_overhead::<Gf2>);
    assert!((gf2 - 1.606).abs() < 0.15, "{gf2}");
    let gf256 = mean(dense_overhead::<Gf256>);
    assert!(gf256 < 0.012, "{gf256}");
}

#[test]
fn symbols_that_arrive_as_they_are_come_out_at_once() {
    let (symbols, encoder) = source::<Gf256>(20, 1);
    let mut decoder: Decoder = Decoder::new(Shape::new(20, LEN).unwrap(), 0);
    for (index, symbol) in symbols.iter().enumerate() {
        let packet =
            Packet { generation: 0, coding: Coding::Symbol(index), payload: encoder.symbol(index).unwrap() };
        assert_eq!(decoder.push(&packet), Ok(Outcome::Innovative));
        assert_eq!(decoder.symbol(index), Some(&symbol[..]), "without polling");
        assert_eq!(decoder.poll(), Some((index, &symbol[..])));
        assert_eq!(decoder.poll(), None);
        assert_eq!(decoder.push(&packet), Ok(Outcome::Redundant));
    }
    assert!(decoder.is_complete());
    assert_eq!(decoder.decoded(), [(1 << 20) - 1]);
}

/// A field in which nothing may be computed.
#[derive(Copy, Clone, Debug, Default)]
struct Untouched;

impl Field for Untouched {
    const BITS: u32 = 8;

    fn tables() -> &'static crate::field::Tables {
        panic!("no field arithmetic");
    }

    fn inv(_: u8) -> u8 {
        panic!("no field arithmetic");
    }
}

#[test]
fn without_loss_there_is_no_field_arithmetic_in_whatever_order() {
    let mut decoder = Decoder::<Untouched>::new(Shape::new(100, 3).unwrap(), 0);
    for index in (0..100).map(|i| i * 37 % 100) {
        let payload = [index as u8; 3];
        decoder.push(&Packet { generation: 0, coding: Coding::Symbol(index), payload: &payload }).unwrap();
        assert_eq!(decoder.poll(), Some((index, &payload[..])));
    }
    assert!(decoder.is_complete());
}

#[test]
fn a_seed_draws_the_same_coefficients_everywhere() {
    let mut random = Coefficients::new(1_234_567);
    let drawn = [random.bits(), random.bits(), random.bits()];
    assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
}

#[test]
fn a_density_is_the_share_of_coefficients_other_than_zero() {
    let mut vector = [0; 20_000];
    Coefficients::new(5).fill::<Gf16>(Density::new(6_554), &mut vector);
    let some = vector.iter().filter(|&&coefficient| coefficient != 0).count();
    assert!((1_850..2_150).contains(&some), "{some}");
    assert!((1..16).all(|element| vector.contains(&element)) && vector.iter().all(|&c| c < 16));
}

#[test]
fn a_repair_packet_yields_the_lost_symbol_before_the_rest_arrives() {
    let (symbols, encoder) = source::<Gf256>(10, 1);
    let mut decoder: Decoder = Decoder::new(Shape::new(10, LEN).unwrap(), 0);
    for index in [0, 2, 3] {
        decoder
            .push(&Packet { generation: 0, coding: Coding::Symbol(index), payload: &symbols[index] })
            .unwrap();
    }
    let vector = [5, 6, 7, 8, 0, 0, 0, 0, 0, 0];
    let mut payload = [0; LEN];
    encoder.encode(&vector, &mut payload).unwrap();
    decoder.push(&Packet { generation: 0, coding: Coding::Vector(&vector), payload: &payload }).unwrap();
    assert_eq!(decoder.decoded(), [0b1111]);
    assert_eq!(decoder.rank(), 4);
    assert_eq!(drain(&mut decoder, &symbols, &mut [false; 10]), 4);
}

#[test]
fn an_encoder_combines_what_it_has_so_far() {
    let mut encoder: Encoder = Encoder::new(Shape::new(3, 2).unwrap());
    let (mut vector, mut payload) = ([9; 3], [0; 2]);
    let mut random = Coefficients::new(1);
    let mut encode = |encoder: &Encoder, vector: &mut [u8], payload: &mut [u8]| {
        encoder.encode_random(&mut random, Density::FULL, vector, payload)
    };
    assert_eq!(encode(&encoder, &mut vector, &mut payload), Err(Error::Empty));
    encoder.push(&[1, 2]).unwrap();
    encode(&encoder, &mut vector, &mut payload).unwrap();
    assert_eq!(vector[1..], [0, 0]);
    assert_eq!(payload, [vector[0], crate::field::mul(vector[0], 2)]);
    assert_eq!(encoder.encode(&[1, 0, 1], &mut payload), Err(Error::Index { symbols: 1, index: 2 }));
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let shape = Shape::new(3, 2).unwrap();
    let mut decoder: Decoder = Decoder::new(shape, 5);
    let mut recoder: Recoder = Recoder::new(shape, 5, 3, 1);
    let mut refused = |generation, coding, payload: &[u8], error| {
        let packet = Packet { generation, coding, payload };
        assert_eq!(decoder.push(&packet), Err(error));
        assert_eq!(recoder.push(&packet), Err(error));
        assert_eq!((decoder.rank(), recoder.rank()), (0, 0));
    };
    refused(4, Coding::Symbol(0), &[1, 2], Error::Generation { expected: 5, found: 4 });
    refused(5, Coding::Symbol(0), &[1], Error::PayloadLength { expected: 2, found: 1 });
    refused(5, Coding::Symbol(3), &[1, 2], Error::Index { symbols: 3, index: 3 });
    refused(5, Coding::Vector(&[1; 4]), &[1, 2], Error::VectorLength { expected: 3, found: 4 });
    assert_eq!(
        decoder.push(&Packet { generation: 5, coding: Coding::Vector(&[0; 3]), payload: &[1, 2] }),
        Ok(Outcome::Redundant)
    );
    assert_eq!(recoder.recode(&mut [0; 3], &mut [0; 2]), Err(Error::Empty));
    assert!(Shape::new(0, 1).is_err() && Shape::new(4_097, 1).is_err() && Shape::new(1, 65_537).is_err());
}

#[test]
fn vectors_are_packed_without_loss() {
    let vector: Vec<u8> = (0..37).map(|i| i * 7).collect();
    fn there_and_back<F: Field>(vector: &[u8], bytes: usize) {
        let masked: Vec<u8> = vector.iter().map(|c| c & F::MASK).collect();
        assert_eq!(packed_len::<F>(vector.len()), bytes);
        let (mut packed, mut unpacked) = (vec![0xFF; bytes], vec![0xFF; vector.len()]);
        pack::<F>(vector, &mut packed);
        unpack::<F>(&packed, &mut unpacked);
        assert_eq!(unpacked, masked);
    }
    there_and_back::<Gf2>(&vector, 5);
    there_and_back::<Gf16>(&vector, 19);
    there_and_back::<Gf256>(&vector, 37);
}

/// A source, two recoding relays and a receiver; each link loses a third, symbols and combinations arrive in any order,
/// some of them twice.
fn over_two_relays<F: Field>(k: usize, capacity: usize, seed: u64) {
    let shape = Shape::new(k, LEN).unwrap();
    let (symbols, encoder) = source::<F>(k, seed);
    let mut relays =
        [Recoder::<F>::new(shape, 0, capacity, seed ^ 1), Recoder::new(shape, 0, capacity, seed ^ 2)];
    let mut decoder = Decoder::<F>::new(shape, 0);
    let mut random = Coefficients::new(seed ^ 3);
    let mut seen = vec![false; k];
    let (mut vector, mut payload) = (vec![0; k], vec![0; LEN]);
    for round in 0..30 * k + 200 {
        let lost: [bool; 3] = std::array::from_fn(|_| random.bits().is_multiple_of(3));
        let index = random.bits() as usize % k;
        if random.bits().is_multiple_of(2) {
            vector.fill(0);
            vector[index] = 1;
            payload.copy_from_slice(&symbols[index]);
        } else {
            encoder.encode_random(&mut random, Density::new(20_000), &mut vector, &mut payload).unwrap();
        }
        let mut arrived = true;
        for (hop, lost) in lost.into_iter().enumerate() {
            if arrived && !lost {
                let packet = Packet { generation: 0, coding: Coding::Vector(&vector), payload: &payload };
                match relays.get_mut(hop) {
                    Some(relay) => _ = relay.push(&packet).unwrap(),
                    None => _ = decoder.push(&packet).unwrap(),
                }
            }
            arrived = relays.get_mut(hop).is_some_and(|r| r.recode(&mut vector, &mut payload).is_ok());
        }
        if round % 5 == 0 {
            drain(&mut decoder, &symbols, &mut seen);
        }
        if decoder.is_complete() {
            break;
        }
    }
    drain(&mut decoder, &symbols, &mut seen);
    assert!(seen.iter().all(|&seen| seen), "rank {} of {k}", decoder.rank());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 100 }, ..ProptestConfig::default() })]

    #[test]
    fn two_recoding_relays_deliver_the_source(k in 1..40_usize, seed in any::<u64>()) {
        over_two_relays::<Gf256>(k, k, seed);
        over_two_relays::<Gf256>(k, k / 2 + 1, seed);
        over_two_relays::<Gf16>(k, k, seed);
        over_two_relays::<Gf2>(k, k, seed);
    }

    #[test]
    fn symbols_and_combinations_in_any_order_decode_and_hostile_ones_never_panic(
        k in 1..30_usize,
        packets in prop::collection::vec((any::<u8>(), any::<u64>(), 0..70_usize), 0..80),
    ) {
        let (symbols, mut encoder) = source::<Gf256>(k, 9);
        let shape = Shape::new(k, LEN).unwrap();
        let mut decoder: Decoder = Decoder::new(shape, 0);
        let mut seen = vec![false; k];
        let mut payload = [0; LEN];
        for (kind, seed, n) in packets {
            let index = n % k;
            let before = decoder.rank();
            let outcome = match kind % 4 {
                0 => decoder.push(&Packet { generation: 0, coding: Coding::Symbol(index), payload: &symbols[index] }),
                1 | 2 => {
                    let density = Density::new(if kind % 8 < 4 { 8_000 } else { 60_000 });
                    encoder.encode_seeded(seed, density, &mut payload).unwrap();
                    decoder.push(&Packet { generation: 0, coding: Coding::Seed(seed, density), payload: &payload })
                }
                _ => {
                    let wrong = vec![1; n + 1 + usize::from(n + 1 == LEN)];
                    decoder.push(&Packet { generation: 0, coding: Coding::Symbol(n), payload: &wrong })
                }
            };
            match outcome {
                Ok(Outcome::Innovative) => prop_assert_eq!(decoder.rank(), before + 1),
                Ok(Outcome::Redundant) | Err(_) => prop_assert_eq!(decoder.rank(), before),
            }
            if kind > 128 {
                drain(&mut decoder, &symbols, &mut seen);
            }
        }
        drain(&mut decoder, &symbols, &mut seen);
        let bitmap = decoder.decoded().to_vec();
        for (index, &seen) in seen.iter().enumerate() {
            prop_assert_eq!(seen, bitmap[index / 64] >> (index % 64) & 1 == 1);
            prop_assert_eq!(seen, decoder.symbol(index).is_some());
        }
        prop_assert_eq!(seen.iter().all(|&seen| seen), decoder.is_complete());
    }
}
