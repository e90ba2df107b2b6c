//! The throughput of one BATS relay: goodput for each second of its own time, over hops that lose 10 %.
//!
//! A source, a relay and a sink run in virtual time over links of 10 Gbit/s. Only what the relay does is timed: what it
//! is handed, what it is asked for, and when it wants to be woken.

#![allow(clippy::disallowed_methods)] // this program measures the wall clock

use std::net::SocketAddr;
use std::time::Instant as Clock;

use hopcast_coded::bats::{BatchSize, Config, Node};
use hopcast_core::{Buffer, Datagram, Duration, Fraction, Instant, Item, Machine, Port, Rate, Seed};
use hopcast_link::{Config as Cable, Direction, Event, Link, Loss, PointToPoint};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;
const UNIT: usize = 1400;
/// Maximum time of anything that the relay is asked for, in seconds; if it does, somebody else has had the processor
/// meanwhile.
const INTERRUPTED: f64 = 200e-6;
/// Load offered to the source, in bytes a nanosecond: 10 Gbit/s.
const OFFERED: f64 = 1.25;

fn main() {
    println!(
        "{:<24} {:>10} {:>12} {:>14} {:>16}",
        "one relay, 1,400 B", "recoded", "ns / packet", "Gbit/s a core", "of the target"
    );
    for batch in BatchSize::ALL {
        for percent in [0.0, 10.0] {
            let (goodput, packets, recoded, took) = run(batch, percent);
            let gbit = goodput as f64 * 8.0 / took / 1e9;
            println!(
                "{:<24} {:>9.0}% {:>12.0} {:>14.2} {:>15.1}x",
                format!("M = {}, {percent} % lost", batch.symbols()),
                100.0 * recoded as f64 / packets as f64,
                took * 1e9 / packets as f64,
                gbit,
                gbit / 2.0,
            );
        }
    }
}

/// Bytes delivered, packets that the relay sent and how many of them it had combined, and the relay's seconds.
fn run(batch: BatchSize, percent: f64) -> (u64, u64, u64, f64) {
    let seed = Seed::new(1, 0);
    let address = |node: u8| SocketAddr::from(([10, 0, 0, node], 7000));
    let config = Config { batch, ..Config::default() };
    let ends = (address(100), address(101));
    let random = |node| seed.stream(&["node"], node);
    let mut nodes = [
        Node::edge(config.clone(), address(0), ends, &[address(1)], random(0)),
        Node::relay(config.clone(), address(1), &[address(0)], &[address(2)], random(1)),
        Node::edge(config, address(2), ends, &[address(1)], random(2)),
    ];
    let loss = Fraction::from_percent(percent).map_or(Loss::None, Loss::Independent);
    let direction = Direction {
        rate: Some(Rate::from_mbit(10_000)),
        delay: Duration::from_micros(50),
        loss,
        ..Direction::default()
    };
    let cable = Cable { forward: direction.clone(), backward: direction, ..Cable::default() };
    let mut links = [0, 1].map(|link| {
        PointToPoint::new(cable.clone(), [0, 1].map(|way| seed.stream(&["link"], 2 * link + way)))
    });
    let (mut now, mut took, mut delivered) = (Instant::ZERO, 0.0, 0);
    let (warm, end) =
        (Instant::ZERO + Duration::from_millis(200), Instant::ZERO + Duration::from_millis(700));
    let mut before = (0, 0);
    let unit = Buffer::copy_from(&[7; UNIT]);
    let mut offered = 0;
    nodes[0].handle(now, Port::Above(0), Item::Datagram(Datagram::new(ends.0, ends.1, unit.clone())));
    while now < end {
        if now < warm {
            (took, delivered, before) = (0.0, 0, sent(&nodes[1]));
        }
        // The source always has something; what is too much, it refuses.
        while offered < (now.as_nanos() as f64 * OFFERED) as u64 {
            let datagram = Datagram::new(ends.0, ends.1, unit.clone());
            nodes[0].handle(now, Port::Above(0), Item::Datagram(datagram));
            offered += UNIT as u64;
        }
        let mut pass = true;
        while core::mem::take(&mut pass) {
            for (node, machine) in nodes.iter_mut().enumerate() {
                while let Some((port, item)) = timed(node, &mut took, || machine.poll(now)) {
                    let Item::Datagram(Datagram { remote, mut payload, .. }) = item else { continue };
                    if port == Port::Above(0) {
                        delivered += payload.len() as u64;
                        continue;
                    }
                    payload.prepend(HEADERS);
                    let to_right = remote == address(node as u8 + 1);
                    let link = if to_right { node } else { node - 1 };
                    links[link].offer(now, usize::from(!to_right), payload);
                }
            }
            for (link, cable) in links.iter_mut().enumerate() {
                cable.wake(now);
                while let Some(event) = cable.poll(now) {
                    let Event::Delivered { from, mut frame, .. } = event else { continue };
                    frame.advance(HEADERS);
                    let (sender, to) = (link + from, link + 1 - from);
                    let (local, remote) = (address(to as u8), address(sender as u8));
                    let item = Item::Datagram(Datagram::new(local, remote, frame));
                    timed(to, &mut took, || nodes[to].handle(now, Port::Below(0), item));
                    pass = true;
                }
            }
        }
        let wakes = [0, 1, 2].map(|node| timed(node, &mut took, || nodes[node].deadline()));
        let next = wakes.into_iter().chain(links.iter().map(Link::deadline)).flatten().min();
        let Some(at) = next else { break };
        now = now.max(at);
        for (node, wake) in wakes.into_iter().enumerate() {
            if wake.is_some_and(|at| at <= now) {
                timed(node, &mut took, || nodes[node].wake(now));
            }
        }
    }
    let after = sent(&nodes[1]);
    (delivered, after.0 - before.0, after.1 - before.1, took)
}

/// Does something, and adds the time if it is the relay that does it.
fn timed<T>(node: usize, took: &mut f64, act: impl FnOnce() -> T) -> T {
    if node != 1 {
        return act();
    }
    let began = Clock::now();
    let done = act();
    let elapsed = began.elapsed().as_secs_f64();
    if elapsed < INTERRUPTED {
        *took += elapsed;
    }
    done
}

/// Packets that a node has sent, and how many of them it had combined.
fn sent(node: &Node) -> (u64, u64) {
    let (mut packets, mut recoded) = (0, 0);
    node.counters(&mut |name, figure| match name {
        "packets_recoded" => recoded = figure,
        "packets_first" | "packets_repair" | "packets_ahead" | "packets_probe" => packets += figure,
        _ => {}
    });
    (packets, recoded)
}
