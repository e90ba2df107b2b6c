//! Delay and jitter.
#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

use crate::common::*;
use hopcast_core::{Duration, Instant};
use hopcast_link::{Change, Direction, Jitter};
use proptest::prelude::*;
use statrs::distribution::{ContinuousCDF, Normal, Uniform};

const DELAY: Duration = Duration::from_millis(20);

fn with_jitter(delay: Duration, jitter: Jitter) -> Direction {
    Direction { delay, jitter, ..Direction::default() }
}

/// The delays in milliseconds of frames so far apart that none waits for another.
fn delays(direction: &Direction, n: u64) -> Vec<f64> {
    let apart = Duration::from_secs(10);
    let said = run(&mut both_ways(direction, 5), &row(n, 100, apart), END);
    let delay = |(at, id): (Instant, u64)| at.since(Instant::ZERO + apart * id).as_millis_f64();
    deliveries(&said, 1).into_iter().map(delay).collect()
}

/// The Kolmogorov-Smirnov distance, and what it exceeds once in a million: √(-ln(α/2)/2n).
fn distance(mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) -> (f64, f64) {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = sample.iter().enumerate().map(|(i, &x)| {
        let expected = cdf(x);
        (expected - i as f64 / n).abs().max((expected - (i + 1) as f64 / n).abs())
    });
    (distance.fold(0.0, f64::max), (-(1e-6_f64 / 2.0).ln() / (2.0 * n)).sqrt())
}

#[test]
fn without_jitter_every_frame_takes_the_delay() {
    assert!(delays(&with_jitter(DELAY, Jitter::None), 100).iter().all(|&delay| delay == 20.0));
}

#[test]
fn uniform_jitter_is_uniform_about_the_delay() {
    let jitter = Jitter::Uniform(Duration::from_millis(5));
    let expected = Uniform::new(15.0, 25.0).unwrap();
    let (seen, most) = distance(delays(&with_jitter(DELAY, jitter), 50_000), |x| expected.cdf(x));
    assert!(seen < most, "{seen} against {most}");
}

#[test]
fn normal_jitter_is_normal_about_the_delay() {
    let jitter = Jitter::Normal(Duration::from_millis(3));
    let expected = Normal::new(20.0, 3.0).unwrap();
    let (seen, most) = distance(delays(&with_jitter(DELAY, jitter), 50_000), |x| expected.cdf(x));
    assert!(seen < most, "{seen} against {most}");
}

#[test]
fn jitter_wider_than_the_delay_is_cut_off_at_zero() {
    let n = 20_000;
    // A quarter of 1 ms ± 2 ms lies below zero; so does P(Z < -1) = 0.158655 of a deviation as long as the delay.
    for (jitter, share) in [
        (Jitter::Uniform(Duration::from_millis(2)), 0.25),
        (Jitter::Normal(Duration::from_millis(1)), 0.158_655),
    ] {
        let delays = delays(&with_jitter(Duration::from_millis(1), jitter), n);
        let at_zero = delays.iter().filter(|&&delay| delay == 0.0).count() as f64 / n as f64;
        let error = (share * (1.0 - share) / n as f64).sqrt();
        assert!((at_zero - share).abs() < 5.0 * error, "{jitter:?}: {at_zero}");
    }
}

proptest! {
    #[test]
    fn jitter_keeps_the_order_and_never_brings_a_frame_forward(
        direction in any::direction(), actions in any::actions(1),
    ) {
        // Corruption would hide the numbers, and a change could allow what is not allowed here.
        let direction = Direction { reorder: false, corrupt: Default::default(), ..direction };
        let actions: Vec<_> = actions
            .into_iter()
            .filter(|(_, action)| !matches!(action, Action::Change(_, Change::Corrupt(_) | Change::Reorder(_))))
            .collect();
        let said = run(&mut both_ways(&direction, 1), &actions, END);
        let arrived = deliveries(&said, 1);
        prop_assert!(arrived.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1));
        for (at, id) in arrived {
            let is_it = |action: &Action| matches!(action, Action::Offer(_, frame) if crate::common::id(frame) == id);
            let offered = actions.iter().find(|(_, action)| is_it(action)).map(|&(at, _)| at);
            prop_assert!(offered.is_some_and(|offered| offered <= at));
        }
    }
}

#[test]
fn with_reorder_frames_overtake_and_arrive_exactly_when_their_own_jitter_says() {
    let jitter = Jitter::Uniform(Duration::from_millis(5));
    let direction = Direction { reorder: true, ..with_jitter(DELAY, jitter) };
    let alone = delays(&direction, 1_000);
    let said = run(&mut both_ways(&direction, 5), &row(1_000, 100, Duration::from_micros(10)), END);
    let arrived = deliveries(&said, 1);
    assert!(!arrived.is_sorted_by_key(|&(_, id)| id));
    assert!(arrived.is_sorted_by_key(|&(at, _)| at));
    assert_eq!(arrived.len(), 1_000);
    for (at, id) in arrived {
        let own = at.since(Instant::ZERO + Duration::from_micros(10) * id).as_millis_f64();
        // Draws come in the order of frames; frames so far apart do not overtake, so `alone` is in their order.
        assert!((own - alone[id as usize]).abs() < 1e-9);
    }
}

#[test]
fn without_reorder_a_frame_waits_for_those_before_it() {
    let jitter = Jitter::Normal(Duration::from_millis(2));
    let direction = with_jitter(DELAY, jitter);
    let alone = delays(&direction, 1_000);
    let said = run(&mut both_ways(&direction, 5), &row(1_000, 100, Duration::from_micros(10)), END);
    let mut latest = 0.0_f64;
    for (at, id) in deliveries(&said, 1) {
        latest = latest.max(id as f64 * 0.01 + alone[id as usize]);
        assert!((at.since(Instant::ZERO).as_millis_f64() - latest).abs() < 1e-9);
    }
}
