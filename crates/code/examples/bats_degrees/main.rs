//! The best degree distribution of a BATS code for a network: offline, with a linear program.
//!
//! ```text
//! cargo run --release -p hopcast-code --example bats_degrees -- [OPTIONS]
//!
//!   --batch-size M   packets of a batch (16)
//!   --field Q        elements of the field that batches are recoded in, 2 or 256 (256)
//!   --hops N         lossy hops from the source to the decoder (6)
//!   --loss PERCENT   loss on each, independent (10)
//!   --ranks FILE     instead of these four: the weights of the ranks 0, 1, .. M, separated by white space
//!   --eta SHARE      symbols left to inactivation and precode, above 0 and below 1 (0.1)
//!   --symbols K      no degree is larger; 128 to 256 for codes that short (65535)
//!   --tables         write the defaults that are compiled in, and nothing else
//! ```
//!
//! The distribution goes to the standard output, a degree and its probability in each line, and what it is worth to the
//! standard error.

mod program;
mod table;

use std::error::Error;
use std::fmt::{Display, Write as _};
use std::process::ExitCode;
use std::str::FromStr;

use hopcast_code::bats::ranks::Ranks;

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let options = Options::parse(arguments)?;
    if options.tables {
        print!("{}", source()?);
        return Ok(());
    }
    let ranks = match &options.ranks {
        Some(file) => read(file)?,
        None => table::ranks_after(options.hops, options.loss, options.batch, options.field)?,
    };
    let demand = program::Demand { ranks: ranks.as_slice(), eta: options.eta, symbols: options.symbols };
    let solution = program::solve(demand)?;
    let degrees = table::rounded(&solution);
    for (degree, share) in &degrees {
        println!("{degree} {share:.6}");
    }

    let mean: f64 = degrees.iter().map(|(degree, share)| *degree as f64 * share).sum();
    let rate = (1.0 - options.eta) * solution.theta;
    eprintln!("mean rank            {:9.4} of {}", ranks.mean(), ranks.batch());
    eprintln!("mean effective rank  {:9.4}, the bound", solution.bound);
    eprintln!("theta                {:9.4}", solution.theta);
    eprintln!("theta / mean rank    {:9.4}", solution.theta / ranks.mean());
    eprintln!(
        "decoded for a batch  {rate:9.4}, (1 - eta) theta: {:.2} % of the mean rank",
        100.0 * rate / ranks.mean()
    );
    eprintln!("mean degree          {mean:9.4}");
    Ok(())
}

/// The default tables as the source of `src/bats/degrees/tables.rs`.
fn source() -> Result<String, Box<dyn Error>> {
    let mut source = String::from(HEAD);
    for (q, batch) in table::SIZES {
        let degrees = table::rounded(&table::default_solution(batch, q)?);
        let _ = writeln!(source, "    Table {{ q: {q}, batch: {batch}, degrees: &[");
        for (degree, share) in degrees {
            let _ = writeln!(source, "        ({degree}, {share:.6}),");
        }
        source.push_str("    ] },\n");
    }
    source.push_str("];\n");
    Ok(source)
}

const HEAD: &str = "\
//! The default degree distributions, as `cargo run --release -p hopcast-code --example bats_degrees -- --tables` writes
//! them.

use super::Table;

/// By field and batch size.
#[rustfmt::skip]
pub(super) const TABLES: [Table; 8] = [
";

fn read(file: &str) -> Result<Ranks, Box<dyn Error>> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let number = |word: &str| word.parse().map_err(|error| format!("{file}: {word}: {error}"));
    let weights: Vec<f64> = text.split_whitespace().map(number).collect::<Result<_, String>>()?;
    Ok(Ranks::new(&weights).map_err(|error| format!("{file}: {error}"))?)
}

struct Options {
    batch: usize,
    field: u32,
    hops: usize,
    loss: f64,
    ranks: Option<String>,
    eta: f64,
    symbols: usize,
    tables: bool,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut options = Self {
            batch: 16,
            field: 256,
            hops: table::HOPS,
            loss: table::LOSS_PERCENT,
            ranks: None,
            eta: table::ETA,
            symbols: table::MAX_SYMBOLS,
            tables: false,
        };
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{name} needs a value"));
            match name.as_str() {
                "--batch-size" => options.batch = number(&name, value()?)?,
                "--field" => options.field = number(&name, value()?)?,
                "--hops" => options.hops = number(&name, value()?)?,
                "--loss" => options.loss = number(&name, value()?)?,
                "--ranks" => options.ranks = Some(value()?),
                "--eta" => options.eta = number(&name, value()?)?,
                "--symbols" => options.symbols = number(&name, value()?)?,
                "--tables" => options.tables = true,
                _ => return Err(format!("{name}: no such option").into()),
            }
        }
        if !(1..=128).contains(&options.batch) {
            return Err("--batch-size: 1 to 128".into());
        }
        if !(0.001..1.0).contains(&options.eta) {
            return Err("--eta: 0.001 to 1".into());
        }
        if options.symbols == 0 {
            return Err("--symbols: 1 or more".into());
        }
        Ok(options)
    }
}

fn number<T: FromStr<Err: Display>>(name: &str, value: String) -> Result<T, Box<dyn Error>> {
    Ok(value.parse().map_err(|error| format!("{name} {value}: {error}"))?)
}
