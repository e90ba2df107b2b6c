//! BATS codes against an implementation from the definitions, and against golden vectors.
#![allow(clippy::unwrap_used, reason = "in a test's helpers too")]

use std::fmt::Write as _;

use hopcast_code::bats::{
    BatchSize, Decoder, Degrees, Encoder, Error, InnerField, MAX_BATCHES, Parameters, Sampling, Start,
    TinyMt32,
};
use hopcast_code::field::Gf256;
use hopcast_code::rlnc::{Coefficients, Density, Outcome};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

#[path = "bats_reference/slow.rs"]
mod slow;

/// A code, in the crate's words and in the reference's.
fn code(k: usize, len: usize, size: BatchSize, sampling: Sampling, start: Start) -> (Parameters, slow::Code) {
    // Not the default table: what is drawn from a new one would not be worse for being other.
    let weight = |degree: usize| if degree < size.packets() { 0.01 } else { 1.0 / (degree * degree) as f64 };
    let degrees = Degrees::new(&(1..=6 * size.packets()).map(weight).collect::<Vec<_>>()).unwrap();
    let parameters =
        Parameters::new(k, len, size).unwrap().sampling(sampling).start(start).degrees(degrees.clone());
    let mut beyond = 0;
    let degrees = degrees.iter().map(|(degree, share)| {
        beyond += (share * 4_294_967_296.0).round() as u64;
        (degree, beyond)
    });
    let slow = slow::Code {
        k,
        m: size.packets(),
        degrees: degrees.collect(),
        sampling: match sampling {
            Sampling::Rfc => slow::Sampling::Rfc,
            Sampling::Separate { session } => slow::Sampling::Separate(session),
            Sampling::Even { session } => slow::Sampling::Even(session),
        },
        systematic: start == Start::Systematic,
    };
    (parameters, slow)
}

/// A source of random bytes.
fn source(k: usize, len: usize, random: &mut Coefficients) -> Vec<Vec<u8>> {
    (0..k).map(|_| (0..len).map(|_| random.bits() as u8).collect()).collect()
}

const KINDS: [(Sampling, Start); 6] = [
    (Sampling::Rfc, Start::Coded),
    (Sampling::Separate { session: 0xC0FF_EE00 }, Start::Coded),
    (Sampling::Even { session: 0xC0FF_EE00 }, Start::Coded),
    (Sampling::Even { session: 7 }, Start::Systematic),
    (Sampling::Separate { session: 7 }, Start::Systematic),
    (Sampling::Rfc, Start::Systematic),
];

/// The source's symbols are unit vectors, so packets are their own coefficients: what is drawn for a batch can be read.
fn vectors() -> String {
    let mut text =
        String::from("K M q sampling start BID degree indices.. of 4: coefficients of packet 0; SHA-256\n");
    let gf = slow::Gf::new();
    for (k, size) in
        [(1, BatchSize::ALL[1]), (40, BatchSize::ALL[3]), (130, BatchSize::ALL[5]), (256, BatchSize::ALL[5])]
            .into_iter()
            .chain([(100, BatchSize::ALL[0]), (300, BatchSize::ALL[6])])
    {
        for (sampling, start) in KINDS {
            let (parameters, slow) = code(k, k, size, sampling, start);
            let units: Vec<Vec<u8>> = (0..k).map(|i| (0..k).map(|j| u8::from(i == j)).collect()).collect();
            let mut encoder = Encoder::new(&parameters, units.concat()).unwrap();
            let symbols = slow.symbols(&gf, &units);
            for bid in [0, 1, 40, 8_191] {
                let mut payloads = vec![0; size.packets() * k];
                encoder.batch(bid, &mut payloads).unwrap();
                let rows = slow.batch(bid);
                for (row, payload) in rows.iter().zip(payloads.chunks(k)) {
                    let terms = row.iter().copied().zip(symbols.iter().map(|symbol| &symbol[..]));
                    assert_eq!(payload, gf.sum(k, terms), "{k} {size:?} {sampling:?} {start:?} {bid}");
                }
                let indices: Vec<usize> =
                    (0..slow.columns()).filter(|&i| rows.iter().any(|row| row[i] != 0)).collect();
                let some: Vec<String> =
                    indices.iter().take(4).map(|&i| format!("{i}:{:02x}", rows[0][i])).collect();
                let digest: String = Sha256::digest(&payloads)
                    .iter()
                    .take(12)
                    .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
                writeln!(
                    text,
                    "{k} {} {:?} {sampling:?} {start:?} {bid} {} {} {digest}",
                    size.packets(),
                    size.field(),
                    indices.len(),
                    some.join(" "),
                )
                .unwrap();
            }
        }
    }
    text
}

