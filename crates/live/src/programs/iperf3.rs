//! iperf3: both ends report in JSON.

use hopcast_twin::scenario::model::Load;
use serde_json::Value;

use super::command::{CommandLine, Commands, ListenPort, Outputs, Task};
use super::error::Missing;
use super::measurement::{Interval, Measurement, bytes_within};

pub(super) fn commands(load: &Load, task: &Task<'_>) -> Commands {
    let (port, step) = (task.ends.port.to_string(), format!("{:.1}", task.step_seconds()));
    let common = ["-p", &port, "-i", &step, "-J"];
    // Ends after one test.
    let server = CommandLine::new("iperf3", ["-s", "-1", "-B", &task.ends.to.to_string()])
        .and(common)
        .listening_on(ListenPort::Tcp(task.ends.port))
        .ending_itself();
    // Its duration is a whole number of seconds; it is ended earlier if the flow's is not.
    let (seconds, streams) = (task.seconds(), u64::from(load.parallel.max(1)));
    let mut client = CommandLine::new("iperf3", ["-c", &task.ends.connect.to_string()])
        .and(common)
        .and(["-t", &format!("{:.0}", seconds.ceil().max(1.0))])
        .and_if(task.is_udp(), ["-u"])
        .and_if(streams > 1, ["-P", &streams.to_string()])
        .and_if(load.reverse, ["-R"]);
    if let Some(rate) = load.rate {
        client = client.and(["-b", &(rate.bits_per_sec() / streams).max(1).to_string()]);
    }
    if let Some(congestion) = task.congestion() {
        client = client.and(["-C", congestion]);
    }
    let size = if task.is_udp() { Some(load.datagram()) } else { load.size };
    if let Some(size) = size {
        client = client.and(["-l", &size.get().to_string()]);
    }
    client.ends_itself = seconds.fract() == 0.0;
    Commands { server: Some(server), client: client.and(load.arguments.iter().cloned()) }
}

pub(super) fn parse(load: &Load, task: &Task<'_>, outputs: &Outputs) -> Result<Measurement, Missing> {
    let client: Value = json(&outputs.client).unwrap_or_default();
    let server: Value = json(&outputs.server).unwrap_or_default();
    let (sender, receiver) = if load.reverse { (&server, &client) } else { (&client, &server) };
    let started = outputs.started;
    let (mut received, sent) = (intervals(receiver, "bytes", started), intervals(sender, "bytes", started));
    if received.is_empty() {
        // The client receives the sums of both ends at the end.
        received.extend(interval(&client["end"]["sum_received"], "bytes", started));
    }
    if received.is_empty() {
        let said = [&client, &server].into_iter().find_map(|report| report["error"].as_str());
        let said = said.map_or_else(|| outputs.complaint(), str::to_owned);
        return Err(Missing { what: "no report of what arrived", said });
    }
    let mut measured = Measurement { received, sent, ..Measurement::default() };
    if task.is_udp() {
        let (from, to) = task.window_seconds();
        // `packets` of the receiver includes the lost ones that it knows of.
        let known = bytes_within(&intervals(receiver, "packets", started), from, to);
        let lost = bytes_within(&intervals(receiver, "lost_packets", started), from, to);
        let sent = bytes_within(&intervals(sender, "packets", started), from, to);
        let sent = if sent > 0.0 { sent } else { known };
        measured.units = Some((sent.round() as u64, (known - lost).clamp(0.0, sent).round() as u64));
        let steps = receiver["intervals"].as_array().map_or(&[][..], Vec::as_slice);
        let last = steps.iter().rev().find_map(|step| step["sum"]["jitter_ms"].as_f64());
        measured.jitter_ms = last.or(client["end"]["sum"]["jitter_ms"].as_f64());
    }
    if let Some(retransmits) = sender["end"]["sum_sent"]["retransmits"].as_u64() {
        measured.counters.insert("retransmitted_segments".to_owned(), retransmits);
    }
    Ok(measured)
}

fn json(text: &str) -> Option<Value> {
    // Text before the report is not JSON.
    let begin = text.find('{')?;
    serde_json::Deserializer::from_str(&text[begin..]).into_iter().next()?.ok()
}

/// The values of `key` over time, summed over parallel connections.
fn intervals(report: &Value, key: &str, started: f64) -> Vec<Interval> {
    let steps = report["intervals"].as_array().map_or(&[][..], Vec::as_slice);
    steps.iter().filter_map(|step| interval(&step["sum"], key, started)).collect()
}

fn interval(sum: &Value, key: &str, started: f64) -> Option<Interval> {
    let at = |key: &str| sum[key].as_f64().filter(|time| (0.0..=1e7).contains(time));
    let (from, to) = (at("start")?, at("end")?);
    let amount = sum[key].as_f64().filter(|amount| *amount >= 0.0)?;
    Some(Interval { from: started + from, to: started + to, bytes: amount })
}
