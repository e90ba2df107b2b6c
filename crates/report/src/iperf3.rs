//! One flow of one run in the shape that `iperf3 --json` prints, for tools that read that.
//!
//! `intervals` are the run's steps from time 0. Bytes are payload that arrived, and `sum_received` has their sum; the
//! sent bytes of a datagram flow are that over its reliability, those of a stream are the received ones. Packets,
//! losses and jitter of datagrams are those of the measurement window, which is the whole run unless the scenario says
//! otherwise; a stream has `retransmits` if its protocol counts them. Fields about the machine, its sockets and the
//! time of day are zero.

use hopcast_stack::transport::{PortKind, Row};
use hopcast_stack::transports::find;
use hopcast_twin::results::{Document, Flow, Run};
use serde_json::{Map, Value, json};

/// The number of the stream, where iperf3 has its socket's descriptor.
const SOCKET: u64 = 1;
/// iperf3's port.
const PORT: u64 = 5201;

/// `flow` of `run`, as one document.
pub fn json(document: &Document, run: &Run, flow: &Flow) -> Value {
    let steps =
        run.series.flows.iter().find(|(name, _)| *name == flow.name).map_or(&[][..], |(_, steps)| steps);
    let step_s = run.series.step_s;
    let seconds = step_s * steps.len() as f64;
    let datagrams = is_datagrams(flow);
    let bytes: Vec<u64> = steps.iter().map(|mbps| (mbps * 1e6 / 8.0 * step_s).round() as u64).collect();
    let received: u64 = bytes.iter().sum();
    let intervals: Vec<Value> =
        bytes.iter().enumerate().map(|(at, bytes)| interval(at as f64 * step_s, step_s, *bytes)).collect();
    // iperf3 has the title here that its user has chosen.
    let about = json!({
        "parameters": run.parameters, "repeat": run.repeat, "seed": run.seed, "flow": flow.name,
        "protocol": flow.protocol,
    });
    json!({
        "start": start(flow, datagrams, seconds),
        "intervals": intervals,
        "end": end(flow, datagrams, seconds, received),
        "title": document.scenario,
        "extra_data": about.to_string(),
    })
}

/// Whether a flow is of datagrams: streams have no interarrival jitter. A flow whose datagrams hardly arrived has none
/// either, and is recognised by its protocol.
fn is_datagrams(flow: &Flow) -> bool {
    let top = flow.protocol.split('/').next().unwrap_or_default();
    let has_no_stream = |row: &Row| !row.offers.has(PortKind::Stream);
    flow.figures.jitter_ms.is_some() || find(top).is_some_and(has_no_stream)
}

fn start(flow: &Flow, datagrams: bool, seconds: f64) -> Value {
    json!({
        "connected": [{
            "socket": SOCKET, "local_host": flow.from, "local_port": 0, "remote_host": flow.to, "remote_port": PORT,
        }],
        "version": concat!("hopcast ", env!("CARGO_PKG_VERSION")),
        "system_info": "virtual time",
        "timestamp": { "time": "Thu, 01 Jan 1970 00:00:00 GMT", "timesecs": 0 },
        "connecting_to": { "host": flow.to, "port": PORT },
        "cookie": "",
        "test_start": {
            "protocol": if datagrams { "UDP" } else { "TCP" }, "num_streams": 1, "blksize": 0, "omit": 0,
            "duration": seconds, "bytes": 0, "blocks": 0, "reverse": 0, "tos": 0,
        },
    })
}

fn interval(start: f64, seconds: f64, bytes: u64) -> Value {
    let mut sum = carried(start, start + seconds, bytes, false);
    sum.insert("omitted".into(), false.into());
    let mut stream = Map::from_iter([("socket".to_owned(), Value::from(SOCKET))]);
    stream.extend(sum.clone());
    json!({ "streams": [stream], "sum": sum })
}

