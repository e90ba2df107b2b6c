//! AVX-512 without GFNI, as Skylake to Cascade Lake have it: a byte shuffle in each quarter looks up the products of 64
//! nibbles at once, a ternary instruction adds those of both nibbles, masks do the tail.
//!
//! A core has one port for shuffles of this width, so a term costs two cycles for 64 bytes, whatever else there is to
//! do beside: splitting a source is three instructions, shared by its destinations. The sums of eight destinations, the
//! nibbles of two vectors of a source, a pair of tables and the mask are 23 of the 32 registers; of four destinations
//! and four vectors, 27.

#![allow(clippy::needless_range_loop, reason = "an index for each register, over several arrays")]

super::masked::masked_kernel!("avx512f,avx512bw");

/// The products of the low and those of the high nibbles, in each quarter. Loaded as they are: to load a quarter and
/// broadcast it takes a core of AMD's a cycle of its shuffle ports (measured on Zen 4: 93 GB/s of terms, against 111).
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn factor(tables: &Tables, a: u8) -> [__m512i; 2] {
    let [low, high] = &tables.repeated[a as usize].0;
    // SAFETY: each is 64 bytes.
    unsafe { [_mm512_loadu_si512(low.as_ptr().cast()), _mm512_loadu_si512(high.as_ptr().cast())] }
}

/// The low and the high nibble of each byte.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn split(x: __m512i) -> [__m512i; 2] {
    let low = _mm512_set1_epi8(15);
    [_mm512_and_si512(x, low), _mm512_and_si512(_mm512_srli_epi64::<4>(x), low)]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn multiply(x: __m512i, factor: [__m512i; 2]) -> __m512i {
    let [low, high] = split(x);
    _mm512_xor_si512(_mm512_shuffle_epi8(factor[0], low), _mm512_shuffle_epi8(factor[1], high))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn add_product(sum: __m512i, x: __m512i, factor: [__m512i; 2]) -> __m512i {
    add_split(sum, split(x), factor)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn add_split(sum: __m512i, [low, high]: [__m512i; 2], factor: [__m512i; 2]) -> __m512i {
    let (low, high) = (_mm512_shuffle_epi8(factor[0], low), _mm512_shuffle_epi8(factor[1], high));
    _mm512_ternarylogic_epi64::<0x96>(sum, low, high)
}

/// The terms of one source after the other, each split once for all destinations.
///
/// # Safety
///
/// As for [`columns`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn add_products<const D: usize, const W: usize, const MASKED: bool>(
    tables: &Tables,
    sums: &mut [[__m512i; W]; D],
    x: &[*const u8],
    a: &[[u8; D]],
    at: usize,
    left: usize,
) {
    for (x, a) in x.iter().zip(a) {
        // SAFETY: the caller vouches for these vectors, or for the bytes that are left.
        let x = unsafe { load::<W, MASKED>(x.add(at), left) };
        let mut nibbles = [[_mm512_setzero_si512(); 2]; W];
        for w in 0..W {
            nibbles[w] = split(x[w]);
        }
        for d in 0..D {
            let factor = factor(tables, a[d]);
            for w in 0..W {
                sums[d][w] = add_split(sums[d][w], nibbles[w], factor);
            }
        }
    }
}
