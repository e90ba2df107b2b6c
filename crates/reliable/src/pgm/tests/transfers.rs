//! Data whole at each receiver, whatever is lost, and what it costs.

use std::sync::Arc;

use hopcast_core::{Buffer, Duration, Item, Message, Rate};

use super::net::{Link, Net, contents};
use crate::Proactive;
use crate::pgm::{RateControl, ReceiverConfig, SourceConfig};

pub(super) fn source() -> SourceConfig {
    SourceConfig { rate: RateControl::Fixed(Rate::from_mbit(8)), ..SourceConfig::default() }
}

pub(super) fn without_parity() -> SourceConfig {
    SourceConfig { parity: 0, ..source() }
}

pub(super) fn lossy(loss: f64) -> Link {
    Link { loss, ..Link::default() }
}

pub(super) fn file(net: &mut Net, member: usize, bytes: &[u8]) {
    let unit = Message::new(0, Buffer::copy_from(bytes));
    net.give(member, Item::Message(Message { name: Some(Arc::from(&b"name"[..])), ..unit }));
}

/// Messages that a member was handed.
pub(super) fn files(net: &Net, member: usize) -> Vec<Vec<u8>> {
    let message = |item: &Item| match item {
        Item::Message(unit) => Some(unit.payload.to_vec()),
        _ => None,
    };
    net.members[member].up.iter().filter_map(|(_, item)| message(item)).collect()
}

/// Datagrams that a member was handed.
pub(super) fn datagrams(net: &Net, member: usize) -> Vec<Vec<u8>> {
    let datagram = |item: &Item| match item {
        Item::Datagram(datagram) => Some(datagram.payload.to_vec()),
        _ => None,
    };
    net.members[member].up.iter().filter_map(|(_, item)| datagram(item)).collect()
}

#[test]
fn a_file_is_whole_at_each_receiver_with_parity_and_without_at_any_loss() {
    let sent = contents(300_000, 1);
    for config in [source(), without_parity()] {
        for loss in [0.0, 0.05, 0.2, 0.5] {
            let links = [Link::default(), lossy(loss), lossy(loss), lossy(loss)];
            let mut net = Net::star(1, config.clone(), &ReceiverConfig::default(), &links);
            file(&mut net, 0, &sent);
            let all = |net: &Net| (1..=3).all(|member| files(net, member) == [sent.clone()]);
            let what = (config.parity, loss);
            assert!(net.run(Duration::from_secs(60), all), "{what:?}");
            assert_eq!(net.counter(1, "objects_given_up"), 0, "{what:?}");
        }
    }
}

#[test]
fn datagrams_keep_their_order_and_the_last_ones_are_not_forgotten() {
    for config in [source(), without_parity()] {
        let links = [Link::default(), lossy(0.2), lossy(0.2)];
        let mut net = Net::star(2, config, &ReceiverConfig::default(), &links);
        let sent: Vec<Vec<u8>> = (0..200).map(|number| contents(50 + 7 * number, number as u64)).collect();
        for bytes in &sent {
            net.datagram(0, bytes);
            let pause = net.now.since(hopcast_core::Instant::ZERO) + Duration::from_millis(3);
            net.run(pause, |_| false);
        }
        let all = |net: &Net| (1..=2).all(|member| datagrams(net, member) == sent);
        assert!(net.run(Duration::from_secs(20), all));
    }
}

/// Bytes on all links, in ethernet frames, and the time to the last receiver of 800 KiB at 1024 kbit/s.
fn baseline(seed: u64, config: SourceConfig) -> (f64, f64) {
    let link = |loss| Link {
        loss,
        rate: Rate::from_bits_per_sec(1_024_000),
        delay: Duration::from_micros(50),
        ..Link::default()
    };
    // A member loses whatever it is sent, requests too.
    let links = [link(0.2), link(0.2), link(0.2), link(0.2)];
    let rate = RateControl::Fixed(Rate::from_bits_per_sec(1_024_000));
    let config = SourceConfig { packet: 1432, rate, ..config };
    let receiver = ReceiverConfig { group_size: 3, ..ReceiverConfig::default() };
    let mut net = Net::star(seed, config, &receiver, &links);
    let sent = contents(819_200, 3);
    file(&mut net, 0, &sent);
    let all = |net: &Net| (1..=3).all(|member| !files(net, member).is_empty());
    assert!(net.run(Duration::from_secs(100), all));
    (net.bytes() as f64, net.now.as_secs_f64())
}

#[test]
fn parity_takes_little_more_than_the_bound_of_its_code_and_repetition_than_that_of_repetition() {
    let mean = |config: &SourceConfig| {
        let runs: Vec<_> = (0..5).map(|seed| baseline(seed, config.clone())).collect();
        (runs.iter().map(|run| run.0).sum::<f64>() / 5.0, runs.iter().map(|run| run.1).sum::<f64>() / 5.0)
    };
    let parity = mean(&source());
    let on_demand = mean(&SourceConfig { proactive: Proactive::Fixed(0), ..source() });
    let repeated = mean(&without_parity());
    // Blocks of 64 with an ideal code: 1.134 MB and 8.86 s. Repetition: 957 packets, 1.41 MB and 11.0 s.
    assert!(parity.0 < 1.1 * 1.134e6 && parity.1 < 1.1 * 8.86, "{parity:?}");
    assert!(on_demand.0 < 1.1 * 1.134e6 && on_demand.1 < 1.1 * 8.86, "{on_demand:?}");
    assert!(repeated.0 < 1.1 * 1.41e6 && repeated.1 < 1.1 * 11.0, "{repeated:?}");
}
