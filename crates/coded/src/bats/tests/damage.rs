//! Edges that go away and bytes that change: a stream ends well with all of its bytes, or else with a reset.

use hopcast_core::StreamItem;
use proptest::prelude::*;

use super::apps::Apps;
use super::chain::address;
use super::*;

/// Time that it takes until an edge that only waits has asked, been answered, and had each hop vouch for the new
/// session, where what is lost is sent again after 50 ms.
const ANSWERED: Duration = Duration::from_millis(1500);

fn lossy_chain(config: &Config, seed: u64) -> Chain {
    Chain::new(config, &vec![cable(20, Duration::from_millis(2), independent(10.0), 64); 3], seed)
}

/// Ten downloads from the last node to the first that are under way.
fn downloads(config: &Config, seed: u64) -> (Chain, Apps) {
    let mut chain = lossy_chain(config, seed);
    let mut apps = Apps::default();
    for _ in 0..10 {
        apps.open(&mut chain, 0, 100, 1_000_000);
    }
    apps.run(&mut chain, Duration::from_millis(300));
    assert!(apps.read[0] > 100_000);
    (chain, apps)
}

fn restart(chain: &mut Chain, apps: &mut Apps, edge: usize) {
    chain.restart(if edge == 0 { 0 } else { chain.last() });
    apps.forget(edge);
}

/// Whether streams that are opened now, from both ends, carry everything.
fn assert_carries(chain: &mut Chain, apps: &mut Apps) {
    let before = apps.complete;
    for edge in [0, 1, 0, 1] {
        apps.open(chain, edge, 30_000, 100_000);
    }
    apps.run(chain, Duration::from_secs(2));
    assert_eq!(apps.complete, before.map(|count| count + 4), "{:?}, {}", apps.reset, apps.open_streams());
}

#[test]
fn all_downloads_are_reset_when_the_far_edge_is_started_anew() {
    for config in [Config::default(), Config::strict()] {
        let (mut chain, mut apps) = downloads(&config, 1);
        restart(&mut chain, &mut apps, 1);
        apps.run(&mut chain, ANSWERED);
        assert_eq!((apps.reset, apps.complete), ([10, 0], [0, 0]));
        assert_eq!(chain.counter(0, "streams_restarted"), 10);
        assert_carries(&mut chain, &mut apps);
    }
}

#[test]
fn an_edge_that_only_waits_hears_that_the_other_was_started_anew() {
    for config in [Config::default(), Config::strict()] {
        let (mut chain, mut apps) = downloads(&config, 2);
        // Nobody reads on, so that soon everything that was sent is delivered, and nobody has anything to say.
        apps.set_reads(&mut chain, 0, false);
        apps.run(&mut chain, Duration::from_secs(10));
        assert_eq!(apps.reset, [0, 0], "silence is no reason to reset anything");
        restart(&mut chain, &mut apps, 1);
        apps.run(&mut chain, ANSWERED);
        assert_eq!((apps.reset, apps.complete), ([10, 0], [0, 0]));
        assert_carries(&mut chain, &mut apps);
    }
}

#[test]
fn an_edge_that_is_gone_for_good_ends_streams_with_a_reset() {
    for config in [Config::default(), Config::strict()] {
        let config = Config { stream_timeout: Duration::from_secs(20), ..config };
        let (mut chain, mut apps) = downloads(&config, 3);
        chain.change(2, None, &Change::Down);
        apps.run(&mut chain, config.stream_timeout.saturating_sub(Duration::from_secs(1)));
        assert_eq!(apps.reset, [0, 0], "it may still come back");
        apps.run(&mut chain, Duration::from_secs(2));
        assert_eq!((apps.reset, apps.complete), ([10, 10], [0, 0]), "at both ends");
        assert_eq!(chain.counter(0, "streams_timed_out"), 10);
        chain.change(2, None, &Change::Up);
        apps.run(&mut chain, Duration::from_secs(15));
        assert_carries(&mut chain, &mut apps);
    }
}

#[test]
fn a_restart_during_an_outage_is_heard_of_after_it() {
    let (mut chain, mut apps) = downloads(&Config::default(), 4);
    chain.change(2, None, &Change::Down);
    apps.run(&mut chain, Duration::from_secs(4));
    restart(&mut chain, &mut apps, 1);
    apps.run(&mut chain, Duration::from_secs(4));
    chain.change(2, None, &Change::Up);
    // A link that is gone is asked more and more seldom.
    apps.run(&mut chain, Duration::from_secs(3));
    assert_eq!(apps.reset, [10, 0]);
    assert_carries(&mut chain, &mut apps);
}

