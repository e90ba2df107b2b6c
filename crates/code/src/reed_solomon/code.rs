//! The generator matrix, and parity.

use core::fmt;

use super::Decoder;
use crate::field::{axpy, axpy_rows, div, inv, mul, pow, scale};

/// The points of the Vandermonde matrix.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Points {
    /// 0, 1, α, α², ... as in Rizzo's code, and so in libnorm and OpenPGM.
    #[default]
    Rizzo,
    /// 1, α, α², ... as RFC 5510, section 8.2 says.
    Powers,
}

/// A systematic code for k source and n parity symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    source: usize,
    parity: usize,
    /// n rows of k coefficients.
    matrix: Vec<u8>,
}

impl Code {
    /// The maximum number of symbols, source and parity together (RFC 5510, section 8.1: 2^m - 1).
    pub const MAX_SYMBOLS: usize = 255;

    /// The code of the real NORM and PGM for `source` and `parity` symbols.
    ///
    /// # Errors
    ///
    /// [`Error::Size`] unless there is a source symbol and they are at most [`MAX_SYMBOLS`](Self::MAX_SYMBOLS).
    pub fn new(source: usize, parity: usize) -> Result<Self, Error> {
        Self::with_points(source, parity, Points::Rizzo)
    }

    /// The code with these points.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn with_points(source: usize, parity: usize, points: Points) -> Result<Self, Error> {
        let fits = source <= Self::MAX_SYMBOLS && parity <= Self::MAX_SYMBOLS - source;
        if source == 0 || !fits {
            return Err(Error::Size { source, parity });
        }
        let point = |row: usize| match (points, row) {
            (Points::Rizzo, 0) => 0,
            (Points::Rizzo, row) => pow(2, row as u32 - 1),
            (Points::Powers, row) => pow(2, row as u32),
        };
        let points: Vec<u8> = (0..source + parity).map(point).collect();
        Ok(Self { source, parity, matrix: lagrange(&points, source) })
    }

    /// The number of source symbols, k.
    pub fn source(&self) -> usize {
        self.source
    }

    /// The number of parity symbols, n.
    pub fn parity_symbols(&self) -> usize {
        self.parity
    }

    /// The coefficients of parity symbol `index`, which must be less than n.
    pub(super) fn row(&self, index: usize) -> &[u8] {
        &self.matrix[index * self.source..][..self.source]
    }

    /// Writes parity symbol `index` of the source symbols: k of them, or fewer in a shortened block.
    ///
    /// # Errors
    ///
    /// [`Error::Index`], [`Error::Count`] for more than k, or [`Error::Length`] if one of them is not as long as
    /// `parity`.
    pub fn parity(&self, index: usize, source: &[&[u8]], parity: &mut [u8]) -> Result<(), Error> {
        self.check(index, source.len())?;
        same_length(source, parity)?;
        parity.fill(0);
        axpy_rows(parity, self.row(index), source);
        Ok(())
    }

    /// Adds source symbol `position` to a parity symbol, which began as zeros: parity without keeping the source.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] if there is no such parity or source symbol, [`Error::Length`] if they differ in it.
    pub fn accumulate(
        &self,
        index: usize,
        position: usize,
        source: &[u8],
        parity: &mut [u8],
    ) -> Result<(), Error> {
        self.check(index, 0)?;
        if position >= self.source {
            return Err(Error::Index { symbols: self.source, index: position });
        }
        same_length(&[source], parity)?;
        axpy(parity, self.row(index)[position], source);
        Ok(())
    }

    /// A decoder, which is reused from block to block.
    pub fn decoder(&self) -> Decoder<'_> {
        Decoder::new(self)
    }

    fn check(&self, parity: usize, source: usize) -> Result<(), Error> {
        if parity >= self.parity {
            return Err(Error::Index { symbols: self.parity, index: parity });
        }
        if source > self.source {
            return Err(Error::Count { expected: self.source, found: source });
        }
        Ok(())
    }
}

