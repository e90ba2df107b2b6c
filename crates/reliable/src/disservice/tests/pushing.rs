//! Members that bring each other what they lack without being asked, and that hear each other do so.

use hopcast_core::{Duration, Instant};

use super::super::config::Replication;
use super::*;
use crate::testing::contents;

/// Messages that are published, one in 200 ms.
const MESSAGES: u64 = 300;
const EVERY: Duration = Duration::from_millis(200);

fn pushing() -> Policy {
    Policy { replication: Replication::Push, ..policy() }
}

fn packets(net: &Network) -> u64 {
    net.members.iter().map(|member| member.packets).sum()
}

fn lacking(net: &Network) -> Vec<(usize, usize)> {
    let held = net.members.iter().map(|member| member.session.messages());
    held.enumerate().filter(|&(_, held)| held < MESSAGES as usize).collect()
}

/// A publisher on a segment whose members lose a hundredth each, until all hold all.
fn published(members: usize, subscription: Option<Subscription>) -> Network {
    let mut net = Network::new(1);
    for member in 0..members {
        join(&mut net, config(member, subscription, &pushing()), link(0.01));
    }
    for at in 0..MESSAGES {
        publish(&mut net, 0, &contents(1000, at));
        net.run(EVERY * (at + 1), |_| false);
    }
    net.run(EVERY * MESSAGES + Duration::from_secs(60), |net| lacking(net).is_empty());
    assert_eq!(lacking(&net), []);
    net
}

/// All that held a message pushed it to whoever lacked it: fifty members sent fifty times as much as one.
#[test]
fn what_one_that_comes_late_lacks_is_pushed_once_however_many_hold_it() {
    for members in [3, 20, 50] {
        let mut net = published(members, Some(everything()));
        let before = packets(&net);
        join(&mut net, config(members, None, &pushing()), link(0.01));
        let until = net.now.since(Instant::ZERO) + Duration::from_secs(60);
        net.run(until, |net| lacking(net).is_empty());
        assert_eq!(lacking(&net), []);
        let sent = packets(&net) - before;
        assert!(sent < MESSAGES * 6 / 5, "{sent} packets for {MESSAGES} messages of {members} members");
    }
}

/// Each message is published once, and what some lost of it is pushed once or twice: that some lost it grows with the
/// members, up to all messages, and what each of these costs does not.
#[test]
fn what_some_of_many_lost_is_pushed_by_few() {
    for (subscription, per_message) in [(None, [1.8, 2.2, 3.3]), (Some(everything()), [1.8, 2.2, 2.8])] {
        for (members, per_message) in [10, 20, 50].into_iter().zip(per_message) {
            let sent = packets(&published(members, subscription)) as f64 / MESSAGES as f64;
            assert!(sent < per_message, "{sent} packets a message among {members}");
        }
    }
}

/// A summary in the middle of a message put off whoever pushed it, so that it paused before the next.
#[test]
fn whoever_pushes_long_messages_pauses_for_no_summary() {
    const LONG: usize = 30;
    let summaries = (Duration::from_millis(200), Duration::from_millis(200));
    let policy = Policy { summaries, ..pushing() };
    let mut net = network(1, 2, 0, &policy, 0.0);
    (0..LONG).for_each(|at| publish(&mut net, 0, &contents(16_000, at as u64)));
    net.run(Duration::from_secs(10), |_| false);
    let before = packets(&net);
    let late = join(&mut net, config(3, None, &policy), link(0.0));
    net.run(Duration::from_secs(20), |net| packets(net) > before + 20);
    let (began, sent) = (net.now, net.bytes());
    net.run(Duration::from_secs(20), |net| net.members[late].session.messages() >= LONG);
    let (took, takes) = (net.now.since(began), MBIT.time_for(net.bytes() - sent));
    assert!(took < takes.mul_f64(1.02), "{took:?} for what takes {takes:?}");
}

/// Of many runs a summary has the latest, and what lay before those was never brought.
#[test]
fn a_holder_of_more_runs_than_a_summary_has_room_for_is_brought_what_it_lacks_before_them() {
    // They say nothing while the publisher is there.
    let policy = Policy { summaries: (Duration::from_secs(8), Duration::from_secs(8)), ..pushing() };
    for published in [70, 72, 74, 130] {
        let mut net = network(3, 0, 2, &policy, 0.0);
        for number in 0..published {
            // One lacks the first forty, and both each second one of the rest.
            let is_lost = [number >= 40 && number % 2 == 0, number < 40 || number % 2 == 0];
            (1..3).for_each(|to| _ = net.loss_between.insert((0, to), f64::from(is_lost[to - 1])));
            publish(&mut net, 0, &contents(100, number));
            net.run(Duration::from_millis(20) * (number + 1), |_| false);
        }
        net.members[0].is_cut = true;
        let held = |net: &Network, member: usize| net.members[member].session.messages() as u64;
        let all = 40 + (published - 40) / 2;
        assert_eq!((held(&net, 1), held(&net, 2)), (all, all - 40));
        let (began, before) = (net.now, net.members[1].packets);
        net.run(Duration::from_secs(300), |net| held(net, 2) == all);
        assert_eq!((held(&net, 1), held(&net, 2)), (all, all), "{published} were published");
        // A summary of the latest runs says nothing new of those that were brought since.
        net.run(net.now.since(Instant::ZERO) + Duration::from_secs(120), |_| false);
        let summaries = net.now.since(began).as_secs_f64() / policy.summaries.0.as_secs_f64();
        let sent = (net.members[1].packets - before) as f64;
        assert!(
            sent <= 40.0 + summaries * 1.1 + 2.0,
            "{sent} packets, {summaries:.0} summaries, {published} published"
        );
    }
}
