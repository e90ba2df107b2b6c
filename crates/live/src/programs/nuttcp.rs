//! nuttcp: the client prints the receiver's measurement, as `key=value`.

use hopcast_twin::scenario::model::Load;

use super::command::{CommandLine, Commands, ListenPort, Outputs, Task};
use super::error::Missing;
use super::measurement::{Interval, Measurement, bytes_within};

/// Bytes in a megabyte of nuttcp.
const MEGABYTE: f64 = 1_048_576.0;

pub(super) fn commands(load: &Load, task: &Task<'_>) -> Commands {
    let (control, data) = (task.ends.port.to_string(), (task.ends.port + 1).to_string());
    let family = if task.ends.ipv6() { "-6" } else { "-4" };
    let server = CommandLine::new("nuttcp", ["-S", "-1", "--nofork", family, "-P", &control])
        .listening_on(ListenPort::Tcp(task.ends.port))
        .ending_itself();
    let mut client = CommandLine::new("nuttcp", [if load.reverse { "-r" } else { "-t" }, family])
        .and(["-fparse", &format!("-i{:.1}", task.step_seconds()), &format!("-T{:.1}", task.seconds())])
        .and([format!("-P{control}"), format!("-p{data}")])
        .and_if(task.is_udp(), ["-u"])
        .ending_itself();
    if let Some(rate) = load.rate {
        client = client.and([format!("-R{}", (rate.bits_per_sec() / 1000).max(1))]);
    }
    let size = if task.is_udp() { Some(load.datagram()) } else { load.size };
    if let Some(size) = size {
        client = client.and([format!("-l{}", size.get())]);
    }
    let client = client.and(load.arguments.iter().cloned()).and([task.ends.connect.to_string()]);
    let with = |command: CommandLine| command.on_node_with(task.congestion());
    Commands { server: Some(with(server)), client: with(client) }
}

pub(super) fn parse(_: &Load, task: &Task<'_>, outputs: &Outputs) -> Result<Measurement, Missing> {
    let lines: Vec<Line> = outputs.client.lines().filter_map(line).collect();
    if lines.is_empty() {
        return Err(outputs.lacks("no report of what arrived"));
    }
    let (mut received, mut sent, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
    let (mut at, mut bytes, mut packets, mut drops) = (outputs.started, 0.0, 0.0, 0.0);
    for line in &lines {
        // The last line is the sum: its rest after the steps is one more step.
        let mut own = *line;
        if line.all {
            own.seconds = (line.seconds - (at - outputs.started)).max(0.0);
            own.bytes = (line.bytes - bytes).max(0.0);
            own.packets = line.packets.zip(Some(packets)).map(|(all, so_far)| (all - so_far).max(0.0));
            own.drops = (line.drops - drops).max(0.0);
        }
        let step = |amount: f64| Interval { from: at, to: at + own.seconds, bytes: amount };
        received.push(step(own.bytes));
        sent.push(step(own.packets.unwrap_or(0.0)));
        dropped.push(step(own.drops));
        at += own.seconds;
        bytes += own.bytes;
        packets += own.packets.unwrap_or(0.0);
        drops += own.drops;
    }
    let mut measured = Measurement { received, ..Measurement::default() };
    if task.is_udp() {
        let (from, to) = task.window_seconds();
        let (sent, lost) = (bytes_within(&sent, from, to), bytes_within(&dropped, from, to));
        measured.units = Some((sent.round() as u64, (sent - lost).max(0.0).round() as u64));
    }
    if let Some(retransmits) = lines.iter().find(|line| line.all).and_then(|line| line.retransmits) {
        measured.counters.insert("retransmitted_segments".to_owned(), retransmits);
    }
    Ok(measured)
}

/// `megabytes=2.9375 real_sec=0.50 rate_Mbps=48.9001 retrans=0`; the last line has `real_seconds`.
#[derive(Clone, Copy)]
struct Line {
    all: bool,
    seconds: f64,
    bytes: f64,
    packets: Option<f64>,
    drops: f64,
    retransmits: Option<u64>,
}

fn line(text: &str) -> Option<Line> {
    let value = |key: &str| -> Option<f64> {
        let pairs = text.split_whitespace().filter_map(|word| word.split_once('='));
        let found = pairs.into_iter().find(|(name, _)| *name == key)?.1.parse::<f64>().ok()?;
        (0.0..=1e15).contains(&found).then_some(found)
    };
    let all = value("real_seconds");
    Some(Line {
        all: all.is_some(),
        seconds: all.or_else(|| value("real_sec")).filter(|seconds| *seconds <= 1e7)?,
        bytes: value("megabytes")? * MEGABYTE,
        packets: value("pkt"),
        drops: value("drop").unwrap_or(0.0),
        retransmits: value("retrans").map(|count| count as u64),
    })
}
