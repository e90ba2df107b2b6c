//! Sweeps that are cut short, dealt out, joined and compared.

#![allow(clippy::unwrap_used)] // in what the tests share

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::{SMALL, command, hopcast, text};
use serde_json::Value;

/// The part of the results that depends neither on the machine nor on the time.
const SAME: [&str; 7] = [
    "summary.json",
    "flows.csv",
    "receivers.csv",
    "counters.csv",
    "links.csv",
    "timeseries.csv",
    "latency.csv",
];

fn ran(dir: &Path, arguments: &[&str]) -> Output {
    let output = hopcast(dir, arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    output
}

fn written() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("small.yaml"), SMALL).unwrap();
    dir
}

#[track_caller]
fn same(dir: &Path, one: &str, two: &str) {
    for name in SAME {
        let [one, two] = [one, two].map(|out| fs::read(dir.join(out).join(name)).unwrap());
        assert!(one == two, "{name} differs");
    }
}

#[test]
fn a_killed_run_goes_on_where_it_was_and_ends_the_same() {
    let dir = written();
    // The second case takes a while, so that the kill comes between.
    let sweep = "sweep={ duration: [100 ms, 20 s], flows.flow.over: [udp, tcp-cubic] }";
    let run =
        ["run", "small.yaml", "--set", sweep, "--set", "measure.interval=100 ms", "--threads", "1", "--out"];
    let mut child = command(dir.path(), &[&run[..], &["cut"]].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let journal = dir.path().join("cut/runs.journal");
    let lines = || fs::read_to_string(&journal).map_or(0, |text| text.matches('\n').count());
    while lines() < 3 && child.try_wait().unwrap().is_none() {
        std::thread::park_timeout(std::time::Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let held = lines();
    assert!(held >= 3);
    ran(dir.path(), &[&run[..], &["whole"]].concat());
    let resumed = ran(dir.path(), &[&run[..], &["cut"]].concat());
    assert!(text(&resumed.stderr).contains(&format!("{held} of 8 runs are finished already")));
    same(dir.path(), "whole", "cut");
}

#[test]
fn a_second_run_into_a_directory_only_adds_and_fresh_runs_all() {
    let dir = written();
    ran(dir.path(), &["run", "small.yaml", "--out", "out"]);
    let more = ran(dir.path(), &["run", "small.yaml", "--repeats", "3", "--out", "out"]);
    assert!(text(&more.stderr).contains("4 of 6 runs are finished already"), "{}", text(&more.stderr));
    ran(dir.path(), &["run", "small.yaml", "--repeats", "3", "--out", "whole"]);
    same(dir.path(), "whole", "out");
    let fresh = ran(dir.path(), &["run", "small.yaml", "--repeats", "3", "--out", "out", "--fresh"]);
    assert!(!text(&fresh.stderr).contains("already"));
    same(dir.path(), "whole", "out");
    let journal = dir.path().join("out/runs.journal");
    let torn = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, &torn[..torn.len() - 100]).unwrap();
    let again = ran(dir.path(), &["run", "small.yaml", "--repeats", "3", "--out", "out"]);
    assert!(text(&again.stderr).contains("5 of 6 runs are finished already"), "{}", text(&again.stderr));
    assert!(text(&again.stderr).contains("runs.journal: a damaged line is ignored"));
    same(dir.path(), "whole", "out");
    let seed = ran(dir.path(), &["run", "small.yaml", "--seed", "6", "--out", "out"]);
    assert!(!text(&seed.stderr).contains("already"));
}

#[test]
fn an_interrupt_says_how_to_go_on() {
    let dir = written();
    let sweep = "sweep={ duration: [10 ms, 100000 s] }";
    let arguments = [
        "run",
        "small.yaml",
        "--set",
        sweep,
        "--set",
        "measure.interval=1 s",
        "--repeats",
        "1",
        "--threads",
        "1",
    ];
    let child = command(dir.path(), &arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let journal = dir.path().join("runs/small-001/runs.journal");
    while fs::metadata(&journal).map_or(0, |file| file.len()) == 0 {
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let errors = text(&child.wait_with_output().unwrap().stderr);
    let expected = "hopcast run small.yaml --set 'sweep={ duration: [10 ms, 100000 s] }' --set \
                    'measure.interval=1 s' --repeats 1 --threads 1 --out runs/small-001";
    assert!(errors.contains(expected), "{errors}");
}

#[test]
fn shards_join_to_the_bytes_of_the_whole() {
    let dir = written();
    ran(dir.path(), &["run", "small.yaml", "--out", "whole"]);
    for shard in ["1/3", "2/3", "3/3"] {
        ran(dir.path(), &["run", "small.yaml", "--shard", shard, "--out", &shard[..1]]);
    }
    let missing = hopcast(dir.path(), &["report", "1", "3", "--out", "joined"]);
    assert_eq!((missing.status.code(), text(&missing.stderr).trim()), (Some(2), "missing: shard 2/3"));
    assert!(!dir.path().join("joined").exists());
    ran(dir.path(), &["report", "3", "1", "2", "--out", "joined"]);
    same(dir.path(), "whole", "joined");
    let again = ran(dir.path(), &["run", "small.yaml", "--out", "joined"]);
    assert!(text(&again.stderr).contains("4 of 4 runs are finished already"));
    let wrong = hopcast(dir.path(), &["run", "small.yaml", "--shard", "4/3"]);
    assert!(text(&wrong.stderr).contains("expected I/N with I from 1 to N"));
    let none = hopcast(dir.path(), &["run", "small.yaml", "--shard", "9/9"]);
    assert!(text(&none.stderr).contains("there are 4 runs, this shard has none of them"));
}

#[test]
fn two_runs_are_compared_on_a_page_a_table_and_as_json() {
    let dir = written();
    ran(dir.path(), &["run", "small.yaml", "--out", "a", "--repeats", "4"]);
    let slower = "topology.chain.link.rate=5 Mbit/s";
    ran(dir.path(), &["run", "small.yaml", "--out", "b", "--repeats", "4", "--set", slower]);
    let table = ran(dir.path(), &["report", "a", "b"]);
    let table = text(&table.stdout);
    assert!(
        table.lines().any(|line| line.contains("udp") && line.contains("goodput") && line.contains("worse"))
    );
    assert!(dir.path().join("b/comparison.html").is_file());
    let json = ran(dir.path(), &["report", "a", "b", "--format", "json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let udp =
        json["figures"].as_array().unwrap().iter().find(|figure| figure["figure"] == "goodput_mbps").unwrap();
    assert!(udp["difference"].as_f64().unwrap() < -4.0 && udp["significant"] == true, "{udp}");
    let three = hopcast(dir.path(), &["report", "a", "b", "a"]);
    assert!(text(&three.stderr).contains("expected one run, two to compare or the shards of one, found 3"));
}

#[test]
fn one_flow_of_one_run_is_printed_as_iperf3_does() {
    let dir = written();
    let several = hopcast(dir.path(), &["run", "small.yaml", "--format", "iperf3"]);
    assert_eq!(several.status.code(), Some(2));
    assert!(text(&several.stderr).contains("choose it with --run 0 to --run 3"), "{}", text(&several.stderr));
    let one = ran(dir.path(), &["run", "small.yaml", "--format", "iperf3", "--run", "2", "--out", "out"]);
    let json: Value = serde_json::from_slice(&one.stdout).unwrap();
    assert_eq!(json["start"]["test_start"]["protocol"], "TCP");
    assert!(json["end"]["sum_received"]["bytes"].as_u64().unwrap() > 1000);
    let again = ran(dir.path(), &["report", "out", "--format", "iperf3", "--run", "2", "--flow", "flow"]);
    assert!(one.stdout == again.stdout);
    let wrong = hopcast(dir.path(), &["report", "out", "--format", "iperf3", "--run", "2", "--flow", "flw"]);
    assert!(text(&wrong.stderr).contains("`flow`"), "{}", text(&wrong.stderr));
    let stray = hopcast(dir.path(), &["report", "out", "--flow", "flow"]);
    assert!(text(&stray.stderr).contains("go with --format iperf3"));
}
