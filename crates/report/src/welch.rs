//! The significance of the difference of two means: Welch's confidence interval, for samples of unequal variance.

use hopcast_twin::results::Mean;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The difference of two means.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The second minus the first.
    pub difference: f64,
    /// Half the width of its 95 % confidence interval (Welch's t); null if either has too few repeats.
    pub ci95: Option<f64>,
    /// Whether the interval excludes zero; null without an interval.
    pub significant: Option<bool>,
}

/// `b` minus `a`.
pub(crate) fn difference(a: Mean, b: Mean) -> Difference {
    let difference = b.mean - a.mean;
    let ci95 = interval(a, b);
    // Without any spread, equal means are equal and unequal ones differ, except by rounding.
    let rounding = 1e-12 * a.mean.abs().max(b.mean.abs());
    let significant = ci95.map(|ci95| difference.abs() > ci95.max(rounding));
    Difference { difference, ci95, significant }
}

fn interval(a: Mean, b: Mean) -> Option<f64> {
    let (var_a, var_b) = (squared_error(a)?, squared_error(b)?);
    let sum = var_a + var_b;
    if sum == 0.0 {
        return Some(0.0);
    }
    let spread = |variance: f64, n: u64| variance * variance / (n - 1) as f64;
    // Welch and Satterthwaite's degrees of freedom.
    let freedom = sum * sum / (spread(var_a, a.n) + spread(var_b, b.n));
    Some(student(freedom)? * sum.sqrt())
}

/// The variance of a mean, from its interval.
fn squared_error(mean: Mean) -> Option<f64> {
    let ci95 = mean.ci95.filter(|_| mean.n > 1)?;
    Some((ci95 / student((mean.n - 1) as f64)?).powi(2))
}

/// Student's t for 95 %, both sides.
fn student(freedom: f64) -> Option<f64> {
    StudentsT::new(0.0, 1.0, freedom).ok().map(|student| student.inverse_cdf(0.975)).filter(|t| t.is_finite())
}

#[cfg(test)]
mod tests {
    use hopcast_twin::stats::mean;

    use super::*;

    fn between(a: &[f64], b: &[f64]) -> Difference {
        difference(mean(a).unwrap(), mean(b).unwrap())
    }

    #[test]
    fn a_figure_that_never_changes_does_not_differ_from_itself_however_often_it_is_taken() {
        for value in [13.4364, 0.1, 1e9 / 3.0, -7.7] {
            assert_eq!(between(&[value; 5], &[value; 10]).significant, Some(false), "{value}");
        }
    }

    #[test]
    fn the_interval_is_welchs() {
        // Means 20.8200 and 23.5867; 27.714 degrees of freedom; t = 2.04936 times the error 0.975806.
        let a = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4];
        let b = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.0, 23.9];
        let found = between(&a, &b);
        assert!((found.difference - 2.76667).abs() < 1e-4, "{found:?}");
        assert_eq!(found.significant, Some(true));
        assert!((found.ci95.unwrap() - 1.99978).abs() < 1e-4, "{found:?}");
    }

    #[test]
    fn one_repeat_or_no_spread_is_said_as_it_is() {
        assert_eq!(between(&[1.0], &[2.0, 3.0]).significant, None);
        let equal = between(&[2.0, 2.0], &[2.0, 2.0]);
        assert_eq!((equal.ci95, equal.significant), (Some(0.0), Some(false)));
        assert_eq!(between(&[2.0, 2.0], &[3.0, 3.0]).significant, Some(true));
    }
}
