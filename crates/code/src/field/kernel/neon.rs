//! NEON: a table instruction looks up the products of 16 nibbles at once.

use core::arch::aarch64::*;

super::vector::vector_kernel!(uint8x16_t, "neon", 16, 2, plain);

/// # Safety
///
/// `from` is valid for reads of a vector.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn load(from: *const u8) -> uint8x16_t {
    // SAFETY: as the caller promises.
    unsafe { vld1q_u8(from) }
}

/// # Safety
///
/// `to` is valid for writes of a vector.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn store(to: *mut u8, vector: uint8x16_t) {
    // SAFETY: as the caller promises.
    unsafe { vst1q_u8(to, vector) };
}

#[inline]
#[target_feature(enable = "neon")]
fn add(a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
    veorq_u8(a, b)
}

/// The products of the low and those of the high nibbles.
#[inline]
#[target_feature(enable = "neon")]
fn factor(tables: &Tables, a: u8) -> [uint8x16_t; 2] {
    let table = tables.nibble[a as usize].as_ptr();
    // SAFETY: the table is 32 bytes.
    unsafe { [load(table), load(table.add(V))] }
}

/// The low and the high nibble of each byte.
#[inline]
#[target_feature(enable = "neon")]
fn split(x: uint8x16_t) -> [uint8x16_t; 2] {
    [vandq_u8(x, vdupq_n_u8(15)), vshrq_n_u8::<4>(x)]
}

#[inline]
#[target_feature(enable = "neon")]
fn multiply(x: [uint8x16_t; 2], factor: [uint8x16_t; 2]) -> uint8x16_t {
    veorq_u8(vqtbl1q_u8(factor[0], x[0]), vqtbl1q_u8(factor[1], x[1]))
}
