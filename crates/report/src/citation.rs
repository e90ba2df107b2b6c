//! The result of a study in a citable sentence: the compared transports, the conditions, and the lead of the best.

use hopcast_twin::results::Mean;
use serde_json::Value;

use crate::figure::figure;
use crate::finding::with_interval;
use crate::number::{interval, number, percent};
use crate::study::{Study, distinct};
use crate::welch::difference;

/// Maximum number of cases that are named one by one; of more, those with the same winner are summarised. Chosen: with
/// more the sentence is too long to read.
const MAX_CASES: usize = 6;
/// Maximum number of groups of flows with a sentence. Chosen: for more, a table is easier to read.
const MAX_GROUPS: usize = 2;

/// One sentence for each group of flows that has a goodput, for the first few groups. None if flows with different
/// tasks run side by side or share the network: then the highest goodput does not show the best transport.
pub(crate) fn citations(study: &Study<'_>, manifest: &Value) -> Vec<String> {
    if study.compares_flows() || study.rows.iter().any(|row| study.is_crowded(row.summary)) {
        return Vec::new();
    }
    (0..study.groups.len()).filter_map(|group| citation(study, group, manifest)).take(MAX_GROUPS).collect()
}

/// The best of a case, and its lead over the second.
struct Lead<'d> {
    case: String,
    best: &'d str,
    goodput: Mean,
    second: Option<(&'d str, Mean)>,
    /// Share of its units that arrived, if not all did.
    arrived: Option<f64>,
    /// The best transport of those whose units all arrived.
    complete: Option<(&'d str, Mean)>,
}

/// Minimum share that is shown as 100.0 %: half of the last digit less than 1.
const SHOWN_AS_ALL: f64 = 0.9995;

fn citation(study: &Study<'_>, group: usize, manifest: &Value) -> Option<String> {
    let leads: Vec<Lead<'_>> = study
        .group_members(group)
        .filter_map(|(case, rows)| {
            let rank = |line: usize, row| {
                let arrived = figure(row, "reliability").map(|arrived| arrived.mean);
                Some((study.lines[line].as_str(), figure(row, "goodput_mbps")?, arrived))
            };
            let mut ranked: Vec<_> = rows.filter_map(|row| rank(row.line, row.summary)).collect();
            ranked.sort_by(|a, b| b.1.mean.total_cmp(&a.1.mean));
            let (best, goodput, arrived) = *ranked.first()?;
            Some(Lead {
                case: study.case_label(&study.cases[case]),
                best,
                goodput,
                second: ranked.get(1).map(|second| (second.0, second.1)),
                arrived: arrived.filter(|arrived| *arrived < SHOWN_AS_ALL),
                complete: ranked
                    .iter()
                    .find(|(_, _, arrived)| arrived.is_some_and(|arrived| arrived >= SHOWN_AS_ALL))
                    .map(|complete| (complete.0, complete.1)),
            })
        })
        .collect();
    if leads.is_empty() {
        return None;
    }
    let lines = distinct(study.rows.iter().filter(|row| row.group == group).map(|row| row.line));
    let lines: Vec<&str> = lines.into_iter().map(|line| study.lines[line].as_str()).collect();
    let flow = if study.groups.len() > 1 { format!(" of {}", study.groups[group]) } else { String::new() };
    let results: Vec<String> =
        if leads.len() <= MAX_CASES { leads.iter().map(Lead::told).collect() } else { together(&leads) };
    let (verb, measured) = match lines.len() {
        1 => ("was measured", format!("its goodput{flow} was")),
        _ => ("were compared", format!("the highest goodput{flow} was")),
    };
    Some(format!(
        "{}{} {verb}{}; {measured} {}.{}",
        introduction(study, manifest),
        listed(&lines),
        over(study),
        results.join("; "),
        if results.iter().any(|result| result.contains('±')) {
            " ±: 95 % confidence interval."
        } else {
            ""
        }
    ))
}

/// `In “title” (hopcast 0.1.0, seed 1, 5 repeats), `.
fn introduction(study: &Study<'_>, manifest: &Value) -> String {
    let version = manifest.get("hopcast").and_then(Value::as_str).unwrap_or(env!("CARGO_PKG_VERSION"));
    let sources = manifest.get("sources").and_then(Value::as_str).map(|sources| format!("+{sources}"));
    let mut parts = vec![format!("hopcast {version}{}", sources.unwrap_or_default())];
    if let [seed] = distinct(study.document.runs.iter().map(|run| run.seed))[..] {
        parts.push(format!("seed {seed}"));
    }
    let repeats = distinct(study.document.runs.iter().map(|run| run.repeat)).len();
    if repeats > 1 {
        parts.push(format!("{repeats} repeats"));
    }
    let title = &study.document.scenario;
    let title = if title.is_empty() { String::new() } else { format!("In “{title}” ") };
    format!("{title}({}), ", parts.join(", "))
}

/// ` over loss 0 %, 1 % and 5 %`, for each condition.
fn over(study: &Study<'_>) -> String {
    let conditions: Vec<String> = study
        .conditions()
        .enumerate()
        .map(|(place, path)| {
            let values = distinct(study.cases.iter().map(|case| case[place].as_str()));
            let name = study.short_name(path);
            match values.as_slice() {
                [first, .., last] if values.len() > MAX_CASES => {
                    format!("{name} from {first} to {last} ({} values)", values.len())
                }
                values => format!("{name} {}", listed(values)),
            }
        })
        .collect();
    if conditions.is_empty() { String::new() } else { format!(" over {}", conditions.join(" and ")) }
}

impl Lead<'_> {
    /// The lead, and half the width of its interval; `None` if the two cannot be distinguished.
    fn margin(&self) -> Option<(f64, Option<f64>)> {
        let (_, second) = self.second?;
        let ahead = difference(second, self.goodput);
        (ahead.significant != Some(false)).then_some((ahead.difference, ahead.ci95))
    }

    /// The remark that the best did not deliver everything, with the best that did.
    fn arrived(&self) -> String {
        let Some(arrived) = self.arrived else { return String::new() };
        let complete = self
            .complete
            .map(|(line, goodput)| format!(", all of those of {line} ({})", with_interval(goodput)));
        format!("; {} % of its units arrived{}", percent(arrived * 100.0), complete.unwrap_or_default())
    }

    fn told(&self) -> String {
        let at = if self.case.is_empty() { String::new() } else { format!(" at {}", self.case) };
        let (goodput, arrived) = (with_interval(self.goodput), self.arrived());
        match (self.second, self.margin()) {
            (None, _) => format!("{goodput} Mbit/s{at}{arrived}"),
            (Some((second, _)), Some((ahead, ci95))) => {
                let ahead = with_margin(ahead, ci95);
                format!("that of {}{at} ({goodput} Mbit/s, {ahead} more than {second}{arrived})", self.best)
            }
            (Some((second, other)), None) => {
                let other = with_interval(other);
                let at = if at.is_empty() { at } else { format!(",{at}") };
                format!(
                    "shared by {} ({goodput} Mbit/s{arrived}) and {second} ({other}), not told apart{at}",
                    self.best
                )
            }
        }
    }
}

