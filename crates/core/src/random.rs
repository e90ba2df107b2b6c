//! Randomness that flows down from one seed, by name.
//!
//! Each link direction and each machine draws from a [`Stream`] of its own, keyed by
//! hash(seed, repeat, names, ordinal). Adding a node or a flow therefore changes nobody else's draws, and the
//! losses of link `n0-n1` are the same losses under every protocol that is compared over it.

use core::hash::Hasher;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use siphasher::sip128::{Hasher128, SipHasher24};

/// The root of all randomness in one repeat of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed {
    seed: u64,
    repeat: u64,
}

impl Seed {
    /// The root for repeat number `repeat` (0 is the first) of a run seeded with `seed`.
    pub const fn new(seed: u64, repeat: u64) -> Self {
        Self { seed, repeat }
    }

    /// The stream that belongs to `names` (the two ends of a link, a node and a machine) and `ordinal` (which of
    /// several between the same names).
    pub fn stream(&self, names: &[&str], ordinal: u64) -> Stream {
        let mut state = [0; 32];
        for (half, bytes) in state.chunks_exact_mut(16).enumerate() {
            let mut hasher = SipHasher24::new_with_keys(self.seed, self.repeat);
            hasher.write_u64(half as u64);
            hasher.write_u64(ordinal);
            for name in names {
                // The length keeps ["ab", "c"] and ["a", "bc"] apart.
                hasher.write_u64(name.len() as u64);
                hasher.write(name.as_bytes());
            }
            bytes.copy_from_slice(&hasher.finish128().as_bytes());
        }
        Stream(Xoshiro256PlusPlus::from_seed(state))
    }
}

/// A reproducible stream of random numbers (xoshiro256++); not for cryptography.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// A stream for one of several purposes, seeded by one draw from this one.
    pub fn fork(&mut self) -> Self {
        // `seed_from_u64` goes through SplitMix64, so that the child does not follow its parent's linear recurrence.
        Self(Xoshiro256PlusPlus::seed_from_u64(self.bits()))
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number in [0, 1), a multiple of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Whether an event of probability `p` happens. Draws once, whatever `p` is, so that a changed probability
    /// does not shift what is drawn afterwards.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// A uniform integer in `0..bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Lemire's multiply-shift, rejecting the short part so that every value is equally likely.
        let threshold = bound.wrapping_neg().checked_rem(bound).unwrap_or(0);
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }

    /// A standard normal number (mean 0, deviation 1), by the Marsaglia polar method.
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }

    /// An exponential number of mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }

    /// Fills `bytes` with uniform bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_its_names_alone() {
        let seed = Seed::new(7, 0);
        let draw = |names: &[&str], ordinal| seed.stream(names, ordinal).bits();
        assert_eq!(draw(&["n0", "n1"], 0), draw(&["n0", "n1"], 0));
        assert_ne!(draw(&["n0", "n1"], 0), draw(&["n1", "n0"], 0));
        assert_ne!(draw(&["n0", "n1"], 0), draw(&["n0", "n1"], 1));
        assert_ne!(draw(&["ab", "c"], 0), draw(&["a", "bc"], 0));
        assert_ne!(Seed::new(7, 1).stream(&["n0"], 0).bits(), Seed::new(7, 0).stream(&["n0"], 0).bits());
    }

    #[test]
    fn the_first_draws_never_change() {
        // A change here changes every published figure: it needs a line in the changelog.
        let mut stream = Seed::new(1, 0).stream(&["n0", "n1"], 0);
        let draws = [stream.bits(), stream.bits(), stream.bits()];
        assert_eq!(draws, GOLDEN, "{draws:?}");
    }

    const GOLDEN: [u64; 3] = [2438792888722178188, 14324175088212594204, 15060407607628456272];

    #[test]
    fn the_normal_has_mean_zero_and_deviation_one() {
        let mut stream = Seed::new(3, 0).stream(&["normal"], 0);
        let n = 200_000;
        let draws: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        // Five standard errors of each.
        assert!(mean.abs() < 5.0 / f64::from(n).sqrt(), "{mean}");
        assert!((variance - 1.0).abs() < 5.0 * (2.0 / f64::from(n)).sqrt(), "{variance}");
    }

    #[test]
    fn below_reaches_every_value_and_none_past_it() {
        let mut stream = Seed::new(4, 0).stream(&["below"], 0);
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[stream.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (9_500..10_500).contains(&n)), "{seen:?}");
        assert_eq!(stream.below(0), 0);
        assert_eq!(stream.below(1), 0);
    }
}
