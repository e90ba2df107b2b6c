//! Finite fields: GF(2), GF(2^4) and GF(2^8), and the arithmetic of whole symbols.
//!
//! A *symbol* is a slice of bytes. The functions of this module work in the crate's default field,
//! [`Gf256`] with the polynomial 0x11D (RFC 9426, RFC 5510): [`mul`], [`inv`] and the like on single elements,
//! [`axpy`], [`scale`], [`axpy_rows`] and [`product`] on symbols. Other fields go through the [`Field`] trait.
//!
//! [`Kernel`] is the set of instructions that does the work, chosen once at run time.
//!
//! # Which processor uses which kernel
//!
//! | kernel | processors | a product |
//! |---|---|---|
//! | GFNI + AVX-512 | Xeons from Ice Lake on, Zen 4 and later | an affine instruction for 64 bytes |
//! | GFNI + AVX2 | Alder Lake and what followed without AVX-512 | an affine instruction for 32 bytes |
//! | AVX-512 | Xeons from Skylake to Cascade Lake | two shuffles for 64 bytes |
//! | AVX2 | Haswell and later, Zen 1 to 3 | two shuffles for 32 bytes |
//! | SSSE3 | Core 2 and later | two shuffles for 16 bytes |
//! | NEON | all 64-bit Arm | two table lookups for 16 bytes |
//! | plain | all others: 32-bit Arm, WebAssembly; and under Miri | two table lookups for a byte |
//!
//! [`Kernel::prefer`] puts another one in the place of the best, so that a machine can measure and test them all.
//!
//! # One table for every field
//!
//! Multiplying by a constant is linear over GF(2), so for every field here it is an 8 x 8 bit matrix on a byte (two
//! elements of GF(2^4), eight of GF(2)). The kernels know only those maps, as [`Tables`]: the matrices for
//! `gf2p8affineqb`, which unlike `gf2p8mulb` is not bound to one polynomial, and nibble tables for byte shuffles.

mod element;
mod kernel;
mod tables;

pub use element::{Field, Gf2, Gf16, Gf256};
pub use kernel::{Kernel, Symbols};
pub use tables::Tables;

/// The product of two elements of GF(2^8).
#[inline]
pub fn mul(a: u8, b: u8) -> u8 {
    <Gf256>::mul(a, b)
}

/// The inverse of `a`; that of 0 is given as 0.
#[inline]
pub fn inv(a: u8) -> u8 {
    <Gf256>::inv(a)
}

/// `a / b`; division by 0 gives 0.
#[inline]
pub fn div(a: u8, b: u8) -> u8 {
    <Gf256>::mul(a, <Gf256>::inv(b))
}

/// `a` to the power of `n`; `pow(0, 0)` is 1.
#[inline]
pub fn pow(a: u8, n: u32) -> u8 {
    <Gf256>::pow(a, n)
}

/// `y += a x`, over as many bytes as the shorter of the two has.
#[inline]
pub fn axpy(y: &mut [u8], a: u8, x: &[u8]) {
    <Gf256>::axpy(y, a, x);
}

/// `x *= a`.
#[inline]
pub fn scale(x: &mut [u8], a: u8) {
    <Gf256>::scale(x, a);
}

/// `y += x`, over as many bytes as the shorter of the two has.
#[inline]
pub fn xor(y: &mut [u8], x: &[u8]) {
    axpy(y, 1, x);
}

/// `y += sum of coefficients[i] * rows[i]`, with `y` kept in registers over all rows.
///
/// Over as many terms as the shorter of `coefficients` and `rows` has. Each row must be as long as `y`.
///
/// # Panics
///
/// If a row is shorter than `y`.
#[inline]
pub fn axpy_rows(y: &mut [u8], coefficients: &[u8], rows: &[&[u8]]) {
    <Gf256>::axpy_rows(y, coefficients, rows);
}

/// `Y += A X` for rows of equal length that lie in two buffers: see [`Symbols`].
///
/// `coefficients` is A, row by row: as many rows as `y` has and as many columns as `x` has.
///
/// # Panics
///
/// If A is not of that size, or the rows of `y` and `x` differ in length.
#[inline]
pub fn product(y: Symbols<&mut [u8]>, coefficients: &[u8], x: Symbols<&[u8]>) {
    <Gf256>::product(y, coefficients, x);
}

/// `Y = A X`: as [`product`], except that what `y` held is overwritten, without being read.
///
/// # Panics
///
/// As [`product`] does.
#[inline]
pub fn product_into(y: Symbols<&mut [u8]>, coefficients: &[u8], x: Symbols<&[u8]>) {
    <Gf256>::product_into(y, coefficients, x);
}
