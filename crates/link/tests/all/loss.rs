//! Loss models: what they lose in the long run, against their figures, and their figures against their matrices.
#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

use crate::common::*;
use hopcast_core::Fraction;
use hopcast_link::Loss;
use proptest::prelude::*;
use statrs::distribution::{ChiSquared, ContinuousCDF};

fn gilbert_elliott(p: f64, r: f64, k: f64, h: f64) -> Loss {
    let [p, r, k, h] = [p, r, k, h].map(|share| Fraction::new(share).unwrap());
    Loss::GilbertElliott { p, r, k, h }
}

fn four_state(p13: f64, p31: f64, p32: f64, p23: f64, p14: f64) -> Loss {
    let [p13, p31, p32, p23, p14] = [p13, p31, p32, p23, p14].map(|share| Fraction::new(share).unwrap());
    Loss::FourState { p13, p31, p32, p23, p14 }
}

fn examples() -> Vec<Loss> {
    vec![
        Loss::Independent(percent(5.0)),
        Loss::Independent(percent(60.0)),
        gilbert_elliott(0.01, 0.25, 1.0, 0.0),
        gilbert_elliott(0.05, 0.3, 0.99, 0.2),
        gilbert_elliott(0.3, 0.6, 0.4, 0.9),
        four_state(0.02, 0.3, 0.2, 0.4, 0.01),
        four_state(0.1, 0.5, 0.5, 0.1, 0.3),
        Loss::trace_from_str("0001100101").unwrap(),
    ]
}

/// The lengths of the bursts that lie wholly inside.
fn bursts(lost: &[bool]) -> Vec<usize> {
    let runs: Vec<_> = lost.chunk_by(|a, b| a == b).collect();
    let inside = runs.get(1..runs.len().saturating_sub(1)).unwrap_or_default();
    inside.iter().filter(|run| run[0]).map(|run| run.len()).collect()
}

/// The mean of `values` and the standard error of it, by a hundred batches, so that neighbours may depend on each
/// other.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let batches: Vec<f64> = values
        .chunks_exact(values.len() / 100)
        .map(|batch| batch.iter().sum::<f64>() / batch.len() as f64)
        .collect();
    let n = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / n;
    let variance = batches.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

#[test]
fn the_share_lost_is_the_stationary_loss_within_five_standard_errors() {
    for (seed, loss) in examples().iter().enumerate() {
        let lost: Vec<f64> = losses(loss, 400_000, seed as u64).iter().map(|&lost| lost.into()).collect();
        let (mean, error) = mean_and_error(&lost);
        let expected = loss.stationary().get();
        assert!((mean - expected).abs() <= 5.0 * error + 1e-12, "{loss:?}: {mean} ± {error} for {expected}");
    }
}

#[test]
fn bursts_are_as_long_as_they_should_be_within_five_standard_errors() {
    for (seed, loss) in examples().iter().enumerate() {
        let lengths: Vec<f64> =
            bursts(&losses(loss, 400_000, seed as u64)).iter().map(|&length| length as f64).collect();
        let (mean, error) = mean_and_error(&lengths);
        let expected = loss.mean_burst();
        assert!(
            // The trace's bursts of 1 and 2 in turn have no error but that of the batches' ends.
            (mean - expected).abs() <= 5.0 * error + 1e-3,
            "{loss:?}: {mean} ± {error} for {expected}"
        );
    }
}

#[test]
fn bursts_of_independent_loss_and_of_gilberts_model_are_geometric() {
    for (loss, ends) in
        [(Loss::Independent(percent(30.0)), 0.7), (gilbert_elliott(0.05, 0.4, 1.0, 0.0), 0.4_f64)]
    {
        let lengths = bursts(&losses(&loss, 400_000, 11));
        let n = lengths.len() as f64;
        // Lengths 1 to 8, and longer.
        let mut statistic = 0.0;
        for length in 1..=9 {
            let (share, seen) = match length {
                9 => ((1.0 - ends).powi(8), lengths.iter().filter(|&&l| l > 8).count()),
                _ => (
                    (1.0 - ends).powi(length - 1) * ends,
                    lengths.iter().filter(|&&l| l == length as usize).count(),
                ),
            };
            statistic += (seen as f64 - n * share).powi(2) / (n * share);
        }
        // One wrong alarm in a million.
        assert!(statistic < ChiSquared::new(8.0).unwrap().inverse_cdf(1.0 - 1e-6), "{loss:?}: {statistic}");
    }
}

