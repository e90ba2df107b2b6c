//! The window, its tokens and the time for an answer, one step at a time.

use std::net::IpAddr;

use hopcast_core::{Instant, Rate};

use super::{Control, MIN_TIMEOUT, PACE};
use crate::pgm::wire::{Ack, CongestionFeedback};

const fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// A receiver says at a time that it took `round_trip` milliseconds, with a loss of 1 %.
fn report(control: &mut Control, now: u64, round_trip: u64, receiver: u8) -> bool {
    let receiver = IpAddr::from([10, 0, 0, receiver]);
    let feedback = CongestionFeedback { timestamp: (now - round_trip) as u32, loss: 655, receiver };
    control.feedback(at(now), &feedback)
}

/// A source whose acker has a round trip of 100 ms.
fn control() -> Control {
    let mut control = Control::new(Rate::from_mbit(100), false);
    assert!(report(&mut control, 1_000, 100, 1));
    control
}

/// Number of packets that may be sent now; all are.
fn send_all(control: &mut Control, now: u64) -> u64 {
    let mut sent = 0;
    while control.may_send(at(now)) {
        control.sent(at(now));
        sent += 1;
    }
    sent
}

#[test]
fn without_an_answer_a_packet_is_sent_after_times_that_double_up_to_a_second() {
    let mut control = control();
    assert_eq!(send_all(&mut control, 1_000), 2);
    // A round trip of 100 ms and four times its half; then no acker, and so the same times again, twice as long.
    let mut now = 1_000;
    for wait in [300, 600, 1_000, 1_000] {
        assert_eq!(control.deadline(), Some(at(now + wait)));
        assert_eq!(send_all(&mut control, now + wait - 1), 0);
        now += wait;
        assert_eq!(send_all(&mut control, now), 1);
    }
    assert_eq!(control.counts.timeouts, 4);
    // Whoever answers ends that.
    control.ack(at(now + 50), &Ack { highest: 6, bitmap: 1 }, 6, |_| true);
    assert!(send_all(&mut control, now + 50) > 0);
    assert_eq!(control.deadline(), Some(at(now + 350)));
}

#[test]
fn the_time_for_an_answer_begins_with_the_last_acknowledgement() {
    let mut control = control();
    assert_eq!(send_all(&mut control, 1_000), 2);
    // Three are lost before it, so that the window is halved and nothing may be sent.
    let ack = Ack { highest: 10, bitmap: 1 };
    control.ack(at(1_200), &Ack { highest: 5, bitmap: 1 }, 10, |_| true);
    control.ack(at(1_250), &ack, 10, |_| true);
    assert_eq!(control.counts.halvings, 1);
    assert_eq!(control.deadline(), Some(at(1_550)));
    // The same again says nothing new.
    control.ack(at(1_300), &ack, 10, |_| true);
    assert_eq!((control.deadline(), control.counts.acks), (Some(at(1_550)), 3));
}

#[test]
fn round_trips_that_do_not_vary_are_waited_for_no_longer_than_they_take() {
    let mut control = control();
    for now in 0..40 {
        report(&mut control, 1_010 + now, 400, 1);
    }
    send_all(&mut control, 2_000);
    let due = control.deadline().unwrap();
    assert!((at(2_390)..at(2_420)).contains(&due), "{due:?}");
    let mut near = Control::new(Rate::from_mbit(100), false);
    (0..40).for_each(|now| assert!(report(&mut near, 1_000 + now, 1, 1)));
    send_all(&mut near, 2_000);
    assert_eq!(near.deadline(), Some(at(2_000) + MIN_TIMEOUT));
}

#[test]
fn the_pace_is_a_window_in_a_round_trip_and_a_quarter_more_and_at_least_a_packet_a_second() {
    let near = |rate: Rate, bits: f64| (rate.bits_per_sec() as f64 / bits - 1.0).abs() < 1e-3;
    // A window of two packets of 1,000 bytes in 100 ms.
    assert!(near(control().rate(1_000), PACE * 2.0 * 8_000.0 / 0.1));
    let mut far = Control::new(Rate::from_mbit(100), false);
    assert!(report(&mut far, 20_000, 10_000, 1));
    assert_eq!(far.rate(1_000), Rate::from_bits_per_sec(8_000));
    // A clock of milliseconds cannot say less than one.
    let mut here = Control::new(Rate::from_mbit(1_000), false);
    assert!(report(&mut here, 1_000, 0, 1));
    assert!(near(here.rate(1_000), PACE * 2.0 * 8_000.0 / 0.001));
}

#[test]
fn no_more_is_sent_at_once_than_the_window_has() {
    let mut control = control();
    assert_eq!(send_all(&mut control, 1_000), 2);
    // Of 33 packets, each of which adds one to the window of two, and two to what may be sent.
    control.ack(at(1_100), &Ack { highest: 1, bitmap: 1 }, 33, |_| true);
    control.ack(at(1_100), &Ack { highest: 33, bitmap: u32::MAX }, 33, |_| true);
    assert_eq!(send_all(&mut control, 1_100), 35);
}

