//! Goodput by itself and beside this crate's TCP.

use hopcast_core::Rate;

use super::pair::{BBR, CUBIC, Hop, Pair, ms, with};
use crate::quic::Congestion;

/// Mbit/s of payload between two times.
fn throughput(congestion: Congestion, hop: &Hop, from: u64, to: u64) -> f64 {
    let mut pair = Pair::new(1, &with(congestion), std::slice::from_ref(hop));
    pair.open(u64::MAX, false);
    pair.run(ms(from));
    let before = pair.server().read;
    pair.run(ms(to - from));
    (pair.server().read - before) as f64 * 8.0 / ((to - from) as f64 * 1e3)
}

#[test]
fn a_clean_link_is_filled() {
    for congestion in [CUBIC, BBR] {
        let rate = throughput(congestion, &Hop::default(), 2000, 12_000);
        // 1472 bytes less 32 of QUIC, of a frame of 1514.
        let bound = 100.0 * (1472.0 - 32.0) / 1514.0;
        assert!(rate > 0.97 * bound && rate < bound, "{congestion:?}: {rate} of {bound}");
    }
}

#[test]
fn cubic_takes_a_loss_for_congestion_and_bbr_does_not() {
    let hop = Hop { loss: 0.02, queue: 200, ..Hop::default() };
    let [cubic, bbr] = [CUBIC, BBR].map(|congestion| throughput(congestion, &hop, 5000, 25_000));
    assert!(cubic < 10.0, "{cubic}");
    assert!(bbr > 75.0, "{bbr}");
}

#[test]
#[ignore = "prints a table"]
fn print() {
    for delay in [1, 10, 30, 60, 110] {
        for loss in [0.0, 0.01, 0.02, 0.05, 0.1] {
            let hop = Hop { rate: Rate::from_mbit(100), delay: ms(delay), loss, ..Hop::default() };
            let [cubic, bbr] = [CUBIC, BBR].map(|congestion| throughput(congestion, &hop, 5000, 25_000));
            println!("{delay} ms, {loss}: cubic {cubic:.2}, bbr {bbr:.2}");
        }
    }
}
