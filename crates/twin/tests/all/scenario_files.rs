//! Files that a scenario includes or names, and those that cannot be read.

#![allow(clippy::unwrap_used)] // in what the tests share

use std::fs;
use std::path::Path;

use crate::common::scenarios::*;
use hopcast_runner::load;
use hopcast_twin::scenario::{Diagnostic, Overrides};

#[test]
fn an_including_file_wins_over_what_it_includes() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    fs::create_dir(dir.path().join("parts")).unwrap();
    write(
        "main.yaml",
        &format!("include: [parts/one.yaml, parts/two.yaml]\nseed: 7\n{}", with("measure: { to: 9s }")),
    );
    write("parts/one.yaml", "include: deep.yaml\nseed: 1\nrepeats: 3\nmeasure: { from: 1s, to: 2s }");
    write("parts/two.yaml", "measure: { from: 2s }");
    write("parts/deep.yaml", "title: Deep\nrepeats: 1");
    let plan = load(&dir.path().join("main.yaml"), &Overrides::default()).unwrap();
    let scenario = &plan.cases[0].scenario;
    assert_eq!((plan.title.as_str(), plan.repeats, scenario.seed), ("Deep", 3, 7));
    assert_eq!((scenario.measure.from.as_secs_f64(), scenario.measure.to.as_secs_f64()), (2.0, 9.0));

    // Errors keep naming the file in which the mistake stands.
    write("parts/two.yaml", "measure: { from: 2 }");
    let error = load(&dir.path().join("main.yaml"), &Overrides::default()).unwrap_err();
    assert!(error.file.ends_with("parts/two.yaml"), "{error}");
    assert_eq!((error.line, error.column), (1, 18));

    write("parts/deep.yaml", "include: ../main.yaml");
    let error = load(&dir.path().join("main.yaml"), &Overrides::default()).unwrap_err();
    assert!(
        error.file.ends_with("deep.yaml") && error.message.ends_with("is being included already: a cycle")
    );
}

#[test]
fn files_that_cannot_be_read_give_the_reason_of_the_system() {
    let error = |path: &Path| load(path, &Overrides::default()).map(|_| ()).unwrap_err();
    let expected = "nowhere.yaml: cannot read this file: No such file or directory";
    assert_eq!(error(Path::new("nowhere.yaml")).to_string(), expected);
    let dir = tempfile::tempdir().unwrap();
    let expected = Diagnostic {
        file: dir.path().display().to_string(),
        line: 0,
        column: 0,
        message: "cannot read this file: it is not a regular file".to_owned(),
    };
    assert_eq!(error(dir.path()), expected);

    let write = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let found = error(&write("latin.yaml", b"title: x\ntitel: caf\xe9\n"));
    assert_eq!((found.line, found.column), (2, 11));
    assert_eq!(found.message, "expected UTF-8 text, found the byte 0xe9");

    // In a file that the scenario names, the mistake is in that file.
    write("trace.txt", b"0101\n0121\n");
    let text = GOOD.replace("loss: 1 %", "loss: { trace: trace.txt }");
    let found = error(&write("trace.yaml", text.as_bytes()));
    assert!(found.file.ends_with("trace.txt"), "{found}");
    assert_eq!((found.line, found.column), (2, 3));

    write("table.csv", b"loss,figure\n5 %,12\n10 %,much\n");
    let table = "sweep: { events.loss.loss: [5 %] }\npublished: { file: table.csv, match: { loss: \
                 events.loss.loss }, figures: { figure: goodput_mbps } }\n";
    let found = error(&write("published.yaml", format!("{GOOD}{table}").as_bytes()));
    assert!(found.file.ends_with("table.csv"), "{found}");
    assert_eq!((found.line, found.column), (3, 6));
    assert_eq!(found.message, "`figure`: expected a number, found `much`");
    for second in ["measured", "expected"] {
        let both =
            format!("{GOOD}{table}{second}: {{ file: table.csv, figures: {{ figure: goodput_mbps }} }}\n");
        assert_eq!(
            error(&write("both.yaml", both.as_bytes())).message,
            format!("a scenario has `published` figures or `{second}` ones beside ours, not both")
        );
    }
    let found =
        error(&write("column.yaml", format!("{GOOD}{table}").replace("{ figure:", "{ figures:").as_bytes()));
    assert!(
        found
            .message
            .ends_with("has no column `figures`: did you mean `figure`? (its columns: loss, figure)")
    );
}