#[test]
fn two_restarts_within_a_round_trip_are_as_one() {
    let (mut chain, mut apps) = downloads(&Config::default(), 5);
    restart(&mut chain, &mut apps, 1);
    apps.run(&mut chain, Duration::from_millis(5));
    restart(&mut chain, &mut apps, 1);
    apps.run(&mut chain, ANSWERED);
    assert_eq!(apps.reset, [10, 0]);
    assert_carries(&mut chain, &mut apps);
}

#[test]
fn edges_that_are_started_anew_at_the_same_time_begin_with_nothing() {
    let (mut chain, mut apps) = downloads(&Config::default(), 6);
    restart(&mut chain, &mut apps, 0);
    restart(&mut chain, &mut apps, 1);
    // What is opened at once may still meet what relays have of the sessions before.
    apps.run(&mut chain, ANSWERED);
    assert_carries(&mut chain, &mut apps);
    assert_eq!(apps.reset, [0, 0]);
}

#[test]
fn packets_of_an_earlier_session_that_come_late_change_nothing() {
    let (mut chain, mut apps) = downloads(&Config::default(), 7);
    let late: Vec<_> = chain.sent.drain(..).collect();
    restart(&mut chain, &mut apps, 1);
    apps.run(&mut chain, ANSWERED);
    for _ in 0..4 {
        apps.open(&mut chain, 0, 100_000, 100_000);
    }
    for (from, payload) in late {
        for to in [from.wrapping_sub(1), from + 1] {
            if to <= chain.last() {
                chain.inject(to, address(from), payload.clone());
            }
        }
        apps.run(&mut chain, Duration::from_millis(1));
    }
    apps.run(&mut chain, Duration::from_secs(3));
    assert_eq!((apps.complete, apps.reset), ([4, 4], [10, 0]));
}

#[test]
fn an_edge_that_has_never_said_anything_is_asked_too() {
    for seed in 1..=8 {
        let mut chain = lossy_chain(&Config::default(), seed);
        let (id, is_open) = (hopcast_core::StreamId(0), |(at, _, item): &(usize, _, StreamItem)| {
            *at == 3 && matches!(item, StreamItem::Open { .. })
        });
        // The far edge takes the stream, and then there is another one in its place, before it has said a word.
        let open = || StreamItem::Open { local: address(200), remote: address(201) };
        chain.give_stream(0, id, open());
        chain.run_for(Duration::from_millis(300));
        assert!(chain.streamed.iter().any(is_open));
        chain.restart(3);
        chain.streamed.clear();
        chain.run_for(ANSWERED * 2);
        assert_eq!(chain.streamed, [(0, id, StreamItem::Reset)], "seed {seed}");
        // A stream that is opened afterwards comes to the new one.
        let mut apps = Apps::default();
        chain.streamed.clear();
        assert_carries(&mut chain, &mut apps);
    }
}

#[test]
fn a_byte_that_a_relay_damages_reaches_nobody_and_resets_the_streams_at_both_ends() {
    for config in [Config::default(), Config::strict()] {
        let (mut chain, mut apps) = downloads(&config, 9);
        // What the applications get, they hold against what was sent.
        chain.damage(1);
        apps.run(&mut chain, Duration::from_secs(1));
        assert_eq!((apps.reset, apps.complete), ([10, 10], [0, 0]));
        assert!(chain.counter(0, "symbols_damaged") > 0);
        assert_eq!(chain.counter(0, "streams_damaged"), 10);
        assert_eq!(chain.counter(3, "streams_damaged_there"), 10);
        assert_carries(&mut chain, &mut apps);
    }
}

#[test]
fn a_damaged_unit_is_dropped_and_counted_and_the_next_ones_arrive() {
    for config in [Config { delivery: Delivery::DEADLINE, ..Config::default() }, Config::default()] {
        let mut chain = Chain::new(&config, &vec![cable(50, Duration::from_millis(2), Loss::None, 64); 3], 1);
        chain.damage(1);
        for number in 0..100 {
            chain.give(0, &[number; 1400]);
            chain.run_for(Duration::from_millis(2));
        }
        chain.run_for(Duration::from_secs(1));
        assert!(chain.arrived.iter().all(|(_, _, unit)| unit.iter().all(|&byte| byte == unit[0])));
        let arrived = chain.arrived.len() as u64;
        let damaged = chain.counter(3, "symbols_damaged");
        assert!(damaged > 0 && arrived >= 99 - damaged, "{arrived} arrived, {damaged} damaged");
    }
}

