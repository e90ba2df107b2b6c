//! Contention where each station hears only some of the others: what is sensed, what collides, who is silent.

use std::collections::BTreeSet;

use crate::common::*;
use hopcast_core::{Buffer, Bytes, Duration, FrameOutcome, Instant, Rate};
use hopcast_link::{
    Attachment, Change, Csma, Direction, DropReason, Event, Link, Loss, Mac, Medium, MediumConfig, Rts,
    Station,
};

const LEN: usize = 1_200;

/// Without a choice of slots everything has its time: slots begin at 50 µs and each 20 µs after it.
fn exact() -> Csma {
    Csma { cw_min: 0, cw_max: 0, ..Csma::default() }
}

fn asking(threshold: u64) -> Csma {
    Csma { rts: Some(Rts::ofdm(Bytes::new(threshold), Rate::from_mbit(12))), ..exact() }
}

/// Stations that hear each other where they stand beside each other in one of `rows`.
fn config(rows: &[&[Attachment]], csma: Csma) -> MediumConfig {
    let pairs =
        rows.iter().flat_map(|row| row.windows(2)).flat_map(|pair| [(pair[0], pair[1]), (pair[1], pair[0])]);
    let hears: BTreeSet<_> = pairs.collect();
    let stations = hears.iter().map(|(from, _)| from + 1).max().unwrap_or(0);
    MediumConfig {
        direction: Direction { rate: Some(Rate::from_mbit(12)), ..Direction::default() },
        stations: (0..stations as u8)
            .map(|i| Station { address: [2, 0, 0, 0, 0, i], ..Station::default() })
            .collect(),
        mac: Mac::Csma(csma),
        hears: Some(hears),
        ..MediumConfig::default()
    }
}

fn row_of(n: usize, csma: Csma) -> Medium {
    let row: Vec<Attachment> = (0..n).collect();
    medium(config(&[&row], csma), 1)
}

fn to(destination: u8, id: u64) -> Buffer {
    let mut frame = frame(id, LEN);
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, destination]);
    frame
}

fn air(csma: &Csma) -> Duration {
    csma.overhead + Rate::from_mbit(12).time_for(LEN as u64)
}

fn delivered(said: &Said) -> Vec<(Instant, Attachment, Attachment, u64)> {
    let heard = |(at, event): &(Instant, Event)| match event {
        Event::Delivered { from, to, frame, .. } => Some((*at, *from, *to, id(frame))),
        _ => None,
    };
    said.iter().filter_map(heard).collect()
}

fn ways(said: &Said) -> Vec<(Attachment, Attachment, u64)> {
    delivered(said).into_iter().map(|(_, from, to, id)| (from, to, id)).collect()
}

fn drops(said: &Said) -> Vec<(Attachment, Option<Attachment>, DropReason)> {
    let dropped = |(_, event): &(Instant, Event)| match event {
        Event::Dropped { from, to, reason, .. } => Some((*from, *to, *reason)),
        _ => None,
    };
    said.iter().filter_map(dropped).collect()
}

#[test]
fn stations_that_do_not_hear_each_other_collide_at_the_one_between() {
    // The second begins while the first is on the air, which it would hear if it could.
    let offers =
        [(micros(4_990), Action::Offer(0, frame(0, LEN))), (micros(5_300), Action::Offer(2, frame(2, LEN)))];
    let mut hidden = row_of(3, exact());
    hidden.report_sent(true);
    let said = run(&mut hidden, &offers, END);
    assert_eq!(ways(&said), []);
    assert_eq!(drops(&said), [(0, Some(1), DropReason::Collision), (2, Some(1), DropReason::Collision)]);
    assert_eq!(hidden.sender_counters(END, 0).collisions, 1);
    let mut ring = medium(config(&[&[0, 1, 2, 0]], exact()), 1);
    let said = run(&mut ring, &offers, END);
    assert_eq!(ways(&said), [(0, 1, 0), (0, 2, 0), (2, 0, 2), (2, 1, 2)]);
    // Behind the first one, and the pause after it.
    assert_eq!(delivered(&said)[2].0, micros(4_990) + air(&exact()) * 2 + exact().difs);
}

#[test]
fn who_is_out_of_hearing_sends_at_the_same_time_and_is_received() {
    let mut link = row_of(4, exact());
    let offers =
        [(micros(4_990), Action::Offer(0, frame(0, LEN))), (micros(5_300), Action::Offer(3, frame(3, LEN)))];
    let said = run(&mut link, &offers, END);
    let (first, second) = (micros(4_990) + air(&exact()), micros(5_310) + air(&exact()));
    assert_eq!(delivered(&said), [(first, 0, 1, 0), (second, 3, 2, 3)]);
    // An acknowledgement of the one would be heard, and would disturb the other.
    let offers = [(millis(20), Action::Offer(0, to(1, 4))), (micros(20_310), Action::Offer(3, to(2, 5)))];
    run(&mut link, &offers, END);
    assert_eq!([0, 3].map(|from| link.sender_counters(END, from).collisions), [0, 1]);
}

