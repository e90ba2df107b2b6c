//! Swept values as columns of the CSV files: numbers in one unit where they have one.

use hopcast_core::{Bytes, Duration, Fraction, Rate};
use hopcast_twin::results::{Document, Run};

use crate::study::value;

/// The column of a swept path.
pub(crate) struct Swept {
    path: String,
    /// The unit of its numbers; `None` if a value is no number.
    unit: Option<Unit>,
}

/// The unit of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Unit {
    Percent,
    Mbps,
    Milliseconds,
    Bytes,
    /// None, or a unit that does not convert, as written: `packets`, `Hz`.
    Own(String),
}

impl Swept {
    pub(crate) fn new(document: &Document, path: String) -> Self {
        let texts = || document.runs.iter().map(|run| value(&run.parameters, &path));
        let own = texts().next().and_then(|text| Some(Unit::Own(parted(&text)?.1.to_owned())));
        let units = [Unit::Percent, Unit::Mbps, Unit::Milliseconds, Unit::Bytes].into_iter().chain(own);
        let unit = units.into_iter().find(|unit| texts().all(|text| unit.number(&text).is_some()));
        Self { path, unit }
    }

    /// The column's name: the path, with the unit that its numbers are in.
    pub(crate) fn heading(&self) -> String {
        let unit = match &self.unit {
            Some(Unit::Percent) => "percent",
            Some(Unit::Mbps) => "mbps",
            Some(Unit::Milliseconds) => "ms",
            Some(Unit::Bytes) => "bytes",
            Some(Unit::Own(unit)) => unit,
            None => "",
        };
        if unit.is_empty() { self.path.clone() } else { format!("{}_{}", self.path, unit.to_lowercase()) }
    }

    /// The value of a run.
    pub(crate) fn cell(&self, run: &Run) -> String {
        let text = value(&run.parameters, &self.path);
        let number = self.unit.as_ref().and_then(|unit| unit.number(&text));
        number.map_or(text, |number| number.to_string())
    }
}

impl Unit {
    /// The number that `text` is in this unit, if it is one.
    fn number(&self, text: &str) -> Option<f64> {
        match self {
            // Its display has no rounding errors of binary fractions.
            Self::Percent => parted(&text.parse::<Fraction>().ok()?.to_string()).map(|(number, _)| number),
            Self::Mbps => text.parse::<Rate>().ok().map(Rate::as_mbit),
            Self::Milliseconds => text.parse::<Duration>().ok().map(|span| span.as_nanos() as f64 / 1e6),
            Self::Bytes => text.parse::<Bytes>().ok().map(|size| size.get() as f64),
            Self::Own(unit) => parted(text).filter(|(_, own)| own == unit).map(|(number, _)| number),
        }
    }
}

/// A number and the word that follows it, if there is nothing else.
fn parted(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || "+-._".contains(c))).unwrap_or(text.len());
    let number: f64 = text[..end].replace('_', "").parse().ok()?;
    let unit = text[end..].trim();
    unit.chars()
        .all(char::is_alphabetic)
        .then_some((number, unit))
        .or((unit == "%").then_some((number, unit)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn column(values: &[&str]) -> (String, Vec<String>) {
        let run = |value: &&str| Run {
            parameters: json!({ "a.b": value }).as_object().cloned().unwrap_or_default(),
            ..Run::default()
        };
        let document = Document { runs: values.iter().map(run).collect(), ..Document::default() };
        let swept = Swept::new(&document, "a.b".into());
        (swept.heading(), document.runs.iter().map(|run| swept.cell(run)).collect())
    }

    #[test]
    fn swept_values_of_one_kind_are_numbers_with_the_unit_in_the_name() {
        for (values, heading, cells) in [
            (["0 %", "7 %"], "a.b_percent", ["0", "7"]),
            (["500 kbit/s", "1.5 Gbit/s"], "a.b_mbps", ["0.5", "1500"]),
            (["300us", "2 s"], "a.b_ms", ["0.3", "2000"]),
            (["1472 B", "64 KiB"], "a.b_bytes", ["1472", "65536"]),
            (["100 packets", "1000 packets"], "a.b_packets", ["100", "1000"]),
            (["5 Hz", "50 Hz"], "a.b_hz", ["5", "50"]),
            (["2", "6"], "a.b", ["2", "6"]),
        ] {
            assert_eq!(column(&values), (heading.to_owned(), cells.map(str::to_owned).to_vec()));
        }
    }

    #[test]
    fn swept_values_of_several_kinds_stay_as_they_are_written() {
        for values in
            [["none", "5 %"], ["5 %", "5 ms"], ["udp", "tcp-cubic"], ["2", "2 packets"], ["n2", "n4"]]
        {
            assert_eq!(column(&values), ("a.b".to_owned(), values.map(str::to_owned).to_vec()));
        }
    }
}
