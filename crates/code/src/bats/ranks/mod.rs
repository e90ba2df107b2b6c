//! The rank of a batch, hop by hop: how much of it is still there.
//!
//! A batch leaves its source with rank M. On every hop some packets are lost, and the node behind has a batch of the
//! rank of what arrived; it sends combinations, and the next node has one of that rank or less. The **rank
//! distribution** h_0 .. h_M at the destination is all that the outer code needs to know of the network: its mean is
//! the capacity, in symbols a batch (Yang and Yeung, *Batched Sparse Codes*, IEEE Transactions on Information Theory
//! 60(9), 2014, section II).
//!
//! [`Ranks`] is such a distribution. [`Channel`] is one hop. Both are exact: a Markov chain over the receiver's
//! **deficit**, the sender's rank less the receiver's, which one packet lowers by one with the probability
//!
//! ```text
//! (1 - loss) (1 - q^-deficit)
//! ```
//!
//! because a random combination of r dimensions lies in the s that the receiver has with probability q^(s - r).

mod channel;
#[cfg(test)]
mod tests;

pub use channel::{Channel, Scheme};
pub(super) use channel::{Outlook, horizon};

/// An error in a distribution or a channel.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Error {
    /// No probability is other than zero.
    Empty,
    /// A probability that is negative or not a number.
    Probability {
        /// Index in the list.
        index: usize,
        /// The value found.
        found: f64,
    },
    /// A share of packets that is not in 0 ..= 1, or a channel that loses everything.
    Loss(f64),
    /// A field with fewer than two elements.
    FieldSize(u32),
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Empty => write!(f, "a distribution needs a probability above 0"),
            Self::Probability { index, found } => write!(f, "probability {index} is {found}"),
            Self::Loss(found) => {
                write!(f, "a share of packets is 0 to 1 and some must arrive, found {found}")
            }
            Self::FieldSize(q) => write!(f, "a field has 2 elements or more, found {q}"),
        }
    }
}

impl core::error::Error for Error {}

/// A rank distribution: how probable it is that a batch of M has rank 0, 1, .. M.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranks {
    /// Sums to 1; index r is rank r.
    shares: Vec<f64>,
}

impl Ranks {
    /// Batches of `batch` packets as they leave the source, all of full rank.
    pub fn full(batch: usize) -> Self {
        let mut shares = vec![0.0; batch + 1];
        shares[batch] = 1.0;
        Self { shares }
    }

    /// From the weights of the ranks 0, 1, .. M: probabilities, or how often each was seen.
    ///
    /// # Errors
    ///
    /// [`Error::Probability`] or [`Error::Empty`].
    pub fn new(weights: &[f64]) -> Result<Self, Error> {
        Ok(Self { shares: normalised(weights)? })
    }

    /// M, the rank of a whole batch.
    pub fn batch(&self) -> usize {
        self.shares.len() - 1
    }

    /// The probabilities h_0 .. h_M.
    pub fn as_slice(&self) -> &[f64] {
        &self.shares
    }

    /// The mean rank: how many symbols a batch can bring at most.
    pub fn mean(&self) -> f64 {
        self.shares.iter().enumerate().map(|(rank, share)| rank as f64 * share).sum()
    }

    /// A rank, as `draw` of 2^32 has it.
    pub fn sample(&self, draw: u32) -> usize {
        let draw = f64::from(draw) / 4_294_967_296.0;
        let mut below = 0.0;
        let reached = |share: &f64| {
            below += share;
            draw < below
        };
        // The sum may fall short of 1 by rounding; what is then left over belongs to the last rank that occurs.
        self.shares.iter().position(reached).unwrap_or_else(|| self.highest())
    }

    /// The distribution one hop further on, if a node with a batch of rank r sends `sent(r)` packets.
    pub fn after(&self, channel: &Channel, scheme: Scheme, sent: impl Fn(usize) -> usize) -> Self {
        let mut shares = vec![0.0; self.shares.len()];
        for (rank, share) in self.shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            for (received, arrives) in channel.received(rank, sent(rank), scheme).iter().enumerate() {
                shares[received] += share * arrives;
            }
        }
        Self { shares }
    }

    /// Two kinds of batches together, of which `share` are of the other kind. Both have one M.
    pub(super) fn mixed(mut self, other: &Self, share: f64) -> Self {
        for (own, other) in self.shares.iter_mut().zip(&other.shares) {
            *own += share * (other - *own);
        }
        self
    }

    /// From probabilities that are known to sum to 1.
    pub(super) fn from_shares(shares: Vec<f64>) -> Self {
        Self { shares }
    }

    fn highest(&self) -> usize {
        self.shares.iter().rposition(|share| *share > 0.0).unwrap_or(0)
    }
}

/// Weights as probabilities that sum to 1.
pub(super) fn normalised(weights: &[f64]) -> Result<Vec<f64>, Error> {
    let wrong = |weight: &f64| !weight.is_finite() || *weight < 0.0;
    if let Some(index) = weights.iter().position(wrong) {
        return Err(Error::Probability { index, found: weights[index] });
    }
    let sum: f64 = weights.iter().sum();
    if sum == 0.0 || !sum.is_finite() {
        return Err(Error::Empty);
    }
    Ok(weights.iter().map(|weight| weight / sum).collect())
}
