//! The traffic of links, over the repeats of a case.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_twin::results::{Document, Run};

/// One direction between two nodes, with all parallel links.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Load {
    pub(crate) from: String,
    pub(crate) to: String,
    /// Bytes that entered it: the mean over repeats.
    pub(crate) bytes: f64,
    /// The mean over repeats of the maximum utilisation of parallel links; `None` if no link has a rate.
    pub(crate) utilisation: Option<f64>,
    /// Frames lost over frames sent, of all repeats; `None` if none was sent.
    pub(crate) lost: Option<f64>,
    /// Seconds of the measurement window for which it was down: the mean over repeats of the maximum of parallel links.
    pub(crate) down_s: f64,
}

/// The directions that carried something or were down in these runs, in the order of first appearance.
pub(crate) fn loads<'r>(runs: impl Iterator<Item = &'r Run>) -> Vec<Load> {
    #[derive(Default)]
    struct Sum {
        order: usize,
        sent: u64,
        bytes: u64,
        lost: u64,
        utilisation: Vec<f64>,
        down_s: Vec<f64>,
    }
    let mut sums: BTreeMap<(&str, &str), Sum> = BTreeMap::new();
    let mut repeats = 0_u32;
    for run in runs {
        repeats += 1;
        let mut busiest: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        let mut down: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        for link in &run.links {
            let ends = (link.from.as_str(), link.to.as_str());
            let order = sums.len();
            let sum = sums.entry(ends).or_insert_with(|| Sum { order, ..Sum::default() });
            sum.sent += link.sent_packets;
            sum.bytes += link.sent_bytes;
            sum.lost += link.lost_packets;
            let longest = down.entry(ends).or_default();
            *longest = longest.max(link.down_s);
            if let Some(utilisation) = link.utilisation {
                let limit = busiest.entry(ends).or_default();
                *limit = limit.max(utilisation);
            }
        }
        for (ends, utilisation) in busiest {
            sums.entry(ends).or_default().utilisation.push(utilisation);
        }
        for (ends, down_s) in down {
            sums.entry(ends).or_default().down_s.push(down_s);
        }
    }
    let was_down = |sum: &Sum| sum.down_s.iter().any(|down_s| *down_s > 0.0);
    let mut carried: Vec<_> = sums.into_iter().filter(|(_, sum)| sum.sent > 0 || was_down(sum)).collect();
    carried.sort_by_key(|(_, sum)| sum.order);
    let load = |((from, to), sum): ((&str, &str), Sum)| Load {
        from: from.to_owned(),
        to: to.to_owned(),
        bytes: sum.bytes as f64 / f64::from(repeats.max(1)),
        utilisation: mean(&sum.utilisation),
        lost: (sum.sent > 0).then(|| sum.lost as f64 / sum.sent as f64),
        down_s: mean(&sum.down_s).unwrap_or(0.0),
    };
    carried.into_iter().map(load).collect()
}

/// The directions that carried something in any run.
pub(crate) fn used(document: &Document) -> BTreeSet<(String, String)> {
    let links = document.runs.iter().flat_map(|run| &run.links).filter(|link| link.sent_packets > 0);
    links.map(|link| (link.from.clone(), link.to.clone())).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
