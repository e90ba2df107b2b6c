//! GFNI on 64-byte vectors: an affine instruction multiplies, a ternary one adds two products at once, masks do the tail.

#![allow(clippy::needless_range_loop, reason = "an index for each register, over several arrays")]

use core::arch::x86_64::*;

use crate::field::Tables;

const V: usize = 64;

/// A mask of the first `n` bytes, all of them from 64 on.
#[inline]
fn first(n: usize) -> __mmask64 {
    if n >= V { !0 } else { (1 << n) - 1 }
}

/// See [`plain::axpy`](super::plain::axpy).
///
/// # Safety
///
/// As there, and the machine has the instructions.
#[target_feature(enable = "gfni,avx512f,avx512bw")]
pub(super) unsafe fn axpy(tables: &Tables, y: *mut u8, a: u8, x: *const u8, len: usize) {
    let m = matrix(tables, a);
    let mut at = 0;
    // SAFETY: every access is below `len`, where the caller vouches for both; the tail's is masked to that.
    unsafe {
        while len - at >= 4 * V {
            for i in 0..4 {
                let (x, y) = (x.add(at + i * V), y.add(at + i * V));
                let product = _mm512_gf2p8affine_epi64_epi8::<0>(_mm512_loadu_si512(x.cast()), m);
                _mm512_storeu_si512(y.cast(), _mm512_xor_si512(_mm512_loadu_si512(y.cast()), product));
            }
            at += 4 * V;
        }
        while len - at >= V {
            let product = _mm512_gf2p8affine_epi64_epi8::<0>(_mm512_loadu_si512(x.add(at).cast()), m);
            let sum = _mm512_xor_si512(_mm512_loadu_si512(y.add(at).cast()), product);
            _mm512_storeu_si512(y.add(at).cast(), sum);
            at += V;
        }
        if at < len {
            let mask = first(len - at);
            let x = _mm512_maskz_loadu_epi8(mask, x.add(at).cast());
            let old = _mm512_maskz_loadu_epi8(mask, y.add(at).cast());
            let sum = _mm512_xor_si512(old, _mm512_gf2p8affine_epi64_epi8::<0>(x, m));
            _mm512_mask_storeu_epi8(y.add(at).cast(), mask, sum);
        }
    }
}

/// See [`plain::scale`](super::plain::scale).
///
/// # Safety
///
/// As there, and the machine has the instructions.
#[target_feature(enable = "gfni,avx512f,avx512bw")]
pub(super) unsafe fn scale(tables: &Tables, x: *mut u8, a: u8, len: usize) {
    let m = matrix(tables, a);
    let mut at = 0;
    while at < len {
        let mask = first(len - at);
        // SAFETY: masked to what is below `len`, for which the caller vouches.
        unsafe {
            let old = _mm512_maskz_loadu_epi8(mask, x.add(at).cast());
            let product = _mm512_gf2p8affine_epi64_epi8::<0>(old, m);
            _mm512_mask_storeu_epi8(x.add(at).cast(), mask, product);
        }
        at += V;
    }
}

/// See [`plain::tile`](super::plain::tile).
///
/// # Safety
///
/// As there, and the machine has the instructions.
#[target_feature(enable = "gfni,avx512f,avx512bw")]
pub(super) unsafe fn tile<const D: usize>(
    tables: &Tables,
    y: &[*mut u8; D],
    x: &[*const u8],
    a: &[[u8; D]],
    len: usize,
    overwrite: bool,
) {
    let mut at = 0;
    while at < len {
        let left = len - at;
        // SAFETY: as the caller promises; `left` bytes are left from `at` on.
        unsafe {
            at += match left {
                256.. => columns::<D, 4, false>(tables, y, x, a, at, left, overwrite),
                128.. => columns::<D, 2, false>(tables, y, x, a, at, left, overwrite),
                65.. => columns::<D, 2, true>(tables, y, x, a, at, left, overwrite),
                _ => columns::<D, 1, true>(tables, y, x, a, at, left, overwrite),
            };
        }
    }
}

/// W vectors of each destination from `at` on, in registers over all sources; gives how many bytes those are.
///
/// # Safety
///
/// As for [`tile`]; from `at` on there are W vectors or, with MASKED, `left` bytes.
#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
unsafe fn columns<const D: usize, const W: usize, const MASKED: bool>(
    tables: &Tables,
    y: &[*mut u8; D],
    x: &[*const u8],
    a: &[[u8; D]],
    at: usize,
    left: usize,
    overwrite: bool,
) -> usize {
    // Plain loops, not `array::from_fn`: that is compiled without the vector features, and would not be inlined.
    let mut sums = [[_mm512_setzero_si512(); W]; D];
    if !overwrite {
        for d in 0..D {
            // SAFETY: the caller vouches for these vectors, or for the bytes that are left.
            sums[d] = unsafe { load::<W, MASKED>(y[d].add(at), left) };
        }
    }

    let (mut pairs_x, mut pairs_a) = (x.chunks_exact(2), a.chunks_exact(2));
    for (x, a) in pairs_x.by_ref().zip(pairs_a.by_ref()) {
        // SAFETY: likewise.
        let (x0, x1) =
            unsafe { (load::<W, MASKED>(x[0].add(at), left), load::<W, MASKED>(x[1].add(at), left)) };
        for d in 0..D {
            let (m0, m1) = (matrix(tables, a[0][d]), matrix(tables, a[1][d]));
            for w in 0..W {
                let p0 = _mm512_gf2p8affine_epi64_epi8::<0>(x0[w], m0);
                let p1 = _mm512_gf2p8affine_epi64_epi8::<0>(x1[w], m1);
                sums[d][w] = _mm512_ternarylogic_epi64::<0x96>(sums[d][w], p0, p1);
            }
        }
    }
    if let ([x], [a]) = (pairs_x.remainder(), pairs_a.remainder()) {
        // SAFETY: likewise.
        let x = unsafe { load::<W, MASKED>(x.add(at), left) };
        for d in 0..D {
            let m = matrix(tables, a[d]);
            for w in 0..W {
                let product = _mm512_gf2p8affine_epi64_epi8::<0>(x[w], m);
                sums[d][w] = _mm512_xor_si512(sums[d][w], product);
            }
        }
    }

    for d in 0..D {
        for w in 0..W {
            // SAFETY: likewise.
            unsafe {
                let to = y[d].add(at).wrapping_add(w * V);
                if MASKED {
                    _mm512_mask_storeu_epi8(to.cast(), first(left.saturating_sub(w * V)), sums[d][w]);
                } else {
                    _mm512_storeu_si512(to.cast(), sums[d][w]);
                }
            }
        }
    }
    W * V
}

/// W vectors or, with MASKED, their first `left` bytes.
///
/// # Safety
///
/// They are valid for reads.
#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
unsafe fn load<const W: usize, const MASKED: bool>(from: *const u8, left: usize) -> [__m512i; W] {
    let mut vectors = [_mm512_setzero_si512(); W];
    for w in 0..W {
        // SAFETY: as the caller promises.
        vectors[w] = unsafe {
            let from = from.wrapping_add(w * V).cast();
            if MASKED {
                _mm512_maskz_loadu_epi8(first(left.saturating_sub(w * V)), from)
            } else {
                _mm512_loadu_si512(from.cast())
            }
        };
    }
    vectors
}

/// The bit matrix of a coefficient, for each eight bytes.
#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn matrix(tables: &Tables, a: u8) -> __m512i {
    _mm512_set1_epi64(tables.affine[a as usize] as i64)
}
