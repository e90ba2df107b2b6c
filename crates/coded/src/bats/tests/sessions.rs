//! Sessions that replace each other, and those that somebody only claims.

use hopcast_core::{StreamId, StreamItem};

use super::chain::{Place, address};
use super::*;
use crate::bats::wire::{self, Info, Writer};

/// Edge, relay, edge; the far one has received units.
fn running(config: &Config, seed: u64) -> Chain {
    let cables = vec![cable(50, Duration::from_millis(5), Loss::None, 64); 2];
    let mut chain = Chain::new(config, &cables, seed);
    assert_eq!(passed(&mut chain, 0), 20);
    chain
}

/// Gives 20 units to an edge; how many come out at the other within half a second.
fn passed(chain: &mut Chain, edge: usize) -> usize {
    let to = chain.last() - edge;
    chain.arrived.clear();
    for number in 0..20 {
        chain.give(edge, &[number; 800]);
        chain.run_for(Duration::from_millis(2));
    }
    chain.run_for(Duration::from_millis(460));
    chain.arrived.iter().filter(|(_, at, unit)| *at == to && unit.len() == 800).count()
}

/// INFO of a session that nobody has, as a neighbour would send it.
fn claim(config: &Config, mark: u32) -> Buffer {
    let strict = config.feedback == crate::bats::Feedback::None;
    let info = Info {
        session: wire::Session { mark },
        echo: None,
        batch: config.batch,
        block: config.batch.symbols() as u16 * 4,
        symbol: 1000,
        epoch: mark,
        round_trip: 0,
        deadline: None,
        fixed: false,
        elapsed: 0,
        budget: strict.then_some(1000),
        ask: true,
        floor: 0,
    };
    emit(&info)
}

fn emit(info: &Info) -> Buffer {
    let mut datagram = Buffer::zeroed(1 + info.len());
    let mut out = Writer::new(&mut datagram);
    out.u8(wire::MAGIC);
    info.write(&mut out);
    datagram
}

#[test]
fn a_session_that_nobody_vouches_for_displaces_none() {
    for config in [Config::default(), Config::strict()] {
        let mut chain = running(&config, 1);
        for round in 0..200 {
            for (node, from) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
                chain.inject(node, address(from), claim(&config, 0x7000_0000 + round));
            }
            chain.run_for(Duration::from_millis(1));
        }
        assert_eq!((passed(&mut chain, 0), passed(&mut chain, 2)), (20, 20));
        let challenges: u64 = (0..3).map(|node| chain.counter(node, "challenges_sent")).sum();
        assert!((1..=4 * 5).contains(&challenges), "{challenges} in 200 ms");
    }
}

#[test]
fn a_claim_that_came_first_gives_way_to_the_session_that_is_vouched_for() {
    for config in [Config::default(), Config::strict()] {
        let cables = vec![cable(50, Duration::from_millis(5), Loss::None, 64); 2];
        let mut chain = Chain::new(&config, &cables, 1);
        for (node, from) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
            chain.inject(node, address(from), claim(&config, 77));
        }
        chain.run_for(Duration::from_millis(100));
        assert_eq!((passed(&mut chain, 0), passed(&mut chain, 2)), (20, 20));
    }
}

#[test]
fn an_edge_that_is_started_anew_is_heard_whatever_was_before() {
    for config in [Config::default(), Config::strict()] {
        let mut chain = running(&config, 1);
        let mut before = Vec::new();
        for _ in 0..5 {
            chain.sent.clear();
            for number in 0..8 {
                chain.give(0, &[number; 500]);
            }
            before.extend(chain.sent.drain(..).filter(|(from, _)| *from == 0).map(|(_, sent)| sent));
            chain.restart(0);
            // What the one before has sent is late.
            before.iter().for_each(|late| chain.inject(1, address(0), late.clone()));
            assert_eq!(passed(&mut chain, 0), 20);
            before.iter().for_each(|late| chain.inject(1, address(0), late.clone()));
            assert_eq!((passed(&mut chain, 0), passed(&mut chain, 2)), (20, 20));
        }
        for node in [2, 1, 0] {
            chain.restart(node);
        }
        assert_eq!((passed(&mut chain, 0), passed(&mut chain, 2)), (20, 20));
    }
}

#[test]
fn a_relay_that_has_missed_a_change_brings_no_session_back() {
    let hop = || cable(50, Duration::from_millis(5), Loss::None, 64);
    let places = [
        Place::Edge(vec![1, 2]),
        Place::Relay(vec![0], vec![3]),
        Place::Relay(vec![0], vec![3]),
        Place::Edge(vec![1, 2]),
    ];
    let cables = [(0, 1, hop()), (0, 2, hop()), (1, 3, hop()), (2, 3, hop())];
    let mut chain = Chain::graph(&Config { split: true, ..Config::default() }, &places, &cables, 3);
    assert_eq!(passed(&mut chain, 0), 20);
    // What the second relay has is still to be delivered as it loses the source, which is started anew.
    chain.change(3, None, &Change::Down);
    (0..60).for_each(|number| chain.give(0, &[number; 1400]));
    chain.run_for(Duration::from_millis(100));
    chain.change(1, None, &Change::Down);
    chain.restart(0);
    chain.restart(3);
    chain.run_for(Duration::from_millis(50));
    chain.change(3, None, &Change::Up);
    let (local, remote) = (address(100), address(103));
    let id = StreamId(0);
    chain.give_stream(0, id, StreamItem::Open { local, remote });
    chain.give_stream(0, id, StreamItem::Credit(1 << 20));
    chain.run_for(Duration::from_secs(3));
    chain.streamed.clear();
    assert_eq!(passed(&mut chain, 0), 20);
    chain.run_for(Duration::from_secs(5));
    assert_eq!(passed(&mut chain, 0), 20);
    let reset = |(_, _, item): &&(usize, StreamId, StreamItem)| matches!(item, StreamItem::Reset);
    assert_eq!(chain.streamed.iter().filter(reset).count(), 0, "the session has not changed again");
}

#[test]
fn an_echo_of_what_was_not_asked_vouches_for_nothing() {
    let config = Config::default();
    let mut chain = running(&config, 1);
    for guess in 1..=1000_u32 {
        let mut info = wire::parse(&claim(&config, 5), |_| None).unwrap().info.expect("INFO");
        info.echo = std::num::NonZeroU32::new(guess);
        chain.inject(2, address(1), emit(&info));
    }
    assert_eq!(passed(&mut chain, 0), 20);
    assert_eq!(chain.counter(2, "received_stale"), 1000);
}
