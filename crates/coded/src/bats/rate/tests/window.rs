//! The window, the pacing, the rate that is believed, and the probe timeout.

use hopcast_core::{Duration, Instant, Rate, Seed};

use super::super::random_loss::Interval;
use super::super::{Config, HopReport, LinkRate};
use super::cycle::probing;
use super::ms;
use super::net::PAYLOAD;

/// A full frame, which takes 1.2112 ms at 10 Mbit/s.
const FRAME: u64 = PAYLOAD as u64 + 42;

fn new(config: Config) -> LinkRate {
    LinkRate::new(config, Seed::new(1, 0).stream(&["rate"], 0))
}

/// One that ramps up over a link of which it has seen this rate and this round trip.
fn known(rate: Rate, rtt: Duration) -> LinkRate {
    let mut link = new(Config::default());
    link.proven = true;
    link.best.replace(rate.bits_per_sec() as f64);
    link.delay.on_sample(Instant::ZERO, rtt, Duration::ZERO);
    link.reckon();
    link
}

/// Maximum number of full frames in flight.
fn room(mut link: LinkRate) -> u64 {
    link.reckon();
    (0..10_000)
        .find(|&sequence| {
            let full = link.next_send().is_none();
            link.on_sent(Instant::ZERO, sequence, PAYLOAD as u64, false);
            full
        })
        .expect("an end")
}

/// Sends frames, one each `gap`, which take no time; `reports` says which of them are reported, and how many have
/// arrived by then.
fn send(link: &mut LinkRate, gap: Duration, reports: &[(u64, u64)]) {
    let last = reports.last().map_or(0, |(highest, _)| *highest);
    for sequence in 0..=last {
        let now = Instant::ZERO + gap * sequence;
        link.on_sent(now, sequence, PAYLOAD as u64, false);
        for &(highest, received) in reports.iter().filter(|(highest, _)| *highest == sequence) {
            let report = HopReport {
                highest,
                arrival_ns: now.as_nanos(),
                hold: Duration::ZERO,
                received_packets: received,
                received_bytes: received * PAYLOAD as u64,
                mean_burst: 1.0,
            };
            assert_eq!(link.on_report(now, &report), Ok(()));
        }
    }
}

/// The rate that is believed when nine frames have left, one each millisecond, the first has arrived, and this number
/// of the others.
fn believed(arrived: u64) -> f64 {
    let mut link = new(Config::default());
    send(&mut link, ms(1), &[(0, 1), (8, 1 + arrived)]);
    link.rate().as_mbit()
}

#[test]
fn before_the_first_report_ten_full_frames_may_leave() {
    assert_eq!(room(new(Config::default())), 10);
}

#[test]
fn more_may_be_in_flight_where_losses_come_in_bursts_but_no_more_than_256_packets() {
    for (burst, more) in [(1.0, 0), (2.0, 32), (5.0, 128), (9.0, 256), (100.0, 256)] {
        let mut link = known(Rate::from_mbit(10), Duration::ZERO);
        link.mean_burst = burst;
        assert_eq!(room(link), 16 + more, "bursts of {burst}");
    }
}

#[test]
fn more_may_be_in_flight_where_the_link_loses_packets_but_no_more_than_where_it_loses_a_fifth() {
    for (percent, more) in [(0, 0), (11, 6), (20, 12), (60, 12)] {
        let mut link = known(Rate::from_mbit(10), Duration::ZERO);
        let eased = Interval { packets: 100_000, lost: 1000 * percent, eased: 1.0, pressed: 0.0 };
        link.random_loss.on_packets(&eased, 1.0);
        assert_eq!(room(link), 16 + more, "{percent} %");
    }
}

#[test]
fn without_regard_to_the_link_65_536_packets_may_be_in_flight() {
    let mut link = new(Config::default());
    link.unbind();
    for sequence in 0..65_536 {
        assert!(link.may_send(Instant::ZERO), "{sequence}");
        link.on_sent(Instant::ZERO, sequence, 100, false);
    }
    assert_eq!(link.next_send(), None);
}

#[test]
fn until_a_link_has_shown_what_it_takes_ten_packets_may_leave_in_a_round_trip() {
    let mut link = known(Rate::from_bits_per_sec(100_000), ms(100));
    link.proven = false;
    link.on_sent(Instant::ZERO, 0, PAYLOAD as u64, false);
    // It is ramping up, so as much faster.
    let gap = link.next_send().expect("room").since(Instant::ZERO).mul_f64(2.885);
    assert!(gap.abs_diff(ms(10)) < Duration::from_micros(1), "{gap:?}");
}

#[test]
fn a_probe_sends_two_packets_in_a_round_trip_more_than_its_gain() {
    let mut link = known(Rate::from_mbit(10), ms(10));
    link.cycle = probing(1);
    link.on_sent(Instant::ZERO, 0, PAYLOAD as u64, false);
    // 200 in a second more.
    let rate = 12.5e6 + 200.0 * (FRAME * 8) as f64;
    let gap = link.next_send().expect("room").since(Instant::ZERO).as_secs_f64();
    assert!((gap * rate / (FRAME * 8) as f64 - 1.0).abs() < 1e-4, "{gap}");
}

#[test]
fn a_link_is_not_idle_with_a_quarter_more_than_it_takes_and_16_packets_in_flight() {
    let mut link = known(Rate::from_mbit(10), ms(10));
    // 12,500 bytes, a quarter more, and 16 frames: 39,849 bytes, which are 26.3 frames.
    for sequence in 0..40 {
        link.on_sent(Instant::ZERO, sequence, PAYLOAD as u64, true);
    }
    // Each counts those before it and itself.
    let limited: Vec<u64> = (0..40).map(|i| link.flight.get(i).expect("in flight").limited).collect();
    let expected: Vec<u64> = (1..=40).map(|i| i.min(27)).collect();
    assert_eq!(limited, expected);
}

