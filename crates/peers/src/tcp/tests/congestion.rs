//! The congestion controls fill a path, and no more than that.

use std::collections::BTreeMap;

use super::pair::{CLIENT, Direction, Pair, ms};
use crate::tcp::{Config, Congestion};
use hopcast_core::{Duration, Instant, Rate, StreamId};

fn start(congestion: Congestion, direction: Direction) -> Pair {
    let mut pair = Pair::new(1, Config { congestion, ..Config::default() }, direction);
    pair.open(u64::MAX, false);
    pair
}

/// The bound on goodput: the payload of a full segment over its length on the link.
fn bound(megabits: f64) -> f64 {
    megabits * 1448.0 / 1514.0
}

#[test]
fn cubic_reaches_98_percent_of_the_bottleneck() {
    for (rate, delay, queue) in [(300, 3, 1000), (100, 5, 200), (10, 20, 50), (50, 50, 1000)] {
        let direction =
            Direction { rate: Some(Rate::from_mbit(rate)), delay: ms(delay), queue, ..Direction::default() };
        let mut pair = start(Congestion::Cubic, direction);
        pair.run_for(Duration::from_secs(10));
        let share = pair.goodput(Duration::from_secs(20)) / bound(rate as f64);
        assert!(share > 0.98, "{rate} Mbit/s, {delay} ms, {queue} packets: {share}");
    }
}

#[test]
fn reno_reaches_98_percent_where_the_queue_holds_half_its_window() {
    for (rate, delay, queue) in [(100, 5, 200), (10, 20, 50)] {
        let direction =
            Direction { rate: Some(Rate::from_mbit(rate)), delay: ms(delay), queue, ..Direction::default() };
        let mut pair = start(Congestion::Reno, direction);
        pair.run_for(Duration::from_secs(10));
        let share = pair.goodput(Duration::from_secs(20)) / bound(rate as f64);
        assert!(share > 0.98, "{rate} Mbit/s, {delay} ms, {queue} packets: {share}");
    }
}

#[test]
fn vegas_fills_the_path_and_keeps_a_few_segments_in_its_queue() {
    for (rate, delay) in [(100, 5), (20, 40)] {
        let direction = Direction {
            rate: Some(Rate::from_mbit(rate)),
            delay: ms(delay),
            queue: 5000,
            ..Direction::default()
        };
        let mut pair = start(Congestion::Vegas, direction);
        // Beyond slow start it grows by a segment a round trip.
        pair.run_for(Duration::from_secs(20));
        pair.reset_longest_queue(0);
        let share = pair.goodput(Duration::from_secs(4)) / bound(rate as f64);
        assert!(share > 0.95, "{rate} Mbit/s, {delay} ms: {share}");
        let longest = pair.longest_queue(0);
        // A lump of what a millisecond carries comes on top.
        assert!(longest <= 8 + rate * 1000 / 8 / 1514, "{longest} packets queued");
        assert_eq!(pair.counter(CLIENT, "retransmits"), 0);
    }
}

#[test]
fn what_the_window_lets_go_is_sent_in_lumps_of_a_millisecond() {
    // 100 Mbit/s with a full window are 8 segments a millisecond, and a fifth more is what pacing would be.
    let mut pair = start(Congestion::Reno, Direction { queue: 200, ..Direction::default() });
    pair.run_for(Duration::from_secs(2));
    pair.sent = Some(Vec::new());
    pair.run_for(ms(200));
    let mut lumps: BTreeMap<Instant, usize> = BTreeMap::new();
    for (at, host, _) in pair.sent.take().unwrap() {
        if host == CLIENT {
            *lumps.entry(at).or_default() += 1;
        }
    }
    let mean = lumps.values().sum::<usize>() as f64 / lumps.len() as f64;
    assert!((5.0..=12.0).contains(&mean), "{mean} segments at a time; acknowledgements are for two");
}

