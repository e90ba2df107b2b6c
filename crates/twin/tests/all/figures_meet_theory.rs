//! Measured figures beside calculated ones.

use crate::common::{document, flow, near};

fn six_hops(over: &str, loss: &str, app: &str) -> String {
    format!(
        "
title: Six hops
seed: 1
duration: 20 s
measure: {{ from: 6 s }}
topology:
  chain: {{ hops: 6, link: {{ rate: 300 Mbit/s, delay: 500 us }} }}
events:
  - {{ at: 6 s, links: all, loss: {loss} }}
flows:
  - {{ name: flow, from: n0, to: n6, over: {over}, app: {app} }}
"
    )
}

#[test]
fn saturating_udp_gets_what_is_left_after_six_independent_losses() {
    for (loss, pass) in [("0 %", 1.0f64), ("5 %", 0.95), ("20 %", 0.80)] {
        let flow = flow(&six_hops("udp", loss, "bulk"));
        let expected = 300.0 * 1472.0 / 1514.0 * pass.powi(6);
        // 300,000 datagrams: five standard errors at 20 % are under half a percent.
        near(flow.figures.goodput_mbps.unwrap(), expected, 0.006);
        near(flow.figures.reliability.unwrap(), pass.powi(6), 0.006);
        near(flow.figures.min_cut_fraction.unwrap(), expected / (300.0 * pass), 0.006);
    }
}

#[test]
fn latency_without_load_is_serialisation_and_delay_at_each_hop() {
    let flow = flow(&six_hops("udp", "0 %", "{ cbr: { rate: 1 Mbit/s, size: 1000 B } }"));
    let latency = flow.figures.latency_ms.unwrap();
    let expected = 6.0 * (0.5 + (1000.0 + 42.0) * 8.0 / 300e6 * 1e3);
    near(latency.mean, expected, 1e-5);
    near(latency.p50, expected, 1e-3);
    near(latency.max, expected, 1e-3);
    // A frame takes 27,786 2/3 ns on a link; whole nanoseconds leave that much to vary.
    assert!(flow.figures.jitter_ms.unwrap() < 1e-5);
    assert_eq!(flow.figures.reliability, Some(1.0));
}

#[test]
fn an_echo_takes_twice_the_way() {
    let flow = flow(&six_hops("udp", "0 %", "{ messages: { size: 128 B, rate: 100 Hz } }"));
    let figures = flow.figures;
    near(figures.round_trip_ms.unwrap().mean, 2.0 * figures.latency_ms.unwrap().mean, 1e-6);
    assert_eq!(figures.reliability, Some(1.0));
}

#[test]
fn links_report_what_entered_what_was_lost_and_how_busy_they_were() {
    let document = document(&six_hops("udp", "10 %", "bulk"));
    let links = &document.runs[0].links;
    for (hop, link) in links.iter().filter(|link| link.from < link.to).enumerate() {
        let pass = 0.9f64.powi(hop as i32);
        near(link.utilisation.unwrap(), pass, 0.01);
        near(link.lost_packets as f64 / link.sent_packets as f64, 0.1, 0.03);
        near(link.sent_bytes as f64, 300e6 / 8.0 * 14.0 * pass, 0.01);
        assert_eq!(link.queue_dropped_packets, 0);
    }
    assert_eq!(links.len(), 12);
}

#[test]
fn the_time_series_shows_the_loss_begin() {
    let document =
        document(&six_hops("udp", "20 %", "bulk").replace("{ from: 6 s }", "{ from: 6 s, interval: 1 s }"));
    let (_, goodput) = &document.runs[0].series.flows[0];
    assert_eq!(goodput.len(), 20);
    near(goodput[4], 291.7, 0.01);
    near(goodput[10], 291.7 * 0.262_144, 0.05);
}

#[test]
fn what_enters_a_full_queue_is_dropped_and_told_apart_from_loss() {
    let document = document(
        "
title: Too much
seed: 1
duration: 5 s
topology:
  nodes: [a, b, c]
  links:
    - { between: [a, b], rate: 20 Mbit/s }
    - { between: [b, c], rate: 10 Mbit/s, queue: 50 packets }
flows:
  - { name: cbr, from: a, to: c, over: udp, app: { cbr: { rate: 15 Mbit/s, size: 1000 B } } }
",
    );
    let run = &document.runs[0];
    let link = run.links.iter().find(|link| link.from == "b" && link.to == "c").unwrap();
    near(link.utilisation.unwrap(), 1.0, 0.001);
    assert!(link.queue_dropped_packets > 0);
    assert_eq!(link.lost_packets, 0);
    near(run.flows[0].figures.goodput_mbps.unwrap(), 10.0 * 1000.0 / 1042.0, 0.01);
}
