//! The rules of probes and originator messages at both sides of each limit, on a node with a wire and a radio.

use super::*;
use crate::routing::Removal;
use crate::wire::Header as _;
use crate::wire::batman_v::{Elp, messages};
use hopcast_core::{Buffer, Seed};

const ORIGINATOR: Mac = [2, 0, 0, 0, 2, 0];
/// Neighbours on the wire, interface 0, whose links have 100 Mbit/s.
const A: Via = Via::new(0, [2, 0, 0, 0, 1, 0]);
const B: Via = Via::new(0, [2, 0, 0, 0, 1, 1]);
/// Neighbours on the radio, interface 1, whose links have 10 Mbit/s.
const C: Via = Via::new(1, [2, 0, 0, 0, 1, 2]);
const D: Via = Via::new(1, [2, 0, 0, 0, 1, 3]);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn routing(config: BatmanVConfig) -> BatmanV {
    let link = |last, wireless, megabits| Link {
        mac: [2, 0, 0, 0, 0, last],
        wireless,
        throughput: Some(Rate::from_mbit(megabits)),
        mtu: 1500,
    };
    let links = vec![link(0, false, 100), link(1, true, 10)];
    BatmanV::new(config, links, Seed::new(1, 0).stream(&["node"], 0))
}

/// A node that has just probed its four neighbours, and sends each message at once.
fn node() -> BatmanV {
    let mut node = routing(BatmanVConfig { aggregation: false, ..BatmanVConfig::default() });
    for via in [A, B, C, D] {
        probe(&mut node, at(0), via, 1);
    }
    node.start(at(0));
    sent(&mut node, at(520));
    node
}

fn probe(node: &mut BatmanV, now: Instant, from: Via, seqno: u32) {
    probe_of(node, now, from, seqno, from.address);
}

fn probe_of(node: &mut BatmanV, now: Instant, from: Via, seqno: u32, originator: Mac) -> Vec<Removal> {
    let mut packet = Buffer::copy_from(&[]);
    Elp { originator, seqno, interval: 500 }.prepend(&mut packet);
    let mut events = Vec::new();
    assert!(node.receive(now, from, PacketType::Elp, &packet, &mut events));
    let removal = |event| match event {
        Event::Removed(what) => what,
        Event::Containers(..) => panic!("a probe has no containers"),
    };
    events.into_iter().map(removal).collect()
}

fn ogm(seqno: u32, throughput: u32) -> Ogm2 {
    Ogm2 { ttl: TTL, flags: 0, seqno, originator: ORIGINATOR, tvlv_len: 0, throughput }
}

/// Has a node hear a message; returns whether it took its containers.
fn hear(node: &mut BatmanV, now: Instant, from: Via, ogm: Ogm2) -> bool {
    let containers = [1, 1, 0, 0];
    let mut packet = Buffer::copy_from(&containers);
    Ogm2 { tvlv_len: 4, ..ogm }.prepend(&mut packet);
    let mut events = Vec::new();
    assert!(node.receive(now, from, PacketType::Ogm2, &packet, &mut events));
    events.iter().any(|event| matches!(event, Event::Containers(ORIGINATOR, [1, 1, 0, 0])))
}

/// The messages that are sent: by which interface, and their number, hops and throughput.
fn sent(node: &mut BatmanV, now: Instant) -> Vec<(usize, u32, u8, u32)> {
    let mut found = Vec::new();
    while let Some(due) = node.due(now) {
        if let Due::Packet { interface, bytes, .. } = due
            && let Ok(messages) = messages(&bytes)
        {
            found.extend(messages.map(|(ogm, _)| (interface, ogm.seqno, ogm.ttl, ogm.throughput)));
        }
    }
    found
}

fn router(node: &BatmanV) -> Option<Via> {
    node.common.originators.router(ORIGINATOR, node.common.own())
}

fn metric(node: &BatmanV, via: Via) -> u32 {
    node.common.originators.get(ORIGINATOR).unwrap().metric(node.common.own(), via)
}

