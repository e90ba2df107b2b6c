//! Reading a sweep: the parameters that vary, those that choose the protocol, and the possible axes.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_twin::results::{Document, Parameters, Run, Summary};
use serde_json::Value;

mod order;
mod quantity;

pub(crate) use order::{Order, distinct, grouped};
pub(crate) use quantity::{AxisValues, axis_values};

/// A document, ordered by its sweep.
///
/// A *case* is a setting of the parameters that do not choose a protocol. A *line* is an element of the comparison
/// within a case: a protocol, or a flow where each flow has only one protocol. A *group* is the flows that share a
/// plot: all of them, or each one over its protocols. Cases, groups and lines are identified by their indices.
pub(crate) struct Study<'d> {
    pub(crate) document: &'d Document,
    /// The paths that take more than one value, in the order of the sweep.
    pub(crate) varying: Vec<String>,
    /// The short names of the varying paths.
    pub(crate) names: Vec<String>,
    /// The varying paths that choose a protocol or delivery.
    pub(crate) choosing: Vec<String>,
    /// Those of them that lines are called by: the others follow them.
    naming: Vec<String>,
    /// The values of the other varying paths in each case.
    pub(crate) cases: Vec<Vec<String>>,
    /// The names of the flows.
    pub(crate) flows: Vec<String>,
    /// The name of each group.
    pub(crate) groups: Vec<String>,
    /// The label of each line; its index selects its colour.
    pub(crate) lines: Vec<String>,
    /// The summary's rows, in its order.
    pub(crate) rows: Vec<Placed<'d>>,
    /// The path of the x axis, with its unit and the place of each value: that which the file names, or the first that
    /// is numeric; `None` if it is not, or none is.
    pub(crate) axis: Option<(String, AxisValues)>,
    case_places: Order<Vec<String>>,
    flow_places: Order<String>,
    /// The indices of rows, by group and case.
    members: BTreeMap<(usize, usize), Vec<usize>>,
    /// The settings whose runs have several flows.
    crowded: BTreeSet<Setting>,
    runs: BTreeMap<Setting, Vec<&'d Run>>,
}

/// A row of the summary, with the indices of its case, group and line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'d> {
    pub(crate) summary: &'d Summary,
    pub(crate) case: usize,
    pub(crate) group: usize,
    pub(crate) line: usize,
}

/// The values of all varying paths: those of the case, and those that choose the protocol.
pub(crate) type Setting = (Vec<String>, Vec<String>);

impl<'d> Study<'d> {
    pub(crate) fn new(document: &'d Document) -> Self {
        let summary = &document.summary;
        let mut varying = varying(summary);
        let mut choosing: Vec<String> =
            varying.iter().filter(|path| chooses(document, path)).cloned().collect();
        drop_followers(&mut varying, &choosing, summary);
        let naming = choosing.clone();
        let axis = document.axis.as_ref();
        let words = varying.iter().filter(|path| goes_with(path, &choosing, &naming, axis, summary)).cloned();
        choosing.extend(words.collect::<Vec<_>>());
        let flow_places = Order::of(summary.iter().map(|row| row.flow.clone()));
        let mut study = Self {
            document,
            names: short_names(&varying),
            varying,
            choosing,
            naming,
            cases: Vec::new(),
            flows: flow_places.clone().into_vec(),
            groups: Vec::new(),
            lines: Vec::new(),
            rows: Vec::new(),
            axis: None,
            case_places: Order::of([]),
            flow_places,
            members: BTreeMap::new(),
            crowded: BTreeSet::new(),
            runs: BTreeMap::new(),
        };
        study.groups = if study.compares_flows() { vec!["all flows".into()] } else { study.flows.clone() };
        study.place_rows();
        let named = study.named_axis().cloned();
        let possible = study.conditions().filter(|path| named.as_ref().is_none_or(|named| named == *path));
        let axis = possible.into_iter().find_map(|path| {
            let values = distinct(summary.iter().map(|row| value(&row.parameters, path)));
            axis_values(&values).map(|axis| (path.clone(), axis))
        });
        study.axis = axis;
        let of_setting =
            grouped(summary.iter().map(|row| (study.setting(&row.parameters), row.flow.as_str())));
        let several = of_setting.into_iter().filter(|(_, flows)| distinct(flows.iter()).len() > 1);
        study.crowded = several.map(|(setting, _)| setting).collect();
        for run in &document.runs {
            study.runs.entry(study.setting(&run.parameters)).or_default().push(run);
        }
        study
    }

