//! The output and the files of a run.

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use common::{SMALL, command, hopcast, repository, text};
use serde_json::Value;

#[test]
fn two_runs_of_one_seed_print_and_write_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("small.yaml"), SMALL).unwrap();
    let run = |out: &str, threads: &str| {
        let output = hopcast(
            dir.path(),
            &["run", "small.yaml", "--format", "json", "--out", out, "--threads", threads, "--capture", "n1"],
        );
        assert!(output.status.success(), "{}", text(&output.stderr));
        output.stdout
    };
    assert_eq!(run("one", "1"), run("two", "3"));
    let mut compared = 0;
    for name in [
        "summary.json",
        "topology.json",
        "flows.csv",
        "receivers.csv",
        "counters.csv",
        "links.csv",
        "timeseries.csv",
        "latency.csv",
        "captures/case-000-repeat-001.pcapng",
    ] {
        let read = |out: &str| {
            fs::read(dir.path().join(out).join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        assert!(read("one") == read("two"), "{name} differs");
        compared += 1;
    }
    assert_eq!(compared, 9);
}

#[test]
fn the_document_has_the_shape_that_scripts_rely_on() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("small.yaml"), SMALL).unwrap();
    let output = hopcast(dir.path(), &["run", "small.yaml", "--format", "json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["scenario"], "A small one");
    assert_eq!(document["runs"].as_array().unwrap().len(), 4);
    let run = &document["runs"][0];
    assert_eq!(run["parameters"], serde_json::json!({ "flows.flow.over": "udp" }));
    assert_eq!((&run["repeat"], &run["seed"]), (&Value::from(0), &Value::from(5)));
    let flow = &run["flows"][0];
    for key in [
        "name",
        "protocol",
        "from",
        "to",
        "goodput_mbps",
        "sent_units",
        "delivered_units",
        "reliability",
        "min_cut_fraction",
        "completed_s",
        "latency_ms",
        "round_trip_ms",
        "jitter_ms",
        "counters",
        "receivers",
    ] {
        assert!(flow.get(key).is_some(), "flows have `{key}`");
    }
    for key in ["mean", "p50", "p95", "p99", "p99_9", "max"] {
        assert!(flow["latency_ms"][key].is_f64(), "latency has `{key}`");
    }
    assert_eq!(flow["receivers"][0]["node"], "n2");
    for key in [
        "from",
        "to",
        "sent_bytes",
        "sent_packets",
        "delivered_packets",
        "lost_packets",
        "queue_dropped_packets",
        "utilisation",
    ] {
        assert!(run["links"][0].get(key).is_some(), "links have `{key}`");
    }
    let summary = &document["summary"][1];
    assert_eq!(summary["protocol"], "tcp-cubic");
    assert_eq!(summary["goodput_mbps"]["n"], 2);
    assert!(summary["goodput_mbps"]["ci95"].is_f64());
    // No trace of the machine or the hour.
    let text = text(&output.stdout);
    assert!(!text.contains(dir.path().to_str().unwrap()) && !text.contains("unix"));
    // Without --out the next free directory is taken.
    assert!(dir.path().join("runs/small-001/report.html").is_file());
}

#[test]
fn a_report_is_written_again_from_its_directory() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("small.yaml"), SMALL).unwrap();
    let first = hopcast(dir.path(), &["run", "small.yaml", "--out", "out"]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let page = dir.path().join("out/report.html");
    let before = fs::read(&page).unwrap();
    fs::remove_file(&page).unwrap();
    let again = hopcast(dir.path(), &["report", "out"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert!(before == fs::read(&page).unwrap(), "the page is the same");
    assert_eq!(text(&first.stdout), text(&again.stdout), "and so is the table");
}

#[test]
fn an_interrupt_writes_what_is_finished_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("small.yaml"), SMALL).unwrap();
    // One quick case, then one that would take hours.
    let sets =
        ["--set", "sweep={ duration: [10 ms, 100000 s] }", "--set", "measure.interval=1 s", "--repeats", "1"];
    let mut arguments = vec!["run", "small.yaml", "--out", "out", "--format", "json", "--threads", "1"];
    arguments.extend(sets);
    let mut child =
        command(dir.path(), &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The quick case takes milliseconds; its captures directory and all else comes only at the end.
    std::thread::park_timeout(std::time::Duration::from_millis(1500));
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let errors: Vec<String> =
        BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap).collect();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{errors:?}");
    assert!(errors.iter().any(|line| line.contains("1 of 2 runs are finished and written")), "{errors:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["interrupted"], true);
    assert_eq!(document["runs"].as_array().unwrap().len(), 1);
    assert!(dir.path().join("out/report.html").is_file());
}

#[test]
fn every_scenario_of_the_repository_checks() {
    for entry in fs::read_dir(repository("scenarios"))
        .unwrap()
        .chain(fs::read_dir(repository("scenarios/studies")).unwrap())
    {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let output = hopcast(path.parent().unwrap(), &["check", path.to_str().unwrap()]);
            assert!(output.status.success(), "{}", text(&output.stderr));
        }
    }
}
