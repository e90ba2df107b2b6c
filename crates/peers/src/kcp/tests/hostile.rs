//! Whatever arrives: nothing panics, and what is kept stays within bounds.

use std::cell::Cell;
use std::rc::Rc;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::pair::{CLIENT, Hop, Pair, SERVER, ms};
use crate::kcp::Config;
use crate::kcp::wire::Segment;

/// Numbers where differences overflow, and others.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        0u32..40,
        Just(u32::MAX),
        Just(1 << 30),
        Just((1 << 30) - 1),
        Just(1 << 31),
        Just((1 << 31) - 1),
        any::<u32>()
    ]
}

fn segment() -> impl Strategy<Value = Vec<u8>> {
    let fields = (number(), 79u8..88, any::<u16>(), number(), number(), number());
    let rest = (proptest::bool::weighted(0.1), proptest::collection::vec(any::<u8>(), 0..40), -1i32..2);
    (fields, rest).prop_map(|((conv, command, window, ts, sn, una), (fragment, payload, wrong))| {
        // Half of them are of the conversation that the test below has set up to have this number.
        let conv = if conv % 2 == 0 { u32::MAX } else { conv };
        let mut bytes = Segment { conv, command, window, ts, sn, una, len: 0 }.emit().to_vec();
        bytes[5] = if fragment { 255 } else { 0 };
        let len = (payload.len() as i32 + if wrong == 1 { 3 } else { 0 }) as u32;
        bytes[20..24].copy_from_slice(&len.to_le_bytes());
        bytes.extend(payload);
        bytes
    })
}

fn datagram() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => proptest::collection::vec(segment(), 1..5).prop_map(|segments| segments.concat()),
        1 => proptest::collection::vec(any::<u8>(), 0..2000),
    ]
}

