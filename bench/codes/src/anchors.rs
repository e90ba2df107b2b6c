//! Limits that nobody can be faster than: XOR, memcpy, and the blocked kernel.

use std::hint::black_box;

use hopcast_code::field::{Field, Gf256, Kernel, Symbols};

use crate::block::{Aligned, Block};
use crate::race::Contender;

/// `y += x` with the widest vectors that the machine has, four to a turn of the loop.
pub(crate) fn xor(y: &mut [u8], x: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512bw") {
        // SAFETY: the instructions exist.
        return unsafe { xor_avx512(y, x) };
    } else if is_x86_feature_detected!("avx2") {
        // SAFETY: likewise.
        return unsafe { xor_avx2(y, x) };
    }
    xor_in_chunks::<64>(y, x);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn xor_avx2(y: &mut [u8], x: &[u8]) {
    xor_in_chunks::<128>(y, x);
}

#[inline(always)]
fn xor_in_chunks<const N: usize>(y: &mut [u8], x: &[u8]) {
    let ((y, y_rest), (x, x_rest)) = (y.as_chunks_mut::<N>(), x.as_chunks::<N>());
    for (y, x) in y.iter_mut().zip(x) {
        for i in 0..N {
            y[i] ^= x[i];
        }
    }
    y_rest.iter_mut().zip(x_rest).for_each(|(y, x)| *y ^= x);
}

/// By hand, because compilers prefer the shorter vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn xor_avx512(y: &mut [u8], x: &[u8]) {
    use std::arch::x86_64::*;
    let ((y, y_rest), (x, x_rest)) = (y.as_chunks_mut::<256>(), x.as_chunks::<256>());
    for (y, x) in y.iter_mut().zip(x) {
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
    for (y, x) in y_rest.chunks_mut(64).zip(x_rest.chunks(64)) {
        let mask = if y.len() == 64 { !0 } else { (1 << y.len()) - 1 };
        // SAFETY: masked to the chunks' length.
        unsafe {
            let old = _mm512_maskz_loadu_epi8(mask, y.as_ptr().cast());
            let sum = _mm512_xor_si512(old, _mm512_maskz_loadu_epi8(mask, x.as_ptr().cast()));
            _mm512_mask_storeu_epi8(y.as_mut_ptr().cast(), mask, sum);
        }
    }
}

/// Symbols copied one by one, each to a place of its own.
pub(crate) fn copy(block: &Block) -> Contender<'_> {
    let mut to = Aligned::zeroed(block.k, block.len);
    Contender::new("memcpy", block.bytes(), move || {
        for (i, symbol) in block.symbols().enumerate() {
            black_box(to.symbol_mut(i)).copy_from_slice(black_box(symbol));
        }
    })
}

/// A product of `rows` rows and `columns` symbols.
pub(crate) fn product(name: &'static str, columns: usize, rows: usize, len: usize) -> Contender<'static> {
    let block = Block::new(columns, len);
    let (x, mut y) = (Aligned::copy_of(&block.source, len), Aligned::zeroed(rows, len));
    let x_at: Vec<usize> = (0..columns).map(|i| x.offset(i)).collect();
    let y_at: Vec<usize> = (0..rows).map(|i| y.offset(i)).collect();
    // Coefficients other than 0: a term that is left out would count as one that was fast.
    let a: Vec<u8> = block.vectors.iter().cycle().map(|a| a | 1).take(rows * columns).collect();
    Contender::new(name, columns * rows * len, move || {
        let y = Symbols::new(black_box(y.bytes_mut()), &y_at, len);
        Kernel::best().product(<Gf256>::tables(), y, &a, Symbols::new(black_box(x.bytes()), &x_at, len));
    })
}

/// Rate that [`crate::table::Line::ceiling`] is a share of: the kernel's rate where nothing but itself limits it.
pub(crate) fn blocked(len: usize) -> Contender<'static> {
    product(BLOCKED, 64, 64, len)
}

pub(crate) const BLOCKED: &str = "blocked kernel";