#[test]
fn hystart_leaves_slow_start_before_a_deep_queue_is_full() {
    let direction = Direction { delay: ms(25), queue: 3000, ..Direction::default() };
    let mut pair = start(Congestion::Cubic, direction);
    pair.run_for(Duration::from_secs(3));
    assert_eq!(pair.counter(CLIENT, "retransmits"), 0);
    let goodput = pair.goodput(Duration::from_secs(1));
    assert!(goodput > 0.95 * bound(100.0), "{goodput}");
}

#[test]
fn bbr_doubles_its_rate_each_round_trip_until_the_path_is_full() {
    let direction = Direction { delay: ms(50), ..Direction::default() };
    let mut pair = start(Congestion::Bbr, direction);
    // The handshake takes one round trip of 100 ms; then 10 segments, and twice as many each round.
    pair.run_for(ms(100));
    let mut sent = Vec::new();
    for _ in 0..6 {
        let before = pair.counter(CLIENT, "segments_sent");
        pair.run_for(ms(101));
        sent.push((pair.counter(CLIENT, "segments_sent") - before) as f64);
    }
    for pair in sent[1..].windows(2) {
        let growth = pair[1] / pair[0];
        assert!((1.6..=3.0).contains(&growth), "{sent:?}");
    }
}

#[test]
fn bbr_finds_the_bandwidth_and_the_round_trip_and_keeps_the_queue_short() {
    for (rate, delay) in [(300, 3), (100, 5), (20, 40)] {
        let direction = Direction {
            rate: Some(Rate::from_mbit(rate)),
            delay: ms(delay),
            queue: 5000,
            ..Direction::default()
        };
        let mut pair = start(Congestion::Bbr, direction);
        pair.run_for(Duration::from_secs(5));
        pair.reset_longest_queue(0);
        let share = pair.goodput(Duration::from_secs(4)) / bound(rate as f64);
        assert!(share > 0.95, "{rate} Mbit/s, {delay} ms: {share}");
        let sender = &pair.tcp[CLIENT].connection(StreamId(0)).unwrap().sender;
        let (pacing, _) = sender.congestion.pacing(1448).unwrap();
        let found = pacing.as_mbit() / bound(rate as f64);
        assert!((0.7..1.3).contains(&found), "{found}");
        let product = rate as f64 * 1e6 * 2.0 * delay as f64 / 1e3 / 8.0 / 1514.0;
        let longest = pair.longest_queue(0) as f64;
        assert!(longest < 1.3 * product + 80.0, "{longest} packets queued, product {product}");
    }
}

#[test]
fn bbr_looks_for_the_round_trip_every_ten_seconds() {
    let mut pair = start(Congestion::Bbr, Direction::default());
    let mut min = u32::MAX;
    while pair.now < Instant::ZERO + Duration::from_secs(25) {
        pair.run_for(ms(10));
        if pair.now > Instant::ZERO + Duration::from_secs(2) {
            min = min.min(pair.tcp[CLIENT].connection(StreamId(0)).unwrap().sender.window.size);
        }
    }
    assert_eq!(min, 4);
}

#[test]
fn bbr_shrugs_off_a_loss_that_stops_cubic() {
    let lossy = Direction { loss: 0.02, ..Direction::default() };
    let figures = [Congestion::Cubic, Congestion::Bbr].map(|congestion| {
        let mut pair = start(congestion, lossy.clone());
        pair.run_for(Duration::from_secs(2));
        pair.goodput(Duration::from_secs(10))
    });
    assert!(figures[0] < 15.0 && figures[1] > 80.0, "{figures:?}");
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut pair = start(Congestion::Cubic, Direction::default());
    let id = StreamId(0);
    pair.apps[CLIENT].get_mut(&id).unwrap().to_write = 0;
    pair.run_for(ms(100));
    for _ in 0..300 {
        pair.write(CLIENT, id, 1448);
        pair.run_for(ms(20));
    }
    let window = pair.tcp[CLIENT].connection(id).unwrap().sender.window.size;
    assert!(window <= 10, "{window}");
}
