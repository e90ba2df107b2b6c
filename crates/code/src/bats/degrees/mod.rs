//! Degree of a batch: the number of symbols that it is made of.
//!
//! The source draws a **degree** d for each batch and combines d symbols into M packets. Small degrees get decoding
//! going: a batch whose rank is at least the number of its unknown symbols gives them all. Large degrees make sure that
//! in the end no symbol has been left out. The best distribution depends on the ranks that reach the decoder
//! ([`ranks`](super::ranks)) and not on how they came about; it is the solution of a linear program, which
//! `examples/bats_degrees` states and solves, offline.
//!
//! [`Degrees::table`] has one for each batch size and field of RFC 9426, made for
//!
//! - the ranks after six hops of 10 % loss, with systematic recoding that is adaptive without feedback, and M / 0.9
//!   packets a batch on each;
//! - belief propagation that may leave a tenth of the symbols to inactivation and a precode (eta = 0.1). A smaller eta
//!   brings belief propagation closer to capacity and costs larger degrees, in proportion to which encoding and
//!   decoding take time.
//!
//! In the limit of long codes, belief propagation alone then decodes at the rate of 96 % (M = 4) to 99.8 % of the mean
//! rank.

mod tables;
#[cfg(test)]
mod tests;

use super::ranks::normalised;

pub use super::ranks::Error;

/// A degree distribution, from which a draw of 32 bits takes a degree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Degrees {
    /// Each degree that occurs, and the first draw that is beyond it (RFC 9426's array DD, without what is empty).
    steps: Vec<(u64, usize)>,
}

impl Degrees {
    /// From the probabilities, or other weights, of the degrees 1, 2, 3, ..; rounded to multiples of 2^-32.
    ///
    /// # Errors
    ///
    /// [`Error::Probability`] for a weight that is negative or not a number, [`Error::Empty`] if none is above zero.
    pub fn new(probabilities: &[f64]) -> Result<Self, Error> {
        let shares = normalised(probabilities)?;
        Ok(Self::cumulated(shares.into_iter().enumerate().map(|(index, share)| (index + 1, share))))
    }

    /// The default for batches of `batch` packets recoded in GF(`q`): 4, 8, 16 or 32 with q = 256, and 16, 32, 64 or
    /// 128 with q = 2; `None` for others.
    pub fn table(batch: usize, q: u32) -> Option<Self> {
        let table = tables::TABLES.iter().find(|table| (table.batch, table.q) == (batch, q))?;
        Some(Self::cumulated(table.degrees.iter().copied()))
    }

    /// The degree that a draw of 2^32 stands for: the minimum d with draw < CDF\[d\]. (RFC 9426's figure 7 compares the
    /// other way round, which would always give 1.)
    ///
    /// A code of fewer symbols than that takes all it has.
    #[inline]
    pub fn sample(&self, draw: u32) -> usize {
        let index = self.steps.partition_point(|(beyond, _)| *beyond <= u64::from(draw));
        self.steps[index].1
    }

    /// The mean degree.
    pub fn mean(&self) -> f64 {
        self.iter().map(|(degree, share)| degree as f64 * share).sum()
    }

    /// Maximum degree.
    pub fn max(&self) -> usize {
        self.steps[self.steps.len() - 1].1
    }

    /// The degrees that occur, in order, each with its probability.
    pub fn iter(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let mut before = 0;
        self.steps.iter().map(move |(beyond, degree)| {
            let draws = beyond - core::mem::replace(&mut before, *beyond);
            (*degree, draws as f64 / DRAWS)
        })
    }

    /// From the probabilities of ascending degrees, which sum to 1 but for rounding.
    fn cumulated(shares: impl Iterator<Item = (usize, f64)>) -> Self {
        let mut steps: Vec<(u64, usize)> = Vec::new();
        let mut sum = 0.0;
        for (degree, share) in shares {
            sum += share;
            let beyond = (sum * DRAWS).round() as u64;
            if beyond > steps.last().map_or(0, |step| step.0) {
                steps.push((beyond, degree));
            }
        }
        // Whatever rounding has left over or added, every draw has a degree.
        if let Some(last) = steps.last_mut() {
            last.0 = DRAWS as u64;
        }
        Self { steps }
    }
}

/// Number of values that a draw may have.
const DRAWS: f64 = 4_294_967_296.0;

/// A committed distribution.
struct Table {
    /// The number of elements of the field that batches are recoded in.
    q: u32,
    /// M, the packets of a batch.
    batch: usize,
    /// Degrees and their probabilities, which sum to 1 but for rounding.
    degrees: &'static [(usize, f64)],
}
