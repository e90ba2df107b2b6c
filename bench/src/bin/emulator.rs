//! The capacity of the links of live runs on this machine, and how closely they follow their models; as root.
//!
//! First one link and datagrams at a growing rate. Then six links in a row, with the kernel forwarding between them,
//! and real TCP and UDP (iperf3) over them; beside them the same row joined by veth pairs, which is what one has
//! without an emulator and which can neither delay nor lose anything.

#![allow(clippy::disallowed_methods)] // this program measures the wall clock

use std::error::Error;
use std::net::UdpSocket;
use std::num::NonZeroUsize;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration as Span, Instant as Wall};

use hopcast_core::{Duration, Instant, Rate, Seed};
use hopcast_link::{Config, Direction, Link, PointToPoint};
use hopcast_live::emulator::{Emulator, EmulatorReport, Options, Readings};
use hopcast_live::lab::Lab;
use hopcast_live::layout::NetworkLayout;
use hopcast_node::Clock;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SECONDS: u64 = 4;
const HOPS: usize = 6;

/// Any error, which ends the measurement.
type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let only = std::env::args().skip_while(|argument| argument != "--only").nth(1).unwrap_or_default();
    let threads = std::env::args().skip_while(|argument| argument != "--threads").nth(1);
    let threads = threads.and_then(|number| number.parse().ok());
    for nodes in [HOPS + 1, 100].into_iter().filter(|_| only.is_empty()) {
        let begun = Wall::now();
        let (lab, _) = lab(nodes - 1, Direction::default())?;
        let (up, begun) = (begun.elapsed(), Wall::now());
        drop(lab);
        println!("{nodes} nodes in a row: set up in {up:.0?}, removed in {:.0?}", begun.elapsed());
    }
    println!("\none link, 1,250 bytes a frame");
    println!(
        "{:>12} {:>12} {:>10} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8} {:>12}",
        "offered/s",
        "carried/s",
        "rate off",
        "p50 us",
        "p99 us",
        "max us",
        "gap us",
        "unseen",
        "unread",
        "ns CPU/frame"
    );
    for offered in [1_000, 10_000, 50_000, 100_000, 150_000].into_iter().filter(|_| only.is_empty()) {
        one_link(offered, threads)?;
    }
    println!("\n{HOPS} links of 1 ms, forwarded by the kernel");
    println!(
        "{:<26} {:>9} {:>12} {:>9} {:>9} {:>9} {:>9} {:>8} {:>8} {:>12}",
        "iperf3",
        "Mbit/s",
        "frames/s",
        "p50 us",
        "p99 us",
        "max us",
        "gap us",
        "unseen",
        "unread",
        "ns CPU/frame"
    );
    let udp = |rate| ["-u", "-l", "1400", "-w", "2M", "-b", rate];
    let fast = Some(Rate::from_mbit(300));
    let flows: [(&str, &[&str], Option<Rate>); 6] = [
        ("TCP cubic, 300 Mbit/s", &["-C", "cubic"], fast),
        ("TCP bbr, 300 Mbit/s", &["-C", "bbr"], fast),
        ("UDP 290, 300 Mbit/s", &udp("290M"), fast),
        ("TCP cubic, no rate", &["-C", "cubic"], None),
        ("TCP bbr, no rate", &["-C", "bbr"], None),
        ("UDP 450, no rate", &udp("450M"), None),
    ];
    for (name, arguments, rate) in flows.into_iter().filter(|(name, ..)| name.contains(&only)) {
        over_six(name, arguments, rate, threads)?;
    }
    for (name, arguments) in [("veth: TCP cubic", flows[0].1), ("veth: UDP 290", flows[2].1)]
        .into_iter()
        .filter(|(name, _)| name.contains(&only))
    {
        over_veth(name, arguments)?;
    }
    Ok(())
}

/// Datagrams over a link that is exactly as fast as they come.
fn one_link(offered: u64, threads: Option<NonZeroUsize>) -> Result<(), Failure> {
    const FRAME: u64 = 1250;
    let rate = Rate::from_bits_per_sec(offered * FRAME * 8 * 9 / 10);
    let (mut lab, layout) = lab(1, Direction { rate: Some(rate), delay: ms(1), ..Direction::default() })?;
    let emulator = start(&mut lab, layout, threads)?;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| lab.enter(1, || sink(&done)));
        scope.spawn(|| lab.enter(0, || source(&done, offered, FRAME as usize - 42)));
        thread::sleep(Span::from_secs(SECONDS + 1));
        done.store(true, Ordering::Relaxed);
    });
    let report = emulator.finish(&lab)?;
    let figures = report.links[0][0].closed - report.links[0][0].opened;
    let error = figures.sent_bytes as f64 * 8.0 / SECONDS as f64 / rate.bits_per_sec() as f64 - 1.0;
    let carried = figures.delivered_packets / SECONDS;
    println!("{offered:>12} {carried:>12} {:>9.3}% {}", 100.0 * error, fidelity(&report));
    Ok(())
}

fn source(done: &AtomicBool, per_second: u64, payload: usize) {
    let socket =
        UdpSocket::bind("10.0.0.1:0").and_then(|socket| socket.connect("10.0.0.2:9").map(|()| socket));
    let Ok(socket) = socket else { return };
    let datagram = vec![0; payload];
    let (start, mut sent) = (Wall::now(), 0);
    while !done.load(Ordering::Relaxed) {
        let due = start.elapsed().as_nanos() as u64 * per_second / 1_000_000_000;
        while sent < due {
            // Datagrams that the other side refuses do not matter here.
            let _ = socket.send(&datagram);
            sent += 1;
        }
        thread::sleep(Span::from_micros(100));
    }
}

