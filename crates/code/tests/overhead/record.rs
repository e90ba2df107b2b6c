//! The file of what was measured.

use std::fmt::{self, Write};
use std::fs;

use crate::codes::{self, Code};
use crate::{REPEATED_TRIALS, TRIALS};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/overhead/overhead.txt");

/// The overheads that are counted together: the heading, and the greatest.
pub(crate) const BINS: [(&str, u64); 13] = [
    ("0", 0),
    ("1", 1),
    ("2", 2),
    ("3", 3),
    ("4", 4),
    ("5", 5),
    ("6-9", 9),
    ("10-19", 19),
    ("20-49", 49),
    ("50-99", 99),
    ("100-199", 199),
    ("200-499", 499),
    ("more", u64::MAX),
];

pub(crate) struct Record {
    pub(crate) rows: Vec<Row>,
}

/// The record of a code.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) trials: u64,
    pub(crate) mean: f64,
    theory: String,
    p99: u64,
    pub(crate) max: u64,
    /// The sum over the first few.
    pub(crate) first: u64,
    pub(crate) bins: Vec<u64>,
}

impl Row {
    fn of(code: Code, overheads: &[u64]) -> Self {
        let mut sorted = overheads.to_vec();
        sorted.sort_unstable();
        let mut below = 0;
        let upto = BINS.map(|(_, limit)| sorted.partition_point(|&overhead| overhead <= limit) as u64);
        Self {
            name: code.name(),
            trials: overheads.len() as u64,
            mean: overheads.iter().sum::<u64>() as f64 / overheads.len() as f64,
            theory: code.theory().map_or("-".to_owned(), |theory| format!("{:.4}", theory.mean())),
            p99: sorted[sorted.len() * 99 / 100],
            max: sorted[sorted.len() - 1],
            first: overheads[..REPEATED_TRIALS as usize].iter().sum(),
            bins: upto.iter().map(|&upto| upto - std::mem::replace(&mut below, upto)).collect(),
        }
    }

    fn read(line: &str) -> Option<Self> {
        let (name, figures) = line.split_once(" | ")?;
        let mut figures = figures.split_whitespace();
        let mut whole = || figures.next()?.parse().ok();
        let trials = whole()?;
        let mean = figures.next()?.parse().ok()?;
        let theory = figures.next()?.to_owned();
        let mut whole = || figures.next()?.parse().ok();
        let (p99, max, first) = (whole()?, whole()?, whole()?);
        let bins = figures.map(|count| if count == "." { Ok(0) } else { count.parse() });
        let bins = bins.collect::<Result<Vec<_>, _>>().ok()?;
        (bins.len() == BINS.len() && bins.iter().sum::<u64>() == trials).then(|| Self {
            name: name.trim_end().to_owned(),
            trials,
            mean,
            theory,
            p99,
            max,
            first,
            bins,
        })
    }

    fn line(&self) -> String {
        let Self { name, trials, mean, theory, p99, max, first, bins } = self;
        let mut line =
            format!("{name:<44} | {trials:>6} {mean:>9.4} {theory:>7} {p99:>5} {max:>5} {first:>9}");
        for (count, (heading, _)) in bins.iter().zip(BINS) {
            let count = if *count == 0 { ".".to_owned() } else { count.to_string() };
            let _ = write!(line, " {count:>width$}", width = heading.len().max(5));
        }
        line
    }
}

impl Record {
    /// The record, in which the values of these codes are those measured now.
    pub(crate) fn with(measured: &[(Code, Vec<u64>)]) -> Self {
        let mut recorded = Self::rows();
        let rows = codes::all().into_iter().map(|code| {
            let now = measured.iter().find(|(other, _)| other.name() == code.name());
            let before = recorded.iter().position(|row| row.name == code.name());
            match now {
                Some((_, overheads)) => Row::of(code, overheads),
                None => recorded.swap_remove(before.unwrap_or_else(|| panic!("{code:?} is not recorded"))),
            }
        });
        Self { rows: rows.collect() }
    }

    pub(crate) fn read() -> Self {
        let rows = Self::rows();
        assert_eq!(rows.len(), codes::all().len(), "all are recorded");
        assert!(rows.iter().all(|row| row.trials == TRIALS));
        Self { rows }
    }

    fn rows() -> Vec<Row> {
        let text = text();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| Row::read(line).unwrap_or_else(|| panic!("not a row: {line}"))).collect()
    }

    pub(crate) fn write(&self) {
        fs::write(PATH, self.to_string()).expect("the record is written");
    }
}

/// The file's.
pub(crate) fn text() -> String {
    fs::read_to_string(PATH).unwrap_or_default()
}

/// As it stands in the file.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        let headings = BINS.map(|(heading, _)| format!("{heading:>5}")).join(" ");
        let first = format!("first {REPEATED_TRIALS}");
        writeln!(
            f,
            "# {:<42} | {:>6} {:>9} {:>7} {:>5} {:>5} {first:>9} {headings}",
            "code", "trials", "mean", "theory", "p99", "max"
        )?;
        self.rows.iter().try_for_each(|row| writeln!(f, "{}", row.line()))
    }
}

const HEAD: &str = "\
# Symbols that a receiver needed beyond k (of a repaired one: beyond those lost), and in how many trials so many.
# Recorded by main.rs beside this file, which says how. Theory: the sum of 1 / (q^i - 1) for i = 1 to k.
# BATS: batches arrive with 13.1 packets of 16 on average. Even sampling has the default degrees and a precode; without
# these, the RFC's sampling, and the same with separate seeds, have the degrees of degrees.rs, made for those ranks and K.
";
