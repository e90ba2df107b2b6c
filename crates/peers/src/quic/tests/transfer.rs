//! Bytes, credit, and what QUIC does about loss.

use std::cell::RefCell;
use std::rc::Rc;

use hopcast_core::{Bytes, StreamId};

use super::pair::{BBR, CLIENT, CUBIC, Hop, Pair, SERVER, ms, with};
use crate::quic::Config;
use crate::quic::crypto::TAG;
use crate::quic::wire::stream_frames;

#[test]
fn all_bytes_arrive_both_ways_and_then_all_is_still() {
    for congestion in [CUBIC, BBR] {
        let mut pair = Pair::new(1, &with(congestion), &[Hop::default()]);
        pair.accept = (700_000, true);
        pair.open(1_000_000, true);
        pair.run(ms(3000));
        let (client, server) = (&pair.apps[CLIENT][&StreamId(0)], &pair.apps[SERVER][&StreamId(1)]);
        assert_eq!((client.read, server.read), (700_000, 1_000_000));
        assert_eq!((client.transmitted, server.transmitted), (1_000_000, 700_000));
        assert!(client.peer_finished && server.peer_finished && !client.reset && !server.reset);
        let sent = |pair: &Pair| [CLIENT, SERVER].map(|end| pair.counter(end, "datagrams_sent"));
        let before = sent(&pair);
        // Nothing is said any more, and after a minute of silence the connection is over.
        pair.run(ms(301_000));
        assert_eq!(sent(&pair), before);
        assert!(!pair.is_busy(), "an end has something to do");
    }
}

#[test]
fn all_bytes_arrive_over_a_path_that_loses_reorders_and_repeats() {
    for congestion in [CUBIC, BBR] {
        let hop = Hop { loss: 0.05, duplicate: 0.05, jitter: ms(5), reorder: true, ..Hop::default() };
        let mut pair = Pair::new(2, &with(congestion), &[hop]);
        pair.accept = (300_000, true);
        pair.open(1_000_000, true);
        pair.run_until(ms(60_000), |pair| {
            pair.apps.iter().flat_map(|apps| apps.values()).filter(|app| app.peer_finished).count() == 2
        });
        assert_eq!((pair.client().read, pair.server().read), (300_000, 1_000_000));
        assert!(pair.counter(CLIENT, "packets_lost") > 0 && pair.counter(CLIENT, "retransmits") > 0);
    }
}

