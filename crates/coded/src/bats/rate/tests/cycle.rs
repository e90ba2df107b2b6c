//! Probing, draining and holding of the rate, as reports say that rounds end.

use hopcast_core::{Duration, Instant, Seed};

use super::super::cycle::{Cycle, Mode, Step, Wish};
use super::ms;

/// A report within a round, over a link of 10 ms that is just full.
fn within() -> Step {
    Step {
        now: Instant::ZERO,
        rtt: ms(10),
        min_round: Duration::ZERO,
        round: None,
        queue: Duration::ZERO,
        fell: false,
        rounds: 1000,
        highest: 100,
        next: 110,
        rate: 100.0,
        arrived: 100.0,
        overflow: false,
        crowded: false,
        swamped: false,
        random_loss: 0.0,
        limited: false,
        in_flight: 1.0,
        stale: false,
    }
}

/// A report that ends a round in which no queue stood.
fn end() -> Step {
    Step { round: Some(false), ..within() }
}

/// A report that ends a round all along which a queue of 8 ms stood.
fn standing() -> Step {
    Step { round: Some(true), queue: ms(8), ..within() }
}

fn begin(seed: u64) -> Cycle {
    Cycle::new(Seed::new(seed, 0).stream(&["cycle"], 0))
}

fn is_cruising(cycle: &Cycle) -> bool {
    matches!(cycle.mode(), Mode::Cruise { .. })
}

fn is_probing(cycle: &Cycle) -> bool {
    matches!(cycle.mode(), Mode::Up { .. })
}

fn is_braking(cycle: &Cycle) -> bool {
    matches!(cycle.mode(), Mode::Brake { .. })
}

/// One that has found the rate, and cruises for the first time.
fn cruising(seed: u64) -> Cycle {
    let mut cycle = begin(seed);
    cycle.step(&Step { arrived: 100.0, ..end() });
    cycle.step(&standing());
    assert!(matches!(cycle.mode(), Mode::Drain { .. }));
    cycle.step(&within());
    assert!(is_cruising(&cycle));
    cycle
}

/// One that sends more than the rate to see whether there is more.
pub(super) fn probing(seed: u64) -> Cycle {
    let mut cycle = cruising(seed);
    while is_cruising(&cycle) {
        cycle.step(&end());
    }
    assert!(is_probing(&cycle));
    cycle
}

/// One that cruises after a probe which has found nothing; `overran` if that has made a queue overflow.
fn probed(seed: u64, overran: bool) -> Cycle {
    let mut cycle = probing(seed);
    cycle.step(&Step { in_flight: 2.0, highest: 200, ..within() });
    assert!(matches!(cycle.mode(), Mode::Down { .. }));
    cycle.step(&Step { overflow: overran, ..within() });
    assert!(is_cruising(&cycle));
    cycle
}

/// One that drains a queue of 8 ms which has stood for three rounds.
fn braking() -> Cycle {
    let mut cycle = probed(1, false);
    (0..3).for_each(|_| _ = cycle.step(&standing()));
    assert!(is_braking(&cycle));
    cycle
}

/// Number of steps until it cruises no more.
fn rounds_of_cruise(mut cycle: Cycle, step: &Step) -> usize {
    (1..100)
        .find(|_| {
            cycle.step(step);
            !is_cruising(&cycle)
        })
        .expect("an end")
}

