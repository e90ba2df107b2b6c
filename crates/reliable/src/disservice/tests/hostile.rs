//! Packets that no honest member sends: what they cost is bounded, and the others are unharmed.

use std::sync::Arc;

use hopcast_core::{Buffer, Duration, Instant};

use super::super::object::{MAX_NAME, Metadata, digest, tag};
use super::super::wire::{
    Data, MessageId, Missing, Packet, Request, Sent, Series, Shape, Summary, Symbol, Want,
};
use super::*;
use crate::testing::contents;

const FORGER: MemberId = MemberId { node: 99, run: 1 };

fn from(transmission: u16) -> Sent {
    Sent { member: FORGER, transmission }
}

fn message(publisher: usize, sequence: u32) -> MessageId {
    MessageId { group: tag(&topic()), publisher: MemberId { node: publisher as u32 + 1, run: 1 }, sequence }
}

fn forge(net: &mut Network, packet: &Packet<'_>) {
    for member in 0..net.members.len() {
        net.forge(member, 200, &packet.emit());
    }
}

fn data(id: MessageId, shape: Shape, index: u32, bytes: &[u8]) -> Packet<'_> {
    let symbol = Symbol::Fragment { index, bytes };
    let (is_repair, is_last, is_local, lifetime) = (false, false, true, None);
    Packet::Data(Data { from: from(1), id, shape, is_repair, is_last, is_local, lifetime, symbol })
}

/// The messages of member 0 arrive at 1 and 2 while somebody does something every 10 ms for some seconds.
fn arrive_in_spite_of(net: &mut Network, mut forging: impl FnMut(&mut Network, u64)) {
    let messages: Vec<_> = (0..10).map(|at| contents(3000, at)).collect();
    for step in 0..500 {
        if step % 50 == 0 {
            publish(net, 0, &messages[step as usize / 50]);
        }
        forging(net, step);
        net.run(Duration::from_millis(10 * step), |_| false);
    }
    net.run(Duration::from_secs(60), |net| (1..=2).all(|member| net.members[member].up.len() >= 10));
    for member in 1..=2 {
        let found = counted(received(net, member));
        messages.iter().for_each(|message| assert_eq!(found.get(message), Some(&1), "member {member}"));
    }
}

/// The object of a message to the group of all tests.
fn object(payload: &[u8]) -> Vec<u8> {
    let metadata = Metadata { group: topic(), name: None, is_datagram: false, history: 0 };
    [&metadata.emit()[..], payload].concat()
}

#[test]
fn requests_for_everything_cost_no_more_than_the_rate() {
    let mut net = network(1, 2, 1, &policy(), 0.1);
    arrive_in_spite_of(&mut net, |net, step| {
        let servers = vec![MemberId { node: 1 + (step % 4) as u32, run: 1 }];
        let missing = if step % 2 == 0 {
            Missing::Whole((1 << 30) - 1)
        } else {
            Missing::Fragments(std::iter::once(0..1 << 30).collect())
        };
        let wants = vec![Want { id: message(0, 0), missing }; 20];
        let request = Request {
            from: from(step as u16),
            is_again: step % 2 == 0,
            neighbours: 0,
            heard: 0,
            servers,
            wants,
        };
        forge(net, &Packet::Request(request));
    });
    let took = net.now.as_secs_f64();
    let sent = net.bytes() as f64;
    // Each of four members at 1 Mbit/s.
    assert!(sent <= 4.0 * 125_000.0 * took + 10_000.0, "{sent} bytes in {took} s");
}

#[test]
fn messages_that_are_never_whole_do_not_drive_out_what_is_wanted() {
    let policy = Policy { cache: 256 << 10, ..policy() };
    let mut net = network(2, 2, 1, &policy, 0.1);
    arrive_in_spite_of(&mut net, |net, step| {
        for at in 0..4 {
            // Of groups that nobody subscribes to, each of a megabyte or of less.
            let length = if at == 0 { 1 << 29 } else { 100_000 };
            let shape = Shape { length, fragment: 1000, chunk: 64, digest: 1 };
            let id = MessageId { group: 5, sequence: step as u32 * 4 + at, ..message(9, 0) };
            forge(net, &data(id, shape, 1, &[0; 1000]));
        }
    });
    for member in 0..4 {
        assert!(net.members[member].session.held() <= 256 << 10);
        assert!(net.counter(member, "cache_dropped") > 100 && net.counter(member, "units_refused") >= 400);
        let dropped: Vec<_> = net.members[member].session.dropped().collect();
        assert!(
            dropped.len() == 64 && dropped.iter().all(|dropped| !dropped.was_wanted && dropped.id.group == 5)
        );
    }
}

