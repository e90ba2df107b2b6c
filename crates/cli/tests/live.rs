//! Live runs: the network of a scenario in namespaces, and every transport over it.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use common::text;
use hopcast_node::testing::{Requirement, require};
use serde_json::Value;

/// A machine of two processors carries one live run at a time.
static MACHINE: Mutex<()> = Mutex::new(());

fn machine() -> Option<MutexGuard<'static, ()>> {
    let needs = [
        Requirement::Root,
        Requirement::Tun,
        Requirement::Program("ip"),
        Requirement::Program("nft"),
        Requirement::Program("setpriv"),
    ];
    require(&needs).then(|| MACHINE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// Starts `hopcast run live.yaml --live` in `dir`.
fn start(dir: &Path, scenario: &str, more: &[&str]) -> Child {
    fs::write(dir.join("live.yaml"), scenario).unwrap();
    Command::new(env!("CARGO_BIN_EXE_hopcast"))
        .args(["run", "live.yaml", "--live", "--format", "json", "--out", "out"])
        .args(more)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs it, and returns the document.
fn document(dir: &Path, scenario: &str) -> Value {
    let output = start(dir, scenario, &[]).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The namespaces of live runs of one process.
fn namespaces_of(process: u32) -> Vec<String> {
    let output = Command::new("ip").args(["netns", "list"]).output().unwrap();
    let names = text(&output.stdout);
    let prefix = format!("hopcast-{process}-");
    names.lines().filter(|name| name.starts_with(&prefix)).map(str::to_owned).collect()
}

fn flow<'d>(run: &'d Value, name: &str) -> &'d Value {
    run["flows"].as_array().unwrap().iter().find(|flow| flow["name"] == name).unwrap()
}

const MIXED: &str = "\
title: Live
duration: 3 s
measure: { from: 500 ms }
topology: { chain: { hops: 2, link: { rate: 20 Mbit/s, delay: 2 ms, loss: 10 % } } }
flows:
  - { name: datagrams, from: n0, to: n2, over: udp, app: { cbr: { rate: 4 Mbit/s, size: 500 B } } }
  - { name: six, from: n2, to: n0, over: udp, ip: 6, app: { cbr: { rate: 1 Mbit/s, size: 500 B } } }
  - { name: messages, from: n0, to: n2, over: brtp, app: { messages: { size: 200 B, rate: 50 Hz } } }
  - { name: video, from: n2, to: n0, over: brtp, app: { video: { rate: 500 kbit/s, fps: 25 } } }
";

#[test]
fn datagrams_messages_and_frames_cross_a_real_kernel_as_the_links_say() {
    let Some(_machine) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let document = document(dir.path(), MIXED);
    let run = &document["runs"][0];
    assert!(run["live"]["frames"].as_u64().unwrap() > 3000);
    // 0.9 squared is 0.81; six deviations of 2,500 and of 600 datagrams.
    for (name, deviations) in [("datagrams", 0.047), ("six", 0.096)] {
        let reliability = flow(run, name)["reliability"].as_f64().unwrap();
        assert!((reliability - 0.81).abs() < deviations, "{name}: {reliability}");
    }
    let latency = flow(run, "datagrams")["latency_ms"]["p50"].as_f64().unwrap();
    assert!((4.4..30.0).contains(&latency), "two hops of 2 ms and 0.2 ms: {latency}");
    let messages = flow(run, "messages");
    assert_eq!(messages["reliability"].as_f64(), Some(1.0), "{messages}");
    assert!(messages["round_trip_ms"]["p50"].as_f64().unwrap() > 8.8);
    let video = flow(run, "video");
    assert!(video["video"]["frames_delivered"].as_u64().unwrap() > 50, "{video}");
    for flow in run["flows"].as_array().unwrap() {
        assert_eq!(flow["counters"]["damaged_units"], 0, "{flow}");
    }
    let links = run["links"].as_array().unwrap();
    let lost = |link: &Value| {
        let of = |name: &str| link[name].as_f64().unwrap();
        of("lost_packets") / (of("lost_packets") + of("delivered_packets"))
    };
    assert!((lost(&links[0]) - 0.1).abs() < 0.03, "{}", links[0]);
}

#[test]
fn a_file_arrives_intact_over_every_transport() {
    let Some(_machine) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..300_000u32)
        .flat_map(|n| (n.wrapping_mul(2_654_435_761) >> 7).to_le_bytes())
        .take(300_000)
        .collect();
    fs::write(dir.path().join("file"), bytes).unwrap();
    let stacks = [
        "tcp-cubic",
        "tcp-bbr",
        "split-bbr",
        "kcp",
        "quic",
        "hop-arq",
        "brtp",
        "strict",
        "bats-proxy",
        "[tcp-cubic, bats-proxy]",
        "[tcp-cubic, tunnel, brtp]",
        "[brtp, udp, tunnel, udp]",
    ];
    let flow_over = |(number, stack): (usize, &&str)| {
        format!(
            "  - {{ name: file{number}, from: n0, to: n3, over: {stack}, app: {{ file: {{ path: file }} }} }}\n"
        )
    };
    let flows: String = stacks.iter().enumerate().map(flow_over).collect();
    let scenario = format!(
        "title: A file over everything\nduration: 8 s\ntopology: {{ chain: {{ hops: 3, link: {{ rate: 40 Mbit/s, delay: 1 ms, loss: 2 % }} }} }}\nvariants: {{ strict: {{ brtp: {{ feedback: none }} }} }}\nflows:\n{flows}"
    );
    let document = document(dir.path(), &scenario);
    for file in document["runs"][0]["flows"].as_array().unwrap() {
        assert_eq!(file["hash_ok"].as_bool(), Some(true), "{}: {file}", file["protocol"]);
    }
}

