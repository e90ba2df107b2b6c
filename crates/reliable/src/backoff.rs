//! The random back-off before a NACK (RFC 5401, section 3.2.2).

use hopcast_core::{Duration, Stream};

/// A back-off of at most `max`, from the truncated exponential distribution for a group of `receivers`.
///
/// Few of a large group draw a short one, so that few NACKs are sent before the first of them is heard and suppresses
/// the others.
pub fn truncated_exponential(random: &mut Stream, max: Duration, receivers: f64) -> Duration {
    let lambda = receivers.clamp(1.0, MAX_GROUP).ln() + 1.0;
    let uniform = random.uniform();
    // RFC 5401's x * (exp(L) - 1) * (T / L), with its uniform x written out.
    max.mul_f64((uniform * lambda.exp_m1()).ln_1p() / lambda)
}

/// Maximum group size that a back-off is made for: the largest that the header of NORM can say (RFC 5740, section
/// 4.2.1).
const MAX_GROUP: f64 = 5e8;

#[cfg(test)]
mod tests {
    use super::*;
    use hopcast_core::Seed;

    /// Number of `receivers` that draw a back-off that ends within `delay` after the earliest.
    fn within(receivers: usize, max: Duration, delay: Duration, seed: u64) -> usize {
        let mut random = Seed::new(seed, 0).stream(&["backoff"], 0);
        let draws: Vec<_> =
            (0..receivers).map(|_| truncated_exponential(&mut random, max, receivers as f64)).collect();
        assert!(draws.iter().all(|&draw| draw <= max));
        let first = draws.iter().min().copied().unwrap_or_default();
        draws.iter().filter(|draw| draw.saturating_sub(first) <= delay).count()
    }

    #[test]
    fn few_receivers_of_a_large_group_draw_a_short_back_off() {
        // A NACK is heard half a GRTT after it was sent; back-offs are over four GRTT (RFC 5401, section 3.2.2).
        let grtt = Duration::from_millis(100);
        for receivers in [10, 100, 1000, 10_000] {
            let rounds = 50;
            let mean = (0..rounds).map(|seed| within(receivers, grtt * 4, grtt / 2, seed)).sum::<usize>()
                as f64
                / rounds as f64;
            assert!((1.0..8.0).contains(&mean), "{receivers} receivers: {mean} NACKs");
        }
    }

    #[test]
    fn a_back_off_is_as_short_as_rfc_5401_has_it() {
        let mut random = Seed::new(7, 0).stream(&["backoff"], 0);
        let max = Duration::from_secs(1);
        // (exp(L / 2) - 1) / (exp(L) - 1) of them end in the first half, where L is ln(receivers) + 1.
        for (receivers, share) in [(1.0, 0.378), (10.0, 0.161), (100.0, 0.057)] {
            let short =
                (0..10_000).filter(|_| truncated_exponential(&mut random, max, receivers) < max / 2).count();
            assert!((short as f64 / 10_000.0 - share).abs() < 0.015, "{receivers} receivers: {short}");
        }
    }

    #[test]
    fn no_time_and_no_group_are_no_back_off_and_a_uniform_one() {
        let mut random = Seed::new(1, 0).stream(&["backoff"], 0);
        assert_eq!(truncated_exponential(&mut random, Duration::ZERO, 1e9), Duration::ZERO);
        let max = Duration::from_secs(1);
        assert!((0..1000).all(|_| truncated_exponential(&mut random, max, f64::NAN) <= max));
    }
}
