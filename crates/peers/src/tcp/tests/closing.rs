//! Connections end: one direction, both, at once, by force.

use super::pair::{CLIENT, Direction, Pair, SERVER, ms};
use crate::tcp::Config;
use hopcast_core::{Duration, StreamId, StreamItem};

#[test]
fn one_direction_ends_and_the_other_goes_on() {
    let mut pair = Pair::new(1, Config::default(), Direction::default());
    pair.accept = (0, false);
    let id = pair.open(10_000, true);
    pair.run_for(Duration::from_secs(1));
    assert!(pair.server().peer_finished && !pair.client().peer_finished);
    let server = pair.accepted().unwrap();
    let app = pair.apps[SERVER].get_mut(&server).unwrap();
    (app.to_write, app.finish) = (500_000, true);
    pair.write(SERVER, server, 0);
    assert!(pair.run_to_the_end(Duration::from_secs(5)));
    assert_eq!(pair.client().read, 500_000);
    pair.run_for(Duration::from_secs(1));
    assert!(pair.tcp[CLIENT].connection(id).is_none() && pair.tcp[SERVER].connection(server).is_none());
}

#[test]
fn both_ends_may_close_at_once() {
    let mut pair = Pair::new(2, Config::default(), Direction::default());
    pair.accept = (0, false);
    let id = pair.open(0, false);
    pair.run_for(ms(100));
    let server = pair.accepted().unwrap();
    pair.give(CLIENT, id, StreamItem::Finish);
    pair.give(SERVER, server, StreamItem::Finish);
    pair.run_for(Duration::from_secs(1));
    assert!(pair.client().peer_finished && pair.server().peer_finished);
    assert!(!pair.run_for(Duration::from_secs(100)));
}

#[test]
fn a_reset_from_above_ends_both_ends() {
    let mut pair = Pair::new(3, Config::default(), Direction::default());
    let id = pair.open(u64::MAX, false);
    pair.run_for(ms(500));
    pair.apps[CLIENT].get_mut(&id).unwrap().reset = true;
    pair.give(CLIENT, id, StreamItem::Reset);
    // It waits behind what is in the queue.
    pair.run_for(ms(200));
    assert!(pair.server().reset);
    assert!(!pair.run_for(Duration::from_secs(1)));
}

#[test]
fn a_lost_fin_and_a_lost_last_acknowledgement_come_again() {
    for seed in 0..30 {
        let mut pair = Pair::new(seed, Config::default(), Direction { loss: 0.4, ..Direction::default() });
        pair.open(10, true);
        pair.run_while(Duration::from_secs(2000), |pair| !pair.is_over() && !pair.client().reset);
        assert!(pair.client().reset || pair.is_over());
        pair.run_for(Duration::from_secs(2000));
        assert!(pair.tcp[SERVER].connection(StreamId(1)).is_none(), "seed {seed}");
    }
}

#[test]
fn writing_more_than_was_granted_is_the_end_of_the_stream() {
    let mut pair = Pair::new(4, Config::default(), Direction::default());
    let id = pair.open(0, false);
    pair.run_for(ms(100));
    let too_much = hopcast_core::Buffer::zeroed((4 << 20) + 1);
    pair.give(CLIENT, id, StreamItem::Data(too_much));
    assert!(pair.client().reset);
    assert_eq!(pair.counter(CLIENT, "credit_violations"), 1);
}
