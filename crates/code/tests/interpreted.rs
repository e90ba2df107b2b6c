//! Every way through the codes once, so small that Miri interprets it all in a minute or two: `scripts/miri`.
//!
//! Miri has no vector instructions, so there this is the plain kernel and what uses it. What random input does is
//! the other tests' business.
#![allow(clippy::unwrap_used, reason = "in a test's helpers too")]

use hopcast_code::bats::{self, BatchSize, InnerField, Parameters, Sampling};
use hopcast_code::field::{Field, Gf2, Gf16, Gf256, Kernel, Symbols};
use hopcast_code::reed_solomon::Code;
use hopcast_code::rlnc::{Coding, Coefficients, Decoder, Density, Encoder, Packet, Recoder, Shape, window};

const LEN: usize = 9;

/// More than two panels of a decoder's rows.
const K: usize = 17;
/// Less than one.
const SMALL_K: usize = 6;

fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut random = Coefficients::new(seed);
    (0..len).map(|_| random.bits() as u8).collect()
}

#[test]
fn miri_interprets_the_plain_kernel() {
    assert!(!cfg!(miri) || Kernel::best() == Kernel::PLAIN);
}

#[test]
fn one_row_at_any_length_and_place() {
    let tables = <Gf256>::tables();
    for len in [0, 1, 7, 8, 9, 31, 33, 64, 67] {
        for skew in [0, 1, 5] {
            let (mut y, x) = (bytes(len + skew, 1), bytes(len + 3, 2));
            let sum: Vec<u8> =
                y[skew..].iter().zip(&x[3..]).map(|(y, &x)| y ^ <Gf256>::mul(0xB7, x)).collect();
            Kernel::PLAIN.axpy(tables, &mut y[skew..], 0xB7, &x[3..]);
            assert_eq!(y[skew..], sum);
            let product: Vec<u8> = sum.iter().map(|&byte| <Gf256>::mul(0x53, byte)).collect();
            Kernel::PLAIN.scale(tables, &mut y[skew..], 0x53);
            assert_eq!(y[skew..], product);
        }
    }
}

#[test]
fn products_of_any_shape() {
    // 66 columns are more than a kernel is given at a time.
    for (rows, columns, len) in
        [(0, 3, 5), (1, 0, 5), (1, 3, 9), (2, 66, 3), (3, 2, 17), (5, 3, 8), (9, 2, 1)]
    {
        let (a, x) = (bytes(rows * columns, 3), bytes(columns * len + 1, 4));
        let x_at: Vec<usize> = (0..columns).map(|column| 1 + column * len).collect();
        // From the last to the first.
        let y_at: Vec<usize> = (0..rows).rev().map(|row| row * len).collect();
        let (mut added, mut overwritten) = (vec![0; rows * len], vec![0xEE; rows * len]);
        let tables = <Gf256>::tables();
        let symbols = || Symbols::new(&x[..], &x_at, len);
        Kernel::PLAIN.product(tables, Symbols::new(&mut added[..], &y_at, len), &a, symbols());
        Kernel::PLAIN.product_into(tables, Symbols::new(&mut overwritten[..], &y_at, len), &a, symbols());
        for (row, &at) in y_at.iter().enumerate() {
            let mut expected = vec![0; len];
            let sources: Vec<&[u8]> = x_at.iter().map(|&at| &x[at..][..len]).collect();
            Kernel::PLAIN.axpy_rows(tables, &mut expected, &a[row * columns..][..columns], &sources);
            for (place, expected) in expected.iter().enumerate() {
                let terms = sources.iter().zip(&a[row * columns..]);
                let sum = terms.fold(0, |sum, (source, &a)| sum ^ <Gf256>::mul(a, source[place]));
                assert_eq!(*expected, sum);
            }
            assert_eq!((&added[at..][..len], &overwritten[at..][..len]), (&expected[..], &expected[..]));
        }
    }
}

