//! Rates of the kernels and the codes, beside a plain XOR and beside each other: `cargo bench -p hopcast-code`.
#![allow(unsafe_code, reason = "the plain XOR needs the same vectors to be a fair comparison")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;

use hopcast_code::field::{Field, Gf256, Kernel};

mod measure;
#[path = "kernels/rlnc.rs"]
mod rlnc;

use measure::{LEN, aligned, ceiling, product_rate, rate};

fn main() {
    println!("one row, and the product of k rows for several destinations at once (GB/s of terms)");
    for kernel in Kernel::all() {
        single_rows(kernel);
        blocked(kernel);
    }
    let ceiling = ceiling();
    println!(
        "\nRLNC, symbols of {LEN} bytes, GB/s of source data (in brackets: of the ceiling {ceiling:.0} / k)"
    );
    println!(
        "{:>4} {:>16} {:>16} {:>14} {:>12} {:>12} {:>8}",
        "k", "encode, batch", "decode, dense", "decode, 10 %", "in order", "memcpy", "M = 16"
    );
    for k in [16, 32, 64, 128, 150, 256] {
        rlnc::line(k, ceiling);
    }
}

fn single_rows(kernel: Kernel) {
    let (mut x, mut y) = (vec![7; LEN + 64], vec![9; LEN + 64]);
    let (x, y) = (&mut aligned(&mut x)[..LEN], &mut aligned(&mut y)[..LEN]);
    let tables = <Gf256>::tables();
    let xor = rate(LEN, || xor(black_box(y), black_box(x)));
    let one = rate(LEN, || kernel.axpy(tables, black_box(y), black_box(1), black_box(x)));
    let axpy = rate(LEN, || kernel.axpy(tables, black_box(y), black_box(0xB7), black_box(x)));
    let ratio = axpy / xor;
    println!(
        "{:15} plain XOR {xor:6.1}, axpy of 1 {one:6.1}, axpy {axpy:6.1}, axpy / XOR {ratio:.2}",
        kernel.name()
    );
}

fn blocked(kernel: Kernel) {
    for k in [16, 64, 256] {
        for rows in [1, 4, 16, 64] {
            print!("  {k} x {rows} {:6.1}", product_rate(kernel, k, rows));
        }
        println!();
    }
}

/// A plain XOR with the widest vectors of the machine, written by hand as the kernels are.
fn xor(y: &mut [u8], x: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512bw") {
        // SAFETY: the feature is there.
        return unsafe { xor_avx512(y, x) };
    }
    y.iter_mut().zip(x).for_each(|(y, x)| *y ^= x);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn xor_avx512(y: &mut [u8], x: &[u8]) {
    use std::arch::x86_64::*;
    let (mut y, mut x) = (y.chunks_exact_mut(256), x.chunks_exact(256));
    for (y, x) in y.by_ref().zip(x.by_ref()) {
        for at in (0..256).step_by(64) {
            // SAFETY: within the chunks.
            unsafe {
                let sum = _mm512_xor_si512(
                    _mm512_loadu_si512(y.as_ptr().add(at).cast()),
                    _mm512_loadu_si512(x.as_ptr().add(at).cast()),
                );
                _mm512_storeu_si512(y.as_mut_ptr().add(at).cast(), sum);
            }
        }
    }
    for (y, x) in y.into_remainder().chunks_mut(64).zip(x.remainder().chunks(64)) {
        let mask = if y.len() == 64 { !0 } else { (1 << y.len()) - 1 };
        // SAFETY: masked to the chunks' length.
        unsafe {
            let old = _mm512_maskz_loadu_epi8(mask, y.as_ptr().cast());
            let sum = _mm512_xor_si512(old, _mm512_maskz_loadu_epi8(mask, x.as_ptr().cast()));
            _mm512_mask_storeu_epi8(y.as_mut_ptr().cast(), mask, sum);
        }
    }
}
