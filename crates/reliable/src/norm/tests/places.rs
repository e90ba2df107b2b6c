//! More senders than a receiver has places for.

use std::sync::Arc;

use hopcast_core::{Duration, Instant, Machine};

use super::net::{Link, Net, contents};
use super::transfers::{bytes, grant, lossy, objects, sender, write};
use crate::Join;
use crate::norm::wire::{Body, Command, Data, Fec, Flags, Fti, Header, Message, NodeId, PayloadId};
use crate::norm::{ReceiverConfig, SenderConfig};

/// A group in which the last member receives, and has places for some of the others.
fn group_of(seed: u64, senders: usize, receiver: ReceiverConfig) -> (Net, usize) {
    let mut net = Net::new(seed);
    for number in 0..senders {
        net.add(Some(sender()), None, Link::default(), number as u16 + 5);
    }
    let receiver = net.add(None, Some(receiver), lossy(0.1), 1);
    (net, receiver)
}

fn places(senders: usize) -> ReceiverConfig {
    ReceiverConfig { senders, ..ReceiverConfig::default() }
}

fn send(net: &mut Net, member: usize, file: &[u8]) {
    let now = net.now;
    assert!(net.members[member].session.send(now, Arc::from(file), None, true).is_some());
}

fn files(number: usize, len: usize) -> Vec<Vec<u8>> {
    (0..number).map(|seed| contents(len, seed as u64)).collect()
}

fn has_all(net: &Net, receiver: usize, files: &[Vec<u8>]) -> bool {
    let found = objects(net, receiver);
    files.iter().all(|file| found.contains(file))
}

#[test]
fn each_has_its_turn_and_all_files_arrive_once() {
    for (places_, senders) in [(1, 2), (1, 5), (2, 3), (3, 8)] {
        let (mut net, receiver) = group_of(1, senders, places(places_));
        let files = files(senders, 300_000);
        (0..senders).for_each(|member| send(&mut net, member, &files[member]));
        let most = 2 + senders as u64;
        let all = |net: &Net| has_all(net, receiver, &files);
        assert!(net.run(Duration::from_secs(most), all), "{senders}: {}", objects(&net, receiver).len());
        // Nobody is asked again for what is here, whichever sender has the place.
        net.run(Duration::from_secs(100), |_| false);
        assert_eq!(objects(&net, receiver).len(), senders);
        for lost in ["objects_given_up", "senders_forgotten"] {
            assert_eq!(net.counter(receiver, lost), 0, "{lost}");
        }
        assert!(net.counter(receiver, "symbols_without_room") > 100);
    }
}

#[test]
fn who_has_a_place_is_received_as_if_it_were_alone() {
    let seconds = |senders: usize| {
        let (mut net, receiver) = group_of(2, senders, places(1));
        let files = files(senders, 500_000);
        for (member, file) in files.iter().enumerate() {
            send(&mut net, member, file);
            net.run(Duration::from_millis(50), |_| false);
        }
        assert!(net.run(Duration::from_secs(10), |net| has_all(net, receiver, &files[..1])));
        assert_eq!(objects(&net, receiver).len(), 1);
        (1..senders).for_each(|member| assert_eq!(net.counter(member, "nacks_received"), 0));
        net.now.since(Instant::ZERO).as_secs_f64()
    };
    let (alone, beside) = (seconds(1), seconds(4));
    assert!(beside < 1.1 * alone, "{beside} s in place of {alone}");
}

#[test]
fn all_that_a_sender_sends_while_it_waits_is_asked_for() {
    for join in [Join::Object, Join::Now, Join::Everything] {
        let (mut net, receiver) = group_of(3, 2, ReceiverConfig { join, ..places(1) });
        let files = files(6, 100_000);
        send(&mut net, 0, &contents(500_000, 99));
        net.run(Duration::from_millis(100), |_| false);
        files.iter().for_each(|file| send(&mut net, 1, file));
        assert!(net.run(Duration::from_secs(10), |net| has_all(net, receiver, &files)), "{join:?}");
        assert_eq!((objects(&net, receiver).len(), net.counter(receiver, "objects_given_up")), (7, 0));
    }
}

#[test]
fn a_stream_that_waits_is_received_from_its_beginning() {
    let (mut net, receiver) = group_of(4, 2, places(1));
    let (file, data) = (contents(500_000, 1), contents(200_000, 2));
    send(&mut net, 0, &file);
    net.run(Duration::from_millis(100), |_| false);
    write(&mut net, 1, &data);
    assert!(
        net.run(Duration::from_secs(20), |net| net.members[receiver].up.len() == 2),
        "its file, and a stream"
    );
    grant(&mut net, receiver);
    assert!(net.run(Duration::from_secs(20), |net| bytes(net, receiver).1));
    assert!(bytes(&net, receiver).0 == data && objects(&net, receiver) == [file]);
}