fn sink(done: &AtomicBool) {
    let Ok(socket) = UdpSocket::bind("10.0.0.2:9") else { return };
    // The links are measured, not how soon the kernel lets a program of two read.
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 16 << 20);
    let _ = socket.set_read_timeout(Some(Span::from_millis(100)));
    let mut buffer = [0; 2048];
    while !done.load(Ordering::Relaxed) {
        let _ = socket.recv(&mut buffer);
    }
}

fn over_six(
    name: &str,
    arguments: &[&str],
    rate: Option<Rate>,
    threads: Option<NonZeroUsize>,
) -> Result<(), Failure> {
    let (mut lab, layout) = lab(HOPS, Direction { rate, delay: ms(1), ..Direction::default() })?;
    let emulator = start(&mut lab, layout, threads)?;
    let mbit = iperf(&lab, arguments)?;
    let report = emulator.finish(&lab)?;
    let frames: u64 = report.fidelity.delivered / (SECONDS + 1);
    println!("{name:<26} {mbit:>9.1} {frames:>12} {}", fidelity(&report));
    Ok(())
}

/// The same nodes, joined by nothing but the kernel.
fn over_veth(name: &str, arguments: &[&str]) -> Result<(), Failure> {
    let (lab, _) = lab(HOPS, Direction::default())?;
    let mut commands = String::new();
    for hop in 0..HOPS {
        let (left, right) = (lab.namespace(hop).name(), lab.namespace(hop + 1).name());
        commands += &format!("link add v1 netns {left} type veth peer name v0 netns {right}\n");
    }
    ip(&commands, None)?;
    for node in 0..=HOPS {
        let mut commands = String::new();
        for (other, device) in [(node.wrapping_sub(1), "v0"), (node + 1, "v1")] {
            if other > HOPS {
                continue;
            }
            commands += &format!("link set {device} up\nroute flush proto static\n");
            let via = other + 1;
            let range = if other < node { 0..node } else { node + 1..HOPS + 1 };
            for to in range {
                commands += &format!(
                    "route replace 10.0.0.{}/32 via 10.0.0.{via} dev {device} onlink src 10.0.0.{}\n",
                    to + 1,
                    node + 1
                );
            }
        }
        ip(&commands, Some(lab.namespace(node).name()))?;
    }
    println!("{name:<26} {:>9.1}", iperf(&lab, arguments)?);
    Ok(())
}

fn ip(commands: &str, namespace: Option<&str>) -> Result<(), Failure> {
    use std::io::Write;
    let mut command = Command::new("ip");
    if let Some(name) = namespace {
        command.args(["-n", name]);
    }
    let mut child = command.args(["-batch", "-"]).stdin(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(commands.as_bytes())?;
    }
    child.wait()?;
    Ok(())
}

/// Megabits a second that arrived.
fn iperf(lab: &Lab, arguments: &[&str]) -> Result<f64, Failure> {
    let said = |error: std::io::Error| format!("iperf3: {error}");
    let mut server = lab.command(HOPS, "iperf3");
    server.args(["-s", "-1"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = lab.start(server).map_err(said)?;
    thread::sleep(Span::from_millis(300));
    let mut client = lab.command(0, "iperf3");
    client.args(["-c", &format!("10.0.0.{}", HOPS + 1), "-J", "-t", &SECONDS.to_string()]).args(arguments);
    client.stdout(Stdio::piped());
    let output = lab.start(client).map_err(said)?.wait_with_output().map_err(said)?;
    server.wait().map_err(said)?;
    let said: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let end = &said["end"];
    let received = end["sum_received"]["bits_per_second"].as_f64().or(end["sum"]["bits_per_second"].as_f64());
    let lost =
        end["sum_received"]["lost_percent"].as_f64().or(end["sum"]["lost_percent"].as_f64()).unwrap_or(0.0);
    received
        .map(|rate| rate / 1e6 * (1.0 - lost / 100.0))
        .ok_or_else(|| format!("iperf3: {}", said["error"]).into())
}

fn lab(hops: usize, direction: Direction) -> Result<(Lab, NetworkLayout), Failure> {
    let model = |number: usize| -> Box<dyn Link + Send> {
        let config = Config { forward: direction.clone(), backward: direction.clone(), ..Config::default() };
        let stream = |end| Seed::new(1, 0).stream(&["link"], (2 * number + end) as u64);
        Box::new(PointToPoint::new(config, [stream(0), stream(1)]))
    };
    let layout = NetworkLayout::chain((0..hops).map(model), 1500);
    Ok((Lab::set_up(&layout, &Lab::fresh_id())?, layout))
}

fn start(lab: &mut Lab, layout: NetworkLayout, threads: Option<NonZeroUsize>) -> Result<Emulator, Failure> {
    let readings = Readings {
        from: Instant::ZERO + Duration::from_secs(1),
        to: Instant::ZERO + Duration::from_secs(SECONDS + 1),
        ..Readings::default()
    };
    let options = Options { threads, readings, ..Options::default() };
    Ok(Emulator::start(lab, layout.links, Vec::new(), Clock::starting_now(), options)?)
}

fn fidelity(report: &EmulatorReport) -> String {
    let fidelity = &report.fidelity;
    let us = |span: Duration| span.as_nanos() as f64 / 1e3;
    let processor: u64 = report.processor.iter().map(|span| span.as_nanos()).sum();
    let verdict = report.verdict.as_deref().unwrap_or_default();
    format!(
        "{:>9.1} {:>9.1} {:>9.0} {:>9.0} {:>8} {:>8} {:>12}  {verdict}",
        us(fidelity.lateness_p50),
        us(fidelity.lateness_p99),
        us(fidelity.lateness_max),
        us(fidelity.gap),
        fidelity.unseen,
        fidelity.socket_full,
        processor / fidelity.delivered.max(1),
    )
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
