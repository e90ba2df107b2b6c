//! The pictures of a study.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_twin::results::{Document, Run};

use crate::Topology;
use crate::study::{Study, grouped};

pub use network::route_picture;

pub(crate) mod canvas;
mod cdf;
mod chart;
mod label;
mod load;
pub(crate) mod map;
mod network;
pub(crate) mod packets;
mod series;
pub(crate) mod theme;
mod throughput;

/// One picture, for a wide page or a file and for a narrow page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plot {
    /// The name of its file in `plots/`, without `.svg`.
    pub file_stem: String,
    /// Its caption.
    pub caption: String,
    pub(crate) section: Section,
    /// The keys that select it among the pictures of its section: names with values, as the page's selectors show them.
    pub(crate) keys: Vec<(&'static str, String)>,
    wide: String,
    narrow: String,
}

/// The parts of a report that have pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    Throughput,
    Latency,
    Series,
    Network,
    Map,
    Packets,
}

/// The space of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Wide,
    Narrow,
}

impl Size {
    /// Width, height without the legend, and font size.
    pub(crate) const fn chart(self) -> (f64, f64, f64) {
        match self {
            Self::Wide => (820.0, 370.0, 13.0),
            Self::Narrow => (340.0, 290.0, 12.5),
        }
    }
}

impl Plot {
    fn new(
        section: Section,
        file_stem: &str,
        caption: String,
        keys: Vec<(&'static str, String)>,
        paint: impl Fn(Size) -> String,
    ) -> Self {
        let (wide, narrow) = (paint(Size::Wide), paint(Size::Narrow));
        Self { file_stem: slug(file_stem), caption, section, keys, wide, narrow }
    }

    /// The picture as a standalone file, with a margin and the light and dark style.
    pub fn standalone(&self) -> String {
        canvas::standalone(&self.wide, &theme::style())
    }

    /// The picture for a page with [`theme::style`], by the size of the page.
    pub(crate) fn inline(&self, size: Size) -> &str {
        match size {
            Size::Wide => &self.wide,
            Size::Narrow => &self.narrow,
        }
    }
}

/// The pictures of a document: goodput over the sweep, and for each case the latency, the series, the network and
/// the maps of ships.
///
/// The number of each kind is limited: of a large study, those of the first flows and cases are drawn.
pub fn plots(document: &Document, topology: &Topology) -> Vec<Plot> {
    pictures(document, topology).plots
}

/// All pictures that are drawn, and the number of each kind that are not.
#[derive(Debug, Default)]
pub(crate) struct Pictures {
    pub(crate) plots: Vec<Plot>,
    pub(crate) left_out: BTreeMap<Section, usize>,
}

pub(crate) fn pictures(document: &Document, topology: &Topology) -> Pictures {
    let study = Study::new(document);
    let mut pictures = Pictures::default();
    let mut all = Vec::new();
    if !document.summary.is_empty() {
        all.push((Section::Throughput, throughput::plots(&study)));
        all.push((Section::Latency, cdf::plots(&study)));
        all.push((Section::Series, series::plots(&study)));
        all.push((Section::Network, network::plots(&study, topology)));
    }
    // Ships can be looked at without a flow.
    all.push((Section::Map, map::plots(&study)));
    for (section, (plots, left_out)) in all {
        pictures.plots.extend(plots);
        pictures.left_out.insert(section, left_out);
    }
    for (index, plot) in pictures.plots.iter_mut().enumerate() {
        // Names of users' files may become equal once they fit a file system.
        plot.file_stem = format!("{:03}-{}", index + 1, plot.file_stem);
    }
    pictures
}

impl Pictures {
    /// Adds the picture of where packets died.
    pub(crate) fn add(&mut self, plot: Plot) {
        let file_stem = format!("{:03}-{}", self.plots.len() + 1, plot.file_stem);
        self.plots.push(Plot { file_stem, ..plot });
    }
}

/// Maximum number of pictures of one kind. Chosen: more take long to draw, and nobody examines them one by one.
const MAX_SECTION_PLOTS: usize = 24;

/// The pictures to draw, of those for these pairs of values of two selectors.
///
/// All combinations of the first few values of both, so that the selectors have no choice without a picture; at least
/// `min` values of the first selector (flows, say), if there are that many.
fn drawn(pairs: &BTreeSet<(usize, usize)>, limit: usize, min: usize) -> BTreeSet<(usize, usize)> {
    let firsts: BTreeSet<usize> = pairs.iter().map(|pair| pair.0).collect();
    let seconds: BTreeSet<usize> = pairs.iter().map(|pair| pair.1).collect();
    if firsts.len() * seconds.len() <= limit {
        return pairs.clone();
    }
    let wide = (limit / seconds.len()).max(min).min(limit).min(firsts.len());
    let deep = (limit / wide).max(1);
    let firsts: BTreeSet<usize> = firsts.into_iter().take(wide).collect();
    let seconds: BTreeSet<usize> = seconds.into_iter().take(deep).collect();
    pairs.iter().filter(|(one, two)| firsts.contains(one) && seconds.contains(two)).copied().collect()
}

/// The keys of a picture of one case and group of flows.
fn keys(study: &Study<'_>, case: usize, group: usize) -> Vec<(&'static str, String)> {
    let mut keys = Vec::new();
    if study.cases.len() > 1 {
        keys.push(("case", study.case_label(&study.cases[case])));
    }
    if study.groups.len() > 1 {
        keys.push(("flow", study.groups[group].clone()));
    }
    keys
}

/// `of these keys` for captions and file names.
fn describe(keys: &[(&'static str, String)]) -> String {
    let values: Vec<&str> = keys.iter().map(|(_, value)| value.as_str()).collect();
    values.join(", ")
}

/// The lines of one case and group of flows, each with its runs and the flow's name in them.
fn lines<'d>(study: &Study<'d>, case: usize, group: usize) -> Vec<(usize, Vec<(&'d Run, &'d str)>)> {
    let runs = study.members(group, case).flat_map(|row| {
        let runs = study.runs_of(&study.setting(&row.summary.parameters)).iter();
        runs.map(|run| (row.line, (*run, row.summary.flow.as_str())))
    });
    grouped(runs)
}

/// A name, reduced to characters for a file name.
fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
    }
    out.chars().take(60).collect::<String>().trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_leaves_no_gap_between_the_selectors() {
        let pairs = |flows: usize, cases: usize| -> BTreeSet<(usize, usize)> {
            (0..flows).flat_map(|flow| (0..cases).map(move |case| (flow, case))).collect()
        };
        assert_eq!(drawn(&pairs(3, 8), 24, 4), pairs(3, 8));
        assert_eq!(drawn(&pairs(1000, 1), 24, 4), pairs(24, 1));
        assert_eq!(drawn(&pairs(1, 1000), 24, 4), pairs(1, 24));
        assert_eq!(drawn(&pairs(1000, 5), 24, 4), pairs(4, 5));
        assert_eq!(drawn(&pairs(100, 100), 24, 4), pairs(4, 6));
        assert_eq!(drawn(&pairs(6, 15), 24, 24), pairs(6, 4));
        assert_eq!(drawn(&pairs(40, 15), 24, 24), pairs(24, 1));
        // Not every pair has a picture.
        let sparse: BTreeSet<_> = (0..100).map(|at| (at, at)).collect();
        assert_eq!(drawn(&sparse, 24, 4), (0..4).map(|at| (at, at)).collect());
    }

    #[test]
    fn any_name_makes_a_file_name() {
        assert_eq!(slug("latency-loss 5 %, ../<x>"), "latency-loss-5-x");
        assert_eq!(slug("///"), "");
    }
}
