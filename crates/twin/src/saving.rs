//! Shares of load and time that a run saves against the one that the scenario refers to.

use std::collections::BTreeMap;

use crate::results::{Flow, Parameters, Run};

/// In place of a value of a reference: its path may have any there.
pub const ANY: &str = "any";

/// Fills in the savings of runs against those that have the values of `reference`, and otherwise the same parameters
/// and repeat; of several of these, the first. A run whose reference is not there has none, and so has each reference.
pub fn relate(runs: &mut [Run], reference: &Parameters) {
    if reference.is_empty() {
        return;
    }
    let is_any = |path: &str| reference.get(path).is_some_and(|value| value == ANY);
    let key = |parameters: &Parameters, repeat: u64| {
        let compared: Vec<_> = parameters.iter().filter(|(path, _)| !is_any(path)).collect();
        (serde_json::to_string(&compared).unwrap_or_default(), repeat)
    };
    let is_reference = |run: &Run| {
        reference
            .iter()
            .all(|(path, value)| value == ANY || run.parameters.get(path).is_none_or(|found| found == value))
    };
    let mut places = BTreeMap::new();
    for (place, run) in runs.iter().enumerate().filter(|(_, run)| is_reference(run)) {
        places.entry(key(&run.parameters, run.repeat)).or_insert(place);
    }
    for place in 0..runs.len() {
        let mut parameters = runs[place].parameters.clone();
        for (path, value) in reference.iter().filter(|(path, _)| runs[place].parameters.contains_key(*path)) {
            parameters.insert(path.clone(), value.clone());
        }
        let other = places.get(&key(&parameters, runs[place].repeat)).filter(|_| !is_reference(&runs[place]));
        let savings: Vec<[Option<f64>; 3]> = match other.map(|other| &runs[*other]) {
            Some(other) => {
                let run = &runs[place];
                run.flows.iter().zip(&other.flows).map(|flows| savings((run, other), flows)).collect()
            }
            None => vec![[None; 3]; runs[place].flows.len()],
        };
        for (flow, [network, sender, time]) in runs[place].flows.iter_mut().zip(savings) {
            flow.figures.network_saving = network;
            flow.figures.sender_saving = sender;
            flow.figures.time_saving = time;
        }
    }
}

/// What our flow saves of the network's load, of its sender's and of time, against the other run's.
fn savings((ours, other): (&Run, &Run), (our_flow, other_flow): (&Flow, &Flow)) -> [Option<f64>; 3] {
    let saving = |ours: Option<f64>, other: Option<f64>| {
        let other = other.filter(|other| *other > 0.0)?;
        Some(1.0 - ours? / other)
    };
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64);
    let (our_figures, other_figures) = (&our_flow.figures, &other_flow.figures);
    // Of several flows, the load is that of all together.
    let network = match our_figures.network_bytes {
        Some(_) => (our_figures.network_bytes, other_figures.network_bytes),
        None => (ours.network_bytes, other.network_bytes),
    };
    [
        saving(bytes(network.0), bytes(network.1)),
        saving(bytes(our_figures.sender_bytes), bytes(other_figures.sender_bytes)),
        saving(our_figures.completed_s, other_figures.completed_s),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::results::Figures;

    fn run(delivery: &str, receivers: &str, repeat: u64, [network, sender, ms]: [u64; 3]) -> Run {
        let figures = Figures {
            network_bytes: Some(network),
            sender_bytes: Some(sender),
            completed_s: Some(ms as f64 / 1e3),
            ..Figures::default()
        };
        Run {
            parameters: json!({ "delivery": delivery, "receivers": receivers }).as_object().unwrap().clone(),
            repeat,
            flows: vec![Flow { figures, ..Flow::default() }],
            ..Run::default()
        }
    }

    #[test]
    fn a_path_of_any_value_is_not_compared() {
        let mut runs =
            [run("unicast", "14", 0, [1000, 100, 4000]), run("multicast", "28", 0, [250, 50, 1000])];
        relate(&mut runs, json!({ "delivery": "unicast" }).as_object().unwrap());
        assert_eq!(runs[1].flows[0].figures.network_saving, None);
        relate(&mut runs, json!({ "delivery": "unicast", "receivers": ANY }).as_object().unwrap());
        assert_eq!(runs[1].flows[0].figures.network_saving, Some(0.75));
        // Of two references neither saves against the other, and the first is the one.
        let mut runs = [
            run("unicast", "14", 0, [1000, 100, 4000]),
            run("unicast", "28", 0, [8000, 800, 8000]),
            run("multicast", "28", 0, [250, 50, 1000]),
        ];
        relate(&mut runs, json!({ "delivery": "unicast", "receivers": ANY }).as_object().unwrap());
        assert_eq!(runs.map(|run| run.flows[0].figures.network_saving), [None, None, Some(0.75)]);
    }

    #[test]
    fn a_run_saves_against_the_reference_of_its_own_case_and_repeat() {
        let mut runs = [
            run("unicast", "14", 0, [1000, 100, 4000]),
            run("unicast", "14", 1, [2000, 200, 4000]),
            run("unicast", "28", 0, [8000, 800, 8000]),
            run("multicast", "14", 0, [250, 50, 1000]),
            run("multicast", "14", 1, [250, 50, 1000]),
            run("multicast", "28", 0, [10_000, 800, 2000]),
            run("multicast", "28", 1, [10_000, 800, 2000]),
        ];
        relate(&mut runs, json!({ "delivery": "unicast" }).as_object().unwrap());
        let saved = runs.map(|run| {
            let figures = &run.flows[0].figures;
            [figures.network_saving, figures.sender_saving, figures.time_saving]
        });
        assert_eq!(saved[..3], [[None; 3]; 3], "the reference itself");
        assert_eq!(saved[3], [0.75, 0.5, 0.75].map(Some));
        assert_eq!(saved[4], [0.875, 0.75, 0.75].map(Some));
        assert_eq!(saved[5], [-0.25, 0.0, 0.75].map(Some));
        assert_eq!(saved[6], [None; 3], "its reference is not there");
    }
}
