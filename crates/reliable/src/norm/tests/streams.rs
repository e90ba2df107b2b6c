//! A stream to a group: who comes late, who does not read, who has a worse path, and what its writer is told.

use hopcast_core::{Buffer, Duration, Instant, Item, Rate, StreamId, StreamItem};

use super::net::{Link, Net, address, contents, group};
use super::transfers::{STREAM, bytes, grant, lossy, sender};
use crate::norm::{Join, RateControl, ReceiverConfig, SenderConfig};

fn after(net: &Net, time: Duration) -> Duration {
    net.now.since(Instant::ZERO) + time
}

fn open(net: &mut Net) {
    net.give(0, Item::Stream(STREAM, StreamItem::Open { local: address(0), remote: group() }));
}

fn of_writer(net: &Net, value: impl Fn(&StreamItem) -> u64) -> u64 {
    let of = |(_, item): &(Instant, Item)| match item {
        Item::Stream(STREAM, item) => value(item),
        _ => 0,
    };
    net.members[0].up.iter().map(of).sum()
}

fn granted(net: &Net) -> usize {
    of_writer(net, |item| if let StreamItem::Credit(credit) = item { *credit } else { 0 }) as usize
}

/// Writes what is granted from a place on, for a time, while some receivers read. Returns the place that it came to.
fn write_for(net: &mut Net, time: Duration, data: &[u8], from: usize, readers: &[usize]) -> usize {
    let (until, mut written) = (after(net, time), from);
    while net.now.since(Instant::ZERO) < until && written < data.len() {
        let piece = &data[written..granted(net).min(data.len())];
        if !piece.is_empty() {
            net.give(0, Item::Stream(STREAM, StreamItem::Data(Buffer::copy_from(piece))));
            written += piece.len();
        }
        readers.iter().for_each(|&reader| grant(net, reader));
        let next = after(net, Duration::from_millis(20));
        net.run(next, |_| false);
    }
    written
}

fn resets(net: &Net, member: usize) -> usize {
    let is_reset = |(_, item): &&(Instant, Item)| matches!(item, Item::Stream(_, StreamItem::Reset));
    net.members[member].up.iter().filter(is_reset).count()
}

#[test]
fn who_comes_late_gets_what_comes_from_then_on_or_all_that_is_left_as_it_asked() {
    let mut net = Net::new(1);
    net.add(Some(sender()), None, Link::default(), 1);
    let receivers = [Join::Object, Join::Now, Join::Object].map(|join| {
        let config = ReceiverConfig { join, ..ReceiverConfig::default() };
        net.add(None, Some(config), lossy(0.1), 1)
    });
    let [always, now, all] = receivers;
    for late in [now, all] {
        net.members[late].is_cut = true;
    }
    let data = contents(2_000_000, 1);
    open(&mut net);
    let written = write_for(&mut net, Duration::from_secs(1), &data, 0, &receivers);
    assert!(written > 200_000 && written < 1_500_000, "{written}");
    let sent = net.members[0].sent as usize;
    for late in [now, all] {
        net.members[late].is_cut = false;
    }
    write_for(&mut net, Duration::from_secs(60), &data, written, &receivers);
    net.give(0, Item::Stream(STREAM, StreamItem::Finish));
    let until = after(&net, Duration::from_secs(20));
    assert!(net.run(until, |net| receivers.iter().all(|&member| bytes(net, member).1)));
    assert!(bytes(&net, always).0 == data && bytes(&net, all).0 == data);
    // All from about the byte at which it came, and nothing before: the block that was being sent, and none of those
    // that were being repaired.
    let (found, _) = bytes(&net, now);
    assert!(data.ends_with(&found));
    let from = data.len() - found.len();
    assert!((sent - 2 * 90_000..sent + 90_000).contains(&from), "from {from} on, when {sent} had been sent");
}

#[test]
fn an_application_that_does_not_read_loses_the_stream_and_slows_down_nobody() {
    let fast = SenderConfig { rate: RateControl::Fixed(Rate::from_mbit(100)), ..SenderConfig::default() };
    let link = Link { rate: Rate::from_mbit(200), ..Link::default() };
    let mut net = Net::star(2, fast, &ReceiverConfig::default(), &[link; 3]);
    // More than waits for an application.
    let data = contents(18 << 20, 2);
    open(&mut net);
    assert_eq!(write_for(&mut net, Duration::from_secs(5), &data, 0, &[1]), data.len());
    net.give(0, Item::Stream(STREAM, StreamItem::Finish));
    let until = after(&net, Duration::from_secs(1));
    assert!(net.run(until, |net| bytes(net, 1).1));
    assert!(bytes(&net, 1).0 == data);
    assert_eq!((resets(&net, 1), resets(&net, 2)), (0, 1));
    assert_eq!(net.counter(2, "streams_reset"), 1);
}

#[test]
fn at_a_tcps_rate_the_receiver_with_the_worst_path_paces_the_stream() {
    let written = |loss: f64| {
        let rate = RateControl::Tcp {
            initial: Rate::from_bits_per_sec(256_000),
            min: Rate::from_bits_per_sec(12_000),
            max: Rate::from_mbit(1_000),
        };
        let config = SenderConfig { rate, ..SenderConfig::default() };
        let first = Link { queue: Duration::from_millis(60), ..Link::default() };
        let mut net = Net::star(4, config, &ReceiverConfig::default(), &[first, lossy(0.0), lossy(loss)]);
        open(&mut net);
        write_for(&mut net, Duration::from_secs(15), &contents(30_000_000, 4), 0, &[1, 2])
    };
    let (alone, paced) = (written(0.0), written(0.1));
    assert!(alone > 4 * paced && paced > 100_000, "{alone} {paced}");
}

#[test]
fn its_writer_hears_what_was_sent_and_is_stopped_where_it_writes_more_than_it_was_granted() {
    let mut net = Net::star(5, sender(), &ReceiverConfig::default(), &[Link::default(), lossy(0.1)]);
    let data = contents(300_000, 5);
    open(&mut net);
    write_for(&mut net, Duration::from_secs(10), &data, 0, &[1]);
    net.give(0, Item::Stream(STREAM, StreamItem::Finish));
    let until = after(&net, Duration::from_secs(2));
    assert!(net.run(until, |net| bytes(net, 1).1));
    let transmitted: Vec<u64> = net.members[0]
        .up
        .iter()
        .filter_map(|(_, item)| match item {
            Item::Stream(STREAM, StreamItem::Transmitted(upto)) => Some(*upto),
            _ => None,
        })
        .collect();
    assert!(transmitted.is_sorted() && transmitted.len() > 100, "{}", transmitted.len());
    assert_eq!(transmitted.last(), Some(&300_000));

    let greedy = StreamId(2);
    net.give(0, Item::Stream(greedy, StreamItem::Open { local: address(0), remote: group() }));
    let flood = Buffer::copy_from(&contents(1 << 20, 6));
    net.give(0, Item::Stream(greedy, StreamItem::Data(flood)));
    let is_reset = |(_, item): &(Instant, Item)| *item == Item::Stream(greedy, StreamItem::Reset);
    assert!(net.members[0].up.iter().any(is_reset));
    assert_eq!(net.counter(0, "units_refused"), 1);
}
