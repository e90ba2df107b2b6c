//! No text and no override makes the loader panic, and every error is one line that names a place.

use std::path::Path;

use hopcast_runner::load_text;
use hopcast_twin::scenario::{Overrides, describe};
use proptest::prelude::*;

/// A scenario that has nearly every key.
const RICH: &str = "\
title: Rich
duration: 10s
measure: { from: 1s, to: 9s, interval: 100ms }
topology:
  chain: { hops: 3, link: { rate: 10 Mbit/s, delay: 1ms, jitter: { normal: 1ms }, queue: { codel: {} } } }
  nodes: [x, { name: y, position: [1, 2] }]
  links:
    - { name: up, between: [n0, x], forward: &way { rate: 1 Mbit/s, loss: 1 % }, backward: *way, duplex: half }
    - { medium: [x, y, n3], loss: { gilbert-elliott: { p: 1 %, r: 9 % } }, mtu: 9000 }
events:
  - { name: storm, at: 5s, links: all, loss: 5 % }
  - { at: 6s, start: late }
variants: { slow: { tcp-cubic: { min-rto: 1s, sack: off } } }
flows:
  - { name: bulk, from: n0, to: n3, over: [slow, tunnel, udp], app: bulk }
  - { name: late, from: n0, to: y, over: udp, app: { cbr: { rate: saturate, start: event } } }
sweep:
  events.storm.loss: [0 %, { four-state: { p13: 1 % } }]
  zip: { seed: [1, 2], flows.bulk.over: [udp, slow] }
roles: { relay: [n1] }
capture: all
repeats: 2
quick: { duration: 5s, measure.to: 5s }
";

fn try_load(text: &str, overrides: &Overrides) {
    match load_text(Path::new("any.yaml"), text, overrides) {
        Ok(plan) => assert!(!describe(&plan).is_empty()),
        Err(error) => {
            let line = error.to_string();
            assert!(!line.chars().any(char::is_control), "{line:?}");
            assert!(line.starts_with("any.yaml:") || line.starts_with("--") || error.line == 0, "{line}");
        }
    }
}

#[test]
fn the_rich_scenario_is_right() {
    load_text(Path::new("any.yaml"), RICH, &Overrides { quick: true, ..Overrides::default() }).unwrap();
}

proptest! {
    #[test]
    fn any_text(text in ".*") {
        try_load(&text, &Overrides::default());
    }

    #[test]
    fn any_yaml_like_text(text in "([a-z]{1,3}|[0-9]|[-\\[\\]{}:,&*?|>'\"#%@!.\n\t ~<]){0,60}") {
        try_load(&text, &Overrides::default());
    }

    #[test]
    fn a_scenario_with_a_piece_cut_and_another_put_in(
        cut in 0..RICH.len(), length in 0..40_usize, from in 0..RICH.len(), piece in 0..40_usize, quick: bool,
    ) {
        let end = (cut + length).min(RICH.len());
        let piece = &RICH[from..(from + piece).min(RICH.len())];
        let text = format!("{}{piece}{}", &RICH[..cut], &RICH[end..]);
        try_load(&text, &Overrides { quick, ..Overrides::default() });
    }

    #[test]
    fn a_scenario_with_a_value_replaced(
        place in 0..200_usize,
        value in r"-1|0|1e400 %|99999999999999999999|nan s|\[\]|\{\}|''|~|\[a, a\]|\{a: b\}|\*way|1000000|0s|5 %",
    ) {
        let values: Vec<_> = RICH.match_indices([':', ',', '[']).map(|(at, _)| at + 1).collect();
        let at = values[place % values.len()];
        let end = RICH[at..].find([',', '}', ']', '\n']).map_or(RICH.len(), |end| at + end);
        try_load(&format!("{} {value}{}", &RICH[..at], &RICH[end..]), &Overrides::default());
    }

    #[test]
    fn any_set(path in "[a-z0-9.]{0,20}|sweep\\..{0,10}|.{0,10}", value in ".{0,20}") {
        try_load(RICH, &Overrides { sets: vec![format!("{path}={value}")], ..Overrides::default() });
    }

    #[test]
    fn a_set_of_a_path_that_is_there(
        path in prop::sample::select(vec![
            "title", "flows", "flows.bulk", "flows.bulk.over", "flows.0.app", "flows.0.app.bulk.start", "topology.links.up.backward",
            "topology.links.1.medium", "sweep", "sweep.zip", "sweep.seed", "events.storm.loss", "seed", "quick", "variants.slow",
        ]),
        value in r"-1|1|\[\]|\{\}|''|~|\[1, 2\]|\{a: b\}|x|5 %|\[udp\]|",
    ) {
        try_load(RICH, &Overrides { sets: vec![format!("{path}={value}")], ..Overrides::default() });
    }
}