#[test]
fn a_datagram_with_a_bit_flipped_is_as_good_as_lost() {
    let mut pair = Pair::new(1, &with(CUBIC), &[Hop::default()]);
    let flipped = Rc::new(RefCell::new(Vec::new()));
    let note = Rc::clone(&flipped);
    let mut number = 0usize;
    pair.lose = Some(Box::new(move |from, bytes| {
        number += 1;
        if !number.is_multiple_of(10) {
            return false;
        }
        let mut bytes = bytes.to_vec();
        let bit = number * 7919 % (8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
        note.borrow_mut().push((from, bytes));
        true
    }));
    pair.accept = (100_000, true);
    pair.open(500_000, true);
    for _ in 0..6000 {
        pair.run(ms(1));
        for (from, bytes) in flipped.take() {
            pair.inject(1 - from, &bytes);
        }
    }
    assert_eq!((pair.client().read, pair.server().read), (100_000, 500_000));
    assert!(pair.client().peer_finished && pair.server().peer_finished);
}

#[test]
fn a_stream_stands_before_there_is_data() {
    let mut pair = Pair::new(1, &with(CUBIC), &[Hop::default()]);
    pair.accept = (5000, true);
    pair.open(0, false);
    pair.run(ms(200));
    assert!(pair.client().opened && pair.server().opened);
    assert_eq!(pair.client().credit, 512 << 10, "how far it may write ahead of what is on the wire");
    assert_eq!(pair.client().read, 5000, "who accepts may be the first to speak");
}

#[test]
fn a_reader_that_grants_nothing_holds_the_writer_back() {
    let window = 256 << 10;
    let mut pair =
        Pair::new(1, &Config { receive_window: Bytes::new(window), ..with(CUBIC) }, &[Hop::default()]);
    pair.accept_reading = false;
    pair.open(4_000_000, true);
    pair.run(ms(5000));
    let written = pair.client().written;
    assert_eq!(pair.server().read, 0);
    assert!((window..window + (520 << 10)).contains(&written), "{written}");
    pair.server().reading = true;
    pair.act(SERVER, StreamId(1));
    pair.run_until(ms(5000), |pair| pair.apps[SERVER][&StreamId(1)].peer_finished);
    assert_eq!(pair.server().read, 4_000_000);
}

#[test]
fn streams_do_not_wait_for_each_other() {
    let mut pair = Pair::new(1, &with(BBR), &[Hop { loss: 0.05, ..Hop::default() }]);
    for number in 1..=20 {
        pair.open(number * 5_000, true);
    }
    pair.accept = (3_000, true);
    pair.run(ms(20_000));
    assert_eq!(pair.apps[SERVER].values().map(|app| app.read).sum::<u64>(), 210 * 5_000);
    assert!(pair.apps.iter().flat_map(|apps| apps.values()).all(|app| app.peer_finished && !app.reset));
    assert_eq!(pair.counter(CLIENT, "connections_opened"), 1);
}

#[test]
fn a_stream_beyond_what_the_peer_admits_waits_for_one_to_end() {
    let mut pair = Pair::new(1, &with(CUBIC), &[Hop::default()]);
    pair.accept = (0, true);
    for _ in 0..1500 {
        pair.open(10, true);
    }
    pair.run(ms(3000));
    assert_eq!(pair.apps[SERVER].values().filter(|app| app.read == 10).count(), 1500);
}

#[test]
fn at_most_1024_streams_of_an_end_stand_at_a_time() {
    let mut pair = Pair::new(1, &with(CUBIC), &[Hop::default()]);
    for _ in 0..1500 {
        pair.open(10, false);
    }
    pair.run(ms(3000));
    assert_eq!(pair.apps[SERVER].len(), 1024);
    assert_eq!(pair.apps[CLIENT].values().filter(|app| app.opened).count(), 1024);
}

/// The datagrams of the client's while `act` goes on.
fn sent_by_client(pair: &mut Pair, act: impl FnOnce(&mut Pair)) -> Vec<Vec<u8>> {
    let sent = Rc::new(RefCell::new(Vec::new()));
    let note = Rc::clone(&sent);
    pair.lose = Some(Box::new(move |from, bytes| {
        if from == CLIENT {
            note.borrow_mut().push(bytes.to_vec());
        }
        false
    }));
    act(pair);
    sent.take()
}

#[test]
fn datagrams_are_as_long_as_they_may_be_and_1200_bytes_at_least() {
    // RFC 9000 section 14; 1,472 bytes fill an Ethernet frame over IPv4.
    assert_eq!(Config::default().datagram, 1472);
    for (datagram, longest) in [(100, 1200), (1200, 1200), (1472, 1472)] {
        let mut pair = Pair::new(1, &Config { datagram, ..with(CUBIC) }, &[Hop::default()]);
        let sent = sent_by_client(&mut pair, |pair| {
            pair.open(100_000, true);
            pair.run(ms(1000));
        });
        assert_eq!(sent.iter().map(Vec::len).max(), Some(longest));
    }
}

#[test]
fn a_stream_begins_with_a_byte_of_zero_and_a_reset_has_the_code_zero() {
    let mut pair = Pair::new(1, &with(CUBIC), &[Hop::default()]);
    let mut id = None;
    let sent = sent_by_client(&mut pair, |pair| {
        id = Some(pair.open(0, false));
        pair.run(ms(200));
    });
    let mut begun = Vec::new();
    for datagram in &sent {
        stream_frames(datagram, |frame| begun.push((frame.len, datagram[datagram.len() - TAG - 1])));
    }
    assert_eq!(begun, [(1, 0)]);
    let sent = sent_by_client(&mut pair, |pair| {
        pair.reset(CLIENT, id.unwrap());
        pair.client().reset = true;
        pair.run(ms(200));
    });
    // RESET_STREAM of stream 0 (RFC 9000 section 19.4): its code, and that one byte was sent; STOP_SENDING: its code.
    let frames = [0x04, 0, 0, 1, 0x05, 0, 0];
    assert!(
        sent.iter().any(|datagram| datagram.windows(frames.len()).any(|found| found == frames)),
        "{sent:?}"
    );
}

#[test]
fn the_handshake_gets_through_where_half_is_lost() {
    // Six hops that lose 10 % each. Timeouts double each time, so that it may take minutes, and some give up; where
    // three packets of four are lost, most do.
    let arrived = |&seed: &u64| {
        let hops = vec![Hop { loss: 0.1, delay: ms(1), ..Hop::default() }; 6];
        let mut pair = Pair::new(seed, &with(BBR), &hops);
        pair.open(1000, true);
        pair.run(ms(1_000_000));
        pair.apps[SERVER].values().any(|app| app.peer_finished)
    };
    // 85 in 100 arrive: of 400 seeds, since of 40 it is anything from 30 to 39.
    let count = (0..400).filter(arrived).count();
    assert!(count >= 330, "{count} of 400");
}

#[test]
fn the_same_seed_gives_the_same_datagrams() {
    let trace = |seed, congestion| {
        let hop = Hop { loss: 0.1, duplicate: 0.05, jitter: ms(5), reorder: true, ..Hop::default() };
        let mut pair = Pair::new(seed, &with(congestion), &[hop]);
        pair.accept = (100_000, true);
        pair.open(300_000, true);
        pair.run(ms(20_000));
        assert!(pair.client().peer_finished && pair.server().peer_finished);
        pair.trace
    };
    for congestion in [CUBIC, BBR] {
        assert_eq!(trace(1, congestion), trace(1, congestion));
        assert_ne!(trace(1, congestion), trace(2, congestion));
    }
}

#[test]
fn who_has_long_only_acknowledged_may_speak_at_once() {
    let mut pair = Pair::new(1, &with(BBR), &[Hop::default()]);
    pair.open(50_000_000, false);
    pair.run(ms(5000));
    assert!(pair.counter(SERVER, "acks_sent") > 10_000);
    let server = pair.server();
    (server.to_write, server.finish) = (10_000, true);
    pair.act(SERVER, StreamId(1));
    pair.run(ms(30));
    assert_eq!(pair.client().read, 10_000);
}

#[test]
fn a_window_full_of_gaps_is_no_reason_to_give_up() {
    // Slow start runs far into a short queue over a long path, and half of two windows is lost, packet by packet.
    for congestion in [CUBIC, BBR] {
        let hop = Hop { delay: ms(110), loss: 0.3, queue: 50, ..Hop::default() };
        for hop in [Hop { loss: 0.0, ..hop.clone() }, hop] {
            let mut pair = Pair::new(1, &with(congestion), &[hop]);
            pair.open(u64::MAX, false);
            pair.run(ms(20_000));
            assert_eq!((pair.counter(CLIENT, "connections_lost"), pair.client().reset), (0, false));
        }
    }
}
