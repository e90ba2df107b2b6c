//! Receivers on bad links: what they go on without, what they give up, and what they do not count twice.

use std::sync::Arc;

use hopcast_core::{Buffer, Datagram, Duration, Item};

use super::net::{Link, Net, address, contents, group};
use super::transfers::{lossy, messages, objects, of_messages, sender};
use crate::Proactive;
use crate::norm::wire::NodeId;
use crate::norm::{ReceiverConfig, SenderConfig};

fn send(net: &mut Net, file: &[u8]) {
    let now = net.now;
    assert!(net.members[0].session.send(now, Arc::from(file), None, true).is_some());
}

#[test]
fn a_silent_receiver_goes_on_behind_each_gap_of_a_stream() {
    let silent = ReceiverConfig { silent: true, ..of_messages() };
    let config = SenderConfig { proactive: Proactive::Fixed(2), source: 8, parity: 8, ..sender() };
    let mut net = Net::star(1, config, &silent, &[Link::default(), lossy(0.3)]);
    let sent: Vec<Vec<u8>> = (0..400).map(|number| contents(1_000, number)).collect();
    for (step, message) in sent.iter().enumerate() {
        net.give(0, Item::Datagram(Datagram::new(address(0), group(), Buffer::copy_from(message))));
        net.run(Duration::from_millis(10 * step as u64), |_| false);
    }
    net.run(Duration::from_secs(60), |_| false);
    let found: Vec<Vec<u8>> = messages(&net, 1).into_iter().map(|(_, message)| message).collect();
    // Seven tenths come, and of a block of which eight of ten do, all.
    assert!((250..400).contains(&found.len()), "{} of 400", found.len());
    let mut rest = sent.iter();
    assert!(found.iter().all(|message| rest.any(|other| other == message)), "in their order, each once");
    assert!(found.iter().rev().take(20).any(|message| sent[380..].contains(message)), "to the end");
    assert!(net.counter(1, "objects_given_up") > 0 && net.members[1].packets == 0);
}

#[test]
fn a_sender_that_is_at_its_end_is_asked_without_slowing_down_while_it_says_so() {
    // It hears none of the requests, so that the receiver counts all of them as in vain.
    let config = SenderConfig { group_size: Some(1), ..sender() };
    let deaf = Link { loss: 1.0, ..Link::default() };
    let mut net = Net::star(1, config, &ReceiverConfig::default(), &[deaf, lossy(0.1)]);
    send(&mut net, &contents(100_000, 1));
    let mut asked = Vec::new();
    while net.run(Duration::from_secs(60), |net| net.counter(1, "nacks_sent") > asked.len() as u64) {
        asked.push((net.now, net.counter(0, "control_packets_sent")));
    }
    let said = net.counter(0, "control_packets_sent");
    let times: Vec<_> = asked.iter().filter(|&&(_, before)| before < said).map(|&(at, _)| at).collect();
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    // Two blocks lack something, each of which is asked for in turn.
    assert!(waits.len() > 20 && waits.iter().all(|&wait| wait < waits[0] * 2), "{waits:?}");
}

#[test]
fn what_a_sender_no_longer_has_is_given_up_and_later_objects_are_complete() {
    let config = SenderConfig { objects: 2, group_size: Some(2), ..sender() };
    let mut net =
        Net::star(2, config, &ReceiverConfig::default(), &[Link::default(), lossy(0.2), lossy(0.2)]);
    let files: Vec<Vec<u8>> = (0..12).map(|number| contents(100_000, number)).collect();
    for (number, file) in files.iter().enumerate() {
        net.give(0, Item::Message(hopcast_core::Message::new(number as u64, Buffer::copy_from(file))));
    }
    net.run(Duration::from_millis(300), |_| false);
    net.members[2].is_cut = true;
    assert!(net.run(Duration::from_secs(100), |net| objects(net, 1).len() >= 8));
    net.members[2].is_cut = false;
    let asked = net.counter(2, "nacks_sent");
    assert!(net.run(Duration::from_secs(200), |net| objects(net, 1).len() == 12));
    net.run(Duration::from_secs(300), |_| false);
    let found = objects(&net, 2);
    assert!(found.contains(&files[10]) && found.contains(&files[11]), "{}", found.len());
    let given_up = net.counter(2, "objects_given_up");
    assert!(given_up > 0 && found.len() as u64 + given_up == 12, "{} and {given_up}", found.len());
    let asked = net.counter(2, "nacks_sent") - asked;
    assert!(asked < 200, "{asked} requests");
}

