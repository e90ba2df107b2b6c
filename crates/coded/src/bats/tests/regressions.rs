//! Failures that random chains and datagrams have found, each as it happened at its simplest.

use super::chain::address;
use super::*;
use crate::bats::wire::{self, Report, Writer};

fn numbers(chain: &mut Chain) -> Vec<u8> {
    let number = |(_, edge, unit): (Instant, usize, Buffer)| {
        assert_eq!(edge, chain.nodes.len() - 1);
        unit[0]
    };
    chain.arrived.drain(..).map(number).collect()
}

#[test]
fn a_relay_that_had_everything_and_is_restarted_is_given_it_again() {
    let cables = vec![cable(100, Duration::from_millis(1), Loss::None, 64); 2];
    let mut chain = Chain::new(&Config::default(), &cables, 1);
    chain.change(1, None, &Change::Down);
    for number in 0..5 {
        chain.give(0, &[number; 1000]);
    }
    // The source has nothing left to send or to wait for but the delivery.
    chain.run_for(Duration::from_millis(100));
    chain.restart(1);
    chain.change(1, None, &Change::Up);
    chain.run_for(Duration::from_secs(1));
    assert_eq!(numbers(&mut chain), [0, 1, 2, 3, 4]);
}

#[test]
fn what_a_child_has_from_before_a_restart_is_not_taken_for_what_is_here() {
    for seed in 0..20 {
        let mut cables = vec![cable(100, Duration::from_millis(1), independent(50.0), 64); 2];
        cables[0] = cable(100, Duration::from_millis(1), Loss::None, 64);
        let mut chain = Chain::new(&Config { overhead: 0.0, ..Config::default() }, &cables, seed);
        for number in 0..16 {
            chain.give(0, &[number; 1000]);
            chain.run_for(Duration::from_micros(300));
            if number % 5 == 4 {
                chain.restart(1);
            }
        }
        chain.run_for(Duration::from_secs(3));
        assert!(numbers(&mut chain).iter().copied().eq(0..16), "seed {seed}: {}", chain.nodes[1].state());
    }
}

#[test]
fn what_the_network_delivers_twice_is_repeated_and_not_of_another_session() {
    let mut twice = cable(100, Duration::from_millis(5), Loss::None, 64);
    for direction in [&mut twice.forward, &mut twice.backward] {
        direction.duplicate = Fraction::from_percent(30.0).unwrap();
    }
    let mut chain = Chain::new(&Config::default(), &[twice], 1);
    for number in 0..200 {
        chain.give(0, &[number; 1000]);
        chain.run_for(Duration::from_millis(5));
    }
    let counted = |name| [0, 1].map(|node| chain.counter(node, name));
    assert_eq!(counted("received_stale"), [0, 0]);
    // Reports at the one end, data at the other.
    assert!(
        counted("received_repeated").iter().all(|&count| count > 10),
        "{:?}",
        counted("received_repeated")
    );
}

