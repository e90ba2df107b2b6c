//! Requests of large groups.

use std::sync::Arc;

use hopcast_core::{Duration, Instant, Rate};

use super::net::{Link, Net, contents};
use super::transfers::objects;
use crate::norm::{RateControl, ReceiverConfig, SenderConfig};

/// NACKs that arrive at the sender for each round of repairs of a block, of groups at 1 % loss, and the seconds it
/// took.
fn nacks(receivers: usize, told: bool, seed: u64) -> (f64, f64) {
    let config = SenderConfig {
        rate: RateControl::Fixed(Rate::from_mbit(2)),
        group_size: told.then_some(receivers as u64),
        ..SenderConfig::default()
    };
    let receiver = ReceiverConfig::default();
    let mut links = vec![Link { loss: 0.01, ..Link::default() }; receivers + 1];
    links[0].loss = 0.0;
    let mut net = Net::star(seed, config, &receiver, &links);
    let file = contents(819_200, seed);
    let now = net.now;
    net.members[0].session.send(now, Arc::from(&file[..]), None, true);
    let all = |net: &Net| (1..=receivers).all(|member| !net.members[member].up.is_empty());
    assert!(net.run(Duration::from_secs(60), all));
    assert!((1..=receivers).all(|member| objects(&net, member) == [file.clone()]));
    let rounds = net.counter(0, "repair_rounds").max(1);
    (net.counter(0, "nacks_received") as f64 / rounds as f64, net.now.since(Instant::ZERO).as_secs_f64())
}

#[test]
fn at_most_ten_nacks_come_for_each_round_whatever_the_size_of_the_group() {
    for receivers in [1, 10, 100, 1000] {
        for told in [true, false] {
            let (nacks, seconds) = nacks(receivers, told, 1);
            println!("{receivers} receivers (told: {told}): {nacks:.1} NACKs a round, {seconds:.2} s");
            assert!(nacks <= 10.0, "{receivers} receivers (told: {told}): {nacks} NACKs a round");
        }
    }
}
