//! Branches of a tree that vanish, and may come back.

use super::chain::Place;
use super::*;

/// Long enough to fill the window, and more.
const LONG: Duration = Duration::from_secs(45);

/// With a window that is soon full.
fn configs() -> [Config; 2] {
    let config = |config| Config { window: 64, unit_delay: Duration::from_secs(200), ..config };
    [config(Config::default()), Config { batch: BatchSize::M16, block: 256, ..config(Config::strict()) }]
}

/// A source, a relay, and three branches from there: a sink, another sink, and a relay with a sink behind.
fn tree(config: &Config) -> Chain {
    let places = [
        Place::Edge(vec![1]),
        Place::Relay(vec![0], vec![2, 3, 4]),
        Place::Edge(vec![1]),
        Place::Edge(vec![1]),
        Place::Relay(vec![1], vec![5]),
        Place::Edge(vec![4]),
    ];
    let hop = cable(20, Duration::from_millis(1), independent(3.0), 64);
    let cables = [(0, 1), (1, 2), (1, 3), (1, 4), (4, 5)].map(|(from, to)| (from, to, hop.clone()));
    Chain::graph(config, &places, &cables, 7)
}

/// Gives numbered units, 100 in a second.
fn offer(chain: &mut Chain, number: &mut u32, span: Duration) {
    offer_every(Duration::from_millis(10), chain, number, span);
}

fn offer_every(gap: Duration, chain: &mut Chain, number: &mut u32, span: Duration) {
    let end = chain.now + span;
    while chain.now < end {
        let mut unit = vec![*number as u8; 300];
        unit[..4].copy_from_slice(&number.to_be_bytes());
        chain.give(0, &unit);
        *number += 1;
        chain.run_for(gap);
    }
}

/// The numbers of the units that have arrived at a node, whole.
fn numbers(chain: &Chain, node: usize) -> Vec<u32> {
    let number = |unit: &Buffer| {
        let number = u32::from_be_bytes(unit[..4].try_into().unwrap());
        assert!(unit.len() == 300 && unit[4..].iter().all(|&byte| byte == number as u8), "unit {number}");
        number
    };
    chain.arrived.iter().filter(|(_, at, _)| *at == node).map(|(_, _, unit)| number(unit)).collect()
}

fn given_up(chain: &Chain) -> Vec<u64> {
    (0..chain.nodes.len()).map(|node| chain.counter(node, "branches_given_up")).collect()
}

#[test]
fn a_branch_that_vanishes_stops_the_others_for_half_a_minute_and_no_longer() {
    for config in configs() {
        // A sink, or the last hop to one.
        for (link, lost) in [(2, 3), (4, 5)] {
            let (mut chain, mut number) = (tree(&config), 0);
            offer(&mut chain, &mut number, Duration::from_secs(1));
            chain.change(link, None, &Change::Down);
            offer(&mut chain, &mut number, LONG);
            assert_eq!(given_up(&chain), [0, 1, 0, 0, 0, 0], "{}", chain.nodes[1].state());
            for sink in [2, 3, 5] {
                let arrived = numbers(&chain, sink);
                let all = arrived.iter().copied().eq(0..arrived.len() as u32);
                let missing = number as usize - arrived.len();
                assert!(all && (missing > 4000) == (sink == lost), "{missing} are missing at {sink}");
            }
            // It comes back, and gets what is new after a second at the latest.
            chain.change(link, None, &Change::Up);
            chain.run_for(Duration::from_secs(2));
            let back = number;
            offer(&mut chain, &mut number, Duration::from_secs(10));
            chain.run_for(Duration::from_secs(5));
            for sink in [2, 3, 5] {
                let arrived = numbers(&chain, sink);
                assert!(arrived.is_sorted_by(|one, other| one < other));
                let news = arrived.iter().filter(|&&id| id >= back + 100).count() as u32;
                let states: Vec<_> = chain.nodes.iter().map(bats::Node::state).collect();
                assert_eq!(news, number - back - 100, "at {sink}: {}", states.join("\n"));
                assert!(sink == lost || arrived.len() as u32 == number);
            }
            assert_eq!(given_up(&chain), [0, 1, 0, 0, 0, 0]);
        }
    }
}

