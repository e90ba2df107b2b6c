//! A sender and its group: its rate, what it holds, and what requests and feedback may cost.

use std::sync::Arc;

use hopcast_core::{Duration, Instant, Rate};

use super::net::{Link, Net, contents, nack, position};
use super::transfers::{bytes, grant, lossy, objects, sender, write};
use crate::norm::wire::{Repair, RepairFlags, RepairForm, Timestamp};
use crate::norm::{RateControl, ReceiverConfig, SenderConfig};

pub(super) fn tcp_friendly(max: Rate) -> SenderConfig {
    let rate = RateControl::Tcp {
        initial: Rate::from_bits_per_sec(256_000),
        min: Rate::from_bits_per_sec(12_000),
        max,
    };
    SenderConfig { rate, ..SenderConfig::default() }
}

fn send(net: &mut Net, file: &[u8]) -> bool {
    let now = net.now;
    net.members[0].session.send(now, Arc::from(file), None, true).is_some()
}

fn run_for(net: &mut Net, time: Duration) {
    let until = net.now.since(Instant::ZERO) + time;
    net.run(until, |_| false);
}

fn rate(net: &Net) -> f64 {
    net.members[0].session.rate().unwrap_or_default().bits_per_sec() as f64
}

#[test]
fn a_rate_that_the_application_does_not_use_stays() {
    // In slow start, since there is no more than the path carries; after a few losses; and after many.
    for (max, loss) in [(5, 0.0), (1_000, 0.0), (1_000, 0.001)] {
        let config = tcp_friendly(Rate::from_mbit(max));
        let link = Link { queue: Duration::from_millis(60), ..Link::default() };
        let mut net = Net::star(1, config, &ReceiverConfig::default(), &[link, Link { loss, ..link }]);
        assert!(send(&mut net, &contents(6_000_000, 1)));
        assert!(net.run(Duration::from_secs(60), |net| objects(net, 1).len() == 1));
        // The last answers of slow start name twice what arrived.
        assert!(send(&mut net, &[0]));
        run_for(&mut net, Duration::from_millis(500));
        let before = rate(&net);
        assert!(before > 1e6, "{before} bit/s");
        // An object of a packet ten times a second, an hundredth of what the path carries.
        for number in 0..200 {
            assert!(send(&mut net, &contents(1_000, number)));
            run_for(&mut net, Duration::from_millis(100));
            let now = rate(&net);
            assert!(
                (0.5..=2.2).contains(&(now / before)),
                "{now} in place of {before}, {max} Mbit/s, {loss}"
            );
        }
    }
}

#[test]
fn a_stream_keeps_its_rate_over_a_satellite() {
    // What is sent in the time in which repairs are asked for is far more than 4 MiB.
    let rate = Rate::from_mbit(40);
    let config = SenderConfig {
        rate: RateControl::Fixed(rate),
        grtt: Duration::from_millis(500),
        group_size: Some(1),
        ..sender()
    };
    let link = Link { rate: Rate::from_mbit(80), delay: Duration::from_millis(130), ..Link::default() };
    let links = [link, Link { loss: 0.01, ..link }];
    let mut net = Net::star(2, config, &ReceiverConfig::default(), &links);
    let data = contents(20_000_000, 2);
    write(&mut net, 0, &data);
    grant(&mut net, 1);
    assert!(net.run(Duration::from_secs(60), |net| bytes(net, 1).1));
    assert!(bytes(&net, 1).0 == data);
    let (seconds, ideal) = (net.now.as_secs_f64(), 20e6 * 8.0 / 40e6);
    assert!(seconds < 1.2 * ideal + 2.0, "{seconds} s, {ideal} at its rate");
    assert_eq!(net.counter(0, "repairs_given_up"), 0);
}

/// Answers to probes that arrive at the sender for each round of feedback of four GRTT.
fn answers(receivers: usize, seed: u64) -> f64 {
    let config = SenderConfig {
        unicast_feedback: true,
        group_size: Some(receivers as u64),
        grtt: Duration::from_millis(50),
        ..tcp_friendly(Rate::from_mbit(1_000))
    };
    let receiver = ReceiverConfig { unicast_feedback: true, ..ReceiverConfig::default() };
    let link = Link { delay: Duration::from_millis(10), ..Link::default() };
    let mut net = Net::star(seed, config, &receiver, &vec![link; receivers + 1]);
    assert!(send(&mut net, &contents(300_000, seed)));
    let all = |net: &Net| (1..=receivers).all(|member| objects(net, member).len() == 1);
    assert!(net.run(Duration::from_secs(60), all));
    let answers: u64 = (1..=receivers).map(|member| net.counter(member, "acks_sent")).sum();
    let rounds = net.now.as_secs_f64() / 0.2;
    println!("{receivers} receivers: {answers} answers in {rounds:.1} rounds");
    answers as f64 / rounds
}

