//! Two runs side by side: their differences, and the significance of these.

use hopcast_twin::results::{Document, Mean, Parameters, Summary};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::figure::{Measure, measure_of};
use crate::study::{distinct, short_names, value};
use crate::welch::{Difference, difference};

mod page;
mod table;

pub use page::page;
pub use table::table;

/// The figures of all cases and flows that are in both documents.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Name of the first run.
    pub a: String,
    /// Name of the second run.
    pub b: String,
    /// The figures, in the order of the first run.
    pub figures: Vec<Compared>,
    /// Cases and flows of the first run only.
    pub only_a: Vec<FlowCase>,
    /// Cases and flows of the second run only.
    pub only_b: Vec<FlowCase>,
}

/// A flow of a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowCase {
    /// Parameters that distinguish the case from others.
    pub parameters: Parameters,
    /// The flow's name.
    pub flow: String,
    /// The transport, stack or variant.
    pub protocol: String,
}

/// One figure of one flow in one case.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The case and flow.
    #[serde(flatten)]
    pub case: FlowCase,
    /// The figure's name in the document, such as `latency_ms.p99`.
    pub figure: String,
    /// Its mean in the first run.
    pub a: Mean,
    /// Its mean in the second run.
    pub b: Mean,
    /// The second minus the first.
    #[serde(flatten)]
    pub difference: Difference,
}

impl Comparison {
    /// Compares two documents with these names.
    pub fn new(documents: [&Document; 2], names: [String; 2]) -> Self {
        let [a, b] = names;
        let [ours, theirs] = documents.map(|document| document.summary.as_slice());
        let mut figures = Vec::new();
        for row in ours {
            let Some(other) = theirs.iter().find(|other| same(row, other)) else { continue };
            let others = leaves(&other.figures);
            for (figure, a) in leaves(&row.figures) {
                if let Some((_, b)) = others.iter().find(|(name, _)| *name == figure) {
                    let difference = difference(a, *b);
                    figures.push(Compared { case: FlowCase::of(row), figure, a, b: *b, difference });
                }
            }
        }
        let only = |rows: &[Summary], others: &[Summary]| {
            let alone = rows.iter().filter(|row| !others.iter().any(|other| same(row, other)));
            alone.map(FlowCase::of).collect()
        };
        Self { a, b, figures, only_a: only(ours, theirs), only_b: only(theirs, ours) }
    }

    /// The figures that tables show, each with its presentation.
    fn shown(&self) -> impl Iterator<Item = (&Compared, &'static Measure)> {
        self.figures.iter().filter_map(|compared| Some((compared, measure_of(&compared.figure)?)))
    }

    /// The columns that distinguish the rows: paths with more than one value, the flow and the protocol, unless they
    /// add no information.
    fn leading(&self) -> Leading {
        let cases = || {
            let figures = self.figures.iter().map(|compared| &compared.case);
            figures.chain(&self.only_a).chain(&self.only_b)
        };
        let paths = distinct(cases().flat_map(|case| case.parameters.keys().cloned()));
        let several = |path: &String| distinct(cases().map(|case| value(&case.parameters, path))).len() > 1;
        let paths: Vec<String> = paths.into_iter().filter(several).collect();
        let says_protocol =
            |path: &String| cases().all(|case| value(&case.parameters, path) == case.protocol);
        Leading {
            names: short_names(&paths),
            flow: distinct(cases().map(|case| case.flow.as_str())).len() > 1,
            protocol: !paths.iter().any(says_protocol),
            paths,
        }
    }

    /// The result, in a sentence.
    fn verdict(&self) -> String {
        let (mut differ, mut alike, mut unknown) = (0, 0, 0);
        for (compared, _) in self.shown() {
            match compared.difference.significant {
                Some(true) => differ += 1,
                Some(false) => alike += 1,
                None => unknown += 1,
            }
        }
        let all = differ + alike;
        let mut verdict = match (all, differ) {
            (0, _) if unknown == 0 => "There is nothing to compare: no case and flow is in both.".to_owned(),
            (0, _) => String::new(),
            (_, 0) => format!("None of {all} figures differs by more than chance."),
            _ => format!(
                "{differ} of {all} figures differ at the 95 % level, where {} would by chance.",
                crate::number::plain((all as f64 * 0.05).round())
            ),
        };
        if unknown > 0 {
            let figures = if unknown == 1 { "figure has" } else { "figures have" };
            verdict.push_str(&format!(" {unknown} {figures} too few repeats to tell."));
        }
        verdict.trim_start().to_owned()
    }
}

impl FlowCase {
    fn of(row: &Summary) -> Self {
        Self { parameters: row.parameters.clone(), flow: row.flow.clone(), protocol: row.protocol.clone() }
    }
}

/// The columns before the figures.
struct Leading {
    paths: Vec<String>,
    /// Names of the paths.
    names: Vec<String>,
    flow: bool,
    protocol: bool,
}

impl Leading {
    fn titles(&self) -> Vec<&str> {
        let names = self.names.iter().map(String::as_str);
        names.chain(self.flow.then_some("flow")).chain(self.protocol.then_some("protocol")).collect()
    }

    fn cells(&self, case: &FlowCase) -> Vec<String> {
        let values = self.paths.iter().map(|path| value(&case.parameters, path));
        let flow = self.flow.then(|| case.flow.clone());
        values.chain(flow).chain(self.protocol.then(|| case.protocol.clone())).collect()
    }
}

/// Whether two rows are of the same case and flow. The protocol may differ if it is not swept: then the comparison is
/// of protocols.
fn same(a: &Summary, b: &Summary) -> bool {
    a.flow == b.flow && a.parameters == b.parameters
}

/// Every figure with its name, in the order of the document.
fn leaves(figures: &Map<String, Value>) -> Vec<(String, Mean)> {
    let mut leaves = Vec::new();
    for (name, figure) in figures {
        let Some(fields) = figure.as_object() else { continue };
        match serde_json::from_value::<Mean>(figure.clone()) {
            Ok(mean) => leaves.push((name.clone(), mean)),
            Err(_) => leaves.extend(
                self::leaves(fields).into_iter().map(|(inner, mean)| (format!("{name}.{inner}"), mean)),
            ),
        }
    }
    leaves
}