#[test]
fn a_symbol_in_the_place_of_another_is_damage() {
    let (mut chain, mut apps) = downloads(&Config::default(), 14);
    // Which symbol it is stands in the header. With this seed that packet is not lost.
    let mut is_done = false;
    chain.tamper = Some(Box::new(move |from, datagram| {
        const INDEX: usize = 17;
        // Its neighbour has not come yet.
        let early = datagram[1] & 0xF7 == 0x10 && datagram.len() > 1400 && datagram[INDEX].is_multiple_of(2);
        if from == 1 && early && !core::mem::replace(&mut is_done, true) {
            datagram[INDEX] ^= 1;
        }
    }));
    apps.run(&mut chain, Duration::from_secs(1));
    assert_eq!((apps.reset, apps.complete), ([10, 10], [0, 0]));
    assert_eq!(chain.counter(0, "streams_damaged"), 10);
}

#[test]
fn a_damaged_count_of_symbols_stops_no_block() {
    let (mut chain, mut apps) = downloads(&Config::strict(), 11);
    let mut datagrams = 0;
    chain.tamper = Some(Box::new(move |from, datagram| {
        // The word of K, in DATA that is alone in its datagram.
        if from == 1 && datagram[1] >> 4 == 1 {
            datagrams += 1;
            datagram[14] ^= u8::from(datagrams % 7 == 0) << 3;
        }
    }));
    apps.run(&mut chain, Duration::from_millis(300));
    chain.tamper = None;
    apps.run(&mut chain, Duration::from_secs(2));
    assert_carries(&mut chain, &mut apps);
}

/// An event of a chain.
#[derive(Clone, Debug)]
enum Fault {
    Restart(usize),
    Outage(usize, u64),
    /// Number of a thousand datagrams of a node that are damaged somewhere, for a while.
    Flips(usize, u64),
}

fn some_fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        (0..4_usize).prop_map(Fault::Restart),
        (0..3_usize, 1..3000_u64).prop_map(|(link, millis)| Fault::Outage(link, millis)),
        (0..4_usize, 1..100_u64).prop_map(|(node, share)| Fault::Flips(node, share)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// Arrivals are compared with what was sent, and so is their number at the end.
    #[test]
    fn a_stream_brings_all_its_bytes_and_ends_well_or_brings_the_first_of_them_and_is_reset(
        is_strict: bool,
        streams in prop::collection::vec((0..2_usize, 0_u64..100_000, 0_u64..100_000), 1..5),
        faults in prop::collection::vec(some_fault(), 1..5),
        seed: u64,
    ) {
        let config = if is_strict { Config::strict() } else { Config::default() };
        let config = Config { stream_timeout: Duration::from_secs(8), ..config };
        let mut chain = lossy_chain(&config, seed);
        let mut apps = Apps::default();
        for fault in &faults {
            for &(edge, there, back) in &streams {
                apps.open(&mut chain, edge, there, back);
                apps.run(&mut chain, Duration::from_millis(7));
            }
            match *fault {
                Fault::Restart(0) => restart(&mut chain, &mut apps, 0),
                Fault::Restart(3) => restart(&mut chain, &mut apps, 1),
                Fault::Restart(relay) => chain.restart(relay),
                Fault::Outage(link, millis) => {
                    chain.change(link, None, &Change::Down);
                    apps.run(&mut chain, Duration::from_millis(millis));
                    chain.change(link, None, &Change::Up);
                }
                Fault::Flips(node, share) => {
                    let mut random = Seed::new(seed, share).stream(&["flips"], 0);
                    chain.tamper = Some(Box::new(move |from, datagram| {
                        if from == node && random.chance(share as f64 / 1000.0) {
                            let at = random.below(datagram.len() as u64) as usize;
                            datagram[at] ^= 1 << random.below(8);
                        }
                    }));
                    apps.run(&mut chain, Duration::from_millis(100));
                    chain.tamper = None;
                }
            }
        }
        // A header that is damaged may stop a hop. Then one edge hears nothing, and the other of it, or neither does.
        apps.run(&mut chain, config.stream_timeout * 3);
        let state: Vec<_> = chain.nodes.iter().map(bats::Node::state).collect();
        prop_assert_eq!(apps.open_streams(), 0, "none hangs\n{}", state.join("\n"));
    }
}
