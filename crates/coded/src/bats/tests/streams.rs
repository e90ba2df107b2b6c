//! Streams over chains that lose packets.

use super::apps::Apps;
use super::*;

fn lossy_chain(seed: u64) -> Chain {
    let cables = vec![cable(50, Duration::from_millis(2), independent(10.0), 64); 3];
    Chain::new(&Config::default(), &cables, seed)
}

#[test]
fn many_streams_go_both_ways_at_once() {
    let mut chain = lossy_chain(1);
    let mut apps = Apps::default();
    for i in 0..100 {
        apps.open(&mut chain, 0, i * 1000, 50_000);
        apps.open(&mut chain, 1, 20_000, i * 300);
    }
    apps.run(&mut chain, Duration::from_secs(5));
    assert_eq!((apps.complete, apps.open_streams()), ([200, 200], 0));
}

#[test]
fn one_direction_may_finish_long_before_the_other() {
    let mut chain = lossy_chain(2);
    let mut apps = Apps::default();
    apps.open(&mut chain, 0, 0, 2_000_000);
    apps.open(&mut chain, 0, 2_000_000, 0);
    apps.run(&mut chain, Duration::from_secs(3));
    assert_eq!(apps.complete, [2, 2]);
}

#[test]
fn a_reset_ends_both_directions_and_no_other_stream() {
    let mut chain = lossy_chain(3);
    let mut apps = Apps::default();
    let ids: Vec<_> = (0..10).map(|_| apps.open(&mut chain, 0, 500_000, 500_000)).collect();
    apps.run(&mut chain, Duration::from_millis(100));
    for &id in &ids[..5] {
        apps.reset(&mut chain, 0, id);
    }
    apps.run(&mut chain, Duration::from_secs(4));
    assert_eq!((apps.complete, apps.reset), ([5, 5], [5, 5]));
}

#[test]
fn an_application_that_does_not_read_stops_the_one_that_writes_and_nobody_else() {
    let mut chain = lossy_chain(4);
    let mut apps = Apps::default();
    apps.open(&mut chain, 0, 3_000_000, 0);
    apps.run(&mut chain, Duration::from_millis(100));
    apps.set_reads(&mut chain, 1, false);
    apps.run(&mut chain, Duration::from_secs(1));
    let stuck = apps.read[1];
    apps.run(&mut chain, Duration::from_secs(1));
    assert_eq!(apps.read[1], stuck, "a window, and no more");
    apps.open(&mut chain, 1, 1_000_000, 0);
    apps.run(&mut chain, Duration::from_secs(1));
    assert_eq!(apps.complete, [1, 1], "the other stream is through");
    apps.set_reads(&mut chain, 1, true);
    apps.run(&mut chain, Duration::from_secs(3));
    assert_eq!(apps.complete, [2, 2]);
}

#[test]
fn streams_survive_a_hop_that_loses_everything_for_ten_seconds() {
    let mut chain = lossy_chain(5);
    let mut apps = Apps::default();
    for _ in 0..4 {
        apps.open(&mut chain, 0, 3_000_000, 3_000_000);
    }
    apps.run(&mut chain, Duration::from_millis(500));
    chain.change(1, None, &Change::Loss(independent(100.0)));
    apps.run(&mut chain, Duration::from_secs(10));
    assert_eq!(apps.complete, [0, 0]);
    chain.change(1, None, &Change::Loss(independent(10.0)));
    let before = apps.read[1];
    apps.run(&mut chain, Duration::from_secs(2));
    assert!(
        apps.read[1] > before + 1_000_000,
        "it goes on within a second or so: {} bytes",
        apps.read[1] - before
    );
    apps.run(&mut chain, Duration::from_secs(6));
    assert_eq!(apps.complete, [4, 4]);
}

#[test]
fn streams_survive_relays_that_are_restarted() {
    let mut chain = lossy_chain(6);
    let mut apps = Apps::default();
    for _ in 0..4 {
        apps.open(&mut chain, 0, 2_000_000, 2_000_000);
    }
    for round in 0..6 {
        apps.run(&mut chain, Duration::from_millis(150));
        chain.restart(1 + round % 2);
    }
    apps.run(&mut chain, Duration::from_secs(10));
    assert_eq!(
        apps.complete,
        [4, 4],
        "{}",
        (0..4).map(|node| chain.nodes[node].state()).collect::<Vec<_>>().join("\n")
    );
}

#[test]
fn an_edge_that_is_restarted_resets_the_streams_of_the_other_and_takes_new_ones() {
    let mut chain = lossy_chain(7);
    let mut apps = Apps::default();
    apps.open(&mut chain, 0, 100_000_000, 0);
    apps.run(&mut chain, Duration::from_millis(300));
    chain.restart(0);
    let mut anew = Apps::default();
    anew.open(&mut chain, 0, 100_000, 100_000);
    // The far application hears of the old stream's end, then of the new one.
    let mut reset = false;
    for _ in 0..3000 {
        chain.run_for(Duration::from_millis(1));
        if let Some(at) = chain
            .streamed
            .iter()
            .position(|(node, id, item)| *node == 3 && id.0 == 1 && *item == hopcast_core::StreamItem::Reset)
        {
            chain.streamed.drain(..=at);
            reset = true;
        }
        if reset {
            anew.run(&mut chain, Duration::from_millis(1));
        }
    }
    assert!(reset);
    assert_eq!(anew.complete, [1, 1]);
}
