//! The distributions that are the defaults.

use std::error::Error;

use hopcast_code::bats::ranks::{self, Channel, Ranks, Scheme};
use hopcast_code::bats::recoding::Path;

use crate::program::{Demand, Solution, solve};

/// The batch sizes of RFC 9426, table 1, each after its field's size.
pub(crate) const SIZES: [(u32, usize); 8] =
    [(256, 4), (256, 8), (256, 16), (256, 32), (2, 16), (2, 32), (2, 64), (2, 128)];

/// The share of symbols left to inactivation and precode. Simulated for M = 16 at K = 256 and 1,000: down from 0.1,
/// degrees grow and as many symbols are inactivated; up from 0.2, batches begin to say too little of too few symbols.
pub(crate) const ETA: f64 = 0.1;

/// The network that the defaults are made for.
pub(crate) const HOPS: usize = 6;
/// Its loss on each hop, in percent.
pub(crate) const LOSS_PERCENT: f64 = 10.0;

/// The best distribution for the default network.
pub(crate) fn default_solution(batch: usize, q: u32) -> Result<Solution, Box<dyn Error>> {
    let ranks = ranks_after(HOPS, LOSS_PERCENT, batch, q)?;
    let demand = Demand { ranks: ranks.as_slice(), eta: ETA, symbols: MAX_SYMBOLS };
    Ok(solve(demand)?)
}

/// The ranks after some hops: systematic recoding, adaptive without feedback, with as many packets a batch as the loss
/// takes from one of M.
pub(crate) fn ranks_after(
    hops: usize,
    loss_percent: f64,
    batch: usize,
    q: u32,
) -> Result<Ranks, ranks::Error> {
    let channel = Channel::independent(loss_percent / 100.0, q)?;
    let budget = batch as f64 / (1.0 - channel.loss());
    let path = Path::new(&vec![channel; hops], batch, Scheme::Systematic, 1, budget);
    Ok(path.plans().last().map_or_else(|| Ranks::full(batch), |plan| plan.after().clone()))
}

/// The degrees whose probabilities are not 0 when written with six decimals.
pub(crate) fn rounded(solution: &Solution) -> Vec<(usize, f64)> {
    let round = |share: &f64| (share * 1e6).round() / 1e6;
    let degrees = solution.degrees.iter().enumerate().map(|(index, share)| (index + 1, round(share)));
    degrees.filter(|(_, share)| *share > 0.0).collect()
}

/// Maximum K: it is below 2^16 (RFC 9426).
pub(crate) const MAX_SYMBOLS: usize = 65_535;
