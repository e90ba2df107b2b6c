//! Edges that hand symbols to each other.

mod anything;
mod damage;

use super::*;

const SYMBOL: usize = SEAL + 200;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// The next symbol that an edge sends, and its number.
fn symbol(framing: &mut Framing) -> (u64, Vec<u8>) {
    let mut symbol = vec![0; SYMBOL];
    let number = framing.filled.map_or(0, |last| last + 1);
    let used = framing.fill(Instant::ZERO, number, &mut symbol);
    assert!(used > 0 && used <= SYMBOL, "there is something to send");
    (number, symbol)
}

fn take(framing: &mut Framing, (number, symbol): &(u64, Vec<u8>)) {
    framing.take(at(0), *number, symbol);
}

/// A symbol that the other edge of a [`pair`] may have made, with this behind its checksum.
fn made_up(framing: &Framing, body: &[u8]) -> (u64, Vec<u8>) {
    let number = framing.taken.map_or(0, |last| last + 1);
    let mut symbol = [&[0; SEAL], body].concat();
    seal::seal(framing.streams.meeting.other().unwrap(), number, &mut symbol);
    (number, symbol)
}

/// Moves all chunks from one edge to the other, and returns the items that come up there.
fn cross(from: &mut Framing, to: &mut Framing) -> Vec<Up> {
    while from.has_data() {
        take(to, &symbol(from));
    }
    core::iter::from_fn(|| to.poll()).collect()
}

fn pair() -> [Framing; 2] {
    acquainted([&Config::default(), &Config::default()])
}

/// Two edges that have met.
fn acquainted(configs: [&Config; 2]) -> [Framing; 2] {
    let mut edges = configs.map(Framing::new);
    for (i, edge) in edges.iter_mut().enumerate() {
        edge.begin(1 + i as u32);
        edge.meet(2 - i as u32, true);
        // They need not say so.
        edge.streams.meeting.is_told();
    }
    edges
}

fn open(n: u16) -> StreamItem {
    let address = |ip: &str, port| format!("{ip}:{port}").parse().unwrap();
    StreamItem::Open { local: address("10.0.0.1", n), remote: address("[fd00::2]", 80) }
}

fn data(bytes: &[u8]) -> StreamItem {
    StreamItem::Data(Buffer::copy_from(bytes))
}

fn stream(id: u64, item: StreamItem) -> Up {
    Up::Stream(StreamId(id), item)
}

#[test]
fn units_share_a_symbol_and_large_ones_are_cut() {
    let [mut a, mut b] = pair();
    let units: Vec<_> = [0, 10, 1000, 1, 197].map(|len| Buffer::copy_from(&vec![len as u8; len])).into();
    for unit in &units {
        assert!(a.push_unit(at(0), unit.clone()));
    }
    let arrived = cross(&mut a, &mut b);
    assert_eq!(arrived, units.into_iter().map(Up::Unit).collect::<Vec<_>>());
    assert_eq!(b.counters().units_broken, 0);
}

#[test]
fn a_unit_with_a_missing_symbol_is_dropped_and_counted_and_the_next_arrives() {
    for missing in 0..3 {
        let [mut a, mut b] = pair();
        a.push_unit(at(0), Buffer::copy_from(&[1; 500]));
        a.push_unit(at(0), Buffer::copy_from(&[2; 150]));
        for i in 0.. {
            if !a.has_data() {
                break;
            }
            let symbol = symbol(&mut a);
            if i == missing { b.skip(1) } else { take(&mut b, &symbol) }
        }
        let arrived: Vec<_> = core::iter::from_fn(|| b.poll()).collect();
        // The third symbol holds the end of the one and the beginning of the other.
        let expected = if missing == 2 { vec![] } else { vec![Up::Unit(Buffer::copy_from(&[2; 150]))] };
        assert_eq!(arrived, expected, "{missing}");
        assert_eq!(b.counters().units_broken, 1, "{missing}");
    }
}

