//! Networks that are cut, members that go, and members that begin again.

use hopcast_core::{Duration, Instant};

use super::super::config::{Forwarding, Replication};
use super::*;
use crate::testing::contents;

fn seconds(net: &Network, more: u64) -> Duration {
    net.now.since(Instant::ZERO) + Duration::from_secs(more)
}

fn messages(count: u64) -> Vec<Vec<u8>> {
    (0..count).map(|at| contents(2000 + 500 * at as usize, at)).collect()
}

#[test]
fn what_was_published_in_one_part_reaches_the_other_when_they_meet_and_the_publisher_is_gone() {
    for is_coded in [false, true] {
        let policy = Policy { is_coded, ..policy() };
        let mut net = network(1, 4, 4, &policy, 0.1);
        // The publisher, two subscribers and two others are a part; the rest are another.
        for member in [3, 4, 7, 8] {
            net.members[member].part = 1;
        }
        let messages = messages(10);
        messages.iter().for_each(|message| publish(&mut net, 0, message));
        net.run(Duration::from_secs(30), |_| false);
        assert_eq!(counted(received(&net, 1)), counted(messages.clone()));
        assert_eq!((received(&net, 3).len(), received(&net, 4).len()), (0, 0));
        net.members[0].is_cut = true;
        net.run(Duration::from_secs(40), |_| false);
        net.members.iter_mut().for_each(|member| member.part = 0);
        let met = net.now;
        let until = seconds(&net, 60);
        net.run(until, |net| (1..=4).all(|member| net.members[member].up.len() >= messages.len()));
        for member in 1..=4 {
            assert_eq!(counted(received(&net, member)), counted(messages.clone()), "member {member}");
        }
        let took = net.now.since(met);
        // The longest interval of summaries, after which they have heard of each other, and some times what 42 kB take.
        assert!(took < Duration::from_secs(10), "{took} after they met");
    }
}

#[test]
fn a_carrier_brings_messages_between_parts_that_never_meet() {
    // Members 0 and 1 here, 3 there; member 2 goes to and fro, and subscribes to nothing.
    for replication in [Replication::None, Replication::Pull, Replication::Push] {
        let policy =
            Policy { replication: replication.clone(), dead_after: Duration::from_secs(10), ..policy() };
        let mut net = network(2, 1, 2, &policy, 0.05);
        let subscriber = config(3, Some(everything()), &policy);
        restart(&mut net, 3, subscriber);
        net.members[3].part = 1;
        net.members[2].part = 2;
        let messages = messages(5);
        messages.iter().for_each(|message| publish(&mut net, 0, message));
        let mut place = 0;
        for _ in 0..10 {
            let until = seconds(&net, 20);
            net.run(until, |_| false);
            net.members[2].part = place;
            place = 1 - place;
        }
        let got = received(&net, 3);
        // Without replication it has only what it heard while it was there.
        let expected = if replication == Replication::None { vec![] } else { messages };
        assert_eq!(counted(got), counted(expected), "{replication:?}");
    }
}

#[test]
fn messages_cross_a_chain_of_members_by_each_controller() {
    for forwarding in
        [Forwarding::Probabilistic(1.0), Forwarding::WorldState, Forwarding::Stateful, Forwarding::Topology]
    {
        let policy = Policy { forwarding, replication: Replication::Pull, ..policy() };
        let mut net = network(3, 0, 4, &policy, 0.1);
        restart(&mut net, 4, config(4, Some(everything()), &policy));
        // Each hears only those beside it.
        for from in 0..5_usize {
            net.unheard.extend((0..5_usize).filter(|to| to.abs_diff(from) > 1).map(|to| (from, to)));
        }
        let messages = messages(5);
        net.run(Duration::from_secs(20), |_| false);
        messages.iter().for_each(|message| publish(&mut net, 0, message));
        let from = net.now;
        let until = seconds(&net, 60);
        net.run(until, |net| net.members[4].up.len() >= messages.len());
        assert_eq!(counted(received(&net, 4)), counted(messages.clone()), "{forwarding:?}");
        let forwarded: u64 = (0..5).map(|member| net.counter(member, "fragments_forwarded")).sum();
        assert!(forwarded > 20, "{forwarding:?}: {forwarded}");
        assert!(net.now.since(from) < Duration::from_secs(2), "{forwarding:?}: {}", net.now.since(from));
    }
}

