//! Every kernel held against the plain one.

use proptest::prelude::*;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::{Extensions, Set};
use super::{Kernel, Symbols};
use crate::field::{Field, Gf2, Gf16, Gf256, Tables};

fn others() -> impl Iterator<Item = Kernel> {
    Kernel::all().filter(|&kernel| kernel != Kernel::PLAIN)
}

/// Bytes that look random and are always the same.
fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    core::iter::repeat_with(next).take(len).collect()
}

/// The same operation by the plain kernel and by each other one, on bytes from `skew` on, gives the same buffer, and
/// touches nothing outside.
fn same(len: usize, skew: usize, operation: impl Fn(Kernel, &mut [u8])) {
    let mut expected = bytes(len + skew + 70, 1);
    operation(Kernel::PLAIN, &mut expected[skew..][..len]);
    for kernel in others() {
        let mut found = bytes(len + skew + 70, 1);
        operation(kernel, &mut found[skew..][..len]);
        assert!(found == expected, "{kernel:?}, {len} bytes from {skew}");
    }
}

fn agree_on_single_rows(tables: &Tables, a: u8, len: usize, y_skew: usize, x_skew: usize) {
    let x = bytes(len + x_skew, 2);
    same(len, y_skew, |kernel, y| kernel.axpy(tables, y, a, &x[x_skew..]));
    same(len, y_skew, |kernel, y| kernel.scale(tables, y, a));
}

