//! Real programs between two namespaces: each is started, measures, and is gone in the end.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods)] // A live run waits for real.

use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hopcast_core::{Duration, Instant};
use hopcast_live::programs::{
    ChildProcess, CommandLine, Ends, Error, Measurement, Outcomes, Programs, Running, Spawner, pictures,
};
use hopcast_node::Clock;
use hopcast_node::testing::{Requirement, require};
use hopcast_runner::load_text;
use hopcast_twin::results::Figures;
use hopcast_twin::scenario::Overrides;
use hopcast_twin::scenario::model::Scenario;

/// Two namespaces, joined.
struct Pair {
    names: [String; 2],
}

fn ip(line: &str) {
    let status = Command::new("ip").args(line.split_whitespace()).status().unwrap();
    assert!(status.success(), "ip {line}");
}

impl Pair {
    fn new() -> Self {
        static PAIRS: AtomicUsize = AtomicUsize::new(0);
        let id = format!("{}-{}", std::process::id(), PAIRS.fetch_add(1, Ordering::Relaxed));
        let pair = Self { names: ["a", "b"].map(|end| format!("programs-{id}-{end}")) };
        let [a, b] = &pair.names;
        ip(&format!("netns add {a}"));
        ip(&format!("netns add {b}"));
        ip(&format!("link add eth0 netns {a} type veth peer name eth0 netns {b}"));
        for (number, name) in pair.names.iter().enumerate() {
            // Nobody asks whether somebody else has the address.
            let script = "echo 0 | tee /proc/sys/net/ipv6/conf/*/accept_dad > /dev/null";
            let status = Command::new("ip").args(["netns", "exec", name, "sh", "-c", script]).status();
            assert!(status.unwrap().success());
            ip(&format!("-n {name} addr add 10.9.0.{}/24 dev eth0", number + 1));
            ip(&format!("-n {name} addr add fd09::{}/64 dev eth0 nodad", number + 1));
            ip(&format!("-n {name} link set lo up"));
            ip(&format!("-n {name} link set eth0 up"));
        }
        // Each knows the other's hardware address, or the first connection waits a second for it.
        for (from, to) in [(a, b), (b, a)] {
            let address =
                Command::new("ip").args(["-n", to, "-br", "link", "show", "eth0"]).output().unwrap();
            let address = String::from_utf8(address.stdout).unwrap();
            let hardware = address.split_whitespace().nth(2).unwrap();
            let end = if to == b { 2 } else { 1 };
            ip(&format!("-n {from} neigh replace fd09::{end} lladdr {hardware} dev eth0"));
        }
        pair
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
    }
}

impl Spawner for Pair {
    fn spawn(&mut self, node: usize, line: &CommandLine, output: &Path) -> Result<Box<dyn Running>, Error> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[node], &line.program]);
        line.apply_to(&mut command, output)?;
        let child = command.spawn().map_err(|error| Error::start(&line.program, error))?;
        Ok(Box::new(ChildProcess::new(child)))
    }
}

fn ends(scenario: &Scenario, flow: usize) -> Vec<Ends> {
    let address = |end: u8| -> IpAddr {
        let prefix = if scenario.flows[flow].ipv6 { "fd09::" } else { "10.9.0." };
        format!("{prefix}{end}").parse().unwrap()
    };
    let port = 10_000 + 2 * flow as u16;
    vec![Ends { from: address(1), to: address(2), connect: address(2), port, member: None }]
}

/// Runs the programs of flows, and of more lines, of a scenario of two seconds.
fn run(flows: &str, dir: &Path) -> (Outcomes, Arc<Scenario>) {
    run_until(2, flows, dir)
}

