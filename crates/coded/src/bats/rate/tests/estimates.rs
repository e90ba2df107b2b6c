//! Estimates from round trips and reports: how long the link is, whether a queue stands, and how much passes.

use hopcast_core::{Duration, Instant, Seed};

use super::super::delay::Delay;
use super::super::filter::MaxFilter;
use super::super::flight::Sent;
use super::super::samples::{Mark, Samples};
use super::super::{Config, HopReport, LinkRate};
use super::ms;

fn after(span: Duration) -> Instant {
    Instant::ZERO + span
}

/// The state after one round trip at time zero.
fn seen(rtt: Duration) -> Delay {
    let mut delay = Delay::default();
    delay.on_sample(Instant::ZERO, rtt, Duration::ZERO);
    delay
}

#[test]
fn the_least_round_trip_is_believed_for_a_second_or_50_round_trips() {
    for (rtt, window) in [(ms(1), ms(1000)), (ms(20), ms(1000)), (ms(100), ms(5000))] {
        let delay = seen(rtt);
        assert!(!delay.is_stale(after(window)), "{rtt:?}");
        assert!(delay.is_stale(after(window + Duration::from_nanos(1))), "{rtt:?}");
    }
}

#[test]
fn a_queue_stands_that_is_more_than_four_packets_and_an_eighth_of_the_round_trip() {
    for (rtt, packet, queue) in [(ms(8), ms(1), ms(4)), (ms(80), ms(1), ms(10))] {
        let delay = seen(rtt);
        assert!(!delay.is_standing(rtt + queue, packet), "{rtt:?}");
        assert!(delay.is_standing(rtt + queue + Duration::from_nanos(1), packet), "{rtt:?}");
    }
}

#[test]
fn four_standard_deviations_of_the_jitter_are_no_queue() {
    let mut delay = Delay::default();
    // Every second one is later, by a standard deviation of 2 ms as second differences tell it.
    for i in 0..200 {
        delay.on_sample(after(ms(i)), Duration::from_micros(8000 + 1950 * (i % 2)), Duration::ZERO);
    }
    assert!(delay.jitter().abs_diff(ms(2)) < Duration::from_micros(10), "{:?}", delay.jitter());
    let base = delay.base().expect("round trips");
    assert!(base.abs_diff(ms(16)) < Duration::from_micros(50), "{base:?}");
    assert!(!delay.is_standing(base + ms(1), Duration::ZERO), "an eighth of the least is none");
    assert!(delay.is_standing(base + Duration::from_micros(1001), Duration::ZERO));
}

#[test]
fn a_rate_is_believed_for_ten_rounds() {
    let mut best = MaxFilter::default();
    best.update(9.0);
    for round in 1..10 {
        best.advance();
        best.update(1.0);
        assert_eq!(best.get(), 9.0, "after {round} rounds");
    }
    best.advance();
    best.update(1.0);
    assert_eq!(best.get(), 1.0);
}

/// The report of packet `highest`, which was sent in the round after that of `highest - 1`; each took a millisecond.
fn mark(highest: u64) -> Mark {
    let sent = Sent { at: after(ms(highest)), bytes: 0, limited: 0, eased: 0, pressed: 0 };
    let arrival = after(ms(highest)).as_nanos();
    Mark {
        highest,
        sent,
        arrival,
        next: highest + 1,
        passed: 1000.0 * highest as f64,
        received: 1000 * highest,
    }
}

#[test]
fn a_sample_is_of_eight_packets_at_least() {
    let mut samples = Samples::default();
    samples.push(mark(100), Duration::ZERO);
    assert!(samples.sample(&mark(107), Duration::ZERO).is_none());
    let sample = samples.sample(&mark(108), Duration::ZERO).expect("a sample");
    assert!((sample.passed - 8e6).abs() < 1.0 && (sample.received - 8e6).abs() < 1.0, "{sample:?}");
}

#[test]
fn of_reports_those_are_remembered_that_are_four_packets_apart() {
    for (second, remembered) in [(103, false), (104, true)] {
        let mut samples = Samples::default();
        samples.push(mark(100), Duration::ZERO);
        samples.push(mark(second), Duration::ZERO);
        // Nothing has passed by then, as it were: which of them the sample begins with shows in its rate.
        let mut last = mark(second + 8);
        last.passed = 0.0;
        let sample = samples.sample(&last, Duration::ZERO).expect("a sample");
        let from = if remembered { second } else { 100 };
        let expected = -8e6 * from as f64 / (second + 8 - from) as f64;
        assert!((sample.passed - expected).abs() < 1.0, "{second}: {sample:?}");
    }
}

#[test]
fn no_more_than_64_reports_are_remembered() {
    let mut samples = Samples::default();
    // In a round trip of which only the first report was in before the last packet was sent.
    samples.push(mark(0), Duration::ZERO);
    for i in 1..64 {
        samples.push(Mark { next: 1000, ..mark(4 * i) }, Duration::ZERO);
    }
    assert!(samples.sample(&mark(500), Duration::ZERO).is_some());
    samples.push(Mark { next: 1000, ..mark(4 * 64) }, Duration::ZERO);
    assert!(samples.sample(&mark(500), Duration::ZERO).is_none());
}

#[test]
fn a_queue_is_seen_by_what_arrives_further_apart_than_it_was_sent_and_not_by_another_clock() {
    let at = |micros: u64| Instant::ZERO + Duration::from_micros(micros);
    // Packets of 1000 bytes and 42 of headers, every 100 us; the link takes 400 us for each. Then another
    // receiver has started, whose clock is at zero.
    let mut rate = LinkRate::new(Config::default(), Seed::new(1, 0).stream(&["drain"], 0));
    (0..60).for_each(|number| rate.on_sent(at(100 * number), number, 1000, true));
    let report = |highest: u64, arrival: u64, received: u64| HopReport {
        highest,
        arrival_ns: arrival * 1000,
        received_packets: received,
        received_bytes: received * 1000,
        ..HopReport::example()
    };
    let mut after = |now: u64, report: HopReport| {
        assert_eq!(rate.on_report(at(now), &report), Ok(()));
        rate.drain()
    };
    assert_eq!(after(20_000, report(0, 10_000, 1)), None);
    let drain = after(30_000, report(20, 18_000, 21)).unwrap();
    assert!((drain - 1042.0 * 8.0 / 400e-6).abs() < 1e5, "{drain}");
    assert_eq!(after(5_050_000, report(40, 4000, 10)), None, "another receiver");
    // As far apart as they were sent: there is none any more.
    assert_eq!(after(5_060_000, report(50, 5000, 20)), None);
}
