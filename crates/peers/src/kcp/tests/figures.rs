//! The throughput that others have measured.
//!
//! BATS's report has KCP on three hops of 200 Mbit/s and 5 ms with 1 ms of jitter, losing 2 % on each: 16.7 Mbit/s as
//! corrected by its authors. Here, in Mbit/s of payload, with kcptun's `fast3` and one seed:
//!
//! | `send_window` | no loss | 2 % a hop | 5 % a hop | with 10 + 3 parity: no loss | 2 % | 5 % |
//! |---|---|---|---|---|---|---|
//! | 128, eager | 34.4 | 17.4 | 13.2 | 34.1 | 32.3 | 21.6 |
//! | 128, at ticks | 28.2 | 15.4 | 11.9 | 28.0 | 27.3 | 18.6 |
//! | 256, eager | 72.8 | 33.6 | 26.4 | 70.8 | 63.1 | 39.7 |
//! | 512, eager | 148 | 67.0 | 57.3 | 142 | 107 | 68.4 |
//! | 1024, eager | 185 | 99.7 | 79.1 | 107 | 96.2 | 73.8 |
//!
//! The report names no settings. Its figure fits the window of kcptun's client, 128, without parity; it also says that
//! kcptun has Reed-Solomon codes, and with them on nothing here is as slow. The largest window, the default, fills the
//! queue at the first link, and without a congestion window repeats there what is merely late.

use hopcast_core::Rate;

use super::pair::{CLIENT, Hop, Pair, ms};
use crate::kcp::Config;

fn three_hops(loss: f64) -> Vec<Hop> {
    vec![Hop { rate: Rate::from_mbit(200), delay: ms(5), jitter: ms(1), loss, ..Hop::default() }; 3]
}

/// Mbit/s of payload over ten seconds, and retransmissions for each segment.
fn throughput(config: &Config, loss: f64) -> (f64, f64) {
    let mut pair = Pair::new(1, config, &three_hops(loss));
    pair.open(u64::MAX, false);
    pair.run(ms(1000));
    let before = pair.server().read;
    pair.run(ms(10_000));
    let rate = (pair.server().read - before) as f64 * 8.0 / 10e6;
    let sent = pair.counter(CLIENT, "segments_sent") as f64;
    (rate, pair.counter(CLIENT, "retransmits") as f64 / sent)
}

/// kcptun's client sends with this window.
const CLIENTS_WINDOW: u16 = 128;

#[test]
fn three_hops_that_lose_two_per_cent_give_what_the_report_has() {
    let (rate, repeated) = throughput(&Config { send_window: CLIENTS_WINDOW, ..Config::FAST3 }, 0.02);
    assert!((15.5..18.0).contains(&rate), "{rate} Mbit/s, 16.7 published");
    assert!((0.1..0.2).contains(&repeated), "{repeated}: 5.9 % are lost, the others were merely late");
}

#[test]
fn parity_saves_most_of_the_round_trips() {
    let (rate, repeated) = throughput(&Config { send_window: CLIENTS_WINDOW, ..Config::FAST3_FEC }, 0.02);
    assert!(rate > 28.0, "{rate} Mbit/s");
    assert!(repeated < 0.06, "{repeated}");
}

#[test]
fn the_window_is_that_of_kcptuns_server() {
    // kcptun, `server -h`: `--sndwnd` and `--rcvwnd` 1024.
    assert_eq!((Config::default().send_window, Config::default().receive_window), (1024, 1024));
    // Six times what its client's window allows.
    let (rate, _) = throughput(&Config::FAST3, 0.02);
    assert!((85.0..115.0).contains(&rate), "{rate} Mbit/s");
}

#[test]
#[ignore = "prints the table above"]
fn print() {
    for send_window in [128, 256, 512, 1024] {
        for eager in [true, false] {
            for fec in [Config::FAST3.fec, Config::FAST3_FEC.fec] {
                let config = Config { send_window, eager, fec, ..Config::FAST3 };
                let results = [0.0, 0.02, 0.05].map(|loss| throughput(&config, loss));
                println!("{send_window} eager {eager} parity {}: {results:.3?}", fec.is_some());
            }
        }
    }
}
