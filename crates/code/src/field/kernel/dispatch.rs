//! The operations on symbols: checked here, once, so that the kernels need not check.

use core::mem::MaybeUninit;

#[cfg(target_arch = "aarch64")]
use super::neon;
use super::{Kernel, Set, plain};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512, gfni_avx2, gfni_avx512, ssse3};
use crate::field::Tables;

/// Symbols of one length that lie in one buffer.
///
/// The symbols of a [`product`](crate::field::product)'s result must not overlap one another, or what they hold is
/// unspecified.
#[derive(Debug)]
pub struct Symbols<'a, B> {
    bytes: B,
    places: Places<'a>,
    len: usize,
}

/// The offsets at which symbols begin.
#[derive(Copy, Clone, Debug)]
enum Places<'a> {
    Listed(&'a [usize]),
    Spaced { first: usize, stride: usize, count: usize },
}

impl<'a, B: AsRef<[u8]>> Symbols<'a, B> {
    /// The symbols of `len` bytes at the offsets `at` of `bytes`.
    ///
    /// # Panics
    ///
    /// If one of them reaches past the end.
    pub fn new(bytes: B, at: &'a [usize], len: usize) -> Self {
        let room = bytes.as_ref().len();
        assert!(at.iter().all(|&at| at <= room && len <= room - at), "a symbol ends within its buffer");
        Self { bytes, places: Places::Listed(at), len }
    }

    /// `count` symbols of `len` bytes, of which the first begins at `first` and each other one `stride` bytes after the
    /// one before.
    ///
    /// # Panics
    ///
    /// If one of them reaches past the end.
    #[inline]
    pub fn spaced(bytes: B, first: usize, stride: usize, count: usize, len: usize) -> Self {
        let end = count
            .checked_sub(1)
            .map_or(Some(0), |gaps| gaps.checked_mul(stride)?.checked_add(first)?.checked_add(len));
        let fits = end.is_some_and(|end| end <= bytes.as_ref().len());
        assert!(fits, "a symbol ends within its buffer");
        Self { bytes, places: Places::Spaced { first, stride, count }, len }
    }
}

impl Places<'_> {
    #[inline]
    fn count(&self) -> usize {
        match *self {
            Self::Listed(at) => at.len(),
            Self::Spaced { count, .. } => count,
        }
    }

    #[inline]
    fn at(&self, i: usize) -> usize {
        match *self {
            Self::Listed(at) => at[i],
            Self::Spaced { first, stride, .. } => first + i * stride,
        }
    }
}

/// The rows of a product's result: memory that is valid for writes, and for reads too unless the product overwrites it.
struct Destinations<'a> {
    base: *mut u8,
    places: Places<'a>,
    len: usize,
}

impl<'a> Destinations<'a> {
    #[inline]
    fn of(y: Symbols<'a, &mut [u8]>) -> Self {
        Self { base: y.bytes.as_mut_ptr(), places: y.places, len: y.len }
    }
}

/// Calls the function of that name of the kernel's module.
macro_rules! on {
    ($kernel:expr, $($call:tt)*) => {
        // SAFETY: there is a `Kernel` only of what the machine has, so the instructions exist; the callers below see to
        // it that every pointer is valid for the length given, and no destination is also a source.
        unsafe {
            match $kernel.0 {
                Set::Plain => plain::$($call)*,
                #[cfg(target_arch = "x86_64")]
                Set::Ssse3 => ssse3::$($call)*,
                #[cfg(target_arch = "x86_64")]
                Set::Avx2 => avx2::$($call)*,
                #[cfg(target_arch = "x86_64")]
                Set::Avx512 => avx512::$($call)*,
                #[cfg(target_arch = "x86_64")]
                Set::GfniAvx2 => gfni_avx2::$($call)*,
                #[cfg(target_arch = "x86_64")]
                Set::GfniAvx512 => gfni_avx512::$($call)*,
                #[cfg(target_arch = "aarch64")]
                Set::Neon => neon::$($call)*,
            }
        }
    };
}

impl Kernel {
    /// `y += a x`, over as many bytes as the shorter of the two has.
    #[inline]
    pub fn axpy(self, tables: &Tables, y: &mut [u8], a: u8, x: &[u8]) {
        let len = y.len().min(x.len());
        on!(self, axpy(tables, y.as_mut_ptr(), a, x.as_ptr(), len));
    }

