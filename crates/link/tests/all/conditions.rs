//! Rate and loss that are looked up as a frame leaves.
#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

use std::sync::{Arc, Mutex};

use crate::common::*;
use hopcast_core::{Dbm, Duration, Fraction, Instant, Rate};
use hopcast_link::{
    Change, Condition, Conditions, Config, Direction, Duplex, Jitter, Link, Loss, PointToPoint,
};
use proptest::prelude::*;

/// Conditions that are a function of the time.
struct At<F>(F);

impl<F> std::fmt::Debug for At<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("At")
    }
}

impl<F: FnMut(Instant) -> Condition + Send> Conditions for At<F> {
    fn at(&mut self, now: Instant) -> Condition {
        self.0(now)
    }
}

fn condition(mbit: u64, loss: f64) -> Condition {
    Condition { rate: Rate::from_mbit(mbit), loss: percent(loss), signal: Some(Dbm::new(-70.0)) }
}

/// A link of `direction` both ways, each with conditions that `make` makes.
fn link<F>(direction: &Direction, make: impl Fn() -> F) -> PointToPoint
where
    F: FnMut(Instant) -> Condition + Send + 'static,
{
    both_ways(direction, 1).with_conditions([Box::new(At(make())), Box::new(At(make()))])
}

/// 8,000 bits: a millisecond at 8 Mbit/s.
const LENGTH: usize = 1000;

#[test]
fn the_rate_is_that_of_the_first_bit_and_the_loss_that_of_the_last() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let make = || {
        let asked = asked.clone();
        move |now: Instant| {
            asked.lock().unwrap().push(now);
            // Twice as fast from 1.5 ms on; all is lost from 3 to 4 ms.
            let lost = (millis(3)..millis(4)).contains(&now);
            condition(if now < micros(1_500) { 8 } else { 16 }, if lost { 100.0 } else { 0.0 })
        }
    };
    let mut link = link(&Direction::default(), make);
    let said = run(&mut link, &row(5, LENGTH, Duration::ZERO), END);
    // The second frame begins at 1 ms at the old rate; the fourth's last bit leaves at 3 ms, and the fifth's at 3.5 ms.
    assert_eq!(deliveries(&said, 1), [(millis(1), 0), (millis(2), 1), (micros(2_500), 2)]);
    assert_eq!(link.counters(END, 0, 1).lost_packets, 2);
    let times = [0, 0, 0, 1_000, 1_000, 2_000, 2_000, 2_500, 2_500, 3_000, 3_000, 3_500].map(micros);
    assert_eq!(
        *asked.lock().unwrap(),
        times,
        "each direction at time zero, and then as a frame begins and as it ends"
    );
}

#[test]
fn a_frame_is_sent_at_the_lower_of_both_rates_and_lost_by_either_loss() {
    let direction = Direction { rate: Some(Rate::from_mbit(4)), ..Direction::default() };
    let mut slow = link(&direction, || |_| condition(8, 0.0));
    assert_eq!(deliveries(&run(&mut slow, &row(1, LENGTH, Duration::ZERO), END), 1), [(millis(2), 0)]);
    // At a configured rate of zero nothing is begun, and it goes on once that has changed.
    let mut stopped = link(&direction, || |_| condition(8, 0.0));
    let actions = [
        (millis(0), Action::Change(None, Change::Rate(Some(Rate::default())))),
        (millis(1), Action::Offer(0, frame(0, LENGTH))),
        (millis(5), Action::Change(None, Change::Rate(None))),
    ];
    assert_eq!(deliveries(&run(&mut stopped, &actions, END), 1), [(millis(6), 0)]);

    let half = Direction { loss: Loss::Independent(percent(50.0)), ..Direction::default() };
    let mut lossy = link(&half, || |_| condition(8, 50.0));
    run(&mut lossy, &row(10_000, LENGTH, Duration::from_millis(1)), END);
    let lost = lossy.counters(END, 0, 1).lost_packets as f64 / 10_000.0;
    // Five standard errors of three quarters.
    assert!((lost - 0.75).abs() < 5.0 * (0.75 * 0.25 / 10_000.0_f64).sqrt(), "{lost}");
}

