//! The reports that are believed, and the number of packets of a probe.

use hopcast_core::{Duration, Instant, Seed};

use super::super::{Config, HopReport, LinkRate, ReportError};

fn begun() -> LinkRate {
    let mut rate = LinkRate::new(Config::default(), Seed::new(1, 0).stream(&["rate"], 0));
    rate.on_sent(Instant::ZERO, 0, 1000, true);
    rate
}

#[test]
fn a_report_was_not_held_for_longer_than_its_packet_is_away() {
    for (hold, expected) in [(0, Ok(())), (20, Ok(())), (21, Err(ReportError::HeldTooLong))] {
        let report = HopReport { hold: Duration::from_millis(hold), ..HopReport::example() };
        let now = Instant::ZERO + Duration::from_millis(20);
        assert_eq!(begun().on_report(now, &report), expected, "held for {hold} ms");
    }
}

#[test]
fn a_round_trip_is_not_known_where_the_report_was_held_for_longer_than_it_can_say() {
    for (hold, known) in [(65_534, Some(Duration::from_micros(34_466))), (65_535, None)] {
        let mut rate = begun();
        let report = HopReport { hold: Duration::from_micros(hold), ..HopReport::example() };
        assert_eq!(rate.on_report(Instant::ZERO + Duration::from_millis(100), &report), Ok(()));
        assert_eq!(rate.srtt(), known, "{hold} us");
    }
}

#[test]
fn a_probe_is_half_as_many_packets_more_as_a_burst_of_losses_and_16_at_most() {
    for (burst, packets) in [(1.0, 1), (2.0, 3), (4.0, 6), (10.0, 15), (11.0, 16), (100.0, 16)] {
        let mut rate = begun();
        rate.mean_burst = burst;
        assert_eq!(rate.probe_packets(), packets, "bursts of {burst}");
    }
}
