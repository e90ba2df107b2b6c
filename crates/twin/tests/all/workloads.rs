//! Workloads compared with calculated values: video, background traffic and short flows, in virtual time.

#![allow(clippy::unwrap_used)]

use crate::common::{flow, near};
use hopcast_runner::{load_text, run};
use hopcast_twin::Monitor;
use hopcast_twin::results::{Figures, Flow, Video};
use hopcast_twin::scenario::Overrides;

/// One flow over one link.
fn over_one_link(seconds: u32, link: &str, flow_of: &str) -> Flow {
    flow(&format!(
        "
duration: {seconds}s
topology: {{ nodes: [a, b], links: [{{ between: [a, b], {link} }}] }}
flows: [{{ name: flow, from: a, to: b, {flow_of} }}]
"
    ))
}

fn video(seconds: u32, link: &str, flow_of: &str) -> (Figures, Video) {
    let figures = over_one_link(seconds, link, flow_of).figures;
    let video = figures.video.unwrap();
    (figures, video)
}

#[test]
fn over_a_clean_link_every_frame_is_there_in_time() {
    for over in ["udp", "btp", "tcp-cubic", "kcp", "brtp", "bats-proxy"] {
        let flow_of = format!("over: {over}, app: {{ video: {{ rate: 4 Mbit/s }} }}");
        let (figures, video) = video(20, "rate: 20 Mbit/s, delay: 5ms", &flow_of);
        assert_eq!((figures.sent_units, figures.delivered_units), (500, 500), "{over}");
        let Video { frames_sent, frames_late, frames_lost, frames_undecodable, .. } = video;
        assert_eq!((frames_sent, frames_late, frames_lost, frames_undecodable), (500, 0, 0, 0), "{over}");
        assert_eq!((video.in_time_ratio, video.decodable_frame_ratio), (Some(1.0), Some(1.0)), "{over}");
        near(figures.goodput_mbps.unwrap(), 4.0, 0.01);
    }
}

/// Of groups of 12 with 2 B-frames at 4 Mbit/s and 25 frames a second, over udp: for each frame its size, and the
/// datagrams of 1,448 B that it takes.
fn frames() -> impl Iterator<Item = (f64, i32)> {
    (0..12).cycle().map(|place| match place {
        0 => (68_966.0, 48),
        3 | 6 | 9 => (27_586.0, 20),
        _ => (11_034.0, 8),
    })
}

/// Bytes that a frame takes on the link: headers of pieces, UDP, IPv4 and Ethernet are 66.
fn on_the_wire((size, datagrams): (f64, i32)) -> f64 {
    size + 66.0 * f64::from(datagrams)
}

#[test]
fn a_frame_takes_its_bits_and_the_delay() {
    let (figures, _) =
        video(20, "rate: 20 Mbit/s, delay: 5ms", "over: udp, app: { video: { rate: 4 Mbit/s } }");
    // The largest are I-frames, which find the link idle.
    let largest = on_the_wire(frames().next().unwrap());
    near(figures.latency_ms.unwrap().max, 5.0 + largest * 8.0 / 20e3, 1e-3);
}

#[test]
fn under_loss_as_many_frames_are_lost_as_have_a_datagram_lost_and_the_others_fall_with_them() {
    let loss = "rate: 20 Mbit/s, loss: 1 %";
    let (_, video) = video(600, loss, "over: udp, app: { video: { rate: 4 Mbit/s } }");
    assert_eq!((video.frames_sent, video.frames_late), (15_000, 0));
    let whole = |datagrams: i32| 0.99f64.powi(datagrams);
    let lost = |(_, datagrams): (f64, i32)| 1.0 - whole(datagrams);
    let expected: f64 = frames().take(15_000).map(lost).sum();
    let variance: f64 = frames().take(15_000).map(lost).map(|p| p * (1.0 - p)).sum();
    let off = (video.frames_lost as f64 - expected) / variance.sqrt();
    assert!(off.abs() < 2.576, "{} for {expected}: {off} deviations", video.frames_lost);

    // Ke, Shieh, Hwang and Ziviani 2008, of groups with 3 P-frames and 2 B-frames after each I- and P-frame.
    let [i, p, b] = [48, 20, 8].map(whole);
    let chain = p + p * p + p * p * p;
    let decodable = i + i * chain + (chain + i * p * p * p) * 2.0 * i * b;
    // A group's fate swings by about its mean, and there are 1,250.
    near(video.decodable_frame_ratio.unwrap(), decodable / 12.0, 0.08);
    let Video { frames_lost, frames_undecodable, .. } = video;
    let accounted = 1.0 - (frames_lost + frames_undecodable) as f64 / 15_000.0;
    near(video.decodable_frame_ratio.unwrap(), accounted, 1e-9);
}

