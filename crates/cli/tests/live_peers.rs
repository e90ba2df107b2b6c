//! Real programs send a file to a group in live runs, over links that lose: libnorm, OpenPGM, JGroups, uftp, udpcast.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use common::live_run;
use hopcast_node::testing::Requirement;

/// Sends 100 kB to two members that each lose 5 %, and holds that both have the file.
fn sends_a_file(app: &str, needs: &[Requirement<'_>]) {
    let scenario = format!(
        "title: t\nduration: 30 s\n\
         topology: {{ switch: {{ nodes: 3, link: {{ rate: 2 Mbit/s, delay: 1 ms, loss: 5 %, queue: 100 packets }} }} }}\n\
         flows: [{{ name: f, from: n0, to: [n1, n2], over: udp, delivery: ip-multicast, \
         app: {{ {app}: {{ bytes: 100 kB, start: 1 s }} }} }}]\n"
    );
    let Some(run) = live_run(&scenario, needs) else { return };
    let flow = &run["flows"][0];
    let receivers = flow["receivers"].as_array().unwrap();
    assert_eq!(receivers.len(), 2);
    for receiver in receivers {
        assert_eq!(receiver["hash_ok"], true, "{receiver}");
        // 100 kB take 0.4 s at the rate of the link; the programs that ask slowly take a few seconds.
        assert!((0.3..25.0).contains(&receiver["completed_s"].as_f64().unwrap()), "{receiver}");
    }
    // Payload, headers and repairs: less than the file would be a frame that was not counted.
    let bytes = flow["network_bytes"].as_f64().unwrap();
    assert!((100_000.0..300_000.0).contains(&bytes), "{bytes}");
}

#[test]
fn libnorm_sends_a_file_to_each_member() {
    sends_a_file(
        "libnorm",
        &[Requirement::Program("c++"), Requirement::Library("norm", "/usr/include/normApi.h")],
    );
}

#[test]
fn openpgm_sends_a_file_to_each_member() {
    sends_a_file(
        "openpgm",
        &[Requirement::Program("c++"), Requirement::Library("pgm", "/usr/include/pgm-5.3/pgm/pgm.h")],
    );
}

#[test]
fn jgroups_sends_a_file_to_each_member() {
    let home = std::env::var("HOME").unwrap_or_default();
    let library = format!("{home}/.m2/repository/org/jgroups/jgroups/2.12.0.Final/jgroups-2.12.0.Final.jar");
    sends_a_file(
        "jgroups",
        &[
            Requirement::Program("java"),
            Requirement::Program("javac"),
            Requirement::File("jgroups", &library),
        ],
    );
}

#[test]
fn uftp_sends_a_file_to_each_member() {
    sends_a_file("uftp", &[Requirement::Program("uftp"), Requirement::Program("uftpd")]);
}

#[test]
fn udpcast_sends_a_file_to_each_member() {
    sends_a_file("udpcast", &[Requirement::Program("udp-sender"), Requirement::Program("udp-receiver")]);
}
