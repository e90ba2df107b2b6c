//! Receivers that come late, restart, share a group, acknowledge, or have their requests advertised.

use std::sync::Arc;

use hopcast_core::{Duration, Instant, Machine, Rate};

use super::net::{Link, Net, contents, position};
use super::transfers::{lossy, objects, sender};
use crate::norm::wire::{Body, Message, Nack, NodeId, Repair, RepairFlags, RepairForm, Timestamp};
use crate::norm::{Join, RateControl, ReceiverConfig, SenderConfig};

fn send(net: &mut Net, member: usize, file: &[u8]) {
    let now = net.now;
    assert!(net.members[member].session.send(now, Arc::from(file), None, true).is_some());
}

#[test]
fn who_comes_late_gets_all_of_the_object_that_is_being_sent() {
    let mut net =
        Net::star(1, sender(), &ReceiverConfig::default(), &[Link::default(), lossy(0.1), lossy(0.1)]);
    let file = contents(1_000_000, 1);
    send(&mut net, 0, &file);
    net.members[2].is_cut = true;
    net.run(Duration::from_millis(1_500), |_| false);
    net.members[2].is_cut = false;
    assert!(
        net.run(Duration::from_secs(30), |net| (1..=2).all(|member| objects(net, member) == [file.clone()]))
    );
}

#[test]
fn who_wants_everything_gets_what_was_sent_before_it_came() {
    let everything = ReceiverConfig { join: Join::Everything, ..ReceiverConfig::default() };
    let mut net = Net::star(2, sender(), &everything, &[Link::default(), lossy(0.1), lossy(0.1)]);
    net.members[2].is_cut = true;
    let files: Vec<_> = (0..5).map(|number| contents(50_000, number)).collect();
    files[..4].iter().for_each(|file| send(&mut net, 0, file));
    net.run(Duration::from_secs(3), |_| false);
    net.members[2].is_cut = false;
    send(&mut net, 0, &files[4]);
    let all = |net: &Net| (1..=2).all(|member| objects(net, member).len() == 5);
    assert!(net.run(Duration::from_secs(30), all), "{}", objects(&net, 2).len());
}

#[test]
fn a_sender_that_restarts_is_heard_again() {
    let mut net = Net::star(3, sender(), &ReceiverConfig::default(), &[Link::default(), lossy(0.1)]);
    send(&mut net, 0, &contents(500_000, 3));
    net.run(Duration::from_millis(500), |_| false);
    net.members[0].session = net.session(0, Some(sender()), None, 2);
    let file = contents(300_000, 4);
    send(&mut net, 0, &file);
    assert!(net.run(Duration::from_secs(30), |net| objects(net, 1) == [file.clone()]));
    assert_eq!(net.counter(1, "senders_restarted"), 1);
}

#[test]
fn several_senders_share_a_group_and_its_port() {
    let mut net = Net::new(4);
    let both = Some(ReceiverConfig::default());
    let members: Vec<usize> = (0..3).map(|_| net.add(Some(sender()), both.clone(), lossy(0.1), 1)).collect();
    let files: Vec<_> = (0..3).map(|number| contents(200_000, number)).collect();
    members.iter().for_each(|&member| send(&mut net, member, &files[member]));
    let all = |net: &Net| members.iter().all(|&member| objects(net, member).len() == 2);
    assert!(net.run(Duration::from_secs(60), all));
    for &member in &members {
        let found = objects(&net, member);
        assert!(members.iter().all(|&other| found.contains(&files[other]) == (other != member)));
    }
}

/// Two sessions that do not know of each other on one group and port: each a sender and a receiver
/// that loses a tenth of that sender's packets. Member 4 receives nothing.
fn two_sessions() -> Net {
    let mut net = Net::new(13);
    let instances = [5, 6];
    for instance in instances {
        net.add(Some(sender()), None, Link::default(), instance);
    }
    for _ in instances {
        net.add(None, Some(ReceiverConfig::default()), Link::default(), 1);
    }
    net.add(Some(sender()), None, Link::default(), 7);
    net.loss_between.extend([((0, 2), 0.1), ((1, 3), 0.1)]);
    net
}

#[test]
fn of_two_sessions_on_one_group_each_sender_answers_only_its_own_receivers() {
    let mut net = two_sessions();
    let files = [11, 12].map(|seed| contents(500_000, seed));
    (0..2).for_each(|member| send(&mut net, member, &files[member]));
    let has_both = |net: &Net, member| files.iter().all(|file| objects(net, member).contains(file));
    assert!(net.run(Duration::from_secs(30), |net| (2..4).all(|member| has_both(net, member))));
    net.run(Duration::from_secs(60), |_| false);
    for member in 0..2 {
        // Each receiver lacks something of one sender alone, and all hear all NACKs.
        let (asked, answered) =
            (net.counter(member + 2, "nacks_sent"), net.counter(member, "nacks_received"));
        assert!(asked > 0 && asked == answered, "{asked} NACKs sent, {answered} taken by sender {member}");
        // What each heard of the other's are of a sender that it follows as well.
        assert_eq!(net.counter(member + 2, "nacks_heard"), net.counter(3 - member, "nacks_sent"));
        assert_eq!(objects(&net, member + 2).len(), 2);
        assert_eq!(net.counter(member, "feedback_refused"), 0);
    }
    // Who receives nothing is handed nothing, says nothing and repairs nothing.
    assert!(net.members[4].arrived > 0);
    assert_eq!((net.members[4].up.len(), net.members[4].packets), (0, 0));
}

