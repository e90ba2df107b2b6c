//! The loops that kernels without masks share.
//!
//! Bytes beyond the last whole vector are done with one more vector that ends where the data ends. It overlaps the one
//! before; so it is computed first, from what was there before, and stored last, when the overlap holds the same bytes.
//! A byte at a time would take as long for the tail of 1,400 bytes as the vectors take for the rest. What is shorter
//! than a vector goes to the kernel of the next shorter ones: the coefficient vectors of a batch are of 16 bytes.

/// Writes a kernel's three functions, with these of the module in which it stands, all with the same target features:
/// `load`, `store`, `add`; `factor`, what a coefficient becomes; `split`, what a source becomes for all its
/// destinations; `multiply`, their product. `$shorter` is the kernel for what is shorter than a vector.
macro_rules! vector_kernel {
    ($vector:ty, $features:literal, $bytes:literal, $width:literal, $shorter:ident) => {
        use $crate::field::Tables;
        use $crate::field::kernel::$shorter as shorter;

        const V: usize = $bytes;

        /// See [`shorter::axpy`].
        ///
        /// # Safety
        ///
        /// As there, and the machine has the instructions.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn axpy(tables: &Tables, y: *mut u8, a: u8, x: *const u8, len: usize) {
            if len < V {
                // SAFETY: as the caller promises.
                return unsafe { shorter::axpy(tables, y, a, x, len) };
            }
            let factor = factor(tables, a);
            let (whole, tail) = (len - len % V, len - V);
            // SAFETY: every access is below `len`, where the caller vouches for both.
            unsafe {
                let last = add(load(y.add(tail)), multiply(split(load(x.add(tail))), factor));
                for at in (0..whole).step_by(V) {
                    let product = multiply(split(load(x.add(at))), factor);
                    store(y.add(at), add(load(y.add(at)), product));
                }
                store(y.add(tail), last);
            }
        }

        /// See [`shorter::scale`].
        ///
        /// # Safety
        ///
        /// As there, and the machine has the instructions.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn scale(tables: &Tables, x: *mut u8, a: u8, len: usize) {
            if len < V {
                // SAFETY: as the caller promises.
                return unsafe { shorter::scale(tables, x, a, len) };
            }
            let factor = factor(tables, a);
            let (whole, tail) = (len - len % V, len - V);
            // SAFETY: every access is below `len`, for which the caller vouches.
            unsafe {
                let last = multiply(split(load(x.add(tail))), factor);
                for at in (0..whole).step_by(V) {
                    store(x.add(at), multiply(split(load(x.add(at))), factor));
                }
                store(x.add(tail), last);
            }
        }

        /// See [`shorter::tile`].
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
            if len < V {
                // SAFETY: as the caller promises.
                return unsafe { shorter::tile(tables, y, x, a, len, overwrite) };
            }
            let (whole, tail) = (len - len % V, len - V);
            // SAFETY: the caller vouches for `len` bytes of each, and this goes no further.
            unsafe {
                let last =
                    if whole < len { Some(columns::<D, 1>(tables, y, x, a, tail, overwrite)) } else { None };
                let mut at = 0;
                while whole - at >= $width * V {
                    let sums = columns::<D, $width>(tables, y, x, a, at, overwrite);
                    put(y, at, &sums);
                    at += $width * V;
                }
                while at < whole {
                    let sums = columns::<D, 1>(tables, y, x, a, at, overwrite);
                    put(y, at, &sums);
                    at += V;
                }
                if let Some(last) = last {
                    put(y, tail, &last);
                }
            }
        }

        /// The new value of W vectors of each destination from `at` on, in registers over all sources.
        ///
        /// # Safety
        ///
        /// As for [`tile`]; from `at` on there are W vectors.
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn columns<const D: usize, const W: usize>(
            tables: &Tables,
            y: &[*mut u8; D],
            x: &[*const u8],
            a: &[[u8; D]],
            at: usize,
            overwrite: bool,
        ) -> [[$vector; W]; D] {
            // SAFETY: the caller vouches for these vectors.
            unsafe {
                // Plain loops, not `array::from_fn`: that is compiled without the vector features, and would not be
                // inlined.
                // Zero: what is overwritten may be uninitialised, so it is not read.
                let any = load(tables.nibble.as_ptr().cast());
                let mut sums = [[add(any, any); W]; D];
                if !overwrite {
                    for d in 0..D {
                        for w in 0..W {
                            sums[d][w] = load(y[d].add(at + w * V));
                        }
                    }
                }
                for (&source, a) in x.iter().zip(a) {
                    let mut x = [split(load(source.add(at))); W];
                    for w in 1..W {
                        x[w] = split(load(source.add(at + w * V)));
                    }
                    for d in 0..D {
                        let factor = factor(tables, a[d]);
                        for w in 0..W {
                            sums[d][w] = add(sums[d][w], multiply(x[w], factor));
                        }
                    }
                }
                sums
            }
        }

        /// Stores W vectors of each destination from `at` on.
        ///
        /// # Safety
        ///
        /// They are valid for writes.
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn put<const D: usize, const W: usize>(y: &[*mut u8; D], at: usize, sums: &[[$vector; W]; D]) {
            for d in 0..D {
                for w in 0..W {
                    // SAFETY: as the caller promises.
                    unsafe { store(y[d].add(at + w * V), sums[d][w]) };
                }
            }
        }
    };
}
pub(super) use vector_kernel;
