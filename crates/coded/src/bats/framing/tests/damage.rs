//! A symbol that is missing, damaged or made up resets all streams, at both edges.

use super::*;

/// Three streams that are open at both edges, with bytes to send from the first.
fn with_streams() -> [Framing; 2] {
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
        a.handle_stream(at(0), StreamId(id), data(&[0; 1000]));
        a.handle_stream(at(0), StreamId(id), StreamItem::Finish);
    }
    [a, b]
}

/// The edges tell each other all that there is to say, and have nothing left of any stream.
fn assert_all_reset(a: &mut Framing, b: &mut Framing) {
    let resets = |up: &[Up]| up.iter().filter(|up| matches!(up, Up::Stream(_, StreamItem::Reset))).count();
    let up: Vec<_> = core::iter::from_fn(|| b.poll()).collect();
    assert!(!up.iter().any(|up| matches!(up, Up::Stream(_, StreamItem::Finish))), "{up:?}");
    assert_eq!(resets(&up), 3);
    assert_eq!(resets(&cross(b, a)), 3);
    while a.has_data() || b.has_data() {
        assert_eq!((cross(a, b), cross(b, a)), (vec![], vec![]));
    }
    assert_eq!((a.streams.held(), b.streams.held()), ((0, 0, 0), (0, 0, 0)));
    a.handle_stream(at(0), StreamId(6), open(1));
    assert_eq!(cross(a, b).len(), 1, "what is opened later is not lost");
}

#[test]
fn a_symbol_that_makes_no_sense_resets_all_streams_at_both_edges() {
    let [mut a, mut b] = with_streams();
    take(&mut b, &symbol(&mut a));
    let nonsense = made_up(&b, &[0xFF, 0xFF]);
    symbol(&mut a);
    take(&mut b, &nonsense);
    assert_eq!((b.counters().symbols_malformed, b.counters().streams_damaged), (1, 3));
    assert_all_reset(&mut a, &mut b);
    assert_eq!(a.counters().streams_damaged_there, 3);
}

#[test]
fn symbols_that_are_missing_at_the_end_of_a_block_are_noticed() {
    let [mut a, mut b] = with_streams();
    take(&mut b, &symbol(&mut a));
    // Blocks of which not all numbers are used are nothing special, ...
    let begin = a.filled.unwrap() + 10;
    let mut first = vec![0; SYMBOL];
    a.fill(at(0), begin, &mut first);
    take(&mut b, &(begin, first));
    assert_eq!(b.counters().streams_damaged, 0);
    // ... unless one was, and has not come.
    symbol(&mut a);
    let begin = begin + 10;
    let mut first = vec![0; SYMBOL];
    a.fill(at(0), begin, &mut first);
    take(&mut b, &(begin, first));
    assert_eq!(b.counters().streams_damaged, 3);
    assert_all_reset(&mut a, &mut b);
}

#[test]
fn an_end_before_its_bytes_resets_the_stream() {
    let [mut a, mut b] = with_streams();
    take(&mut b, &symbol(&mut a));
    let mut body = [0; SYMBOL];
    Filler::new(&mut body).put(&Chunk::Finish { stream: 0, bytes: 1000 });
    let early = made_up(&b, &body);
    take(&mut b, &early);
    let up: Vec<_> = core::iter::from_fn(|| b.poll()).collect();
    assert_eq!(up.last(), Some(&stream(1, StreamItem::Reset)));
    assert_eq!(b.counters().streams_broken, 1);
}

#[test]
fn losses_at_both_edges_at_once_are_settled() {
    let [mut a, mut b] = with_streams();
    take(&mut b, &symbol(&mut a));
    for _ in 0..2 {
        a.skip(1);
        b.skip(1);
    }
    while a.has_data() || b.has_data() {
        cross(&mut a, &mut b);
        cross(&mut b, &mut a);
    }
    a.handle_stream(at(0), StreamId(6), open(1));
    b.handle_stream(at(0), StreamId(6), open(1));
    assert_eq!((cross(&mut a, &mut b).len(), cross(&mut b, &mut a).len()), (1, 1));
}

#[test]
fn a_stream_that_was_for_the_edge_before_is_reset_where_its_beginning_comes_again() {
    let mut a = Framing::new(&Config::default());
    a.begin(1);
    a.handle_stream(at(0), StreamId(0), open(1));
    let opening = symbol(&mut a);
    a.meet(5, true);
    a.handle_stream(at(0), StreamId(0), StreamItem::Credit(10));
    let credit = symbol(&mut a);
    // Another edge receives both, since nobody had told that they were delivered.
    let mut b = Framing::new(&Config::default());
    b.begin(7);
    b.meet(1, true);
    take(&mut b, &opening);
    assert!(matches!(b.poll(), Some(Up::Stream(StreamId(1), StreamItem::Open { .. }))));
    take(&mut b, &credit);
    assert_eq!(b.poll(), Some(stream(1, StreamItem::Reset)));
    assert_eq!(b.streams.held().1, 0);
}

#[test]
fn a_reset_that_was_not_told_yet_is_told_to_an_edge_that_is_started_anew() {
    let mut a = Framing::new(&Config::default());
    a.begin(1);
    a.handle_stream(at(0), StreamId(0), open(1));
    let opening = symbol(&mut a);
    a.meet(5, true);
    a.handle_stream(at(0), StreamId(0), StreamItem::Reset);
    a.meet(7, true);
    // The new edge receives the session from its beginning.
    let mut b = Framing::new(&Config::default());
    b.begin(7);
    b.meet(1, true);
    take(&mut b, &opening);
    assert!(matches!(b.poll(), Some(Up::Stream(StreamId(1), StreamItem::Open { .. }))));
    assert_eq!(cross(&mut a, &mut b), [stream(1, StreamItem::Reset)]);
    assert_eq!(b.streams.held().1, 0);
}