#[test]
fn units_are_refused_when_the_first_has_waited_too_long_or_too_much_waits() {
    let [mut a, _] = pair();
    for _ in 0..20 {
        assert!(a.push_unit(at(0), Buffer::zeroed(1000)));
    }
    assert!(a.push_unit(at(50), Buffer::zeroed(1000)));
    assert!(!a.push_unit(at(51), Buffer::zeroed(1000)));
    while a.has_data() {
        symbol(&mut a);
    }
    assert!(a.push_unit(at(51), Buffer::zeroed(1000)), "what waited is gone");
    while a.push_unit(at(51), Buffer::default()) {}
    assert!(a.counters().units_sent < 50_000, "empty units take room too");
    assert!(!a.push_unit(at(51), Buffer::zeroed(70_000)));
}

#[test]
fn a_stream_opens_carries_both_ways_and_ends_each_way() {
    let [mut a, mut b] = pair();
    a.handle_stream(at(0), StreamId(4), open(9));
    a.handle_stream(at(0), StreamId(4), StreamItem::Credit(3));
    let arrived = cross(&mut a, &mut b);
    let StreamItem::Open { local, remote } = open(9) else { unreachable!() };
    let opened = StreamItem::Open { local: remote, remote: local };
    assert_eq!(arrived, [stream(5, opened), stream(5, StreamItem::Credit(3))]);

    b.handle_stream(at(0), StreamId(5), StreamItem::Credit(1000));
    b.handle_stream(at(0), StreamId(5), data(b"abc"));
    let arrived = cross(&mut b, &mut a);
    let expected = [StreamItem::Opened, StreamItem::Credit(1000), data(b"abc")];
    assert_eq!(arrived, expected.map(|item| stream(4, item)));
    assert_eq!(b.poll(), Some(stream(5, StreamItem::Transmitted(3))));

    a.handle_stream(at(0), StreamId(4), data(&[7; 400]));
    a.handle_stream(at(0), StreamId(4), StreamItem::Finish);
    let arrived = cross(&mut a, &mut b);
    assert_eq!(arrived.last(), Some(&stream(5, StreamItem::Finish)));
    assert_eq!(bytes(&arrived, 5), [7; 400]);
    b.handle_stream(at(0), StreamId(5), StreamItem::Finish);
    assert_eq!(cross(&mut b, &mut a).last(), Some(&stream(4, StreamItem::Finish)));
    assert_eq!((a.streams.held(), b.streams.held()), ((0, 0, 0), (0, 0, 0)), "nothing is left of it");
}

fn bytes(up: &[Up], id: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for up in up {
        if let Up::Stream(StreamId(of), StreamItem::Data(data)) = up
            && *of == id
        {
            bytes.extend_from_slice(data);
        }
    }
    bytes
}

#[test]
fn credit_from_the_far_end_is_granted_as_far_as_there_is_room_to_queue() {
    let config = Config { stream_bytes: 1000, ..Config::default() };
    let [mut a, mut b] = acquainted([&config, &config]);
    a.handle_stream(at(0), StreamId(0), open(1));
    cross(&mut a, &mut b);
    b.handle_stream(at(0), StreamId(1), StreamItem::Credit(5000));
    let granted = cross(&mut b, &mut a);
    assert_eq!(granted, [StreamItem::Opened, StreamItem::Credit(1000)].map(|item| stream(0, item)));
    a.handle_stream(at(0), StreamId(0), data(&[1; 1000]));
    assert!(a.poll().is_none(), "the queue is full");
    symbol(&mut a);
    symbol(&mut a);
    let up: Vec<_> = core::iter::from_fn(|| a.poll()).collect();
    assert!(up.contains(&stream(0, StreamItem::Credit(394))), "room has been made: {up:?}");
}

