//! Losses are found and repaired without waiting where that can be.

use super::pair::{CLIENT, Direction, Pair, SERVER, ms};
use crate::tcp::wire::SYN;
use crate::tcp::{Config, Congestion};
use hopcast_core::Duration;

/// Loses the segments of the client with data that `lost` picks by their number.
fn lose_data(pair: &mut Pair, mut lost: impl FnMut(usize) -> bool + 'static) {
    let mut number = 0;
    pair.lose = Some(Box::new(move |host, header, len| {
        if host != CLIENT || len == 0 || header.has(SYN) {
            return false;
        }
        number += 1;
        lost(number - 1)
    }));
}

#[test]
fn one_loss_in_the_middle_is_repaired_within_a_round_trip() {
    for sack in [true, false] {
        let mut pair = Pair::new(1, Config { sack, ..Config::default() }, Direction::default());
        pair.accept = (0, true);
        lose_data(&mut pair, |n| n == 30);
        pair.open(500_000, true);
        assert!(pair.run_to_the_end(Duration::from_secs(1)), "sack {sack}");
        assert_eq!(pair.counter(CLIENT, "retransmits"), 1);
        assert_eq!(pair.counter(CLIENT, "fast_recoveries"), 1);
        assert_eq!(pair.counter(CLIENT, "rto_timeouts"), 0);
    }
}

#[test]
fn a_retransmission_that_is_lost_is_sent_again_without_a_timeout() {
    let mut pair = Pair::new(2, Config::default(), Direction::default());
    // The 30th segment, and its first two retransmissions.
    let mut victim = None;
    let mut losses = 0;
    let mut number = 0;
    pair.lose = Some(Box::new(move |host, header, len| {
        if host != CLIENT || len == 0 {
            return false;
        }
        number += 1;
        if number == 31 {
            victim = Some(header.seq);
        }
        let lost = victim == Some(header.seq) && losses < 3;
        losses += u32::from(lost);
        lost
    }));
    pair.open(3_000_000, true);
    assert!(pair.run_to_the_end(Duration::from_secs(3)));
    assert_eq!(pair.counter(CLIENT, "retransmits"), 3);
    assert_eq!(pair.counter(CLIENT, "rto_timeouts"), 0);
}

#[test]
fn a_lost_tail_is_probed_for_in_two_round_trips() {
    let mut pair = Pair::new(3, Config::default(), Direction::default());
    lose_data(&mut pair, |n| n == 19);
    let id = pair.open(20 * 1448, false);
    pair.run_for(ms(150));
    assert_eq!(pair.server().read, 20 * 1448);
    assert_eq!(pair.counter(CLIENT, "tlp_probes"), 1);
    assert_eq!(pair.counter(CLIENT, "rto_timeouts"), 0);
    // The repair of a loss without recovery counts once more data are acknowledged.
    pair.write(CLIENT, id, 10_000);
    pair.run_for(ms(100));
    assert_eq!(pair.counter(CLIENT, "tlp_recoveries"), 1);
}

#[test]
fn a_silent_path_is_tried_ever_more_rarely_and_at_last_given_up() {
    let mut pair = Pair::new(4, Config::default(), Direction::default());
    let id = pair.open(10_000, false);
    pair.run_for(ms(200));
    pair.lose = Some(Box::new(|_, _, _| true));
    pair.sent = Some(Vec::new());
    pair.write(CLIENT, id, 1);
    pair.run_for(Duration::from_secs(2000));
    let at: Vec<_> = pair.sent.take().unwrap().iter().map(|(at, ..)| at.as_secs_f64()).collect();
    let gaps: Vec<_> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The first send, the probe, then the timeouts: twice as long each time, and late by up to an eighth.
    for (i, pair) in gaps[2..].windows(2).enumerate() {
        let ratio = pair[1] / pair[0];
        assert!(
            (2.0 / 1.13..2.0 * 1.13).contains(&ratio) || (120.0..=135.0).contains(&pair[1]),
            "{i}: {gaps:?}"
        );
    }
    assert!(pair.client().reset);
    assert!((800.0..1000.0).contains(at.last().unwrap()), "given up with the timeout after 924 s: {at:?}");
    assert_eq!(pair.counter(CLIENT, "connections_timed_out"), 1);
}