    fn place_rows(&mut self) {
        let mut lines = Order::of([]);
        let labels = self.labels();
        for (index, (summary, label)) in self.document.summary.iter().zip(labels).enumerate() {
            let case = self.case_places.insert(self.case_key(&summary.parameters));
            let group = self.group_of(&summary.flow).unwrap_or_default();
            self.members.entry((group, case)).or_default().push(index);
            self.rows.push(Placed { summary, case, group, line: lines.insert(label) });
        }
        self.lines = lines.into_vec();
        self.cases = self.case_places.clone().into_vec();
    }

    /// The label of each row among the rows of its group.
    fn labels(&self) -> Vec<String> {
        let summary = &self.document.summary;
        if self.compares_flows() {
            return summary.iter().map(|row| format!("{} · {}", row.flow, row.protocol)).collect();
        }
        let key = |row: &'d Summary| (row.flow.as_str(), row.protocol.as_str());
        let choices = grouped(summary.iter().map(|row| (key(row), self.choice(&row.parameters))));
        let several: BTreeMap<_, bool> =
            choices.into_iter().map(|(key, choices)| (key, distinct(choices).len() > 1)).collect();
        let deliveries = !self.naming.is_empty() && self.naming.iter().all(|path| is_delivery(path));
        let label = |row: &'d Summary| {
            let names = self.naming.iter().map(|path| value(&row.parameters, path));
            if !several[&key(row)] {
                row.protocol.clone()
            } else if deliveries {
                names.collect::<Vec<_>>().join(", ")
            } else {
                let others: Vec<String> = names.filter(|name| *name != row.protocol).collect();
                format!("{} ({})", row.protocol, others.join(", "))
            }
        };
        summary.iter().map(label).collect()
    }

    /// The varying paths that do not choose a protocol.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &String> {
        self.varying.iter().filter(|path| !self.choosing.contains(path))
    }

    /// The condition along which the file wants plots to go.
    pub(crate) fn named_axis(&self) -> Option<&String> {
        self.conditions().find(|path| Some(*path) == self.document.axis.as_ref())
    }

    /// The short name of a varying path.
    pub(crate) fn short_name<'p>(&'p self, path: &'p str) -> &'p str {
        self.varying.iter().position(|other| other == path).map_or(path, |at| &self.names[at])
    }

    /// The case of these parameters.
    fn case_key(&self, parameters: &Parameters) -> Vec<String> {
        self.conditions().map(|path| value(parameters, path)).collect()
    }

    /// The index of the case that these parameters belong to, if the summary has it.
    pub(crate) fn case_of(&self, parameters: &Parameters) -> Option<usize> {
        self.case_places.place(&self.case_key(parameters))
    }

    /// A case for a caption: `loss 5 %, delay 10ms`; empty if there is only one.
    pub(crate) fn case_label(&self, case: &[String]) -> String {
        let parts = self.conditions().zip(case);
        let parts: Vec<String> =
            parts.map(|(path, value)| format!("{} {value}", self.short_name(path))).collect();
        parts.join(", ")
    }

    /// The values of the paths that choose a protocol.
    fn choice(&self, parameters: &Parameters) -> Vec<String> {
        self.choosing.iter().map(|path| value(parameters, path)).collect()
    }

    /// A choice for a caption: the values that lines are called by.
    pub(crate) fn choice_label(&self, choice: &[String]) -> String {
        let named = self.choosing.iter().zip(choice).filter(|(path, _)| self.naming.contains(path));
        named.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The values of all varying paths.
    pub(crate) fn setting(&self, parameters: &Parameters) -> Setting {
        (self.case_key(parameters), self.choice(parameters))
    }

    /// Every repeat of this setting.
    pub(crate) fn runs_of(&self, setting: &Setting) -> &[&'d Run] {
        self.runs.get(setting).map_or(&[], Vec::as_slice)
    }

    /// The group of a flow.
    pub(crate) fn group_of(&self, flow: &str) -> Option<usize> {
        let place = self.flow_places.place(&flow.to_owned())?;
        Some(if self.compares_flows() { 0 } else { place })
    }

    /// The rows of a group in one case.
    pub(crate) fn members(&self, group: usize, case: usize) -> impl Iterator<Item = &Placed<'d>> {
        self.members.get(&(group, case)).into_iter().flatten().map(|row| &self.rows[*row])
    }

    /// The rows of a group, by case.
    pub(crate) fn group_members(
        &self,
        group: usize,
    ) -> impl Iterator<Item = (usize, impl Iterator<Item = &Placed<'d>>)> {
        let of_group = self.members.range((group, 0)..(group + 1, 0));
        of_group.map(|((_, case), rows)| (*case, rows.iter().map(|row| &self.rows[*row])))
    }

    /// Whether the runs have other flows, at whose expense one may have its figures.
    pub(crate) fn is_crowded(&self, row: &Summary) -> bool {
        self.crowded.contains(&self.setting(&row.parameters))
    }

    /// Whether the lines of a picture are flows, each with a task of its own, rather than protocols for one task.
    pub(crate) fn compares_flows(&self) -> bool {
        self.flows.len() > 1 && self.choosing.is_empty() && self.flows.len() <= 10
    }
}

