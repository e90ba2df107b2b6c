//! The fields that readers of iperf3's output need are there, and add up.

#![allow(clippy::unwrap_used)] // in what the tests share

mod fixture;

use hopcast_report::iperf3;
use hopcast_twin::results::{Document, Run};
use serde_json::Value;

fn of(protocol: &str) -> (Value, Document, Run) {
    let (document, _) = fixture::six_hops();
    let run = document.runs.iter().rev().find(|run| run.flows[0].protocol == protocol).unwrap().clone();
    (iperf3::json(&document, &run, &run.flows[0]), document, run)
}

fn bytes(value: &Value) -> u64 {
    value["bytes"].as_u64().unwrap()
}

/// The intervals are seamless and sum up to what was received.
fn adds_up(json: &Value) {
    let intervals = json["intervals"].as_array().unwrap();
    assert_eq!(intervals.len(), 60);
    for (at, interval) in intervals.iter().enumerate() {
        let (sum, stream) = (&interval["sum"], &interval["streams"][0]);
        assert_eq!(bytes(sum), bytes(stream));
        assert_eq!((sum["start"].as_f64(), sum["seconds"].as_f64()), (Some(at as f64), Some(1.0)));
        assert_eq!(sum["bits_per_second"].as_f64().unwrap(), bytes(sum) as f64 * 8.0);
    }
    let received = &json["end"]["sum_received"];
    assert_eq!(intervals.iter().map(|interval| bytes(&interval["sum"])).sum::<u64>(), bytes(received));
    assert_eq!(received["seconds"], 60.0);
}

#[test]
fn a_stream_has_what_readers_of_tcp_look_for() {
    let (json, _, run) = of("tcp-cubic");
    adds_up(&json);
    assert_eq!(json["start"]["test_start"]["protocol"], "TCP");
    assert_eq!(json["start"]["timestamp"]["timesecs"], 0);
    assert_eq!(json["start"]["connected"][0]["remote_host"], "n6");
    let about: Value = serde_json::from_str(json["extra_data"].as_str().unwrap()).unwrap();
    assert_eq!(about["parameters"], Value::Object(run.parameters));
    let end = &json["end"];
    assert_eq!(end["sum_sent"]["retransmits"], 42);
    assert_eq!(end["sender_tcp_congestion"], "cubic");
    assert_eq!(bytes(&end["streams"][0]["sender"]), bytes(&end["sum_sent"]));
    assert_eq!(bytes(&end["streams"][0]["receiver"]), bytes(&end["sum_received"]));
    assert!(end["cpu_utilization_percent"]["host_total"].is_number());
}

#[test]
fn datagrams_have_what_readers_of_udp_look_for() {
    let (json, _, run) = of("udp");
    adds_up(&json);
    assert_eq!(json["start"]["test_start"]["protocol"], "UDP");
    let (end, figures) = (&json["end"], &run.flows[0].figures);
    let (packets, lost) = (figures.sent_units, figures.sent_units - figures.delivered_units);
    assert!(lost > 0);
    for sum in [&end["sum"], &end["sum_received"], &end["streams"][0]["udp"]] {
        assert_eq!((sum["packets"].as_u64(), sum["lost_packets"].as_u64()), (Some(packets), Some(lost)));
        assert_eq!(sum["jitter_ms"], 0.12);
        let percent = sum["lost_percent"].as_f64().unwrap();
        assert!((percent - lost as f64 / packets as f64 * 100.0).abs() < 1e-9);
    }
    let (sent, received) = (bytes(&end["sum_sent"]) as f64, bytes(&end["sum_received"]) as f64);
    assert!((received / sent - figures.reliability.unwrap()).abs() < 1e-6);
}
