//! Owner of a run directory: one scenario, and one process at a time.

#![allow(clippy::unwrap_used)] // in what the tests share

mod common;

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use common::{SMALL, command, hopcast, text};

fn written() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("small.yaml"), SMALL).unwrap();
    fs::write(dir.path().join("other.yaml"), SMALL.replace("A small one", "Another")).unwrap();
    dir
}

fn ran(dir: &Path, arguments: &[&str]) -> String {
    let output = hopcast(dir, arguments);
    let errors = text(&output.stderr);
    assert!(output.status.success(), "{errors}");
    errors
}

#[track_caller]
fn refused(output: &Output, expected: &str) {
    let error = text(&output.stderr);
    assert_eq!((output.status.code(), error.trim_end()), (Some(2), expected));
    assert!(output.stdout.is_empty());
}

/// All files of a directory with their contents, by name.
fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_file())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn somebody_elses_owner_json_makes_no_run_directory_and_stays() {
    let dir = written();
    fs::create_dir(dir.path().join("out")).unwrap();
    let file = dir.path().join("out/owner.json");
    for theirs in ["{\"name\": \"Ada\"}\n", "not even JSON"] {
        fs::write(&file, theirs).unwrap();
        let refusal =
            "--out out: expected a new or empty directory or an earlier run's, found something else";
        refused(&hopcast(dir.path(), &["run", "small.yaml", "--out", "out"]), refusal);
        assert_eq!(fs::read_to_string(&file).unwrap(), theirs);
    }
    // The files of a run that was interrupted at its beginning.
    fs::write(&file, "").unwrap();
    ran(dir.path(), &["run", "small.yaml", "--out", "out"]);
}

#[test]
fn the_results_of_another_scenario_are_replaced_only_when_that_is_asked_for() {
    let dir = written();
    ran(dir.path(), &["run", "small.yaml", "--out", "out", "--capture", "n1"]);
    let before = contents(&dir.path().join("out"));
    let refusal = "--out out: holds the results of `small.yaml` (A small one), not of `other.yaml`: choose another --out, or \
                   --fresh to replace them";
    refused(&hopcast(dir.path(), &["run", "other.yaml", "--out", "out"]), refusal);
    // A copy under another name is another scenario, whatever its title.
    fs::write(dir.path().join("copy.yaml"), SMALL).unwrap();
    let copy = hopcast(dir.path(), &["run", "copy.yaml", "--out", "out"]);
    refused(&copy, &refusal.replace("other.yaml", "copy.yaml"));
    assert!(before == contents(&dir.path().join("out")), "nothing has changed");
    // Results of an earlier version name their scenario themselves.
    fs::remove_file(dir.path().join("out/owner.json")).unwrap();
    refused(&hopcast(dir.path(), &["run", "other.yaml", "--out", "out"]), refusal);
    assert!(!dir.path().join("out/owner.json").exists());

    let fresh = ran(dir.path(), &["run", "other.yaml", "--out", "out", "--fresh"]);
    assert!(
        fresh.contains("out: the results of `small.yaml` (A small one) are replaced (--fresh)"),
        "{fresh}"
    );
    ran(dir.path(), &["run", "other.yaml", "--out", "whole"]);
    let read = |name: &str| fs::read(dir.path().join(name)).unwrap();
    assert!(read("out/summary.json") == read("whole/summary.json"));
    assert_eq!(fs::read_dir(dir.path().join("out/captures")).unwrap().count(), 0);
}

#[test]
fn runs_of_another_scenario_that_was_cut_short_are_kept_too() {
    let dir = written();
    ran(dir.path(), &["run", "small.yaml", "--out", "out"]);
    for name in ["manifest.json", "summary.json"] {
        fs::remove_file(dir.path().join("out").join(name)).unwrap();
    }
    let other = || hopcast(dir.path(), &["run", "other.yaml", "--out", "out"]);
    let rest = "not of `other.yaml`: choose another --out, or --fresh to replace them";
    refused(&other(), &format!("--out out: holds finished runs of `small.yaml` (A small one), {rest}"));
    let resumed = ran(dir.path(), &["run", "small.yaml", "--out", "out"]);
    assert!(resumed.contains("4 of 4 runs are finished already"), "{resumed}");
    for name in ["manifest.json", "summary.json", "owner.json"] {
        fs::remove_file(dir.path().join("out").join(name)).unwrap();
    }
    refused(&other(), &format!("--out out: holds finished runs of an unknown scenario, {rest}"));
}