#[test]
fn who_begins_again_has_its_cache_and_is_handed_nothing_twice() {
    let policy = policy();
    let mut net = Network::new(4);
    let of = |member, subscription| Config { has_store: true, ..config(member, subscription, &policy) };
    let configs = [of(0, None), of(1, Some(in_order())), of(2, None), of(3, Some(in_order()))];
    configs.iter().for_each(|config| _ = join(&mut net, config.clone(), link(0.2)));
    net.members[3].is_cut = true;
    let messages = messages(8);
    messages.iter().take(4).for_each(|message| publish(&mut net, 0, message));
    net.run(Duration::from_secs(20), |_| false);
    assert_eq!(received(&net, 1), messages[..4]);
    // All begin again, and the publisher goes on where it was.
    for member in [0, 1, 2] {
        restart(&mut net, member, configs[member].clone());
    }
    messages.iter().skip(4).for_each(|message| publish(&mut net, 0, message));
    let until = seconds(&net, 20);
    net.run(until, |_| false);
    assert!(received(&net, 1) == messages, "{} messages", received(&net, 1).len());
    // The publisher goes for good; the listener that has begun again serves.
    net.members[0].is_cut = true;
    net.members[3].is_cut = false;
    let until = seconds(&net, 60);
    net.run(until, |net| net.members[3].up.len() >= messages.len());
    assert!(received(&net, 3) == messages, "{} messages", received(&net, 3).len());
}

#[test]
fn who_begins_again_as_another_run_serves_what_it_published_before_and_is_not_handed_it() {
    let policy = policy();
    let mut net = Network::new(8);
    let of = |member| Config { has_store: true, ..config(member, Some(everything()), &policy) };
    (0..2).for_each(|member| _ = join(&mut net, of(member), link(0.1)));
    net.members[1].is_cut = true;
    let messages = messages(5);
    messages.iter().take(4).for_each(|message| publish(&mut net, 0, message));
    net.run(Duration::from_secs(5), |_| false);
    restart(&mut net, 0, Config { member: MemberId { node: 1, run: 2 }, ..of(0) });
    net.members[1].is_cut = false;
    publish(&mut net, 0, &messages[4]);
    let until = seconds(&net, 60);
    net.run(until, |net| net.members[1].up.len() >= messages.len());
    assert_eq!(counted(received(&net, 1)), counted(messages));
    assert_eq!(received(&net, 0).len(), 0, "they are its own");
    assert_eq!((net.members[0].session.messages(), net.members[0].session.unsent()), (5, 0));
}

#[test]
fn who_begins_again_and_lacks_room_drops_what_it_was_handed_first() {
    let policy = Policy { cache: 64 << 10, ..policy() };
    let mut net = Network::new(9);
    let of = |member| Config { has_store: true, ..config(member, Some(everything()), &policy) };
    (0..2).for_each(|member| _ = join(&mut net, of(member), link(0.0)));
    let publish_some = |net: &mut Network, numbers: std::ops::Range<u64>| {
        for at in numbers {
            publish(net, 0, &contents(6000, at));
            let until = seconds(net, 2);
            net.run(until, |_| false);
        }
    };
    publish_some(&mut net, 0..8);
    restart(&mut net, 1, of(1));
    publish_some(&mut net, 8..14);
    assert_eq!(received(&net, 1).len(), 14);
    let dropped: Vec<_> = net.members[1].session.dropped().map(|dropped| dropped.id.sequence).collect();
    assert_eq!(dropped, [0, 1, 2, 3]);
}

#[test]
fn what_has_expired_is_not_held_back_for_and_not_brought_on() {
    let policy = Policy { lifetime: Some(Duration::from_secs(10)), ..policy() };
    let mut net = network(5, 1, 1, &policy, 0.0);
    let late = config(3, Some(everything()), &policy);
    messages(3).iter().for_each(|message| publish(&mut net, 0, message));
    net.run(Duration::from_secs(9), |_| false);
    assert!(net.members[2].session.held() > 7500);
    net.run(Duration::from_secs(11), |_| false);
    assert_eq!(net.members[2].session.held(), 0);
    assert_eq!(net.counter(2, "cache_expired"), 3);
    let late = join(&mut net, late, link(0.0));
    let until = seconds(&net, 20);
    net.run(until, |_| false);
    assert_eq!((received(&net, late).len(), received(&net, 1).len()), (0, 3));
}

#[test]
fn a_late_member_gets_the_history_that_the_publisher_recommends() {
    let policy = Policy { history: 2, ..policy() };
    let mut net = network(6, 1, 0, &policy, 0.0);
    let all = messages(6);
    all.iter().take(5).for_each(|message| publish(&mut net, 0, message));
    net.run(Duration::from_secs(5), |_| false);
    let subscription = Subscription { order: Order::BySender, ..Subscription::default() };
    let late = join(&mut net, config(2, Some(subscription), &policy), link(0.0));
    let until = seconds(&net, 1);
    net.run(until, |_| false);
    publish(&mut net, 0, &all[5]);
    let until = seconds(&net, 10);
    net.run(until, |_| false);
    // It was told first of the fifth message, before which two are recommended.
    assert_eq!(received(&net, late), all[2..].to_vec());
}