#[test]
fn the_acker_is_whose_path_is_worse_by_a_third() {
    let mut control = control();
    // Losses are the same, and worth goes by the square of the round trip.
    assert!(!report(&mut control, 1_000, 115, 2));
    assert!(report(&mut control, 1_000, 116, 2));
    assert!(!report(&mut control, 1_000, 100, 1));
    assert_eq!(control.counts.elections, 2);
    assert!(!report(&mut control, 20_000, 10_001, 3), "no path takes that long");
}

#[test]
fn after_silence_the_window_is_one_packet_and_doubles_up_to_half_of_what_it_was_and_anybody_is_elected() {
    let mut control = control();
    control.ack(at(1_000), &Ack { highest: 1, bitmap: 1 }, 16, |_| true);
    control.ack(at(1_000), &Ack { highest: 16, bitmap: u32::MAX }, 16, |_| true);
    assert_eq!((control.window, control.option(at(1_000)).acker), (18.0, IpAddr::from([10, 0, 0, 1])));
    send_all(&mut control, 1_000);
    assert_eq!(send_all(&mut control, 2_000), 1);
    assert_eq!((control.window, control.threshold), (1.0, 9.0));
    assert_eq!(control.option(at(2_000)).acker, IpAddr::from([0, 0, 0, 0]));
    // Whoever answers, its round trip is the first, and its numbers begin anew.
    assert!(report(&mut control, 2_500, 400, 9));
    assert_eq!((control.round_trip.unwrap().as_millis(), control.highest), (400, None));
    control.ack(at(2_500), &Ack { highest: 17, bitmap: 1 }, 60, |_| true);
    control.ack(at(2_500), &Ack { highest: 27, bitmap: u32::MAX }, 60, |_| true);
    // Up to nine it is one for each packet, beyond it one for each window.
    assert!((9.3..9.4).contains(&control.window), "{}", control.window);
}

/// A source of which each packet up to 20 is acknowledged, and of which 40 were sent.
fn acknowledged_up_to_20() -> Control {
    let mut control = control();
    control.ack(at(1_000), &Ack { highest: 1, bitmap: 1 }, 40, |_| true);
    control.ack(at(1_000), &Ack { highest: 20, bitmap: u32::MAX }, 40, |_| true);
    assert_eq!((control.window, control.counts.halvings), (22.0, 0));
    control
}

#[test]
fn a_packet_is_lost_once_three_behind_it_have_arrived_and_the_window_halves_once_for_what_was_on_its_way() {
    let mut control = acknowledged_up_to_20();
    // 21 is missing.
    control.ack(at(1_100), &Ack { highest: 23, bitmap: 0b11 }, 40, |_| true);
    assert_eq!(control.counts.halvings, 0);
    let before = control.window;
    control.ack(at(1_100), &Ack { highest: 24, bitmap: 0b111 }, 40, |_| true);
    assert_eq!((control.counts.halvings, control.window, control.tokens), (1, before / 2.0, 0.0));
    assert_eq!(control.threshold, before / 2.0, "it grows slowly from there");
    // 25 is missing too, and had been sent before the halving: what arrives makes room, and no more.
    control.ack(at(1_200), &Ack { highest: 29, bitmap: 0b1_111 }, 45, |_| true);
    assert_eq!((control.counts.halvings, control.window, control.tokens), (1, before / 2.0, 4.0));
    control.ack(at(1_300), &Ack { highest: 40, bitmap: 0x7ff }, 45, |_| true);
    assert_eq!(control.window, before / 2.0);
    control.ack(at(1_400), &Ack { highest: 41, bitmap: 1 }, 45, |_| true);
    assert!((before / 2.0 + 0.05..before / 2.0 + 0.2).contains(&control.window), "{}", control.window);
    // One that was sent after it.
    control.ack(at(1_500), &Ack { highest: 45, bitmap: 0b111 }, 45, |_| true);
    assert_eq!(control.counts.halvings, 2);
}

#[test]
fn numbers_that_were_not_sent_are_neither_acknowledged_nor_lost() {
    let mut control = acknowledged_up_to_20();
    control.ack(at(1_100), &Ack { highest: 41, bitmap: u32::MAX }, 40, |_| true);
    assert_eq!((control.window, control.highest), (22.0, Some(20)));
    control.ack(at(1_100), &Ack { highest: 24, bitmap: 0b111 }, 40, |number| number != 21);
    assert_eq!(control.counts.halvings, 0, "a group ended there");
}

#[test]
fn an_acknowledgement_that_was_overtaken_tells_of_what_the_newer_one_did_not() {
    let mut control = acknowledged_up_to_20();
    control.ack(at(1_100), &Ack { highest: 22, bitmap: 1 }, 40, |_| true);
    assert_eq!(control.window, 23.0);
    let newer = control.acknowledged;
    control.ack(at(1_100), &Ack { highest: 21, bitmap: 1 }, 40, |_| true);
    assert_eq!((control.window, control.acknowledged), (24.0, newer | 0b10));
    control.ack(at(1_100), &Ack { highest: 21, bitmap: 1 }, 40, |_| true);
    assert_eq!(control.window, 24.0, "once");
}