/// Figures that are better for a flow that carries more, whatever it leaves to others.
pub(crate) const CARRIED: [&str; 3] = ["goodput_mbps", "min_cut_fraction", "payload_bound_fraction"];

/// A parameter's value, as in the file.
pub(crate) fn value(parameters: &Parameters, path: &str) -> String {
    match parameters.get(path) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

/// The last elements of each path, enough to tell it from the others: `events.0.loss` is `loss`. A `count` says what it
/// counts.
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
        let shortest = if path.ends_with(".count") { 3.min(longest) } else { 1 };
        tail(path, (shortest..longest).find(unique).unwrap_or(longest))
    };
    paths.iter().map(shorten).collect()
}

/// Drops each condition that changes exactly when an earlier one does, as in a `zip`: it adds no information.
fn drop_followers(varying: &mut Vec<String>, choosing: &[String], summary: &[Summary]) {
    let follows = |path: &String, leader: &String| {
        let pairs =
            distinct(summary.iter().map(|row| [leader, path].map(|path| value(&row.parameters, path))));
        let once = |side: usize| distinct(pairs.iter().map(|pair| pair[side].clone())).len() == pairs.len();
        once(0) && once(1)
    };
    let mut kept: Vec<String> = Vec::new();
    for path in std::mem::take(varying) {
        let mut leaders = kept.iter().filter(|leader| !choosing.contains(leader));
        if choosing.contains(&path) || !leaders.any(|leader| follows(&path, leader)) {
            kept.push(path);
        }
    }
    *varying = kept;
}

/// Whether a condition in words has one value for each choice of a protocol, as a flow's `delivery` in a `zip` with
/// its `over`: it is part of the choice, and protocols are compared across it. Where deliveries are compared, by
/// `naming`, a number can be so too, also one that has a value for each place on the `axis`: the size of datagrams that
/// a delivery's headers leave, the rate that links have for it.
fn goes_with(
    path: &str,
    choosing: &[String],
    naming: &[String],
    axis: Option<&String>,
    summary: &[Summary],
) -> bool {
    if choosing.is_empty() || choosing.iter().chain(axis).any(|other| other == path) {
        return false;
    }
    let deliveries = !naming.is_empty() && naming.iter().all(|path| is_delivery(path));
    let axis = axis.filter(|_| deliveries);
    let values = distinct(summary.iter().map(|row| value(&row.parameters, path)));
    if axis_values(&values).is_some() && !deliveries {
        return false;
    }
    let given = |row: &Summary| -> Vec<String> {
        choosing.iter().chain(axis).map(|path| value(&row.parameters, path)).collect()
    };
    let pairs = distinct(summary.iter().map(|row| (given(row), value(&row.parameters, path))));
    distinct(pairs.iter().map(|(given, _)| given.clone())).len() == pairs.len()
}

fn varying(summary: &[Summary]) -> Vec<String> {
    let paths = distinct(summary.iter().flat_map(|row| row.parameters.keys().cloned()));
    let several = |path: &String| distinct(summary.iter().map(|row| value(&row.parameters, path))).len() > 1;
    paths.into_iter().filter(several).collect()
}

/// Whether a path is the delivery of a group or flow.
fn is_delivery(path: &str) -> bool {
    path.ends_with(".delivery")
}