#[test]
fn what_is_dropped_for_want_of_room_holds_back_nothing_behind_it() {
    let policy = Policy { cache: 64 << 10, ..policy() };
    let mut net = Network::new(8);
    join(&mut net, config(0, Some(in_order()), &policy), link(0.0));
    let unfinished = Shape { length: 30_000, fragment: 1000, chunk: 64, digest: 1 };
    let object = object(b"whole");
    let whole = Shape { length: object.len() as u32, fragment: 1000, chunk: 64, digest: digest(&object) };
    for sequence in 0..100 {
        let id = message(1, sequence);
        let packet = match sequence {
            1 => data(id, whole, 0, &object),
            _ => data(id, unfinished, 0, &[0; 1000]),
        };
        net.forge(0, 1, &packet.emit());
        let dropped = net.counter(0, "cache_dropped");
        // The first message is the first to be dropped, and the second had waited for it.
        assert_eq!(
            received(&net, 0).len(),
            usize::from(dropped > 0),
            "{dropped} dropped by number {sequence}"
        );
    }
    assert_eq!(received(&net, 0), [b"whole"]);
}

#[test]
fn of_two_messages_with_one_name_the_first_counts() {
    let mut net = network(3, 2, 1, &policy(), 0.0);
    let forged = Shape { length: 10, fragment: 1000, chunk: 64, digest: digest(&[7; 10]) };
    arrive_in_spite_of(&mut net, |net, step| {
        // Its number, and one that it has sent a while ago.
        let packet = data(message(0, (step / 50).saturating_sub(1) as u32), forged, 0, &[7; 10]);
        if step > 100 {
            forge(net, &packet);
        }
    });
    assert!((0..4).all(|member| net.counter(member, "message_conflicts") > 100));
}

#[test]
fn a_fragment_that_is_not_the_message_s_is_found_and_all_of_it_fetched_again() {
    let policy = policy();
    let mut net = network(4, 1, 1, &policy, 0.0);
    let payload = contents(3000, 1);
    // The second packet of the message is forged, and arrives before the real one.
    let object = object(&payload);
    let fragment = object.len().div_ceil(3) as u16;
    let shape = Shape { length: object.len() as u32, fragment, chunk: 3, digest: digest(&object) };
    let bytes = vec![1; usize::from(fragment)];
    net.forge(1, 200, &data(message(0, 0), shape, 1, &bytes).emit());
    publish(&mut net, 0, &payload);
    net.run(Duration::from_secs(20), |net| !net.members[1].up.is_empty());
    assert_eq!(received(&net, 1), [payload]);
    assert_eq!(net.counter(1, "messages_damaged"), 1);
}

#[test]
fn lies_about_what_exists_cost_few_packets() {
    let mut net = network(5, 2, 1, &policy(), 0.1);
    arrive_in_spite_of(&mut net, |net, step| {
        let series = |publisher: u32| Series {
            said: None,
            group: tag(&topic()),
            publisher: MemberId { node: publisher, run: 1 },
            is_wanted: true,
            newest: (1 << 19) + step as u32,
            held: std::iter::once(0..1 << 19).collect(),
        };
        // A publisher that there is, one that there is not, and the members themselves.
        let series = [1, 77, 2, 3].map(series).to_vec();
        let summary = Summary { from: from(step as u16), neighbours: 3, heard: vec![], is_all: true, series };
        forge(net, &Packet::Summary(summary));
    });
    let sent: u64 = (0..4).map(|member| net.counter(member, "nacks_sent")).sum();
    // Chosen: twice what members send that nobody lies to, and a back-off's worth for each lie that is believed.
    assert!(sent < 300, "{sent} requests");
}

