//! Plain Rust: nibble tables a byte at a time, except that coefficients 0 and 1 need none.
//!
//! It is what the other kernels are held against, and does the last bytes of those that cannot mask.

use crate::field::Tables;

/// `y[..len] += a x[..len]`.
///
/// # Safety
///
/// `y` is valid for reads and writes of `len` bytes, `x` for reads, and they do not overlap.
pub(super) unsafe fn axpy(tables: &Tables, y: *mut u8, a: u8, x: *const u8, len: usize) {
    // SAFETY: as the caller promises.
    let (y, x) = unsafe { (core::slice::from_raw_parts_mut(y, len), core::slice::from_raw_parts(x, len)) };
    if tables.affine[a as usize] == 0 {
        return;
    }
    if tables.affine[a as usize] == tables.affine[1] {
        for (y, x) in y.iter_mut().zip(x) {
            *y ^= x;
        }
        return;
    }
    for (y, &x) in y.iter_mut().zip(x) {
        *y ^= tables.byte(a, x);
    }
}

/// `x[..len] *= a`.
///
/// # Safety
///
/// `x` is valid for reads and writes of `len` bytes.
pub(super) unsafe fn scale(tables: &Tables, x: *mut u8, a: u8, len: usize) {
    // SAFETY: as the caller promises.
    for x in unsafe { core::slice::from_raw_parts_mut(x, len) } {
        *x = tables.byte(a, *x);
    }
}

/// `y[d][..len] += sum of a[i][d] x[i][..len]` for each destination d; with `overwrite`, `=` in place of `+=`.
///
/// # Safety
///
/// Every `y` is valid for writes of `len` bytes, and for reads unless `overwrite`; every `x` for reads; there are as
/// many `a` as `x`, and no `y` overlaps an `x`.
pub(super) unsafe fn tile<const D: usize>(
    tables: &Tables,
    y: &[*mut u8; D],
    x: &[*const u8],
    a: &[[u8; D]],
    len: usize,
    overwrite: bool,
) {
    if overwrite {
        for &y in y {
            // SAFETY: as the caller promises.
            unsafe { y.write_bytes(0, len) };
        }
    }
    for (&x, a) in x.iter().zip(a) {
        for (&y, &a) in y.iter().zip(a) {
            // SAFETY: as the caller promises.
            unsafe { axpy(tables, y, a, x, len) };
        }
    }
}
