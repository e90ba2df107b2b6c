//! The timing and counting that both benchmarks share.

use std::hint::black_box;
use std::time::Instant;

use hopcast_code::field::{Field, Gf256, Kernel, Symbols};

/// The bytes of a symbol, and how far apart symbols stand.
pub(super) const LEN: usize = 1_400;
const STRIDE: usize = 1_408;

/// The median over runs of `operation`, in GB/s of the `bytes` that it works on.
pub(super) fn rate(bytes: usize, mut operation: impl FnMut()) -> f64 {
    let mut runs = 1_u32;
    let mut time = |runs: u32| {
        let start = Instant::now();
        (0..runs).for_each(|_| operation());
        start.elapsed().as_secs_f64()
    };
    while time(runs) < 2e-3 {
        runs *= 2;
    }
    let mut times: Vec<f64> = (0..15).map(|_| time(runs)).collect();
    times.sort_by(f64::total_cmp);
    bytes as f64 * f64::from(runs) / times[7] / 1e9
}

/// The best rate of a blocked product here, in GB/s of terms.
pub(super) fn ceiling() -> f64 {
    let rates = [(64, 16), (64, 64), (256, 64)].map(|(k, rows)| product_rate(Kernel::best(), k, rows));
    rates.into_iter().fold(0.0, f64::max)
}

/// The rate of the product of `k` rows for several destinations at once, in GB/s of terms.
pub(super) fn product_rate(kernel: Kernel, k: usize, rows: usize) -> f64 {
    let (mut x, mut y) = (vec![7; k * STRIDE + 64], vec![9; rows * STRIDE + 64]);
    let (x, y) = (aligned(&mut x), aligned(&mut y));
    let a: Vec<u8> = (0..rows * k).map(|i| (i * 37 + 11) as u8 | 2).collect();
    let at = |n: usize| (0..n).map(|i| i * STRIDE).collect::<Vec<_>>();
    let (x_at, y_at) = (at(k), at(rows));
    rate(k * rows * LEN, || {
        let y = Symbols::new(black_box(&mut *y), &y_at, LEN);
        kernel.product(<Gf256>::tables(), y, &a, Symbols::new(black_box(&*x), &x_at, LEN));
    })
}

/// An aligned stretch of a buffer.
pub(super) fn aligned(buffer: &mut [u8]) -> &mut [u8] {
    let skip = buffer.as_ptr().align_offset(64);
    &mut buffer[skip..]
}
