//! Reading a sweep: what varies, what chooses the protocol, and what an axis can be made of.

use std::collections::BTreeSet;

use hopcast_twin::results::{Document, Parameters, Summary};
use serde_json::Value;

mod quantity;

pub(crate) use quantity::axis_values;

/// A document as its sweep orders it.
///
/// A *case* here is one setting of the parameters that do not choose a protocol, and a *line* is what is compared
/// within a case: a protocol, or a flow where each flow has one protocol only.
pub(crate) struct Study<'d> {
    pub(crate) document: &'d Document,
    /// The paths that take more than one value, in the order of the sweep.
    pub(crate) varying: Vec<String>,
    /// Those of them that choose a protocol.
    pub(crate) choosing: Vec<String>,
    /// Each case's values of the other varying paths.
    pub(crate) cases: Vec<Vec<String>>,
    /// The names of the flows.
    pub(crate) flows: Vec<String>,
    /// Which flows are compared with each other: all, or each with itself over other protocols.
    pub(crate) groups: Vec<FlowGroup>,
    /// Every line's label; the place is its colour.
    pub(crate) lines: Vec<String>,
}

/// Flows that share a plot.
pub(crate) struct FlowGroup {
    pub(crate) name: String,
    pub(crate) flows: Vec<String>,
}

impl<'d> Study<'d> {
    pub(crate) fn new(document: &'d Document) -> Self {
        let varying = varying(&document.summary);
        let choosing = varying.iter().filter(|path| chooses(document, path)).cloned().collect();
        let flows = distinct(document.summary.iter().map(|summary| summary.flow.clone()));
        let mut study = Self {
            document,
            varying,
            choosing,
            cases: Vec::new(),
            flows,
            groups: Vec::new(),
            lines: Vec::new(),
        };
        study.cases = distinct(document.summary.iter().map(|summary| study.case_key(&summary.parameters)));
        study.groups = study.flow_groups();
        study.lines = distinct(document.summary.iter().map(|summary| study.line_of(summary)));
        study
    }

    /// The varying paths that do not choose a protocol.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &String> {
        self.varying.iter().filter(|path| !self.choosing.contains(path))
    }

    /// Which case these parameters belong to.
    pub(crate) fn case_key(&self, parameters: &Parameters) -> Vec<String> {
        self.conditions().map(|path| value(parameters, path)).collect()
    }

    /// A case for a caption: `loss 5 %, delay 10ms`; empty if there is only one.
    pub(crate) fn case_label(&self, case: &[String]) -> String {
        let names = short_names(&self.varying);
        let of = |path: &String| self.varying.iter().position(|other| other == path).map(|at| &names[at]);
        let parts = self.conditions().zip(case);
        let parts: Vec<String> =
            parts.map(|(path, value)| format!("{} {value}", of(path).unwrap_or(path))).collect();
        parts.join(", ")
    }

    /// What this row is called among those it is compared with.
    pub(crate) fn line_of(&self, summary: &Summary) -> String {
        self.line(&summary.flow, &summary.protocol, &summary.parameters)
    }

    /// What a flow of a run is called among those it is compared with.
    pub(crate) fn line(&self, flow: &str, protocol: &str, parameters: &Parameters) -> String {
        if self.compares_flows() {
            return format!("{flow} · {protocol}");
        }
        let same = |other: &&Summary| other.flow == flow && other.protocol == protocol;
        let choices = self.document.summary.iter().filter(same).map(|other| self.choice(&other.parameters));
        if choices.collect::<BTreeSet<_>>().len() < 2 {
            return protocol.to_owned();
        }
        format!("{protocol} ({})", self.choice(parameters).join(", "))
    }

    /// The values of the paths that choose a protocol.
    pub(crate) fn choice(&self, parameters: &Parameters) -> Vec<String> {
        self.choosing.iter().map(|path| value(parameters, path)).collect()
    }

    /// The colour, dash and mark of a line.
    pub(crate) fn style(&self, line: &str) -> usize {
        self.lines.iter().position(|other| other == line).unwrap_or(0)
    }

    /// The path whose values the x axis shows, with its unit and each value's place; the first that is numeric, or
    /// else none.
    pub(crate) fn axis(&self) -> Option<(&String, quantity::AxisValues)> {
        self.conditions().find_map(|path| {
            let values =
                distinct(self.document.summary.iter().map(|summary| value(&summary.parameters, path)));
            axis_values(&values).map(|axis| (path, axis))
        })
    }

    /// Whether the lines of a picture are flows, each with a task of its own, rather than protocols for one task.
    pub(crate) fn compares_flows(&self) -> bool {
        self.flows.len() > 1 && self.choosing.is_empty() && self.flows.len() <= 10
    }

    fn flow_groups(&self) -> Vec<FlowGroup> {
        if self.compares_flows() {
            return vec![FlowGroup { name: "all flows".into(), flows: self.flows.clone() }];
        }
        let alone = |flow: &String| FlowGroup { name: flow.clone(), flows: vec![flow.clone()] };
        self.flows.iter().map(alone).collect()
    }
}

/// A parameter's value as the file has it.
pub(crate) fn value(parameters: &Parameters, path: &str) -> String {
    match parameters.get(path) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

/// Each once, in the order of first appearance.
pub(crate) fn distinct<T: Clone + Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    items.into_iter().filter(|item| seen.insert(item.clone())).collect()
}

/// The last elements of each path, as many as tell it from the others: `events.0.loss` is `loss`.
pub(crate) fn short_names(paths: &[String]) -> Vec<String> {
    let tail = |path: &str, count: usize| {
        let parts: Vec<&str> = path.split('.').collect();
        parts[parts.len().saturating_sub(count)..].join(".")
    };
    let shorten = |path: &String| {
        let longest = path.split('.').count();
        let unique = |count: &usize| {
            paths.iter().filter(|other| *other != path).all(|other| tail(other, *count) != tail(path, *count))
        };
        tail(path, (1..longest).find(unique).unwrap_or(longest))
    };
    paths.iter().map(shorten).collect()
}

fn varying(summary: &[Summary]) -> Vec<String> {
    let paths = distinct(summary.iter().flat_map(|row| row.parameters.keys().cloned()));
    let several = |path: &String| distinct(summary.iter().map(|row| value(&row.parameters, path))).len() > 1;
    paths.into_iter().filter(several).collect()
}

/// A path chooses a protocol if it is an `over`, or if its value always is a flow's protocol.
fn chooses(document: &Document, path: &str) -> bool {
    path == "over" || path.ends_with(".over") || {
        let is_protocol = |row: &Summary| value(&row.parameters, path) == row.protocol;
        document.summary.iter().all(is_protocol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_as_short_as_its_neighbours_allow() {
        let paths = ["events.loss.loss", "flows.a.over", "flows.b.over", "seed"].map(String::from);
        assert_eq!(short_names(&paths), ["loss", "a.over", "b.over", "seed"]);
    }
}
