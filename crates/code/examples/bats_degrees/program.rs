//! The linear program whose solution is the best degree distribution for a rank distribution.

use microlp::{ComparisonOp, OptimizationDirection, Problem, Variable};

/// For whom a distribution is made.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Demand<'a> {
    /// The probabilities h_0 .. h_M of a batch's ranks at the decoder.
    pub(crate) ranks: &'a [f64],
    /// The share of symbols that belief propagation need not reach: what a precode or inactivation makes up for.
    pub(crate) eta: f64,
    /// K, the number of symbols; no degree is larger.
    pub(crate) symbols: usize,
}

/// A distribution and how good it is.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    /// The probabilities of the degrees 1, 2, ..
    pub(crate) degrees: Vec<f64>,
    /// Symbols for each batch as belief propagation proceeds, in the limit of long codes: it decodes (1 - eta) K
    /// symbols from K / theta batches.
    pub(crate) theta: f64,
    /// The upper bound of (1 - eta) theta for these ranks: the mean of the effective rank, a little below the mean
    /// rank.
    pub(crate) bound: f64,
}

/// Maximises theta so that for x at 100 points in 0 ..= 1 - eta
///
/// ```text
/// sum_d d Psi_d [ sum_{r < d} hbar_r I_x(d - r, r) + sum_{r >= d} hbar_r ] + theta ln(1 - x) >= 0
/// ```
///
/// and the Psi_d, d up to min(K, ceil(M / eta) - 1), sum to 1 (Yang and Yeung, *Batched Sparse Codes*, IEEE
/// Transactions on Information Theory 60(9), 2014, section IV).
pub(crate) fn solve(demand: Demand<'_>) -> Result<Solution, microlp::Error> {
    let effective = effective_ranks(demand.ranks);
    let batch = effective.len() - 1;
    let largest = ((batch as f64 / demand.eta).ceil() as usize - 1).clamp(1, demand.symbols);

    let mut program = Problem::new(OptimizationDirection::Maximize);
    let degrees: Vec<Variable> = (0..largest).map(|_| program.add_var(0.0, (0.0, 1.0))).collect();
    let theta = program.add_var(1.0, (0.0, f64::INFINITY));
    let all: Vec<_> = degrees.iter().map(|degree| (*degree, 1.0)).collect();
    program.add_constraint(&all, ComparisonOp::Eq, 1.0);
    // At x = 0 nothing can be violated.
    for point in 1..POINTS {
        let x = (1.0 - demand.eta) * point as f64 / (POINTS - 1) as f64;
        let progress = progress(&effective, x, largest);
        let worth_having = degrees.iter().zip(&progress).filter(|(_, progress)| **progress > 1e-9);
        let row: Vec<_> = worth_having.map(|(degree, progress)| (*degree, *progress)).collect();
        let row = [&row[..], &[(theta, (1.0 - x).ln())]].concat();
        program.add_constraint(&row, ComparisonOp::Ge, 0.0);
    }
    let solution =
        program.solve()?.into_solution().expect("no limit was set that could end the search early");
    let bound = effective.iter().enumerate().map(|(rank, share)| rank as f64 * share).sum();
    Ok(Solution {
        degrees: degrees.iter().map(|degree| solution[*degree].max(0.0)).collect(),
        theta: solution[theta],
        bound,
    })
}

const POINTS: usize = 100;

/// The coefficients of the constraint at `x` for each degree d from 1 to `largest`: d times the probability that a
/// batch of that degree lets one more of its symbols be decoded when the share `x` of all is.
///
/// I_x(d - r, r) is the probability that fewer than r of d - 1 symbols are undecoded, each being so with probability
/// 1 - x; for r >= d it is a certainty. So both sums are one, over a binomial distribution that grows with d.
pub(crate) fn progress(effective: &[f64], x: f64, largest: usize) -> Vec<f64> {
    // Of d - 1 symbols, how probable it is that 0, 1, .. are undecoded; only what is below M matters.
    let mut undecoded = vec![0.0; effective.len() - 1];
    undecoded[0] = 1.0;
    // wanted[j]: the probability of an effective rank above j.
    let above = |j: usize| effective[j + 1..].iter().sum::<f64>();
    let wanted: Vec<f64> = (0..undecoded.len()).map(above).collect();
    let of_degree = |degree: usize| {
        let one_more = undecoded.iter().zip(&wanted).map(|(share, wanted)| share * wanted).sum::<f64>();
        for count in (0..undecoded.len()).rev() {
            let from_below = if count > 0 { undecoded[count - 1] } else { 0.0 };
            undecoded[count] = undecoded[count] * x + from_below * (1.0 - x);
        }
        degree as f64 * one_more
    };
    (1..=largest).map(of_degree).collect()
}

/// The effective ranks hbar_0 .. hbar_M: how probable it is that a batch of rank i can give s symbols once only s of
/// its symbols are unknown, and not before,
///
/// ```text
/// hbar_s = sum_{i >= s} zeta(i, s) q^-(i - s) h_i,    zeta(i, s) = (1 - q^-i) (1 - q^-(i-1)) .. (1 - q^-(i-s+1))
/// ```
///
/// q is that of the outer code, 256, whatever field the batches are recoded in (RFC 9426, section 3).
pub(crate) fn effective_ranks(ranks: &[f64]) -> Vec<f64> {
    const Q: f64 = 256.0;
    let power = |exponent: usize| Q.powi(-(exponent as i32));
    let zeta = |i: usize, s: usize| (0..s).map(|k| 1.0 - power(i - k)).product::<f64>();
    let of = |s: usize| (s..ranks.len()).map(|i| zeta(i, s) * power(i - s) * ranks[i]).sum();
    (0..ranks.len()).map(of).collect()
}