#[test]
fn requests_of_another_session_are_neither_answered_nor_taken_for_those_of_others() {
    // Requests for all of the object that is being sent: of the same sender's last run, and of another sender.
    let run = |foreign: Option<(u32, u16)>| {
        let links = [Link::default(), lossy(0.1), Link::default()];
        let mut net = Net::star(14, sender(), &ReceiverConfig::default(), &links);
        let file = contents(500_000, 14);
        send(&mut net, 0, &file);
        let mut step = 0;
        let all = |net: &Net| (1..3).all(|member| objects(net, member) == [file.clone()]);
        while !net.run(Duration::from_millis(step), all) {
            assert!(step < 30_000);
            step += 1;
            let Some((sender, instance)) = foreign else { continue };
            let (form, flags) = (RepairForm::Ranges, RepairFlags::OBJECT);
            let repairs = vec![Repair { form, flags, items: vec![position(0, 0, 0), position(2, 0, 0)] }];
            let grtt_response = Timestamp::default();
            let nack = Nack { sender: NodeId(sender), instance, grtt_response, cc: None, repairs };
            let message = Message { sequence: 0, source: NodeId(99), body: Body::Nack(nack) }.emit();
            (0..3).for_each(|member| net.forge(member, 9, &message));
        }
        (net.now, net.bytes(), net.counter(0, "nacks_received"), net.counter(2, "nacks_heard"))
    };
    let alone = run(None);
    assert!(alone.2 > 0);
    for foreign in [(1, 2), (77, 1)] {
        assert_eq!(run(Some(foreign)), alone, "{foreign:?}");
    }
}

#[test]
fn two_senders_that_took_the_same_number_mix_nothing_and_the_one_that_is_left_completes() {
    // Another session's sender may have the identifier of this one's: then each packet of the one seems to be of a
    // sender that has restarted.
    let mut net = two_sessions();
    net.members[1].session = net.session(0, Some(sender()), None, 6);
    let files = [15, 16].map(|seed| contents(500_000, seed));
    (0..2).for_each(|member| send(&mut net, member, &files[member]));
    let mut most = 0;
    for step in 1..=100 {
        net.run(Duration::from_millis(100 * step), |_| false);
        for receiver in 2..4 {
            let (incomplete, decoded) = net.members[receiver].session.held();
            most = most.max(incomplete + decoded);
        }
    }
    assert!(most < 1_000_000, "{most} bytes held");
    let last = contents(300_000, 17);
    send(&mut net, 1, &last);
    let has_last = |net: &Net| (2..4).all(|member| objects(net, member).contains(&last));
    assert!(net.run(Duration::from_secs(30), has_last));
    for receiver in 2..4 {
        let all = [&files[0], &files[1], &last];
        assert!(objects(&net, receiver).iter().all(|found| all.contains(&found)), "receiver {receiver}");
    }
}

#[test]
fn a_receiver_acknowledges_what_it_is_asked_to_and_the_sender_knows() {
    let ackers = vec![NodeId(2), NodeId(3)];
    let config = SenderConfig { ackers, ..sender() };
    let mut net =
        Net::star(5, config, &ReceiverConfig::default(), &[lossy(0.1), lossy(0.2), lossy(0.2), lossy(0.2)]);
    let file = contents(100_000, 5);
    send(&mut net, 0, &file);
    assert!(!net.members[0].session.is_acknowledged());
    assert!(net.run(Duration::from_secs(30), |net| net.members[0].session.is_acknowledged()));
    assert_eq!((objects(&net, 1), objects(&net, 2)), (vec![file.clone()], vec![file]));
    assert_eq!(net.counter(0, "receivers_acknowledged"), 2);
    assert_eq!(net.counter(3, "acks_sent"), 0, "nobody asked the third");
}