    /// `x *= a`.
    #[inline]
    pub fn scale(self, tables: &Tables, x: &mut [u8], a: u8) {
        on!(self, scale(tables, x.as_mut_ptr(), a, x.len()));
    }

    /// See [`axpy_rows`](crate::field::axpy_rows).
    pub fn axpy_rows(self, tables: &Tables, y: &mut [u8], coefficients: &[u8], rows: &[&[u8]]) {
        let (len, y) = (y.len(), [y.as_mut_ptr()]);
        let mut terms = Terms::new(false);
        for (&coefficient, row) in coefficients.iter().zip(rows) {
            assert!(row.len() >= len, "a row is as long as the destination");
            if terms.push(row.as_ptr(), [coefficient]) {
                terms.add_to(self, tables, y, len);
            }
        }
        terms.add_to(self, tables, y, len);
    }

    /// See [`product`](crate::field::product).
    #[inline]
    pub fn product(self, tables: &Tables, y: Symbols<'_, &mut [u8]>, a: &[u8], x: Symbols<'_, &[u8]>) {
        self.all_rows(tables, &Destinations::of(y), a, &x, false);
    }

    /// See [`product_into`](crate::field::product_into).
    #[inline]
    pub fn product_into(self, tables: &Tables, y: Symbols<'_, &mut [u8]>, a: &[u8], x: Symbols<'_, &[u8]>) {
        self.all_rows(tables, &Destinations::of(y), a, &x, true);
    }

    /// Appends `A X` to the buffer in which the symbols of X lie, those of `len` bytes at the offsets `x`: `count`
    /// symbols more, each with zeros after it up to `stride` bytes. Memory that was reserved for them is not zeroed
    /// beforehand.
    ///
    /// # Panics
    ///
    /// If a symbol of X reaches past the end, A is not of `count` rows and as many columns as X has, or `stride` is
    /// less than `len`.
    pub(crate) fn append_product(
        self,
        tables: &Tables,
        bytes: &mut Vec<u8>,
        (count, len, stride): (usize, usize, usize),
        a: &[u8],
        x: &[usize],
    ) {
        assert!(len <= stride, "a symbol ends before the next one");
        let (first, more) = (bytes.len(), count.checked_mul(stride).expect("a size that fits"));
        bytes.reserve(more);
        let base = bytes.as_mut_ptr();
        // SAFETY: `first` bytes are initialised, and nothing writes to them.
        let initialised = unsafe { core::slice::from_raw_parts(base, first) };
        let y = Destinations { base, places: Places::Spaced { first, stride, count }, len };
        self.all_rows(tables, &y, a, &Symbols::new(initialised, x, len), true);
        for symbol in 0..count {
            // SAFETY: room for `count` strides is reserved after the first bytes, and `len` is not more than a stride.
            unsafe { base.add(first + symbol * stride + len).write_bytes(0, stride - len) };
        }
        // SAFETY: of each stride, the product has written to the first `len` bytes, and the loop to the others.
        unsafe { bytes.set_len(first + more) };
    }

    #[inline(never)]
    fn all_rows(
        self,
        tables: &Tables,
        y: &Destinations<'_>,
        a: &[u8],
        x: &Symbols<'_, &[u8]>,
        overwrite: bool,
    ) {
        let (rows, columns) = (y.places.count(), x.places.count());
        assert_eq!(a.len(), rows * columns, "a coefficient for each pair");
        assert!(columns == 0 || y.len == x.len, "symbols of one length");
        if columns == 0 && !overwrite {
            return;
        }
        let mut row = 0;
        while row < rows {
            let matrix = &a[row * columns..];
            row += match rows - row {
                1 => self.rows::<1>(tables, y, row, matrix, x, overwrite),
                2 => self.rows::<2>(tables, y, row, matrix, x, overwrite),
                3 => self.rows::<3>(tables, y, row, matrix, x, overwrite),
                // The more destinations, the less often a source is split.
                #[cfg(target_arch = "x86_64")]
                8.. if self.0 == Set::Avx512 => self.rows::<8>(tables, y, row, matrix, x, overwrite),
                _ => self.rows::<4>(tables, y, row, matrix, x, overwrite),
            };
        }
    }

