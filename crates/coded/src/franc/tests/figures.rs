//! Throughput and delay, against the paper's and against what is possible.

use hopcast_core::{Duration, Instant};
use hopcast_peers::tcp::Congestion;

use super::net::*;
use crate::franc::Config;

const SECONDS: u64 = 20;
const WARM_UP: u64 = 2;
const SIZE: usize = 1_500;

/// How a segment is crossed.
#[derive(Clone, Debug)]
enum Way {
    /// Frames as they are.
    Plain,
    Franc(Config),
}

struct Figures {
    mbps: f64,
    delay_ms: f64,
    per_block: f64,
    timeouts: f64,
    redundant: f64,
    text: String,
}

/// Stations: 0 the source, 1 the destination, 2 the helper, if there is one.
fn net(way: &Way, e: [f64; 3], seed: u64) -> Net {
    let [e1, e2, e3] = e;
    let stations = if matches!(way, Way::Franc(config) if config.helper) { 3 } else { 2 };
    let mut losses = vec![(0, 1, e3)];
    if stations == 3 {
        losses.extend([(0, 2, e1), (2, 1, e2)]);
    }
    Net::new(stations, symmetric(&losses), csma(), seed)
}

/// Datagrams at 10 Mbit/s, as much as the medium takes.
fn udp(way: &Way, e: [f64; 3], seed: u64) -> Figures {
    let mut net = net(way, e, seed);
    let meter = Meter::shared();
    let stop = millis(1_000 * (SECONDS + WARM_UP));
    let size = match way {
        Way::Franc(config) => usize::from(config.mtu),
        Way::Plain => SIZE,
    };
    let source = Source::boxed(10_000_000, size, stop, &meter);
    let sink = Sink::boxed(&meter);
    let watched = match way {
        Way::Plain => {
            net.add(0, vec![Bare::boxed(0, 1), source]);
            net.add(1, vec![Bare::boxed(1, 0), sink]);
            Vec::new()
        }
        Way::Franc(config) => {
            let (sender, at_sender) = watched(edge(config, 0, 1, seed));
            let (receiver, at_receiver) = watched(edge(config, 1, 0, seed));
            net.add(0, vec![sender, source]);
            net.add(1, vec![receiver, sink]);
            let mut all = vec![at_sender, at_receiver];
            if config.helper {
                let (helper, at_helper) = watched(helper(config, 2, [0, 1], seed));
                net.add(2, vec![helper]);
                all.push(at_helper);
            }
            all
        }
    };
    let begin = millis(1_000 * WARM_UP);
    net.run(begin);
    let before = meter.borrow().bytes;
    net.run(stop);
    let meter = meter.borrow();
    assert_eq!((meter.wrong, meter.out_of_order), (0, 0));
    // Of UDP payload.
    let payload = (size - 28) as f64 / size as f64;
    let mbps = (meter.bytes - before) as f64 * 8.0 * payload / SECONDS as f64 / 1e6;
    let mut figures = Figures {
        mbps,
        delay_ms: meter.mean_delay_ms(begin),
        per_block: 0.0,
        timeouts: 0.0,
        redundant: 0.0,
        text: String::new(),
    };
    if let [sender, receiver, rest @ ..] = watched.as_slice() {
        let (s, r) = (counters(sender), counters(receiver));
        let blocks = s["blocks_acknowledged"].max(1) as f64;
        figures.per_block = s["block_transmissions"] as f64 / blocks;
        figures.timeouts = s["timeouts"] as f64 / blocks;
        figures.redundant = r["redundant_received"] as f64 / (r["redundant_received"] + r["innovative_received"]).max(1) as f64;
        figures.text = format!(
            "symbols {} again {} coded {} acks {} redundant {:.1} % timeouts {} dropped {}",
            s["symbols_sent"], s["symbols_sent_again"], s["coded_sent"], r["acks_sent"], 100.0 * figures.redundant, s["timeouts"], s["packets_dropped_at_input"]
        );
        for helper in rest {
            let h = counters(helper);
            figures.text += &format!(" relayed {} heard {}", h["relayed"], h["overheard"]);
        }
    }
    figures
}

