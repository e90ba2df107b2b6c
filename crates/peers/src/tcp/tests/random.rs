//! Whatever the applications and the path do: what is delivered is a prefix of what was written, and all of it in the
//! end. The harness checks every byte against the writer's pattern, every grant and every item's order.

use super::pair::{CLIENT, Direction, Pair, SERVER, ms};
use crate::tcp::{Config, Congestion};
use hopcast_core::{Bytes, Duration, Rate};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

#[derive(Clone, Debug)]
enum Act {
    ClientWrites(u64),
    ServerWrites(u64),
    Wait(u64),
    Loss(u32),
    Jitter(u64),
    Delay(u64),
    Blackout(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (1u64..300_000).prop_map(Act::ClientWrites),
        (1u64..300_000).prop_map(Act::ServerWrites),
        (1u64..400).prop_map(Act::Wait),
        (0u32..25).prop_map(Act::Loss),
        (0u64..10).prop_map(Act::Jitter),
        (0u64..80).prop_map(Act::Delay),
        (1u64..800).prop_map(Act::Blackout),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_that_is_written_arrives(
        seed: u64,
        bbr: bool,
        sack in proptest::bool::weighted(0.8),
        buffers in (3_000u64..200_000, 3_000u64..200_000),
        read_window in 100u64..300_000,
        rate in 1u64..200,
        queue in 3u32..300,
        corrupt in 0u32..3,
        acts in proptest::collection::vec(act(), 1..25),
    ) {
        let config = Config {
            congestion: if bbr { Congestion::Bbr } else { Congestion::Cubic },
            sack,
            send_buffer: Bytes::new(buffers.0),
            receive_buffer: Bytes::new(buffers.1),
            ..Config::default()
        };
        let direction = Direction {
            rate: Some(Rate::from_mbit(rate)),
            queue,
            corrupt: f64::from(corrupt) / 100.0,
            duplicate: 0.01,
            ..Direction::default()
        };
        let mut pair = Pair::new(seed, config, direction);
        pair.read_window = read_window;
        pair.accept = (0, false);
        let id = pair.open(1, false);
        pair.run_while(Duration::from_secs(60), |pair| pair.apps[SERVER].is_empty());
        let server = pair.accepted().expect("a connection");
        for act in acts {
            match act {
                Act::ClientWrites(bytes) => pair.write(CLIENT, id, bytes),
                Act::ServerWrites(bytes) => pair.write(SERVER, server, bytes),
                Act::Wait(millis) => { pair.run_for(ms(millis)); }
                Act::Loss(percent) => for way in 0..2 {
                    pair.change(way, |way| way.loss = f64::from(percent) / 100.0);
                },
                Act::Jitter(millis) => for way in 0..2 {
                    pair.change(way, |way| way.jitter = ms(millis));
                },
                Act::Delay(millis) => for way in 0..2 {
                    pair.change(way, |way| way.delay = ms(millis));
                },
                Act::Blackout(millis) => {
                    pair.lose = Some(Box::new(|_, _, _| true));
                    pair.run_for(ms(millis));
                    pair.lose = None;
                }
            }
        }
        for way in 0..2 {
            pair.change(way, |way| way.loss = way.loss.min(0.05));
        }
        for (host, id) in [(CLIENT, id), (SERVER, server)] {
            pair.apps[host].get_mut(&id).unwrap().finish = true;
            pair.write(host, id, 0);
        }
        prop_assert!(pair.run_to_the_end(Duration::from_secs(3000)), "{:?} {:?}", pair.client(), pair.server());
        prop_assert_eq!(pair.server().read, pair.client().to_write);
        prop_assert_eq!(pair.client().read, pair.server().to_write);
        pair.run_for(Duration::from_secs(600));
        prop_assert!(pair.deadline().is_none(), "nothing is left to do");
    }
}

/// Found by the property above: beside selective acknowledgements of the other direction a full segment did not fit the
/// path's MTU, and never arrived.
#[test]
fn full_segments_that_carry_selective_acknowledgements_fit_the_path() {
    let mut pair = Pair::new(1, Config::default(), Direction { loss: 0.03, ..Direction::default() });
    pair.accept = (2_000_000, true);
    pair.sent = Some(Vec::new());
    pair.open(2_000_000, true);
    assert!(pair.run_to_the_end(Duration::from_secs(60)));
    let longest = pair.sent.unwrap().iter().map(|(.., packet)| packet.len()).max();
    assert_eq!(longest, Some(1500));
}