fn end(flow: &Flow, datagrams: bool, seconds: f64, received: u64) -> Value {
    let figures = &flow.figures;
    let at_receiver = carried(0.0, seconds, received, false);
    let mut end = Map::new();
    if datagrams {
        // The mean over the receivers, as for bytes.
        let receivers = (flow.receivers.len() as u64).max(1);
        let packets = figures.sent_units / receivers;
        let lost = figures.sent_units.saturating_sub(figures.delivered_units) / receivers;
        let sent = if figures.delivered_units == 0 {
            0
        } else {
            scaled(received, figures.sent_units, figures.delivered_units)
        };
        let lost_percent = if packets == 0 { 0.0 } else { lost as f64 * 100.0 / packets as f64 };
        let with = |mut of: Map<String, Value>| {
            of.insert("jitter_ms".into(), figures.jitter_ms.unwrap_or(0.0).into());
            of.insert("lost_packets".into(), lost.into());
            of.insert("packets".into(), packets.into());
            of.insert("lost_percent".into(), lost_percent.into());
            of
        };
        let mut stream = with(carried(0.0, seconds, sent, true));
        stream.insert("socket".into(), SOCKET.into());
        stream.insert("out_of_order".into(), 0.into());
        let mut at_sender = with(carried(0.0, seconds, sent, true));
        end.insert("streams".into(), json!([{ "udp": stream }]));
        end.insert("sum".into(), at_sender.clone().into());
        // Losses are counted at the receiver.
        at_sender.insert("lost_packets".into(), 0.into());
        at_sender.insert("lost_percent".into(), 0.into());
        end.insert("sum_sent".into(), at_sender.into());
        end.insert("sum_received".into(), with(at_receiver).into());
    } else {
        let mut at_sender = carried(0.0, seconds, received, true);
        if let Some(retransmits) = retransmits(flow) {
            at_sender.insert("retransmits".into(), retransmits.into());
        }
        let stream = |of: &Map<String, Value>| {
            let mut stream = of.clone();
            stream.insert("socket".into(), SOCKET.into());
            stream
        };
        end.insert(
            "streams".into(),
            json!([{ "sender": stream(&at_sender), "receiver": stream(&at_receiver) }]),
        );
        end.insert("sum_sent".into(), at_sender.into());
        end.insert("sum_received".into(), at_receiver.into());
    }
    let idle = ["host_total", "host_user", "host_system", "remote_total", "remote_user", "remote_system"];
    let idle: Map<String, Value> = idle.map(|key| (key.to_owned(), 0.into())).into_iter().collect();
    end.insert("cpu_utilization_percent".into(), idle.into());
    if let Some(congestion) = flow.protocol.split('/').find_map(|layer| layer.strip_prefix("tcp-")) {
        end.insert("sender_tcp_congestion".into(), congestion.into());
        end.insert("receiver_tcp_congestion".into(), congestion.into());
    }
    end.into()
}

/// The fields of any span of time.
fn carried(start: f64, end: f64, bytes: u64, sender: bool) -> Map<String, Value> {
    let seconds = end - start;
    let rate = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    let entries: [(&str, Value); 6] = [
        ("start", start.into()),
        ("end", end.into()),
        ("seconds", seconds.into()),
        ("bytes", bytes.into()),
        ("bits_per_second", rate.into()),
        ("sender", sender.into()),
    ];
    entries.map(|(key, value)| (key.to_owned(), value)).into_iter().collect()
}

fn scaled(value: u64, numerator: u64, denominator: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(numerator) / u128::from(denominator);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Retransmissions of the stack, if one of its protocols counts them.
fn retransmits(flow: &Flow) -> Option<u64> {
    let counted = |name: &str| {
        let name = name.rsplit('.').next().unwrap_or(name);
        name.starts_with("retransmi") || name == "resent"
    };
    let counts: Vec<u64> =
        flow.counters.iter().filter(|(name, _)| counted(name)).map(|(_, count)| *count).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}
