//! The figures that kernels show (`hopcast study kernel-tcp` prints them beside ours): six hops of 300 Mbit/s and 0.5
//! ms each way, drop-tail of 1,000 packets.
//!
//! Held against Linux 6.18 between two network namespaces, over a link of the same rate, delay, queue and loss, the
//! latter in both directions. Goodput in Mbit/s over 20 s, the loss beginning half a second before; means of five to
//! eight runs of the kernel, one run here, of CUBIC five to sixteen:
//!
//! | loss on each hop | end to end | CUBIC, kernel | CUBIC, here | BBR, kernel | BBR, here |
//! |---|---|---|---|---|---|
//! | 0 | 0 | 286.8 | 286.9 | 280.3 | 281.1 |
//! | 1 % | 5.9 % | 3.60 | 3.85 | 259.4 | 269.2 |
//! | 2 % | 11.4 % | 0.95 | 1.00 | 227.4 | 236.3 |
//! | 3 % | 16.7 % | 0.20 | 0.24 | 37.7 | 36.1 |
//! | 5 % | 26.5 % | 0.03 | 0.03 | 5.2 | 5.3 |
//!
//! BBR's probes of 5/4 find nothing where more than a fifth is lost, and its long-term estimate takes such a path for a
//! policed one: on a path of this length its rate falls until noise holds it up. On short paths without a rate limit
//! noise does so much earlier, which is why kernels keep half of their rate at 5 % a hop there.

use super::pair::{Direction, Pair};
use crate::tcp::{Config, Congestion};
use hopcast_core::{Duration, Rate};

/// Six hops as one: the loss of all of them behind the queue of the first.
fn six_hops(loss: f64) -> Direction {
    Direction {
        rate: Some(Rate::from_mbit(300)),
        delay: Duration::from_millis(3),
        loss: 1.0 - (1.0 - loss).powi(6),
        ..Direction::default()
    }
}

/// Goodput over 20 s; the loss on each hop begins after four seconds, and the measurement a second later.
fn goodput(congestion: Congestion, seed: u64, loss: f64) -> f64 {
    let config = Config { congestion, ..Config::default() };
    let mut pair = Pair::new(seed, config, six_hops(0.0));
    pair.open(u64::MAX, false);
    pair.run_for(Duration::from_secs(4));
    for direction in 0..2 {
        pair.change(direction, |way| *way = six_hops(loss));
    }
    pair.run_for(Duration::from_secs(1));
    let figure = pair.goodput(Duration::from_secs(20));
    println!("{congestion:?}, {loss} on each hop, seed {seed}: {figure:.3} Mbit/s");
    figure
}

#[test]
fn cubic_fills_clean_hops_and_all_but_stops_on_lossy_ones() {
    assert!(goodput(Congestion::Cubic, 1, 0.0) > 281.0);
    let lossy = (1..=5).map(|seed| goodput(Congestion::Cubic, seed, 0.05)).sum::<f64>() / 5.0;
    assert!(lossy > 0.0 && lossy < 1.0, "{lossy}");
    assert!(goodput(Congestion::Cubic, 1, 0.15) < 0.1);
}

#[test]
fn bbr_bears_a_loss_below_a_fifth_and_collapses_above() {
    let clean = goodput(Congestion::Bbr, 1, 0.0);
    assert!(clean > 275.0);
    for (loss, share) in [(0.01, 0.85..1.0), (0.02, 0.7..0.95), (0.05, 0.002..0.05), (0.15, 0.0..0.01)] {
        let found = goodput(Congestion::Bbr, 1, loss) / clean;
        assert!(share.contains(&found), "{loss} on each hop: {found}, not in {share:?}");
    }
}
