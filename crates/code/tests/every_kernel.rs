//! The codes with each kernel that this machine has: the same bytes as with the plain one.
//!
//! One test, since what it [prefers](Kernel::prefer) holds for the whole process.
#![allow(clippy::unwrap_used, reason = "in a test's helpers too")]

use hopcast_code::bats::{self, BatchSize, InnerField, Parameters};
use hopcast_code::field::{Field, Gf2, Gf16, Gf256, Kernel};
use hopcast_code::reed_solomon::Code;
use hopcast_code::rlnc::{Coding, Coefficients, Decoder, Density, Encoder, Packet, Recoder, Shape};

/// Whole vectors of every kernel, and a tail.
const LEN: usize = 331;
const K: usize = 37;

fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut random = Coefficients::new(seed);
    (0..len).map(|_| random.bits() as u8).collect()
}

#[test]
fn every_kernel_gives_the_codes_the_same_bytes() {
    let mut expected = None;
    for kernel in Kernel::all() {
        kernel.prefer();
        assert_eq!(Kernel::best(), kernel);
        let sent = [rlnc::<Gf256>(), rlnc::<Gf16>(), rlnc::<Gf2>(), reed_solomon(), batches()];
        assert!(*expected.get_or_insert_with(|| sent.clone()) == sent, "{kernel:?}");
    }
}

/// A generation over a relay; gives what was sent.
fn rlnc<F: Field>() -> Vec<u8> {
    let shape = Shape::new(K, LEN).unwrap();
    let source = bytes(K * LEN, 1);
    let mut encoder = Encoder::<F>::new(shape);
    source.chunks(LEN).for_each(|symbol| _ = encoder.push(symbol).unwrap());
    let mut relay = Recoder::<F>::new(shape, 0, K, 2);
    let mut decoder = Decoder::<F>::new(shape, 0);
    let mut sent = Vec::new();
    let (mut vector, mut payload) = (vec![0; K], vec![0; LEN]);
    for seed in 0.. {
        encoder.encode_seeded(seed, Density::FULL, &mut payload).unwrap();
        sent.extend_from_slice(&payload);
        let packet = Packet { generation: 0, coding: Coding::Seed(seed, Density::FULL), payload: &payload };
        relay.push(&packet).unwrap();
        relay.recode(&mut vector, &mut payload).unwrap();
        sent.extend_from_slice(&payload);
        decoder.push(&Packet { generation: 0, coding: Coding::Vector(&vector), payload: &payload }).unwrap();
        if decoder.is_complete() {
            break;
        }
    }
    while let Some((index, symbol)) = decoder.poll() {
        assert_eq!(symbol, &source[index * LEN..][..LEN]);
    }
    sent
}

/// Recovers the maximum number of losses; returns the parity.
fn reed_solomon() -> Vec<u8> {
    let code = Code::new(10, 6).unwrap();
    let source = bytes(10 * LEN, 3);
    let source: Vec<&[u8]> = source.chunks(LEN).collect();
    let mut parity = vec![vec![0; LEN]; 6];
    parity.iter_mut().enumerate().for_each(|(i, parity)| code.parity(i, &source, parity).unwrap());
    let mut decoder = code.decoder();
    decoder.prepare(&[10, 1, 11, 3, 12, 5, 13, 7, 14, 15]).unwrap();
    let received: Vec<&[u8]> = vec![
        &parity[0], source[1], &parity[1], source[3], &parity[2], source[5], &parity[3], source[7],
        &parity[4], &parity[5],
    ];
    for index in [0, 2, 4, 6, 8, 9] {
        let mut symbol = vec![0; LEN];
        decoder.recover(index, &received, &mut symbol).unwrap();
        assert_eq!(symbol, source[index]);
    }
    parity.concat()
}

/// Batches of which each loses a packet; gives what arrives.
fn batches() -> Vec<u8> {
    let source = bytes(K * LEN, 4);
    let batch = BatchSize::new(16, InnerField::Gf256).unwrap();
    let parameters = Parameters::new(K, LEN, batch).unwrap();
    let mut encoder = bats::Encoder::new(&parameters, &source[..]).unwrap();
    let mut decoder = bats::Decoder::new(&parameters);
    let (mut sent, mut payload) = (Vec::new(), vec![0; LEN]);
    for bid in 0.. {
        for index in 1..batch.packets() {
            let mut vector = vec![0; batch.packets()];
            vector[index] = 1;
            encoder.packet(bid, index, &mut payload).unwrap();
            sent.extend_from_slice(&payload);
            decoder.push(bid, &vector, &payload).unwrap();
        }
        if decoder.is_complete() {
            break;
        }
    }
    for (index, symbol) in source.chunks(LEN).enumerate() {
        assert_eq!(decoder.symbol(index), Some(symbol));
    }
    sent
}