fn with_margin(ahead: f64, ci95: Option<f64>) -> String {
    let text = number(ahead);
    match ci95.filter(|ci95| *ci95 > 0.0) {
        Some(ci95) => format!("{text} ± {}", interval(&text, ci95)),
        None => text,
    }
}

/// One part for each winner: the number of cases that it leads, and the largest lead.
fn together(leads: &[Lead<'_>]) -> Vec<String> {
    if leads.iter().all(|lead| lead.second.is_none()) {
        let ends = [leads.first(), leads.last()];
        return ends.into_iter().flatten().map(Lead::told).collect();
    }
    let winners = distinct(leads.iter().filter(|lead| lead.margin().is_some()).map(|lead| lead.best));
    let mut parts: Vec<String> = winners
        .into_iter()
        .filter_map(|winner| {
            let led: Vec<&Lead<'_>> =
                leads.iter().filter(|lead| lead.best == winner && lead.margin().is_some()).collect();
            let margin = |lead: &Lead<'_>| lead.margin().map_or(0.0, |(ahead, _)| ahead);
            let most = led.iter().max_by(|a, b| margin(a).total_cmp(&margin(b)))?;
            let (ahead, ci95) = most.margin()?;
            let (second, _) = most.second?;
            Some(format!(
                "that of {winner} in {} of {} cases, most ahead at {} ({} Mbit/s, {} more than {second}{})",
                led.len(),
                leads.len(),
                most.case,
                with_interval(most.goodput),
                with_margin(ahead, ci95),
                most.arrived()
            ))
        })
        .collect();
    let even = leads.iter().filter(|lead| lead.margin().is_none()).count();
    if even > 0 {
        parts.push(format!("in {even} of {} cases not told apart from the second", leads.len()));
    }
    parts
}

/// `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
