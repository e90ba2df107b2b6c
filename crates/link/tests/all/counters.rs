//! Figures of a link: readings add up, and what lies between two of them comes out again.

use crate::common::*;
use hopcast_core::Duration;
use hopcast_link::{Counters, Direction, Link, MediumConfig, Station};

/// A reading in which each figure is another multiple of `unit`.
fn reading(unit: u64) -> Counters {
    Counters {
        sent_bytes: 2 * unit,
        sent_packets: 3 * unit,
        delivered_bytes: 4 * unit,
        delivered_packets: 5 * unit,
        lost_packets: 6 * unit,
        queue_dropped_packets: 7 * unit,
        corrupted_packets: 8 * unit,
        duplicated_packets: 9 * unit,
        overheard_packets: 10 * unit,
        collisions: 11 * unit,
        retries: 12 * unit,
        busy: Duration::from_micros(13 * unit),
        queued: Duration::from_micros(14 * unit),
    }
}

#[test]
fn each_figure_of_two_readings_is_added_and_subtracted_by_itself() {
    assert_eq!(reading(3) + reading(4), reading(7));
    assert_eq!(reading(7) - reading(4), reading(3));
    assert_eq!(reading(7) - Counters::default(), reading(7));
}

#[test]
fn a_link_has_two_attachments_and_a_medium_one_for_each_station() {
    assert_eq!(both_ways(&Direction::default(), 1).attachments(), 2);
    let stations = (0..3).map(|i| Station { address: [2, 0, 0, 0, 0, i], promiscuous: false, echo: false });
    let config = MediumConfig { stations: stations.collect(), ..MediumConfig::default() };
    assert_eq!(medium(config, 1).attachments(), 3);
}
