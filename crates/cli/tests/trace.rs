//! `hopcast trace` of what `hopcast run --record` and `--capture` leave.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;

use common::{hopcast, text};
use serde_json::Value;
use tempfile::TempDir;

const ONE_WAY: &str = include_str!("../../../scenarios/faults/one-way-link.yaml");

/// A directory with `out`, the run of a scenario with these options.
fn run(scenario: &str, options: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s.yaml"), scenario).unwrap();
    let output = hopcast(dir.path(), &[&["run", "s.yaml", "--out", "out"], options].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    dir
}

/// The output of `hopcast trace` with these arguments.
fn traced(dir: &TempDir, arguments: &[&str]) -> String {
    let output = hopcast(dir.path(), &[&["trace"], arguments].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// The message of `hopcast trace` about a mistake in its arguments.
fn refused(dir: &TempDir, arguments: &[&str]) -> String {
    let output = hopcast(dir.path(), &[&["trace"], arguments].concat());
    assert_eq!(output.status.code(), Some(2));
    text(&output.stderr).trim_end().to_owned()
}

#[test]
fn a_recorded_run_says_where_packets_died() {
    let dir = run(ONE_WAY, &["--record"]);
    let line = "ICMP echo reply from b to a died on link r-b, from b to r: lost on the link, 10 of 10\n";
    let story = traced(&dir, &["out", "icmp", "between", "a", "and", "b", "--svg", "way.svg"]);
    assert!(story.starts_with(line), "{story}");
    let picture = fs::read_to_string(dir.path().join("way.svg")).unwrap();
    assert!(picture.contains("<svg ") && picture.contains("10 lost"), "{picture}");
    let json: Value = serde_json::from_str(&traced(&dir, &["out", "icmp from b to a", "--json"])).unwrap();
    assert_eq!(json["verdict"], line.trim_end());
    assert_eq!(json["verdicts"][0]["finding"]["died"], "on link r-b, from b to r");
    assert_eq!(json["packets"].as_array().unwrap().len(), 3);
    let drops = traced(&dir, &["out"]);
    assert!(drops.starts_with("10 packets were dropped\n"), "{drops}");
    assert!(drops.contains("link r-b, from b to r  lost on the link"), "{drops}");
}

#[test]
fn captures_are_followed_with_less_detail() {
    let dir = run(ONE_WAY, &["--capture", "all"]);
    let story = traced(&dir, &["out", "icmp"]);
    assert!(story.contains("died at b:eth0: lost on the link, 10 of 10\n"), "{story}");
    assert!(story.contains("r:eth1 sends 98 B"), "{story}");
}

#[test]
fn captures_have_the_names_of_their_scenario() {
    let dir = run(ONE_WAY, &["--capture", "all"]);
    let traced = |query| traced(&dir, &["out", "--scenario", "s.yaml", query]);
    let died = "ICMP echo reply from b to a died on link r-b, from b to r: lost on the link, 10 of 10\n";
    let arrived = "ICMP echo request from a to b arrived at b, 10 of 10\n";
    for query in ["icmp between a and b", "flow ping"] {
        let story = traced(query);
        assert!(story.starts_with(&format!("{died}{arrived}")), "{query}: {story}");
    }
    assert!(traced("icmp at a:eth0").starts_with(arrived), "{}", traced("icmp at a:eth0"));
    let nearest = "query, word 2: expected a flow, not `pin` (did you mean `ping`?)";
    assert_eq!(refused(&dir, &["out", "--scenario", "s.yaml", "flow pin"]), nearest);
}

#[test]
fn a_log_has_a_maximum_size_and_says_what_it_left_out() {
    let dir = run(ONE_WAY, &["--record=2kB"]);
    let log = dir.path().join("out/captures/case-000-repeat-000.trace");
    assert!(fs::metadata(log).unwrap().len() < 2_500);
    let drops = traced(&dir, &["out"]);
    assert!(drops.contains("the log reached its maximum size at "), "{drops}");
}

#[test]
fn mistakes_get_one_line() {
    let dir = run(ONE_WAY, &["--record", "--repeats", "2"]);
    assert_eq!(
        refused(&dir, &["nowhere"]),
        "nowhere: expected a run directory, a log or a capture, found nothing by this name"
    );
    assert_eq!(refused(&dir, &["out", "icmp"]), "out: has 2 runs; choose one with --run 0 to --run 1");
    assert_eq!(refused(&dir, &["out", "--run", "2"]), "--run 2: out has 2 runs, counted from 0");
    assert_eq!(
        refused(&dir, &["out", "--run", "1", "icmp from q"]),
        "query, word 3: expected a node, a group or an address, not `q`"
    );
    assert_eq!(refused(&dir, &["s.yaml"]), "s.yaml: this is no log that `hopcast run --record` has written");
}