fn a_generation_over_a_relay<F: Field>(k: usize) {
    let shape = Shape::new(k, LEN).unwrap();
    let source = bytes(k * LEN, 5);
    let mut encoder = Encoder::<F>::new(shape);
    source.chunks(LEN).for_each(|symbol| _ = encoder.push(symbol).unwrap());
    let mut relay = Recoder::<F>::new(shape, 0, k / 2, 6);
    let mut decoder = Decoder::<F>::new(shape, 0);
    for index in [1, 2, 5] {
        let packet =
            Packet { generation: 0, coding: Coding::Symbol(index), payload: encoder.symbol(index).unwrap() };
        decoder.push(&packet).unwrap();
        relay.push(&packet).unwrap();
    }
    let (mut vector, mut payload) = (vec![0; k], vec![0; LEN]);
    for seed in 0.. {
        encoder.encode_seeded(seed, Density::FULL, &mut payload).unwrap();
        let packet = Packet { generation: 0, coding: Coding::Seed(seed, Density::FULL), payload: &payload };
        relay.push(&packet).unwrap();
        if seed % 2 == 0 {
            decoder.push(&packet).unwrap();
        }
        relay.recode(&mut vector, &mut payload).unwrap();
        decoder.push(&Packet { generation: 0, coding: Coding::Vector(&vector), payload: &payload }).unwrap();
        if decoder.is_complete() {
            break;
        }
    }
    let mut count = 0;
    while let Some((index, symbol)) = decoder.poll() {
        assert_eq!(symbol, &source[index * LEN..][..LEN]);
        count += 1;
    }
    assert_eq!(count, k);
}

#[test]
fn a_generation_in_each_field() {
    a_generation_over_a_relay::<Gf256>(K);
    a_generation_over_a_relay::<Gf16>(SMALL_K);
    a_generation_over_a_relay::<Gf2>(SMALL_K);
}

#[test]
fn a_window_that_loses_repairs_and_jumps() {
    let shape = Shape::new(6, LEN).unwrap();
    let (mut encoder, mut decoder): (window::Encoder, window::Decoder) =
        (window::Encoder::new(shape), window::Decoder::new(shape));
    let mut random = Coefficients::new(7);
    let (mut vector, mut payload) = ([0; 6], [0; LEN]);
    let mut count = 0;
    for number in 0..24 {
        encoder.push(&bytes(LEN, number)).unwrap();
        if number % 4 != 1 {
            decoder.push_symbol(number, &bytes(LEN, number)).unwrap();
        }
        if number % 3 == 2 && number != 11 {
            let span = encoder.repair(&mut random, Density::FULL, &mut vector, &mut payload).unwrap();
            decoder.push_repair(span.first, &vector[..span.count], &payload).unwrap();
        }
        while let Some((number, symbol)) = decoder.poll() {
            assert_eq!(symbol, bytes(LEN, number));
            count += 1;
        }
    }
    // Without the repair after 11, the next one has 9 and 13 in it, and each leaves the window before there is another.
    assert_eq!(count, 22);
    decoder.push_symbol(1_000, &payload).unwrap();
    assert_eq!((decoder.rank(), decoder.start()), (1, 995));
}

#[test]
fn reed_solomon_with_as_much_lost_as_can_be() {
    let code = Code::new(6, 4).unwrap();
    let source = bytes(6 * LEN, 8);
    let source: Vec<&[u8]> = source.chunks(LEN).collect();
    let mut parity = vec![vec![0; LEN]; 4];
    parity.iter_mut().enumerate().for_each(|(i, parity)| code.parity(i, &source, parity).unwrap());
    let mut decoder = code.decoder();
    decoder.prepare(&[9, 2, 7, 5, 6, 8]).unwrap();
    let received = [&parity[3][..], source[2], &parity[1], source[5], &parity[0], &parity[2]];
    for index in [0, 1, 3, 4] {
        let mut symbol = [0; LEN];
        decoder.recover(index, &received, &mut symbol).unwrap();
        assert_eq!(symbol, source[index]);
    }
}

#[test]
fn batches_by_each_sampling() {
    let (few, more) =
        (BatchSize::new(4, InnerField::Gf256).unwrap(), BatchSize::new(16, InnerField::Gf2).unwrap());
    let session = 1;
    for (sampling, batch) in
        [(Sampling::Rfc, few), (Sampling::Separate { session }, more), (Sampling::Even { session }, few)]
    {
        let source = bytes(SMALL_K * LEN, 9);
        let parameters = Parameters::new(SMALL_K, LEN, batch).unwrap().sampling(sampling);
        let mut encoder = bats::Encoder::new(&parameters, &source[..]).unwrap();
        let mut decoder = bats::Decoder::new(&parameters);
        let mut payload = [0; LEN];
        for bid in 0.. {
            // One packet of each batch is lost.
            for index in 1..batch.packets() {
                let mut vector = vec![0; batch.packets()];
                vector[index] = 1;
                encoder.packet(bid, index, &mut payload).unwrap();
                decoder.push(bid, &vector, &payload).unwrap();
            }
            if decoder.is_complete() {
                break;
            }
        }
        for (index, symbol) in source.chunks(LEN).enumerate() {
            assert_eq!(decoder.symbol(index), Some(symbol));
        }
    }
}