#[test]
fn many_streams_that_wait_share_what_may_be_queued_and_each_goes_on() {
    let queue = 4 << 20;
    let config = Config { queue, ..Config::default() };
    let [mut a, mut b] = acquainted([&config, &Config::default()]);
    let streams = 200_u64;
    let granted = |up: &[Up], id: u64| {
        let credit = |up: &Up| match up {
            Up::Stream(StreamId(of), StreamItem::Credit(bytes)) if *of == id => *bytes,
            _ => 0,
        };
        up.iter().map(credit).sum::<u64>()
    };
    for id in 0..streams {
        a.handle_stream(at(0), StreamId(2 * id), open(id as u16));
    }
    cross(&mut a, &mut b);
    for id in 0..streams {
        b.handle_stream(at(0), StreamId(2 * id + 1), StreamItem::Opened);
        b.handle_stream(at(0), StreamId(2 * id + 1), StreamItem::Credit(1 << 30));
    }
    let mut up = cross(&mut b, &mut a);
    let mut may: Vec<u64> = (0..streams).map(|id| granted(&up, 2 * id)).collect();
    assert_eq!(may[0], config.stream_bytes);
    let all = may.iter().sum::<u64>();
    assert!(all < queue + streams * (16 << 10), "{all} bytes are granted");
    // Whoever writes is granted more, again and again.
    for _ in 0..20 {
        let last = streams - 1;
        assert!(may[last as usize] > 0, "it is starved");
        let bytes = vec![1; may[last as usize] as usize];
        a.handle_stream(at(0), StreamId(2 * last), data(&bytes));
        may[last as usize] = 0;
        cross(&mut a, &mut b);
        up = core::iter::from_fn(|| a.poll()).collect();
        may[last as usize] += granted(&up, 2 * last);
    }
    // Those that are reset leave what they had to others.
    for id in 0..streams {
        a.handle_stream(at(0), StreamId(2 * id), StreamItem::Reset);
    }
    a.handle_stream(at(0), StreamId(1000), open(7));
    cross(&mut a, &mut b);
    b.handle_stream(at(0), StreamId(1001), StreamItem::Credit(1 << 30));
    let up = cross(&mut b, &mut a);
    assert_eq!(granted(&up, 1000), config.stream_bytes);
}

#[test]
fn a_reset_ends_it_at_both_ends_and_what_was_under_way_is_stray() {
    let [mut a, mut b] = pair();
    a.handle_stream(at(0), StreamId(0), open(1));
    cross(&mut a, &mut b);
    b.handle_stream(at(0), StreamId(1), StreamItem::Credit(1000));
    cross(&mut b, &mut a);
    a.handle_stream(at(0), StreamId(0), data(&[1; 500]));
    b.handle_stream(at(0), StreamId(1), StreamItem::Reset);
    assert_eq!(cross(&mut a, &mut b), []);
    assert_eq!(b.counters().chunks_stray, 3);
    let up = cross(&mut b, &mut a);
    assert_eq!(up.last(), Some(&stream(0, StreamItem::Reset)));
    a.handle_stream(at(0), StreamId(0), data(b"too late"));
    assert_eq!((a.streams.held(), b.streams.held()), ((0, 0, 0), (0, 0, 0)));
    // Reset before the other end has heard of it: it never will.
    a.handle_stream(at(0), StreamId(2), open(2));
    a.handle_stream(at(0), StreamId(2), StreamItem::Reset);
    assert!(!a.has_data());
}

