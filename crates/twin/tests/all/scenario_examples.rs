//! The shipped examples and studies, and their published figures.

#![allow(clippy::unwrap_used)] // in what the tests share

use std::fs;
use std::path::Path;

use crate::common::scenarios::*;
use hopcast_core::{Duration, Fraction};
use hopcast_link::Change;
use hopcast_runner::{load, read_scenario};
use hopcast_twin::scenario::model::Action;
use hopcast_twin::scenario::{self, Overrides};

#[test]
fn every_example_loads_and_is_described() {
    let mut examples = 0;
    for dir in [scenarios(), scenarios().join("studies")] {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            for quick in [false, true] {
                let plan = load(&path, &Overrides { quick, ..Overrides::default() });
                let plan = plan.unwrap_or_else(|error| panic!("{error}"));
                assert!(scenario::describe(&plan).contains(&plan.title));
            }
            examples += 1;
        }
    }
    assert!(examples >= 9, "{examples}");
}

#[test]
fn the_study_of_six_hops_has_its_published_figures() {
    let path = scenarios().join("studies/bats-six-hop.yaml");
    let plan = load(&path, &Overrides::default()).unwrap();
    assert_eq!((plan.cases.len(), plan.repeats), (50, 10));
    let parameters = &plan.cases[11].parameters;
    let expected = [("events.loss.loss", "5 %"), ("flows.bulk.over", "tcp-cubic")];
    assert_eq!(*parameters, expected.map(|(path, value)| (path.to_owned(), value.to_owned())));
    let published = plan.published.iter().find(|row| row.parameters == *parameters).unwrap();
    assert_eq!(published.flow.as_deref(), Some("bulk"));
    assert_eq!(published.figures["goodput_mbps"], 0.05);
    assert_eq!(published.figures["reliability"], 1.0);
    let source = plan.source.as_ref().unwrap();
    assert_eq!(
        (source.authors.as_slice(), source.year),
        (&["n-hop technologies Limited".to_owned()][..], 2024)
    );
    let quick = load(&path, &Overrides { quick: true, ..Overrides::default() }).unwrap();
    assert_eq!((quick.cases[0].scenario.duration, quick.repeats), (Duration::from_secs(10), 2));
}

/// The number of published figures of the study of six hops, and what is said of them, with these on the command line.
fn compared(sets: &[&str], quick: bool) -> (usize, Vec<String>) {
    let path = scenarios().join("studies/bats-six-hop.yaml");
    let sets = sets.iter().map(|set| (*set).to_owned()).collect();
    let plan = load(&path, &Overrides { sets, quick, ..Overrides::default() });
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    (plan.published.len(), plan.remarks)
}

#[test]
fn figures_of_a_changed_experiment_are_not_held_against_published_ones() {
    for set in [
        "duration=10s",
        "measure.to=8s",
        "measure={from: 7s}",
        "topology.chain.link.rate=100 Mbit/s",
        "flows.bulk.app.bulk.rate=1 Mbit/s",
        "flows.0.app.bulk.start=2s",
        "sweep.topology.chain.hops=[6, 7]",
    ] {
        let (path, _) = set.split_once('=').unwrap();
        let remark = format!("published figures are left out: the command line set `{path}`");
        assert_eq!(compared(&[set], false), (0, vec![remark.clone()]), "{set}");
        assert_eq!(compared(&[set], true), (0, vec![remark]), "{set}");
    }
    let (_, remarks) = compared(&["duration=10s", "repeats=1", "measure.from=7s"], false);
    assert_eq!(remarks, ["published figures are left out: the command line set `duration`, `measure.from`"]);
}

#[test]
fn a_part_of_a_sweep_is_held_against_published_figures() {
    let (all, none) = compared(&[], false);
    assert!(all > 0 && none.is_empty());
    for set in [
        "sweep.events.loss.loss=[0 %, 10 %]",
        "events.loss.loss=5%",
        "sweep.events.loss.loss=[7 %, 10 %]",
        "flows.bulk.over=udp",
        "flows.0.over=brtp",
        "repeats=3",
        "seed=7",
        "measure.interval=100ms",
        "capture=all",
        "duration=60s",
        "duration=60 s",
        "topology.chain.link={rate: 300 Mbit/s, delay: 20us, queue: 64 packets}",
    ] {
        assert_eq!(compared(&[set], false), (all, Vec::new()), "{set}");
    }
}

#[test]
fn what_quick_makes_shorter_is_said_beside_published_figures() {
    let (all, _) = compared(&[], false);
    let remark = "published figures stand beside shorter runs: --quick has duration 10s, repeats 2";
    assert_eq!(compared(&[], true), (all, vec![remark.to_owned()]));
    assert_eq!(compared(&["events.loss.loss=5 %"], true), (all, vec![remark.to_owned()]));
    assert_eq!(compared(&["duration=60s"], true).0, all);
}

#[test]
fn ten_thousand_nodes_resolve_and_their_min_cut_is_found() {
    let plan = load(&scenarios().join("large-grid.yaml"), &Overrides::default()).unwrap();
    let scenario = &plan.cases[0].scenario;
    assert_eq!((scenario.nodes.len(), scenario.links.len()), (10_000, 19_800));
    assert_eq!(scenario.links[0].name, "r0c0-r0c1");
    // A corner has two links.
    assert_eq!(scenario::capacity(scenario, 0, 9_999), Some(20e6));
}

#[test]
fn a_trace_is_read_beside_the_file_that_names_it() {
    let plan = load(&scenarios().join("bursty-loss.yaml"), &Overrides::default()).unwrap();
    let Action::Link { change: Change::Loss(loss), .. } = &plan.cases[6].scenario.events[0].action else {
        panic!()
    };
    assert_eq!(loss.stationary(), Fraction::from_percent(2.0).unwrap());
    assert_eq!(plan.cases[6].parameters[0].1, "{trace: bursts.txt}");
}

#[test]
fn the_program_has_the_studies_and_all_they_name() {
    let mut own: Vec<_> = scenario::studies().collect();
    own.sort();
    let mut names: Vec<String> = fs::read_dir(scenarios().join("studies"))
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".yaml")?.to_owned()))
        .collect();
    names.sort();
    assert_eq!(own.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
    for (name, path) in own {
        let file = scenarios().join(format!("studies/{name}.yaml"));
        let load = |path: &Path| load(path, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
        let plans = [load(&path), load(&file)];
        assert_eq!(scenario::describe(&plans[0]), scenario::describe(&plans[1]));
        assert_eq!(plans[0].published, plans[1].published);
        assert_eq!(read_scenario(&path).unwrap(), fs::read(&file).unwrap());
    }
    let error = load(Path::new("hopcast:studies/none.yaml"), &Overrides::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "hopcast:studies/none.yaml: cannot read this file: the program has no such file"
    );
}

#[test]
fn the_first_example_of_the_reference_page_is_right() {
    let page = fs::read_to_string(scenarios().join("../docs/scenario.md")).unwrap();
    let example = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(plan(example).cases.len(), 9);
}
