//! The committed degree tables are what the offline tool finds, and what it finds is right.

#[path = "overhead/degrees.rs"]
mod overhead;
#[path = "../examples/bats_degrees/program.rs"]
mod program;
#[path = "../examples/bats_degrees/table.rs"]
mod table;

use hopcast_code::bats::degrees::Degrees;
use program::{Demand, effective_ranks, progress, solve};
use statrs::function::beta::beta_reg;

#[test]
fn the_tool_run_again_finds_the_committed_tables() {
    for (q, batch) in table::SIZES {
        // The largest takes seconds.
        if batch == 128 {
            continue;
        }
        let found = table::rounded(&table::default_solution(batch, q).expect("a solution"));
        let committed: Vec<_> = Degrees::table(batch, q).expect("a table").iter().collect();
        assert_same(&found, &committed, &format!("q {q}, M {batch}"));
    }
}

#[test]
fn the_tool_run_again_finds_the_tables_by_which_overhead_is_measured() {
    let ranks = overhead::RANKS.map(|percent| percent / 100.0);
    for (symbols, committed) in overhead::TABLES {
        let found = solve(Demand { ranks: &ranks, eta: 0.01, symbols }).expect("a solution");
        assert_same(&table::rounded(&found), committed, &format!("K {symbols}"));
    }
}

fn assert_same(found: &[(usize, f64)], committed: &[(usize, f64)], of: &str) {
    assert_eq!(found.len(), committed.len(), "{of}");
    for ((degree, share), (committed, of_committed)) in found.iter().zip(committed) {
        assert_eq!(degree, committed, "{of}");
        // Rounded to 10^-6, and a machine's logarithm may differ in its last bit.
        assert!((share - of_committed).abs() < 1e-5, "{of}, degree {degree}");
    }
}

#[test]
fn no_table_promises_more_than_the_ranks_and_all_promise_most_of_it() {
    for (q, batch) in table::SIZES.into_iter().filter(|(_, batch)| *batch < 64) {
        let solution = table::default_solution(batch, q).expect("a solution");
        let share = (1.0 - table::ETA) * solution.theta / solution.bound;
        assert!((0.96..=1.0).contains(&share), "q {q}, M {batch}: {share}");
    }
}

#[test]
fn a_smaller_eta_comes_closer_to_capacity() {
    let ranks = table::ranks_after(6, 10.0, 16, 256).expect("ranks");
    let share = |eta: f64| {
        let solution =
            solve(Demand { ranks: ranks.as_slice(), eta, symbols: table::MAX_SYMBOLS }).expect("a solution");
        (1.0 - eta) * solution.theta / solution.bound
    };
    let shares = [0.2, 0.1, 0.05, 0.02].map(share);
    assert!(shares.is_sorted() && shares[3] > 0.997 && shares[3] < 1.0, "{shares:?}");
}

#[test]
fn short_codes_have_no_degree_beyond_their_symbols() {
    let ranks = table::ranks_after(6, 10.0, 16, 256).expect("ranks");
    for symbols in [12, 64, 128] {
        let solution = solve(Demand { ranks: ranks.as_slice(), eta: 0.02, symbols }).expect("a solution");
        assert_eq!(solution.degrees.len(), symbols);
        assert!((solution.degrees.iter().sum::<f64>() - 1.0).abs() < 1e-6);
    }
}

#[test]
fn at_rank_one_it_is_the_lt_code_and_reaches_capacity() {
    // M = 1 without loss: theta = 1 - 1/256 for fountain codes whose coefficients may be zero.
    let solution = solve(Demand { ranks: &[0.0, 1.0], eta: 0.01, symbols: 65_535 }).expect("a solution");
    assert!((solution.bound - 255.0 / 256.0).abs() < 1e-12);
    let share = 0.99 * solution.theta / solution.bound;
    assert!((0.93..=1.0).contains(&share), "{share}");
}

#[test]
fn the_constraints_are_those_of_the_incomplete_beta_function() {
    let effective = effective_ranks(&[0.02, 0.08, 0.2, 0.4, 0.3]);
    for x in [0.05, 0.4, 0.8, 0.97] {
        for (index, found) in progress(&effective, x, 40).into_iter().enumerate() {
            let degree = index + 1;
            let term = |rank: usize| match rank {
                0 => 0.0,
                rank if rank >= degree => effective[rank],
                rank => effective[rank] * beta_reg((degree - rank) as f64, rank as f64, x),
            };
            let stated = degree as f64 * (0..effective.len()).map(term).sum::<f64>();
            assert!((found - stated).abs() < 1e-9, "x {x}, degree {degree}: {found}, not {stated}");
        }
    }
}

#[test]
fn a_rank_is_effective_at_most_once() {
    // Over all s, the probabilities that a batch of rank i becomes solvable with just s unknowns sum to 1.
    for rank in 0..=8 {
        let mut ranks = [0.0; 9];
        ranks[rank] = 1.0;
        let sum: f64 = effective_ranks(&ranks).iter().sum();
        assert!((sum - 1.0).abs() < 1e-12, "{rank}: {sum}");
    }
}