#[test]
fn a_path_is_as_fast_as_its_slowest_link_and_slower_behind_each_hop() {
    for (claimed, by_wire, forwarded) in [
        (u32::MAX, 1000, vec![(0, 7, 49, 882), (1, 7, 49, 882)]),
        (1000, 1000, vec![(0, 7, 49, 882), (1, 7, 49, 882)]),
        (999, 999, vec![(0, 7, 49, 881), (1, 7, 49, 881)]),
        (2, 2, vec![(0, 7, 49, 1), (1, 7, 49, 1)]),
        // Nothing is left behind this node.
        (1, 1, vec![]),
    ] {
        let mut node = node();
        hear(&mut node, at(600), A, ogm(7, claimed));
        assert_eq!((router(&node), metric(&node, A)), (Some(A), by_wire), "{claimed}");
        assert_eq!(sent(&mut node, at(600)), forwarded, "{claimed}");
    }
    // Back by the radio that it came by there is half, unless it is little.
    for (claimed, forwarded) in [(200, [88, 50]), (11, [9, 5]), (10, [8, 8])] {
        let mut node = node();
        hear(&mut node, at(600), C, ogm(7, claimed));
        assert_eq!(sent(&mut node, at(600)), [(0, 7, 49, forwarded[0]), (1, 7, 49, forwarded[1])]);
    }
    let mut node = node();
    hear(&mut node, at(600), A, ogm(7, 0));
    assert_eq!((router(&node), node.common.counters.ogms_without_quality), (None, 1));
}

#[test]
fn hops_are_used_up_at_one() {
    for (ttl, forwarded) in [(0, 0), (1, 0), (2, 2), (255, 2)] {
        let mut node = node();
        hear(&mut node, at(600), A, Ogm2 { ttl, ..ogm(7, 1000) });
        let found = sent(&mut node, at(600));
        assert_eq!((router(&node), found.len()), (Some(A), forwarded), "{ttl}");
        assert!(found.iter().all(|&(_, _, left, _)| left == ttl - 1));
        assert_eq!(node.common.counters.ogms_expired, if forwarded == 0 { 2 } else { 0 });
    }
}

#[test]
fn a_neighbour_becomes_the_next_hop_if_its_path_is_faster_or_its_number_five_ahead() {
    for (seqno, throughput, expected) in
        [(10, 500, A), (10, 501, B), (14, 500, A), (14, 501, B), (15, 500, B), (15, 1, B), (14, 1, A)]
    {
        let mut node = node();
        hear(&mut node, at(600), A, ogm(10, 500));
        hear(&mut node, at(700), B, ogm(seqno, throughput));
        assert_eq!(router(&node), Some(expected), "{seqno} {throughput}");
        assert_eq!(node.common.counters.route_changes, if expected == A { 1 } else { 2 });
    }
}

#[test]
fn the_next_hops_messages_go_on_and_each_number_once() {
    let mut node = node();
    assert!(hear(&mut node, at(600), A, ogm(10, 500)));
    assert_eq!(sent(&mut node, at(600)).len(), 2);
    // The same again, and by one that is no better.
    assert!(!hear(&mut node, at(600), A, ogm(10, 500)));
    assert!(!hear(&mut node, at(600), B, ogm(10, 400)));
    assert_eq!(sent(&mut node, at(600)), []);
    // By one that is not the next hop, first; then by the next hop.
    assert!(hear(&mut node, at(600), B, ogm(11, 400)));
    assert_eq!(sent(&mut node, at(600)), []);
    assert!(!hear(&mut node, at(600), A, ogm(11, 500)));
    assert_eq!(sent(&mut node, at(600)), [(0, 11, 49, 441), (1, 11, 49, 441)]);
    // By one that becomes it; but the number has gone on already.
    assert!(!hear(&mut node, at(600), B, ogm(11, 600)));
    assert_eq!((router(&node), sent(&mut node, at(600))), (Some(B), vec![]));
}

#[test]
fn a_message_goes_on_where_somebody_may_not_have_it() {
    // On the radio there is one neighbour alone: the originator, the one it came from, or another.
    for (originator, from, by_radio) in [(C.address, C, false), (ORIGINATOR, C, false), (ORIGINATOR, A, true)]
    {
        let mut node = routing(BatmanVConfig { aggregation: false, ..BatmanVConfig::default() });
        for via in [A, B, C] {
            probe(&mut node, at(0), via, 1);
        }
        node.start(at(0));
        sent(&mut node, at(520));
        hear(&mut node, at(600), from, Ogm2 { originator, ..ogm(7, 100) });
        let by: Vec<usize> = sent(&mut node, at(600)).into_iter().map(|found| found.0).collect();
        assert_eq!(by, if by_radio { vec![0, 1] } else { vec![0] });
        // A packet that came by the radio can still go back.
        assert_eq!(node.common.originators.router(originator, 1), Some(from));
    }
}

