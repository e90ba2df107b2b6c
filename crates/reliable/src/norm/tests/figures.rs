//! The figures that the protocol is to reach.

use std::sync::Arc;

use hopcast_core::{Duration, Item, Rate};

use super::net::{Link, Net, contents};
use crate::norm::{RateControl, ReceiverConfig, SenderConfig};

/// Seconds and bytes until the last of `receivers` has a file of 800 KiB, at 1024 kbit/s and `loss`.
fn baseline(seed: u64, receivers: usize, loss: f64, config: SenderConfig) -> (f64, u64, Net) {
    let rate = Rate::from_bits_per_sec(1_024_000);
    let sender =
        SenderConfig { rate: RateControl::Fixed(rate), group_size: Some(receivers as u64), ..config };
    let link = |loss| Link { rate, delay: Duration::from_micros(100), loss, ..Link::default() };
    let mut links = vec![link(loss); receivers + 1];
    links[0].loss = 0.0;
    let mut net = Net::star(seed, sender, &ReceiverConfig::default(), &links);
    let file = contents(819_200, seed);
    let now = net.now;
    assert!(net.members[0].session.send(now, Arc::from(&file[..]), None, true).is_some());
    let complete = |net: &Net| net.members[1..].iter().all(|member| !member.up.is_empty());
    assert!(net.run(Duration::from_secs(120), complete), "seed {seed}");
    for member in &net.members[1..] {
        let [(_, Item::Message(found))] = &member.up[..] else { panic!("{} items", member.up.len()) };
        assert!(found.payload[..] == file[..], "seed {seed}");
    }
    (net.now.as_secs_f64(), net.bytes(), net)
}

/// Means of ten seeds: seconds, megabytes, and requests of all receivers.
fn means(receivers: usize, loss: f64, source: u16) -> (f64, f64, f64) {
    let seeds = 10;
    let (mut time, mut bytes, mut nacks) = (0.0, 0.0, 0.0);
    for seed in 0..seeds {
        let config = SenderConfig { source, parity: 255 - source, ..SenderConfig::default() };
        let (seconds, sent, net) = baseline(seed, receivers, loss, config);
        time += seconds / seeds as f64;
        bytes += sent as f64 / 1e6 / seeds as f64;
        let asked: u64 = (1..=receivers).map(|member| net.counter(member, "nacks_sent")).sum();
        nacks += asked as f64 / seeds as f64;
    }
    println!("{receivers} receivers, {loss}, blocks {source}: {time:.2} s, {bytes:.3} MB, {nacks:.1} NACKs");
    (time, bytes, nacks)
}

#[test]
fn eight_hundred_kilobytes_come_within_a_few_percent_of_what_any_code_of_such_blocks_takes() {
    // 586 packets. Bounds with blocks of 64, at 1474 bytes a packet: one receiver 732 packets, three 769, as by the
    // negative binomial distribution of the packets that the slowest receiver of each block needs.
    let packet = 1474.0 / 1e6;
    for (receivers, loss, packets) in [(3, 0.0, 586.0), (1, 0.2, 732.0), (3, 0.2, 769.0)] {
        let (time, bytes, _) = means(receivers, loss, 64);
        let bound = packets * packet;
        assert!(bytes < 1.04 * bound, "{bytes} MB, the bound is {bound}");
        assert!(time < 1.04 * bound * 8.0 / 1.024, "{time} s, the bound is {}", bound * 8.0 / 1.024);
    }
    // A larger block goes below that bound.
    let (time, bytes, _) = means(3, 0.2, 128);
    assert!(time < 8.9 && bytes < 1.13, "{time} s, {bytes} MB");
    let (time, ..) = means(3, 0.5, 64);
    assert!(time < 15.5, "{time} s");
}