#[test]
fn names_of_megabytes_are_refused_where_they_are_published() {
    let mut net = network(7, 1, 0, &policy(), 0.0);
    let name = |len| Arc::<[u8]>::from(vec![b'a'; len]);
    for (len, refused) in [(2 << 20, 1), (MAX_NAME + 1, 2), (MAX_NAME, 2)] {
        let unit = hopcast_core::Message::new(0, Buffer::copy_from(b"payload")).named(name(len));
        net.give(0, Item::Message(unit));
        assert_eq!(net.counter(0, "units_refused"), refused, "a name of {len} bytes");
    }
    let group = Metadata { group: name(2 << 20), name: None, is_datagram: false, history: 0 };
    let now = net.now;
    assert_eq!(net.members[0].session.publish(now, &group, b"payload"), None);
    assert_eq!((net.counter(0, "units_refused"), net.members[0].session.messages()), (3, 1));
    net.run(Duration::from_secs(5), |_| false);
    let [(_, Item::Message(unit))] = &net.members[1].up[..] else { panic!("{:?}", net.members[1].up) };
    assert_eq!((unit.name.as_ref(), &unit.payload[..]), (Some(&name(MAX_NAME)), &b"payload"[..]));
}

/// Objects whose metadata are cut off, or longer than any, or recommend a history that nobody can have, and that have
/// the checksum that they say.
#[test]
fn metadata_that_are_forged_are_counted_and_cost_few_requests() {
    let policy = policy();
    let mut net = Network::new(7);
    let subscription = Subscription { join: Join::Object, ..Subscription::default() };
    for member in 0..4 {
        let subscription = (1..=2).contains(&member).then_some(subscription);
        join(&mut net, config(member, subscription, &policy), link(0.1));
    }
    let other = Metadata { group: b"recom"[..].into(), name: None, is_datagram: false, history: u32::MAX };
    let forged = [[vec![2], vec![255; 50]].concat(), [vec![2], vec![255; 900]].concat(), other.emit()];
    arrive_in_spite_of(&mut net, |net, step| {
        for (object, publisher) in forged.iter().zip(77..) {
            let shape =
                Shape { length: object.len() as u32, fragment: 1000, chunk: 1, digest: digest(object) };
            let id = message(publisher, (1 << 29) + step as u32);
            forge(net, &data(id, shape, 0, object));
        }
    });
    for member in 1..=2 {
        assert_eq!(received(&net, member).len(), 10, "nothing that was forged");
        assert_eq!(net.counter(member, "messages_damaged"), 1000);
        assert!(net.members[member].session.held() < 2 << 20);
    }
    let sent: u64 = (0..4).map(|member| net.counter(member, "nacks_sent")).sum();
    // Chosen: as where others lie about what exists.
    assert!(sent < 300, "{sent} requests");
}

/// Two machines with one identity, as where a node's configuration was copied.
#[test]
fn two_publishers_with_one_name_harm_no_third() {
    let mut net = network(8, 2, 1, &policy(), 0.1);
    let twin = join(&mut net, config(0, None, &policy()), link(0.1));
    let publishers = [0, 3, twin];
    let payload = |publisher: usize, at: u64| contents(2500, 100 * publisher as u64 + at);
    for at in 0..10 {
        publishers.iter().for_each(|&publisher| publish(&mut net, publisher, &payload(publisher, at)));
        net.run(Duration::from_millis(500) * (at + 1), |_| false);
    }
    net.run(Duration::from_secs(60), |_| false);
    let of = |publisher| (0..10).map(|at| payload(publisher, at)).collect::<Vec<_>>();
    for member in 1..=2 {
        let found = counted(received(&net, member));
        assert!(of(3).iter().all(|message| found.get(message) == Some(&1)), "member {member}");
        // Of each name at most one, and none that is made of both.
        let named: Vec<_> = of(0).into_iter().zip(of(twin)).collect();
        let of_name = |(one, other): &(Vec<u8>, Vec<u8>)| {
            found.contains_key(one) as usize + found.contains_key(other) as usize
        };
        assert!(named.iter().all(|both| of_name(both) <= 1), "member {member}");
        let arrived: usize = named.iter().map(of_name).sum();
        assert_eq!((found.len(), found.values().sum::<usize>()), (10 + arrived, 10 + arrived));
        assert!(arrived >= 8, "{arrived} of member {member}");
        assert!(net.counter(member, "message_conflicts") > 10);
    }
    let (before, end) = (net.bytes(), net.now.since(Instant::ZERO) + Duration::from_secs(60));
    net.run(end, |_| false);
    // Chosen: summaries of five members, and requests for what one of the two has and the other is asked for.
    assert!(net.bytes() - before < 60_000, "{} bytes in a minute without news", net.bytes() - before);
}

