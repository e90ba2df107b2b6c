//! Means with confidence intervals, over repeats.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::results::{Document, Flow, Mean, Parameters, Run, Summary};
use crate::scenario::model::Published;

/// The mean of `values` with its 95 % confidence interval (Student t); `None` if there are none.
pub fn mean(values: &[f64]) -> Option<Mean> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    // Computed relative to the first value, so that the mean of equal values is exactly that value.
    let mean = values[0] + values.iter().map(|value| value - values[0]).sum::<f64>() / n as f64;
    let ci95 = (n > 1).then(|| {
        let freedom = (n - 1) as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / freedom;
        let t = StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |student| student.inverse_cdf(0.975));
        t * (variance / n as f64).sqrt()
    });
    Some(Mean { mean, ci95, n: n as u64 })
}

/// A flow of a case, over the repeats.
struct Group<'r> {
    parameters: &'r Parameters,
    flow: &'r Flow,
    figures: Vec<Value>,
    /// Number of repeats that do not count, since they are invalid.
    invalid: u64,
}

/// One summary for each case and flow, in the order in which they first appear.
pub fn summarise(runs: &[Run], published: &[Published]) -> Vec<Summary> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    // The repeats of a case are consecutive: its groups are the last ones, one for each flow.
    for case in runs.chunk_by(|one, other| one.parameters == other.parameters) {
        let first = groups.len();
        for run in case {
            let together = |one: &Flow, other: &Flow| one.senders.is_some() && one.senders == other.senders;
            for (place, flows) in run.flows.chunk_by(together).enumerate() {
                let flow = &flows[0];
                if groups.len() <= first + place {
                    let (figures, invalid) = (Vec::new(), 0);
                    groups.push(Group { parameters: &run.parameters, flow, figures, invalid });
                }
                let group = &mut groups[first + place];
                // A run that the machine could not keep up with is no measurement of the network.
                match run.live.as_ref().and_then(|live| live.invalid.as_ref()) {
                    Some(_) => group.invalid += 1,
                    None => group.figures.push(of_senders(flows)),
                }
            }
        }
    }
    groups
        .into_iter()
        .map(|Group { parameters, flow, figures, invalid }| {
            let name = flow.senders.as_ref().unwrap_or(&flow.name);
            Summary {
                parameters: parameters.clone(),
                flow: name.clone(),
                protocol: flow.protocol.clone(),
                coded: flow.coded,
                figures: means(&figures),
                invalid_runs: invalid,
                published: published_for(parameters, name, published),
            }
        })
        .collect()
}

/// The figures of one repeat of a flow: of several senders, the mean of each figure over those that have it.
fn of_senders(flows: &[Flow]) -> Value {
    let value = |flow: &Flow| serde_json::to_value(&flow.figures).unwrap_or(Value::Null);
    match flows {
        [flow] => value(flow),
        flows => numbers(Value::Object(means(&flows.iter().map(value).collect::<Vec<_>>()))),
    }
}

/// Means without their intervals and numbers.
fn numbers(value: Value) -> Value {
    match value {
        Value::Object(map) if map.contains_key("n") => map.get("mean").cloned().unwrap_or(Value::Null),
        Value::Object(map) => map.into_iter().map(|(name, value)| (name, numbers(value))).collect(),
        value => value,
    }
}

/// The figures that are shown beside those of another document.
const BESIDE: [&str; 4] = ["goodput_mbps", "reliability", "latency_ms.p50", "round_trip_ms.p50"];

impl Document {
    /// Adds the means of another document, under the heading `whose`, to the rows of this one with the same case and
    /// flow.
    pub fn compare_with(&mut self, other: &Self, whose: &str) {
        self.beside = Some(whose.to_owned());
        for row in &mut self.summary {
            let same = |other: &&Summary| other.parameters == row.parameters && other.flow == row.flow;
            let figures = other.summary.iter().find(same).map(|other| &other.figures);
            let mean = |name: &&str| {
                let mut parts = name.split('.');
                let first = figures?.get(parts.next()?)?;
                let figure = parts.try_fold(first, |at, part| at.get(part))?;
                Some(((*name).to_owned(), figure.get("mean")?.as_f64()?))
            };
            row.published = BESIDE.iter().filter_map(mean).collect();
        }
    }
}

