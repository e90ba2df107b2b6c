//! iperf, version 2: both ends report in lines, the receiver with a histogram of one-way latencies.

use std::collections::BTreeMap;

use hopcast_twin::scenario::model::Load;

use super::command::{CommandLine, Commands, ListenPort, Outputs, Task};
use super::error::Missing;
use super::measurement::{Interval, Measurement, Samples, bytes_within};

/// Bins of the histogram: 100 µs wide, up to ten seconds. Chosen; wider ones make percentiles coarse, more make the
/// output longer.
const HISTOGRAM: &str = "--histograms=100u,100000";
/// Hop limit of what is sent to a group: the maximum, as of hosts in virtual time. iperf2's own choice is 1.
const GROUP_HOP_LIMIT: &str = "255";

pub(super) fn commands(load: &Load, task: &Task<'_>) -> Commands {
    let (port, step) = (task.ends.port.to_string(), format!("{:.3}", task.step_seconds()));
    let common = ["-p", &port, "-i", &step, "-e", "-f", "b"];
    let latency = task.is_udp() && !load.reverse;
    let server = CommandLine::new("iperf", ["-s", "-B", &task.ends.bind()])
        .and(common)
        .and_if(task.ends.ipv6(), ["-V"])
        .and_if(task.is_udp(), ["-u"])
        .and_if(latency, [HISTOGRAM])
        .listening_on(if task.is_udp() {
            ListenPort::Udp(task.ends.port)
        } else {
            ListenPort::Tcp(task.ends.port)
        });
    let server = match task.ends.member.and_then(|member| member.source) {
        Some(source) => server.and(["-H", &source.to_string()]),
        None => server,
    };
    let streams = u64::from(load.parallel.max(1));
    let mut client = CommandLine::new("iperf", ["-c", &task.ends.connect.to_string()])
        .and(common)
        .and(["-t", &format!("{:.3}", task.seconds())])
        .and_if(task.ends.ipv6(), ["-V"])
        // Both ends have one clock.
        .and_if(task.is_udp(), ["-u", "--trip-times"])
        .and_if(task.is_udp() && load.reverse, [HISTOGRAM])
        .and_if(streams > 1, ["-P", &streams.to_string()])
        .and_if(load.reverse, ["-R"])
        .and_if(task.ends.member.is_some(), ["-T", GROUP_HOP_LIMIT])
        .ending_itself();
    if let Some(rate) = load.rate {
        client = client.and(["-b", &(rate.bits_per_sec() / streams).max(1).to_string()]);
    }
    if let Some(congestion) = task.congestion() {
        client = client.and(["-Z", congestion]);
    }
    let size = if task.is_udp() { Some(load.datagram()) } else { load.size };
    if let Some(size) = size {
        client = client.and(["-l", &size.get().to_string()]);
    }
    Commands { server: Some(server), client: client.and(load.arguments.iter().cloned()) }
}

pub(super) fn parse(load: &Load, task: &Task<'_>, outputs: &Outputs) -> Result<Measurement, Missing> {
    let (sender, receiver) = match load.reverse {
        true => (&outputs.server, &outputs.client),
        false => (&outputs.client, &outputs.server),
    };
    let (sent, received) = (report(sender), report(receiver));
    // A member may receive no packet of a group; then its server has only printed that it listens.
    let nothing_arrived = task.ends.member.is_some() && !sent.is_empty() && !receiver.is_empty();
    if received.is_empty() && !nothing_arrived {
        return Err(outputs.lacks("no report of what arrived"));
    }
    let run = |lines: &[Line]| -> Vec<Interval> {
        let times = |line: &Line| (outputs.started + line.from, outputs.started + line.to);
        lines
            .iter()
            .map(|line| (times(line), line.bytes))
            .map(|((from, to), bytes)| Interval { from, to, bytes })
            .collect()
    };
    let mut measured = Measurement { received: run(&received), sent: run(&sent), ..Measurement::default() };
    if task.is_udp() {
        let (from, to) = task.window_seconds();
        let size = load.datagram().get() as f64;
        let arrived = bytes_within(&measured.received, from, to) / size;
        let sent = bytes_within(&measured.sent, from, to) / size;
        let sent = if sent > 0.0 { sent } else { arrived };
        measured.units = Some((sent.round() as u64, arrived.clamp(0.0, sent).round() as u64));
        measured.jitter_ms = received.iter().rev().find_map(|line| line.jitter_ms);
        let inside = |line: &&Histogram| {
            let middle = outputs.started + f64::midpoint(line.from, line.to);
            (from..to).contains(&middle)
        };
        let histograms: Vec<Histogram> = receiver.lines().filter_map(histogram).collect();
        // The last histogram of each connection covers the whole run, and includes the earlier ones.
        let steps = histograms.iter().filter(|line| !line.all).filter(inside);
        measured.latency = Samples::new(steps.flat_map(|line| line.bins.iter().copied()));
    }
    Ok(measured)
}