#[test]
fn a_scenario_that_was_edited_replaces_its_own_results_and_says_so() {
    let dir = written();
    ran(dir.path(), &["run", "small.yaml", "--out", "out"]);
    fs::write(dir.path().join("small.yaml"), SMALL.replace("10 Mbit/s", "20 Mbit/s")).unwrap();
    let edited = ran(dir.path(), &["run", "small.yaml", "--out", "out"]);
    assert!(edited.contains("out: replaces 4 finished runs of other settings"), "{edited}");
    // By another title it is the same file, and in another place a file of the same name and title is a copy of it.
    fs::write(dir.path().join("small.yaml"), SMALL.replace("A small one", "A new title")).unwrap();
    ran(dir.path(), &["run", "small.yaml", "--out", "out"]);
    fs::create_dir(dir.path().join("elsewhere")).unwrap();
    fs::rename(dir.path().join("small.yaml"), dir.path().join("elsewhere/small.yaml")).unwrap();
    let moved = ran(dir.path(), &["run", "elsewhere/small.yaml", "--out", "out"]);
    assert!(moved.contains("4 of 4 runs are finished already") && !moved.contains("replaces"), "{moved}");
    let more = ran(dir.path(), &["run", "elsewhere/small.yaml", "--out", "out", "--repeats", "3"]);
    assert!(!more.contains("replaces"), "nothing goes where repeats are added: {more}");
    // With captures there is no journal that could tell.
    let captured = ran(dir.path(), &["run", "elsewhere/small.yaml", "--out", "out", "--capture", "n1"]);
    assert!(captured.contains("out: the results of an earlier run are replaced"), "{captured}");
}

#[test]
fn two_processes_do_not_write_one_directory_and_a_kill_leaves_no_lock() {
    let dir = written();
    let long =
        ["run", "small.yaml", "--set", "duration=100000 s", "--set", "measure.interval=1 s", "--out", "out"];
    let mut first = command(dir.path(), &long).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The journal is made once the directory is locked.
    while !dir.path().join("out/runs.journal").exists() && first.try_wait().unwrap().is_none() {
        std::thread::park_timeout(std::time::Duration::from_millis(2));
    }
    let busy = "--out out: another hopcast is writing into this directory";
    refused(&hopcast(dir.path(), &["run", "small.yaml", "--out", "out"]), busy);
    refused(&hopcast(dir.path(), &["run", "small.yaml", "--out", "out", "--fresh"]), busy);
    first.kill().unwrap();
    first.wait().unwrap();
    ran(dir.path(), &["run", "small.yaml", "--out", "out"]);
}

#[test]
fn a_report_is_not_written_over_another_scenarios() {
    let dir = written();
    ran(dir.path(), &["run", "small.yaml", "--out", "small"]);
    ran(dir.path(), &["run", "other.yaml", "--out", "other"]);
    let over = hopcast(dir.path(), &["report", "small", "--out", "other"]);
    let expected =
        "--out other: holds the results of `other.yaml` (Another), not of `small.yaml`: choose another --out";
    refused(&over, expected);
    ran(dir.path(), &["report", "small", "--out", "again"]);
    ran(dir.path(), &["report", "small", "--out", "again"]);
    ran(dir.path(), &["report", "again"]);
}

#[test]
fn studies_are_there_away_from_a_checkout() {
    let dir = tempfile::tempdir().unwrap();
    let list = text(&hopcast(dir.path(), &["studies"]).stdout);
    assert!(list.lines().any(|line| line.starts_with("bats-six-hop  ")), "{list}");
    let quick = ["--set", "duration=3 s", "--set", "measure.from=2 s", "--repeats", "1", "--out", "out"];
    let sweep = ["study", "bats-three-hops", "--set", "sweep.flows.bulk.over=[bats-proxy]"];
    let output = hopcast(dir.path(), &[&sweep[..], &quick].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("published"), "its published table is there too");
    // A study of one's own takes the place of the program's.
    fs::create_dir_all(dir.path().join("scenarios/studies")).unwrap();
    fs::write(dir.path().join("scenarios/studies/bats-six-hop.yaml"), SMALL).unwrap();
    let list = text(&hopcast(dir.path(), &["studies"]).stdout);
    assert!(list.contains("A small one") && list.lines().any(|line| line.starts_with("parity ")), "{list}");
}

#[test]
fn a_run_says_what_a_check_notes() {
    let dir = tempfile::tempdir().unwrap();
    let noted = SMALL.replace("app: bulk", "app: { bulk: { stop: 1 h } }");
    fs::write(dir.path().join("small.yaml"), noted).unwrap();
    let note = "note: flow flow stops at 3600s, after the end of the run at 2s";
    let check = text(&hopcast(dir.path(), &["check", "small.yaml"]).stdout);
    assert!(check.contains(note), "{check}");
    let run = ran(dir.path(), &["run", "small.yaml", "--format", "json", "--out", "out"]);
    assert!(run.lines().any(|line| line == note), "{run}");
}