/// Of the cycles of many seeds.
fn over_seeds(cycle: impl Fn(u64) -> usize) -> Vec<usize> {
    let mut all: Vec<_> = (0..100).map(cycle).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn a_start_doubles_the_rate_each_round_trip_and_is_drained_as_fast() {
    let mut cycle = begin(1);
    // BBR v1: 2/ln 2.
    let gain = 2.0 / core::f64::consts::LN_2;
    assert!((cycle.pacing_gain() - gain).abs() < 1e-3, "{}", cycle.pacing_gain());
    assert!((cycle.window().0 - gain).abs() < 1e-3, "{:?}", cycle.window());
    cycle.step(&Step { arrived: 100.0, ..end() });
    cycle.step(&standing());
    assert!((cycle.pacing_gain() * gain - 1.0).abs() < 1e-3, "{}", cycle.pacing_gain());
}

#[test]
fn a_start_goes_on_while_a_quarter_more_arrives_each_round() {
    let mut cycle = begin(1);
    for round in 0..10 {
        assert_eq!(cycle.step(&Step { arrived: 100.0 * 1.25_f64.powi(round), ..end() }), Wish::Nothing);
        assert!(matches!(cycle.mode(), Mode::Startup { .. }), "round {round}");
    }
}

#[test]
fn a_start_is_over_after_three_rounds_of_less_growth() {
    let mut cycle = begin(1);
    cycle.step(&Step { arrived: 100.0, ..end() });
    for arrived in [110.0, 120.0] {
        assert_eq!(cycle.step(&Step { arrived, ..end() }), Wish::Nothing, "{arrived}");
    }
    assert_eq!(cycle.step(&Step { arrived: 124.0, ..end() }), Wish::Believe(124.0));
    assert!(matches!(cycle.mode(), Mode::Drain { .. }));
}

#[test]
fn a_drain_is_over_when_the_queue_is_empty_or_after_four_rounds() {
    let drained = |step: &Step| {
        let mut cycle = begin(1);
        cycle.step(&Step { arrived: 100.0, ..end() });
        cycle.step(&standing());
        (1..100)
            .find(|_| {
                cycle.step(step);
                is_cruising(&cycle)
            })
            .expect("an end")
    };
    assert_eq!(drained(&Step { in_flight: 1.0, ..end() }), 1);
    assert_eq!(drained(&Step { in_flight: 1.1, ..end() }), 4);
}

#[test]
fn after_a_start_the_first_probe_comes_within_five_rounds() {
    assert_eq!(over_seeds(|seed| rounds_of_cruise(cruising(seed), &end())), [1, 2, 3, 4, 5]);
}

#[test]
fn between_two_probes_there_are_five_to_seven_rounds() {
    assert_eq!(over_seeds(|seed| rounds_of_cruise(probed(seed, false), &end())), [5, 6, 7]);
}

#[test]
fn where_rounds_are_long_the_next_probe_comes_after_five_to_seven_round_trips_and_50_ms() {
    let time = |seed| {
        let cycle = probed(seed, false);
        let probes = |millis| {
            let mut cycle = cycle.clone();
            cycle.step(&Step { now: Instant::ZERO + ms(millis), ..within() });
            is_probing(&cycle)
        };
        (0..1000).find(|&millis| probes(millis)).expect("a probe") as usize
    };
    assert_eq!(over_seeds(time), [100, 110, 120]);
}

#[test]
fn a_probe_sends_a_quarter_more_until_that_is_in_flight() {
    let mut cycle = probing(1);
    assert_eq!((cycle.pacing_gain(), cycle.window()), (1.25, (2.0, 8)));
    cycle.step(&Step { in_flight: 1.24, highest: 200, ..end() });
    assert!(is_probing(&cycle));
    cycle.step(&Step { in_flight: 1.25, highest: 200, ..within() });
    assert_eq!((cycle.pacing_gain(), cycle.window()), (0.75, (2.0, 8)), "as much less until it has drained");
    cycle.step(&Step { in_flight: 1.01, highest: 200, ..within() });
    assert_eq!(cycle.pacing_gain(), 0.75);
    cycle.step(&Step { in_flight: 1.0, highest: 200, ..within() });
    assert_eq!((cycle.pacing_gain(), cycle.window()), (1.0, (2.0, 8)));
}

#[test]
fn a_probe_that_does_not_get_there_is_over_after_four_rounds() {
    let mut cycle = probing(1);
    let rounds = (1..100).find(|_| {
        cycle.step(&Step { highest: 200, ..end() });
        !is_probing(&cycle)
    });
    assert_eq!(rounds, Some(4));
}

#[test]
fn a_probe_is_careful_where_the_last_has_overrun_a_queue_and_one_stands() {
    for (overran, queue, gain) in [(true, true, 1.1), (true, false, 1.25), (false, true, 1.25)] {
        let mut cycle = probed(1, overran);
        let rounds = rounds_of_cruise(cycle.clone(), &end());
        (1..rounds).for_each(|_| _ = cycle.step(&end()));
        cycle.step(&if queue { standing() } else { end() });
        assert!(is_probing(&cycle));
        assert_eq!(cycle.pacing_gain(), gain, "overran: {overran}, a queue: {queue}");
    }
}

#[test]
fn a_link_that_a_probe_has_found_to_be_faster_is_started_on_at_twice_the_rate() {
    for (rate, faster) in [(114.0, false), (115.0, true), (200.0, true)] {
        let mut cycle = probed(1, false);
        cycle.step(&Step { rate, arrived: rate, ..end() });
        assert_eq!(matches!(cycle.mode(), Mode::Startup { .. }), faster, "{rate}");
        assert_eq!(cycle.pacing_gain(), if faster { 2.0 } else { 1.0 }, "{rate}");
    }
}

#[test]
fn a_queue_that_has_stood_for_three_rounds_is_drained() {
    let mut cycle = probed(1, false);
    for round in 1..3 {
        assert_eq!(cycle.step(&standing()), Wish::Nothing);
        assert!(is_cruising(&cycle), "round {round}");
    }
    assert_eq!(cycle.step(&standing()), Wish::Shorten(3));
    // A tenth less, and no more in flight than the link takes and four packets.
    assert_eq!((cycle.pacing_gain(), cycle.window()), (0.9, (1.0, 4)));
    cycle.step(&end());
    assert!(is_cruising(&cycle), "until it is gone");
}

/// For how many rounds a queue is drained that keeps standing, where the rate is this percentage of what it was and the
/// queue this long, and for how many more it is then left alone.
fn patience(rate: f64, queue: Duration) -> (u64, u64) {
    let mut cycle = braking();
    let step = |round| Step { rounds: 1000 + round, rate, arrived: rate, queue, ..standing() };
    let over = (1..100)
        .find(|&round| {
            cycle.step(&step(round));
            !is_braking(&cycle)
        })
        .expect("an end");
    // It is probed meanwhile; only what stops it again counts.
    let again = (1..100).find(|&round| {
        cycle.step(&Step { highest: 200, crowded: true, ..step(over + round) });
        is_braking(&cycle)
    });
    (over, again.expect("another try"))
}

#[test]
fn a_queue_that_stays_although_one_sends_less_is_that_of_others_for_48_rounds() {
    for (rate, queue) in [(84.9, ms(6)), (50.0, ms(8)), (84.9, ms(20))] {
        assert_eq!(patience(rate, queue), (4, 48), "{rate} % and {queue:?}");
    }
}

#[test]
fn a_queue_that_gives_way_or_is_ones_own_is_drained_for_twelve_rounds_and_again_after_four() {
    for (rate, queue) in [(85.0, ms(8)), (50.0, Duration::from_micros(5999)), (100.0, ms(20))] {
        assert_eq!(patience(rate, queue), (12, 4), "{rate} % and {queue:?}");
    }
}

#[test]
fn what_is_drained_in_vain_is_cruised_over_for_five_to_seven_rounds_and_what_took_too_long_is_probed_at_once()
{
    for (rate, rounds, cruise) in [(50.0, 4, 5..=7), (100.0, 12, 1..=1)] {
        let mut cycle = braking();
        (0..rounds).for_each(|_| _ = cycle.step(&Step { rate, arrived: rate, ..standing() }));
        let taken = rounds_of_cruise(cycle, &Step { rate: 50.0, ..end() });
        assert!(cruise.contains(&taken), "{taken} rounds at {rate} %");
    }
}

#[test]
fn an_overflow_that_does_not_end_is_answered_each_round_until_it_ends() {
    let mut cycle = probed(1, false);
    let crowded = Step { crowded: true, ..end() };
    for round in 0..4 {
        assert_eq!(cycle.step(&crowded), Wish::Lower, "round {round}");
        assert!(is_braking(&cycle));
    }
    assert_eq!(cycle.step(&end()), Wish::Nothing);
    assert!(is_cruising(&cycle));
}

#[test]
fn where_far_too_much_is_dropped_it_does_not_matter_whose_the_queue_is() {
    for swamped in [false, true] {
        let mut cycle = braking();
        (0..4).for_each(|_| _ = cycle.step(&Step { rate: 50.0, ..standing() }));
        assert!(is_cruising(&cycle), "it is others'");
        let wish = cycle.step(&Step { rounds: 1001, rate: 50.0, crowded: true, swamped, ..end() });
        assert_eq!(
            (wish, is_braking(&cycle)),
            if swamped { (Wish::Lower, true) } else { (Wish::Nothing, false) }
        );
    }
}

#[test]
fn the_link_is_empty_for_4_ms_and_two_rounds_to_see_its_length() {
    let mut cycle = probed(1, false);
    let at = |micros, rounds, rtt| Step {
        now: Instant::ZERO + Duration::from_micros(micros),
        rounds,
        rtt,
        ..within()
    };
    cycle.step(&Step { stale: true, ..at(0, 1000, ms(10)) });
    assert_eq!((cycle.holds_back(), cycle.window()), (true, (0.0, 2)));
    for (micros, rounds) in [(3999, 1002), (9000, 1001)] {
        let mut cycle = cycle.clone();
        assert_eq!(cycle.step(&at(micros, rounds, ms(9))), Wish::Nothing, "{micros} us, {rounds}");
        assert!(cycle.holds_back());
    }
    cycle.step(&at(2000, 1001, ms(8)));
    assert_eq!(cycle.step(&at(4000, 1002, ms(9))), Wish::MinRtt(ms(8)));
    assert!(is_probing(&cycle));
}