#[test]
fn frames_are_late_where_the_link_has_less_than_the_video() {
    let link = "rate: 3 Mbit/s, delay: 5ms, queue: 100000 packets";
    let (figures, video) = video(10, link, "over: udp, app: { video: { rate: 4 Mbit/s, deadline: 500ms } }");
    // The queue never empties: frame n is complete once all bits up to its last have left.
    let left = frames().scan(0.0, |bytes, frame| {
        *bytes += on_the_wire(frame);
        Some(0.005 + *bytes * 8.0 / 3e6)
    });
    let latency = left.take(250).enumerate().map(|(number, left)| left - 0.04 * number as f64);
    let expected = latency.filter(|latency| *latency > 0.5).count() as u64;
    assert_eq!((figures.sent_units, figures.delivered_units), (250, 250));
    assert_eq!((video.frames_late, video.frames_lost), (expected, 0));
    assert!(expected > 200, "{expected}");
    assert_eq!(video.in_time_ratio, Some((250 - expected) as f64 / 250.0));
}

#[test]
fn a_stream_that_takes_less_than_the_video_delivers_all_of_it_late() {
    for over in ["tcp-cubic", "kcp", "brtp"] {
        let flow_of = format!("over: {over}, app: {{ video: {{ rate: 4 Mbit/s }} }}");
        let (figures, video) = video(20, "rate: 3 Mbit/s, delay: 5ms", &flow_of);
        assert_eq!((figures.sent_units, figures.delivered_units), (500, 500), "{over}");
        assert!(video.frames_late > 400 && video.frames_lost == 0, "{over}: {video:?}");
    }
}

#[test]
fn a_trace_says_types_sizes_and_times() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("plain.csv"), "# of nothing\ntype,bytes\nI,5000\n\nB, 500\nP,2000\n")
        .unwrap();
    std::fs::write(dir.path().join("timed.csv"), "0,I,5000\n20,B,500\n50,P,2000\n").unwrap();
    // A second has 50 frames, and 13 and a third times the three of the trace: 75 ms for each time round.
    for (trace, sent, bytes) in [
        ("plain.csv, fps: 50", 50, 17 * 5000 + 17 * 500 + 16 * 2000),
        ("timed.csv", 41, 14 * 5500 + 13 * 2000),
    ] {
        let text = format!(
            "
duration: 1s
topology: {{ chain: {{ hops: 1, link: {{ rate: 10 Mbit/s }} }} }}
flows: [{{ from: n0, to: n1, over: tcp-cubic, app: {{ video: {{ trace: {trace} }} }} }}]
"
        );
        let plan = load_text(&dir.path().join("s.yaml"), &text, &Overrides::default()).unwrap();
        let flow = run(&plan, 1, None, &Monitor::default()).unwrap().runs.remove(0).flows.remove(0);
        assert_eq!((flow.figures.sent_units, flow.figures.delivered_units), (sent, sent), "{trace}");
        assert_eq!(flow.counters["frame_bytes_sent"], bytes, "{trace}");
    }
}

#[test]
fn every_receiver_of_a_video_has_figures_of_its_own() {
    let flow = flow(
        "
duration: 20s
topology:
  nodes: [a, near, far]
  links:
    - { between: [a, near], rate: 20 Mbit/s, delay: 5ms }
    - { between: [near, far], rate: 20 Mbit/s, delay: 150ms }
flows:
  - { from: a, to: [near, far], over: btp, app: { video: { rate: 2 Mbit/s, deadline: 100ms } } }
",
    );
    let in_time = |figures: &Figures| figures.video.unwrap().in_time_ratio.unwrap();
    let each: Vec<f64> = flow.receivers.iter().map(|receiver| in_time(&receiver.figures)).collect();
    assert_eq!((each, in_time(&flow.figures)), (vec![1.0, 0.0], 0.5));
}