#[test]
fn gateways_take_connections_over_in_transit_and_the_server_sees_the_client() {
    let Some(_machine) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), vec![7; 200_000]).unwrap();
    let scenario = "\
title: Gateways
duration: 4 s
topology: { chain: { hops: 4, link: { rate: 20 Mbit/s, delay: 1 ms } } }
events: [{ at: 0 s, links: [n1-n2, n2-n3], loss: 10 % }]
roles: { proxy: [n1, n3] }
flows:
  - { name: file, from: n0, to: n4, over: [tcp-cubic, bats-proxy], app: { file: { path: file } } }
";
    let document = document(dir.path(), scenario);
    let file = flow(&document["runs"][0], "file");
    assert_eq!(file["hash_ok"].as_bool(), Some(true), "{file}");
    let innovative = file["counters"]["n2.received_innovative"].as_u64();
    assert!(innovative.unwrap() > 100, "the relay between the gateways carried it: {file}");
}

#[test]
fn franc_and_its_helper_code_over_real_interfaces() {
    let Some(_machine) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let scenario = "\
title: FRANC
duration: 3 s
topology:
  nodes: [{ name: source }, { name: helper }, { name: destination }]
  links:
    - { name: air, medium: [source, helper, destination], rate: 12 Mbit/s, queue: 100 packets }
roles: { helper: [helper] }
events:
  - { at: 0 s, links: air, from: source, to: destination, loss: 30 % }
variants: { assisted: { franc: { helper: on } } }
flows:
  - { name: data, from: source, to: destination, over: [udp, assisted], app: { cbr: { rate: 3 Mbit/s, size: 800 B } } }
";
    let document = document(dir.path(), scenario);
    let data = flow(&document["runs"][0], "data");
    assert!(data["reliability"].as_f64().unwrap() > 0.9, "{data}");
}