#[test]
fn requests_by_unicast_are_told_to_the_group() {
    let receivers = 40;
    let mut nacks = Vec::new();
    for told in [true, false] {
        let config = SenderConfig { unicast_feedback: told, group_size: Some(1000), ..sender() };
        let receiver = ReceiverConfig { unicast_feedback: true, ..ReceiverConfig::default() };
        let links = vec![lossy(0.02); receivers + 1];
        let mut net = Net::star(6, config, &receiver, &links);
        send(&mut net, 0, &contents(500_000, 6));
        let all = |net: &Net| (1..=receivers).all(|member| objects(net, member).len() == 1);
        assert!(net.run(Duration::from_secs(60), all));
        nacks.push(net.counter(0, "nacks_received"));
    }
    assert!(nacks[0] < nacks[1], "{nacks:?}");
}

#[test]
fn object_numbers_wrap() {
    let mut net = Net::new(7);
    net.add(Some(sender()), None, Link::default(), 65_530);
    net.add(None, Some(ReceiverConfig::default()), lossy(0.2), 1);
    let files: Vec<_> = (0..20).map(|number| contents(10_000, number)).collect();
    files.iter().for_each(|file| send(&mut net, 0, file));
    assert!(net.run(Duration::from_secs(60), |net| objects(net, 1).len() == files.len()));
}

#[test]
fn a_sender_that_leaves_is_forgotten() {
    let mut net = Net::star(8, sender(), &ReceiverConfig::default(), &[Link::default(), Link::default()]);
    send(&mut net, 0, &contents(10_000, 8));
    let now = net.now;
    net.members[0].session.leave(now);
    net.run(Duration::from_secs(120), |_| false);
    assert_eq!(objects(&net, 1).len(), 1);
    assert_eq!(net.members[0].session.deadline(), None);
}

#[test]
fn with_congestion_control_it_finds_what_the_path_carries() {
    for (mbit, receivers) in [(2, 1), (10, 1), (10, 5)] {
        let rate = RateControl::Tcp {
            initial: Rate::from_bits_per_sec(64_000),
            min: Rate::from_bits_per_sec(16_000),
            max: Rate::from_mbit(1_000),
        };
        let link = Link { rate: Rate::from_mbit(mbit), delay: Duration::from_millis(10), ..Link::default() };
        let mut links = vec![link; receivers + 1];
        links[0].queue = Duration::from_millis(60);
        let config = SenderConfig { rate, objects: 4, ..SenderConfig::default() };
        let mut net = Net::star(9, config, &ReceiverConfig::default(), &links);
        let file = contents((mbit * 1_000_000 / 8 * 20) as usize, 9);
        send(&mut net, 0, &file);
        let all = |net: &Net| (1..=receivers).all(|member| objects(net, member).len() == 1);
        assert!(net.run(Duration::from_secs(120), all), "{mbit} Mbit/s, {receivers}");
        let seconds = net.now.since(Instant::ZERO).as_secs_f64();
        assert!(seconds < 40.0, "{mbit} Mbit/s, {receivers} receivers: {seconds} s");
    }
}

#[test]
fn packets_that_a_queue_marked_slow_a_sender_down_as_lost_ones_do() {
    let seconds = |link: Link| {
        let rate = RateControl::Tcp {
            initial: Rate::from_bits_per_sec(64_000),
            min: Rate::from_bits_per_sec(16_000),
            max: Rate::from_mbit(100),
        };
        let config = SenderConfig { rate, ..SenderConfig::default() };
        let path = Link { rate: Rate::from_mbit(100), delay: Duration::from_millis(20), ..link };
        let first = Link { loss: 0.0, marked: 0.0, ..path };
        let mut net = Net::star(12, config, &ReceiverConfig::default(), &[first, path]);
        let file = contents(2_000_000, 12);
        send(&mut net, 0, &file);
        assert!(net.run(Duration::from_secs(300), |net| objects(net, 1) == [file.clone()]));
        net.now.since(Instant::ZERO).as_secs_f64()
    };
    let clear = seconds(Link::default());
    let lost = seconds(Link { loss: 0.02, ..Link::default() });
    let marked = seconds(Link { marked: 0.02, ..Link::default() });
    assert!(marked > 2.0 * clear, "{clear} s, {marked} s with marks");
    assert!((0.5..1.5).contains(&(marked / lost)), "{lost} s with losses, {marked} s with marks");
}

#[test]
fn a_silent_receiver_is_not_woken_for_ever_by_a_probe() {
    let rate = RateControl::Tcp {
        initial: Rate::from_mbit(1),
        min: Rate::from_bits_per_sec(16_000),
        max: Rate::from_mbit(10),
    };
    let silent = ReceiverConfig { silent: true, ..ReceiverConfig::default() };
    let config = SenderConfig { rate, ..SenderConfig::default() };
    let mut net = Net::star(10, config, &silent, &[Link::default(), lossy(0.0)]);
    let file = contents(100_000, 10);
    send(&mut net, 0, &file);
    // The network fails where a deadline does not lie ahead.
    assert!(net.run(Duration::from_secs(30), |net| objects(net, 1) == [file.clone()]));
    assert_eq!(net.members[1].packets, 0);
}