#[test]
fn more_than_was_granted_or_after_the_end_breaks_the_stream_from_either_side() {
    let [mut a, mut b] = pair();
    for id in [0, 2, 4, 6] {
        a.handle_stream(at(0), StreamId(id), open(1));
    }
    cross(&mut a, &mut b);
    for id in [1, 3, 5, 7] {
        b.handle_stream(at(0), StreamId(id), StreamItem::Credit(10));
    }
    cross(&mut b, &mut a);
    a.handle_stream(at(0), StreamId(0), data(&[0; 11]));
    a.handle_stream(at(0), StreamId(2), StreamItem::Finish);
    a.handle_stream(at(0), StreamId(2), data(b"x"));
    assert_eq!(a.counters().streams_broken, 2);
    let resets = cross(&mut a, &mut b);
    assert_eq!(resets, [1, 3].map(|id| stream(id, StreamItem::Reset)));
    // The far end lies.
    let mut body = [0; SYMBOL];
    let mut filler = Filler::new(&mut body);
    filler.put(&Chunk::Data { stream: 4, bytes: &[0; 11] });
    filler.put(&Chunk::Finish { stream: 6, bytes: 0 });
    filler.put(&Chunk::Data { stream: 6, bytes: b"x" });
    let lies = made_up(&b, &body);
    take(&mut b, &lies);
    assert_eq!(b.counters().streams_broken, 2);
    let up: Vec<_> = core::iter::from_fn(|| b.poll()).collect();
    let expected = [(5, StreamItem::Reset), (7, StreamItem::Finish), (7, StreamItem::Reset)];
    assert_eq!(up, expected.map(|(id, item)| stream(id, item)));
}

#[test]
fn too_many_streams_are_reset() {
    let config = Config { streams: 2, ..Config::default() };
    let [mut a, mut b] = acquainted([&Config::default(), &config]);
    for id in 0..9 {
        a.handle_stream(at(0), StreamId(2 * id), open(1));
    }
    let up = cross(&mut a, &mut b);
    assert_eq!(up.len(), 2);
    let resets = cross(&mut b, &mut a);
    assert_eq!(resets, [4, 6, 8, 10].map(|id| stream(id, StreamItem::Reset)), "as many as one remembers");
    b.handle_stream(at(0), StreamId(0), open(1));
    assert_eq!(b.poll(), Some(stream(0, StreamItem::Reset)), "nor does it open more itself");
    assert_eq!(b.counters().streams_refused, 8);
}

#[test]
fn streams_and_units_share_the_symbols_alike() {
    let [mut a, mut b] = pair();
    for id in [0, 2, 4] {
        a.handle_stream(at(0), StreamId(id), open(1));
    }
    cross(&mut a, &mut b);
    for id in [1, 3, 5] {
        b.handle_stream(at(0), StreamId(id), StreamItem::Credit(1 << 20));
    }
    cross(&mut b, &mut a);
    for id in [0, 2, 4] {
        a.handle_stream(at(0), StreamId(id), data(&[0; 100_000]));
    }
    for _ in 0..100 {
        a.push_unit(at(0), Buffer::zeroed(1000));
    }
    for _ in 0..240 {
        take(&mut b, &symbol(&mut a));
    }
    let up: Vec<_> = core::iter::from_fn(|| b.poll()).collect();
    let streams = [1, 3, 5].map(|id| bytes(&up, id).len());
    let units = up.iter().filter(|up| matches!(up, Up::Unit(_))).count() * 1000;
    assert!(streams.iter().all(|&len| (7_000..9_000).contains(&len)), "{streams:?}");
    assert!((22_000..25_000).contains(&units), "{units}");
}

#[test]
fn the_other_edge_begins_anew_and_all_streams_are_reset() {
    let [mut a, mut b] = pair();
    a.handle_stream(at(0), StreamId(0), open(1));
    a.handle_stream(at(0), StreamId(2), open(1));
    cross(&mut a, &mut b);
    a.meet(3, true);
    let up: Vec<_> = core::iter::from_fn(|| a.poll()).collect();
    assert_eq!(up, [0, 2].map(|id| stream(id, StreamItem::Reset)));
    assert_eq!(a.counters().streams_restarted, 2);
    // It is notified of those that it may have received from the beginning.
    let mut anew = Framing::new(&Config::default());
    anew.begin(3);
    anew.meet(1, true);
    a.handle_stream(at(0), StreamId(4), open(1));
    let up = cross(&mut a, &mut anew);
    assert!(matches!(up[..], [Up::Stream(StreamId(5), StreamItem::Open { .. })]), "{up:?}");
    assert_eq!(anew.counters().chunks_stray, 2, "resets of what it does not know");
}