#[test]
fn a_station_that_begins_within_a_slot_of_another_has_not_sensed_it() {
    // Its slots have been shifted by a frame of a third that the other does not hear.
    let rows: [&[Attachment]; 2] = [&[0, 1, 2], &[1, 3]];
    let run_with = |at: u64| {
        let mut link = medium(config(&rows, exact()), 1);
        let offers = [
            (micros(4_990), Action::Offer(2, frame(9, 100))),
            (micros(8_000), Action::Offer(1, frame(1, LEN))),
            (micros(at), Action::Offer(0, frame(0, LEN))),
        ];
        let mut heard = ways(&run(&mut link, &offers, END));
        heard.retain(|way| way.2 < 9);
        heard.sort_unstable();
        heard
    };
    // 1 begins some 0.8 µs before the slot that begins at 8,010 µs.
    assert_eq!(run_with(8_001), [(1, 2, 1), (1, 3, 1)]);
    // What comes after that finds the medium busy.
    assert_eq!(run_with(8_010), [(0, 1, 0), (1, 0, 1), (1, 2, 1), (1, 3, 1)]);
}

#[test]
fn after_a_frame_with_errors_a_station_waits_as_long_as_an_acknowledgement_would_take() {
    let begins = |collides: bool| {
        let mut link = row_of(3, exact());
        let mut offers = vec![(micros(4_990), Action::Offer(0, frame(0, LEN)))];
        if collides {
            offers.push((micros(4_990), Action::Offer(2, frame(2, LEN))));
        }
        offers.push((micros(5_500), Action::Offer(1, frame(1, LEN))));
        let said = run(&mut link, &offers, END);
        let of_one = delivered(&said).into_iter().find(|(_, from, ..)| *from == 1).unwrap();
        of_one.0.since(micros(4_990)).saturating_sub(air(&exact()) * 2)
    };
    assert_eq!(begins(false), exact().difs);
    // IEEE 802.11-2020, section 10.3.2.3.7.
    assert_eq!(begins(true), exact().sifs + exact().ack + exact().difs);
}

#[test]
fn a_request_to_send_silences_who_hears_the_answer_alone() {
    let csma = asking(1_000);
    let rts = csma.rts.unwrap();
    let mut link = row_of(3, csma.clone());
    let start = micros(4_990);
    let data = start + rts.rts + csma.sifs + rts.cts + csma.sifs;
    let offers = [(start, Action::Offer(0, to(1, 0))), (data + csma.slot, Action::Offer(2, to(1, 2)))];
    let said = run(&mut link, &offers, END);
    let done = data + air(&csma) + csma.sifs + csma.ack;
    assert_eq!(delivered(&said)[0], (data + air(&csma), 0, 1, 0));
    // 2 knows of the first exchange from the CTS, and asks in its turn.
    let next = done + csma.difs + rts.rts + csma.sifs + rts.cts + csma.sifs + air(&csma);
    assert_eq!(delivered(&said)[1], (next, 2, 1, 2));
    assert_eq!(link.sender_counters(END, 2).retries, 0);
    assert_eq!(link.sender_counters(END, 0).busy, rts.rts + air(&csma));
    assert_eq!(link.sender_counters(END, 1).busy, (rts.cts + csma.ack) * 2);
}

#[test]
fn frames_below_the_threshold_and_those_to_a_group_do_not_ask() {
    let csma = asking(LEN as u64 + 1);
    for frame in [to(1, 0), frame(0, 1_500)] {
        let mut link = row_of(3, csma.clone());
        let time = csma.overhead + Rate::from_mbit(12).time_for(frame.len() as u64);
        let said = run(&mut link, &[(micros(4_990), Action::Offer(0, frame))], END);
        assert_eq!(delivered(&said), [(micros(4_990) + time, 0, 1, 0)]);
    }
}

#[test]
fn a_request_that_nobody_answers_reserves_the_medium_no_longer_than_the_answer_would_take() {
    let csma = Csma { retries: 0, ..asking(0) };
    let rts = csma.rts.unwrap();
    let mut link = row_of(2, csma.clone());
    let start = micros(4_990);
    // To nobody; the other one waits until data would have begun.
    let offers = [(start, Action::Offer(0, to(9, 0))), (start + csma.slot, Action::Offer(1, frame(1, LEN)))];
    let said = run(&mut link, &offers, END);
    let lapses = start + rts.rts + csma.sifs * 2 + rts.cts + csma.slot * 2;
    assert_eq!(delivered(&said), [(lapses + csma.difs + air(&csma), 1, 0, 1)]);
}