#[test]
fn a_sender_that_is_silent_makes_room_and_is_received_when_it_is_back() {
    let (mut net, receiver) = group_of(5, 2, places(1));
    // Ten seconds of the one, and one of the other.
    let files = [contents(5_000_000, 1), contents(500_000, 2)];
    send(&mut net, 0, &files[0]);
    net.run(Duration::from_millis(500), |_| false);
    net.members[0].is_cut = true;
    send(&mut net, 1, &files[1]);
    assert!(!net.run(Duration::from_secs(5), |net| !net.members[receiver].up.is_empty()), "too soon");
    net.run(Duration::from_secs(6), |_| false);
    net.members[0].is_cut = false;
    assert!(net.run(Duration::from_secs(15), |net| objects(net, receiver) == files[1..]));
    assert_eq!(
        (net.counter(receiver, "senders_forgotten"), net.counter(receiver, "objects_given_up")),
        (1, 1)
    );
    assert!(net.run(Duration::from_secs(60), |net| has_all(net, receiver, &files)));
}

#[test]
fn after_a_long_silence_a_sender_keeps_its_place_as_at_first() {
    let (mut net, receiver) = group_of(10, 2, places(1));
    let files = [contents(1000, 1), contents(5_000_000, 2), contents(1000, 3)];
    send(&mut net, 0, &files[0]);
    net.run(Duration::from_secs(200), |_| false);
    send(&mut net, 0, &files[1]);
    net.run(Duration::from_millis(200_100), |_| false);
    send(&mut net, 1, &files[2]);
    assert!(net.run(Duration::from_secs(230), |net| objects(net, receiver).len() == 3));
    assert!(objects(&net, receiver) == files && net.counter(receiver, "senders_forgotten") == 0);
}

#[test]
fn what_a_sender_had_that_has_gone_before_its_turn_is_a_loss_that_is_counted() {
    for says_so in [true, false] {
        let (mut net, receiver) = group_of(6, 2, places(1));
        let files = files(3, 200_000);
        // Ten seconds of the first one's.
        let long = contents(5_000_000, 6);
        send(&mut net, 0, &long);
        net.run(Duration::from_millis(100), |_| false);
        files.iter().for_each(|file| send(&mut net, 1, file));
        net.run(Duration::from_secs(3), |_| false);
        net.members[1].is_cut = true;
        if says_so {
            let header = Header { instance: 6, grtt: 100, backoff: 4, group_size: 0 };
            let body = Body::Command(header, Command::EndOfTransmission);
            net.forge(receiver, 1, &Message { sequence: 0, source: NodeId(2), body }.emit());
        }
        net.run(Duration::from_secs(9), |_| false);
        assert_eq!(net.counter(receiver, "objects_given_up"), if says_so { 3 } else { 0 });
        net.run(Duration::from_secs(300), |_| false);
        assert!(objects(&net, receiver) == [long], "{says_so}");
        assert_eq!(net.counter(receiver, "objects_given_up"), 3, "{says_so}");
        assert_eq!(net.members[receiver].session.deadline(), None);
    }
}

/// A symbol of an object of 256 MiB, in blocks of `source` symbols.
fn symbol(sender: u32, number: u64, source: u16, payload: &[u8]) -> Vec<u8> {
    symbol_of((sender, 1), number, source, payload)
}

/// The same of an instance of the sender.
fn symbol_of((sender, instance): (u32, u16), number: u64, source: u16, payload: &[u8]) -> Vec<u8> {
    let header = Header { instance, grtt: 255, backoff: 15, group_size: 15 };
    let fti = Fti {
        fec: Fec::ReedSolomon8,
        object_size: 256 << 20,
        segment: payload.len() as u16,
        source,
        parity: 0,
        field: 0,
        group: 0,
        instance: 0,
    };
    let data = Data {
        header,
        flags: Flags::default(),
        fec: Fec::ReedSolomon8,
        object: 1,
        id: PayloadId { block: number as u32, symbol: 0, block_len: 0 },
        fti: Some(fti),
        payload,
    };
    Message { sequence: number as u16, source: NodeId(sender), body: Body::Data(data) }.emit().to_vec()
}

