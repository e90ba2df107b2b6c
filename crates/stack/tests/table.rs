//! The tables of transports, deliveries and services: each row keeps to its rules, and nothing else names a protocol.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hopcast_config::yaml::{Source, parse};
use hopcast_stack::deliveries::DELIVERIES;
use hopcast_stack::services::SERVICES;
use hopcast_stack::table::Worlds;
use hopcast_stack::transport::{Feedback, PortKind};
use hopcast_stack::{TRANSPORTS, layer};

/// Crates of protocols, and folders of tables: a protocol may be named in its own crate, and in its row's file. In the
/// language of queries `vlan` is the tag of a frame, and not the service.
const EXEMPT: [&str; 9] = [
    "stack/src/transports/",
    "stack/src/deliveries/",
    "stack/src/services/",
    "coded/",
    "explicit/",
    "peers/",
    "reliable/",
    "bridge/",
    "trace/src/query.rs",
];

/// The crates whose modules are protocols.
const PROTOCOL_CRATES: [&str; 5] =
    ["hopcast_coded", "hopcast_explicit", "hopcast_peers", "hopcast_reliable", "hopcast_bridge"];

/// The rows that everybody may name, as `wire` and `host` are everybody's: datagrams of the host, and IPv4's word for
/// an address that stands for all hosts.
const OF_THE_HOST: [&str; 2] = ["udp", "broadcast"];

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
    let others = DELIVERIES.iter().map(|row| (row.name, row.about, (row.options)()));
    let others = others.chain(SERVICES.iter().map(|row| (row.name, row.about, (row.options)())));
    let mut taken = names;
    for (name, about, options) in others {
        assert!(taken.insert(name), "{name}: a name of its own among all tables");
        assert!(about.len() > 20 && about.len() < 120 && !about.ends_with('.'), "{name}");
        for option in options {
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

/// A protocol is its folder, and one file here: no other code has the name of a transport, delivery or service as a
/// string, or the path of a protocol's module. Tests may.
#[test]
fn nothing_else_names_a_protocol() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    sources(&crates, &mut files);
    assert!(files.len() > 300, "{} files", files.len());
    let forbidden = forbidden();
    let mut found = Vec::new();
    for path in files {
        let short = path.strip_prefix(&crates).unwrap().display().to_string();
        if EXEMPT.iter().any(|exempt| short.starts_with(exempt)) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        found.extend(named(&text, &forbidden).into_iter().map(|line| format!("{short}:{line}")));
    }
    assert!(found.is_empty(), "a protocol is named outside of its file:\n{}", found.join("\n"));
}

#[test]
fn a_name_is_found_wherever_code_has_it() {
    let forbidden = forbidden();
    for row in TRANSPORTS.iter().map(|row| row.name).chain(["unicast", "ip-multicast", "vlan", "mld-querier"])
    {
        let code = format!("fn f(name: &str) -> bool {{\n    name == \"{row}\"\n}}\n");
        let expected: &[&str] = if OF_THE_HOST.contains(&row) { &[] } else { &["2: name == "] };
        let found = named(&code, &forbidden);
        assert_eq!(found.len(), expected.len(), "{row}");
        assert!(found.iter().zip(expected).all(|(found, begin)| found.starts_with(begin)), "{found:?}");
    }
    let paths = "use hopcast_reliable::norm::Session;\nlet tag = hopcast_bridge::Vlan::new();\n";
    assert_eq!(named(paths, &forbidden).len(), 2);
    let tests = "fn f() {}\n#[cfg(test)]\nmod tests {\n    const NAME: &str = \"norm\";\n}\n";
    assert!(named(tests, &forbidden).is_empty());
}

/// The words that no code may have but a protocol's own: names of rows in quotes, and protocols' crates.
fn forbidden() -> Vec<String> {
    let rows = TRANSPORTS.iter().map(|row| row.name);
    let rows = rows.chain(DELIVERIES.iter().map(|row| row.name)).chain(SERVICES.iter().map(|row| row.name));
    let quoted = rows.filter(|name| !OF_THE_HOST.contains(name)).map(|name| format!("\"{name}\""));
    quoted.chain(PROTOCOL_CRATES.map(str::to_owned)).collect()
}

/// The lines of a file that have one of these words, each with its number. A module of tests in the same file is at its
/// end.
fn named(text: &str, forbidden: &[String]) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().enumerate().filter(|(_, line)| forbidden.iter().any(|word| line.contains(word)));
    lines.map(|(number, line)| format!("{}: {}", number + 1, line.trim())).collect()
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