#[test]
fn what_is_heard_one_way_only_arrives_and_is_never_acknowledged() {
    let mut config = config(&[&[0, 1]], Csma { retries: 3, ..Csma::default() });
    config.hears = Some(BTreeSet::from([(0, 1)]));
    let mut link = medium(config, 1);
    link.report_status(0);
    let said = run(&mut link, &[(millis(1), Action::Offer(0, to(1, 0)))], END);
    assert_eq!(ways(&said), [(0, 1, 0)]);
    let status = said.iter().find_map(|(_, event)| match event {
        Event::Status { status, .. } => Some((status.outcome, status.transmissions)),
        _ => None,
    });
    assert_eq!(status, Some((FrameOutcome::Unacknowledged, 4)));
    assert_eq!((link.counters(END, 0, 1).sent_packets, link.counters(END, 0, 1).lost_packets), (1, 0));
    assert!(link.quality(END, 0, 1).is_some() && link.quality(END, 1, 0).is_none());
}

#[test]
fn a_frame_for_a_station_out_of_hearing_is_lost_under_either_access() {
    for (mac, reason) in [(Mac::Csma(exact()), DropReason::RetryLimit), (Mac::Perfect, DropReason::Unheard)] {
        let mut link = medium(MediumConfig { mac, ..config(&[&[0, 1, 2]], exact()) }, 1);
        link.report_sent(true);
        let offers = [(millis(1), Action::Offer(0, to(2, 0))), (millis(50), Action::Offer(0, frame(1, LEN)))];
        let said = run(&mut link, &offers, END);
        assert_eq!(ways(&said), [(0, 1, 1)]);
        assert_eq!(drops(&said), [(0, Some(2), reason)]);
        assert_eq!(link.counters(END, 0, 2).lost_packets, 1);
        assert!(link.quality(END, 0, 2).is_none());
    }
}

#[test]
fn a_station_that_goes_down_in_an_exchange_leaves_the_medium_to_the_others() {
    let csma = asking(0);
    let start = micros(4_990);
    // In its request, while it waits, in its data, and while it waits again.
    for after in [20, 70, 300, 1_000] {
        let mut link = row_of(3, csma.clone());
        let actions = [
            (start, Action::Offer(0, to(1, 0))),
            (start + Duration::from_micros(after), Action::Change(Some(0), Change::Down)),
            (millis(7), Action::Offer(1, to(2, 1))),
            (millis(9), Action::Change(Some(0), Change::Up)),
            (millis(10), Action::Offer(0, to(1, 2))),
        ];
        let said = run(&mut link, &actions, END);
        let ids: Vec<u64> = delivered(&said).iter().map(|(.., id)| *id).filter(|id| *id > 0).collect();
        assert_eq!(ids, [1, 2], "{after}");
        assert_eq!(link.deadline(), None);
    }
}

#[test]
fn where_all_hear_all_it_is_the_contention_of_a_medium() {
    // Losses, retries and collisions of the two implementations are alike, though they draw from elsewhere.
    let csma = Csma { channel: Loss::Independent(percent(20.0)), ..Csma::default() };
    let figures = |listed: bool| {
        let ring: BTreeSet<_> = (0..16).map(|pair| (pair / 4, pair % 4)).collect();
        let config = MediumConfig { hears: listed.then_some(ring), ..config(&[&[0, 1, 2, 3]], csma.clone()) };
        let mut link = medium(config, 1);
        let offers: Vec<_> = (0..40_000u64)
            .map(|i| (micros(1_100 * (i / 4)), Action::Offer((i % 4) as usize, to(((i + 1) % 4) as u8, i))))
            .collect();
        let said = run(&mut link, &offers, END);
        let total = (0..4).map(|from| link.sender_counters(END, from));
        let total = total.fold((0, 0), |sum, of| (sum.0 + of.collisions, sum.1 + of.retries));
        (total.0 as f64, total.1 as f64, delivered(&said).len() as f64)
    };
    let (one, other) = (figures(false), figures(true));
    let near = |a: f64, b: f64, share: f64| assert!((a / b - 1.0).abs() < share, "{one:?} {other:?}");
    near(one.0, other.0, 0.05);
    near(one.1, other.1, 0.03);
    near(one.2, other.2, 0.01);
}
