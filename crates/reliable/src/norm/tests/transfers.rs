//! Objects, streams and messages, with and without loss.

use std::net::SocketAddr;
use std::sync::Arc;

use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Message, Rate, StreamId, StreamItem};
use proptest::prelude::*;

use super::net::{Link, Net, address, contents, group};
use crate::Proactive;
use crate::norm::{Framing, Join, RateControl, ReceiverConfig, SenderConfig};

pub(super) const STREAM: StreamId = StreamId(0);

/// Settings of a sender at 4 Mbit/s.
pub(super) fn sender() -> SenderConfig {
    SenderConfig { rate: RateControl::Fixed(Rate::from_mbit(4)), ..SenderConfig::default() }
}

pub(super) fn lossy(loss: f64) -> Link {
    Link { loss, ..Link::default() }
}

/// Settings of a receiver of messages.
pub(super) fn of_messages() -> ReceiverConfig {
    ReceiverConfig { framing: Framing::Detect, ..ReceiverConfig::default() }
}

/// The objects that a member was handed.
pub(super) fn objects(net: &Net, member: usize) -> Vec<Vec<u8>> {
    let object = |(_, item): &(Instant, Item)| match item {
        Item::Message(message) => Some(message.payload.to_vec()),
        _ => None,
    };
    net.members[member].up.iter().filter_map(object).collect()
}

/// The datagrams that a member was handed, each with the address of its sender.
pub(super) fn messages(net: &Net, member: usize) -> Vec<(SocketAddr, Vec<u8>)> {
    let message = |(_, item): &(Instant, Item)| match item {
        Item::Datagram(datagram) => Some((datagram.remote, datagram.payload.to_vec())),
        _ => None,
    };
    net.members[member].up.iter().filter_map(message).collect()
}

/// The bytes of streams that a member was handed, and whether they ended.
pub(super) fn bytes(net: &Net, member: usize) -> (Vec<u8>, bool) {
    let (mut found, mut ended) = (Vec::new(), false);
    for (_, item) in &net.members[member].up {
        match item {
            Item::Stream(_, StreamItem::Data(data)) => found.extend_from_slice(data),
            Item::Stream(_, StreamItem::Finish) => ended = true,
            _ => {}
        }
    }
    (found, ended)
}

/// Writes to a stream as it grants, and ends it.
pub(super) fn write(net: &mut Net, member: usize, data: &[u8]) {
    net.give(member, Item::Stream(STREAM, StreamItem::Open { local: address(member), remote: group() }));
    let (mut written, mut used) = (0, 0);
    while written < data.len() {
        let credit = |(_, item): &(Instant, Item)| match item {
            Item::Stream(STREAM, StreamItem::Credit(credit)) => *credit as usize,
            _ => 0,
        };
        let granted: usize = net.members[member].up.iter().map(credit).sum();
        let piece = (granted - used).min(data.len() - written);
        if piece > 0 {
            let bytes = Buffer::copy_from(&data[written..written + piece]);
            net.give(member, Item::Stream(STREAM, StreamItem::Data(bytes)));
            (written, used) = (written + piece, used + piece);
        }
        for receiver in 1..net.members.len() {
            grant(net, receiver);
        }
        let until = net.now.since(Instant::ZERO) + Duration::from_millis(20);
        net.run(until, |_| false);
        assert!(until < Duration::from_secs(600), "{written} of {} written", data.len());
    }
    net.give(member, Item::Stream(STREAM, StreamItem::Finish));
}

/// Grants a receiver's streams what they like.
pub(super) fn grant(net: &mut Net, receiver: usize) {
    let opened = |(_, item): &(Instant, Item)| match item {
        Item::Stream(id, StreamItem::Open { .. }) => Some(*id),
        _ => None,
    };
    let streams: Vec<_> = net.members[receiver].up.iter().filter_map(opened).collect();
    for id in streams {
        net.give(receiver, Item::Stream(id, StreamItem::Credit(1 << 20)));
    }
}