#[test]
fn while_ramping_up_a_fifth_may_be_lost_of_what_is_believed_to_pass() {
    let frames = 8.0 * FRAME as f64 / 1e3;
    for (arrived, passes) in [(8, 8.0), (7, 8.0), (6, 7.5), (4, 5.0)] {
        let mbit = believed(arrived);
        assert!((mbit / (passes / 8.0 * frames) - 1.0).abs() < 1e-4, "{arrived} of 8: {mbit}");
    }
}

#[test]
fn where_wake_ups_are_coarse_a_sample_lasts_eight_times_that() {
    for (slack, packets) in [(Duration::ZERO, 8), (ms(2), 16)] {
        for (last, known) in [(packets - 1, false), (packets, true)] {
            let mut link = new(Config { slack, ..Config::default() });
            send(&mut link, ms(1), &[(0, 1), (last, last + 1)]);
            assert_eq!(link.rate().bits_per_sec() > 0, known, "{slack:?}: {last} ms");
        }
    }
}

#[test]
fn no_rate_below_16_kbit_or_above_1_tbit_is_believed() {
    for (gap, bits) in [(Duration::from_secs(1), 16_000), (Duration::from_nanos(1), 1_000_000_000_000)] {
        let mut link = new(Config::default());
        send(&mut link, gap, &[(0, 1), (8, 9)]);
        assert_eq!(link.rate().bits_per_sec(), bits);
    }
}

#[test]
fn a_round_that_brings_less_than_three_quarters_shows_a_link_that_became_slower() {
    for (rate, fell) in [(75.0, false), (74.9, true)] {
        let mut link = new(Config::default());
        link.best.update(100.0);
        link.best.advance();
        link.best.update(rate);
        let end = link.take_round(Instant::ZERO, 8, ms(1)).expect("the end of a round");
        assert_eq!(end.fell, fell, "{rate}");
    }
}

/// The next `count` probe timeouts, each of which goes off.
fn timeouts(link: &mut LinkRate, count: usize) -> Vec<Duration> {
    let mut now = Instant::ZERO;
    let next = |_| {
        let timeout = link.probe_timeout();
        now += timeout;
        link.on_probe(now);
        timeout
    };
    (0..count).map(next).collect()
}

#[test]
fn a_report_is_asked_for_after_10_ms_as_long_as_there_is_no_round_trip() {
    assert_eq!(new(Config::default()).probe_timeout(), ms(10));
}

#[test]
fn a_report_is_asked_for_after_a_round_trip_and_its_variation_but_not_within_half_a_millisecond() {
    // A first round trip varies by half of it; a report is held for a quarter.
    for (rtt, timeout) in [(ms(4), ms(13)), (Duration::from_micros(10), Duration::from_micros(500))] {
        assert_eq!(known(Rate::from_mbit(10), rtt).probe_timeout(), timeout, "{rtt:?}");
    }
}

#[test]
fn probe_timeouts_double_until_probes_take_a_tenth_of_the_link() {
    let mut link = known(Rate::from_mbit(10), Duration::from_micros(10));
    let tenth = Duration::from_micros(12_112);
    let expected = [500, 1000, 2000, 4000, 8000].map(Duration::from_micros);
    assert_eq!(timeouts(&mut link, 7), [&expected[..], &[tenth, tenth]].concat());
    // Of as many packets as a probe is.
    let mut link = known(Rate::from_mbit(10), Duration::from_micros(10));
    link.mean_burst = 4.0;
    assert_eq!(timeouts(&mut link, 12)[11], tenth * 6);
}

#[test]
fn probe_timeouts_double_up_to_200_ms_but_are_no_shorter_than_the_round_trip() {
    let mut slow = known(Rate::from_bits_per_sec(100_000), ms(4));
    assert_eq!(timeouts(&mut slow, 6), [13, 26, 52, 104, 200, 200].map(ms));
    let mut long = known(Rate::from_mbit(10), ms(400));
    assert_eq!(timeouts(&mut long, 100), [ms(1300); 100]);
    let mut unknown = new(Config::default());
    assert_eq!(
        timeouts(&mut unknown, 100)[4..],
        [160, 200].map(ms).into_iter().chain([ms(200); 94]).collect::<Vec<_>>()
    );
}

#[test]
fn a_link_is_gone_after_512_packets_of_probes_and_20_for_each_of_a_burst() {
    for (burst, probes) in [(1.0, 532), (4.0, 592 / 6), (100.0, (512 + 320) / 16)] {
        let mut link = known(Rate::from_mbit(1000), Duration::from_micros(10));
        link.mean_burst = burst;
        (0..probes).for_each(|_| link.on_probe(Instant::ZERO + ms(1)));
        // Had it been gone, this would be long after it.
        let late = Instant::ZERO + Duration::from_secs(10);
        let timeout = link.probe_timeout();
        assert!(timeout < ms(5), "{timeout:?}");
        link.on_probe(late);
        assert!(link.probe_timeout() > ms(100), "bursts of {burst}: {:?}", link.probe_timeout());
    }
}

#[test]
fn a_link_that_is_gone_is_probed_again_after_a_64th_of_its_absence() {
    let mut link = known(Rate::from_mbit(1000), Duration::from_micros(10));
    (0..1000).for_each(|_| link.on_probe(Instant::ZERO + ms(1)));
    for (absence, timeout) in [(ms(3200), ms(50)), (ms(6400), ms(100)), (ms(64_000), ms(200))] {
        link.on_probe(Instant::ZERO + ms(1) + absence);
        assert_eq!(link.probe_timeout(), timeout, "{absence:?}");
    }
}