#[test]
fn batches_are_those_of_the_reference_and_of_the_golden_vectors() {
    let found = vectors();
    let expected = include_str!("bats_reference/golden.txt");
    assert!(found == expected, "golden vectors differ; found:\n{found}");
}

#[test]
fn a_packet_alone_is_the_one_of_its_batch() {
    let mut random = Coefficients::new(1);
    for (sampling, start) in KINDS {
        let (parameters, _) = code(37, 5, BatchSize::ALL[3], sampling, start);
        let mut encoder = Encoder::new(&parameters, source(37, 5, &mut random).concat()).unwrap();
        for bid in 0..12 {
            let (mut payloads, mut alone) = ([0; 8 * 5], [0; 5]);
            encoder.batch(bid, &mut payloads).unwrap();
            for (index, payload) in payloads.chunks(5).enumerate() {
                encoder.packet(bid, index, &mut alone).unwrap();
                assert_eq!(alone, payload);
            }
        }
    }
}

#[test]
fn tiny_mt_draws_what_it_has_always_drawn() {
    let draws = |seed| {
        let mut random = TinyMt32::new(seed);
        [random.draw(), random.draw(), random.draw()]
    };
    assert_eq!(draws(1), [2_545_341_989, 981_918_433, 3_715_302_833]);
    assert_eq!(draws(0), GOLDEN_DRAWS[0]);
    assert_eq!(draws(8_191), GOLDEN_DRAWS[1]);
}

/// For the seeds 0 and 8191.
const GOLDEN_DRAWS: [[u32; 3]; 2] =
    [[2_081_790_247, 3_105_921_834, 760_524_185], [3_456_015_421, 2_485_216_969, 4_253_460_143]];

/// A batch on its way: what a node has of it, vectors and payloads.
type Batch = Vec<Packet>;
type Packet = (Vec<u8>, Vec<u8>);

/// Some of a batch's packets lost, and combinations of the others sent in their place.
fn relay(gf: &slow::Gf, batch: &Batch, loss: u64, is_binary: bool, random: &mut Coefficients) -> Batch {
    let arrived: Batch = batch.iter().filter(|_| random.bits() % 100 >= loss).cloned().collect();
    let Some((vector, payload)) = arrived.first() else { return arrived };
    (0..batch.len())
        .map(|_| {
            let mut own = vec![0; arrived.len()];
            random.fill::<Gf256>(Density::FULL, &mut own);
            own.iter_mut().for_each(|coefficient| *coefficient &= if is_binary { 1 } else { 255 });
            let sum = |len: usize, part: fn(&Packet) -> &[u8]| {
                gf.sum(len, own.iter().copied().zip(arrived.iter().map(part)))
            };
            (sum(vector.len(), |(vector, _)| vector), sum(payload.len(), |(_, payload)| payload))
        })
        .collect()
}