#[test]
fn a_file_comes_with_its_name_and_a_message_without_and_both_with_their_sender() {
    let mut net = Net::new(1);
    let senders = [0, 1].map(|_| net.add(Some(sender()), None, lossy(0.1), 1));
    let receiver = net.add(None, Some(ReceiverConfig::default()), lossy(0.1), 1);
    for (number, bytes) in [contents(5000, 1), Vec::new()].iter().enumerate() {
        let plain = Message::new(0, Buffer::copy_from(bytes));
        net.give(senders[0], Item::Message(plain.clone()));
        net.give(senders[1], Item::Message(plain.named(format!("chart {number}").into_bytes())));
    }
    assert!(net.run(Duration::from_secs(60), |net| objects(net, receiver).len() == 4));
    let message = |(_, item): &(Instant, Item)| match item {
        Item::Message(Message { name, sender, payload, .. }) => {
            Some((*sender, name.as_deref().map(<[u8]>::to_vec), payload.len()))
        }
        _ => None,
    };
    let mut found: Vec<_> = net.members[receiver].up.iter().filter_map(message).collect();
    found.sort();
    let [unnamed, named] = senders.map(|sender| Some(address(sender)));
    let chart = |number: usize| Some(format!("chart {number}").into_bytes());
    let expected = [(unnamed, None, 0), (unnamed, None, 5000), (named, chart(0), 5000), (named, chart(1), 0)];
    assert_eq!(found, expected);
}

#[test]
fn a_stream_arrives_whole_and_in_order_at_each_receiver() {
    let links = [Link::default(), lossy(0.1), lossy(0.3), lossy(0.0)];
    let small = SenderConfig { segment: 1000, source: 16, parity: 16, buffer: 100_000, ..sender() };
    let mut net = Net::star(1, small, &ReceiverConfig::default(), &links);
    let data = contents(1_000_000, 1);
    write(&mut net, 0, &data);
    let whole = |net: &Net| (1..=3).all(|member| bytes(net, member).1);
    (1..=3).for_each(|member| grant(&mut net, member));
    assert!(net.run(Duration::from_secs(100), whole));
    (1..=3).for_each(|member| assert!(bytes(&net, member).0 == data, "member {member}"));
    assert_eq!(net.counter(0, "repairs_given_up"), 0);
}

#[test]
fn messages_keep_their_borders_their_order_and_the_name_of_their_sender() {
    let links = [Link::default(), lossy(0.2), lossy(0.2)];
    let mut net = Net::star(2, sender(), &of_messages(), &links);
    let sent: Vec<Vec<u8>> = (0..300).map(|number| contents(number * 7, number as u64)).collect();
    for (number, message) in sent.iter().enumerate() {
        let datagram = Datagram::new(address(0), group(), Buffer::copy_from(message));
        net.give(0, Item::Datagram(datagram));
        net.run(Duration::from_millis(5 * number as u64), |_| false);
    }
    let all = |net: &Net| (1..=2).all(|member| messages(net, member).len() == sent.len());
    assert!(net.run(Duration::from_secs(60), all));
    for member in 1..=2 {
        let found = messages(&net, member);
        assert!(found.iter().all(|(from, _)| *from == address(0)));
        assert!(found.into_iter().map(|(_, message)| message).eq(sent.iter().cloned()));
    }
}

#[test]
fn a_lost_message_is_repaired_within_a_few_round_trips_while_nothing_follows() {
    // One way takes 10 ms, and up to six packets in a row are lost of the forty times.
    let mut worst = Duration::ZERO;
    for seed in 0..40 {
        let config = SenderConfig { group_size: Some(1), ..sender() };
        let mut net = Net::star(seed, config, &of_messages(), &[Link::default(), lossy(0.3)]);
        let datagram = Datagram::new(address(0), group(), Buffer::copy_from(b"alone"));
        net.give(0, Item::Datagram(datagram));
        assert!(net.run(Duration::from_secs(10), |net| !messages(net, 1).is_empty()), "seed {seed}");
        worst = worst.max(net.now.since(Instant::ZERO));
    }
    assert!(worst < Duration::from_millis(1_500), "{worst}");
}

#[test]
fn without_parity_symbols_are_repeated() {
    let links = [Link::default(), lossy(0.2), lossy(0.2)];
    let mut net = Net::star(3, SenderConfig { parity: 0, ..sender() }, &ReceiverConfig::default(), &links);
    let file = contents(300_000, 3);
    let now = net.now;
    net.members[0].session.send(now, Arc::from(&file[..]), None, false);
    assert!(net.run(Duration::from_secs(30), |net| (1..=2).all(|member| objects(net, member).len() == 1)));
    assert_eq!((objects(&net, 1), objects(&net, 2)), (vec![file.clone()], vec![file]));
}

