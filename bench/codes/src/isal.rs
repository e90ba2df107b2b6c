//! Intel's ISA-L as Debian packages it: the three of its functions that are measured.

use core::ffi::{c_int, c_uchar};

/// Version that pkg-config reports.
pub(crate) const VERSION: &str = env!("ISAL_VERSION");

mod c {
    use super::{c_int, c_uchar};

    unsafe extern "C" {
        pub(super) fn ec_init_tables(k: c_int, rows: c_int, a: *const c_uchar, tables: *mut c_uchar);
        pub(super) fn ec_encode_data(
            len: c_int,
            k: c_int,
            rows: c_int,
            tables: *const c_uchar,
            data: *const *const c_uchar,
            coding: *const *mut c_uchar,
        );
        pub(super) fn gf_vect_mad(
            len: c_int,
            vec: c_int,
            vec_i: c_int,
            tables: *const c_uchar,
            src: *const c_uchar,
            dest: *mut c_uchar,
        );
    }
}

/// The tables of `rows` rows of coefficients for `k` symbols.
pub(crate) struct Tables {
    tables: Vec<u8>,
    k: usize,
    rows: usize,
}

impl Tables {
    pub(crate) fn new(coefficients: &[u8], k: usize) -> Self {
        let rows = coefficients.len() / k;
        let mut tables = vec![0; 32 * k * rows];
        // SAFETY: `k * rows` coefficients, and 32 bytes for each.
        unsafe { c::ec_init_tables(k as c_int, rows as c_int, coefficients.as_ptr(), tables.as_mut_ptr()) };
        Self { tables, k, rows }
    }

    /// All rows' combinations of `data`, into `coding`.
    pub(crate) fn encode(&self, data: &[&[u8]], coding: &mut [&mut [u8]]) {
        assert!(data.len() == self.k && coding.len() == self.rows);
        let len = coding[0].len();
        assert!(data.iter().all(|symbol| symbol.len() == len) && coding.iter().all(|row| row.len() == len));
        let data: Vec<*const u8> = data.iter().map(|symbol| symbol.as_ptr()).collect();
        let coding: Vec<*mut u8> = coding.iter_mut().map(|row| row.as_mut_ptr()).collect();
        // SAFETY: the tables are of k symbols and these rows; all are `len` bytes long, and the rows are nobody else's.
        unsafe {
            c::ec_encode_data(
                len as c_int,
                self.k as c_int,
                self.rows as c_int,
                self.tables.as_ptr(),
                data.as_ptr(),
                coding.as_ptr(),
            );
        }
    }

    /// `y += a x`, where a is the first coefficient.
    pub(crate) fn axpy(&self, y: &mut [u8], x: &[u8]) {
        // It does lengths of no less than 32 bytes.
        assert!(y.len() == x.len() && y.len() >= 32);
        // SAFETY: one coefficient's tables, and buffers of this length that do not overlap.
        unsafe { c::gf_vect_mad(y.len() as c_int, 1, 0, self.tables.as_ptr(), x.as_ptr(), y.as_mut_ptr()) };
    }
}
