//! Values set on the command line, swept, or changed by `quick`, and the errors of that.

#![allow(clippy::unwrap_used)] // in what the tests share

use std::path::Path;
use std::sync::Arc;

use crate::common::scenarios::*;
use hopcast_core::{Bytes, Duration, Instant, Rate};
use hopcast_runner::load_text;
use hopcast_twin::scenario::Overrides;
use hopcast_twin::scenario::model::{App, SendSpan};

#[test]
fn the_first_key_of_a_sweep_is_the_slowest_and_a_zip_moves_together() {
    let plan = plan(&with(
        "sweep:
  events.loss.loss: [0 %, 10%]
  zip:
    - { flows.bulk.over: [udp, tcp-cubic], seed: [1, 2] }
    - { duration: [20s] }",
    ));
    let cases: Vec<String> = plan
        .cases
        .iter()
        .map(|case| case.parameters.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(cases, ["0 % udp 1 20s", "0 % tcp-cubic 2 20s", "10% udp 1 20s", "10% tcp-cubic 2 20s"]);
    assert_eq!(plan.cases[3].scenario.seed, 2);
    assert_eq!(plan.cases[3].scenario.duration, Duration::from_secs(20));
}

#[test]
fn a_value_can_be_set_wherever_a_path_leads() {
    let scenario = |sets: &[&str]| Arc::clone(&plan_with(&with(""), sets).unwrap().cases[0].scenario);
    assert_eq!(scenario(&["topology.chain.hops=6", "flows.bulk.to=n6"]).nodes.len(), 7);
    assert_eq!(scenario(&["flows.0.app.bulk.bytes=1 MB"]).flows[0].app, {
        App::Bulk {
            rate: None,
            bytes: Some(Bytes::new(1_000_000)),
            port: None,
            span: SendSpan { start: Some(Instant::ZERO), stop: None },
        }
    });
    // A key that is allowed but absent, in a map that is absent too.
    assert_eq!(scenario(&["measure.from=6s"]).measure.from.as_secs_f64(), 6.0);
    assert_eq!(scenario(&["flows.bulk.over=[tcp-cubic, tunnel]"]).flows[0].protocol, "tcp-cubic/tunnel");
    // Later wins.
    assert_eq!(scenario(&["seed=5", "seed=6"]).seed, 6);
}

#[test]
fn a_link_without_a_name_goes_by_its_ends_in_paths_too() {
    let text = "\
duration: 1s
topology:
  nodes: [a, b, c]
  links:
    - { between: [a, b], rate: 10 Mbit/s }
    - { name: b-c, between: [c, b], rate: 10 Mbit/s }
    - { medium: [a, c], rate: 10 Mbit/s, name: air }
flows: [{ from: a, to: c, over: udp, app: { cbr: { rate: 1 Mbit/s } } }]
events: [{ at: 0s, links: a-b, loss: 5 % }]
sweep: { topology.links.a-b.rate: [20 Mbit/s, 30 Mbit/s] }
";
    let plan = plan_with(text, &["topology.links.b-c.rate=40 Mbit/s"]).unwrap();
    let rate = |case: usize, link: usize| plan.cases[case].scenario.links[link].direction(0).rate.unwrap();
    let rates = [rate(0, 0), rate(1, 0), rate(1, 1), rate(1, 2)];
    assert_eq!(rates.map(Rate::as_mbit), [20.0, 30.0, 40.0, 10.0]);
    // One path, however it is written.
    let twice = text.replace("sweep: {", "sweep: { topology.links.0.rate: [1 Mbit/s],");
    let error = plan_with(&twice, &[]).unwrap_err().to_string();
    assert!(error.contains("is swept twice, also as `topology.links.0.rate`"), "{error}");
    let plan = plan_with(text, &["topology.links.a-b.rate=50 Mbit/s"]).unwrap();
    assert_eq!(plan.cases.len(), 1, "the sweep is pinned");
}

#[test]
fn setting_a_swept_path_pins_it() {
    let text = with("sweep: { events.loss.loss: [0 %, 5 %], flows.bulk.over: [udp, tcp-cubic] }");
    let values = |sets: &[&str]| {
        let cases = plan_with(&text, sets).unwrap().cases;
        cases
            .iter()
            .map(|case| format!("{} {}", case.parameters[0].1, case.parameters[1].1))
            .collect::<Vec<_>>()
    };
    assert_eq!(values(&["events.0.loss=7 %"]), ["7 % udp", "7 % tcp-cubic"]);
    assert_eq!(values(&["sweep.flows.bulk.over=[tcp-bbr]"]), ["0 % tcp-bbr", "5 % tcp-bbr"]);
}

#[test]
fn pinning_within_a_zip_leaves_each_case_once() {
    let text =
        with("sweep: { zip: { events.loss.loss: [0 %, 5 %, 0 %], flows.bulk.over: [udp, udp, tcp-bbr] } }");
    let values = |sets: &[&str]| {
        let cases = plan_with(&text, sets).unwrap().cases;
        cases
            .iter()
            .map(|case| format!("{} {}", case.parameters[0].1, case.parameters[1].1))
            .collect::<Vec<_>>()
    };
    assert_eq!(values(&[]), ["0 % udp", "5 % udp", "0 % tcp-bbr"]);
    assert_eq!(values(&["events.loss.loss=7 %"]), ["7 % udp", "7 % tcp-bbr"]);
    assert_eq!(values(&["events.loss.loss=7 %", "flows.0.over=udp"]), ["7 % udp"]);
}

#[test]
fn the_command_line_wins_over_quick_and_quick_over_the_file() {
    let text = with("repeats: 9\nseed: 3\nquick: { repeats: 2, duration: 5s, seed: 4 }");
    let load = |overrides: &Overrides| {
        let plan = load_text(Path::new("t.yaml"), &text, overrides).unwrap();
        (plan.repeats, plan.cases[0].scenario.seed, plan.cases[0].scenario.duration.as_secs_f64())
    };
    let quick = Overrides { quick: true, ..Overrides::default() };
    assert_eq!(load(&Overrides::default()), (9, 3, 10.0));
    assert_eq!(load(&quick), (2, 4, 5.0));
    assert_eq!(load(&Overrides { seed: Some(8), repeats: Some(1), ..quick }), (1, 8, 5.0));
}

/// (the argument of `--set`, the error)
const WRONG_SETS: &[(&str, &str)] = &[
    (
        "flows.blk.over=udp",
        "--set flows.blk.over=udp: `flows` has no element `blk`: did you mean `bulk`? (its elements: bulk)",
    ),
    (
        "flows.bulk.ovr=udp",
        "--set flows.bulk.ovr=udp: unknown key `ovr` in a flow: did you mean `over`? (allowed here: name, from, to, delivery, over, app, ip, paths)",
    ),
    (
        "topology.chian.hops=3",
        "--set topology.chian.hops=3: unknown key `chian` in `topology`: did you mean `chain`? (allowed here: nodes, links, chain, star, tree, grid, full, switch, graphml, containerlab)",
    ),
    ("events.3.loss=5 %", "--set events.3.loss=5 %: `events` has no element `3` (its elements: loss)"),
    (
        "events.0.loss=5",
        "--set events.0.loss=5: `loss`: expected a share with its unit, found the bare number `5`: write `5 %` (units: %, ppm)",
    ),
    ("duration.x=1", "--set duration.x=1: `duration` is the value `10s`: there is no `x` in it"),
    ("x", "--set x: expected `path=value`, for example `flows.bulk.over=udp`"),
    ("a..b=1", "--set a..b=1: expected a path such as `flows.bulk.over`, found `a..b`"),
    (
        "flows.bulk.over=[udp",
        "--set flows.bulk.over=[udp: this is not valid YAML: while parsing a flow sequence, expected ',' or ']'",
    ),
    ("sweep.seed=1", "--set sweep.seed=1: `seed`: expected a list of values to sweep, found `1`"),
    (
        "flows.bulk.app.cbr.rate=1 Mbit/s",
        "--set flows.bulk.app.cbr.rate=1 Mbit/s: `flows.bulk.app` is the value `bulk`: there is no `cbr` in it",
    ),
    (
        "include=x.yaml",
        "--set include=x.yaml: `include` cannot be set: files are included before anything is set",
    ),
    (
        "quick.duration=1s",
        "--set quick.duration=1s: `quick` cannot be set: set what it would change, which wins over `quick`",
    ),
    ("sweep.include=[x]", "--set sweep.include=[x]: `include` cannot be swept"),
    ("sweep.seed=[1, 2, 1]", "--set sweep.seed=[1, 2, 1]: `seed`: the value `1` is swept twice"),
    ("repeats=0", "--set repeats=0: `repeats`: expected a whole number from 1 to 100000, found `0`"),
    ("=1", "--set =1: expected a path such as `flows.bulk.over`, found ``"),
];

#[test]
fn a_wrong_set_is_told_by_its_own_text() {
    for (set, expected) in WRONG_SETS {
        let overrides = Overrides { sets: vec![(*set).to_owned()], ..Overrides::default() };
        assert_eq!(error_of(GOOD, &overrides), *expected);
    }
    let overrides = Overrides { repeats: Some(0), ..Overrides::default() };
    let expected = "--repeats 0: `repeats`: expected a whole number from 1 to 100000, found `0`";
    assert_eq!(error_of(GOOD, &overrides), expected);
}

#[test]
fn a_set_of_another_choice_than_the_file_made_is_told_by_its_own_text() {
    let text = GOOD
        .replace(
            "loss: 1 %",
            "loss: { gilbert-elliott: { p: 1 %, r: 9 % } }, queue: { codel: { target: 1ms } }",
        )
        .replace("app: bulk", "app: { cbr: { rate: 1 Mbit/s } }")
        .replace("over: tcp-cubic", "over: [{ udp: }]");
    let text = format!("{text}variants: {{ slow: {{ tcp-cubic: {{ sack: off }} }} }}\n");
    assert_eq!(error_of(&text, &Overrides::default()), "no error");
    for (set, expected) in [
        ("flows.bulk.app.bulk.start=1s", "`flows.bulk.app` is `cbr`: there is no `bulk` in it"),
        ("flows.0.app.bulk=", "`flows.0.app` is `cbr`: there is no `bulk` in it"),
        ("flows.0.over.0.tcp-bbr.sack=on", "`flows.0.over.0` is `udp`: there is no `tcp-bbr` in it"),
        ("variants.slow.tcp-bbr.sack=on", "`variants.slow` is `tcp-cubic`: there is no `tcp-bbr` in it"),
        (
            "topology.chain.link.loss.trace=x",
            "`topology.chain.link.loss` is `gilbert-elliott`: there is no `trace` in it",
        ),
        (
            "topology.chain.link.queue.drop-tail=9 packets",
            "`topology.chain.link.queue` is `codel`: there is no `drop-tail` in it",
        ),
    ] {
        let overrides = Overrides { sets: vec![set.to_owned()], ..Overrides::default() };
        assert_eq!(error_of(&text, &overrides), format!("--set {set}: {expected}"));
    }
}

#[test]
fn what_is_within_a_swept_value_cannot_be_set() {
    let text = format!("{GOOD}sweep: {{ flows.bulk.app: [bulk, {{ bulk: {{ bytes: 1 MB }} }}] }}\n");
    let overrides =
        Overrides { sets: vec!["flows.0.app.bulk.bytes=2 MB".to_owned()], ..Overrides::default() };
    let expected = "--set flows.0.app.bulk.bytes=2 MB: `flows.0.app` is swept, so nothing in it can be set: \
                    set `flows.0.app`, or its values with `sweep.flows.0.app`";
    assert_eq!(error_of(&text, &overrides), expected);
}

#[test]
fn what_is_read_before_quick_cannot_stand_in_it() {
    let quick = Overrides { quick: true, ..Overrides::default() };
    for (key, why) in [
        ("include", "files are included before anything is set"),
        ("quick", "set what it would change, which wins over `quick`"),
    ] {
        let text = format!("{GOOD}quick: {{ {key}: x }}\n");
        assert_eq!(error_of(&text, &quick), format!("bad.yaml:11:10: `{key}` cannot be set: {why}"));
    }
}
