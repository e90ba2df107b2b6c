//! Bytes, credit, and what KCP does about loss.

use std::cell::RefCell;
use std::rc::Rc;

use hopcast_core::StreamId;

use super::pair::{CLIENT, Hop, Pair, SERVER, ms};
use crate::kcp::Config;
use crate::kcp::wire::{PUSH, Packet, Segment};

/// The first segment of a datagram.
pub(super) fn first(bytes: &[u8]) -> Segment {
    Packet::parse(bytes).unwrap().segments().next().unwrap()
}

#[test]
fn all_bytes_arrive_both_ways_and_then_all_is_still() {
    for config in [Config::FAST3, Config::FAST3_FEC, Config { eager: false, ..Config::FAST3 }] {
        let mut pair = Pair::new(1, &config, &[Hop::default()]);
        pair.accept = (700_000, true);
        pair.open(1_000_000, true);
        pair.run(ms(3000));
        let (client, server) = (&pair.apps[CLIENT][&StreamId(0)], &pair.apps[SERVER][&StreamId(1)]);
        assert_eq!((client.read, server.read), (700_000, 1_000_000));
        assert_eq!((client.transmitted, server.transmitted), (1_000_000, 700_000));
        assert!(client.peer_finished && server.peer_finished && !client.reset && !server.reset);
        assert!(!pair.is_busy(), "an end has something to do");
    }
}

#[test]
fn a_stream_stands_before_there_is_data() {
    let mut pair = Pair::new(1, &Config::FAST3, &[Hop::default()]);
    pair.open(0, false);
    pair.run(ms(100));
    assert!(pair.client().opened && pair.server().opened);
    assert!(pair.client().credit > 300_000, "two windows");
    assert!(!pair.is_busy(), "an idle stream costs nothing");
}

#[test]
fn a_lost_segment_comes_again_before_its_timeout() {
    let mut pair = Pair::new(1, &Config::FAST3, &[Hop::default()]);
    let mut lost = false;
    pair.lose = Some(Box::new(move |end, bytes| {
        let hit = end == CLIENT && first(bytes).command == PUSH && first(bytes).sn == 20 && !lost;
        lost |= hit;
        hit
    }));
    pair.open(100_000, true);
    // It leaves after 30 ms: one direction, a tick and the other direction. Both the directions and the tick again make
    // 70; its timeout, with the deviation of the first round trip, would make 130.
    pair.run_until(ms(75), |pair| pair.apps[SERVER].values().any(|app| app.peer_finished));
    assert_eq!(pair.counter(CLIENT, "retransmits"), 1);
}

#[test]
fn a_reader_that_grants_nothing_holds_the_writer_back() {
    let config = Config { send_window: 128, receive_window: 128, ..Config::FAST3 };
    let mut pair = Pair::new(1, &config, &[Hop::default()]);
    pair.accept_reading = false;
    pair.open(2_000_000, true);
    pair.run(ms(5000));
    let window = 128 * 1326;
    let written = pair.client().written;
    assert_eq!(pair.server().read, 0);
    assert!((2 * window..3 * window + 2000).contains(&written), "{written}");
    pair.server().reading = true;
    pair.act(SERVER, StreamId(1));
    pair.run_until(ms(3000), |pair| pair.apps[SERVER][&StreamId(1)].peer_finished);
    assert_eq!(pair.server().read, 2_000_000);
}

#[test]
fn a_window_that_nobody_heard_opening_is_asked_for() {
    let mut pair = Pair::new(1, &Config { receive_window: 128, ..Config::FAST3 }, &[Hop::default()]);
    pair.accept_reading = false;
    pair.open(1_000_000, true);
    pair.run(ms(1000));
    pair.lose = Some(Box::new(|end, _| end == SERVER));
    pair.server().reading = true;
    pair.act(SERVER, StreamId(1));
    pair.run(ms(100));
    pair.lose = None;
    // KCP asks for the first time after 7 s and half as long again (`IKCP_PROBE_INIT`).
    pair.run_until(ms(20_000), |pair| pair.apps[SERVER][&StreamId(1)].peer_finished);
}

#[test]
fn who_asks_for_the_window_is_told_it() {
    let mut pair = Pair::new(1, &Config::FAST3, &[Hop::default()]);
    pair.open(1000, false);
    pair.run(ms(500));
    let conv = pair.machines[CLIENT].conversation();
    let told = Rc::new(RefCell::new(Vec::new()));
    let note = Rc::clone(&told);
    pair.lose = Some(Box::new(move |_, bytes| {
        note.borrow_mut().push((first(bytes).command, first(bytes).window));
        false
    }));
    // `ikcp.c`: IKCP_CMD_WASK is 83, IKCP_CMD_WINS 84.
    pair.inject(SERVER, &Segment { command: 83, ..Segment::reset(conv) }.emit());
    pair.run(ms(20));
    assert_eq!(*told.borrow(), [(84, 1024)]);
}

#[test]
fn streams_do_not_wait_for_each_other() {
    let mut pair = Pair::new(1, &Config::FAST3_FEC, &[Hop { loss: 0.05, ..Hop::default() }]);
    for number in 1..=20 {
        pair.open(number * 5_000, true);
    }
    pair.accept = (3_000, true);
    pair.run(ms(3000));
    assert_eq!(pair.apps[SERVER].values().map(|app| app.read).sum::<u64>(), 210 * 5_000);
    assert!(pair.apps.iter().flat_map(|apps| apps.values()).all(|app| app.peer_finished && !app.reset));
    assert!(!pair.is_busy());
}

#[test]
fn the_same_seed_gives_the_same_datagrams() {
    let trace = |seed| {
        let hop = Hop { loss: 0.1, duplicate: 0.05, jitter: ms(5), reorder: true, ..Hop::default() };
        let mut pair = Pair::new(seed, &Config::FAST3_FEC, &[hop]);
        pair.accept = (100_000, true);
        pair.open(300_000, true);
        pair.run(ms(5000));
        assert!(pair.client().peer_finished && pair.server().peer_finished);
        pair.trace
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}
