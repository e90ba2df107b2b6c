//! Figures to show beside ours, which were published, measured or calculated, from a CSV with a header.
//!
//! ```yaml
//! published:
//!   file: bats-six-hop.csv
//!   flow: bulk                                     # the flow of the figures; all flows if absent
//!   match: { link_loss: events.loss.loss, protocol: flows.bulk.over }     # CSV column: swept path
//!   figures: { throughput_mbps: goodput_mbps, reliability_percent: { reliability: 1 % } }
//! ```

use std::collections::BTreeMap;

use super::files::Contents;
use super::model::{Case, Published};
use super::sweep::{Sweep, plain};
use hopcast_config::Diagnostic;
use hopcast_config::decode::{self, Fields, choice, did_you_mean, entries, listed, one_or_list, share};
use hopcast_config::yaml::{Entry, Node};

/// The keys under which a scenario has such figures, one of them: each says where they are from.
pub(crate) const ORIGINS: [&str; 3] = ["published", "measured", "expected"];

/// Our names of the figures that a publication may have, without those of distributions.
const FIGURES: [&str; 14] = [
    "goodput_mbps",
    "sent_units",
    "delivered_units",
    "reliability",
    "min_cut_fraction",
    "payload_bound_fraction",
    "completed_s",
    "jitter_ms",
    "network_bytes",
    "sender_bytes",
    "nacks_per_round",
    "network_saving",
    "sender_saving",
    "time_saving",
];
const DISTRIBUTIONS: [&str; 2] = ["latency_ms", "round_trip_ms"];
const OF_A_DISTRIBUTION: [&str; 6] = ["mean", "p50", "p95", "p99", "p99_9", "max"];

/// Every row of every table that the scenario names under one of these keys.
pub(crate) fn published(
    tables: Option<(&str, &Node)>,
    sweep: &Sweep<'_>,
    cases: &[Case],
    contents: &Contents,
) -> Result<Vec<Published>, Diagnostic> {
    let mut all = Vec::new();
    if let Some((key, node)) = tables {
        let what = format!("`{key}`");
        for table in one_or_list(node) {
            all.extend(Table::of(&what, table, sweep, cases)?.rows(contents)?);
        }
    }
    Ok(all)
}

struct Table<'a> {
    file: &'a Node,
    flow: Option<String>,
    /// CSV columns, each with the swept path that it matches and the path's values.
    matches: Vec<(&'a Entry, &'a str, Vec<String>)>,
    /// CSV columns, each with our name of the figure and the factor to our unit.
    figures: Vec<(&'a Entry, String, f64)>,
}

impl<'a> Table<'a> {
    fn of(what: &'a str, node: &'a Node, sweep: &Sweep<'a>, cases: &[Case]) -> Result<Self, Diagnostic> {
        let fields = Fields::of(node, what, &["file", "flow", "match", "figures"])?;
        let file = fields.need("file", "file: table.csv")?;
        let flow = match fields.get("flow") {
            None => None,
            Some(node) => {
                let found = decode::text(node, "flow")?;
                let flows = cases.first().map(|case| case.scenario.flows.as_slice()).unwrap_or_default();
                if !flows.iter().any(|flow| flow.name == found || flow.senders.as_deref() == Some(found)) {
                    let hint = did_you_mean(found, flows.iter().map(|flow| flow.name.as_str()));
                    return Err(node.error(format!("`flow`: there is no flow `{found}`{hint}")));
                }
                Some(found.to_owned())
            }
        };
        let mut matches = Vec::new();
        if let Some(node) = fields.get("match") {
            for entry in entries(node, "`match`")? {
                matches.push(swept(entry, sweep)?);
            }
        }
        let mut figures = Vec::new();
        for entry in entries(fields.need("figures", "figures: { throughput: goodput_mbps }")?, "`figures`")? {
            figures.push(figure(entry)?);
        }
        Ok(Self { file, flow, matches, figures })
    }

