//! Half-closing, resets, and a peer that is gone.

use hopcast_core::StreamId;

use super::pair::{BBR, CLIENT, CUBIC, Hop, Pair, SERVER, ms, with};

#[test]
fn one_direction_ends_and_the_other_goes_on() {
    let mut pair = Pair::new(1, &with(CUBIC), &[Hop::default()]);
    pair.open(1000, true);
    pair.run(ms(500));
    assert!(pair.server().peer_finished && !pair.client().peer_finished);
    let server = pair.server();
    (server.to_write, server.finish) = (200_000, true);
    pair.act(SERVER, StreamId(1));
    pair.run(ms(1000));
    assert_eq!(pair.client().read, 200_000);
    assert!(pair.client().peer_finished && !pair.client().reset && !pair.server().reset);
}

#[test]
fn a_reset_ends_both_directions_at_both_ends() {
    for (end, other, id) in [(CLIENT, SERVER, StreamId(0)), (SERVER, CLIENT, StreamId(1))] {
        let mut pair = Pair::new(1, &with(BBR), &[Hop { loss: 0.1, ..Hop::default() }]);
        pair.accept = (u64::MAX, false);
        pair.open(u64::MAX, false);
        pair.run_until(ms(20_000), |pair| pair.apps.iter().all(|apps| apps.values().any(|app| app.read > 0)));
        pair.reset(end, id);
        pair.apps[end].clear();
        pair.run(ms(20_000));
        assert!(pair.apps[other].values().all(|app| app.reset));
        // The connection goes on without it.
        pair.accept = (0, true);
        pair.apps[CLIENT].clear();
        pair.apps[SERVER].clear();
        pair.open(1000, true);
        pair.run(ms(20_000));
        assert!(pair.server().peer_finished);
        assert_eq!(pair.counter(CLIENT, "connections_opened"), 1);
    }
}

#[test]
fn a_stream_reset_before_it_stands_never_was() {
    let mut pair = Pair::new(1, &with(CUBIC), &[Hop::default()]);
    let id = pair.open(1000, true);
    pair.reset(CLIENT, id);
    pair.run(ms(2000));
    assert!(pair.apps[SERVER].is_empty());
    assert!(!pair.client().opened && !pair.client().reset);
}

#[test]
fn a_peer_that_is_gone_is_given_up() {
    let mut pair = Pair::new(1, &with(CUBIC), &[Hop::default()]);
    pair.open(u64::MAX, false);
    pair.run(ms(500));
    pair.lose = Some(Box::new(|_, _| true));
    pair.run(ms(299_000));
    assert!(!pair.client().reset);
    pair.run(ms(300_000));
    assert!(pair.client().reset && pair.server().reset);
    assert_eq!(pair.counter(CLIENT, "connections_lost"), 1);
    assert!(!pair.is_busy());
    // The next stream makes a connection of its own.
    pair.lose = None;
    pair.apps[SERVER].clear();
    pair.open(1000, true);
    pair.run(ms(1000));
    assert_eq!(pair.counter(CLIENT, "connections_opened"), 2);
    assert!(pair.server().peer_finished);
}

#[test]
fn a_peer_that_never_answers_resets_the_stream() {
    let mut pair = Pair::new(1, &with(CUBIC), &[Hop::default()]);
    pair.lose = Some(Box::new(|_, _| true));
    pair.open(1000, true);
    pair.run(ms(400_000));
    assert!(pair.client().reset && !pair.client().opened);
    assert!(!pair.is_busy());
}