/// One line: `[  1] 0.5000-1.0000 sec  312000 Bytes  4992000 bits/sec   0.005 ms 0/260 (0%) …`.
struct Line {
    from: f64,
    to: f64,
    bytes: f64,
    jitter_ms: Option<f64>,
}

/// The lines of each connection, step by step; the rest of its sum is one more.
fn report(text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut so_far: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (id, line) in text.lines().take_while(|line| !line.ends_with("Server Report:")).filter_map(line) {
        let (until, bytes) = so_far.entry(id).or_default();
        if (line.from - *until).abs() < 1e-3 && line.to > line.from {
            *until = line.to;
            *bytes += line.bytes;
            lines.push(line);
        } else if line.from == 0.0 && line.bytes > *bytes && line.to >= *until {
            lines.push(Line { from: *until, bytes: line.bytes - *bytes, ..line });
        }
    }
    lines
}

fn line(text: &str) -> Option<(&str, Line)> {
    let (id, rest) = text.strip_prefix('[')?.split_once(']')?;
    // `*` marks the reverse direction.
    let id = id.trim().trim_start_matches('*');
    id.parse::<u32>().ok()?;
    let mut words = rest.split_whitespace();
    let (from, to) = span(words.next()?)?;
    if words.next()? != "sec" {
        return None;
    }
    let bytes = amount(words.next()?)?;
    if words.next()? != "Bytes" {
        return None;
    }
    amount(words.next()?)?;
    if words.next()? != "bits/sec" {
        return None;
    }
    let jitter = words.next().and_then(amount);
    let jitter_ms = jitter.filter(|_| words.next() == Some("ms"));
    Some((id, Line { from, to, bytes, jitter_ms }))
}

/// `0.5000-1.0000`.
fn span(word: &str) -> Option<(f64, f64)> {
    let (from, to) = word.split_once('-')?;
    let time = |text: &str| amount(text).filter(|time| *time <= 1e7);
    Some((time(from)?, time(to)?))
}

fn amount(word: &str) -> Option<f64> {
    word.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
}

/// Latencies in milliseconds, each with its count.
struct Histogram {
    from: f64,
    to: f64,
    all: bool,
    bins: Vec<(f64, u64)>,
}

/// `[  1] 0.0000-0.5000 sec T8-PDF: bin(w=100us):cnt(262)=1:261,2:1 (5.00/…`; of the whole run it says `T8(f)-PDF`.
fn histogram(text: &str) -> Option<Histogram> {
    let (_, rest) = text.strip_prefix('[')?.split_once(']')?;
    let (head, bins) = rest.split_once("PDF: bin(w=")?;
    let (from, to) = span(head.split_whitespace().next()?)?;
    let (width, rest) = bins.split_once("us):cnt(")?;
    let width = amount(width)?;
    let (_, rest) = rest.split_once(")=")?;
    let bins = rest.split_whitespace().next()?;
    let bin = |text: &str| -> Option<(f64, u64)> {
        let (place, count) = text.split_once(':')?;
        let place: u32 = place.parse().ok()?;
        // Bins are numbered from 1; the mean of a bin is its middle.
        Some(((f64::from(place) - 0.5).max(0.0) * width / 1e3, count.parse().ok()?))
    };
    Some(Histogram { from, to, all: head.contains("(f)"), bins: bins.split(',').filter_map(bin).collect() })
}