#[test]
fn silent_receivers_live_on_parity_that_nobody_asked_for() {
    let silent = ReceiverConfig { silent: true, ..ReceiverConfig::default() };
    let config = SenderConfig { proactive: Proactive::Fixed(40), ..sender() };
    let mut net = Net::star(4, config, &silent, &[Link::default(), lossy(0.2), lossy(0.2)]);
    let file = contents(300_000, 4);
    let now = net.now;
    net.members[0].session.send(now, Arc::from(&file[..]), None, false);
    assert!(
        net.run(Duration::from_secs(30), |net| (1..=2).all(|member| objects(net, member) == [file.clone()]))
    );
    net.run(Duration::from_secs(60), |_| false);
    assert_eq!(net.members[1].packets + net.members[2].packets, 0);
}

#[test]
fn objects_of_any_size_arrive_with_what_is_said_of_them() {
    let mut net = Net::star(5, sender(), &ReceiverConfig::default(), &[Link::default(), lossy(0.3)]);
    let sizes = [0, 1, 1399, 1400, 1401, 64 * 1400, 64 * 1400 + 1, 100_000];
    for (number, size) in sizes.into_iter().enumerate() {
        let bytes = Arc::from(&contents(size, number as u64)[..]);
        let info = (number % 2 == 0).then(|| Arc::from(&b"a name"[..]));
        let now = net.now;
        assert!(net.members[0].session.send(now, bytes, info, false).is_some());
    }
    assert!(net.run(Duration::from_secs(60), |net| objects(net, 1).len() == sizes.len()));
    let mut found: Vec<usize> = objects(&net, 1).iter().map(Vec::len).collect();
    found.sort_unstable();
    assert_eq!(found, sizes);
}

#[test]
fn a_receiver_that_was_cut_off_for_seconds_completes() {
    let mut net =
        Net::star(6, sender(), &ReceiverConfig::default(), &[Link::default(), lossy(0.1), lossy(0.1)]);
    let file = contents(1_000_000, 6);
    let now = net.now;
    net.members[0].session.send(now, Arc::from(&file[..]), None, false);
    net.run(Duration::from_millis(1_000), |_| false);
    net.members[2].is_cut = true;
    net.run(Duration::from_millis(5_000), |_| false);
    assert_eq!(objects(&net, 1).len(), 1);
    net.members[2].is_cut = false;
    assert!(net.run(Duration::from_secs(30), |net| objects(net, 2) == [file.clone()]));
}

#[test]
fn a_sender_with_nothing_to_say_is_quiet() {
    let mut net = Net::star(7, sender(), &ReceiverConfig::default(), &[Link::default(), lossy(0.1)]);
    let now = net.now;
    net.members[0].session.send(now, Arc::from(&contents(10_000, 7)[..]), None, false);
    net.run(Duration::from_secs(60), |_| false);
    let before = net.bytes();
    net.run(Duration::from_secs(600), |_| false);
    assert_eq!((objects(&net, 1).len(), net.bytes()), (1, before));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_sent_arrives_whatever_is_lost(
        seed in 0..u64::MAX,
        sizes in proptest::collection::vec(0..60_000_usize, 1..6),
        losses in proptest::collection::vec(0.0..0.6, 1..5),
        at_sender in 0.0..0.5,
        segment in 100..1400_u16,
        source in 1..80_u16,
        parity in 0..80_u16,
        unicast in any::<bool>(),
        fixed in proptest::option::of(0..20_u16),
        delay in 0..100_u64,
    ) {
        let proactive = fixed.map_or(Proactive::Adaptive, Proactive::Fixed);
        let config =
            SenderConfig { segment, source, parity, proactive, unicast_feedback: unicast, ..sender() };
        // Of an object of which nothing at all was heard, only those know that it was meant for them who want all. And
        // where three of four requests are in vain, one of a few hundred blocks is given up after twenty.
        let receiver = ReceiverConfig {
            unicast_feedback: unicast,
            join: Join::Everything,
            robust: 1000,
            ..ReceiverConfig::default()
        };
        let link = |loss| Link { loss, delay: Duration::from_millis(delay), ..Link::default() };
        let links: Vec<Link> = std::iter::once(at_sender).chain(losses).map(link).collect();
        let mut net = Net::star(seed, config, &receiver, &links);
        let files: Vec<Vec<u8>> =
            sizes.iter().enumerate().map(|(number, &size)| contents(size, number as u64)).collect();
        for file in &files {
            let now = net.now;
            prop_assert!(net.members[0].session.send(now, Arc::from(&file[..]), None, false).is_some());
        }
        let all = |net: &Net| (1..links.len()).all(|member| objects(net, member).len() == files.len());
        prop_assert!(net.run(Duration::from_secs(600), all));
        for member in 1..links.len() {
            let mut found = objects(&net, member);
            found.sort();
            let mut expected = files.clone();
            expected.sort();
            prop_assert!(found == expected);
        }
    }
}
