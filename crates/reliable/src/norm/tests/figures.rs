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
    let link = |loss| Link { rate, delay: Duration::from_micros(100), loss };
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

#[test]
fn eight_hundred_kilobytes_at_a_fifth_lost_to_three_receivers_come_near_the_bound() {
    for (receivers, loss, source) in
        [(3, 0.0, 64), (1, 0.2, 64), (3, 0.2, 64), (3, 0.2, 100), (3, 0.2, 128), (3, 0.05, 64), (3, 0.5, 64)]
    {
        let seeds = 20;
        let (mut time, mut bytes, mut nacks, mut worst) = (0.0, 0.0, 0.0, 0.0_f64);
        for seed in 0..seeds {
            let (seconds, sent, net) = baseline(
                seed,
                receivers,
                loss,
                SenderConfig { source, parity: 255 - source, ..SenderConfig::default() },
            );
            time += seconds / seeds as f64;
            bytes += sent as f64 / seeds as f64;
            worst = worst.max(seconds);
            nacks += (1..=receivers).map(|member| net.counter(member, "nacks_sent")).sum::<u64>() as f64
                / seeds as f64;
        }
        println!(
            "{receivers} receivers, {loss}, blocks {source}: {time:.2} s (worst {worst:.2}), {:.3} MB, {nacks:.1} NACKs",
            bytes / 1e6
        );
    }
}
