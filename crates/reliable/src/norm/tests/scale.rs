//! Requests of large groups: few of those who lack something ask, and no more of them the larger the group is.

use std::sync::Arc;

use hopcast_core::{Duration, Rate};

use super::net::{Link, Net, contents};
use super::transfers::objects;
use crate::norm::{RateControl, ReceiverConfig, SenderConfig};

/// How the members of a group are told of each other.
#[derive(Clone, Copy, Debug)]
struct Group {
    receivers: usize,
    /// Whether the sender is told how many there are.
    told: bool,
    /// Whether requests go to the sender only, which tells the others of them.
    unicast: bool,
}

/// Requests for a block that come to the sender, for each of its rounds of repairs, of a group at 1 % loss. Its symbols
/// are short, since each receiver holds all of them.
fn requests(group: Group, blocks: usize, seed: u64) -> f64 {
    let Group { receivers, told, unicast } = group;
    let config = SenderConfig {
        segment: 64,
        rate: RateControl::Fixed(Rate::from_mbit(2)),
        group_size: told.then_some(receivers as u64),
        unicast_feedback: unicast,
        ..SenderConfig::default()
    };
    let receiver = ReceiverConfig { unicast_feedback: unicast, ..ReceiverConfig::default() };
    let mut links = vec![Link { loss: 0.01, ..Link::default() }; receivers + 1];
    links[0].loss = 0.0;
    let file = contents(blocks * usize::from(config.source) * usize::from(config.segment), seed);
    let mut net = Net::star(seed, config, &receiver, &links);
    let now = net.now;
    net.members[0].session.send(now, Arc::from(&file[..]), None, true);
    let mut first = 1;
    let all = |net: &Net| {
        // Who has it needs no second look.
        first =
            (first..=receivers).find(|&member| net.members[member].up.is_empty()).unwrap_or(receivers + 1);
        first > receivers
    };
    assert!(net.run(Duration::from_secs(60), all), "{group:?}");
    assert!((1..=receivers).all(|member| objects(&net, member) == [file.clone()]), "{group:?}");
    net.counter(0, "blocks_requested") as f64 / net.counter(0, "repair_rounds").max(1) as f64
}

/// All ways of telling, for groups of this number of receivers.
fn all_ways(receivers: usize) -> impl Iterator<Item = Group> {
    [(true, true), (true, false), (false, true), (false, false)]
        .into_iter()
        .map(move |(told, unicast)| Group { receivers, told, unicast })
}

/// Fails where more than ten requests come for each block and round, or more than the logarithm of the group and one.
#[track_caller]
fn few_ask(group: Group, blocks: usize) {
    let requests = requests(group, blocks, 1);
    let most = (group.receivers as f64).ln() + 1.0;
    assert!(requests <= most.min(10.0), "{group:?}: {requests}");
}

#[test]
fn at_most_ten_requests_come_for_each_block_and_round_of_a_thousand() {
    for (receivers, blocks) in [(1, 100), (10, 100), (100, 20), (1000, 20)] {
        all_ways(receivers).for_each(|group| few_ask(group, blocks));
    }
}

#[test]
fn at_most_ten_requests_come_for_each_block_and_round_of_ten_thousand() {
    // Of a short file the size has to show at once; of a long one, many blocks are sent while those before are being
    // asked for.
    for (told, blocks) in [(true, 20), (false, 20), (false, 4)] {
        few_ask(Group { receivers: 10_000, told, unicast: true }, blocks);
    }
}
