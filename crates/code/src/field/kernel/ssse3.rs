//! SSSE3: a byte shuffle looks up the products of 16 nibbles at once.

use core::arch::x86_64::*;

super::vector::vector_kernel!(__m128i, "ssse3", 16, 2, plain);

/// # Safety
///
/// `from` is valid for reads of a vector.
#[inline]
#[target_feature(enable = "ssse3")]
unsafe fn load(from: *const u8) -> __m128i {
    // SAFETY: as the caller promises.
    unsafe { _mm_loadu_si128(from.cast()) }
}

/// # Safety
///
/// `to` is valid for writes of a vector.
#[inline]
#[target_feature(enable = "ssse3")]
unsafe fn store(to: *mut u8, vector: __m128i) {
    // SAFETY: as the caller promises.
    unsafe { _mm_storeu_si128(to.cast(), vector) };
}

#[inline]
#[target_feature(enable = "ssse3")]
fn add(a: __m128i, b: __m128i) -> __m128i {
    _mm_xor_si128(a, b)
}

/// The products of the low and those of the high nibbles.
#[inline]
#[target_feature(enable = "ssse3")]
fn factor(tables: &Tables, a: u8) -> [__m128i; 2] {
    let table = tables.nibble[a as usize].as_ptr();
    // SAFETY: the table is 32 bytes.
    unsafe { [load(table), load(table.add(V))] }
}

/// The low and the high nibble of each byte.
#[inline]
#[target_feature(enable = "ssse3")]
fn split(x: __m128i) -> [__m128i; 2] {
    let low = _mm_set1_epi8(15);
    [_mm_and_si128(x, low), _mm_and_si128(_mm_srli_epi64::<4>(x), low)]
}

#[inline]
#[target_feature(enable = "ssse3")]
fn multiply(x: [__m128i; 2], factor: [__m128i; 2]) -> __m128i {
    _mm_xor_si128(_mm_shuffle_epi8(factor[0], x[0]), _mm_shuffle_epi8(factor[1], x[1]))
}
