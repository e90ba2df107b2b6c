//! Any k of k + n symbols suffice.

use proptest::prelude::*;

use super::*;
use crate::field::{mul, pow};
use crate::rlnc::Coefficients;

fn block(code: &Code, block: usize, len: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut random = Coefficients::new(seed);
    let mut symbols: Vec<Vec<u8>> =
        (0..block).map(|_| (0..len).map(|_| random.bits() as u8).collect()).collect();
    let source: Vec<&[u8]> = symbols.iter().map(Vec::as_slice).collect();
    let mut parities = vec![vec![0; len]; code.parity_symbols()];
    for (index, parity) in parities.iter_mut().enumerate() {
        code.parity(index, &source, parity).unwrap();
    }
    symbols.extend(parities);
    symbols
}

/// Whether `received` symbols of a block of `size` source symbols give back those that are missing.
fn recovers(code: &Code, symbols: &[Vec<u8>], size: usize, received: &[usize]) {
    let mut decoder = code.decoder();
    decoder.prepare_short(size, received).unwrap();
    let have: Vec<&[u8]> = received.iter().map(|&index| &symbols[index][..]).collect();
    let expected: Vec<usize> = (0..size).filter(|index| !received.contains(index)).collect();
    assert_eq!(decoder.missing(), expected);
    let mut symbol = vec![0xEE; symbols[0].len()];
    for index in expected {
        decoder.recover(index, &have, &mut symbol).unwrap();
        assert_eq!(symbol, symbols[index], "symbol {index} out of {received:?}");
    }
}

#[test]
fn every_erasure_pattern_of_small_codes_is_repaired() {
    for points in [Points::Rizzo, Points::Powers] {
        for (k, n) in (1..6).flat_map(|k| (0..5).map(move |n| (k, n))) {
            let code = Code::with_points(k, n, points).unwrap();
            for size in 1..=k {
                let symbols = block(&code, size, 19, (k * n) as u64);
                for pattern in (0_u32..1 << (size + n)).filter(|pattern| pattern.count_ones() == size as u32)
                {
                    let received: Vec<usize> = (0..size + n).filter(|i| pattern >> i & 1 == 1).collect();
                    recovers(&code, &symbols, size, &received);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 60 }, ..ProptestConfig::default() })]

    #[test]
    fn any_k_of_large_codes_suffice_in_any_order(
        (k, order) in (1..255_usize).prop_flat_map(|k| (Just(k), Just((0..255).collect::<Vec<usize>>()).prop_shuffle())),
    ) {
        let code = Code::new(k, 255 - k).unwrap();
        let symbols = block(&code, k, 7, k as u64);
        recovers(&code, &symbols, k, &order[..k]);
    }
}

/// The generator as RFC 5510, section 8.2 defines it, and as Rizzo's: not by interpolation but by inverting a matrix.
#[test]
fn the_matrix_is_vandermonde_times_the_inverse_of_its_top() {
    for (points, first) in [(Points::Rizzo, true), (Points::Powers, false)] {
        for (k, n) in [(1, 3), (4, 4), (8, 5), (20, 10), (64, 16), (200, 55)] {
            let code = Code::with_points(k, n, points).unwrap();
            let point = |row: usize| match row {
                0 if first => 0,
                row => pow(2, (row - usize::from(first)) as u32),
            };
            let mut top: Vec<u8> =
                (0..k).flat_map(|row| (0..k).map(move |column| pow(point(row), column as u32))).collect();
            let mut inverse = vec![0; k * k];
            assert!(code::invert(k, &mut top, &mut inverse));
            for index in 0..n {
                let expected: Vec<u8> = (0..k)
                    .map(|column| {
                        (0..k).fold(0, |sum, j| {
                            sum ^ mul(pow(point(k + index), j as u32), inverse[j * k + column])
                        })
                    })
                    .collect();
                assert_eq!(code.row(index), expected, "k = {k}, parity {index}");
            }
        }
    }
}

#[test]
fn parity_can_be_accumulated_symbol_by_symbol() {
    let code = Code::new(5, 2).unwrap();
    let symbols = block(&code, 5, 33, 1);
    let mut parity = [0; 33];
    for (position, source) in symbols[..5].iter().enumerate() {
        code.accumulate(1, position, source, &mut parity).unwrap();
    }
    assert_eq!(parity[..], symbols[6]);
}

#[test]
fn what_does_not_fit_is_refused() {
    assert_eq!(Code::new(0, 3), Err(Error::Size { source: 0, parity: 3 }));
    assert_eq!(Code::new(200, 56), Err(Error::Size { source: 200, parity: 56 }));
    assert!(
        Code::new(usize::MAX, 2).is_err() && Code::new(2, usize::MAX).is_err() && Code::new(255, 0).is_ok()
    );
    let code = Code::new(3, 2).unwrap();
    let symbol: &[u8] = &[0; 4];
    assert_eq!(code.parity(2, &[symbol; 3], &mut [0; 4]), Err(Error::Index { symbols: 2, index: 2 }));
    assert_eq!(code.parity(0, &[symbol; 4], &mut [0; 4]), Err(Error::Count { expected: 3, found: 4 }));
    assert_eq!(code.parity(0, &[symbol; 3], &mut [0; 5]), Err(Error::Length { expected: 5, found: 4 }));
    let mut decoder = code.decoder();
    assert_eq!(decoder.prepare(&[0, 1]), Err(Error::Count { expected: 3, found: 2 }));
    assert_eq!(decoder.prepare(&[0, 1, 5]), Err(Error::Index { symbols: 5, index: 5 }));
    assert_eq!(decoder.prepare(&[0, 1, 1]), Err(Error::Duplicate { index: 1 }));
    assert_eq!(decoder.recover(0, &[], &mut []), Err(Error::Index { symbols: 0, index: 0 }));
    decoder.prepare(&[0, 1, 3]).unwrap();
    assert_eq!(decoder.recover(1, &[symbol; 3], &mut [0; 4]), Err(Error::Index { symbols: 1, index: 1 }));
    assert_eq!(decoder.recover(2, &[symbol; 2], &mut [0; 4]), Err(Error::Count { expected: 3, found: 2 }));
    assert_eq!(decoder.recover(2, &[symbol; 3], &mut [0; 3]), Err(Error::Length { expected: 3, found: 4 }));
}
