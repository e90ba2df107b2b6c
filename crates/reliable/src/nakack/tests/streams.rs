//! Streams from a member to all others: under loss, and while the view changes.

use std::collections::BTreeMap;

use hopcast_core::{StreamId, StreamItem};

use super::views::{agree, quick};
use super::*;
use crate::testing::contents;

/// A stream of member 0's, written as fast as it is granted, and read by all that are handed it.
struct Writer {
    id: StreamId,
    data: Vec<u8>,
    written: usize,
    is_finished: bool,
    /// Items that the driver has looked at, by member.
    seen: BTreeMap<usize, usize>,
    granted: usize,
}

/// A stream as a member was handed it: its bytes, and how it ended, if it did.
type Read = (Vec<u8>, Option<StreamItem>);

impl Writer {
    fn open(net: &mut Net, data: Vec<u8>) -> Self {
        let id = StreamId(0);
        net.give(0, Item::Stream(id, StreamItem::Open { local: address(0), remote: group() }));
        Self { id, data, written: 0, is_finished: false, seen: BTreeMap::new(), granted: 0 }
    }

    /// Writes and reads until a time, or until as much is written.
    fn run(&mut self, net: &mut Net, time: Duration, upto: usize) {
        let until = net.now.since(Instant::ZERO) + time;
        while net.now.since(Instant::ZERO) < until && self.written < upto {
            for member in 0..net.members.len() {
                self.look(net, member);
            }
            let end = self.granted.min(self.data.len()).min(upto);
            if end > self.written {
                let piece = Buffer::copy_from(&self.data[self.written..end]);
                net.give(0, Item::Stream(self.id, StreamItem::Data(piece)));
                self.written = end;
            }
            if self.written == self.data.len() && !std::mem::replace(&mut self.is_finished, true) {
                net.give(0, Item::Stream(self.id, StreamItem::Finish));
            }
            run_for(net, Duration::from_millis(10));
        }
    }

    /// Writes all, and reads for a time after that.
    fn finish(&mut self, net: &mut Net, seconds: u64) {
        let len = self.data.len();
        self.run(net, Duration::from_secs(600), len);
        assert!(self.is_finished, "{} of {len} bytes were granted", self.granted);
        self.run(net, Duration::from_secs(seconds), usize::MAX);
    }

    /// Notes what the writer was granted, and grants each reader all that comes.
    fn look(&mut self, net: &mut Net, member: usize) {
        let seen = self.seen.entry(member).or_default();
        let new: Vec<Item> = net.members[member].up[*seen..].iter().map(|(_, item)| item.clone()).collect();
        *seen += new.len();
        for item in new {
            match item {
                Item::Stream(id, StreamItem::Open { .. }) => {
                    net.give(member, Item::Stream(id, StreamItem::Credit(u64::MAX)));
                }
                Item::Stream(id, StreamItem::Credit(bytes)) if id == self.id && member == 0 => {
                    self.granted += bytes as usize;
                }
                _ => {}
            }
        }
    }
}

/// The streams that a member was handed, in the order in which they began.
fn read(net: &Net, member: usize) -> Vec<Read> {
    let mut found: BTreeMap<StreamId, Read> = BTreeMap::new();
    for (_, item) in &net.members[member].up {
        let Item::Stream(id, item) = item else { continue };
        match item {
            StreamItem::Open { remote, .. } => {
                assert_eq!(*remote, address(0), "from its writer");
                found.insert(*id, (Vec::new(), None));
            }
            StreamItem::Data(bytes) => found.get_mut(id).unwrap().0.extend_from_slice(bytes),
            StreamItem::Finish | StreamItem::Reset => found.get_mut(id).unwrap().1 = Some(item.clone()),
            _ => {}
        }
    }
    found.into_values().collect()
}

fn whole(data: &[u8]) -> Vec<Read> {
    vec![(data.to_vec(), Some(StreamItem::Finish))]
}

#[test]
fn a_stream_under_loss_comes_whole_to_each_and_its_writer_hears_what_was_sent() {
    for (seed, order) in [(1, crate::nakack::Ordering::Fifo), (2, crate::nakack::Ordering::Total)] {
        let stack = Stack { order, ..stack() };
        let mut net = network(seed, &stack, &[lossy(0.2); 4]);
        let mut writer = Writer::open(&mut net, contents(400_000, seed));
        // Units in between are units of their own.
        give_message(&mut net, 0, b"message");
        give_datagram(&mut net, 2, b"of another");
        writer.finish(&mut net, 10);
        for member in 1..4 {
            assert!(read(&net, member) == whole(&writer.data), "{order:?} at {member}");
            assert_eq!(messages(&net, member), [b"message"]);
            assert_eq!(datagrams(&net, member).len(), usize::from(member != 2));
        }
        let of_writer = |(_, item): &(Instant, Item)| match item {
            Item::Stream(_, StreamItem::Transmitted(upto)) => Some(*upto),
            _ => None,
        };
        let sent: Vec<u64> = net.members[0].up.iter().filter_map(of_writer).collect();
        assert!(sent.is_sorted() && sent.last() == Some(&400_000), "{:?}", sent.last());
        assert!(net.counter(1, "nacks_sent") > 0 && net.counter(1, "streams_reset") == 0);
        assert_eq!(net.counter(1, "objects_completed"), 2, "a message, and a stream");
    }
}