#[test]
fn background_traffic_has_its_mean_rate() {
    let sent = |app: &str| {
        let figures =
            over_one_link(60, "rate: 100 Mbit/s", &format!("over: udp, app: {{ cbr: {app} }}")).figures;
        assert_eq!(figures.sent_units, figures.delivered_units);
        figures.sent_units as f64
    };
    // 625 a second; three deviations of a Poisson count.
    let poisson = sent("{ rate: 5 Mbit/s, size: 1000 B, arrivals: poisson }");
    assert!((poisson - 37_500.0).abs() < 3.0 * 37_500f64.sqrt(), "{poisson}");
    // 750 a second for a third of the time.
    let constant =
        sent("{ rate: 6 Mbit/s, size: 1000 B, on-off: { on: 500ms, off: 1s, durations: constant } }");
    assert_eq!(constant, 15_000.0);
    // 1,500 periods: their sum deviates by a 40th, that of the pauses too.
    let exponential = sent("{ rate: 6 Mbit/s, size: 1000 B, on-off: { on: 10ms, off: 30ms } }");
    near(exponential, 11_250.0, 0.1);
}

#[test]
fn what_a_flow_draws_is_its_own() {
    let units = |others: &str, seed: u32| {
        let text = format!(
            "
seed: {seed}
duration: 10s
topology: {{ chain: {{ hops: 1, link: {{ rate: 1 Gbit/s }} }} }}
flows:
  {others}
  - {{ name: noise, from: n0, to: n1, over: udp, app: {{ cbr: {{ rate: 1 Mbit/s, arrivals: poisson, on-off: {{ on: 1s, off: 1s }} }} }} }}
"
        );
        crate::common::document(&text).runs[0]
            .flows
            .iter()
            .find(|flow| flow.name == "noise")
            .unwrap()
            .figures
            .sent_units
    };
    let other =
        "- { name: x, from: n0, to: n1, over: udp, app: { cbr: { rate: 1 Mbit/s, arrivals: poisson } } }";
    assert_eq!(units("", 1), units(other, 1));
    assert_ne!(units("", 1), units("", 2));
}

#[test]
fn a_short_flow_takes_its_handshake_and_the_rounds_of_slow_start() {
    // Windows of 10, 20 and 40 segments of 1,448 B; a round trip is 100 ms.
    for (size, rounds) in [("14 kB", 1.0), ("40 kB", 2.0), ("100 kB", 3.0)] {
        for over in ["tcp-cubic", "tcp-reno"] {
            let app = format!("app: {{ short-flows: {{ size: {size}, arrivals: {{ constant: 1 /s }} }} }}");
            let figures =
                over_one_link(20, "rate: 1 Gbit/s, delay: 50ms", &format!("over: {over}, {app}")).figures;
            assert_eq!((figures.sent_units, figures.delivered_units), (20, 20));
            let completion = figures.latency_ms.unwrap();
            // A round trip for the handshake, one for each round but the last, and half of one for that.
            near(completion.mean, 100.0 * (1.0 + rounds - 0.5), 0.02);
            near(completion.max, completion.p50, 0.01);
        }
    }
}

/// Ten thousand flows, more than any transport keeps at a time, over gateways too.
#[test]
fn streams_that_are_over_make_room_for_others() {
    for (over, roles) in [
        ("tcp-cubic", ""),
        ("tcp-bbr", ""),
        ("kcp", ""),
        ("kcp-fec", ""),
        ("quic", ""),
        ("hop-arq", ""),
        ("brtp", ""),
        ("bats-proxy", ""),
        ("[tcp-cubic, tunnel]", ""),
        ("[tcp-cubic, bats-proxy]", ""),
        ("[tcp-cubic, bats-proxy]", "roles: { proxy: [n1, n2] }"),
    ] {
        let flow = flow(&format!(
            "
duration: 10s
topology: {{ chain: {{ hops: 3, link: {{ rate: 100 Mbit/s, delay: 1ms }} }} }}
{roles}
flows:
  - {{ from: n0, to: n3, over: {over}, app: {{ short-flows: {{ size: 500 B, arrivals: {{ constant: 1 kHz }} }} }} }}
"
        ));
        let counters = ["flows_failed", "flows_skipped", "damaged_units"].map(|name| flow.counters[name]);
        assert_eq!(
            (flow.figures.sent_units, flow.figures.delivered_units),
            (10_000, 10_000),
            "{over} {roles}"
        );
        assert_eq!(counters, [0; 3], "{over} {roles}");
    }
}

