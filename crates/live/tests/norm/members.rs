//! Members that come late, start again, or share the group; and what they ask of each other.

use std::path::PathBuf;

use hopcast_core::Rate;
use hopcast_reliable::norm::wire::NodeId;
use hopcast_reliable::norm::{RateControl, ReceiverConfig, SenderConfig};
use tempfile::TempDir;

use crate::common::{Running, ms, pause};
use crate::ours::{Given, Ours, receiver, sender};
use crate::peer::{Peer, Transfer};
use crate::segment::segment;
use crate::transfers::{receives, sends, some_bytes};

/// Length of an object, which takes a third of a second at the rate of the senders.
const LEN: usize = 300_000;

/// A folder, with a file of each of these.
fn files(contents: &[&[u8]]) -> (TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let write = |(number, bytes): (usize, &&[u8])| {
        let path = folder.path().join(format!("given-{number}"));
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let paths = contents.iter().enumerate().map(write).collect();
    (folder, paths)
}

fn data(bytes: &[u8]) -> Transfer {
    Transfer::of("data", bytes)
}

#[test]
fn a_receiver_of_libnorm_that_comes_late_gets_all_of_an_object_of_ours() {
    let Some(net) = segment(2, 0.05) else { return };
    // libnorm asks for nothing of which it hears no symbol, so that it must start before the end of these 4.5 s.
    let object = some_bytes(15 * LEN, 1);
    let _sender = Ours::sender(&net, 0, vec![Given::Data(object.clone())]);
    pause(ms(500));
    let folder = tempfile::tempdir().unwrap();
    let mut late = Peer::start(&net.lab, 1, &receives(folder.path(), 1, &["sync=all"]));
    assert!(late.finish(), "{}", late.log());
    assert_eq!(late.completed(), [data(&object)]);
}

#[test]
fn a_receiver_of_ours_that_comes_late_gets_all_of_an_object_of_libnorm() {
    let Some(net) = segment(2, 0.05) else { return };
    let object = some_bytes(4 * LEN, 1);
    let (_folder, paths) = files(&[&object]);
    let given = Peer::start(&net.lab, 0, &sends(&[("data", &paths[0])], &["linger=30"]));
    given.wait_for("given", 1);
    pause(ms(500));
    let mut late = Ours::receiver(&net, 1);
    late.wait_for(1);
    assert_eq!(late.heard().completed(), [data(&object)]);
}

#[test]
fn a_sender_of_ours_that_starts_again_is_another_one_to_libnorm() {
    let Some(net) = segment(2, 0.05) else { return };
    let [first, second] = [1, 2].map(|mark| some_bytes(LEN, mark));
    let folder = tempfile::tempdir().unwrap();
    let mut receiver = Peer::start(&net.lab, 1, &receives(folder.path(), 2, &[]));
    receiver.wait_for("ready", 1);
    let mut before = Ours::start(&net, 0, 1, Some(sender()), None, vec![Given::Data(first.clone())]);
    receiver.wait_for("complete", 1);
    before.finish();
    let _after = Ours::start(&net, 0, 2, Some(sender()), None, vec![Given::Data(second.clone())]);
    assert!(receiver.finish(), "{}", receiver.log());
    let mut expected = vec![data(&first), data(&second)];
    expected.sort();
    assert_eq!(receiver.completed(), expected);
}

#[test]
fn a_sender_of_libnorm_that_starts_again_is_another_one_to_ours() {
    let Some(net) = segment(2, 0.05) else { return };
    let [first, second] = [1, 2].map(|mark| some_bytes(LEN, mark));
    let (_folder, paths) = files(&[&first, &second]);
    let mut receiver = Ours::receiver(&net, 1);
    let more = |instance| [instance, "linger=30"];
    let mut before = Peer::start(&net.lab, 0, &sends(&[("data", &paths[0])], &more("instance=1")));
    receiver.wait_for(1);
    before.kill();
    // The same objects by number, and others by content.
    let _after = Peer::start(&net.lab, 0, &sends(&[("data", &paths[1])], &more("instance=2")));
    receiver.wait_for(2);
    assert_eq!(receiver.heard().objects, [first, second]);
}

/// One of ours and one of libnorm send to one of each.
fn two_senders(net: &Running) {
    let [ours, theirs] = [1, 2].map(|mark| some_bytes(LEN + mark as usize, mark));
    let (folder, paths) = files(&[&theirs]);
    let mut to_libnorm = Peer::start(&net.lab, 2, &receives(folder.path(), 2, &[]));
    to_libnorm.wait_for("ready", 1);
    let mut to_ours = Ours::receiver(net, 3);
    let _libnorm = Peer::start(&net.lab, 0, &sends(&[("data", &paths[0])], &["linger=30"]));
    let _ours = Ours::sender(net, 1, vec![Given::Data(ours.clone())]);
    to_ours.wait_for(2);
    assert!(to_libnorm.finish(), "{}", to_libnorm.log());
    let mut expected = vec![data(&ours), data(&theirs)];
    expected.sort();
    assert_eq!(to_ours.heard().completed(), expected);
    assert_eq!(to_libnorm.completed(), expected);
}

#[test]
fn two_senders_on_a_group_are_kept_apart() {
    let Some(net) = segment(4, 0.05) else { return };
    two_senders(&net);
}

#[test]
fn requests_of_ours_by_unicast_are_answered_by_libnorm() {
    let Some(net) = segment(3, 0.2) else { return };
    let object = some_bytes(LEN, 1);
    let (_folder, paths) = files(&[&object]);
    let by_unicast = ReceiverConfig { unicast_feedback: true, ..receiver() };
    let mut receivers =
        [1, 2].map(|node| Ours::start(&net, node, 1, None, Some(by_unicast.clone()), Vec::new()));
    let _sender = Peer::start(&net.lab, 0, &sends(&[("data", &paths[0])], &["linger=30"]));
    for receiver in &mut receivers {
        receiver.wait_for(1);
        assert_eq!(receiver.heard().objects, std::slice::from_ref(&object));
    }
}

#[test]
fn requests_of_libnorm_by_unicast_are_answered_by_ours() {
    let Some(net) = segment(3, 0.2) else { return };
    let object = some_bytes(LEN, 1);
    let folder = tempfile::tempdir().unwrap();
    let mut receivers =
        [1, 2].map(|node| Peer::start(&net.lab, node, &receives(folder.path(), 1, &["unicast-nacks=yes"])));
    receivers.iter().for_each(|receiver| receiver.wait_for("ready", 1));
    let config = SenderConfig { unicast_feedback: true, ..sender() };
    let _sender = Ours::start(&net, 0, 1, Some(config), None, vec![Given::Data(object.clone())]);
    for receiver in &mut receivers {
        assert!(receiver.finish(), "{}", receiver.log());
        assert_eq!(receiver.completed(), [data(&object)]);
    }
}

#[test]
fn receivers_of_libnorm_acknowledge_what_ours_asks_them_to() {
    let Some(net) = segment(3, 0.05) else { return };
    let object = some_bytes(LEN, 1);
    let folder = tempfile::tempdir().unwrap();
    let receivers =
        [1, 2].map(|node| Peer::start(&net.lab, node, &receives(folder.path(), 1, &["linger=30"])));
    receivers.iter().for_each(|receiver| receiver.wait_for("ready", 1));
    let config = SenderConfig { ackers: vec![NodeId(2), NodeId(3)], ..sender() };
    let mut sender = Ours::start(&net, 0, 1, Some(config), None, vec![Given::Data(object.clone())]);
    sender.wait_until(|heard| heard.acknowledged);
    // What they acknowledge they have.
    for receiver in &receivers {
        assert_eq!(receiver.completed(), [data(&object)]);
    }
}

#[test]
fn receivers_of_ours_acknowledge_what_libnorm_asks_them_to() {
    let Some(net) = segment(3, 0.05) else { return };
    let object = some_bytes(LEN, 1);
    let (_folder, paths) = files(&[&object]);
    let receivers = [1, 2].map(|node| Ours::receiver(&net, node));
    let more = ["acknowledge=2", "acknowledge=3", "linger=0.5"];
    let mut sender = Peer::start(&net.lab, 0, &sends(&[("data", &paths[0])], &more));
    assert!(sender.finish(), "{}", sender.log());
    let answers = sender.events("acknowledged");
    assert_eq!(answers.len(), 2, "{}", sender.log());
    assert!(answers.iter().all(|answer| answer["ok"] == true), "{}", sender.log());
    for receiver in &receivers {
        assert_eq!(receiver.heard().objects, std::slice::from_ref(&object));
    }
}

#[test]
fn a_sender_of_libnorm_finds_a_rate_by_the_feedback_of_ours() {
    let Some(net) = segment(2, 0.0) else { return };
    let object = some_bytes(4 * LEN, 1);
    let (_folder, paths) = files(&[&object]);
    let mut receiver = Ours::receiver(&net, 1);
    // Without feedback it would stay at the rate at which it starts, and take 100 s.
    let more = ["cc=yes", "rate=1e5", "linger=30"];
    let sender = Peer::start(&net.lab, 0, &sends(&[("data", &paths[0])], &more));
    receiver.wait_for(1);
    assert_eq!(receiver.heard().objects, [object]);
    let rates = sender.events("rate");
    let highest = rates.iter().filter_map(|rate| rate["bits_per_second"].as_f64()).fold(0.0, f64::max);
    assert!(highest > 1e6, "{highest} bit/s at most");
}

#[test]
fn a_sender_of_ours_finds_a_rate_by_the_feedback_of_libnorm() {
    let Some(net) = segment(2, 0.0) else { return };
    let object = some_bytes(4 * LEN, 1);
    let folder = tempfile::tempdir().unwrap();
    let mut receiver = Peer::start(&net.lab, 1, &receives(folder.path(), 1, &[]));
    receiver.wait_for("ready", 1);
    let rate = RateControl::Tcp {
        initial: Rate::from_bits_per_sec(100_000),
        min: Rate::from_bits_per_sec(50_000),
        max: Rate::from_mbit(100),
    };
    // At the rate at which it starts it would take 100 s.
    let config = SenderConfig { rate, ..sender() };
    let _sender = Ours::start(&net, 0, 1, Some(config), None, vec![Given::Data(object.clone())]);
    assert!(receiver.finish(), "{}", receiver.log());
    assert_eq!(receiver.completed(), [data(&object)]);
}

#[test]
#[ignore = "takes more than ten minutes"]
fn streams_of_ten_minutes_arrive_both_ways() {
    // 600 s at 1 Mbit/s, with what repairs take.
    let stream = some_bytes(60_000_000, 1);
    let Some(net) = segment(4, 0.05) else { return };
    let (folder, paths) = files(&[&stream]);
    let more = ["rate=1e6", "linger=30", "seconds=1200"];
    let mut to_libnorm =
        Peer::start(&net.lab, 2, &receives(folder.path(), 1, &["sync=stream", "seconds=1200"]));
    to_libnorm.wait_for("ready", 1);
    let mut to_ours = Ours::receiver(&net, 3);
    let rate = RateControl::Fixed(Rate::from_mbit(1));
    let config = SenderConfig { rate, ..sender() };
    let _ours = Ours::start(&net, 0, 1, Some(config), None, vec![Given::Stream(stream.clone())]);
    assert!(to_libnorm.finish(), "{}", to_libnorm.log());
    assert_eq!(to_libnorm.completed(), [Transfer::of("stream", &stream)]);
    let _libnorm = Peer::start(&net.lab, 1, &sends(&[("stream", &paths[0])], &more));
    to_ours.wait_at_most(1200, |heard| heard.completed().len() >= 2);
    assert_eq!(to_ours.heard().completed(), vec![Transfer::of("stream", &stream); 2]);
}