#[test]
fn the_best_kernel_is_the_last_of_all() {
    assert_eq!(Kernel::all().last(), Some(Kernel::best()));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_machine_says_which_kernel_is_the_best() {
    let best = |machine| Set::all_of(machine).next_back().expect("the plain one is everywhere");
    let core_2 = Extensions { ssse3: true, ..Extensions::default() };
    let haswell = Extensions { avx2: true, ..core_2 };
    let skylake_xeon = Extensions { avx512: true, ..haswell };
    assert_eq!(best(Extensions::default()), Set::Plain);
    assert_eq!(best(core_2), Set::Ssse3);
    assert_eq!(best(haswell), Set::Avx2);
    assert_eq!(best(skylake_xeon), Set::Avx512, "AVX-512 and no GFNI: Skylake to Cascade Lake");
    assert_eq!(best(Extensions { gfni: true, ..haswell }), Set::GfniAvx2, "Alder Lake");
    assert_eq!(best(Extensions { gfni: true, ..skylake_xeon }), Set::GfniAvx512, "Ice Lake, Zen 4");
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[test]
fn a_64_bit_arm_machine_uses_neon() {
    assert_eq!(Set::all_of(Extensions::of_this_machine()).next_back(), Some(Set::Neon));
    assert_eq!(Kernel::best(), Kernel(Set::Neon));
}

#[test]
fn the_plain_kernel_multiplies_byte_by_byte() {
    let x = bytes(300, 3);
    for a in 0..=255 {
        let mut y = bytes(300, 4);
        Kernel::PLAIN.axpy(<Gf256>::tables(), &mut y, a, &x);
        let expected: Vec<u8> = bytes(300, 4).iter().zip(&x).map(|(y, &x)| y ^ <Gf256>::mul(a, x)).collect();
        assert_eq!(y, expected);
    }
}

#[test]
fn every_kernel_knows_every_coefficient() {
    let step = if cfg!(miri) { 51 } else { 1 };
    for a in (0..=255).step_by(step) {
        for tables in [<Gf256>::tables(), Gf256::<0x11B>::tables(), <Gf16>::tables(), Gf2::tables()] {
            agree_on_single_rows(tables, a, 397, 1, 2);
        }
    }
}

#[test]
fn every_kernel_does_every_length() {
    for len in (0..300).chain((301..4096).step_by(if cfg!(miri) { 1001 } else { 82 })) {
        agree_on_single_rows(<Gf256>::tables(), 0xB7, len, 0, 3);
    }
}

#[test]
fn every_kernel_does_every_alignment() {
    for skew in 0..64 {
        agree_on_single_rows(<Gf256>::tables(), 0x53, 331, skew, 0);
        agree_on_single_rows(<Gf256>::tables(), 0x53, 331, 0, skew);
    }
}

#[test]
fn every_kernel_adds_every_length_of_rows() {
    let data = bytes(7 * 1100, 5);
    for len in (0..300).chain((301..1100).step_by(41)) {
        let rows: Vec<&[u8]> = data.chunks(1100).map(|row| &row[..len]).collect();
        same(len, 0, |kernel, y| kernel.axpy_rows(<Gf256>::tables(), y, &[9, 0, 1, 0xFF, 77, 3, 2], &rows));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 300 }, ..ProptestConfig::default() })]

    #[test]
    fn every_kernel_gives_the_same_product(
        (rows, columns) in (0..21_usize, 0..150_usize),
        (len, skew, seed) in (0..1500_usize, 0..64_usize, any::<u64>()),
        sparse in any::<bool>(),
    ) {
        let mut a = bytes(rows * columns, seed);
        if sparse {
            a.iter_mut().for_each(|a| *a = a.saturating_sub(200));
        }
        let x = bytes(columns * len + skew, seed ^ 1);
        let x_at: Vec<usize> = (0..columns).map(|i| skew + i * len).collect();
        let y_at: Vec<usize> = (0..rows).map(|i| i * len).collect();
        same(rows * len, skew, |kernel, y| {
            let y = Symbols::new(y, &y_at, len);
            kernel.product(<Gf256>::tables(), y, &a, Symbols::new(&x[..], &x_at, len));
        });
        same(rows * len, skew, |kernel, y| {
            let y = Symbols::new(y, &y_at, len);
            kernel.product_into(<Gf256>::tables(), y, &a, Symbols::new(&x[..], &x_at, len));
        });
    }

    #[test]
    fn every_kernel_appends_what_it_would_write(
        (rows, columns) in (0..21_usize, 0..70_usize),
        (len, gap, room, seed) in (0..700_usize, 0..65_usize, any::<bool>(), any::<u64>()),
    ) {
        let (a, x, stride) = (bytes(rows * columns, seed), bytes(columns * len, seed ^ 1), len + gap);
        let x_at: Vec<usize> = (0..columns).map(|i| i * len).collect();
        for kernel in Kernel::all() {
            let mut expected = [&x[..], &vec![0; rows * stride]].concat();
            let y = Symbols::spaced(&mut expected[x.len()..], 0, stride, rows, len);
            kernel.product_into(<Gf256>::tables(), y, &a, Symbols::new(&x[..], &x_at, len));
            let mut found = Vec::with_capacity(if room { expected.len() } else { 0 });
            // What is overwritten is not zero by chance.
            found.resize(found.capacity(), 0xA5);
            found.clear();
            found.extend_from_slice(&x);
            kernel.append_product(<Gf256>::tables(), &mut found, (rows, len, stride), &a, &x_at);
            prop_assert!(found == expected, "{:?}", kernel);
        }
    }

    #[test]
    fn a_product_is_the_sum_of_its_terms(
        (rows, columns, len) in (1..6_usize, 1..70_usize, 0..200_usize),
        seed in any::<u64>(),
    ) {
        let (a, x) = (bytes(rows * columns, seed), bytes(columns * len, seed ^ 1));
        let x_at: Vec<usize> = (0..columns).map(|i| i * len).collect();
        let y_at: Vec<usize> = (0..rows).map(|i| i * len).collect();
        let (mut y, mut expected) = (vec![0; rows * len], vec![0; rows * len]);
        let symbols = Symbols::new(&mut y[..], &y_at, len);
        crate::field::product(symbols, &a, Symbols::new(&x[..], &x_at, len));
        for row in 0..rows {
            for column in 0..columns {
                let term = &x[column * len..][..len];
                crate::field::axpy(&mut expected[row * len..][..len], a[row * columns + column], term);
            }
        }
        prop_assert_eq!(&y, &expected);
        let symbols = Symbols::new(&mut y[..], &y_at, len);
        crate::field::product_into(symbols, &a, Symbols::new(&x[..], &x_at, len));
        prop_assert_eq!(y, expected);
    }
}

#[test]
fn symbols_at_equal_distances_are_those_at_these_offsets() {
    let (x, a) = (bytes(500, 1), bytes(2 * 9, 2));
    let (x_at, y_at): (Vec<usize>, _) = ((0..9).map(|i| 3 + i * 50).collect(), [7, 47]);
    let (mut listed, mut spaced) = (bytes(90, 3), bytes(90, 3));
    crate::field::product(Symbols::new(&mut listed, &y_at, 40), &a, Symbols::new(&x, &x_at, 40));
    let y = Symbols::spaced(&mut spaced[..], 7, 40, 2, 40);
    crate::field::product(y, &a, Symbols::spaced(&x[..], 3, 50, 9, 40));
    assert_eq!(listed, spaced);
}

#[test]
#[should_panic(expected = "a symbol ends within its buffer")]
fn a_symbol_past_the_end_of_its_buffer_is_refused() {
    let _ = Symbols::new(&[0_u8; 100][..], &[0, usize::MAX - 3], 10);
}

#[test]
#[should_panic(expected = "a symbol ends within its buffer")]
fn symbols_at_equal_distances_past_the_end_of_their_buffer_are_refused() {
    let _ = Symbols::spaced(&[0_u8; 100][..], 0, usize::MAX / 2 + 1, 3, 10);
}
