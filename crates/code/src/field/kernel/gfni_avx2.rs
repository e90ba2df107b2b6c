//! GFNI on 32-byte vectors: one affine instruction multiplies.

use core::arch::x86_64::*;

super::vector::vector_kernel!(__m256i, "gfni,avx2", 32, 2, ssse3);

/// # Safety
///
/// `from` is valid for reads of a vector.
#[inline]
#[target_feature(enable = "gfni,avx2")]
unsafe fn load(from: *const u8) -> __m256i {
    // SAFETY: as the caller promises.
    unsafe { _mm256_loadu_si256(from.cast()) }
}

/// # Safety
///
/// `to` is valid for writes of a vector.
#[inline]
#[target_feature(enable = "gfni,avx2")]
unsafe fn store(to: *mut u8, vector: __m256i) {
    // SAFETY: as the caller promises.
    unsafe { _mm256_storeu_si256(to.cast(), vector) };
}

#[inline]
#[target_feature(enable = "gfni,avx2")]
fn add(a: __m256i, b: __m256i) -> __m256i {
    _mm256_xor_si256(a, b)
}

/// The bit matrix, for each eight bytes.
#[inline]
#[target_feature(enable = "gfni,avx2")]
fn factor(tables: &Tables, a: u8) -> __m256i {
    _mm256_set1_epi64x(tables.affine[a as usize] as i64)
}

#[inline]
#[target_feature(enable = "gfni,avx2")]
fn split(x: __m256i) -> __m256i {
    x
}

#[inline]
#[target_feature(enable = "gfni,avx2")]
fn multiply(x: __m256i, factor: __m256i) -> __m256i {
    _mm256_gf2p8affine_epi64_epi8::<0>(x, factor)
}