#[test]
fn decoded_bytes_take_no_room_from_what_is_incomplete() {
    let small = ReceiverConfig { buffer: 500_000, ..ReceiverConfig::default() };
    let config = SenderConfig { group_size: Some(1), ..sender() };
    let mut net = Net::star(3, config, &small, &[Link::default(), lossy(0.2)]);
    let file = contents(4_000_000, 3);
    send(&mut net, &file);
    assert!(net.run(Duration::from_secs(60), |net| objects(net, 1) == [file.clone()]));
    assert_eq!(net.counter(1, "symbols_without_room"), 0);
}

#[test]
fn a_receiver_asks_for_no_more_than_it_has_room_for_and_gives_nothing_up() {
    // Room for three blocks, over a path that has ten under way.
    let small = ReceiverConfig { buffer: 64 << 10, ..of_messages() };
    let config = SenderConfig { source: 16, ..sender() };
    let link = Link { delay: Duration::from_millis(25), ..lossy(0.2) };
    for seed in 0..5 {
        let mut net = Net::star(seed, config.clone(), &small, &[Link::default(), link, link, link]);
        for number in 0..300 {
            let message = contents(1_400, number);
            net.give(0, Item::Datagram(Datagram::new(address(0), group(), Buffer::copy_from(&message))));
        }
        net.run(Duration::from_secs(120), |net| (1..=3).all(|member| messages(net, member).len() == 300));
        for member in 1..=3 {
            let (found, given_up) = (messages(&net, member).len(), net.counter(member, "objects_given_up"));
            assert_eq!((found, given_up), (300, 0), "seed {seed}, member {member}");
        }
    }
}

#[test]
fn a_sender_that_leaves_waits_until_those_that_lack_something_have_asked_again() {
    // Of a few commands at the end a third is lost, as are repairs; a request and its answer take longer than all of
    // them. Without that wait one file of nine is missing.
    let config = SenderConfig { robust: 4, ..sender() };
    for seed in 0..40 {
        let mut net =
            Net::star(seed, config.clone(), &ReceiverConfig::default(), &[Link::default(), lossy(0.37)]);
        (0..3).for_each(|number| send(&mut net, &contents(20_000, number)));
        let now = net.now;
        net.members[0].session.leave(now);
        net.run(Duration::from_secs(25), |_| false);
        assert_eq!(objects(&net, 1).len(), 3, "seed {seed}");
    }
}

#[test]
fn what_comes_after_the_sender_has_left_is_not_handed_up_again() {
    // A third of the packets come after the sender has left, and was forgotten.
    let link = Link { late: (0.3, Duration::from_secs(30)), loss: 0.1, ..Link::default() };
    let config = SenderConfig { robust: 4, ..sender() };
    let mut net = Net::star(1, config, &ReceiverConfig::default(), &[Link::default(), link]);
    let files: Vec<Vec<u8>> = (0..3).map(|number| contents(20_000, number)).collect();
    files.iter().for_each(|file| send(&mut net, file));
    let now = net.now;
    net.members[0].session.leave(now);
    net.run(Duration::from_secs(20), |_| false);
    assert_eq!(objects(&net, 1).len(), 3);
    let before = net.counter(1, "nacks_sent");
    net.run(Duration::from_secs(120), |_| false);
    assert_eq!((objects(&net, 1).len(), net.counter(1, "nacks_sent")), (3, before));
}

#[test]
fn a_receiver_does_not_acknowledge_what_it_gave_up() {
    let config = SenderConfig { ackers: vec![NodeId(2), NodeId(3)], group_size: Some(2), ..sender() };
    let soon = ReceiverConfig { robust: 1, ..ReceiverConfig::default() };
    let mut net = Net::star(5, config, &soon, &[Link::default(), Link::default(), lossy(0.8)]);
    send(&mut net, &contents(200_000, 5));
    net.run(Duration::from_secs(100), |_| false);
    assert_eq!((objects(&net, 1).len(), objects(&net, 2).len()), (1, 0));
    assert!(net.counter(2, "objects_given_up") > 0);
    assert_eq!(net.counter(0, "receivers_acknowledged"), 1);
    assert!(!net.members[0].session.is_acknowledged());
    // What follows would acknowledge that too.
    send(&mut net, &contents(10, 6));
    net.run(Duration::from_secs(200), |_| false);
    assert!(!net.members[0].session.is_acknowledged());
}
