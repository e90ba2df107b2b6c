//! Whatever the applications and the path do: what is delivered is a prefix of what was written, and all of it in the
//! end. The harness checks every byte against the writer's pattern, every grant and every item's order.

use hopcast_core::{Duration, Rate, StreamId};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::pair::{CLIENT, Hop, Pair, SERVER, ms};
use crate::kcp::{Config, Fec};

const DAY: Duration = Duration::from_secs(86_400);

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_that_is_written_arrives_in_order(
        seed: u64,
        parity in proptest::option::of((1u8..12, 0u8..4)),
        eager: bool,
        nodelay: bool,
        congestion_control in proptest::bool::weighted(0.2),
        resend in 0u32..4,
        windows in (1u16..300, 1u16..300),
        mtu in 200u16..1400,
        read_window in 500u64..300_000,
        path in (5u64..200, 0u32..31, 0u32..10, 0u64..40, 0u64..20, any::<bool>()),
        writes in proptest::collection::vec((1u64..40_000, 1u64..40_000, 0u64..200), 1..8),
    ) {
        let config = Config {
            nodelay,
            eager,
            congestion_control,
            resend,
            send_window: windows.0,
            receive_window: windows.1,
            mtu,
            fec: parity.map(|(data, parity)| Fec::new(data, parity).unwrap()),
            // Timeouts that double, with three of ten lost each way, grow to many minutes.
            silence: DAY,
            ..Config::FAST3
        };
        let (rate, loss, duplicate, delay, jitter, reorder) = path;
        let hop = Hop {
            rate: Rate::from_mbit(rate),
            loss: f64::from(loss) / 100.0,
            duplicate: f64::from(duplicate) / 100.0,
            delay: ms(delay),
            jitter: ms(jitter.min(delay)),
            reorder,
            ..Hop::default()
        };
        let mut pair = Pair::new(seed, &config, &[hop]);
        pair.window = read_window;
        pair.open(0, false);
        for (client, server, wait) in writes {
            pair.client().to_write += client;
            pair.act(CLIENT, StreamId(0));
            pair.accept.0 += server;
            if let Some(app) = pair.apps[SERVER].values_mut().next() {
                app.to_write = pair.accept.0;
                pair.act(SERVER, StreamId(1));
            }
            pair.run(ms(wait));
        }
        pair.accept.1 = true;
        for (end, id) in [(CLIENT, StreamId(0)), (SERVER, StreamId(1))] {
            if let Some(app) = pair.apps[end].get_mut(&id) {
                app.finish = true;
                pair.act(end, id);
            }
        }
        let finished = |pair: &Pair, end: usize| pair.apps[end].values().any(|app| app.peer_finished);
        pair.run_until(DAY, |pair| finished(pair, CLIENT) && finished(pair, SERVER));
        prop_assert_eq!(pair.server().read, pair.client().written);
        prop_assert_eq!(pair.client().read, pair.server().written);
        prop_assert_eq!(pair.client().transmitted, pair.client().written);
        pair.run_until(DAY, |pair| !pair.is_busy());
        prop_assert!(pair.machines.iter().all(crate::kcp::Kcp::is_still));
        prop_assert!(!pair.client().reset && !pair.server().reset);
    }
}
