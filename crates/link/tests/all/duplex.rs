//! Half duplex: one line for both directions.

use crate::common::*;
use hopcast_core::{Duration, Instant, Rate};
use hopcast_link::{Config, Direction, Duplex, Event, Link, PointToPoint};
use proptest::prelude::*;

/// 10 Mbit/s, so that a frame of 1,250 bytes occupies the line for a millisecond.
fn half_duplex() -> PointToPoint {
    let direction = Direction { rate: Some(Rate::from_mbit(10)), ..Direction::default() };
    let config = Config { forward: direction.clone(), backward: direction, duplex: Duplex::Half };
    PointToPoint::new(config, streams(1))
}

fn arrivals(said: &Said) -> Vec<(Instant, u64)> {
    let mut both = [deliveries(said, 0), deliveries(said, 1)].concat();
    both.sort();
    both
}

#[test]
fn the_frame_that_has_waited_longest_goes_first() {
    let offers = [(0, 0), (0, 100), (1, 200), (0, 300), (1, 400), (1, 500)];
    let offers: Vec<_> =
        (0..).zip(offers).map(|(i, (from, at))| (micros(at), Action::Offer(from, frame(i, 1_250)))).collect();
    let order: Vec<_> = arrivals(&run(&mut half_duplex(), &offers, END)).iter().map(|(_, id)| *id).collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 5]);
}

#[test]
fn of_frames_that_have_waited_as_long_attachment_zeros_goes_first() {
    let offers = [1, 1, 0].map(|from| (millis(0), Action::Offer(from, frame(from as u64, 1_250))));
    let said = run(&mut half_duplex(), &offers, END);
    // The first found the line idle; of the two that waited, that of attachment 0 goes first.
    assert_eq!(deliveries(&said, 0), [(millis(1), 1), (millis(3), 1)]);
    assert_eq!(deliveries(&said, 1), [(millis(2), 0)]);
}

#[test]
fn an_infinitely_fast_direction_waits_for_the_slow_one() {
    let forward = Direction { rate: Some(Rate::from_mbit(10)), ..Direction::default() };
    let config = Config { forward, backward: Direction::default(), duplex: Duplex::Half };
    let mut link = PointToPoint::new(config, streams(1));
    let offers = [
        (millis(0), Action::Offer(0, frame(0, 1_250))),
        (micros(300), Action::Offer(1, frame(1, 1_250))),
        (micros(400), Action::Offer(1, frame(2, 1_250))),
        (millis(5), Action::Offer(1, frame(3, 1_250))),
    ];
    let said = run(&mut link, &offers, END);
    assert_eq!(deliveries(&said, 0), [(millis(1), 1), (millis(1), 2), (millis(5), 3)]);
}

#[test]
fn over_full_duplex_neither_direction_waits_for_the_other() {
    let direction = Direction { rate: Some(Rate::from_mbit(10)), ..Direction::default() };
    let mut link = both_ways(&direction, 1);
    let offers = [0, 1].map(|from| (millis(0), Action::Offer(from, frame(0, 1_250))));
    let said = run(&mut link, &offers, END);
    assert_eq!((deliveries(&said, 0), deliveries(&said, 1)), (vec![(millis(1), 0)], vec![(millis(1), 0)]));
}

/// When each frame left, by the reports, and for how long it occupied the line.
fn occupied(said: &Said, rates: [Rate; 2]) -> Vec<(Instant, Instant)> {
    let sent = said.iter().filter_map(|(at, event)| match event {
        Event::Sent { from, frame } => Some((*at - rates[*from].time_for(frame.len() as u64), *at)),
        _ => None,
    });
    sent.collect()
}

proptest! {
    #[test]
    fn half_duplex_transmissions_never_overlap_and_the_line_is_never_idle_while_a_frame_waits(
        config in any::config(),
        rates in [1_000_000u64..100_000_000, 1_000_000u64..100_000_000],
        actions in any::actions(2),
    ) {
        let rates = rates.map(Rate::from_bits_per_sec);
        let mut config = Config { duplex: Duplex::Half, ..config };
        config.forward.rate = Some(rates[0]);
        config.backward.rate = Some(rates[1]);
        let offers: Vec<_> =
            actions.into_iter().filter(|(_, action)| matches!(action, Action::Offer(..))).collect();
        let mut link = PointToPoint::new(config, streams(1));
        link.report_sent(true);
        let said = run(&mut link, &offers, END);
        let times = occupied(&said, rates);
        for pair in times.windows(2) {
            // The carry of a fraction of a nanosecond.
            prop_assert!(pair[1].0 + Duration::from_nanos(1) >= pair[0].1);
        }
        // Each stretch of the line's work begins with an offer, not later.
        let mut free = Instant::ZERO;
        for (start, end) in times {
            let follows = start.since(free) <= Duration::from_nanos(1);
            let began = offers.iter().any(|(at, _)| at.since(start).max(start.since(*at)) <= Duration::from_nanos(1));
            prop_assert!(follows || began);
            free = end;
        }
        let busy = [(0, 1), (1, 0)].map(|(from, to)| link.counters(END, from, to).busy);
        prop_assert!(busy[0] + busy[1] <= free.since(Instant::ZERO));
    }
}
