//! The pictures of a study.

use hopcast_twin::results::{Document, Run, Summary};

use crate::Topology;
use crate::study::{FlowGroup, Study, distinct};

pub(crate) mod canvas;
mod cdf;
mod chart;
mod label;
mod load;
mod network;
mod series;
pub(crate) mod theme;
mod throughput;

/// One picture, for a wide page or a file and for a narrow page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plot {
    /// The name of its file in `plots/`, without `.svg`.
    pub file_stem: String,
    /// What it shows.
    pub caption: String,
    pub(crate) section: Section,
    /// What chooses it among the pictures of its section: names with values, as the page's selectors show them.
    pub(crate) keys: Vec<(&'static str, String)>,
    wide: String,
    narrow: String,
}

/// The parts of a report that have pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Throughput,
    Latency,
    Series,
    Network,
}

/// How much room a picture has.
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

    /// The picture as a file of its own, with a margin: it brings its style, light and dark.
    pub fn standalone(&self) -> String {
        canvas::standalone(&self.wide, &theme::style())
    }

    /// The picture for a page that has [`theme::style`], by the size of the page.
    pub(crate) fn inline(&self, size: Size) -> &str {
        match size {
            Size::Wide => &self.wide,
            Size::Narrow => &self.narrow,
        }
    }
}

/// Every picture of a document: goodput over the sweep, and for each case the latency, the series and the network.
pub fn plots(document: &Document, topology: &Topology) -> Vec<Plot> {
    if document.summary.is_empty() {
        return Vec::new();
    }
    let study = Study::new(document);
    let mut plots = throughput::plots(&study);
    plots.extend(cdf::plots(&study));
    plots.extend(series::plots(&study));
    plots.extend(network::plots(&study, topology));
    for (index, plot) in plots.iter_mut().enumerate() {
        // Names of users' files can be the same once they are fit for a file system.
        plot.file_stem = format!("{:03}-{}", index + 1, plot.file_stem);
    }
    plots
}

/// The keys of a picture of one case and flow group.
fn keys(study: &Study<'_>, case: &[String], group: &FlowGroup) -> Vec<(&'static str, String)> {
    let mut keys = Vec::new();
    if study.cases.len() > 1 {
        keys.push(("case", study.case_label(case)));
    }
    if study.groups.len() > 1 {
        keys.push(("flow", group.name.clone()));
    }
    keys
}

/// `of these keys` for captions and file names.
fn describe(keys: &[(&'static str, String)]) -> String {
    let values: Vec<&str> = keys.iter().map(|(_, value)| value.as_str()).collect();
    values.join(", ")
}

/// The lines of one case and flow group: label, and the runs with the flow's name.
fn lines<'d>(study: &Study<'d>, case: &[String], group: &FlowGroup) -> Vec<(String, Vec<(&'d Run, String)>)> {
    let of_case = |row: &&Summary| group.flows.contains(&row.flow) && study.case_key(&row.parameters) == case;
    let rows: Vec<&Summary> = study.document.summary.iter().filter(of_case).collect();
    let labels = distinct(rows.iter().map(|row| study.line_of(row)));
    labels
        .into_iter()
        .map(|label| {
            let rows = rows.iter().filter(|row| study.line_of(row) == label);
            let runs = rows.flat_map(|row| {
                let runs = study.document.runs.iter().filter(|run| run.parameters == row.parameters);
                runs.map(|run| (run, row.flow.clone()))
            });
            let runs = runs.collect();
            (label, runs)
        })
        .collect()
}

/// What is left of a name in a file name.
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
    fn any_name_makes_a_file_name() {
        assert_eq!(slug("latency-loss 5 %, ../<x>"), "latency-loss-5-x");
        assert_eq!(slug("///"), "");
    }
}