#[test]
fn a_clock_that_jumps_ahead_expires_what_is_over_and_nothing_else() {
    let policy = Policy { lifetime: Some(Duration::from_secs(600)), ..policy() };
    let mut net = network(6, 1, 1, &policy, 0.1);
    let wait = |net: &mut Network, seconds| {
        let until = net.now.since(Instant::ZERO) + Duration::from_secs(seconds);
        net.run(until, |_| false);
    };
    publish(&mut net, 0, &contents(5000, 1));
    wait(&mut net, 10);
    net.jump(Duration::from_secs(300));
    publish(&mut net, 0, &contents(5000, 2));
    wait(&mut net, 10);
    assert!((0..3).all(|member| net.members[member].session.messages() == 2));
    // The first is over, and the second has some minutes left.
    net.jump(Duration::from_secs(400));
    assert!((0..3).all(|member| net.counter(member, "cache_expired") == 1));
    let late = join(&mut net, config(3, Some(everything()), &policy), link(0.1));
    publish(&mut net, 0, &contents(5000, 3));
    wait(&mut net, 60);
    assert_eq!(counted(received(&net, late)), counted(vec![contents(5000, 2), contents(5000, 3)]));
    assert_eq!(received(&net, 1).len(), 3);
    net.jump(Duration::from_secs(3600));
    assert!((0..4).all(|member| net.members[member].session.held() == 0));
    assert!((0..3).all(|member| net.counter(member, "cache_expired") == 3));
}

#[test]
fn a_clock_that_jumps_ahead_loses_nothing() {
    let mut net = network(6, 2, 1, &policy(), 0.1);
    for at in 0..5 {
        publish(&mut net, 0, &contents(5000, at));
        let until = net.now.since(Instant::ZERO) + Duration::from_millis(300);
        net.run(until, |_| false);
        net.jump(Duration::from_secs(3600));
    }
    let until = net.now.since(Instant::ZERO) + Duration::from_secs(60);
    net.run(until, |net| (1..=2).all(|member| net.members[member].up.len() >= 5));
    assert!((1..=2).all(|member| received(&net, member).len() == 5));
}

/// Twenty members, so that they take turns: somebody asks servers for all that there is and is not, answers in others'
/// names as if they had sent what comes later, and invents members.
#[test]
fn many_members_are_unharmed_by_orders_and_answers_that_are_forged() {
    let mut net = network(1, 20, 0, &policy(), 0.02);
    arrive_in_spite_of(&mut net, |net, step| {
        let server = MemberId { node: 1 + (step % 21) as u32, run: 1 };
        let whole = |sequence, count| Want { id: message(0, sequence), missing: Missing::Whole(count) };
        let wants = vec![whole(0, (1 << 30) - 1), whole(step as u32 % 12, 1), whole(1 << 29, 1 << 29)];
        let (is_again, heard, servers) = (false, 0, vec![server]);
        let forger = Sent { member: MemberId { node: 99, run: step as u16 % 40 }, transmission: step as u16 };
        let request = Request { from: forger, is_again, neighbours: 3, heard, servers, wants };
        forge(net, &Packet::Request(request));
        let shape = Shape { length: 1 << 27, fragment: 1, chunk: 64, digest: 0 };
        let symbol = Symbol::Fragment { index: 0, bytes: &[0] };
        let id = message(0, 1000 + step as u32);
        let (is_repair, is_last, is_local, lifetime) = (true, true, true, None);
        let sender = Sent { member: server, transmission: step as u16 };
        forge(
            net,
            &Packet::Data(Data { from: sender, id, shape, is_repair, is_last, is_local, lifetime, symbol }),
        );
    });
}
