//! Trees and paths side by side.

use super::chain::Place;
use super::*;

/// A source, a relay after a clean hop, and three sinks behind hops that lose 0, 10 and 30 %.
pub(super) fn tree(config: &Config) -> Chain {
    let places = [
        Place::Edge(vec![1]),
        Place::Relay(vec![0], vec![2, 3, 4]),
        Place::Edge(vec![1]),
        Place::Edge(vec![1]),
        Place::Edge(vec![1]),
    ];
    let hop = |percent| cable(50, Duration::from_millis(1), independent(percent), 64);
    let cables = [(0, 1, hop(5.0)), (1, 2, hop(0.0)), (1, 3, hop(10.0)), (1, 4, hop(30.0))];
    Chain::graph(config, &places, &cables, 5)
}

/// Offers units at `mbit`; what arrived at each node, which must be in order, and how much was offered.
pub(super) fn offer(chain: &mut Chain, mbit: f64, span: Duration) -> (Vec<u64>, u64) {
    const SIZE: usize = 1000;
    let (begin, gap) = (chain.now, Duration::from_secs_f64(SIZE as f64 * 8.0 / (mbit * 1e6)));
    let mut number = 0_u64;
    while chain.now < begin + span {
        let mut unit = vec![number as u8; SIZE];
        unit[..8].copy_from_slice(&number.to_be_bytes());
        chain.give(0, &unit);
        number += 1;
        chain.run_for(gap);
    }
    chain.run_for(Duration::from_secs(2));
    let mut arrived = vec![0; chain.nodes.len()];
    let mut last = vec![None; chain.nodes.len()];
    for (_, node, unit) in chain.arrived.drain(..) {
        let id = u64::from_be_bytes(unit[..8].try_into().unwrap());
        assert!(unit[8..].iter().all(|&byte| byte == id as u8) && last[node] < Some(id), "unit {id}");
        last[node] = Some(id);
        arrived[node] += 1;
    }
    (arrived, number)
}

#[test]
fn every_sink_of_a_tree_gets_everything() {
    let mut chain = tree(&Config::default());
    let (arrived, given) = offer(&mut chain, 20.0, Duration::from_secs(1));
    assert_eq!(arrived[2..], [given; 3]);
    // Each branch is repaired by itself: the source sends no more than its own hop loses.
    let repairs = chain.counter(0, "packets_repair");
    assert!(repairs < given / 10, "{repairs} of {given}");
}

#[test]
fn a_tree_goes_as_fast_as_its_neediest_branch() {
    let mut chain = tree(&Config { unit_delay: Duration::from_millis(20), ..Config::default() });
    let (arrived, given) = offer(&mut chain, 60.0, Duration::from_secs(3));
    assert!(arrived[2] == arrived[3] && arrived[3] == arrived[4], "{arrived:?}");
    // 50 Mbit/s less 30 %, less headers and the start.
    let mbit = arrived[4] as f64 * 1000.0 * 8.0 / 3e6;
    assert!(mbit > 28.0 && arrived[4] < given, "{mbit:.1} Mbit/s");
}

/// Two relays side by side.
fn diamond(config: &Config, loss: [f64; 2]) -> Chain {
    let places = [
        Place::Edge(vec![1, 2]),
        Place::Relay(vec![0], vec![3]),
        Place::Relay(vec![0], vec![3]),
        Place::Edge(vec![1, 2]),
    ];
    let hop = |mbit, percent| cable(mbit, Duration::from_millis(2), independent(percent), 64);
    let cables = [
        (0, 1, hop(50, loss[0])),
        (1, 3, hop(50, loss[0])),
        (0, 2, hop(30, loss[1])),
        (2, 3, hop(30, loss[1])),
    ];
    Chain::graph(config, &places, &cables, 5)
}

#[test]
fn two_paths_add_up() {
    for loss in [[0.0, 0.0], [10.0, 5.0]] {
        let config = Config { split: true, unit_delay: Duration::from_millis(20), ..Config::default() };
        let mut chain = diamond(&config, loss);
        let (arrived, _) = offer(&mut chain, 90.0, Duration::from_secs(4));
        let mbit = arrived[3] as f64 * 1000.0 * 8.0 / 4e6;
        let bound = 50.0 * (1.0 - loss[0] / 100.0) + 30.0 * (1.0 - loss[1] / 100.0);
        assert!(mbit > 0.82 * bound, "{mbit:.1} of {bound} Mbit/s at {loss:?}");
    }
}

#[test]
fn one_of_two_paths_may_die_and_come_back() {
    let config = Config { split: true, unit_delay: Duration::from_secs(1), ..Config::default() };
    let mut chain = diamond(&config, [5.0, 5.0]);
    offer(&mut chain, 10.0, Duration::from_millis(500));
    chain.change(2, None, &Change::Down);
    let (arrived, given) = offer(&mut chain, 10.0, Duration::from_secs(1));
    assert_eq!(arrived[3], given, "{}", chain.nodes[0].state());
    chain.change(2, None, &Change::Up);
    offer(&mut chain, 10.0, Duration::from_secs(2));
    let before = chain.counter(2, "received_innovative");
    // More than one of them carries.
    let (arrived, given) = offer(&mut chain, 55.0, Duration::from_secs(1));
    assert_eq!(arrived[3], given);
    assert!(chain.counter(2, "received_innovative") > before + given / 10, "both paths carry again");
}
