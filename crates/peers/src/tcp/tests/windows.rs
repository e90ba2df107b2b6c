//! Back-pressure: an application that does not read holds the other one up, and nothing grows meanwhile.

use super::pair::{CLIENT, Direction, Pair, SERVER, ms};
use crate::tcp::Config;
use hopcast_core::{Bytes, Duration};

fn small() -> Config {
    Config { receive_buffer: Bytes::new(64 << 10), send_buffer: Bytes::new(32 << 10), ..Config::default() }
}

#[test]
fn without_credit_the_window_shuts_and_is_probed_and_credit_opens_it_again() {
    let mut pair = Pair::new(1, small(), Direction::default());
    pair.read_window = 0;
    pair.accept = (0, false);
    pair.open(1_000_000, true);
    pair.run_for(Duration::from_secs(2));
    assert_eq!(pair.server().read, 0);
    let written = pair.client().written;
    assert!((90_000..=98_304).contains(&written), "{written}: one receive buffer and one send buffer");
    pair.sent = Some(Vec::new());
    pair.run_for(Duration::from_secs(20));
    assert_eq!(pair.client().written, written);
    let probes = pair.sent.take().unwrap().len();
    assert!((6..=16).contains(&probes), "{probes} segments in 20 s: probes that back off, and their answers");
    let server = pair.accepted().unwrap();
    pair.apps[SERVER].get_mut(&server).unwrap().set_reading(1 << 20);
    pair.write(SERVER, server, 0);
    assert!(pair.run_while(Duration::from_secs(2), |pair| !pair.server().peer_finished));
    assert_eq!(pair.server().read, 1_000_000);
}

#[test]
fn a_reader_of_little_credit_gets_exactly_what_it_grants() {
    let mut pair = Pair::new(2, small(), Direction { loss: 0.02, ..Direction::default() });
    pair.read_window = 1000;
    pair.open(300_000, true);
    assert!(pair.run_to_the_end(Duration::from_secs(60)));
    assert_eq!(pair.server().read, 300_000);
}

#[test]
fn a_window_update_that_is_lost_is_asked_for() {
    let mut pair = Pair::new(3, small(), Direction::default());
    pair.read_window = 0;
    pair.accept = (0, false);
    pair.open(200_000, true);
    pair.run_for(Duration::from_secs(1));
    let server = pair.accepted().unwrap();
    // The reader begins to read, but what the server sends now is lost.
    pair.lose = Some(Box::new(|host, _, _| host == SERVER));
    let app = pair.apps[SERVER].get_mut(&server).unwrap();
    app.set_reading(1 << 20);
    pair.write(SERVER, server, 0);
    pair.run_for(ms(10));
    pair.lose = None;
    assert!(pair.run_while(Duration::from_secs(10), |pair| !pair.server().peer_finished));
    assert_eq!(pair.server().read, 200_000);
    assert_eq!(pair.counter(CLIENT, "rto_timeouts"), 0);
}

#[test]
fn many_small_writes_become_full_segments_while_the_window_is_shut() {
    let mut pair = Pair::new(4, Config::default(), Direction::default());
    let id = pair.open(0, false);
    pair.run_for(ms(100));
    let before = pair.counter(CLIENT, "segments_sent");
    for _ in 0..50_000 {
        pair.write(CLIENT, id, 1);
    }
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.server().read, 50_000);
    let segments = pair.counter(CLIENT, "segments_sent") - before;
    assert!(segments < 100, "{segments}");
}

#[test]
fn the_end_of_a_stream_is_told_after_its_last_byte() {
    let mut pair = Pair::new(5, small(), Direction::default());
    pair.read_window = 0;
    pair.accept = (0, false);
    pair.open(1000, true);
    pair.run_for(Duration::from_secs(1));
    assert_eq!((pair.server().read, pair.server().peer_finished), (0, false), "nothing has been granted");
    let server = pair.accepted().unwrap();
    pair.apps[SERVER].get_mut(&server).unwrap().set_reading(1 << 20);
    pair.write(SERVER, server, 0);
    assert_eq!((pair.server().read, pair.server().peer_finished), (1000, true));
}
