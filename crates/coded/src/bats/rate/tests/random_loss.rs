//! Losses of the link itself, and those of a queue that overflows, are distinguished.

use super::super::random_loss::{Interval, RandomLoss};

/// Packets that were sent with less than the rate.
fn eased(packets: u64, lost: u64) -> Interval {
    Interval { packets, lost, eased: 1.0, pressed: 0.0 }
}

/// Packets that were sent at the rate.
fn even(packets: u64, lost: u64) -> Interval {
    Interval { packets, lost, eased: 0.0, pressed: 0.0 }
}

/// Packets that were sent with more than the rate.
fn pressed(packets: u64, lost: u64) -> Interval {
    Interval { packets, lost, eased: 0.0, pressed: 1.0 }
}

/// A link that is known to lose this number of a hundred packets.
fn known(percent: u64) -> RandomLoss {
    let mut loss = RandomLoss::default();
    (0..200).for_each(|_| loss.on_packets(&eased(100, percent), 1.0));
    assert!((loss.get() - percent as f64 / 100.0).abs() < 0.002, "{}", loss.get());
    loss
}

fn assert_near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 0.02, "{value} and not {expected}");
}

#[test]
fn at_first_16_packets_count_as_not_lost() {
    let mut loss = RandomLoss::default();
    loss.on_packets(&eased(4, 4), 1.0);
    assert_near(loss.get(), 4.0 / 20.0);
    assert_near(loss.all(), 4.0 / 20.0);
}

#[test]
fn what_is_learnt_fades_as_512_packets_follow() {
    let faded = (-1.0_f64).exp();
    let mut loss = known(10);
    (0..512).for_each(|_| loss.on_packets(&eased(1, 0), 1.0));
    assert_near(loss.get(), 0.1 * faded);
    assert_near(loss.all(), 0.1 * faded);
}

#[test]
fn while_what_is_lost_is_not_explained_what_is_known_fades_as_128_packets_follow() {
    let mut loss = known(0);
    (0..128).for_each(|_| loss.on_packets(&eased(1, 1), 1.0));
    // What was known counted for 512 packets.
    let faded = (-1.0_f64).exp();
    let lost = 128.0 * (1.0 - faded);
    assert_near(loss.get(), lost / (lost + 512.0 * faded));
}

#[test]
fn a_link_is_not_believed_to_lose_more_than_nine_tenths() {
    let mut loss = RandomLoss::default();
    loss.on_packets(&eased(10_000, 10_000), 1.0);
    assert_eq!((loss.get(), loss.all()), (0.9, 1.0));
}

#[test]
fn a_queue_overflows_when_eight_packets_more_are_lost_than_is_explained_and_four_for_each_of_a_burst() {
    for (burst, limit) in [(1.0, 12), (3.0, 20), (8.0, 40)] {
        for (lost, overflows) in [(limit, false), (limit + 1, true)] {
            let mut loss = known(0);
            loss.on_packets(&pressed(100, lost), burst);
            let what = format!("{lost} lost, bursts of {burst}");
            assert_eq!((loss.is_overflow(burst), loss.is_crowded(burst)), (overflows, false), "{what}");
            let mut loss = known(0);
            loss.on_packets(&even(100, lost), burst);
            assert_eq!((loss.is_overflow(burst), loss.is_crowded(burst)), (overflows, overflows), "{what}");
        }
    }
}

#[test]
fn three_in_a_thousand_more_than_is_known_are_no_overflow_however_long_it_lasts() {
    for (lost, overflows) in [(3, false), (8, true)] {
        let mut loss = known(0);
        (0..100).for_each(|_| loss.on_packets(&even(1000, lost), 1.0));
        assert_eq!(loss.is_overflow(1.0), overflows, "{lost} of 1000");
    }
}

#[test]
fn two_standard_deviations_more_than_is_known_are_no_overflow() {
    // A tenth, as far as 512 packets tell: give or take 1.4 %.
    for (lost, overflows) in [(128, false), (137, true)] {
        let mut loss = known(10);
        (0..10).for_each(|_| loss.on_packets(&even(1000, lost), 1.0));
        assert_eq!(loss.is_overflow(1.0), overflows, "{lost} of 1000");
    }
}

#[test]
fn an_overflow_fades_as_4096_packets_follow() {
    let mut loss = known(0);
    loss.on_packets(&even(100, 100), 1.0);
    // It counts for 24, and 12 are the bound; each packet that is not lost takes off 0.003 besides.
    let expected = 4096.0 * ((24.0 + 12.3) / (12.0 + 12.3_f64)).ln();
    let packets = (1..10_000).find(|_| {
        loss.on_packets(&even(1, 0), 1.0);
        !loss.is_overflow(1.0)
    });
    assert_near(f64::from(packets.expect("an end")), expected);
}

#[test]
fn a_link_is_swamped_when_three_percent_more_are_lost_than_it_loses_itself() {
    for (percent, lost, swamped) in [(0, 29, false), (0, 31, true), (10, 129, false), (10, 131, true)] {
        let mut loss = known(percent);
        loss.on_packets(&even(1000, lost), 1.0);
        assert_eq!(loss.is_swamped(), swamped, "{lost} of 1000 over a link that loses {percent} %");
    }
}