    /// D rows of the product, from `row` on, of which `matrix` begins with the coefficients; gives D.
    #[inline(always)]
    fn rows<const D: usize>(
        self,
        tables: &Tables,
        y: &Destinations<'_>,
        row: usize,
        matrix: &[u8],
        x: &Symbols<'_, &[u8]>,
        overwrite: bool,
    ) -> usize {
        let (base, len) = (y.base, y.len);
        let columns = x.places.count();
        let destinations: [*mut u8; D] = core::array::from_fn(|d| base.wrapping_add(y.places.at(row + d)));
        let mut terms = Terms::new(overwrite);
        let mut column = 0;
        while column < columns {
            let count = SOURCES.min(columns - column);
            let lines = core::array::from_fn(|d| &matrix[d * columns + column..][..count]);
            terms.fill(x, column, lines);
            terms.add_to(self, tables, destinations, len);
            column += count;
        }
        terms.add_to(self, tables, destinations, len);
        D
    }
}

/// Sources that wait for the kernel, with their coefficients for each of D destinations; on the stack, and only the
/// first `count` initialised, because a product of short rows would spend its time on the rest.
struct Terms<const D: usize> {
    sources: [MaybeUninit<*const u8>; SOURCES],
    coefficients: [MaybeUninit<[u8; D]>; SOURCES],
    count: usize,
    /// Whether the destinations are still to be overwritten.
    overwrite: bool,
}

/// Maximum number of sources that a kernel is given at a time. The destinations are loaded and stored once for each
/// such set.
const SOURCES: usize = 64;

impl<const D: usize> Terms<D> {
    #[inline]
    fn new(overwrite: bool) -> Self {
        Self {
            sources: [MaybeUninit::uninit(); SOURCES],
            coefficients: [MaybeUninit::uninit(); SOURCES],
            count: 0,
            overwrite,
        }
    }

    /// Takes the terms of up to [`SOURCES`] sources, from the one of this number on, except those that are 0.
    #[inline(always)]
    fn fill(&mut self, x: &Symbols<'_, &[u8]>, first: usize, lines: [&[u8]; D]) {
        let base = x.bytes.as_ptr();
        match x.places {
            Places::Listed(at) => self.fill_from(at[first..].iter().map(|&at| base.wrapping_add(at)), lines),
            Places::Spaced { first: start, stride, .. } => {
                let start = base.wrapping_add(start + first * stride);
                self.fill_from((0..SOURCES).map(|i| start.wrapping_add(i * stride)), lines);
            }
        }
    }

    /// As [`fill`](Self::fill), for at least as many sources as there are coefficients in a line.
    #[inline(always)]
    fn fill_from(&mut self, sources: impl Iterator<Item = *const u8>, lines: [&[u8]; D]) {
        let terms = lines[0].len();
        let lines = lines.map(|line| &line[..terms]);
        // Not in `self`: there each term would wait for the store of the one before.
        let mut count = self.count;
        for (i, source) in (0..terms).zip(sources) {
            self.sources[count].write(source);
            // SAFETY: every line is `terms` long.
            let coefficients: [u8; D] = core::array::from_fn(|d| unsafe { *lines[d].get_unchecked(i) });
            self.coefficients[count].write(coefficients);
            count += usize::from(coefficients != [0; D]);
        }
        self.count = count;
    }

    /// Takes a term, unless it is 0; says whether there is no room for more.
    #[inline]
    fn push(&mut self, source: *const u8, coefficients: [u8; D]) -> bool {
        if coefficients != [0; D] {
            self.sources[self.count].write(source);
            self.coefficients[self.count].write(coefficients);
            self.count += 1;
        }
        self.count == SOURCES
    }

    /// Adds the terms that wait to the destinations.
    #[inline(always)]
    fn add_to(&mut self, kernel: Kernel, tables: &Tables, destinations: [*mut u8; D], len: usize) {
        let (sources, coefficients) = (&self.sources[..self.count], &self.coefficients[..self.count]);
        // SAFETY: `push` has written the first `count` of each.
        let (sources, coefficients) = unsafe { (sources.assume_init_ref(), coefficients.assume_init_ref()) };
        if self.count > 0 || self.overwrite {
            on!(kernel, tile(tables, &destinations, sources, coefficients, len, self.overwrite));
        }
        self.count = 0;
        self.overwrite = false;
    }
}
