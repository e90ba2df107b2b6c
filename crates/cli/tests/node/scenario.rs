//! The nodes of a scenario, each started by hand on a host of its own.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::lab::{Lab, possible};

const SCENARIO: &str = "\
title: By hand
duration: 4 s
topology: { chain: { hops: 2, link: { rate: 10 Mbit/s } } }
flows:
  - { name: file, from: n0, to: n2, over: brtp, app: { file: { path: file } } }
";

#[test]
fn nodes_that_are_started_by_hand_begin_together() {
    if !possible() {
        return;
    }
    let lab = Lab::row(&["n0", "n1", "n2"]);
    lab.lose("n1", 10);
    lab.lose("n2", 10);
    for (name, own, ways) in [
        ("n0", "10.0.0.1", &["10.0.0.2/32 via 192.0.2.2", "10.0.0.3/32 via 192.0.2.2"][..]),
        ("n1", "10.0.0.2", &["10.0.0.1/32 via 192.0.2.1", "10.0.0.3/32 via 192.0.3.2"]),
        ("n2", "10.0.0.3", &["10.0.0.1/32 via 192.0.3.1", "10.0.0.2/32 via 192.0.3.1"]),
    ] {
        lab.run(name, &format!("ip address add {own}/32 dev lo"));
        ways.iter().for_each(|way| drop(lab.run(name, &format!("ip route add {way} src {own}"))));
    }
    fs::write(lab.dir.path().join("hand.yaml"), SCENARIO).unwrap();
    // Long enough for losses in each direction, although the filter sees packets that were sent at once as one.
    fs::write(lab.dir.path().join("file"), vec![7; 4_000_000]).unwrap();
    let begin = humantime::format_rfc3339(SystemTime::now() + Duration::from_secs(6)).to_string();
    let start = |name: &&str| {
        let space = lab.space(name);
        Command::new("ip")
            .args(["netns", "exec", &space, env!("CARGO_BIN_EXE_hopcast"), "node", "hand.yaml"])
            .args(["--as", name, "--begin", &begin])
            .current_dir(&lab.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let nodes: Vec<_> = ["n0", "n1", "n2"].iter().map(start).collect();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let mut said = Vec::new();
    for node in nodes {
        let output = node.wait_with_output().unwrap();
        let errors = text(output.stderr);
        assert!(output.status.success(), "{errors}");
        said.push((text(output.stdout), errors));
    }
    assert!(said[1].1.starts_with("n1 (10.0.0.2 and "), "{}", said[1].1);
    let [sender, relay, receiver] = [&said[0].0, &said[1].0, &said[2].0];
    assert!(receiver.contains("received 4000000 bytes") && receiver.contains(" s, intact"), "{receiver}");
    assert!(sender.contains("packets_repair") && !sender.contains("received "), "{sender}");
    assert!(relay.starts_with("file at n1\n") && relay.contains("n1.packets_recoded"), "{relay}");
}

#[test]
fn a_time_that_has_gone_by_or_is_none_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("hand.yaml"), SCENARIO).unwrap();
    fs::write(dir.path().join("file"), "x").unwrap();
    let attempt = |begin: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hopcast"));
        let output = command.args(["node", "hand.yaml", "--as", "n0", "--begin", begin]);
        let output = output.current_dir(&dir).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(attempt("2020-01-01T00:00:00Z").contains("the time to begin has gone by"));
    assert!(attempt("soon").contains("--begin"));
}