#[test]
fn a_sink_that_is_started_anew_after_it_was_given_up_gets_what_is_new() {
    for config in configs() {
        let (mut chain, mut number) = (tree(&config), 0);
        offer(&mut chain, &mut number, Duration::from_secs(1));
        chain.change(2, None, &Change::Down);
        offer(&mut chain, &mut number, LONG);
        chain.restart(3);
        chain.change(2, None, &Change::Up);
        chain.run_for(Duration::from_secs(2));
        let back = number;
        offer(&mut chain, &mut number, Duration::from_secs(5));
        chain.run_for(Duration::from_secs(5));
        let arrived = numbers(&chain, 3);
        assert!(arrived.is_sorted_by(|one, other| one < other));
        let news = arrived.iter().filter(|&&id| id >= back + 100).count() as u32;
        assert_eq!(news, number - back - 100, "{}", chain.nodes[1].state());
    }
}

#[test]
fn an_outage_that_all_share_gives_nobody_up() {
    for config in configs() {
        for links in [&[0][..], &[1, 2, 3]] {
            let (mut chain, mut number) = (tree(&config), 0);
            offer(&mut chain, &mut number, Duration::from_secs(1));
            links.iter().for_each(|&link| chain.change(link, None, &Change::Down));
            offer(&mut chain, &mut number, LONG);
            links.iter().for_each(|&link| chain.change(link, None, &Change::Up));
            chain.run_for(Duration::from_secs(20));
            assert_eq!(given_up(&chain), [0; 6]);
            for sink in [2, 3, 5] {
                assert!(numbers(&chain, sink).iter().copied().eq(0..number), "{}", chain.nodes[1].state());
            }
        }
    }
}

/// A source with a relay and a sink behind it, and another sink.
fn fork(config: &Config) -> Chain {
    let places =
        [Place::Edge(vec![1, 2]), Place::Relay(vec![0], vec![3]), Place::Edge(vec![0]), Place::Edge(vec![1])];
    let hop = cable(20, Duration::from_millis(1), independent(3.0), 64);
    let cables = [(0, 1), (0, 2), (1, 3)].map(|(from, to)| (from, to, hop.clone()));
    Chain::graph(config, &places, &cables, 7)
}

#[test]
fn a_source_goes_on_without_a_child_that_vanishes() {
    for config in configs() {
        for (link, sink) in [(0, 2), (1, 3)] {
            let (mut chain, mut number) = (fork(&config), 0);
            offer(&mut chain, &mut number, Duration::from_secs(1));
            chain.change(link, None, &Change::Down);
            offer(&mut chain, &mut number, LONG);
            chain.run_for(Duration::from_secs(3));
            assert_eq!(given_up(&chain), [1, 0, 0, 0], "{}", chain.nodes[0].state());
            assert!(
                numbers(&chain, sink).into_iter().eq(0..number),
                "{} of {number}",
                numbers(&chain, sink).len()
            );
        }
    }
}

#[test]
fn with_a_deadline_nobody_waits_for_a_branch_that_vanishes() {
    // 10 Mbit/s of 20: a child that is waited for would stop the others within its grant.
    let gap = Duration::from_micros(240);
    for config in configs() {
        let ranks = config.feedback == bats::Feedback::Ranks;
        for after in [50, 200, 1000].map(Duration::from_millis) {
            let delivery = Delivery::Deadline { after, fixed: true, rounds: if ranks { 3 } else { 0 } };
            let config = Config { delivery, one_clock: true, window: 1024, ..config.clone() };
            // A child of a relay vanishes, and each of a source.
            for (mut chain, link, sinks) in
                [(tree(&config), 2, &[2, 5][..]), (fork(&config), 1, &[3]), (fork(&config), 0, &[2])]
            {
                let mut number = 0;
                offer_every(gap, &mut chain, &mut number, Duration::from_secs(1));
                chain.change(link, None, &Change::Down);
                offer_every(gap, &mut chain, &mut number, Duration::from_secs(5));
                chain.run_for(Duration::from_secs(3));
                for &sink in sinks {
                    let arrived = numbers(&chain, sink).len() as f64 / f64::from(number);
                    let min = if ranks { 0.999 } else { 0.92 };
                    assert!(arrived >= min, "{after:?}, without {link}: {arrived} at {sink}");
                }
            }
        }
    }
}

#[test]
fn a_path_without_branches_waits_for_its_sink() {
    for config in configs() {
        let hop = cable(20, Duration::from_millis(1), independent(3.0), 64);
        let (mut chain, mut number) = (Chain::new(&config, &[hop.clone(), hop], 7), 0);
        offer(&mut chain, &mut number, Duration::from_secs(1));
        chain.change(1, None, &Change::Down);
        offer(&mut chain, &mut number, LONG);
        chain.change(1, None, &Change::Up);
        chain.run_for(Duration::from_secs(20));
        assert!(numbers(&chain, 2).iter().copied().eq(0..number), "{}", chain.nodes[0].state());
    }
}