#[test]
fn ctrl_c_at_any_moment_leaves_nothing_behind() {
    let Some(_machine) = machine() else { return };
    let inside = "  - { name: inside, from: n0, to: n2, over: [udp, tunnel, brtp], app: { cbr: { rate: 100 kbit/s } } }\n";
    for after in [20, 150, 400, 900, 1600] {
        let dir = tempfile::tempdir().unwrap();
        let mut run = start(dir.path(), &format!("{MIXED}{inside}"), &["--capture", "all"]);
        #[allow(clippy::disallowed_methods)] // a person presses the keys at some time
        std::thread::sleep(Duration::from_millis(after));
        let interrupted = Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap();
        assert!(interrupted.success());
        let process = run.id();
        let status = run.wait().unwrap();
        assert!(!status.success(), "after {after} ms");
        assert_eq!(namespaces_of(process), Vec::<String>::new(), "after {after} ms");
        let captured = fs::read_dir(dir.path().join("out/captures")).map_or(0, Iterator::count);
        assert_eq!(captured, 0, "a capture that was cut short passes for none, after {after} ms");
    }
}

#[test]
fn what_a_killed_run_leaves_behind_the_doctor_removes() {
    let Some(_machine) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut run = start(dir.path(), MIXED, &[]);
    for _ in 0..200 {
        if namespaces_of(run.id()).len() == 3 {
            break;
        }
        #[allow(clippy::disallowed_methods)] // another process is waited for
        std::thread::sleep(Duration::from_millis(20));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    assert_eq!(namespaces_of(run.id()).len(), 3);
    let cleaned = Command::new(env!("CARGO_BIN_EXE_hopcast")).args(["doctor", "--clean"]).output().unwrap();
    assert!(cleaned.status.success(), "{}", text(&cleaned.stderr));
    assert!(text(&cleaned.stdout).contains(&format!("hopcast-{}-", run.id())), "{}", text(&cleaned.stdout));
    assert_eq!(namespaces_of(run.id()), Vec::<String>::new());
}

#[test]
fn a_run_that_the_machine_cannot_keep_up_with_is_marked_and_left_out() {
    let Some(_machine) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let scenario = "\
title: Too much
duration: 2 s
topology: { chain: { hops: 4, link: { rate: 40 Gbit/s } } }
flows: [{ name: flood, from: n0, to: n4, over: udp, app: { cbr: { rate: 20 Gbit/s, size: 100 B } } }]
";
    let document = document(dir.path(), scenario);
    let invalid = &document["runs"][0]["live"]["invalid"];
    assert!(invalid.as_str().is_some_and(|why| why.contains("busy")), "{}", document["runs"][0]["live"]);
    assert_eq!(document["runs"][0]["live"]["retries"], 2);
    assert_eq!(document["summary"][0]["invalid_runs"], 1);
    assert!(document["summary"][0].get("goodput_mbps").is_none());
    let table = Command::new(env!("CARGO_BIN_EXE_hopcast"))
        .args(["report", "out"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(text(&table.stdout).contains("1 of 1 runs are invalid"), "{}", text(&table.stdout));
}

#[test]
fn real_programs_are_measured_and_one_that_fails_is_the_commands_failure() {
    let Some(_machine) = machine() else { return };
    if !require(&[Requirement::Program("iperf3"), Requirement::Program("ping")]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let scenario = "\
title: Programs
duration: 3 s
measure: { from: 1 s }
topology: { chain: { hops: 2, link: { rate: 20 Mbit/s, delay: 2 ms } } }
flows:
  - { name: bulk, from: n0, to: n2, over: tcp-cubic, app: { iperf3: { stop: 3 s } } }
  - { name: echo, from: n0, to: n2, over: ip, app: { ping: { every: 50 ms } } }
exec:
  - { name: fails, at: n1, command: [sh, -c, \"echo so be it; exit 3\"], expect: { exit: 0 } }
";
    let output = start(dir.path(), scenario, &[]).wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.ends_with("a program failed, or did not end as expected: the report says which\n"),
        "{said}"
    );
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = &document["runs"][0];
    // Of 20 Mbit/s on the wire, TCP's payload.
    let goodput = flow(run, "bulk")["goodput_mbps"].as_f64().unwrap();
    assert!((16.0..19.9).contains(&goodput), "{goodput}");
    assert!(flow(run, "echo")["round_trip_ms"]["p50"].as_f64().unwrap() > 8.0);
    assert_eq!(run["live"]["failed_programs"], 1);
    let fails = run["live"]["programs"]["fails"].as_str().unwrap();
    assert!(fails.ends_with("`sh` at n1 ended with exit status 3: so be it"), "{fails}");
    let kept: Vec<_> = fs::read_dir(dir.path().join("out")).unwrap().flatten().map(|it| it.path()).collect();
    let case = kept.iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with("case-000-"));
    let programs = case.unwrap().join("programs");
    assert_eq!(fs::read_to_string(programs.join("fails.out")).unwrap(), "so be it\n");
    assert!(programs.join("bulk.client.out").exists());
    // A failed run is not finished: it is repeated.
    let journal = fs::read_to_string(dir.path().join("out/runs.journal")).unwrap_or_default();
    assert_eq!(journal, "");
}

#[test]
fn both_worlds_stand_side_by_side() {
    let Some(_machine) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let scenario = "\
title: Both
world: both
duration: 2 s
measure: { from: 500 ms }
topology: { chain: { hops: 2, link: { rate: 20 Mbit/s, delay: 2 ms } } }
events: [{ name: loss, at: 0s, links: all, loss: 0 % }]
flows: [{ name: flow, from: n0, to: n2, over: udp, app: { cbr: { rate: 4 Mbit/s, size: 1000 B } } }]
sweep: { events.loss.loss: [0 %, 20 %] }
";
    fs::write(dir.path().join("both.yaml"), scenario).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_hopcast"))
        .args(["run", "both.yaml", "--format", "json", "--out", "out"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["beside"], "virtual time");
    let rows = document["summary"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (row, expected) in rows.iter().zip([4.0, 2.56]) {
        let live = row["goodput_mbps"]["mean"].as_f64().unwrap();
        let virtual_time = row["published"]["goodput_mbps"].as_f64().unwrap();
        // The same losses: what differs is what is under way at the window's edges.
        assert!((live / virtual_time - 1.0).abs() < 0.05, "{row}");
        assert!((live / expected - 1.0).abs() < 0.1, "{row}");
    }
    assert!(dir.path().join("out/virtual/report.html").exists());
}

#[test]
fn what_cannot_be_set_on_the_kernel_is_refused_before_anything_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |over: &str, line: &str| {
        let scenario =
            MIXED.replacen("over: brtp, app: { messages", &format!("over: {over}, app: {{ messages"), 1);
        let output = start(dir.path(), &scenario, &[]).wait_with_output().unwrap();
        assert_eq!((text(&output.stderr), output.status.code()), (line.to_owned(), Some(2)));
        assert!(!dir.path().join("out").exists());
    };
    let line = "flow `messages`: the option `sack` of `tcp-cubic` is for virtual time: in a live run the kernel's own settings hold\n";
    refused("{ tcp-cubic: { sack: off } }", line);
}

#[test]
fn what_the_kernel_does_not_have_is_named() {
    let Some(_machine) = machine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let scenario = MIXED.replacen("over: udp", "over: tcp-vegas", 1).replacen(
        "cbr: { rate: 4 Mbit/s, size: 500 B }",
        "bulk: { rate: 1 Mbit/s }",
        1,
    );
    let available =
        fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    if available.contains("vegas") {
        eprintln!("SKIPPED: this kernel has vegas");
        return;
    }
    let run = start(dir.path(), &scenario, &[]);
    let process = run.id();
    let output = run.wait_with_output().unwrap();
    let error = text(&output.stderr);
    assert!(!output.status.success());
    assert!(error.contains("no congestion control `vegas`") && error.contains("node `n"), "{error}");
    assert_eq!(namespaces_of(process), Vec::<String>::new());
}