#[test]
fn flows_beyond_what_may_be_open_wait_and_are_counted() {
    for over in ["tcp-cubic", "kcp", "brtp"] {
        let app = "app: { short-flows: { size: 2 kB, arrivals: { constant: 4 kHz }, stop: 1s } }";
        let flow = over_one_link(10, "rate: 1 Gbit/s, delay: 100ms", &format!("over: {over}, {app}"));
        assert_eq!((flow.figures.sent_units, flow.figures.delivered_units), (4000, 4000), "{over}");
        assert!(flow.counters["flows_waited"] > 2000, "{over}");
        assert_eq!((flow.counters["flows_failed"], flow.counters["flows_skipped"]), (0, 0), "{over}");
        // What it waits for its turn is part of a flow's time.
        assert!(flow.figures.latency_ms.unwrap().max > 1000.0, "{over}");
    }
}

#[test]
fn flows_under_way_at_the_end_may_finish_and_sizes_follow_their_law() {
    for size in ["{ exponential: 50 kB }", "{ pareto: 50 kB }", "{ pareto: { mean: 50 kB, shape: 2.5 } }"] {
        let app = format!("app: {{ short-flows: {{ size: {size}, arrivals: 20 /s }} }}");
        let figures =
            over_one_link(100, "rate: 100 Mbit/s, delay: 5ms", &format!("over: tcp-cubic, {app}")).figures;
        assert_eq!(figures.sent_units, figures.delivered_units, "{size}");
        // Three deviations of a Poisson count.
        assert!((figures.sent_units as f64 - 2000.0).abs() < 135.0, "{}", figures.sent_units);
    }
}

/// A bounded flow over one hop of 1 Mbit/s for ten seconds.
fn bounded(over: &str, app: &str) -> Flow {
    flow(&format!(
        "
title: A transfer
duration: 10s
topology: {{ chain: {{ hops: 1, link: {{ rate: 1 Mbit/s, delay: 5ms }} }} }}
flows:
  - {{ name: flow, from: n0, to: n1, over: {over}, app: {app} }}
"
    ))
}

#[test]
fn the_reliability_of_a_window_does_not_depend_on_how_long_the_run_goes_on_after_it() {
    for over in ["tcp-cubic", "brtp", "udp"] {
        let figures = |from: &str, duration: &str| {
            let app = if over == "udp" { "bytes: 1 MB, rate: 900 kbit/s" } else { "bytes: 1 MB" };
            let figures = flow(&format!(
                "
title: A window within a transfer
duration: {duration}
measure: {{ from: {from}, to: 4s }}
topology: {{ chain: {{ hops: 1, link: {{ rate: 1 Mbit/s, delay: 5ms }} }} }}
flows:
  - {{ name: flow, from: n0, to: n1, over: {over}, app: {{ bulk: {{ {app} }} }} }}
"
            ))
            .figures;
            (figures.sent_units, figures.delivered_units, figures.reliability)
        };
        // Not all is sent by 5 s, and all of it by 20 s.
        for from in ["0s", "2s"] {
            let units = figures(from, "4s");
            assert!(units.2.unwrap() < 0.7, "{over}: {units:?}");
            assert_eq!((figures(from, "6s"), figures(from, "20s")), (units, units), "{over} from {from}");
        }
    }
}

#[test]
fn a_transfer_that_does_not_end_is_not_reliable() {
    // Some 1.2 MB of 50 MB; what a stream transmits in the minute after the end is as missing as what it never does.
    for (over, app) in [
        ("tcp-cubic", "{ bulk: { bytes: 50 MB } }"),
        ("brtp", "{ bulk: { bytes: 50 MB } }"),
        ("udp", "{ bulk: { bytes: 50 MB, rate: 900 kbit/s } }"),
        ("udp", "{ bulk: { bytes: 50 MB, rate: 4 Mbit/s, stop: 2s } }"),
    ] {
        let figures = bounded(over, app).figures;
        let reliability = figures.reliability.unwrap();
        assert!(
            figures.completed_s.is_none() && (0.015..0.045).contains(&reliability),
            "{over}: {figures:?}"
        );
        let units =
            if over == "udp" { 50_000_000u64.div_ceil(1472) } else { 50_000_000u64.div_ceil(64 * 1024) };
        assert_eq!(figures.sent_units, units, "{over}: {figures:?}");
    }
    for over in ["tcp-cubic", "brtp"] {
        let figures = bounded(over, "{ bulk: { bytes: 500 kB } }").figures;
        assert_eq!((figures.reliability, figures.sent_units), (Some(1.0), 8), "{over}");
        assert!(figures.completed_s.is_some());
    }
}