/// Seconds until a receiver with one place has a file, of which a forged sender has the place. Each hundredth of a
/// second `forged` may send a packet.
fn beside(mut forged: impl FnMut(u64) -> Option<Vec<u8>>) -> f64 {
    let buffer = 200_000;
    let (mut net, receiver) = group_of(7, 1, ReceiverConfig { buffer, ..places(1) });
    let file = contents(300_000, 7);
    let mut most = 0;
    for step in 0..20_000 {
        if net.run(Duration::from_millis(10 * step), |net| objects(net, receiver) == [file.clone()]) {
            assert!(most <= buffer + 255 * 1500, "{most} bytes held");
            return net.now.since(Instant::ZERO).as_secs_f64();
        }
        if let Some(packet) = forged(step) {
            net.forge(receiver, 9, &packet);
        }
        if step == 10 {
            send(&mut net, 0, &file);
        }
        most = most.max(net.members[receiver].session.held().0);
    }
    f64::INFINITY
}

#[test]
fn who_sends_only_to_keep_a_place_loses_it() {
    // Packets that bring nothing: the same symbol again and again.
    let repeated = beside(|_| Some(symbol(77, 0, 8, &[7; 1000])));
    assert!((15.0..20.0).contains(&repeated), "{repeated} s");
    // Ever new symbols, of which no block is complete: soon there is no room for more.
    let many = beside(|step| Some(symbol(77, step, 8, &[7; 1000])));
    assert!((15.0..20.0).contains(&many), "{many} s");
    // As few as there is room for.
    let few = beside(|step| step.is_multiple_of(100).then(|| symbol(77, step, 8, &[7; 1000])));
    assert!((60.0..65.0).contains(&few), "{few} s");
    // The same, by a sender that begins anew each 50 seconds: two packets in a row are another instance.
    let anew = beside(|step| {
        let sender = (77, (step / 5000) as u16);
        (step.is_multiple_of(100) || step % 5000 == 1).then(|| symbol_of(sender, step, 8, &[7; 1000]))
    });
    assert!((60.0..65.0).contains(&anew), "{anew} s");
    // Whole blocks of few bytes, each in time.
    let slow = beside(|step| step.is_multiple_of(100).then(|| symbol(77, step, 1, &[7; 500])));
    assert!((60.0..150.0).contains(&slow), "{slow} s");
    // One that sends is received.
    let real = beside(|step| step.is_multiple_of(100).then(|| symbol(77, step, 1, &[7; 1200])));
    assert!(real.is_infinite(), "{real} s");
}

#[test]
fn forged_senders_that_find_no_place_take_bounded_memory_and_are_forgotten_first() {
    let (mut net, receiver) = group_of(8, 2, places(1));
    let files = files(2, 300_000);
    (0..2).for_each(|member| send(&mut net, member, &files[member]));
    net.run(Duration::from_millis(100), |_| false);
    for number in 0..1000 {
        let header = Header { instance: 1, grtt: 100, backoff: 4, group_size: 0 };
        let body = Body::Command(header, Command::Application(&[]));
        let probe = Message { sequence: 0, source: NodeId(1000 + number), body }.emit();
        net.forge(receiver, 9, &probe);
    }
    // The one that waits, and 63 of these.
    assert_eq!(net.counter(receiver, "senders_forgotten"), 1000 - 63);
    assert_eq!(net.counter(receiver, "objects_given_up"), 0, "they have sent none");
    assert!(net.run(Duration::from_secs(10), |net| has_all(net, receiver, &files)));
}

#[test]
fn a_sender_with_a_small_buffer_loses_what_it_no_longer_holds() {
    let small = SenderConfig { objects: 2, ..sender() };
    let (mut net, receiver) = group_of(9, 1, places(1));
    let other = net.add(Some(small), None, Link::default(), 1);
    let long = contents(5_000_000, 9);
    send(&mut net, 0, &long);
    net.run(Duration::from_millis(100), |_| false);
    let files = files(6, 50_000);
    let mut number = 0;
    for step in 1..400 {
        let now = net.now;
        if number < files.len()
            && net.members[other].session.send(now, Arc::from(&files[number][..]), None, true).is_some()
        {
            number += 1;
        }
        net.run(Duration::from_millis(100 * step), |_| false);
    }
    let (found, lost) = (objects(&net, receiver).len() as u64, net.counter(receiver, "objects_given_up"));
    assert_eq!(number, files.len());
    assert!(lost > 0 && found + lost == 7, "{found} found, {lost} lost");
}
