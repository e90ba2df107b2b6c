//! Counters of protocols, by place.
//!
//! A counter's name is `place.family_detail`: the place is the node's name for relays, and absent for the ends.
//! Counters whose detail is a number (`rank_16`, `batch_losses_2`) are a distribution; counters that are parts of a sum
//! (bytes and packets by cause) are shown with their shares.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_twin::results::Run;

use super::cases::mean;
use super::sheet::{Column, Sheet};
use crate::number::{self, number, percent};
use crate::study::distinct;

/// Maximum number of places with a column of their own. Chosen: more do not fit the width of a page.
const MAX_PLACES: usize = 12;
/// Title of the column of the ends.
const ENDS: &str = "ends";
/// Families whose counters are parts of a sum.
const WHOLES: [&str; 2] = ["bytes", "packets"];

/// A function from the values of a distribution with their counts, and the sum of the counts, to a cell of a table.
type Shown<'s> = dyn Fn(&[(u64, f64)], f64) -> Option<String> + 's;

/// The tables of each flow with counters.
pub(super) fn counters(runs: &[&Run]) -> String {
    let several = runs[0].flows.len() > 1;
    let mut out = String::new();
    for place in 0..runs[0].flows.len() {
        let of = if several { format!(" of {}", runs[0].flows[place].name) } else { String::new() };
        let counts = Counts::of(runs, place);
        out.push_str(&counts.sheet(format!("What the protocols counted{of}")).html());
        out.push_str(&counts.distributions(format!("Distributions{of}: means, and shares in %")).html());
    }
    out
}

/// A flow's counters, as means over the repeats; without zeros.
struct Counts {
    places: Vec<String>,
    /// Plain counters, by counter and place.
    counts: BTreeMap<(String, String), f64>,
    /// Distributions, by family, value and place.
    values: BTreeMap<(String, u64, String), f64>,
}

impl Counts {
    fn of(runs: &[&Run], flow: usize) -> Self {
        let maps: Vec<&BTreeMap<String, u64>> =
            runs.iter().filter_map(|run| Some(&run.flows.get(flow)?.counters)).collect();
        let names: BTreeSet<&String> = maps.iter().flat_map(|counters| counters.keys()).collect();
        let (mut counts, mut values) = (BTreeMap::new(), BTreeMap::new());
        for name in names {
            // A counter that a run does not have was zero there.
            let count =
                mean(maps.iter().map(|counters| Some(counters.get(name).copied().unwrap_or(0) as f64)));
            let Some(count) = count.filter(|count| *count > 0.0) else { continue };
            let (place, counter) = name.rsplit_once('.').unwrap_or((ENDS, name));
            let value =
                counter.rsplit_once('_').and_then(|(family, value)| Some((family, value.parse().ok()?)));
            match value {
                Some((family, value)) => {
                    values.insert((family.to_owned(), value, place.to_owned()), count);
                }
                None => {
                    counts.insert((counter.to_owned(), place.to_owned()), count);
                }
            }
        }
        let places = counts.keys().map(|(_, place)| place).chain(values.keys().map(|(_, _, place)| place));
        let mut places = distinct(places.cloned());
        // The ends first, then n2 before n10.
        places.sort_by_key(|place| (place != ENDS, place.len(), place.clone()));
        places.truncate(MAX_PLACES);
        Self { places, counts, values }
    }

    fn columns(&self, first: &str) -> Vec<Column> {
        let places = self.places.iter().map(|place| Column::number(place, ""));
        [Column::name(first)].into_iter().chain(places).collect()
    }

    fn sheet(&self, caption: String) -> Sheet {
        let names = distinct(self.counts.keys().map(|(name, _)| name.as_str()));
        let family = |name: &str| name.split('_').next().unwrap_or_default().to_owned();
        let whole = |wanted: &str, place: &String| -> f64 {
            let of_family =
                self.counts.iter().filter(|((name, at), _)| at == place && family(name) == wanted);
            of_family.map(|(_, count)| count).sum()
        };
        let mut rows = Vec::new();
        let mut before = String::new();
        for name in names {
            let family = family(name);
            let cell = |place: &String| {
                let count = *self.counts.get(&(name.to_owned(), place.clone()))?;
                let share = WHOLES.contains(&family.as_str()).then(|| count * 100.0 / whole(&family, place));
                let share =
                    share.filter(|share| *share < 100.0).map(|share| format!(" ({} %)", percent(share)));
                Some(format!("{}{}", number::count(count), share.unwrap_or_default()))
            };
            let cells =
                [Some(name.replace('_', " "))].into_iter().chain(self.places.iter().map(cell)).collect();
            rows.push((!rows.is_empty() && family != before, cells));
            before = family;
        }
        Sheet { caption, columns: self.columns("counter"), rows }
    }

    /// The share of each value of a distribution, and the mean.
    fn distributions(&self, caption: String) -> Sheet {
        let mut rows = Vec::new();
        for family in distinct(self.values.keys().map(|(family, ..)| family.as_str())) {
            let of = |place: &String| -> Vec<(u64, f64)> {
                let here = self.values.iter().filter(|((name, _, at), _)| name == family && at == place);
                here.map(|((_, value, _), count)| (*value, *count)).collect()
            };
            let title = family.replace('_', " ");
            let row = |label: String, cell: &Shown<'_>| {
                let cells = self.places.iter().map(|place| {
                    let of_place = of(place);
                    let all: f64 = of_place.iter().map(|(_, count)| count).sum();
                    (all > 0.0).then(|| cell(&of_place, all)).flatten()
                });
                [Some(label)].into_iter().chain(cells).collect::<Vec<_>>()
            };
            let middle = |values: &[(u64, f64)], all: f64| {
                Some(number(values.iter().map(|(value, count)| *value as f64 * count).sum::<f64>() / all))
            };
            rows.push((!rows.is_empty(), row(format!("{title}: mean"), &middle)));
            let values: BTreeSet<u64> =
                self.values.keys().filter(|(name, ..)| name == family).map(|(_, value, _)| *value).collect();
            for value in values {
                let share = |values: &[(u64, f64)], all: f64| {
                    let (_, count) = values.iter().find(|(own, _)| *own == value)?;
                    Some(percent(count * 100.0 / all))
                };
                rows.push((false, row(format!("{title} {value}"), &share)));
            }
        }
        Sheet { caption, columns: self.columns("value"), rows }
    }
}
