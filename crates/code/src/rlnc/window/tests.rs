//! A stream through a lossy link.

use proptest::prelude::*;

use super::*;
use crate::field::{Field, Gf2, Gf16, Gf256};
use crate::rlnc::{Coefficients, Density, Error, Outcome, Shape};

const LEN: usize = 21;

fn symbol(number: u64) -> [u8; LEN] {
    let mut random = Coefficients::new(number);
    std::array::from_fn(|_| random.bits() as u8)
}

/// Number of symbols out of `count` that arrive when one in `loss` packets is lost and every `every`-th is followed by
/// a repair.
fn stream<F: Field>(window: usize, count: u64, loss: u64, every: u64, seed: u64) -> u64 {
    let shape = Shape::new(window, LEN).unwrap();
    let (mut encoder, mut decoder) = (Encoder::<F>::new(shape), Decoder::<F>::new(shape));
    let (mut random, mut channel) = (Coefficients::new(seed), Coefficients::new(seed ^ 1));
    let (mut vector, mut payload) = (vec![0; window], [0; LEN]);
    let mut seen = vec![false; count as usize];
    for number in 0..count {
        assert_eq!(encoder.push(&symbol(number)), Ok(number));
        if !channel.bits().is_multiple_of(loss) {
            decoder.push_symbol(number, &symbol(number)).unwrap();
            assert_eq!(decoder.push_symbol(number, &symbol(number)), Ok(Outcome::Redundant));
        }
        if number % every == every - 1 {
            let span = encoder.repair(&mut random, Density::FULL, &mut vector, &mut payload).unwrap();
            if !channel.bits().is_multiple_of(loss) {
                decoder.push_repair(span.first, &vector[..span.count], &payload).unwrap();
            }
        }
        while let Some((number, payload)) = decoder.poll() {
            assert_eq!(payload, symbol(number), "symbol {number}");
            assert!(!std::mem::replace(&mut seen[number as usize], true), "symbol {number} came twice");
        }
    }
    seen.iter().filter(|&&seen| seen).count() as u64
}

/// Found by fuzzing: a range of numbers stepped past the last one.
#[test]
fn a_repair_up_to_the_last_number_there_is_is_taken() {
    let mut decoder = Decoder::<Gf2>::new(Shape::new(4, 1).unwrap());
    assert_eq!(decoder.push_repair(u64::MAX - 2, &[1, 1], &[3]), Ok(Outcome::Innovative));
    assert_eq!((decoder.rank(), decoder.end()), (1, u64::MAX));
}

#[test]
fn a_window_with_enough_repair_delivers_nearly_everything() {
    assert!(stream::<Gf256>(64, 4_000, 10, 4, 1) > 3_990);
    assert!(stream::<Gf16>(64, 4_000, 10, 4, 1) > 3_990);
    assert!(stream::<Gf2>(64, 4_000, 10, 4, 1) > 3_970);
}

#[test]
fn a_jump_forward_forgets_everything() {
    let mut decoder: Decoder = Decoder::new(Shape::new(4, 1).unwrap());
    decoder.push_symbol(0, &[1]).unwrap();
    decoder.push_symbol(u64::MAX - 1, &[2]).unwrap();
    assert_eq!((decoder.rank(), decoder.start(), decoder.end()), (1, u64::MAX - 4 - 1 + 1, u64::MAX));
    assert_eq!(decoder.poll(), Some((u64::MAX - 1, &[2][..])));
    assert_eq!(decoder.poll(), None);
    assert_eq!(decoder.push_symbol(0, &[1]), Ok(Outcome::Redundant));
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut decoder: Decoder = Decoder::new(Shape::new(4, 1).unwrap());
    decoder.push_symbol(9, &[1]).unwrap();
    assert_eq!(decoder.push_symbol(9, &[1, 2]), Err(Error::PayloadLength { expected: 1, found: 2 }));
    assert_eq!(decoder.push_repair(9, &[1; 5], &[1]), Err(Error::VectorLength { expected: 4, found: 5 }));
    assert_eq!(decoder.push_repair(5, &[1, 1], &[1]), Err(Error::Outside { start: 6, first: 5 }));
    assert_eq!(
        decoder.push_repair(u64::MAX, &[1, 1], &[1]),
        Err(Error::Outside { start: 6, first: u64::MAX })
    );
    assert!(decoder.push_symbol(u64::MAX, &[1]).is_err());
    assert_eq!(
        decoder.push_repair(5, &[0, 0, 0, 1], &[1]),
        Ok(Outcome::Innovative),
        "zeros in front do not count"
    );
    assert_eq!((decoder.rank(), decoder.end()), (2, 10));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 150 }, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_lost_what_comes_out_is_the_source(
        window in 1..40_usize, loss in 2..12_u64, every in 1..8_u64, seed in any::<u64>(),
    ) {
        let received = stream::<Gf256>(window, 300, loss, every, seed);
        prop_assert!(received >= 100);
        stream::<Gf2>(window, 300, loss, every, seed);
    }

    #[test]
    fn hostile_packets_never_panic(
        packets in prop::collection::vec((any::<u8>(), any::<u64>(), prop::collection::vec(any::<u8>(), 0..7)), 0..60),
    ) {
        let mut decoder: Decoder = Decoder::new(Shape::new(5, 2).unwrap());
        for (kind, random, vector) in packets {
            let number = if kind.is_multiple_of(16) { random } else { random % 20 };
            let payload = random.to_le_bytes();
            let payload = &payload[..if kind % 32 == 1 { 3 } else { 2 }];
            _ = match kind & 64 {
                0 => decoder.push_symbol(number, payload),
                _ => decoder.push_repair(number, &vector, payload),
            };
            prop_assert!(decoder.rank() <= 5);
            if kind > 100 {
                while decoder.poll().is_some() {}
            }
        }
    }
}