/// The mean of each figure over the objects in `values`, with the same nesting. A figure that none of them has is left
/// out; one that only some have is the mean over those, whose number is its `n`.
fn means(values: &[Value]) -> Map<String, Value> {
    let mut names: Vec<&String> = Vec::new();
    for value in values.iter().filter_map(Value::as_object) {
        for name in value.keys() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let mut result = Map::new();
    for name in names {
        let of_name: Vec<&Value> = values.iter().filter_map(|value| value.get(name)).collect();
        if of_name.iter().any(|value| value.is_object()) {
            let nested: Vec<Value> = of_name.into_iter().filter(|value| value.is_object()).cloned().collect();
            result.insert(name.clone(), Value::Object(means(&nested)));
        } else {
            let numbers: Vec<f64> = of_name.into_iter().filter_map(number).collect();
            if let Some(Mean { mean, ci95, n }) = mean(&numbers) {
                result.insert(name.clone(), json!({ "mean": mean, "ci95": ci95, "n": n }));
            }
        }
    }
    result
}

/// A figure as a number: `true` is 1, so that a mean is the share of `true`.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_bool().map(|yes| f64::from(u8::from(yes))))
}

fn published_for(parameters: &Parameters, flow: &str, published: &[Published]) -> BTreeMap<String, f64> {
    let agrees = |published: &&Published| {
        let of_flow = published.flow.as_ref().is_none_or(|name| name == flow);
        of_flow
            && published.parameters.iter().all(|(path, value)| {
                parameters.get(path).and_then(Value::as_str).is_some_and(|ours| ours == value)
            })
    };
    published.iter().filter(agrees).flat_map(|published| published.figures.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Figures, Quantiles};

    #[test]
    fn the_interval_is_students() {
        // t(0.975, 4) = 2.776; the deviation of 1..5 is 1.5811.
        let Mean { mean, ci95, n } = mean(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((mean, n), (3.0, 5));
        assert!((ci95.unwrap() - 2.776_445 * 1.581_139 / 5f64.sqrt()).abs() < 1e-5);
    }

    #[test]
    fn one_value_has_no_interval_and_none_has_no_mean() {
        assert_eq!(mean(&[2.0]), Some(Mean { mean: 2.0, ci95: None, n: 1 }));
        assert_eq!(mean(&[]), None);
    }

    #[test]
    fn flows_of_several_senders_are_one_row_with_the_mean_over_senders_and_then_over_repeats() {
        let flow = |name: &str, senders: Option<&str>, goodput: f64, p50: f64| Flow {
            name: name.into(),
            senders: senders.map(String::from),
            figures: Figures {
                goodput_mbps: Some(goodput),
                latency_ms: Some(Quantiles { p50, mean: 2.0 * p50, ..Quantiles::default() }),
                ..Figures::default()
            },
            ..Flow::default()
        };
        let run = |repeat, goodputs: [f64; 2]| Run {
            repeat,
            flows: vec![
                flow("talk-a", Some("talk"), goodputs[0], 1.0),
                flow("talk-b", Some("talk"), goodputs[1], 3.0),
                flow("file", None, 9.0, 7.0),
            ],
            ..Run::default()
        };
        let rows = summarise(&[run(0, [1.0, 3.0]), run(1, [3.0, 5.0])], &[]);
        assert_eq!(rows.iter().map(|row| row.flow.as_str()).collect::<Vec<_>>(), ["talk", "file"]);
        let goodput = &rows[0].figures["goodput_mbps"];
        assert_eq!((goodput["mean"].as_f64(), goodput["n"].as_u64()), (Some(3.0), Some(2)));
        let latency = &rows[0].figures["latency_ms"];
        assert_eq!(
            (latency["p50"]["mean"].as_f64(), latency["mean"]["mean"].as_f64()),
            (Some(2.0), Some(4.0))
        );
        assert_eq!(rows[1].figures["latency_ms"]["p50"]["mean"].as_f64(), Some(7.0));
    }

    #[test]
    fn a_figure_that_some_repeats_lack_is_the_mean_of_the_others() {
        let values = [
            json!({ "completed_s": 2.0, "hash_ok": true, "latency_ms": { "p50": 1.0 } }),
            json!({ "completed_s": null, "hash_ok": false, "latency_ms": null }),
        ];
        let means = means(&values);
        assert_eq!(means["completed_s"], json!({ "mean": 2.0, "ci95": null, "n": 1 }));
        assert_eq!(means["hash_ok"]["mean"], json!(0.5));
        assert_eq!(means["latency_ms"]["p50"]["n"], json!(1));
    }
}
