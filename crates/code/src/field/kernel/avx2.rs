//! AVX2: a byte shuffle in each half looks up the products of 32 nibbles at once.

use core::arch::x86_64::*;

super::vector::vector_kernel!(__m256i, "avx2", 32, 2, ssse3);

/// # Safety
///
/// `from` is valid for reads of a vector.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load(from: *const u8) -> __m256i {
    // SAFETY: as the caller promises.
    unsafe { _mm256_loadu_si256(from.cast()) }
}

/// # Safety
///
/// `to` is valid for writes of a vector.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store(to: *mut u8, vector: __m256i) {
    // SAFETY: as the caller promises.
    unsafe { _mm256_storeu_si256(to.cast(), vector) };
}

#[inline]
#[target_feature(enable = "avx2")]
fn add(a: __m256i, b: __m256i) -> __m256i {
    _mm256_xor_si256(a, b)
}

/// The products of the low and those of the high nibbles, in both halves.
#[inline]
#[target_feature(enable = "avx2")]
fn factor(tables: &Tables, a: u8) -> [__m256i; 2] {
    let table: *const __m128i = tables.nibble[a as usize].as_ptr().cast();
    // SAFETY: the table is 32 bytes.
    unsafe {
        [
            _mm256_broadcastsi128_si256(_mm_loadu_si128(table)),
            _mm256_broadcastsi128_si256(_mm_loadu_si128(table.add(1))),
        ]
    }
}

/// The low and the high nibble of each byte.
#[inline]
#[target_feature(enable = "avx2")]
fn split(x: __m256i) -> [__m256i; 2] {
    let low = _mm256_set1_epi8(15);
    [_mm256_and_si256(x, low), _mm256_and_si256(_mm256_srli_epi64::<4>(x), low)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn multiply(x: [__m256i; 2], factor: [__m256i; 2]) -> __m256i {
    _mm256_xor_si256(_mm256_shuffle_epi8(factor[0], x[0]), _mm256_shuffle_epi8(factor[1], x[1]))
}