#[test]
fn conditions_without_loss_change_no_other_draw() {
    let direction = Direction {
        rate: Some(Rate::from_mbit(8)),
        delay: Duration::from_millis(5),
        jitter: Jitter::Uniform(Duration::from_millis(2)),
        loss: Loss::Independent(percent(20.0)),
        corrupt: percent(10.0),
        duplicate: percent(10.0),
        ..Direction::default()
    };
    let actions = row(500, LENGTH, Duration::from_millis(1));
    let plain = run(&mut both_ways(&direction, 1), &actions, END);
    assert_eq!(plain, run(&mut link(&direction, || |_| condition(9, 0.0)), &actions, END));
}

#[test]
fn quality_has_the_conditions_as_the_last_frame_found_them() {
    let direction = Direction { loss: Loss::Independent(percent(20.0)), ..Direction::default() };
    let make = || |now: Instant| if now < millis(10) { condition(8, 50.0) } else { condition(2, 0.0) };
    let mut link = link(&direction, make);
    let quality = link.quality(Instant::ZERO, 0, 1).unwrap();
    assert!((quality.delivery.get() - 0.4).abs() < 1e-12, "{quality:?}");
    assert_eq!((quality.rate, quality.signal), (Some(Rate::from_mbit(8)), Some(Dbm::new(-70.0))));
    run(&mut link, &[(millis(20), Action::Offer(0, frame(0, LENGTH)))], END);
    let quality = link.quality(END, 0, 1).unwrap();
    assert_eq!((quality.rate, quality.delivery), (Some(Rate::from_mbit(2)), percent(80.0)));
    // Nothing was sent the other way.
    assert_eq!(link.quality(END, 1, 0).unwrap().rate, Some(Rate::from_mbit(8)));
}

#[test]
fn quality_does_not_depend_on_how_often_the_link_was_woken() {
    // The first frame takes 1 ms at 8 Mbit/s, and the second begins then, at 2 Mbit/s.
    let make = || |now: Instant| if now < millis(1) { condition(8, 0.0) } else { condition(2, 0.0) };
    let mut link = link(&Direction::default(), make);
    link.offer(Instant::ZERO, 0, frame(0, LENGTH));
    link.offer(Instant::ZERO, 0, frame(1, LENGTH));
    let rates = [micros(500), millis(2)].map(|now| link.quality(now, 0, 1).unwrap().rate);
    assert_eq!(rates, [8, 2].map(|mbit| Some(Rate::from_mbit(mbit))));
}

/// Conditions that depend on all questions before, as a hand-over with hysteresis does.
fn stateful() -> impl FnMut(Instant) -> Condition + Send + 'static {
    let (mut last, mut sum) = (Instant::ZERO, 0u64);
    move |now| {
        assert!(now >= last, "a question that goes back from {last} to {now}");
        last = now;
        sum = sum.wrapping_mul(31).wrapping_add(now.as_nanos());
        Condition {
            rate: Rate::from_mbit(1 + sum % 50),
            loss: Fraction::new((sum >> 8 & 1) as f64).unwrap(),
            signal: None,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Questions come at the same times in the same order however often the link is woken.
    #[test]
    fn wakes_without_cause_change_no_question(
        config in any::config(),
        actions in any::actions(2),
        wakes in proptest::collection::vec(0u64..400_000, 0..100),
        half: bool,
    ) {
        let config = Config { duplex: if half { Duplex::Half } else { Duplex::Full }, ..config };
        let make = || {
            PointToPoint::new(config.clone(), streams(1))
                .with_conditions([Box::new(At(stateful())), Box::new(At(stateful()))])
        };
        let (mut calm, mut nervous) = (make(), make());
        let mut more = actions.clone();
        more.extend(wakes.into_iter().map(|at| (nanos(at), Action::Wake)));
        more.sort_by_key(|(at, _)| *at);
        prop_assert_eq!(run(&mut calm, &actions, END), run(&mut nervous, &more, END));
        prop_assert_eq!(all_counters(&mut calm, END), all_counters(&mut nervous, END));
    }
}
