//! A scenario is the same whether its files are in the file system or in memory.

#![allow(clippy::unwrap_used)] // in what the tests share

use std::fs;
use std::path::Path;

use hopcast_runner::FileSystem;
use hopcast_twin::scenario::model::{App, Plan};
use hopcast_twin::scenario::{Diagnostic, MemoryFiles, Overrides, load};

const MAIN: &str = "\
include: [parts/flows.yaml, parts/../parts/network.yaml]
duration: 1 s
published: { file: tables/figures.csv, figures: { mbps: goodput_mbps } }
";
const FLOWS: &str =
    "flows: [{ name: f, from: n0, to: n1, over: tcp-cubic, app: { file: { path: ../sent.bin } } }]\n";
const NETWORK: &str =
    "topology: { chain: { hops: 1, link: { rate: 1 Mbit/s, loss: { trace: ../loss.txt } } } }\n";
const FILES: [(&str, &str); 6] = [
    ("main.yaml", MAIN),
    ("parts/flows.yaml", FLOWS),
    ("parts/network.yaml", NETWORK),
    ("sent.bin", "some contents"),
    ("loss.txt", "0\n1\n0\n"),
    ("tables/figures.csv", "mbps\n3.5\n"),
];

/// `main.yaml` of these files, in a file system and in memory: the same plan or the same error.
fn both(files: &[(&str, &str)]) -> Result<Plan, Diagnostic> {
    let dir = tempfile::tempdir().unwrap();
    for (name, contents) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
    let memory: MemoryFiles =
        files.iter().map(|(name, contents)| (dir.path().join(name), *contents)).collect();
    let main = dir.path().join("main.yaml");
    let on_disk = load(&FileSystem, &main, &Overrides::default());
    let in_memory = load(&memory, &main, &Overrides::default());
    assert_eq!(format!("{in_memory:?}"), format!("{on_disk:?}"));
    let here = |error: Diagnostic| Diagnostic {
        file: error.file.replace(&*dir.path().to_string_lossy(), ""),
        message: error.message.replace(&*dir.path().to_string_lossy(), ""),
        ..error
    };
    in_memory.map_err(here)
}

#[test]
fn all_that_a_scenario_names_is_found_in_memory() {
    let plan = both(&FILES).unwrap();
    let scenario = &plan.cases[0].scenario;
    let App::File { contents, .. } = &scenario.flows[0].app else { panic!("a file is sent") };
    assert_eq!(contents[..], *b"some contents");
    assert_eq!(plan.published[0].figures["goodput_mbps"], 3.5);
}

#[test]
fn what_is_missing_or_goes_in_circles_is_the_same_error_in_memory() {
    for (missing, message) in [
        ("main.yaml", "/main.yaml: cannot read this file: No such file or directory"),
        ("parts/flows.yaml", "/main.yaml:1:11: cannot read `/parts/flows.yaml`: No such file or directory"),
        (
            "sent.bin",
            "/parts/flows.yaml:1:76: `path`: cannot read `/parts/../sent.bin`: No such file or directory",
        ),
        (
            "tables/figures.csv",
            "/main.yaml:3:20: cannot read `/tables/figures.csv`: No such file or directory",
        ),
    ] {
        let files: Vec<_> = FILES.into_iter().filter(|(name, _)| *name != missing).collect();
        assert_eq!(both(&files).unwrap_err().to_string(), message);
    }
    // One that has nearly its name is offered, and what names end in makes none likelier.
    for (name, other, hint) in [
        ("main.yaml", "mian.yaml", ": did you mean `/mian.yaml`?"),
        ("main.yaml", "echo.yaml", ""),
        ("main.yaml", "main.yml", ": did you mean `/main.yml`?"),
        ("main.yaml", "main.png", ""),
        ("sent.bin", "Sent_.bin", ": did you mean `/parts/../Sent_.bin`?"),
        ("parts/flows.yaml", "parts/flow.yaml", ": did you mean `/parts/flow.yaml`?"),
    ] {
        let renamed = |(found, text)| if found == name { (other, text) } else { (found, text) };
        let files: Vec<_> = FILES.into_iter().map(renamed).collect();
        let error = both(&files).unwrap_err().to_string();
        assert!(error.ends_with(&format!("No such file or directory{hint}")), "{error}");
    }
    let mut files = FILES;
    files[1].1 = "include: ../parts/./../main.yaml\n";
    let error = both(&files).unwrap_err().to_string();
    assert!(error.ends_with("is being included already: a cycle"), "{error}");
    assert!(Path::new(&error).starts_with("/parts"), "{error}");
}