#[test]
fn two_streams_share_a_members_rate() {
    let mut net = network(3, &stack(), &[lossy(0.05); 2]);
    let mut writer = Writer::open(&mut net, contents(300_000, 3));
    let other = StreamId(2);
    net.give(0, Item::Stream(other, StreamItem::Open { local: address(0), remote: group() }));
    writer.run(&mut net, Duration::from_millis(50), usize::MAX);
    net.give(0, Item::Stream(other, StreamItem::Data(Buffer::copy_from(b"short"))));
    net.give(0, Item::Stream(other, StreamItem::Finish));
    writer.run(&mut net, Duration::from_millis(100), usize::MAX);
    assert!(read(&net, 1).contains(&(b"short".to_vec(), Some(StreamItem::Finish))), "it waits for no other");
    writer.finish(&mut net, 5);
    assert!(read(&net, 1).contains(&whole(&writer.data)[0]));
}

#[test]
fn a_stream_goes_on_while_a_member_comes_one_leaves_and_one_dies() {
    for seed in 0..6 {
        let mut net = network(seed, &quick(), &[lossy(0.1); 4]);
        let mut writer = Writer::open(&mut net, contents(3_000_000, seed));
        writer.run(&mut net, Duration::from_secs(1), usize::MAX);
        let late = add(&mut net, Start::Discovered, &quick(), lossy(0.1));
        writer.run(&mut net, Duration::from_secs(2), usize::MAX);
        assert!(agree(&net, &[0, 1, 2, 3, late]), "{seed}");
        let now = net.now;
        net.members[2].session.leave(now);
        writer.run(&mut net, Duration::from_secs(1), usize::MAX);
        net.members[3].is_cut = true;
        assert!(!writer.is_finished, "{seed}: all of it happens in its midst");
        writer.finish(&mut net, 10);
        assert!(read(&net, 1) == whole(&writer.data), "{seed}");
        // What was sent before it came is not for the one that came.
        let found = read(&net, late);
        let [(bytes, end)] = &found[..] else { panic!("{seed}: {} streams", found.len()) };
        assert!(writer.data.ends_with(bytes) && *end == Some(StreamItem::Finish), "{seed}");
        assert!((500_000..2_900_000).contains(&bytes.len()), "{seed}: {}", bytes.len());
        // Who leaves has all up to then, and no more of it.
        let [(bytes, end)] = &read(&net, 2)[..] else { panic!("{seed}") };
        assert!(writer.data.starts_with(bytes) && *end == Some(StreamItem::Reset), "{seed}");
    }
}

#[test]
fn a_stream_goes_on_when_its_coordinator_dies() {
    let mut net = Net::new(7);
    let members: Vec<_> = [1, 0, 2].map(|member| (id(member), address(member))).into();
    for _ in 0..3 {
        add(&mut net, Start::Told(members.clone()), &quick(), lossy(0.1));
    }
    let mut writer = Writer::open(&mut net, contents(3_000_000, 7));
    writer.run(&mut net, Duration::from_secs(1), usize::MAX);
    net.members[1].is_cut = true;
    writer.finish(&mut net, 10);
    assert!(agree(&net, &[0, 2]) && read(&net, 2) == whole(&writer.data));
}

#[test]
fn who_was_parted_from_the_writer_loses_the_stream_and_has_another_behind_the_gap() {
    let mut net = network(8, &quick(), &[lossy(0.05); 4]);
    let mut writer = Writer::open(&mut net, contents(8_000_000, 8));
    writer.run(&mut net, Duration::from_secs(1), usize::MAX);
    net.members[2].part = 1;
    net.members[3].part = 1;
    writer.run(&mut net, Duration::from_secs(8), usize::MAX);
    net.members.iter_mut().for_each(|member| member.part = 0);
    writer.run(&mut net, Duration::from_secs(3), usize::MAX);
    assert!(agree(&net, &[0, 1, 2, 3]) && !writer.is_finished);
    writer.finish(&mut net, 5);
    assert!(read(&net, 1) == whole(&writer.data), "with its writer all the time");
    for member in [2, 3] {
        let found = read(&net, member);
        let [(before, reset), (behind, end)] = &found[..] else { panic!("{} streams", found.len()) };
        assert!(writer.data.starts_with(before) && *reset == Some(StreamItem::Reset));
        assert!(writer.data.ends_with(behind) && *end == Some(StreamItem::Finish));
        assert!(before.len() + behind.len() < writer.data.len() - 1_000_000);
        assert_eq!(net.counter(member, "streams_reset"), 1);
    }
}

#[test]
fn a_writer_that_leaves_or_is_greedy_is_told_that_its_stream_is_over() {
    let mut net = network(9, &quick(), &[lossy(0.05); 3]);
    let greedy = StreamId(4);
    net.give(0, Item::Stream(greedy, StreamItem::Open { local: address(0), remote: group() }));
    net.give(0, Item::Stream(greedy, StreamItem::Data(Buffer::copy_from(&contents(1 << 20, 9)))));
    let mut writer = Writer::open(&mut net, contents(3_000_000, 9));
    writer.run(&mut net, Duration::from_secs(1), usize::MAX);
    let now = net.now;
    net.members[0].session.leave(now);
    run_for(&mut net, Duration::from_secs(5));
    net.give(0, Item::Stream(StreamId(6), StreamItem::Open { local: address(0), remote: group() }));
    for id in [greedy, writer.id, StreamId(6)] {
        let is_reset = |(_, item): &(Instant, Item)| *item == Item::Stream(id, StreamItem::Reset);
        assert!(net.members[0].up.iter().any(is_reset), "{id:?}");
    }
    assert!(agree(&net, &[1, 2]));
    let found = read(&net, 1);
    assert!(found.iter().any(|(bytes, end)| {
        !bytes.is_empty() && writer.data.starts_with(bytes) && *end == Some(StreamItem::Reset)
    }));
    assert!(read(&net, 2) == found, "all have the same of it");
}