/// A path chooses a protocol if it is an `over` or a `delivery`, or if its value always is a flow's protocol.
fn chooses(document: &Document, path: &str) -> bool {
    path == "over" || path.ends_with(".over") || is_delivery(path) || {
        let is_protocol = |row: &Summary| value(&row.parameters, path) == row.protocol;
        document.summary.iter().all(is_protocol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_follows_from_delivery_and_axis_parts_no_cases() {
        let paths = ["groups.g.delivery", "groups.g.members", "flows.f.size", "flows.f.rate", "seed"];
        let row = |values: [&str; 5]| Summary {
            parameters: paths
                .iter()
                .zip(values)
                .map(|(path, value)| ((*path).into(), value.into()))
                .collect(),
            flow: "f".into(),
            protocol: "udp".into(),
            ..Summary::default()
        };
        let rows = |seeds: &[&str]| -> Vec<Summary> {
            let rows = [
                ["unicast", "few", "1450 B", "10 Mbit/s"],
                ["unicast", "many", "1450 B", "2 Mbit/s"],
                ["listed", "few", "1272 B", "50 Mbit/s"],
                ["listed", "many", "1272 B", "20 Mbit/s"],
            ];
            let of = |seed: &str| rows.map(|[a, b, c, d]| row([a, b, c, d, seed])).into_iter();
            seeds.iter().flat_map(|seed| of(seed).collect::<Vec<_>>()).collect()
        };
        let found = |seeds: &[&str]| {
            let axis = Some("groups.g.members".to_owned());
            let document = Document { summary: rows(seeds), axis, ..Document::default() };
            let study = Study::new(&document);
            (study.conditions().cloned().collect::<Vec<_>>(), study.lines)
        };
        assert_eq!(
            found(&["1"]),
            (vec![paths[1].to_owned()], vec!["unicast".to_owned(), "listed".to_owned()])
        );
        assert_eq!(found(&["1", "2"]).0, [paths[1], paths[4]]);
    }

    /// A study of these values of `flows.f.over`, `flows.f.delivery`, `flows.f.rate` and `links.l.loss`, a row each.
    fn conditions(rows: &[[&str; 4]]) -> (Vec<String>, usize, usize) {
        let paths = ["flows.f.over", "flows.f.delivery", "flows.f.rate", "links.l.loss"];
        let row = |values: &[&str; 4]| Summary {
            parameters: paths
                .iter()
                .zip(values)
                .map(|(path, value)| ((*path).into(), (*value).into()))
                .collect(),
            flow: "f".into(),
            protocol: values[0].into(),
            ..Summary::default()
        };
        let document = Document { summary: rows.iter().map(row).collect(), ..Document::default() };
        let study = Study::new(&document);
        (study.conditions().cloned().collect(), study.cases.len(), study.lines.len())
    }

    #[test]
    fn words_that_go_with_a_protocol_part_no_cases() {
        let found = |rows: &[[&str; 4]]| {
            let (conditions, cases, lines) = conditions(rows);
            (
                conditions.iter().map(|path| path.rsplit('.').next().unwrap().to_owned()).collect(),
                cases,
                lines,
            )
        };
        let both = [["a", "one-hop", "1", "0 %"], ["b", "unicast", "1", "0 %"], ["a", "one-hop", "1", "5 %"]];
        let none: Vec<String> = Vec::new();
        assert_eq!(found(&both[..2]), (none, 1, 2));
        assert_eq!(found(&both), (vec!["loss".to_owned()], 2, 2));
        // Deliveries are compared as protocols are, and what goes with them parts no cases either.
        let several = [["a", "one-hop", "1", "0 %"], ["a", "unicast", "1", "0 %"]];
        assert_eq!(found(&several), (Vec::new(), 1, 2));
        let crossed = [several[0], several[1], ["b", "one-hop", "1", "0 %"], ["b", "unicast", "1", "0 %"]];
        assert_eq!(found(&crossed), (Vec::new(), 1, 4));
        // A number for each protocol.
        let numbers = [["a", "one-hop", "1", "0 %"], ["b", "one-hop", "2", "0 %"]];
        assert_eq!(found(&numbers), (vec!["rate".to_owned()], 2, 2));
    }

    #[test]
    fn a_path_is_as_short_as_its_neighbours_allow() {
        let paths = ["events.loss.loss", "flows.a.over", "flows.b.over", "seed"].map(String::from);
        assert_eq!(short_names(&paths), ["loss", "a.over", "b.over", "seed"]);
        let paths = ["topology.nodes.a.count", "flows.a.over"].map(String::from);
        assert_eq!(short_names(&paths), ["nodes.a.count", "over"]);
    }
}