pub(super) fn same_length(symbols: &[&[u8]], expected: &[u8]) -> Result<(), Error> {
    match symbols.iter().find(|symbol| symbol.len() != expected.len()) {
        Some(symbol) => Err(Error::Length { expected: expected.len(), found: symbol.len() }),
        None => Ok(()),
    }
}

/// The rows after the first k of `V * inverse of V's first k rows`, V being the Vandermonde matrix of the points.
///
/// Row x of V times that inverse takes the values of a polynomial of degree below k at the first k points to its value
/// at x. So its coefficients are Lagrange's: c_j = product over m != j of (x - x_m) / (x_j - x_m).
fn lagrange(points: &[u8], k: usize) -> Vec<u8> {
    let (sources, parities) = points.split_at(k);
    let others = |x: u8, j: usize| {
        let factors = sources.iter().enumerate().filter(|&(m, _)| m != j).map(|(_, &other)| x ^ other);
        factors.fold(1, mul)
    };
    let denominators: Vec<u8> = sources.iter().enumerate().map(|(j, &x)| others(x, j)).collect();
    let mut matrix = Vec::with_capacity(parities.len() * k);
    for &x in parities {
        let all = sources.iter().fold(1, |product, &other| mul(product, x ^ other));
        matrix.extend(sources.iter().zip(&denominators).map(|(&own, &d)| div(all, mul(x ^ own, d))));
    }
    matrix
}

/// Inverts the `n` by `n` matrix in `left` into `right`; both row by row. False if it is singular.
pub(super) fn invert(n: usize, left: &mut [u8], right: &mut [u8]) -> bool {
    right.fill(0);
    (0..n).for_each(|i| right[i * n + i] = 1);
    for column in 0..n {
        let Some(pivot) = (column..n).find(|row| left[row * n + column] != 0) else { return false };
        for matrix in [&mut *left, &mut *right] {
            (0..n).for_each(|i| matrix.swap(pivot * n + i, column * n + i));
        }
        let inverse = inv(left[column * n + column]);
        for matrix in [&mut *left, &mut *right] {
            scale(&mut matrix[column * n..][..n], inverse);
        }
        for row in (0..n).filter(|&row| row != column) {
            let factor = left[row * n + column];
            for matrix in [&mut *left, &mut *right] {
                add_row(matrix, n, row, factor, column);
            }
        }
    }
    true
}

/// Row `to` += `factor` * row `from`; they are not the same.
fn add_row(matrix: &mut [u8], n: usize, to: usize, factor: u8, from: usize) {
    let (low, high) = matrix.split_at_mut(to.max(from) * n);
    let (low, high) = (&mut low[to.min(from) * n..][..n], &mut high[..n]);
    if to < from { axpy(low, factor, high) } else { axpy(high, factor, low) }
}

/// An error in the arguments of a code or decoder.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A code without source symbols, or with more than 255 symbols.
    Size {
        /// Source symbols asked for.
        source: usize,
        /// Parity symbols asked for.
        parity: usize,
    },
    /// A symbol that the code, or the block, does not have.
    Index {
        /// The number of symbols that there are.
        symbols: usize,
        /// The index asked for.
        index: usize,
    },
    /// Too many or too few symbols.
    Count {
        /// The number expected (of source symbols: the maximum).
        expected: usize,
        /// The number found.
        found: usize,
    },
    /// Symbols of different lengths.
    Length {
        /// The length of the destination in bytes.
        expected: usize,
        /// The length of the symbol in bytes.
        found: usize,
    },
    /// The same symbol twice.
    Duplicate {
        /// The symbol's index.
        index: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Size { source, parity } => {
                write!(f, "a code of {source} source and {parity} parity symbols: expected 1 to 255 together")
            }
            Self::Index { symbols, index } => write!(f, "symbol {index}: there are {symbols}"),
            Self::Count { expected, found } => write!(f, "{found} symbols: expected {expected}"),
            Self::Length { expected, found } => write!(f, "a symbol of {found} bytes: expected {expected}"),
            Self::Duplicate { index } => write!(f, "symbol {index} twice"),
        }
    }
}

impl core::error::Error for Error {}