/// The last report that node 1 sent to node 0, with something changed.
fn forged(chain: &mut Chain, forge: impl Fn(&mut Report<'_>)) -> Buffer {
    let sent: Vec<_> =
        chain.sent.drain(..).filter(|&(from, _)| from == 1).map(|(_, payload)| payload).collect();
    let reports = sent.iter().rev().filter_map(|payload| wire::parse(payload, |_| None).ok()?.report);
    let mut report = reports.into_iter().next().expect("a report");
    report.number = report.number.wrapping_add(1);
    forge(&mut report);
    let mut datagram = Buffer::zeroed(1 + report.len());
    let mut out = Writer::new(&mut datagram);
    out.u8(wire::MAGIC);
    report.write(&mut out);
    datagram
}

#[test]
fn a_report_that_claims_what_was_never_made_changes_nothing() {
    let cables = vec![cable(100, Duration::from_millis(1), Loss::None, 64); 2];
    let mut chain = Chain::new(&Config::default(), &cables, 1);
    let claims: [fn(&mut Report<'_>); 3] = [
        |report| report.base = 7,
        |report| report.floor = 1000,
        // 16 batches of which nothing more is needed.
        |report| (report.list, report.complete) = (&[0x8F], true),
    ];
    for (number, claim) in (0..30).zip(claims.into_iter().cycle()) {
        chain.give(0, &[number; 1000]);
        chain.run_for(Duration::from_millis(30));
        let datagram = forged(&mut chain, claim);
        chain.inject(0, address(1), datagram);
    }
    assert_eq!(chain.counter(0, "malformed"), 30);
    chain.run_for(Duration::from_secs(1));
    assert!(numbers(&mut chain).iter().copied().eq(0..30));
}

#[test]
fn a_parent_that_was_never_heard_of_is_owed_no_report() {
    // The other path's relay has nothing to send: the report that it is due must not be due for ever.
    let places = [
        chain::Place::Edge(vec![1, 2]),
        chain::Place::Relay(vec![0], vec![3]),
        chain::Place::Relay(vec![0], vec![3]),
        chain::Place::Edge(vec![1, 2]),
    ];
    let hop = cable(100, Duration::from_millis(1), Loss::None, 64);
    let cables = [(0, 1), (1, 3), (0, 2), (2, 3)].map(|(from, to)| (from, to, hop.clone()));
    let mut chain = Chain::graph(&Config { split: true, ..Config::default() }, &places, &cables, 1);
    chain.give(0, &[0; 1000]);
    chain.run_for(Duration::from_secs(1));
    assert_eq!(numbers(&mut chain), [0]);
}

#[test]
fn what_an_edge_has_sent_and_is_sent_back_is_not_taken_for_the_others() {
    for config in [Config::default(), Config::strict()] {
        let cables = vec![cable(100, Duration::from_millis(1), Loss::None, 64); 2];
        let mut chain = Chain::new(&config, &cables, 1);
        for number in 0..100 {
            // At first only one edge has anything to say.
            if number >= 50 {
                chain.give(2, &[number; 1000]);
            }
            chain.give(0, &[number; 1000]);
            for _ in 0..8 {
                chain.run_for(Duration::from_micros(250));
                // Everybody is sent everything back by everybody it is sent to.
                let sent: Vec<_> = chain.sent.drain(..).collect();
                for (node, payload) in sent {
                    for from in [node.wrapping_sub(1), node + 1].into_iter().filter(|&from| from < 3) {
                        chain.inject(node, address(from), payload.clone());
                    }
                }
                chain.sent.clear();
            }
        }
        chain.run_for(Duration::from_secs(1));
        let taken = |edge: usize| {
            chain.arrived.iter().filter(move |(_, at, _)| *at == edge).map(|(_, _, unit)| unit[0])
        };
        assert!(taken(2).eq(0..100), "{:?}", taken(2).collect::<Vec<_>>());
        assert!(taken(0).eq(50..100), "{:?}", taken(0).collect::<Vec<_>>());
        assert!((0..3).all(|node| chain.counter(node, "received_own") > 0));
    }
}

#[test]
fn a_session_that_claims_to_be_beyond_all_numbers_is_none() {
    for config in [Config::default(), Config::strict()] {
        let mut malformed = 0;
        for (number, floor) in (2..).zip([u64::MAX, u64::MAX - 5, 1 << 63, (1 << 62) + 1, 1 << 62]) {
            // The first session is taken at its word.
            let mut chain = Chain::new(&config, &[cable(100, Duration::from_millis(1), Loss::None, 64)], 1);
            for number in 0..10 {
                chain.give(0, &[number; 1000]);
            }
            let sent: Vec<_> =
                chain.sent.drain(..).filter(|&(from, _)| from == 0).map(|(_, sent)| sent).collect();
            let mut infos = sent.iter().filter_map(|sent| wire::parse(sent, |_| None).ok()?.info);
            let mut info = infos.next().expect("INFO");
            info.session = wire::Session { mark: 100 + number };
            (info.floor, info.ask) = (floor, true);
            let mut datagram = Buffer::zeroed(1 + info.len());
            let mut out = Writer::new(&mut datagram);
            out.u8(wire::MAGIC);
            info.write(&mut out);
            chain.inject(1, address(0), datagram);
            // It takes DATA of that session.
            let data = sent.iter().filter(|sent| wire::parse(sent, |_| None).unwrap().info.is_none());
            for payload in data {
                let mut payload = payload.clone();
                let at = payload.len()
                    - wire::parse(payload.as_ref(), |_| None)
                        .unwrap()
                        .data
                        .map_or(0, |data| data.payload.len() + data.header_len());
                payload[at + 1..at + 5].copy_from_slice(&(100 + number).to_be_bytes());
                chain.inject(1, address(0), payload);
            }
            chain.run_for(Duration::from_millis(10));
            malformed += chain.counter(1, "malformed");
        }
        assert_eq!(malformed, 4);
    }
}