    fn rows(&self, contents: &Contents) -> Result<Vec<Published>, Diagnostic> {
        let (text, path) = contents.table(self.file, "file")?;
        let name = path.display().to_string();
        let mut reader =
            csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
        let broken = |error: &csv::Error| {
            let line = error.position().map_or(1, |position| position.line() as usize);
            Diagnostic::at(name.as_str(), line, 1, format!("this is not a CSV table: {error}"))
        };
        let header = reader.headers().map_err(|error| broken(&error))?.clone();
        let column = |entry: &Entry| match header.iter().position(|column| column == entry.key) {
            Some(column) => Ok(column),
            None => {
                let (hint, columns) = (did_you_mean(&entry.key, &header), header.iter().collect::<Vec<_>>());
                Err(entry.key_span.error(format!(
                    "`{name}` has no column `{}`{hint} (its columns: {})",
                    entry.key,
                    columns.join(", ")
                )))
            }
        };
        let matches: Result<Vec<_>, _> =
            self.matches.iter().map(|(entry, path, values)| Ok((column(entry)?, *path, values))).collect();
        let figures: Result<Vec<_>, _> =
            self.figures.iter().map(|(entry, figure, one)| Ok((column(entry)?, figure, *one))).collect();
        let (matches, figures) = (matches?, figures?);

        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| broken(&error))?;
            let cell = |column: usize| record.get(column).unwrap_or_default();
            let parameters = matches
                .iter()
                .map(|(column, path, values)| (path.to_string(), as_swept(cell(*column), values)));
            let mut found = BTreeMap::new();
            for (column, figure, one) in &figures {
                match cell(*column) {
                    "" => {}
                    text => match text.parse::<f64>() {
                        Ok(number) if number.is_finite() => {
                            found.insert((*figure).clone(), number * one);
                        }
                        Ok(_) | Err(_) => {
                            let line = record.position().map_or(1, |position| position.line() as usize);
                            let before: usize =
                                record.iter().take(*column).map(|cell| cell.chars().count() + 1).sum();
                            let message =
                                format!("`{}`: expected a number, found `{text}`", &header[*column]);
                            return Err(Diagnostic::at(name.as_str(), line, before + 1, message));
                        }
                    },
                }
            }
            rows.push(Published {
                parameters: parameters.collect(),
                flow: self.flow.clone(),
                figures: found,
            });
        }
        Ok(rows)
    }
}

fn swept<'a>(entry: &'a Entry, sweep: &Sweep<'a>) -> Result<(&'a Entry, &'a str, Vec<String>), Diagnostic> {
    let wanted = decode::text(&entry.value, "match")?;
    let paths = sweep.paths();
    match paths.iter().find(|(path, _)| *path == wanted) {
        Some((path, values)) => Ok((entry, path, values.clone())),
        None => {
            let paths: Vec<_> = paths.iter().map(|(path, _)| *path).collect();
            let hint = did_you_mean(wanted, paths.iter().copied());
            let all = if paths.is_empty() { "nothing".to_owned() } else { listed(&paths) };
            Err(entry.value.error(format!("`match`: `{wanted}` is not swept{hint} (swept here: {all})")))
        }
    }
}

/// Reads `goodput_mbps`, or `{ reliability: 1 % }` where the published unit is a hundredth of ours.
fn figure(entry: &Entry) -> Result<(&Entry, String, f64), Diagnostic> {
    let distributions = DISTRIBUTIONS
        .iter()
        .flat_map(|figure| OF_A_DISTRIBUTION.iter().map(move |quantile| format!("{figure}.{quantile}")));
    let all: Vec<String> = FIGURES.iter().map(|figure| (*figure).to_owned()).chain(distributions).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let (figure, _, one) = choice(&entry.value, "figures", &all)?;
    let one = one.map_or(Ok(1.0), |node| share(node, figure).map(|share| share.get()))?;
    Ok((entry, figure.to_owned(), one))
}

/// A cell in the spelling of the sweep's equal value, so that `5%` matches `5 %`; unchanged if there is none.
pub(crate) fn as_swept(cell: &str, values: &[String]) -> String {
    values.iter().find(|value| plain(value) == plain(cell)).cloned().unwrap_or_else(|| cell.to_owned())
}