#[test]
fn a_timeout_leaves_a_window_of_one_segment() {
    let mut pair = Pair::new(9, Config::default(), Direction::default());
    pair.open(u64::MAX, false);
    pair.run_for(ms(100));
    pair.lose = Some(Box::new(|_, _, _| true));
    pair.run_while(Duration::from_secs(5), |pair| pair.counter(CLIENT, "rto_timeouts") == 0);
    let sender = &pair.tcp[CLIENT].connection(hopcast_core::StreamId(0)).unwrap().sender;
    assert_eq!((sender.window.size, sender.board.in_flight()), (1, 1));
}

#[test]
fn a_delay_that_looks_like_a_loss_is_undone() {
    let mut pair = Pair::new(5, Config::default(), Direction::default());
    pair.open(u64::MAX, false);
    pair.run_for(Duration::from_secs(2));
    let window =
        |pair: &Pair| pair.tcp[CLIENT].connection(hopcast_core::StreamId(0)).unwrap().sender.window.size;
    let before = window(&pair);
    // All that is sent from now on takes two seconds longer.
    pair.change(0, |way| way.delay = ms(2005));
    pair.run_for(Duration::from_secs(5));
    assert!(pair.counter(CLIENT, "rto_timeouts") >= 1);
    assert!(pair.counter(CLIENT, "spurious_timeouts") >= 1);
    assert!(window(&pair) >= before / 2, "{} after {before}", window(&pair));
}

#[test]
fn reordering_is_learnt_and_no_longer_taken_for_loss() {
    for congestion in [Congestion::Cubic, Congestion::Bbr] {
        let config = Config { congestion, ..Config::default() };
        let direction = Direction { jitter: ms(2), delay: ms(10), ..Direction::default() };
        let mut pair = Pair::new(6, config, direction);
        pair.open(u64::MAX, false);
        pair.run_for(Duration::from_secs(3));
        let before = (pair.counter(CLIENT, "retransmits"), pair.counter(CLIENT, "segments_sent"));
        let goodput = pair.goodput(Duration::from_secs(5));
        let again = pair.counter(CLIENT, "retransmits") - before.0;
        let sent = pair.counter(CLIENT, "segments_sent") - before.1;
        assert!(goodput > 60.0, "{congestion:?} {goodput}");
        assert!(again * 50 < sent, "{congestion:?} {again} of {sent}");
    }
}

#[test]
fn several_new_blocks_in_one_acknowledgement_are_no_reordering() {
    let mut pair = Pair::new(8, Config::default(), Direction::default());
    pair.open(u64::MAX, false);
    pair.run_for(ms(100));
    // Every fourth segment of a round trip is lost, and of ten acknowledgements nine: the tenth reports three new
    // blocks.
    let (mut data, mut acks) = (0, 0);
    pair.lose = Some(Box::new(move |host, _, len| {
        let count = if host == CLIENT && len > 0 { &mut data } else { &mut acks };
        *count += 1;
        if host == CLIENT { *count % 4 == 0 && *count < 60 } else { *count % 10 != 0 }
    }));
    pair.run_for(ms(200));
    let sender = &pair.tcp[CLIENT].connection(hopcast_core::StreamId(0)).unwrap().sender;
    assert!(pair.counter(CLIENT, "fast_recoveries") > 0);
    assert_eq!(sender.recovery.reordering, 3);
    assert!(!sender.rack.is_reordering_seen());
}

#[test]
fn the_peer_says_what_came_twice() {
    let mut pair = Pair::new(7, Config::default(), Direction { duplicate: 0.1, ..Direction::default() });
    pair.open(3_000_000, true);
    assert!(pair.run_to_the_end(Duration::from_secs(5)));
    assert!(pair.counter(SERVER, "duplicates_received") > 100);
    assert!(pair.counter(CLIENT, "duplicates_reported") > 100);
    assert_eq!(pair.counter(CLIENT, "retransmits"), 0, "the network's duplicates are not this end's");
}
