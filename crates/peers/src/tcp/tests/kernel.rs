//! Goodput beside that of Linux 6.18's own TCP between two network namespaces, over one hop of the same rate, delay and
//! loss in both directions. `bench/kernel-tcp` measures it, and `scenarios/studies/kernel-tcp.csv` has all its figures.

use super::pair::{Direction, Pair, ms};
use crate::tcp::{Config, Congestion};
use hopcast_core::{Duration, Rate};

/// Mean goodput in Mbit/s over 20 s of each of `runs` runs, the loss beginning at 4.5 s and the measurement at 5 s.
fn goodput(congestion: Congestion, rate: u64, delay: Duration, loss: f64, runs: u64) -> f64 {
    let direction = Direction { rate: Some(Rate::from_mbit(rate)), delay, ..Direction::default() };
    let run = |seed| {
        let mut pair = Pair::new(seed, Config { congestion, ..Config::default() }, direction.clone());
        pair.open(u64::MAX, false);
        pair.run_for(ms(4500));
        for way in 0..2 {
            pair.change(way, |way| way.loss = loss);
        }
        pair.run_for(ms(500));
        pair.goodput(Duration::from_secs(20))
    };
    let mean = (1..=runs).map(run).sum::<f64>() / runs as f64;
    println!("{congestion:?}, {loss}: {mean:.2} Mbit/s");
    mean
}

/// Holds the goodput over 300 Mbit/s and 3 ms against the kernel's, whose hosts take some time too: a ping is 6.17 ms.
fn hold(congestion: Congestion, loss: f64, runs: u64, kernel: f64, within: f64) {
    let ratio = goodput(congestion, 300, Duration::from_micros(3_085), loss, runs) / kernel;
    assert!((1.0 / within..=within).contains(&ratio), "{congestion:?}, {loss}: {ratio:.3} of the kernel's");
}

#[test]
fn cubic_is_within_ten_percent_of_the_kernel_at_light_loss() {
    hold(Congestion::Cubic, 0.01, 2, 18.4, 1.1);
    hold(Congestion::Cubic, 0.02, 3, 11.5, 1.1);
    hold(Congestion::Cubic, 0.0585, 16, 3.7, 1.1);
}

#[test]
fn reno_is_within_ten_percent_of_the_kernel_at_light_loss() {
    hold(Congestion::Reno, 0.01, 2, 21.1, 1.1);
    hold(Congestion::Reno, 0.02, 3, 13.6, 1.1);
    hold(Congestion::Reno, 0.0585, 16, 4.9, 1.1);
}

#[test]
fn cubic_and_reno_are_within_a_factor_of_two_of_the_kernel_at_heavy_loss() {
    for (congestion, loss, kernel) in [
        (Congestion::Cubic, 0.1142, 0.95),
        (Congestion::Cubic, 0.167, 0.2),
        (Congestion::Reno, 0.1142, 1.17),
        (Congestion::Reno, 0.167, 0.33),
    ] {
        hold(congestion, loss, 8, kernel, 2.0);
    }
}

#[test]
fn bbr_bears_the_losses_that_the_kernels_bears() {
    // 100 Mbit/s and 10 ms. At 15 % its rate is a random walk, in the kernel too: whether the next interval loses a
    // little more than a fifth of what it delivers decides whether the path is taken for a policed one.
    for (loss, kernel, runs, within) in [(0.1, 76.4, 1, 1.1), (0.15, 37.5, 3, 1.7), (0.18, 15.7, 1, 1.35)] {
        let ratio = goodput(Congestion::Bbr, 100, ms(10), loss, runs) / kernel;
        assert!((1.0 / within..=within).contains(&ratio), "{loss}: {ratio:.3} of the kernel's");
    }
}