/// A session with losses and relays: after every packet, the decoder is complete if and only if the dense one is.
fn session(
    (k, len, size): (usize, usize, BatchSize),
    (sampling, start): (Sampling, Start),
    (relays, loss, is_shuffled): (usize, u64, bool),
    seed: u64,
) {
    let gf = slow::Gf::new();
    let mut random = Coefficients::new(seed);
    let (parameters, slow) = code(k, len, size, sampling, start);
    let source = source(k, len, &mut random);
    let symbols = slow.symbols(&gf, &source);
    let (mut decoder, mut dense) = (Decoder::new(&parameters), slow::Dense::new(&gf, slow.columns()));
    for row in slow.equations() {
        dense.push(&row, &vec![0; len]);
    }
    let m = size.packets();
    let mut polled = vec![false; k];
    let is_binary = size.field() == InnerField::Gf2;
    // A few batches in flight at a time, their packets mixed.
    let mut flight: Vec<(u16, Vec<u8>, Vec<u8>)> = Vec::new();
    for bid in 0..600 {
        let rows = slow.batch(bid);
        let unit = |i: usize| (0..m).map(|j| u8::from(i == j)).collect::<Vec<_>>();
        let payload =
            |row: &Vec<u8>| gf.sum(len, row.iter().copied().zip(symbols.iter().map(|symbol| &symbol[..])));
        let mut batch: Batch = rows.iter().enumerate().map(|(i, row)| (unit(i), payload(row))).collect();
        for _ in 0..relays {
            batch = relay(&gf, &batch, loss, is_binary, &mut random);
        }
        flight.extend(
            batch
                .into_iter()
                .filter(|_| random.bits() % 100 >= loss)
                .map(|(vector, payload)| (bid, vector, payload)),
        );
        if is_shuffled && bid % 4 != 3 {
            continue;
        }
        while !flight.is_empty() {
            let next = if is_shuffled { random.bits() as usize % flight.len() } else { 0 };
            let (bid, vector, payload) = flight.remove(next);
            let rows = slow.batch(bid);
            let terms = vector.iter().copied().zip(rows.iter().map(|row| &row[..]));
            let before = dense.rank;
            dense.push(&gf.sum(slow.columns(), terms), &payload);
            let outcome = decoder.push(bid, &vector, &payload).unwrap();
            assert!(
                dense.rank == before || outcome == Outcome::Innovative,
                "what is innovative is known to be"
            );
            // Polling seldom must not matter.
            if random.bits().is_multiple_of(3) {
                assert_eq!(decoder.is_complete(), dense.is_complete());
                while let Some((index, symbol)) = decoder.poll() {
                    assert_eq!(symbol, source[index]);
                    assert!(!std::mem::replace(&mut polled[index], true), "each once");
                }
            }
        }
        if dense.is_complete() {
            assert!(decoder.is_complete());
            while let Some((index, symbol)) = decoder.poll() {
                assert_eq!(symbol, source[index]);
                polled[index] = true;
            }
            assert!(polled.iter().all(|&polled| polled));
            assert_eq!(dense.solve()[..k], source);
            assert_eq!(decoder.push(0, &vec![1; m], &vec![0; len]), Ok(Outcome::Redundant));
            return;
        }
    }
    assert!(!decoder.is_complete());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn it_decodes_when_and_only_when_a_dense_decoder_does(
        k in 1..90_usize,
        len in 1..20_usize,
        size in prop::sample::select(&BatchSize::ALL[..6]),
        kind in prop::sample::select(&KINDS[..]),
        network in (0..4_usize, 0..35_u64, any::<bool>()),
        seed: u64,
    ) {
        session((k, len, size), kind, network, seed);
    }

    #[test]
    fn garbage_does_no_harm(
        k in 1..60_usize,
        size in prop::sample::select(&BatchSize::ALL[..]),
        kind in prop::sample::select(&KINDS[..]),
        seed: u64,
    ) {
        let (parameters, _) = code(k, 4, size, kind.0, kind.1);
        let mut decoder = Decoder::new(&parameters);
        let mut random = Coefficients::new(seed);
        for _ in 0..600 {
            let bid = random.bits() as u16 >> (random.bits() % 16);
            let lens = [size.packets(), 4].map(|len| if random.bits().is_multiple_of(16) { len + 1 } else { len });
            let [vector, payload] = lens.map(|len| {
                let (style, once) = (random.bits() % 4, random.bits() as usize % len);
                (0..len)
                    .map(|i| match style {
                        0 => 0,
                        1 => u8::from(i == once),
                        _ => random.bits() as u8,
                    })
                    .collect::<Vec<u8>>()
            });
            let replays = 1 + random.bits() % 3;
            for _ in 0..replays {
                match decoder.push(bid, &vector, &payload) {
                    Ok(_) => prop_assert!(usize::from(bid) < MAX_BATCHES && lens == [size.packets(), 4]),
                    Err(Error::Batch(found)) => prop_assert!(found == bid && usize::from(bid) >= MAX_BATCHES),
                    Err(Error::VectorLength { found, .. }) => prop_assert_eq!(found, vector.len()),
                    Err(Error::PayloadLength { found, .. }) => prop_assert_eq!(found, payload.len()),
                    Err(other) => prop_assert!(false, "{}", other),
                }
            }
            prop_assert!(decoder.rank(bid) <= size.packets());
            if random.bits().is_multiple_of(5) {
                while decoder.poll().is_some() {}
            }
        }
    }
}