#[test]
fn probes_are_answered_by_those_that_limit_the_rate_and_a_few_others() {
    // The five that the sender asks by name answer each probe.
    let (few, many) = (answers(10, 3), answers(500, 3));
    assert!(few < 50.0, "{few}");
    assert!(many < 2.0 * few + 20.0, "{many}, of ten receivers {few}");
}

#[test]
fn a_hopeless_receiver_does_not_stop_a_sender_of_objects() {
    let config = SenderConfig { objects: 4, group_size: Some(2), ..sender() };
    let mut net =
        Net::star(4, config, &ReceiverConfig::default(), &[Link::default(), lossy(0.0), lossy(0.97)]);
    let mut sent = 0;
    for step in 0..600 {
        while send(&mut net, &contents(20_000, sent)) {
            sent += 1;
        }
        net.run(Duration::from_millis(100 * step), |_| false);
    }
    let found = objects(&net, 1).len() as u64;
    // Four are held for 1.2 s each: 200 at most. 86 if the sender waits for as long as it is asked.
    assert!(found > 100 && found + 4 >= sent, "{found} of {sent}");
    assert!(net.counter(0, "repairs_given_up") > 0);
}

#[test]
fn a_request_for_all_objects_costs_no_more_than_one_for_many_blocks() {
    let mut net = Net::star(
        5,
        SenderConfig { objects: 1_000, ..sender() },
        &ReceiverConfig::default(),
        &[Link::default(), lossy(0.0)],
    );
    for number in 0..1_000 {
        assert!(send(&mut net, &contents(10, number)));
    }
    run_for(&mut net, Duration::from_secs(5));
    let all = |first, last| Repair {
        form: RepairForm::Ranges,
        flags: RepairFlags::OBJECT,
        items: vec![position(first, 0, 0), position(last, 0, 0)],
    };
    let asked = (0..4).map(|quarter| all(1 + 250 * quarter, 250 * (quarter + 1))).collect();
    net.forge(0, 9, &nack(100, Timestamp::default(), asked));
    run_for(&mut net, Duration::from_secs(10));
    let repairs = net.counter(0, "repair_packets_sent");
    assert!((1..=256).contains(&repairs), "{repairs} repairs");
}

#[test]
fn a_flood_of_requests_is_advertised_a_few_times_in_a_round_trip() {
    let config = SenderConfig { unicast_feedback: true, ..sender() };
    let mut net = Net::star(6, config, &ReceiverConfig::default(), &[Link::default(), lossy(0.0)]);
    assert!(send(&mut net, &contents(2_000_000, 6)));
    for step in 0..1_000 {
        let block = (step / 40) as u32;
        // Each asks for more of a block than the one before it.
        let item = position(1, block, 1 + (step % 60) as u16);
        let asked = Repair { form: RepairForm::Erasures, flags: RepairFlags::SEGMENT, items: vec![item] };
        net.forge(0, 9, &nack(100, Timestamp::default(), vec![asked]));
        run_for(&mut net, Duration::from_millis(1));
    }
    // Without that they are 17.
    let commands = net.counter(0, "control_packets_sent");
    assert!(commands <= 12, "{commands} commands");
}

#[test]
fn a_lie_about_the_round_trip_is_no_longer_than_the_time_since_the_block_was_sent() {
    let mut net = Net::star(7, sender(), &ReceiverConfig::default(), &[Link::default(), lossy(0.05)]);
    assert!(send(&mut net, &contents(6_000_000, 7)));
    run_for(&mut net, Duration::from_secs(5));
    assert!(net.members[0].session.grtt() < Duration::from_millis(100));
    for _ in 0..400 {
        // The last block but one, which began 0.4 s ago, and a time shortly after the start, when the clock showed one
        // second.
        let block = (net.now.as_secs_f64() * 4e6 / 8.0 / (64.0 * 1460.0)) as u32 - 1;
        let long_ago = Timestamp { seconds: 1, micros: 500_000 };
        let items = vec![position(1, block, 3)];
        let asked = Repair { form: RepairForm::Items, flags: RepairFlags::SEGMENT, items };
        net.forge(0, 9, &nack(100, long_ago, vec![asked]));
        run_for(&mut net, Duration::from_millis(10));
    }
    let grtt = net.members[0].session.grtt();
    assert!(grtt <= Duration::from_millis(800), "{grtt}");
}