/// One TCP connection.
fn tcp(way: &Way, e: [f64; 3], congestion: Congestion, seed: u64) -> Figures {
    let mut net = net(way, e, seed);
    let meter = Meter::shared();
    let mtu = match way {
        Way::Franc(config) => u32::from(config.mtu),
        Way::Plain => 1_500,
    };
    let lower = |net: &mut Net| -> Vec<Box<dyn hopcast_core::Machine>> {
        match way {
            Way::Plain => vec![Bare::boxed(0, 1), Bare::boxed(1, 0)],
            Way::Franc(config) => {
                if config.helper {
                    net.add(2, vec![helper(config, 2, [0, 1], seed)]);
                }
                vec![edge(config, 0, 1, seed), edge(config, 1, 0, seed)]
            }
        }
    };
    let mut lower = lower(&mut net).into_iter();
    let (a, b) = (lower.next().unwrap(), lower.next().unwrap());
    net.add(0, vec![a, tcp_end(0, false, mtu, congestion), BulkSource::boxed(0, 1, &meter)]);
    net.add(1, vec![b, tcp_end(1, true, mtu, congestion), BulkSink::boxed(&meter)]);
    let begin = millis(1_000 * WARM_UP);
    net.run(begin);
    let before = meter.borrow().bytes;
    net.run(begin + Duration::from_secs(SECONDS));
    let meter = meter.borrow();
    assert_eq!(meter.wrong, 0);
    Figures {
        mbps: (meter.bytes - before) as f64 * 8.0 / SECONDS as f64 / 1e6,
        delay_ms: meter.mean_delay_ms(begin),
        per_block: 0.0,
        timeouts: 0.0,
        redundant: 0.0,
        text: String::new(),
    }
}

/// e3 in steps of 10 %, and half of it on the way by the helper.
fn steps() -> impl Iterator<Item = [f64; 3]> {
    (0..10).map(|tenths| {
        let e3 = f64::from(tenths) / 10.0;
        [e3 / 2.0, e3 / 2.0, e3]
    })
}

fn ways() -> Vec<(&'static str, Way)> {
    use crate::franc::Field::Binary;
    vec![
        ("plain", Way::Plain),
        ("paper", Way::Franc(Config::paper())),
        ("paper + helper", Way::Franc(Config::paper().with_helper())),
        ("ours", Way::Franc(Config::default())),
        ("ours + helper", Way::Franc(Config::default().with_helper())),
        ("ours, GF(2)", Way::Franc(Config::default().over(Binary))),
        ("ours, GF(2) + helper", Way::Franc(Config::default().over(Binary).with_helper())),
    ]
}

#[test]
#[ignore = "prints the tables of figures 9 to 15"]
fn plain_tcp() {
    let figures = tcp(&Way::Plain, [0.0; 3], Congestion::Cubic, 1);
    println!("plain TCP: {:.3} Mbit/s, {:.1} ms", figures.mbps, figures.delay_ms);
}

#[test]
#[ignore = "prints the tables of figures 9 to 15"]
fn tables() {
    let plain: Vec<f64> = steps().map(|e| udp(&Way::Plain, e, 1).mbps).collect();
    for (name, way) in ways() {
        let mut sum = 0.0;
        for (e, plain) in steps().zip(&plain) {
            let figures = udp(&way, e, 1);
            sum += figures.mbps;
            println!(
                "{name}: e3 {:.1}: {:.3} Mbit/s of {plain:.3}, {:.0} ms, {:.1} per block, {:.2} timeouts; {}",
                e[2], figures.mbps, figures.delay_ms, figures.per_block, figures.timeouts, figures.text
            );
        }
        println!("{name}: sum {sum:.2} of {:.2}: {:.4}", plain.iter().sum::<f64>(), sum / plain.iter().sum::<f64>());
    }
    for (name, way) in ways() {
        for e3 in [0.0, 0.05, 0.1, 0.15, 0.2] {
            let figures = tcp(&way, [e3 / 2.0, e3 / 2.0, e3], Congestion::Cubic, 1);
            println!("TCP {name}: e3 {e3:.2}: {:.3} Mbit/s, {:.1} ms", figures.mbps, figures.delay_ms);
        }
    }
    let _ = Instant::ZERO;
}
