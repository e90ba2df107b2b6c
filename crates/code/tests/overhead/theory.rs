//! Known results on random matrices.

/// Number of random rows beyond k that a matrix over GF(q) needs until its rank is k.
///
/// With n more it has full rank with probability (1 - q^-(n+1)) (1 - q^-(n+2)) ... (1 - q^-(n+k)): one factor for each
/// column, which must not lie in the span of those before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dense {
    q: f64,
    k: usize,
}

impl Dense {
    pub(crate) fn new(q: u32, k: usize) -> Self {
        Self { q: q.into(), k }
    }

    pub(crate) fn at_most(&self, n: u64) -> f64 {
        // Factors further on are 1.
        (1..=self.k.min(1_100)).map(|i| 1.0 - self.q.powf(-(n as f64 + i as f64))).product()
    }

    /// The wait for each next rank is geometric: with i ranks missing, a row is wasted with probability q^-i.
    pub(crate) fn mean(&self) -> f64 {
        (1..=self.k).map(|i| 1.0 / (self.q.powi(i as i32) - 1.0)).sum()
    }

    pub(crate) fn variance(&self) -> f64 {
        let wasted = (1..=self.k).map(|i| self.q.powi(-(i as i32)));
        wasted.map(|p| p / (1.0 - p).powi(2)).sum()
    }
}

/// Packets of nothing but zeros, of those until k are not, when a coefficient is other than 0 with probability
/// `density`.
pub(crate) fn wasted_on_zeros(k: usize, density: f64) -> f64 {
    let zeros = (1.0 - density).powi(k as i32);
    k as f64 * zeros / (1.0 - zeros)
}

/// Packets beyond k until every one of k symbols has been in one.
pub(crate) fn until_covered(k: usize, density: f64) -> f64 {
    let all_covered = |packets: i32| (1.0 - (1.0 - density).powi(packets)).powi(k as i32);
    (k as i32..).map(|packets| 1.0 - all_covered(packets)).take_while(|&missing| missing > 1e-9).sum()
}
