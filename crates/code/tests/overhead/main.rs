//! Number of symbols that a receiver must take in beyond those that any code needs: `overhead.txt` beside this file,
//! recorded over 10,000 trials of each code, held against theory, and held against the code by the first few trials.
//!
//! All of the trials again, and held against the record, in a quarter of an hour or so:
//! `cargo test --release --package hopcast-code --test overhead -- --ignored`. To record what comes of them instead, of
//! the codes whose names hold a word, put `HOPCAST_RECORD=BATS` in front of it; an empty word is in all.

mod codes;
mod degrees;
mod record;
mod theory;

use std::sync::atomic::{AtomicUsize, Ordering};

use hopcast_code::bats::Sampling;

use codes::Code;
use record::{Record, Row};
use theory::Dense;

const TRIALS: u64 = 10_000;
/// Number of trials that every run of the tests repeats.
const REPEATED_TRIALS: u64 = 200;

/// The same trials give the same overheads, on every machine.
#[test]
fn the_first_trials_of_every_code_are_as_recorded() {
    let record = Record::read();
    for ((code, overheads), row) in in_parallel(codes::all(), REPEATED_TRIALS).iter().zip(&record.rows) {
        assert_eq!(code.name(), row.name, "recorded in this order");
        assert_eq!(
            overheads.iter().sum::<u64>(),
            row.first,
            "the first {REPEATED_TRIALS} trials of {code:?}"
        );
    }
}

#[test]
#[ignore = "takes many minutes"]
fn all_trials_of_every_code_are_as_recorded() {
    let word = std::env::var("HOPCAST_RECORD");
    let wanted = |code: &Code| word.as_ref().is_ok_and(|word| code.name().contains(word)) || word.is_err();
    let measured = in_parallel(codes::all().into_iter().filter(wanted).collect(), TRIALS);
    let record = Record::with(&measured);
    if word.is_ok() {
        record.write();
    } else {
        assert_eq!(record.to_string(), record::text(), "what was measured, and what is recorded");
    }
}

#[test]
fn dense_codes_need_what_theory_says() {
    let record = Record::read();
    let rows = each(&record);
    for (theory, row) in rows.filter_map(|(code, row)| Some((code.theory()?, row))) {
        let error = (theory.variance() / row.trials as f64).sqrt();
        assert!((row.mean - theory.mean()).abs() < 4.5 * error + 5e-5, "{row:?}: expected {}", theory.mean());
        let (statistic, limit) = chi_squared(row, &theory);
        assert!(statistic < limit, "{row:?}: chi squared is {statistic}, at most {limit} expected");
    }
}

/// A packet of zeros says nothing, and a symbol that no packet holds is not known: each alone is a bound.
#[test]
fn sparse_codes_need_more_and_not_much() {
    let record = Record::read();
    let mut held = 0;
    for (code, row) in each(&record) {
        let Code::Sparse { q, k, density } = code else { continue };
        let error = 4.5 * row.mean.max(1.0) / (row.trials as f64).sqrt();
        let dense = Dense::new(q, k).mean();
        let bounds = [dense, theory::wasted_on_zeros(k, density), theory::until_covered(k, density)];
        assert!(bounds.iter().all(|bound| row.mean > bound - error), "{row:?}: at least {bounds:?}");
        // Together they explain it, up to one symbol that is counted twice or not at all.
        assert!(row.mean < bounds.iter().sum::<f64>() + 1.0, "{row:?}: about the sum of {bounds:?}");
        held += 1;
    }
    assert!(held > 0);
}

#[test]
fn reed_solomon_needs_none_and_bats_next_to_none() {
    let record = Record::read();
    for (code, row) in each(&record) {
        match code {
            Code::ReedSolomon { .. } => assert_eq!((row.mean, row.max), (0.0, 0)),
            Code::Bats { sampling: Sampling::Even { .. }, .. } => assert!(row.mean < 0.05, "{row:?}"),
            Code::Bats { .. } => assert!(row.mean > 1.0, "{row:?}: some symbols are in no batch for long"),
            _ => {}
        }
    }
}

/// The codes with what is recorded of them.
fn each(record: &Record) -> impl Iterator<Item = (Code, &Row)> {
    codes::all().into_iter().zip(&record.rows).inspect(|(code, row)| assert_eq!(code.name(), row.name))
}

/// Pearson's statistic over the record's bins, and what it exceeds once in 30,000 times.
fn chi_squared(row: &Row, theory: &Dense) -> (f64, f64) {
    let mut bins: Vec<(f64, f64)> = Vec::new();
    let mut below = 0.0;
    for (&(_, limit), &found) in record::BINS.iter().zip(&row.bins) {
        let upto = theory.at_most(limit);
        let expected = (upto - below) * row.trials as f64;
        below = upto;
        match bins.last_mut() {
            // A bin of few is added to the one before.
            Some(last) if expected < 5.0 => *last = (last.0 + expected, last.1 + found as f64),
            _ => bins.push((expected, found as f64)),
        }
    }
    let statistic = bins.iter().map(|(expected, found)| (found - expected).powi(2) / expected).sum();
    let freedom = bins.len() as f64 - 1.0;
    // Wilson and Hilferty's approximation (1931), 4 standard deviations out; one bin leaves nothing to compare.
    let spread = 2.0 / (9.0 * freedom.max(1.0));
    (statistic, freedom.max(0.01) * (1.0 - spread + 4.0 * spread.sqrt()).powi(3))
}

/// The overheads of `trials` trials of each code, the codes shared out among threads.
fn in_parallel(codes: Vec<Code>, trials: u64) -> Vec<(Code, Vec<u64>)> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut done: Vec<(usize, Vec<u64>)> = std::thread::scope(|scope| {
        let work = || {
            let mut done = Vec::new();
            while let number = next.fetch_add(1, Ordering::Relaxed)
                && let Some(code) = codes.get(number)
            {
                done.push((number, code.overheads(trials)));
            }
            done
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a trial fails by itself")).collect()
    });
    done.sort();
    codes.into_iter().zip(done.into_iter().map(|(_, overheads)| overheads)).collect()
}