#[test]
fn old_numbers_are_refused_and_far_ones_are_those_of_a_restart() {
    for (ahead, taken) in [
        (-1, false),
        (0, true),
        (1, true),
        (-63, false),
        (-64, true),
        (65_535, true),
        (65_536, true),
        (i32::MIN, true),
    ] {
        let mut node = node();
        hear(&mut node, at(600), A, ogm(5, 500));
        let seqno = 5_u32.wrapping_add_signed(ahead);
        hear(&mut node, at(700), A, ogm(seqno, 400));
        assert_eq!(metric(&node, A), if taken { 400 } else { 500 }, "{ahead}");
        assert_eq!(node.common.counters.ogms_outdated, u64::from(!taken));
        // Back, which is a restart again after one, too soon for 30 s.
        let counters = |node: &BatmanV| node.common.counters.ogms_of_restart_refused;
        let restarted = taken && !(-63..65_536).contains(&ahead);
        if restarted {
            let back = ogm(seqno.wrapping_add(1 << 20), 300);
            hear(&mut node, at(30_699), A, back);
            assert_eq!((metric(&node, A), counters(&node)), (400, 1), "{ahead}");
            hear(&mut node, at(30_700), A, back);
            assert_eq!((metric(&node, A), counters(&node)), (300, 1), "{ahead}");
        }
    }
}

#[test]
fn numbers_go_on_past_the_end_of_32_bits() {
    let mut node = node();
    for (step, seqno) in [u32::MAX - 1, u32::MAX, 0, 1].into_iter().enumerate() {
        assert!(hear(&mut node, at(600 + step as u64), A, ogm(seqno, 500)));
        assert_eq!(sent(&mut node, at(600 + step as u64)).len(), 2, "{seqno}");
    }
    hear(&mut node, at(700), A, ogm(u32::MAX, 1));
    assert_eq!((metric(&node, A), node.common.counters.ogms_outdated), (500, 1));
    // One that is five ahead across the end.
    hear(&mut node, at(700), B, ogm(2, 400));
    assert_eq!(router(&node), Some(A));
    hear(&mut node, at(700), B, ogm(6, 400));
    assert_eq!(router(&node), Some(B));
    assert_eq!(sent(&mut node, at(700)).len(), 2);
    // Its own, and its neighbour's probes.
    node.seqno = u32::MAX;
    node.schedule(at(800), b"");
    node.schedule(at(801), b"");
    let own: Vec<u32> = sent(&mut node, at(801)).into_iter().map(|found| found.1).collect();
    assert_eq!(own, [u32::MAX, u32::MAX, 0, 0]);
    let last = |node: &BatmanV| node.common.originators.neighbour(A).unwrap().state.last_probe;
    let before = u32::MAX - 100;
    for (seqno, expected) in [(before, before), (u32::MAX, u32::MAX), (0, 0), (u32::MAX, 0), (1, 1)] {
        probe(&mut node, at(900), A, seqno);
        assert_eq!(last(&node), Some(expected));
    }
}

#[test]
fn after_a_restart_the_first_that_brings_a_message_is_the_next_hop() {
    let mut node = node();
    hear(&mut node, at(600), A, ogm(1 << 20, 500));
    hear(&mut node, at(600), B, ogm(1 << 20, 400));
    assert_eq!(router(&node), Some(A));
    // The number is behind that of A's path, which would otherwise stay until it is forgotten.
    hear(&mut node, at(40_000), B, ogm(3, 400));
    assert_eq!((router(&node), metric(&node, A)), (Some(B), 0));
    hear(&mut node, at(40_100), A, ogm(3, 500));
    assert_eq!(router(&node), Some(A));
}

#[test]
fn probes_come_before_messages_and_old_ones_are_refused() {
    let mut node = node();
    let stranger = Via::new(0, [2, 9, 9, 9, 9, 9]);
    hear(&mut node, at(600), stranger, ogm(7, 1000));
    // On the other interface it is another neighbour.
    hear(&mut node, at(600), Via::new(1, A.address), ogm(7, 1000));
    assert_eq!((router(&node), node.common.counters.ogms_by_unknown_neighbours), (None, 2));
    let last = |node: &BatmanV| node.common.originators.neighbour(A).unwrap().state.last_probe;
    for (ahead, taken) in [(1, true), (0, false), (-63, false), (-64, true), (1 << 30, true)] {
        let before = last(&node).unwrap();
        let seqno = before.wrapping_add_signed(ahead);
        probe(&mut node, at(700), A, seqno);
        assert_eq!(last(&node), Some(if taken { seqno } else { before }), "{ahead}");
    }
    assert_eq!(node.common.counters.elps_outdated, 2);
    // A neighbour that is known by its probes alone is no next hop, however few others there are.
    assert!(node.common.originators.status().is_empty());
    probe_of(&mut node, at(800), A, 1 << 31, [2, 0, 0, 0, 0, 1]);
    assert_eq!(node.common.counters.elps_of_own, 1);
}