/// The long run of a chain from its first state. The walk that stays put half of the time has the same, and no period.
fn power_iteration<const N: usize>(matrix: [[f64; N]; N]) -> [f64; N] {
    let mut lazy = matrix;
    for (i, row) in lazy.iter_mut().enumerate() {
        row.iter_mut().for_each(|p| *p /= 2.0);
        row[i] += 0.5;
    }
    // Squared 40 times: 2^40 steps. Each row is scaled back to one, or rounding would grow with the power.
    for _ in 0..40 {
        let old = lazy;
        for (i, row) in lazy.iter_mut().enumerate() {
            for (j, p) in row.iter_mut().enumerate() {
                *p = (0..N).map(|k| old[i][k] * old[k][j]).sum();
            }
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|p| *p /= sum);
        }
    }
    lazy[0]
}

/// Probabilities that are often at the edges, where the closed forms have no value; otherwise not so small that 2^40
/// steps are few.
fn edgy() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), 0.001..1.0]
}

fn edgy_half() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(0.5), 0.001..0.5]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn gilbert_elliotts_stationary_loss_is_that_of_its_matrix(
        p in edgy(), r in edgy(), k in edgy(), h in edgy(),
    ) {
        // The transition matrix as its authors write it: the rows are good and bad.
        let [good, bad] = power_iteration([[1.0 - p, p], [r, 1.0 - r]]);
        let expected = good * (1.0 - k) + bad * (1.0 - h);
        prop_assert!((gilbert_elliott(p, r, k, h).stationary().get() - expected).abs() < 1e-9);
    }

    #[test]
    fn the_four_states_stationary_loss_is_that_of_its_matrix(
        p13 in edgy_half(), p31 in edgy_half(), p32 in edgy_half(), p23 in edgy(), p14 in edgy_half(),
    ) {
        let [_, _, burst, alone] = power_iteration([
            [1.0 - p13 - p14, 0.0, p13, p14],
            [0.0, 1.0 - p23, p23, 0.0],
            [p31, p32, 1.0 - p31 - p32, 0.0],
            [1.0, 0.0, 0.0, 0.0],
        ]);
        let loss = four_state(p13, p31, p32, p23, p14);
        prop_assert!((loss.stationary().get() - (burst + alone)).abs() < 1e-9);
    }

    #[test]
    fn any_model_loses_a_share_and_bursts_are_empty_or_at_least_one_long(loss in any::loss()) {
        let share = loss.stationary().get();
        prop_assert!((0.0..=1.0).contains(&share));
        let burst = loss.mean_burst();
        prop_assert!(if share == 0.0 { burst == 0.0 } else { burst >= 1.0 - 1e-9 }, "{}", burst);
        prop_assert!(loss.validate().is_ok());
    }
}

#[test]
fn a_model_starts_in_its_stationary_distribution() {
    // So slow that the first frame shows the state; 10,000 links, five standard errors.
    for loss in [gilbert_elliott(0.001, 0.004, 1.0, 0.0), four_state(0.001, 0.003, 0.001, 0.002, 0.1)] {
        let n = 10_000;
        let first = (0..n).filter(|&seed| losses(&loss, 1, seed)[0]).count();
        let share = loss.stationary().get();
        let error = (share * (1.0 - share) / n as f64).sqrt();
        assert!((first as f64 / n as f64 - share).abs() < 5.0 * error, "{first} for {share}");
    }
}

#[test]
fn chains_that_cannot_move_stay_good() {
    assert_eq!(gilbert_elliott(0.0, 0.0, 0.9, 0.0).stationary(), Fraction::new(0.9).unwrap().complement());
    assert_eq!(four_state(0.0, 0.0, 0.0, 0.0, 0.0).stationary(), Fraction::ZERO);
    assert_eq!(four_state(0.5, 0.0, 0.0, 0.0, 0.0).stationary(), Fraction::ONE);
    assert_eq!(four_state(0.0, 0.0, 0.0, 0.0, 1.0).stationary().get(), 0.5);
    assert_eq!(Loss::Independent(Fraction::ONE).mean_burst(), f64::INFINITY);
    assert_eq!(Loss::Independent(Fraction::ZERO).mean_burst(), 0.0);
}

#[test]
fn probabilities_that_leave_no_room_for_one_another_are_refused_by_name() {
    let error = four_state(0.1, 0.7, 0.5, 0.1, 0.1).validate().unwrap_err();
    assert!(error.to_string().contains("p31 + p32 is 120 %"), "{error}");
    let error = four_state(0.6, 0.1, 0.1, 0.1, 0.6).validate().unwrap_err();
    assert!(error.to_string().contains("p13 + p14 is 120 %"), "{error}");
    assert_eq!(four_state(0.9, 0.3, 0.7, 0.1, 0.1).validate(), Ok(()));
}
