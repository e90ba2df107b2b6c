//! ping: each reply is a line, with the time of its arrival.

use std::collections::BTreeMap;

use hopcast_twin::scenario::model::PingOptions;

use super::command::{CommandLine, Commands, Outputs, Task};
use super::error::Missing;
use super::measurement::{Interval, Measurement, Samples};

pub(super) fn commands(ping: &PingOptions, task: &Task<'_>) -> Commands {
    let family = if task.ends.ipv6() { "-6" } else { "-4" };
    let (every, size) = (ping.every.as_secs_f64(), ping.size.get().to_string());
    let client = CommandLine::new("ping", [family, "-n", "-D", "-i", &format!("{every:.6}"), "-s", &size])
        .and(["-I", &task.ends.from.to_string()])
        .and(ping.arguments.iter().cloned())
        .and([task.ends.connect.to_string()]);
    Commands { server: None, client }
}

pub(super) fn parse(ping: &PingOptions, task: &Task<'_>, outputs: &Outputs) -> Result<Measurement, Missing> {
    let text = &outputs.client;
    let transmitted = text.lines().find_map(|line| {
        let (count, _) = line.split_once(" packets transmitted")?;
        count.trim().parse::<u64>().ok()
    });
    // The first reply to each request; numbers of requests wrap at 16 bits, and replies are in order of time.
    let mut replies: BTreeMap<u64, Reply> = BTreeMap::new();
    let mut last = 0;
    for reply in text.lines().filter_map(reply) {
        let number = unwrapped(reply.number, last);
        last = last.max(number);
        replies.entry(number).or_insert(reply);
    }
    let Some(transmitted) = transmitted.or((last > 0).then_some(last)) else {
        return Err(outputs.lacks("no report"));
    };
    let every = ping.every.as_secs_f64();
    // The time of the first request: by the first reply, or else the start of ping.
    let first = replies.iter().next().map_or(outputs.started, |(&number, reply)| {
        let sent = reply.at - reply.millis / 1e3 - outputs.started_wall + outputs.started;
        sent - number.saturating_sub(1) as f64 * every
    });
    let (from, to) = task.window_seconds();
    let sent_at = |number: u64| {
        let planned = first + number.saturating_sub(1) as f64 * every;
        let known = replies.get(&number).map(|reply| reply.at - reply.millis / 1e3 - outputs.started_wall);
        known.map_or(planned, |known| known + outputs.started)
    };
    let counts = |number: u64| (from..to).contains(&sent_at(number));
    // The maximum number of requests in this time.
    let limit = ((outputs.ended - outputs.started).max(0.0) / every * 2.0) as u64 + last + 1000;
    let sent = (1..=transmitted.min(limit)).filter(|&number| counts(number)).count() as u64;
    let counted = || replies.iter().filter(|(number, _)| counts(**number)).map(|(_, reply)| reply);
    let payload = ping.size.get() as f64;
    let came = |reply: &Reply| {
        let at = reply.at - outputs.started_wall + outputs.started;
        Interval { from: at, to: at, bytes: payload }
    };
    Ok(Measurement {
        received: replies.values().map(came).collect(),
        units: Some((sent, (counted().count() as u64).min(sent))),
        round_trip: Samples::new(counted().map(|reply| (reply.millis, 1))),
        ..Measurement::default()
    })
}

struct Reply {
    /// In seconds of the machine's clock.
    at: f64,
    number: u16,
    millis: f64,
}

/// `[1795301454.228561] 108 bytes from 10.9.0.2: icmp_seq=1 ttl=64 time=0.165 ms`.
fn reply(line: &str) -> Option<Reply> {
    let (at, rest) = line.strip_prefix('[')?.split_once(']')?;
    if !rest.contains(" bytes from ") || rest.contains("(DUP!)") {
        return None;
    }
    let value = |key: &str| rest.split_whitespace().find_map(|word| word.strip_prefix(key));
    let millis: f64 = value("time=")?.parse().ok()?;
    let at: f64 = at.parse().ok()?;
    let sane = (0.0..=1e9).contains(&millis) && (0.0..=1e11).contains(&at);
    sane.then_some(Reply { at, number: value("icmp_seq=")?.parse().ok()?, millis })
}

/// A number of 16 bits, extended to the value nearest to the last one.
fn unwrapped(number: u16, last: u64) -> u64 {
    let forward = number.wrapping_sub(last as u16);
    if forward < 1 << 15 {
        last + u64::from(forward)
    } else {
        last.saturating_sub(u64::from(forward.wrapping_neg()))
    }
}
