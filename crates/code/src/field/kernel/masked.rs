//! The loops that kernels of 64-byte vectors share, in which masks do the tail.

/// Writes a kernel's three functions, and `load`, with these of the module in which it stands, all with the same target
/// features: `factor`, what a coefficient becomes; `multiply`, the product of a vector and a factor; `add_product`, the
/// sum of a vector and such a product; `add_products`, which adds the terms of all sources to the sums of `columns`.
macro_rules! masked_kernel {
    ($features:literal) => {
        use core::arch::x86_64::*;

        use $crate::field::Tables;

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
        #[target_feature(enable = $features)]
        pub(super) unsafe fn axpy(tables: &Tables, y: *mut u8, a: u8, x: *const u8, len: usize) {
            let factor = factor(tables, a);
            let mut at = 0;
            // SAFETY: every access is below `len`, where the caller vouches for both; the tail's is masked to that.
            unsafe {
                while len - at >= 4 * V {
                    for i in 0..4 {
                        let (x, y) = (x.add(at + i * V), y.add(at + i * V));
                        let (x, old) = (_mm512_loadu_si512(x.cast()), _mm512_loadu_si512(y.cast()));
                        _mm512_storeu_si512(y.cast(), add_product(old, x, factor));
                    }
                    at += 4 * V;
                }
                while len - at >= V {
                    let (x, y) = (x.add(at), y.add(at));
                    let (x, old) = (_mm512_loadu_si512(x.cast()), _mm512_loadu_si512(y.cast()));
                    _mm512_storeu_si512(y.cast(), add_product(old, x, factor));
                    at += V;
                }
                if at < len {
                    let mask = first(len - at);
                    let x = _mm512_maskz_loadu_epi8(mask, x.add(at).cast());
                    let old = _mm512_maskz_loadu_epi8(mask, y.add(at).cast());
                    _mm512_mask_storeu_epi8(y.add(at).cast(), mask, add_product(old, x, factor));
                }
            }
        }

        /// See [`plain::scale`](super::plain::scale).
        ///
        /// # Safety
        ///
        /// As there, and the machine has the instructions.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn scale(tables: &Tables, x: *mut u8, a: u8, len: usize) {
            let factor = factor(tables, a);
            let mut at = 0;
            while at < len {
                let mask = first(len - at);
                // SAFETY: masked to what is below `len`, for which the caller vouches.
                unsafe {
                    let old = _mm512_maskz_loadu_epi8(mask, x.add(at).cast());
                    _mm512_mask_storeu_epi8(x.add(at).cast(), mask, multiply(old, factor));
                }
                at += V;
            }
        }

        /// See [`plain::tile`](super::plain::tile).
        ///
        /// # Safety
        ///
        /// As there, and the machine has the instructions.
        #[target_feature(enable = $features)]
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
                // The sums of eight destinations leave registers for two vectors of each.
                // SAFETY: as the caller promises; `left` bytes are left from `at` on.
                unsafe {
                    at += match left {
                        256.. if D <= 4 => columns::<D, 4, false>(tables, y, x, a, at, left, overwrite),
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
        #[target_feature(enable = $features)]
        unsafe fn columns<const D: usize, const W: usize, const MASKED: bool>(
            tables: &Tables,
            y: &[*mut u8; D],
            x: &[*const u8],
            a: &[[u8; D]],
            at: usize,
            left: usize,
            overwrite: bool,
        ) -> usize {
            // Plain loops, not `array::from_fn`: that is compiled without the vector features, and would not be
            // inlined.
            let mut sums = [[_mm512_setzero_si512(); W]; D];
            if !overwrite {
                for d in 0..D {
                    // SAFETY: the caller vouches for these vectors, or for the bytes that are left.
                    sums[d] = unsafe { load::<W, MASKED>(y[d].add(at), left) };
                }
            }
            // SAFETY: likewise.
            unsafe { add_products::<D, W, MASKED>(tables, &mut sums, x, a, at, left) };
            for d in 0..D {
                for w in 0..W {
                    // SAFETY: likewise.
                    unsafe {
                        let to = y[d].add(at).wrapping_add(w * V);
                        if MASKED {
                            let mask = first(left.saturating_sub(w * V));
                            _mm512_mask_storeu_epi8(to.cast(), mask, sums[d][w]);
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
        #[target_feature(enable = $features)]
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
    };
}
pub(super) use masked_kernel;
