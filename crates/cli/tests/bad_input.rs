//! A person's mistake: one line, exit code 2, nothing written.

mod common;

use std::fs;

use common::{SMALL, hopcast, text};

#[test]
fn a_mistake_is_one_line_and_nothing_is_written() {
    let mistakes = [
        ("hops: 2", "hosp: 2", "bad.yaml:5:12: unknown key `hosp`"),
        (
            "loss: 2 %",
            "loss: 2",
            "bad.yaml:5:65: `loss`: expected a share with its unit, found the bare number `2`",
        ),
        ("10 Mbit/s", "10 Mbps", "did you mean `Mbit/s`?"),
        ("to: n2", "to: n3", "there is no node `n3`"),
        ("loss: 2 %", "loss: 102 %", "more than 100 %"),
        ("duration: 2 s", "duration: 1e30 s", "past any bound"),
        ("app: bulk", "app: { file: { path: no-such-file } }", "cannot read `no-such-file`"),
    ];
    for (right, wrong, expected) in mistakes {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("bad.yaml"), SMALL.replacen(right, wrong, 1)).unwrap();
        for command in ["check", "run"] {
            let output = hopcast(dir.path(), &[command, "bad.yaml"]);
            let error = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{command} {wrong}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
            assert!(error.starts_with("bad.yaml:") && error.contains(expected), "{error}");
            assert!(output.stdout.is_empty());
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "{command} {wrong} wrote something");
        }
    }
}

#[test]
fn a_directory_with_something_else_in_it_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("small.yaml"), SMALL).unwrap();
    fs::create_dir(dir.path().join("photos")).unwrap();
    fs::write(dir.path().join("photos/one.jpg"), "precious").unwrap();
    let output = hopcast(dir.path(), &["run", "small.yaml", "--out", "photos"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--out photos"), "{}", text(&output.stderr));
    assert_eq!(fs::read_dir(dir.path().join("photos")).unwrap().count(), 1);
}

#[test]
fn a_study_or_file_that_is_not_there_is_told_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("scenarios/studies")).unwrap();
    fs::write(dir.path().join("scenarios/studies/small-one.yaml"), SMALL).unwrap();
    let output = hopcast(dir.path(), &["study", "smal-one"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("did you mean `small-one`?"), "{}", text(&output.stderr));
    let output = hopcast(dir.path(), &["run", "nowhere.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    let found = "nowhere.yaml: cannot read this file: No such file or directory\n";
    assert_eq!(text(&output.stderr), found, "nothing is near");
    for (file, expected) in [
        ("scenarios/studies/smal-one.yaml", ": did you mean `scenarios/studies/small-one.yaml`?"),
        ("scenarios/studies/small-one", ": did you mean `scenarios/studies/small-one.yaml`?"),
        ("scenarois", ""),
        ("multicast-tactcal", ": did you mean the study `multicast-tactical`?"),
    ] {
        for command in ["run", "check"] {
            let output = hopcast(dir.path(), &[command, file]);
            let message = format!("{file}: cannot read this file: No such file or directory{expected}\n");
            assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), message));
        }
    }
    let output = hopcast(dir.path(), &["report", "nowhere"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn an_override_that_names_nothing_is_told_with_the_nearest() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("small.yaml"), SMALL).unwrap();
    let output = hopcast(dir.path(), &["run", "small.yaml", "--set", "topology.chian.hops=3"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("did you mean `chain`?"), "{}", text(&output.stderr));
}