/// The same for a scenario of this length, in seconds.
fn run_until(end: u32, flows: &str, dir: &Path) -> (Outcomes, Arc<Scenario>) {
    let text = format!(
        "duration: {end}500ms\nmeasure: {{ from: 500ms, to: {end}s, interval: 100ms }}\ntopology: {{ chain: {{ hops: 1, link: {{ rate: 1 Gbit/s }} }} }}\n{flows}"
    );
    let plan = load_text(&dir.join("test.yaml"), &text, &Overrides::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let scenario = Arc::clone(&plan.cases[0].scenario);
    let mut pair = Pair::new();
    let mut programs = Programs::new(Arc::clone(&scenario), dir, |flow| ends(&scenario, flow)).unwrap();
    let waiting = Clock::starting_now();
    while !programs.prepare(&mut pair) {
        assert!(waiting.now() < Instant::ZERO + Duration::from_secs(20), "servers do not open");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let clock = Clock::starting_now();
    while !programs.is_done() {
        programs.step(clock.now(), &mut pair);
        let Some(next) = programs.next_deadline() else { break };
        std::thread::sleep(std::time::Duration::from_nanos(clock.until(next).as_nanos()));
        assert!(clock.now() < Instant::ZERO + Duration::from_secs(60), "programs do not end");
    }
    (programs.finish(), scenario)
}

fn needs(programs: &[&str]) -> bool {
    let mut needs = vec![Requirement::Root, Requirement::Program("ip")];
    needs.extend(programs.iter().map(|program| Requirement::Program(program)));
    require(&needs)
}

/// The measurement of each flow, of which none failed.
fn measured<'e>(ended: &'e Outcomes, scenario: &Scenario) -> Vec<(&'e Measurement, Figures)> {
    let window = (scenario.measure.from, scenario.measure.to);
    let flows = ended.flows.iter().map(|flow| {
        assert_eq!(flow.note, None);
        let measured = flow.measured[0].as_ref().unwrap_or_else(|error| panic!("{error}"));
        (measured, measured.figures(window))
    });
    flows.collect()
}

fn near(found: Option<f64>, expected: f64) {
    let found = found.unwrap();
    assert!((found / expected - 1.0).abs() < 0.25, "{found} for {expected}");
}

#[test]
fn iperf3_measures_streams_and_datagrams() {
    if !needs(&["iperf3"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let flows = "flows:
  - { name: tcp, from: n0, to: n1, over: tcp-cubic, app: { iperf3: { rate: 20 Mbit/s } } }
  - { name: udp, from: n0, to: n1, over: udp, app: { iperf3: { rate: 5 Mbit/s, size: 1000 B, stop: 2s } } }
  - { name: back, from: n0, to: n1, over: tcp-reno, ip: 6, app: { iperf3: { rate: 10 Mbit/s, reverse: on, parallel: 2 } } }
";
    let (ended, scenario) = run(flows, dir.path());
    let flows = measured(&ended, &scenario);
    near(flows[0].1.goodput_mbps, 20.0);
    near(flows[1].1.goodput_mbps, 5.0);
    near(flows[2].1.goodput_mbps, 10.0);
    assert!(flows[1].1.sent_units > 700 && flows[1].1.reliability.unwrap() > 0.9, "{:?}", flows[1].1);
    assert!(dir.path().join("programs/udp.client.out").exists());
}

#[test]
fn iperf2_measures_streams_and_the_latency_of_datagrams() {
    if !needs(&["iperf"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let flows = "flows:
  - { name: tcp, from: n0, to: n1, over: tcp-reno, app: { iperf2: { rate: 20 Mbit/s } } }
  - { name: udp, from: n0, to: n1, over: udp, ip: 6, app: { iperf2: { rate: 5 Mbit/s, size: 1000 B } } }
";
    let (ended, scenario) = run(flows, dir.path());
    let flows = measured(&ended, &scenario);
    near(flows[0].1.goodput_mbps, 20.0);
    near(flows[1].1.goodput_mbps, 5.0);
    assert!(flows[1].1.latency_ms.is_some_and(|latency| latency.p50 < 100.0), "{:?}", flows[1].1);
}

#[test]
fn nuttcp_measures_streams_and_datagrams() {
    if !needs(&["nuttcp"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let flows = "flows:
  - { name: tcp, from: n0, to: n1, over: tcp-reno, app: { nuttcp: { rate: 20 Mbit/s } } }
  - { name: udp, from: n0, to: n1, over: udp, app: { nuttcp: { rate: 5 Mbit/s, size: 1000 B } } }
";
    let (ended, scenario) = run(flows, dir.path());
    let flows = measured(&ended, &scenario);
    near(flows[0].1.goodput_mbps, 20.0);
    near(flows[1].1.goodput_mbps, 5.0);
    assert!(flows[1].1.sent_units > 700, "{:?}", flows[1].1);
}

#[test]
fn ping_goes_there_and_back() {
    if !needs(&["ping"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let flows = "flows:
  - { name: four, from: n0, to: n1, over: ip, app: { ping: { every: 50ms } } }
  - { name: six, from: n0, to: n1, over: ip, ip: 6, app: { ping: { rate: 20 Hz, size: 1000 B } } }
";
    let (ended, scenario) = run(flows, dir.path());
    for (_, figures) in measured(&ended, &scenario) {
        assert!((10..=31).contains(&figures.sent_units), "{figures:?}");
        assert_eq!(figures.reliability, Some(1.0));
        assert!(figures.round_trip_ms.is_some_and(|round_trip| round_trip.p50 < 100.0), "{figures:?}");
    }
}

#[test]
fn a_test_picture_is_seen_frame_by_frame() {
    if !needs(&["ffmpeg", "socat"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let picture = "{ ffmpeg: { rate: 500 kbit/s, picture: 160x90, fps: 20, deadline: 1s } }";
    let flows = format!(
        "flows:
  - {{ name: udp, from: n0, to: n1, over: udp, app: {picture} }}
  - {{ name: tcp, from: n0, to: n1, over: tcp-reno, ip: 6, app: {picture} }}
"
    );
    // On a busy machine an encoder takes seconds to begin.
    let (ended, scenario) = run_until(8, &flows, dir.path());
    for (_, figures) in measured(&ended, &scenario) {
        let video = figures.video.unwrap();
        assert!((5..=151).contains(&video.frames_sent), "{video:?}");
        assert_eq!(video.frames_lost, 0, "{video:?}");
        assert!(video.decodable_frame_ratio.unwrap() > 0.5, "{video:?}");
    }
    let recording = ended.flows[0].recording.as_ref().unwrap();
    let frames = pictures(recording, &[0.5, 1.0], 80).unwrap();
    for (frame, number) in frames.iter().zip([10, 20]) {
        assert_eq!(frame.number, number);
        assert!(frame.sent.starts_with(b"\x89PNG"));
        assert_eq!(frame.received.as_ref(), Some(&frame.sent), "nothing was lost");
    }
    recording.remove();
    assert!(!recording.sent.exists() && !recording.received.exists());
}

#[test]
fn a_copy_arrives_as_it_is() {
    if !needs(&["socat", "nc"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("data"), vec![42; 300_000]).unwrap();
    let flows = "flows:
  - { name: socat, from: n0, to: n1, over: tcp-cubic, app: { copy: { path: data } } }
  - { name: nc, from: n0, to: n1, over: tcp-reno, ip: 6, app: { copy: { path: data, with: nc } } }
";
    let (ended, scenario) = run(flows, dir.path());
    for (measured, figures) in measured(&ended, &scenario) {
        assert_eq!(figures.hash_ok, Some(true));
        assert!(figures.completed_s.is_some_and(|seconds| seconds < 2.0), "{figures:?}");
        assert!((measured.received[0].bytes - 300_000.0).abs() < 0.5);
    }
}

#[test]
fn kcptun_carries_the_connections_of_programs() {
    if !needs(&["iperf3", "kcptun-client", "kcptun-server", "socat"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("data"), vec![42; 100_000]).unwrap();
    let flows = "flows:
  - { name: iperf3, from: n0, to: n1, over: kcptun, app: { iperf3: { rate: 4 Mbit/s } } }
  - { name: copy, from: n0, to: n1, over: { kcptun: { parity-shards: 0 } }, ip: 6, app: { copy: { path: data } } }
";
    let (ended, scenario) = run(flows, dir.path());
    let flows = measured(&ended, &scenario);
    near(flows[0].1.goodput_mbps, 4.0);
    assert_eq!(flows[1].1.hash_ok, Some(true));
}

#[test]
fn commands_are_run_where_and_when_they_are_said_to() {
    if !needs(&["ping"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let flows = "flows: [{ name: f, from: n0, to: n1, over: udp, app: bulk }]
exec:
  - { name: there, at: n1, start: 500ms, command: \"ip -o addr show dev eth0; exit 3\", expect: { exit: 3 } }
  - { name: wrong, at: n0, command: [sh, -c, \"echo no luck >&2; exit 1\"], expect: { exit: 0 } }
  - { name: long, at: n0, start: 1s, stop: 1500ms, command: [sleep, 60], stop-with: term }
  - { name: nobody, at: n0, command: [no-such-program] }
";
    let (ended, _) = run(flows, dir.path());
    let [there, wrong, long, nobody] = ended.execs.as_slice() else { panic!("{:?}", ended.execs) };
    assert_eq!((there.exit, &there.failure), (Some(3), &None));
    let shown = std::fs::read_to_string(dir.path().join("programs/there.out")).unwrap();
    assert!(shown.contains("10.9.0.2"), "{shown}");
    assert_eq!(
        wrong.failure.as_deref(),
        Some("exec `wrong`: expected exit status 0, but `sh` at n0 ended with exit status 1: no luck")
    );
    assert_eq!((long.signal, long.was_signalled, &long.failure), (Some(15), true, &None));
    assert!(nobody.exit.is_some_and(|exit| exit != 0), "{nobody:?}");
}

#[test]
fn a_server_that_ends_at_once_is_said_to() {
    if !needs(&["iperf3"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let text = "duration: 2s\ntopology: { chain: { hops: 1 } }\nflows: [{ name: f, from: n0, to: n1, over: tcp-cubic, app: iperf3 }]\n";
    let plan = load_text(Path::new("test.yaml"), text, &Overrides::default()).unwrap();
    let scenario = Arc::clone(&plan.cases[0].scenario);
    let mut pair = Pair::new();
    // Nobody has this address.
    let to: IpAddr = "192.0.2.9".parse().unwrap();
    let mut programs = Programs::new(Arc::clone(&scenario), dir.path(), |_| {
        vec![Ends { from: to, to, connect: to, port: 10_000, member: None }]
    })
    .unwrap();
    let clock = Clock::starting_now();
    while !programs.is_done() {
        programs.step(clock.now(), &mut pair);
        std::thread::sleep(std::time::Duration::from_millis(10));
        assert!(clock.now() < Instant::ZERO + Duration::from_secs(30));
    }
    let ended = programs.finish();
    let error = ended.flows[0].measured[0].as_ref().unwrap_err().to_string();
    assert!(error.starts_with("`iperf3` at n1 ended with exit status 1: "), "{error}");
}
