//! GFNI on 64-byte vectors: an affine instruction multiplies, a ternary one adds two products at once, masks do the
//! tail.

#![allow(clippy::needless_range_loop, reason = "an index for each register, over several arrays")]

super::masked::masked_kernel!("gfni,avx512f,avx512bw");

/// The bit matrix of a coefficient, for each eight bytes.
#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn factor(tables: &Tables, a: u8) -> __m512i {
    _mm512_set1_epi64(tables.affine[a as usize] as i64)
}

#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn multiply(x: __m512i, factor: __m512i) -> __m512i {
    _mm512_gf2p8affine_epi64_epi8::<0>(x, factor)
}

#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
fn add_product(sum: __m512i, x: __m512i, factor: __m512i) -> __m512i {
    _mm512_xor_si512(sum, multiply(x, factor))
}

/// The terms of two sources at a time.
///
/// # Safety
///
/// As for [`columns`].
#[inline]
#[target_feature(enable = "gfni,avx512f,avx512bw")]
unsafe fn add_products<const D: usize, const W: usize, const MASKED: bool>(
    tables: &Tables,
    sums: &mut [[__m512i; W]; D],
    x: &[*const u8],
    a: &[[u8; D]],
    at: usize,
    left: usize,
) {
    let (mut pairs_x, mut pairs_a) = (x.chunks_exact(2), a.chunks_exact(2));
    for (x, a) in pairs_x.by_ref().zip(pairs_a.by_ref()) {
        // SAFETY: the caller vouches for these vectors, or for the bytes that are left.
        let (x0, x1) =
            unsafe { (load::<W, MASKED>(x[0].add(at), left), load::<W, MASKED>(x[1].add(at), left)) };
        for d in 0..D {
            let (m0, m1) = (factor(tables, a[0][d]), factor(tables, a[1][d]));
            for w in 0..W {
                let (p0, p1) = (multiply(x0[w], m0), multiply(x1[w], m1));
                sums[d][w] = _mm512_ternarylogic_epi64::<0x96>(sums[d][w], p0, p1);
            }
        }
    }
    if let ([x], [a]) = (pairs_x.remainder(), pairs_a.remainder()) {
        // SAFETY: likewise.
        let x = unsafe { load::<W, MASKED>(x.add(at), left) };
        for d in 0..D {
            let m = factor(tables, a[d]);
            for w in 0..W {
                sums[d][w] = add_product(sums[d][w], x[w], m);
            }
        }
    }
}
