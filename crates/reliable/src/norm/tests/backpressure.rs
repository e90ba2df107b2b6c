//! Messages of an application that has more than the sender may hold.

use hopcast_core::{Buffer, Duration, Item, Machine, Message};

use super::net::{Link, Net, contents};
use super::transfers::{lossy, objects, sender};
use crate::norm::{ReceiverConfig, SenderConfig};

fn message(number: u64, len: usize) -> Message {
    let mut bytes = contents(len, number);
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    Message::new(number, Buffer::copy_from(&bytes))
}

/// Numbers of the messages that a member was handed.
fn numbers(net: &Net, member: usize) -> Vec<u64> {
    let number = |bytes: Vec<u8>| bytes.first_chunk().map_or(u64::MAX, |&number| u64::from_be_bytes(number));
    objects(net, member).into_iter().map(number).collect()
}

#[test]
fn messages_wait_for_room_and_none_is_lost() {
    let config = SenderConfig { objects: 8, group_size: Some(2), ..sender() };
    let mut net =
        Net::star(1, config, &ReceiverConfig::default(), &[Link::default(), lossy(0.1), lossy(0.1)]);
    (0..300).for_each(|number| net.give(0, Item::Message(message(number, 2_000))));
    let all = |net: &Net| (1..=2).all(|member| objects(net, member).len() == 300);
    assert!(net.run(Duration::from_secs(120), all), "{:?}", numbers(&net, 1).len());
    for member in 1..=2 {
        let mut found = numbers(&net, member);
        found.sort_unstable();
        assert!(found.into_iter().eq(0..300));
    }
    assert_eq!(net.counter(0, "units_refused"), 0);
}

#[test]
fn bytes_of_objects_are_bounded_and_one_that_is_longer_is_sent_alone() {
    let config = SenderConfig { buffer: 100_000, ..sender() };
    let mut net = Net::star(2, config, &ReceiverConfig::default(), &[Link::default(), lossy(0.1)]);
    let now = net.now;
    let send = |net: &mut Net, len| net.members[0].session.send(now, contents(len, 1).into(), None, false);
    assert!(send(&mut net, 300_000).is_some(), "there is nothing else");
    assert!(send(&mut net, 1).is_none(), "there is no room beside it");
    (0..20).for_each(|number| net.give(0, Item::Message(message(number, 40_000))));
    assert!(net.run(Duration::from_secs(60), |net| objects(net, 1).len() == 21));
    assert!(net.members[0].session.held_objects() <= 2);
}

#[test]
fn what_waits_is_bounded_and_what_is_refused_is_counted() {
    let config = SenderConfig { objects: 1, ..sender() };
    let mut net = Net::star(3, config, &ReceiverConfig::default(), &[Link::default(), Link::default()]);
    (0..100).for_each(|number| net.give(0, Item::Message(message(number, 1 << 20))));
    // One is being sent, and 63 wait: each counts a little more than its bytes.
    assert_eq!(net.counter(0, "units_refused"), 36);
    let named = Message::new(0, Buffer::default()).named(vec![b'a'; 2_000]);
    net.give(0, Item::Message(named));
    assert_eq!(net.counter(0, "units_refused"), 37, "a name longer than a segment");
    assert!(net.run(Duration::from_secs(600), |net| net.members[1].up.len() == 64));
}

#[test]
fn an_application_that_is_granted_messages_is_refused_none() {
    let config = SenderConfig { objects: 4, group_size: Some(1), ..sender() };
    let mut net = Net::star(4, config.clone(), &ReceiverConfig::default(), &[Link::default(), lossy(0.1)]);
    net.members[0].session = net.granting(0, config);
    let now = net.now;
    net.members[0].session.wake(now);
    let (mut sent, mut step) = (0, 0);
    while sent < 600 {
        let credit = |(_, item): &(_, Item)| if let Item::Credit(more) = item { *more } else { 0 };
        net.run(Duration::from_millis(20 * step), |_| false);
        let granted: u64 = net.members[0].up.iter().map(credit).sum();
        while sent < granted.min(600) {
            net.give(0, Item::Message(message(sent, 1_000)));
            sent += 1;
        }
        step += 1;
        assert!(step < 10_000, "{sent} sent of {granted}");
    }
    assert!(net.run(Duration::from_secs(300), |net| objects(net, 1).len() == 600));
    assert_eq!(net.counter(0, "units_refused"), 0);
}

#[test]
fn who_leaves_sends_what_waits_first() {
    let config = SenderConfig { objects: 2, ..sender() };
    let mut net = Net::star(5, config, &ReceiverConfig::default(), &[Link::default(), lossy(0.1)]);
    (0..20).for_each(|number| net.give(0, Item::Message(message(number, 1_000))));
    let now = net.now;
    net.members[0].session.leave(now);
    assert!(net.run(Duration::from_secs(60), |net| objects(net, 1).len() == 20));
    net.run(Duration::from_secs(200), |_| false);
    assert_eq!(net.counter(1, "objects_given_up"), 0);
}

#[test]
fn a_member_that_sends_nothing_refuses_what_it_is_given() {
    let mut net = Net::star(6, sender(), &ReceiverConfig::default(), &[Link::default(), Link::default()]);
    net.give(1, Item::Message(message(1, 100)));
    assert_eq!(net.counter(1, "units_refused"), 1);
}
