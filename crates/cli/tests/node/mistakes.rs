//! Each mistake is one line that says what to do, and nothing is left behind.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use hopcast_node::testing::{Requirement, require};

use crate::lab::{Lab, Node, possible};

const HARBOUR: &str = "name: harbour
listen: 192.0.2.1:7400
peers: { island: 192.0.2.2:7400 }
carry: { packets: { tun: hop0, address: 10.77.0.1/30, routes: [10.20.0.0/16] }, tcp: [10.20.0.0/16] }";

/// The one line with which a node ended.
fn complaint(mut node: Node, code: i32) -> String {
    let ended = node.ends();
    let log = node.log();
    assert_eq!(ended, Some(code), "{log}");
    assert_eq!(log.lines().count(), 1, "{log}");
    log.trim().to_owned()
}

/// Whether nothing of a node is on its host.
fn assert_clean(lab: &Lab, name: &str) {
    assert_eq!(lab.run(name, "nft list ruleset"), "");
    assert!(!lab.run(name, "ip link").contains("hop0"));
    assert_eq!(lab.run(name, "ip rule").lines().count(), 3);
    assert!(!lab.run(name, "ip route show table all").contains("10.20.0.0/16"));
    assert!(!lab.dir.path().join(format!("{name}.sock")).exists());
}

#[test]
fn what_cannot_be_is_said_in_one_line_and_leaves_nothing() {
    if !possible() {
        return;
    }
    let lab = Lab::row(&["harbour", "island"]);
    let typo = HARBOUR.replace("packets:", "packet:");
    let line = complaint(lab.start("harbour", &typo), 2);
    assert!(
        line.ends_with(
            "harbour.yaml:4:10: unknown key `packet` in `carry`: did you mean `packets`? \
             (allowed here: to, via, channel, packets, tcp, group)"
        ),
        "{line}"
    );

    let elsewhere = HARBOUR.replace("192.0.2.1:", "192.0.2.9:");
    let line = complaint(lab.start("harbour", &elsewhere), 1);
    assert!(line.starts_with("cannot open UDP 192.0.2.9:7400: "), "{line}");

    lab.run("harbour", "ip link add hop0 type veth peer hop1");
    let line = complaint(lab.start("harbour", HARBOUR), 1);
    assert_eq!(line, "cannot make TUN `hop0`: there is already an interface `hop0`");
    lab.run("harbour", "ip link del hop0");

    let mut first = lab.node("harbour", HARBOUR);
    let second = HARBOUR.replace("hop0", "hop1").replace("10.77.0.1", "10.78.0.1");
    let second = format!("{second}\nstatus: {}/second.sock", lab.dir.path().display());
    let line = complaint(lab.start("harbour", &second), 1);
    assert!(line.starts_with("cannot open UDP 192.0.2.1:7400: "), "{line}");
    let line = complaint(lab.start("harbour", &HARBOUR.replace("hop0", "hop1")), 1);
    assert!(line.starts_with("a node is already running that answers at "), "{line}");
    first.signal("TERM");
    assert_eq!(first.ends(), Some(0));
    assert_clean(&lab, "harbour");
}

#[test]
fn whoever_is_not_root_is_told_so() {
    if !possible() || !require(&[Requirement::Program("setpriv")]) {
        return;
    }
    let lab = Lab::row(&["harbour"]);
    lab.run("harbour", "ip address add 192.0.2.1/24 dev lo");
    let file = std::env::temp_dir().join(format!("hopcast-{}-harbour.yaml", std::process::id()));
    let status = file.with_extension("sock");
    fs::write(&file, format!("{HARBOUR}\nstatus: {}\n", status.display())).unwrap();
    let output = Command::new("ip")
        .args(["netns", "exec", &lab.space("harbour"), "setpriv", "--reuid=65534", "--clear-groups"])
        .args(["--inh-caps=-all", "--bounding-set=-all", env!("CARGO_BIN_EXE_hopcast"), "node"])
        .arg(&file)
        .output()
        .unwrap();
    fs::remove_file(&file).unwrap();
    let line = String::from_utf8(output.stderr).unwrap();
    if line.contains("setpriv") || line.contains("Permission denied (os error 13)\n") && line.contains("exec")
    {
        eprintln!("SKIPPED: the command cannot be run by another user here: {line}");
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.contains("cannot open TUN `hop0`"), "{line}");
    assert!(!status.exists());
}

#[test]
fn a_signal_at_any_moment_leaves_nothing_behind() {
    if !possible() {
        return;
    }
    let lab = Lab::row(&["harbour", "island"]);
    for i in 0..12 {
        let mut node = lab.start("harbour", HARBOUR);
        thread::sleep(Duration::from_millis(i * i));
        // Not SIGINT, which a background job of a shell ignores until it sets a handler.
        node.signal("TERM");
        // Before it handles signals, it is ended by one, with nothing made yet.
        let code = node.ends();
        assert!(code.is_none_or(|code| code == 0), "{code:?} after {} ms: {}", i * i, node.log());
        assert_clean(&lab, "harbour");
    }
}
