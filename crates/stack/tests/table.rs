//! The table of transports: what its rows say holds, and nothing else names a protocol.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hopcast_config::yaml::{Source, parse};
use hopcast_stack::table::Worlds;
use hopcast_stack::transport::{Feedback, PortKind};
use hopcast_stack::{TRANSPORTS, layer};

/// Files in which a protocol may be named: its own folder, and its file beside the table.
const EXEMPT: [&str; 3] = ["stack/src/transports/", "coded/", "peers/"];

/// The rows that everybody may name, as `wire` and `host` are everybody's.
const OF_THE_HOST: [&str; 1] = ["udp"];

#[test]
fn every_row_has_a_name_of_its_own_a_line_and_documented_options() {
    let names: BTreeSet<&str> = TRANSPORTS.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), TRANSPORTS.len());
    for row in TRANSPORTS {
        let name = row.name;
        assert!(row.about.len() > 20 && row.about.len() < 120 && !row.about.ends_with('.'), "{name}");
        assert_eq!(row.layer().to_string(), name, "the defaults are the defaults");
        for option in (row.options)() {
            assert!(option.about.ends_with('.') && option.about.len() > 15, "{name}: {}", option.key);
        }
    }
}

#[test]
fn a_layer_shows_the_options_that_are_not_the_default() {
    let source = Arc::new(Source { name: "test".to_owned(), dir: PathBuf::new(), lines: true });
    for (written, shown) in [
        ("{ fec: { copies: 2 } }", "fec"),
        ("{ fec: { copies: 3 } }", "fec (copies 3)"),
        ("{ tcp-bbr: { min-rto: 1s } }", "tcp-bbr (min-rto 1s)"),
        ("{ split-bbr: { min-rto: 1s } }", "split-bbr (min-rto 1s)"),
        // What follows from another option goes without saying.
        ("{ brtp: { feedback: none, window: 64 } }", "brtp (feedback none, window 64)"),
        ("{ bats-proxy: { feedback: none } }", "bats-proxy (feedback none)"),
        ("{ btp: { deadline: 30 ms } }", "btp (deadline 30ms)"),
        ("{ kcp-fec: { resend: 7 } }", "kcp-fec (resend 7)"),
    ] {
        let node = parse(written, &source).unwrap();
        assert_eq!(layer(&node).unwrap().to_string(), shown);
    }
}

#[test]
fn every_stream_hears_from_its_receiver() {
    for row in TRANSPORTS.iter().filter(|row| row.offers.has(PortKind::Stream)) {
        assert_ne!(row.feedback, Feedback::None, "{}: without it nothing would repair the stream", row.name);
    }
}

#[test]
fn real_programs_say_which_and_in_which_package() {
    for row in TRANSPORTS {
        if let Worlds::Live { programs, models } = row.worlds {
            assert!(!programs.is_empty() && !models.is_empty(), "{}", row.name);
        }
    }
}

/// A protocol is its folder, and one file here: no other code has a row's name as a string, or the path of a protocol's
/// module. Tests may.
#[test]
fn nothing_else_names_a_protocol() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    sources(&crates, &mut files);
    assert!(files.len() > 300, "{} files", files.len());
    let quoted: Vec<String> = TRANSPORTS
        .iter()
        .filter(|row| !OF_THE_HOST.contains(&row.name))
        .map(|row| format!("\"{}\"", row.name))
        .collect();
    let mut found = Vec::new();
    for path in files {
        let short = path.strip_prefix(&crates).unwrap().display().to_string();
        if EXEMPT.iter().any(|exempt| short.starts_with(exempt)) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        // A module of tests in the same file is at its end.
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            let names_row = quoted.iter().any(|name| line.contains(name));
            let names_module = ["hopcast_coded", "hopcast_peers"].iter().any(|path| line.contains(path));
            if names_row || names_module {
                found.push(format!("{short}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "a protocol is named outside of its file:\n{}", found.join("\n"));
}

/// The Rust files of every crate, but for tests, examples and benchmarks.
fn sources(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !["tests", "benches", "examples", "target"].contains(&name.as_str()) {
            sources(&path, files);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            files.push(path);
        }
    }
}