/// Gives a datagram the number of a conversation, where it asks for one, and a header of parity's if there is any.
fn aim(bytes: &mut Vec<u8>, conv: u32, parity: Option<u32>) {
    let mut at = 0;
    while at + 24 <= bytes.len() {
        if bytes[at..at + 4] == [0xFF; 4] {
            bytes[at..at + 4].copy_from_slice(&conv.to_le_bytes());
        }
        at += 24 + u32::from_le_bytes(bytes[at + 20..at + 24].try_into().unwrap()) as usize % 4096;
    }
    if let Some(seqid) = parity {
        let mut sealed = seqid.to_le_bytes().to_vec();
        sealed.extend(if seqid % 13 < 10 { [0xF1, 0] } else { [0xF2, 0] });
        sealed.extend((bytes.len() as u16 + 2).to_le_bytes());
        sealed.append(bytes);
        *bytes = sealed;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(2), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_datagram_is_taken_or_refused(
        parity: bool,
        datagrams in proptest::collection::vec((0usize..2, datagram(), number(), 0u64..30), 1..60),
    ) {
        let config = if parity { Config::FAST3_FEC } else { Config::FAST3 };
        let mut pair = Pair::new(3, &config, &[Hop::default()]);
        pair.unchecked = true;
        pair.accept = (20_000, false);
        pair.open(50_000, false);
        pair.run(ms(25));
        let conv = pair.machines[CLIENT].conversation();
        for (end, mut bytes, seqid, wait) in datagrams {
            aim(&mut bytes, conv, parity.then_some(seqid));
            pair.inject(end, &bytes);
            pair.run(ms(wait));
        }
        pair.run(ms(40_000));
    }
}

#[test]
fn conversations_and_what_is_remembered_of_them_are_bounded() {
    let mut pair = Pair::new(1, &Config::FAST3, &[Hop::default()]);
    let begin = |conv| Segment { command: 81, ..Segment::reset(conv) }.emit();
    for conv in 0..8192 {
        pair.inject(SERVER, &begin(conv));
        pair.inject(SERVER, &Segment::reset(conv).emit());
    }
    for conv in 0..2048 {
        pair.inject(SERVER, &begin(1 << 20 | conv));
    }
    let (conversations, remembered) = pair.machines[SERVER].held();
    assert_eq!((conversations, remembered), (1024, 4096));
    assert_eq!(pair.counter(SERVER, "streams_refused"), 1024);
}

#[test]
fn a_flood_of_one_datagram_is_answered_a_datagram_at_a_time() {
    let mut pair = Pair::new(1, &Config { eager: false, ..Config::FAST3 }, &[Hop::default()]);
    pair.open(0, false);
    pair.run(ms(100));
    let conv = pair.machines[CLIENT].conversation();
    let again = Segment { conv, command: 81, ..Segment::reset(conv) };
    for _ in 0..100_000 {
        pair.inject(SERVER, &again.emit());
    }
    let acknowledged = pair.counter(SERVER, "acks_sent");
    assert!(acknowledged > 95_000, "{acknowledged} of what was repeated is let go of at once");
}

#[test]
fn at_most_4096_acknowledgements_wait_for_the_next_tick() {
    let mut pair = Pair::new(1, &Config { eager: false, ..Config::FAST3 }, &[Hop::default()]);
    pair.open(0, false);
    pair.run(ms(100));
    let before = pair.counter(SERVER, "acks_sent");
    let conv = pair.machines[CLIENT].conversation();
    let again = Segment { conv, command: 81, ..Segment::reset(conv) };
    let mut acknowledged = Vec::new();
    for _ in 0..4096 {
        pair.inject(SERVER, &again.emit());
        acknowledged.push(pair.counter(SERVER, "acks_sent") - before);
    }
    assert_eq!(acknowledged[4094..], [0, 4096]);
}

#[test]
fn numbers_from_2_to_the_30th_on_and_round_trips_of_more_than_a_minute_are_let_go() {
    let mut pair = Pair::new(1, &Config::FAST3, &[Hop::default()]);
    pair.open(1000, false);
    pair.run(ms(70_000));
    let conv = pair.machines[CLIENT].conversation();
    let mut refused = |segment: Segment| {
        let before = pair.counter(CLIENT, "out_of_window");
        pair.inject(CLIENT, &Segment { conv, ..segment }.emit());
        pair.counter(CLIENT, "out_of_window") - before
    };
    let push = Segment { command: 81, ..Segment::reset(0) };
    assert_eq!([(1 << 30) - 1, 1 << 30].map(|sn| refused(Segment { sn, ..push })), [0, 1]);
    // `ikcp.c`, `IKCP_RTO_MAX`: 60 s.
    let acknowledgement = Segment { command: 82, ..Segment::reset(0) };
    assert_eq!([10_000, 9_999].map(|ts| refused(Segment { ts, ..acknowledgement })), [0, 1]);
}

#[test]
fn datagrams_are_as_long_as_they_may_be_within_200_and_65000_bytes() {
    for (mtu, longest) in [(10, 200), (200, 200), (1350, 1350), (u16::MAX, 65_000)] {
        let mut pair = Pair::new(1, &Config { mtu, ..Config::FAST3 }, &[Hop::default()]);
        let seen = Rc::new(Cell::new(0));
        let note = Rc::clone(&seen);
        pair.lose = Some(Box::new(move |_, bytes| {
            note.set(note.get().max(bytes.len()));
            false
        }));
        pair.open(500_000, true);
        pair.run_until(ms(60_000), |pair| pair.apps[SERVER].values().any(|app| app.peer_finished));
        assert_eq!(seen.get(), longest);
    }
}

#[test]
fn a_datagram_from_elsewhere_is_none_of_ours() {
    let mut pair = Pair::new(1, &Config::FAST3, &[Hop::default()]);
    pair.open(1000, false);
    pair.run(ms(100));
    pair.inject_from(SERVER, "10.9.9.9:1".parse().unwrap(), &Segment::reset(0).emit());
    assert_eq!(pair.counter(SERVER, "foreign"), 1);
}
