//! The figures that kernels show, within their bounds: six hops of 300 Mbit/s and 0.5 ms, drop-tail of 1,000 packets.

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

fn goodput(congestion: Congestion, seed: u64, loss: f64, span: u64) -> f64 {
    let config = Config { congestion, ..Config::default() };
    let mut pair = Pair::new(seed, config, six_hops(0.0));
    pair.open(u64::MAX, false);
    pair.run_for(Duration::from_secs(4));
    for direction in 0..2 {
        pair.change(direction, |way| *way = six_hops(loss));
    }
    pair.run_for(Duration::from_secs(1));
    let figure = pair.goodput(Duration::from_secs(span));
    eprintln!("{congestion:?} loss {loss} seed {seed}: {figure:.3} Mbit/s");
    pair.tcp[0].dump();
    figure
}

#[test]
fn figures() {
    for loss in [0.0, 0.02, 0.05, 0.1, 0.15] {
        for seed in 1..=2 {
            goodput(Congestion::Cubic, seed, loss, 20);
            goodput(Congestion::Bbr, seed, loss, 20);
        }
    }
}

#[test]
fn trace() {
    let config = Config { congestion: Congestion::Bbr, ..Config::default() };
    let mut pair = Pair::new(1, config, six_hops(0.0));
    pair.open(u64::MAX, false);
    pair.run_for(Duration::from_secs(4));
    for direction in 0..2 {
        pair.change(direction, |way| *way = six_hops(0.05));
    }
    for _ in 0..1500 {
        let figure = pair.goodput(Duration::from_millis(6));
        let connection = pair.tcp[0].connection(hopcast_core::StreamId(0)).unwrap();
        let s = &connection.sender;
        eprintln!("X {} {figure:.1} {:?} cwnd {} fl {} retr {} lost {} del {} srtt {} {:?}", pair.now, s.recovery.phase, s.window.size, s.board.in_flight(), pair.counter(0, "rto_timeouts"), s.rate.lost, s.rate.delivered, s.rtt.smoothed().unwrap(), s.congestion);
    }
    pair.tcp[0].dump();
    pair.tcp[1].dump();
}
