//! Requests of large groups: few of those who lack something ask, and no more of them the larger the group is.

use std::sync::Arc;

use hopcast_core::{Buffer, Datagram, Duration, Item, Rate};

use super::net::{Link, Net, address, contents, group as multicast};
use super::transfers::{messages, objects, of_messages};
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

/// Source symbols of a block, and bytes of a symbol: short ones, since each receiver holds all of them.
const SOURCE: usize = 64;
const SEGMENT: usize = 64;
/// Bytes of its length before a message.
const LENGTH: usize = 2;

impl Group {
    /// The group and its sender, at 1 % loss.
    fn net(self, seed: u64) -> Net {
        let config = SenderConfig {
            segment: SEGMENT as u16,
            source: SOURCE as u16,
            rate: RateControl::Fixed(Rate::from_mbit(2)),
            group_size: self.told.then_some(self.receivers as u64),
            unicast_feedback: self.unicast,
            ..SenderConfig::default()
        };
        let receiver = ReceiverConfig { unicast_feedback: self.unicast, ..of_messages() };
        let mut links = vec![Link { loss: 0.01, ..Link::default() }; self.receivers + 1];
        links[0].loss = 0.0;
        Net::star(seed, config, &receiver, &links)
    }

    /// Whether each receiver has all. Who has it needs no second look.
    fn all(self, has: impl Fn(&Net, usize) -> bool) -> impl FnMut(&Net) -> bool {
        let mut first = 1;
        move |net| {
            first = (first..=self.receivers).find(|&member| !has(net, member)).unwrap_or(self.receivers + 1);
            first > self.receivers
        }
    }
}

/// Requests for a block that come to the sender of a file, for each of its rounds of repairs.
fn requests(group: Group, blocks: usize, seed: u64) -> f64 {
    let file = contents(blocks * SOURCE * SEGMENT, seed);
    let mut net = group.net(seed);
    let now = net.now;
    net.members[0].session.send(now, Arc::from(&file[..]), None, true);
    let all = group.all(|net, member| !net.members[member].up.is_empty());
    assert!(net.run(Duration::from_secs(60), all), "{group:?}");
    assert!((1..=group.receivers).all(|member| objects(&net, member) == [file.clone()]), "{group:?}");
    in_a_round(&net)
}

/// The same of a stream of messages, each a symbol, that goes on some time: its last block is unfinished.
fn requests_of_stream(group: Group, symbols: usize, seed: u64) -> f64 {
    let mut net = group.net(seed);
    let sent: Vec<_> = (0..symbols).map(|number| contents(SEGMENT - LENGTH, number as u64)).collect();
    for message in &sent {
        net.give(0, Item::Datagram(Datagram::new(address(0), multicast(), Buffer::copy_from(message))));
    }
    let all = group.all(|net, member| net.members[member].up.len() >= symbols);
    assert!(net.run(Duration::from_secs(60), all), "{group:?}");
    for member in 1..=group.receivers {
        assert!(messages(&net, member).into_iter().map(|(_, message)| message).eq(sent.iter().cloned()));
    }
    in_a_round(&net)
}

fn in_a_round(net: &Net) -> f64 {
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
fn few_ask(group: Group, requests: f64) {
    let most = (group.receivers as f64).ln() + 1.0;
    assert!(requests <= most.min(10.0), "{group:?}: {requests}");
}

#[test]
fn at_most_ten_requests_come_for_each_block_and_round_of_a_thousand() {
    for (receivers, blocks) in [(1, 100), (10, 100), (100, 20), (1000, 20)] {
        all_ways(receivers).for_each(|group| few_ask(group, requests(group, blocks, 1)));
    }
}

#[test]
fn at_most_ten_requests_come_for_each_block_and_round_of_ten_thousand() {
    // Of a short file the size has to show at once; of a long one, many blocks are sent while those before are being
    // asked for.
    for (told, blocks) in [(true, 4), (false, 10), (false, 4)] {
        let group = Group { receivers: 10_000, told, unicast: true };
        few_ask(group, requests(group, blocks, 1));
    }
}

#[test]
fn at_most_ten_requests_come_for_each_round_of_the_unfinished_last_block_of_a_stream() {
    // It has no parity, so that no symbol stands in for another, and each is lost to ten of a thousand: where a round
    // repeats one of them, 16 to 23 ask in each.
    for (unicast, symbols) in [(true, SOURCE - 1), (false, SOURCE - 1), (true, 4 * SOURCE - 9)] {
        let group = Group { receivers: 1000, told: false, unicast };
        few_ask(group, requests_of_stream(group, symbols, 1));
    }
}
