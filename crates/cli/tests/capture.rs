//! Captures, read by tshark.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{hopcast, text};

const MIXED: &str = "\
title: A bit of everything
seed: 2
duration: 1 s
topology:
  nodes: [a, b, c]
  links:
    - { between: [a, b], rate: 10 Mbit/s, delay: 2 ms, loss: 5 % }
    - { medium: [b, c], rate: 10 Mbit/s, delay: 1 ms, queue: 5 packets }
flows:
  - { name: udp, from: a, to: c, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 500 B } } }
  - { name: udp6, from: a, to: c, over: udp, ip: 6, app: { messages: { size: 100 B, rate: 50 Hz } } }
  - { name: tcp, from: a, to: c, over: tcp-cubic, app: bulk }
  - { name: tcp6, from: c, to: a, over: tcp-bbr, ip: 6, app: { bulk: { bytes: 100 kB } } }
  - { name: tunnel, from: a, to: c, over: [tcp-cubic, tunnel, udp], app: { bulk: { bytes: 50 kB } } }
  - { name: nobody, from: a, to: b, over: udp, app: { cbr: { rate: 100 kbit/s, size: 1400 B, start: 500 ms } } }
";

/// tshark's output, or `None` (loudly) where it is not installed. `make test` says which tools must not be missing.
fn tshark(file: &Path, arguments: &[&str]) -> Option<String> {
    let required =
        std::env::var("HOPCAST_REQUIRE").is_ok_and(|tools| tools.split(' ').any(|tool| tool == "tshark"));
    match Command::new("tshark").arg("-r").arg(file).args(arguments).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", text(&output.stderr));
            Some(text(&output.stdout))
        }
        Err(error) if required => panic!("tshark: {error}"),
        Err(error) => {
            eprintln!("*** SKIPPED: tshark: {error} ***");
            None
        }
    }
}

#[test]
fn tshark_reads_every_frame_and_finds_none_malformed() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mixed.yaml"), MIXED).unwrap();
    let output =
        hopcast(dir.path(), &["run", "mixed.yaml", "--out", "out", "--capture", "all", "--format", "json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let file = dir.path().join("out/captures/case-000-repeat-000.pcapng");
    // All checksums verified, not trusted.
    let options =
        ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"];
    let select = |filter: &str, field: &str| {
        let mut arguments = options.to_vec();
        arguments.extend(["-Y", filter, "-T", "fields", "-e", field]);
        tshark(&file, &arguments)
    };
    let Some(interfaces) = select("frame", "frame.interface_name") else { return };
    for name in ["a:eth0", "b:eth0", "b:eth1", "c:eth0"] {
        assert!(interfaces.lines().any(|line| line == name), "there are frames of {name}");
    }
    let broken = "_ws.malformed or ip.checksum.status == 0 or udp.checksum.status == 0 or tcp.checksum.status == 0 \
                  or icmp.checksum.status == 0 or icmpv6.checksum.status == 0";
    assert_eq!(select(broken, "frame.number").unwrap(), "");
    for protocol in ["udp and ip", "udp and ipv6", "tcp and ip", "tcp and ipv6", "tcp.options.sack_le"] {
        assert_ne!(select(protocol, "frame.number").unwrap(), "", "there is some {protocol}");
    }
    // Nor does tshark take the workloads' bytes for a protocol that they are not.
    let protocols = select("frame", "frame.protocols").unwrap();
    let known = ["eth", "ethertype", "ip", "ipv6", "tcp", "udp", "icmp", "icmpv6", "data"];
    let strange = protocols.lines().find(|line| line.split(':').any(|protocol| !known.contains(&protocol)));
    assert_eq!(strange, None);
    let comments = select("frame.comment", "frame.comment").unwrap();
    assert!(comments.lines().any(|line| line.contains("dropped on a-b: lost on the link")), "{comments}");
    // Times have nanoseconds and do not run backwards.
    let times = select("frame", "frame.time_epoch").unwrap();
    let times: Vec<f64> = times.lines().map(|line| line.parse().unwrap()).collect();
    assert!(times.is_sorted() && times.len() > 1000);
}