#[test]
fn neighbours_are_as_many_as_there_may_be() {
    let mut node =
        routing(BatmanVConfig { max_neighbours: 3, max_originators: 2, ..BatmanVConfig::default() });
    let via = |last| Via::new(1, [2, 0, 0, 0, 3, last]);
    for last in 0..5 {
        probe_of(&mut node, at(u64::from(last)), via(last), 1, ORIGINATOR);
    }
    assert_eq!(node.common.originators.neighbours_on(1).count(), 3);
    assert_eq!(node.common.counters.neighbours_refused, 2);
    // Known ones go on, and the other interface has room of its own; the third originator takes the place of one.
    probe_of(&mut node, at(10), via(0), 2, ORIGINATOR);
    assert_eq!(node.common.counters.neighbours_refused, 2);
    assert_eq!(probe_of(&mut node, at(11), A, 1, A.address), []);
    assert_eq!(probe_of(&mut node, at(12), B, 1, B.address), [Removal::Originator(ORIGINATOR)]);
    assert_eq!(node.common.originators.neighbours_on(1).count(), 0);
}

#[test]
fn paths_are_as_many_as_there_may_be_and_make_room_when_they_are_over() {
    const NEIGHBOURS: u8 = 200;
    const ORIGINATORS: u8 = 200;
    let mut node = node();
    let via = |last| Via::new(0, [2, 0, 0, 0, 3, last]);
    let of = |originator| Ogm2 { originator: [2, 0, 0, 0, 4, originator], ..ogm(7, 500) };
    (0..NEIGHBOURS).for_each(|last| probe(&mut node, at(600), via(last), 1));
    for last in 0..NEIGHBOURS {
        for originator in 0..ORIGINATORS {
            hear(&mut node, at(600), via(last), of(originator));
        }
    }
    // Four neighbours there were before; each has a path to itself.
    let wanted = 4 + u64::from(NEIGHBOURS) * (1 + u64::from(ORIGINATORS));
    assert_eq!(node.common.counters.neighbours_refused, wanted - 32_768);
    hear(&mut node, at(600), A, ogm(7, 1000));
    assert_eq!(router(&node), None, "no room");
    // They are forgotten with their originators, and with time.
    node.common.originators.purge(at(600_000), |_| ());
    probe(&mut node, at(600_000), A, 9);
    hear(&mut node, at(600_000), A, ogm(7, 1000));
    assert_eq!(router(&node), Some(A));
}

#[test]
fn a_neighbour_is_idle_after_100_milliseconds() {
    for (idle, probes) in [(100_000, 0), (100_001, 2)] {
        let mut node = node();
        probe(&mut node, at(600), C, 2);
        let when = node.probers[1].at.unwrap();
        // Nothing else is due at that time.
        node.clock = Instant::from_nanos(when.since(Instant::ZERO).as_nanos() - idle * 1000);
        node.note_sent(C);
        node.note_sent(A);
        let mut to_c = 0;
        while let Some(due) = node.due(when) {
            if let Due::Packet { destination, bytes, .. } = due
                && destination == C.address
            {
                assert_eq!(bytes.len(), 200);
                to_c += 1;
            }
        }
        assert_eq!(to_c, probes);
    }
}

#[test]
fn a_message_longer_than_the_mtu_of_an_interface_is_not_sent_there() {
    for (mtu, by) in [(24, vec![0, 1]), (23, vec![1])] {
        let mut node = node();
        node.common.links[0].mtu = mtu;
        hear(&mut node, at(600), A, ogm(7, 1000));
        let found: Vec<usize> = sent(&mut node, at(600)).into_iter().map(|found| found.0).collect();
        assert_eq!(found, by, "{mtu}");
        assert_eq!(node.common.counters.ogms_too_long, if by.len() == 2 { 0 } else { 1 });
    }
}
