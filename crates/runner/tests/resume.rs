//! A sweep that was cut short goes on where it stopped, and ends as if it had never been.

#![allow(clippy::unwrap_used)] // in what the tests share

use std::fs;
use std::path::Path;

use hopcast_runner::{Jobs, Journal, Part, load_text, run, run_jobs};
use hopcast_twin::Monitor;
use hopcast_twin::results::Document;
use hopcast_twin::scenario::Overrides;
use hopcast_twin::scenario::model::Plan;

const TEXT: &str = "\
title: To be cut short
seed: 5
duration: 1 s
topology: { chain: { hops: 2, link: { rate: 10 Mbit/s, delay: 2 ms, loss: 2 % } } }
flows: [{ name: flow, from: n0, to: n2, over: udp, app: bulk }]
sweep: { flows.flow.over: [udp, tcp-cubic], topology.chain.link.loss: [0 %, 2 %] }
repeats: 3
";

fn plan(text: &str) -> Plan {
    load_text(Path::new("test.yaml"), text, &Overrides::default()).unwrap()
}

/// Runs `part` of `plan` with the journal at `path`; also says how many runs were there already.
fn resume(plan: &Plan, path: &Path, version: &str, part: Part, monitor: &Monitor) -> (Document, usize, u64) {
    let journal = Journal::open(path, version).unwrap();
    let held = journal.holds(plan);
    let jobs = Jobs { threads: 2, part, captures: None, record: None, journal: Some(&journal) };
    let document = run_jobs(plan, &jobs, monitor).unwrap();
    let damaged = journal.damaged();
    if !document.interrupted && part == Part::ALL {
        journal.tidy(plan).unwrap();
    }
    (document, held, damaged)
}

fn all(plan: &Plan, path: &Path, version: &str) -> (Document, usize, u64) {
    resume(plan, path, version, Part::ALL, &Monitor::default())
}

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).unwrap().lines().count()
}

#[test]
fn what_was_finished_before_the_cut_is_not_run_again_and_the_document_is_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let plan = plan(TEXT);
    let whole = run(&plan, 1, None, &Monitor::default()).unwrap();
    let monitor = Monitor::default();
    let (cut, ..) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while monitor.runs().0 < 2 {
                std::thread::yield_now();
            }
            monitor.cancel();
        });
        resume(&plan, &path, "1", Part::ALL, &monitor)
    });
    assert!(cut.runs.len() >= 2 && cut.interrupted == (cut.runs.len() < 12));
    let (resumed, held, damaged) = all(&plan, &path, "1");
    assert_eq!((held, damaged), (cut.runs.len(), 0));
    assert_eq!(resumed, whole, "with its series and curves");
    assert_eq!(lines(&path), 12);
    let (again, held, _) = all(&plan, &path, "1");
    assert_eq!((again, held), (whole, 12));
}

#[test]
fn a_torn_or_altered_line_is_run_again_and_what_is_beside_it_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let plan = plan(TEXT);
    let (whole, ..) = all(&plan, &path, "1");
    let text = fs::read_to_string(&path).unwrap();
    let mut written: Vec<String> = text.lines().map(str::to_owned).collect();
    // A digit that changed, garbage, and a last line that the power went out on.
    written[3] = written[3].replacen("\"goodput_mbps\":", "\"goodput_mbps\":1", 1);
    written[5] = "é garbage".into();
    let torn = written.pop().unwrap();
    fs::write(&path, written.join("\n") + "\n" + &torn[..torn.len() / 2]).unwrap();
    let (resumed, held, damaged) = all(&plan, &path, "1");
    assert_eq!((held, damaged), (10, 3), "that one was altered is seen when it is read");
    assert_eq!(resumed, whole);
    assert_eq!(lines(&path), 12, "the journal is whole again");
    assert_eq!(all(&plan, &path, "1").2, 0);
}

#[test]
fn another_seed_or_version_makes_other_runs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    let (first, ..) = all(&plan(TEXT), &path, "1");
    let other = plan(&TEXT.replace("seed: 5", "seed: 6"));
    let (second, held, _) = all(&other, &path, "1");
    assert_eq!(held, 0);
    assert_ne!(first.runs, second.runs);
    assert_eq!(lines(&path), 12, "what nobody asks for any more is gone");
    assert_eq!(all(&other, &path, "2").1, 0);
}

#[test]
fn more_repeats_and_values_only_add() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal");
    all(&plan(TEXT), &path, "1");
    let more = plan(&TEXT.replace("repeats: 3", "repeats: 4").replace("[0 %, 2 %]", "[0 %, 1 %, 2 %]"));
    let (document, held, _) = all(&more, &path, "1");
    assert_eq!((held, document.runs.len()), (12, 24));
    assert_eq!(document, run(&more, 1, None, &Monitor::default()).unwrap());
}

#[test]
fn the_parts_of_a_plan_have_each_run_once() {
    let plan = plan(TEXT);
    let whole = run(&plan, 1, None, &Monitor::default()).unwrap();
    for of in [1, 5, 20] {
        let mut parts: Vec<_> = (1..=of)
            .map(|number| {
                let part = Part::new(number, of).unwrap();
                let jobs = Jobs { threads: 1, part, captures: None, record: None, journal: None };
                let runs = run_jobs(&plan, &jobs, &Monitor::default()).unwrap().runs;
                assert_eq!(runs.len() as u64, part.runs(12));
                runs.into_iter()
            })
            .collect();
        let dealt: Vec<_> = (0..12).map(|run| parts[run % of as usize].next().unwrap()).collect();
        assert_eq!(dealt, whole.runs);
    }
    assert_eq!((Part::new(0, 3), Part::new(4, 3), Part::new(1, 0)), (None, None, None));
}
