//! Stations with radios on a medium with contention: who senses, who reads, at which rate, and what is lost.

use crate::common::radios::*;
use crate::common::*;
use hopcast_core::{Buffer, Bytes, Duration, FrameOutcome, Instant, Rate};
use hopcast_link::{
    Attachment, Change, Csma, DropReason, Event, Link, Loss, Mac, Medium, MediumConfig, Rts, Station,
};

const LEN: usize = 1_200;

/// The time of a frame on the air.
fn air(mbit: u64, len: usize) -> Duration {
    exact().overhead + Rate::from_mbit(mbit).time_for(len as u64)
}

/// The time at which an idle medium is accessed that was asked for at 4,990 µs: a slot begins then.
const START: Instant = Instant::from_nanos(4_990_000);

fn link(
    stations: usize,
    csma: Csma,
    air: impl Fn(Instant, Attachment, Attachment) -> Option<(u64, f64)> + Send + Sync + 'static,
) -> Medium {
    let mut link = medium(with_radios(stations, Mac::Csma(csma), air), 1);
    link.report_sent(true);
    link
}

/// Stations in a row, each of which hears those beside it at 16 Mbit/s.
fn row_of(stations: usize) -> Medium {
    link(stations, exact(), |_, from, to| (from.abs_diff(to) == 1).then_some((16, 0.0)))
}

fn arrivals(said: &Said) -> Vec<(Instant, Attachment, Attachment, u64)> {
    let arrival = |(at, event): &(Instant, Event)| match event {
        Event::Delivered { from, to, frame, .. } => Some((*at, *from, *to, id(frame))),
        _ => None,
    };
    said.iter().filter_map(arrival).collect()
}

fn drops(said: &Said) -> Vec<(Attachment, Option<Attachment>, DropReason)> {
    let dropped = |(_, event): &(Instant, Event)| match event {
        Event::Dropped { from, to, reason, .. } => Some((*from, *to, *reason)),
        _ => None,
    };
    said.iter().filter_map(dropped).collect()
}

fn offer(at: Instant, from: Attachment, frame: Buffer) -> (Instant, Action) {
    (at, Action::Offer(from, frame))
}

#[test]
fn a_frame_to_a_group_takes_the_time_of_the_lowest_rate_and_is_read_by_all_in_hearing() {
    let rates = |_, from, to| match (from, to) {
        (0, 1) => Some((64, 0.0)),
        (0, 2) => Some((1, 0.0)),
        _ => None,
    };
    let mut link = link(4, exact(), rates);
    let said = run(&mut link, &[offer(START, 0, frame(7, LEN))], END);
    let at = START + air(1, LEN);
    assert_eq!(arrivals(&said), [(at, 0, 1, 7), (at, 0, 2, 7)]);
    let heard = |event: &Event| match event {
        Event::Delivered { to, reception, .. } => {
            reception.map(|r| (*to, r.rate.unwrap(), r.signal.unwrap().get()))
        }
        _ => None,
    };
    let receptions: Vec<_> = said.iter().filter_map(|(_, event)| heard(event)).collect();
    assert_eq!(receptions, [(1, Rate::from_mbit(1), -83.6), (2, Rate::from_mbit(1), -89.9)]);
    let counters = link.sender_counters(END, 0);
    assert_eq!((counters.sent_packets, counters.busy), (1, air(1, LEN)));
    // It did not reach 3, to which it was not sent.
    assert_eq!([1, 2, 3].map(|to| link.counters(END, 0, to).sent_packets), [1, 1, 0]);
}

#[test]
fn a_frame_to_one_station_is_sent_at_its_rate_and_is_noise_to_who_is_too_far_to_read_it() {
    // 2 hears 0 at the lowest rate, and 1 not at all; 3 hears nobody.
    let rates = |_, from, to| match (from, to) {
        (0, 1) | (1, 0) => Some((64, 0.0)),
        (0, 2) | (2, 3) => Some((1, 0.0)),
        _ => None,
    };
    let offers = |first| [offer(START, 0, first), offer(START + Duration::from_micros(30), 2, frame(9, 100))];
    let mut unicast = link(4, exact(), rates);
    let said = run(&mut unicast, &offers(to(1, 7, LEN)), END);
    let first = START + air(64, LEN);
    // EIFS, as after a frame with errors (IEEE 802.11-2020, section 10.3.2.3.7).
    let second = first + exact().sifs + exact().ack + exact().difs + air(1, 100);
    assert_eq!(arrivals(&said), [(first, 0, 1, 7), (second, 2, 3, 9)]);
    // A frame that it can read leaves it with DIFS.
    let mut group = link(4, exact(), rates);
    let said = run(&mut group, &offers(frame(7, LEN)), END);
    let first = START + air(1, LEN);
    assert_eq!(arrivals(&said).last(), Some(&(first + exact().difs + air(1, 100), 2, 3, 9)));
}

#[test]
fn hidden_stations_collide_at_the_one_between_and_who_is_in_range_waits() {
    let offers = [offer(START, 0, frame(0, LEN)), offer(micros(5_300), 2, frame(2, LEN))];
    let mut hidden = row_of(3);
    let said = run(&mut hidden, &offers, END);
    assert_eq!(arrivals(&said), []);
    assert_eq!(drops(&said), [(0, Some(1), DropReason::Collision), (2, Some(1), DropReason::Collision)]);
    // All hear all: one after the other.
    let mut near = link(3, exact(), |_, _, _| Some((16, 0.0)));
    let said = run(&mut near, &offers, END);
    let first = START + air(1, LEN);
    let second = first + exact().difs + air(1, LEN);
    assert_eq!(arrivals(&said), [(first, 0, 1, 0), (first, 0, 2, 0), (second, 2, 0, 2), (second, 2, 1, 2)]);
    // Of two that do not hear each other, each is received by the one beside it.
    let mut far = row_of(4);
    let offers = [offer(START, 0, frame(0, LEN)), offer(micros(5_310), 3, frame(3, LEN))];
    let said = run(&mut far, &offers, END);
    assert_eq!(arrivals(&said), [(first, 0, 1, 0), (micros(5_310) + air(1, LEN), 3, 2, 3)]);
}

#[test]
fn who_sends_hears_nothing_meanwhile() {
    let mut link = link(3, exact(), |_, _, _| Some((16, 0.0)));
    let said = run(
        &mut link,
        &[offer(micros(4_985), 0, frame(0, LEN)), offer(micros(4_985), 1, frame(1, LEN))],
        END,
    );
    let halves = [(0, Some(1), DropReason::HalfDuplex), (1, Some(0), DropReason::HalfDuplex)];
    let between = [(0, Some(2), DropReason::Collision), (1, Some(2), DropReason::Collision)];
    let mut found = drops(&said);
    found.sort();
    let mut expected = [halves, between].concat();
    expected.sort();
    assert_eq!((arrivals(&said), found), (Vec::new(), expected));
}

#[test]
fn each_retry_is_sent_at_the_next_lower_rate() {
    let retries = 5;
    let mut link = link(2, Csma { retries, ..exact() }, |_, from, _| Some((16, [100.0, 0.0][from])));
    link.report_status(0);
    let said = run(&mut link, &[offer(START, 0, to(1, 7, LEN))], END);
    let busy: Duration =
        [16, 8, 1, 1, 1, 1].map(|mbit| air(mbit, LEN)).into_iter().fold(Duration::ZERO, |a, b| a + b);
    let counters = link.sender_counters(END, 0);
    assert_eq!((counters.busy, counters.retries, counters.sent_packets), (busy, u64::from(retries), 1));
    assert_eq!(drops(&said), [(0, Some(1), DropReason::RetryLimit)]);
    let status = said.iter().find_map(|(_, event)| match event {
        Event::Status { status, .. } => Some((status.outcome, status.transmissions)),
        _ => None,
    });
    assert_eq!(status, Some((FrameOutcome::Unacknowledged, retries + 1)));
    // The next frame begins at the station's rate again.
    link.offer(millis(500), 0, to(1, 8, LEN));
    link.offer(millis(500), 0, to(1, 9, LEN));
    wake_until(&mut link, END, &mut Vec::new());
    assert_eq!(link.sender_counters(END, 0).busy, busy * 3);
}

#[test]
fn a_frame_that_arrives_at_the_second_attempt_has_the_lower_rate() {
    // All that ends before 7 ms is lost.
    let air_at = |now, _, _| Some((64, if now < millis(7) { 100.0 } else { 0.0 }));
    let mut link = link(2, exact(), air_at);
    let said =
        run(&mut link, &[offer(micros(6_990), 0, to(1, 7, LEN)), offer(millis(20), 0, to(1, 8, LEN))], END);
    let retry = micros(6_990) + air(64, LEN);
    assert!(retry > millis(7), "the first attempt arrives");
    assert_eq!(arrivals(&said)[0], (retry, 0, 1, 7));
    let mut late = self::link(2, exact(), air_at);
    let start = micros(6_500);
    let said = run(&mut late, &[offer(start, 0, to(1, 7, LEN))], END);
    // Slots begin at 50 µs and each 20 µs after it. The sender waits in vain for the acknowledgement, and then DIFS.
    let start = micros(6_510);
    let again = start + air(64, LEN) + exact().sifs + exact().ack + exact().difs;
    assert_eq!(arrivals(&said), [(again + air(16, LEN), 0, 1, 7)]);
}

#[test]
fn a_share_of_the_frames_is_lost_and_of_those_to_one_station_retried() {
    let n = 100_000u64;
    let lossy = |_, _, _| Some((64, 0.2));
    let mut group = medium(with_radios(2, Mac::Csma(exact()), lossy), 1);
    run(&mut group, &row(n, 100, Duration::from_millis(3)), END);
    let expected = 0.002 * n as f64;
    let near = |found: u64| {
        let found = found as f64;
        assert!((found - expected).abs() < 4.0 * expected.sqrt(), "{found} of {expected}");
    };
    near(group.counters(END, 0, 1).lost_packets);
    let mut one = medium(with_radios(2, Mac::Csma(exact()), lossy), 1);
    let offers: Vec<_> = (0..n).map(|i| offer(micros(3_000 * i), 0, to(1, i, 100))).collect();
    let said = run(&mut one, &offers, END);
    near(one.sender_counters(END, 0).retries);
    assert_eq!(arrivals(&said).len() as u64, n);
    // Another pair has other losses.
    let mut two = medium(with_radios(3, Mac::Csma(exact()), lossy), 1);
    let said = run(&mut two, &row(n, 100, Duration::from_millis(3)), END);
    let lost = |to| {
        let heard: std::collections::BTreeSet<u64> =
            deliveries(&said, to).into_iter().map(|(_, id)| id).collect();
        (0..n).filter(|id| !heard.contains(id)).collect::<Vec<_>>()
    };
    let (of_one, of_two) = (lost(1), lost(2));
    assert!(of_one.iter().filter(|id| of_two.contains(id)).count() < 10);
}

#[test]
fn who_hears_is_asked_as_a_frame_begins_and_whether_it_still_does_as_it_ends() {
    // 1 hears until 5 ms, and 2 from then on; the frame takes 9.7 ms from 4.99 ms on.
    let air_at = |now: Instant, from: Attachment, to: Attachment| {
        let before = now < millis(5);
        ((from, to) == (0, 1) && before || (from, to) == (0, 2) && !before || to == 3).then_some((16, 0.0))
    };
    let mut group = link(4, exact(), air_at);
    let said = run(&mut group, &[offer(START, 0, frame(7, LEN))], END);
    assert_eq!(arrivals(&said), [(START + air(1, LEN), 0, 3, 7)]);
    assert_eq!(drops(&said), [(0, Some(1), DropReason::Lost)]);
    // The sender hears no acknowledgement, and at its second attempt nobody is there.
    let mut one = link(2, Csma { retries: 1, ..exact() }, air_at);
    let said = run(&mut one, &[offer(START, 0, to(1, 7, LEN))], END);
    assert_eq!((arrivals(&said), drops(&said)), (Vec::new(), vec![(0, Some(1), DropReason::Unheard)]));
    assert_eq!(one.sender_counters(END, 0).busy, air(16, LEN) + air(1, LEN));
}

#[test]
fn a_frame_for_a_station_that_hears_nothing_is_sent_in_vain_at_the_lowest_rate() {
    let mut link =
        link(3, Csma { retries: 2, ..exact() }, |_, from, to| (from + to == 1).then_some((64, 0.0)));
    let said = run(&mut link, &[offer(START, 0, to(2, 7, LEN)), offer(millis(100), 0, to(1, 8, LEN))], END);
    assert_eq!(drops(&said), [(0, Some(2), DropReason::Unheard)]);
    let counters = link.counters(END, 0, 2);
    assert_eq!((counters.sent_packets, counters.lost_packets), (1, 1));
    assert_eq!(link.sender_counters(END, 0).busy, air(1, LEN) * 3 + air(64, LEN));
    // To an address that nobody has, likewise, and nobody misses it.
    let said = run(&mut link, &[offer(millis(200), 0, to(9, 9, LEN))], END);
    assert_eq!(drops(&said), []);
    assert_eq!(link.sender_counters(END, 0).busy, air(1, LEN) * 6 + air(64, LEN));
}

#[test]
fn an_acknowledgement_that_the_sender_does_not_hear_leaves_the_frame_unacknowledged() {
    let mut link = link(2, Csma { retries: 3, ..exact() }, |_, from, _| (from == 0).then_some((64, 0.0)));
    link.report_status(0);
    let said = run(&mut link, &[offer(START, 0, to(1, 7, LEN))], END);
    assert_eq!(arrivals(&said), [(START + air(64, LEN), 0, 1, 7)]);
    assert!(said.iter().any(|(_, event)| matches!(event,
        Event::Status { status, .. } if status.outcome == FrameOutcome::Unacknowledged)));
}

#[test]
fn a_promiscuous_station_overhears_what_it_can_read() {
    let rates = |_, from, to| match (from, to) {
        (0, 2) => Some((16, 0.0)),
        (0, 3) => Some((8, 0.0)),
        _ => Some((16, 0.0)),
    };
    let config = with_radios(4, Mac::Csma(exact()), rates);
    let stations = config.stations.iter().map(|&station| Station { promiscuous: true, ..station }).collect();
    let mut link = medium(MediumConfig { stations, ..config }, 1);
    link.report_sent(true);
    let said = run(&mut link, &[offer(START, 0, to(1, 7, LEN))], END);
    let at = START + air(16, LEN);
    assert_eq!((arrivals(&said), drops(&said)), (vec![(at, 0, 1, 7), (at, 0, 2, 7)], Vec::new()));
}

#[test]
fn quality_is_that_of_the_radios_at_the_time() {
    let air_at =
        |now, from, to| (from + to == 1).then_some(if now < millis(10) { (64, 10.0) } else { (8, 0.0) });
    for (mac, retried) in
        [(Mac::Csma(Csma { retries: 1, ..exact() }), 0.99), (Mac::EthernetLike, 0.9), (Mac::Perfect, 0.9)]
    {
        let mut link = medium(with_radios(3, mac, air_at), 1);
        let quality = link.quality(millis(1), 0, 1).unwrap();
        assert_eq!((quality.rate, quality.signal.unwrap().get()), (Some(Rate::from_mbit(64)), -83.6));
        assert!((quality.delivery.get() - 0.9).abs() < 1e-12);
        assert!((quality.delivery_with_retries.get() - retried).abs() < 1e-12, "{quality:?}");
        assert_eq!(link.quality(millis(10), 1, 0).unwrap().rate, Some(Rate::from_mbit(8)));
        for (from, to) in [(0, 2), (0, 0), (0, 9), (9, 0)] {
            assert_eq!(link.quality(millis(10), from, to), None);
        }
        link.change(millis(20), Some(0), &Change::Down);
        assert!(link.quality(millis(20), 0, 1).is_none() && link.quality(millis(20), 1, 0).is_some());
    }
}

#[test]
fn changes_of_rate_and_loss_mean_nothing_where_radios_have_them() {
    for mac in [Mac::Csma(exact()), Mac::EthernetLike, Mac::Perfect] {
        let said = |changes: &[Change]| {
            let mut link = medium(with_radios(2, mac.clone(), |_, _, _| Some((16, 0.0))), 1);
            let mut actions: Vec<_> =
                changes.iter().map(|change| (millis(1), Action::Change(None, change.clone()))).collect();
            actions.push(offer(START, 0, to(1, 7, LEN)));
            arrivals(&run(&mut link, &actions, END))
        };
        let all = Loss::Independent(percent(100.0));
        let changes =
            [Change::Rate(Some(Rate::default())), Change::LossTo(1, all.clone()), Change::Loss(all)];
        assert_eq!(said(&changes), said(&[]), "{mac:?}");
        assert_eq!(said(&[]).len(), 1);
    }
}

#[test]
fn a_perfect_schedule_has_the_rates_and_losses_of_the_radios() {
    let rates = |_, from, to| match (from, to) {
        (0, 1) => Some((64, 0.0)),
        (0, 2) => Some((8, 100.0)),
        (2, 0) => Some((16, 0.0)),
        _ => None,
    };
    let mut link = medium(with_radios(3, Mac::Perfect, rates), 1);
    link.report_sent(true);
    let offers = [
        offer(START, 0, to(1, 1, LEN)),
        offer(START, 2, to(0, 2, LEN)),
        offer(START, 0, frame(3, LEN)),
        offer(START, 1, to(0, 4, LEN)),
    ];
    let said = run(&mut link, &offers, END);
    let time = |mbit| Rate::from_mbit(mbit).time_for(LEN as u64);
    let first = START + time(64);
    let second = first + time(16);
    // Of several that have waited as long, the one with the lowest number.
    let third = first + time(1);
    let (a, b) = (arrivals(&said), [(first, 0, 1, 1), (third, 0, 1, 3)]);
    assert_eq!((a[0], a[1]), (b[0], b[1]));
    assert_eq!(a[2].0, second + time(1) + time(1));
    assert_eq!(drops(&said), [(0, Some(2), DropReason::Lost), (1, Some(0), DropReason::Unheard)]);
}

/// 1 only senses what 0 sends, and 2 reads it.
fn sensed(_: Instant, from: Attachment, to: Attachment) -> Option<(u64, f64)> {
    Some((if (from, to) == (0, 1) { 0 } else { 64 }, 0.0))
}

#[test]
fn who_only_senses_a_sender_gets_none_of_its_frames_and_holds_up_nobody() {
    let csma = Csma { retries: 1, ..exact() };
    // A frame on a line that is not used never leaves; the others are sent, in vain, at the lowest rate.
    let lowest = RATES[3];
    let time = |mbit| Rate::from_mbit(mbit).time_for(LEN as u64);
    let contended = air(lowest, LEN) * 3 + air(64, LEN);
    for (mac, missed_by, busy) in [
        (Mac::Csma(csma), Some(1), contended),
        (Mac::EthernetLike, None, time(64) * 2),
        (Mac::Perfect, Some(1), time(lowest) * 2 + time(64)),
    ] {
        let mut link = medium(with_radios(3, mac.clone(), sensed), 1);
        link.report_sent(true);
        let offers = [to(1, 7, LEN), to(2, 8, LEN), frame(9, LEN)].map(|frame| offer(START, 0, frame));
        let said = run(&mut link, &offers, END);
        let arrived: Vec<_> = arrivals(&said).into_iter().map(|(_, from, to, id)| (from, to, id)).collect();
        assert_eq!(arrived, [(0, 2, 8), (0, 2, 9)], "{mac:?}");
        assert_eq!(drops(&said), [(0, missed_by, DropReason::Unheard)], "{mac:?}");
        assert_eq!(link.sender_counters(END, 0).busy, busy, "{mac:?}");
        assert_eq!(link.deadline(), None, "{mac:?}");
        assert!(link.quality(END, 0, 1).is_none() && link.quality(END, 1, 0).is_some(), "{mac:?}");
    }
}

#[test]
fn who_only_senses_a_request_to_send_does_not_answer_it() {
    let times = Rts { threshold: Bytes::new(100), ..Rts::ofdm(Bytes::new(0), Rate::from_mbit(12)) };
    let mut link = link(3, Csma { retries: 2, rts: Some(times), ..exact() }, sensed);
    let said = run(&mut link, &[offer(START, 0, to(1, 7, LEN)), offer(millis(100), 0, to(2, 8, LEN))], END);
    let second = millis(100) + times.rts + exact().sifs + times.cts + exact().sifs + air(64, LEN);
    let arrived = arrivals(&said);
    assert_eq!((arrived.len(), arrived[0].1, arrived[0].2, arrived[0].3), (1, 0, 2, 8));
    assert!((second..second + exact().slot).contains(&arrived[0].0), "{arrived:?}");
    assert_eq!(drops(&said), [(0, Some(1), DropReason::Unheard)]);
    // Three requests without an answer, and one with one.
    assert_eq!(link.sender_counters(END, 0).busy, times.rts * 4 + air(64, LEN));
    assert_eq!(link.sender_counters(END, 1).busy, Duration::ZERO);
}

#[test]
fn who_only_senses_an_exchange_defers_and_has_eifs_after_its_acknowledgement() {
    // 2 reads, or only senses, the exchange of 0 and 1.
    for (mbit, pause) in [(64, exact().difs), (0, exact().eifs())] {
        let rates = move |_, from: Attachment, to| Some((if from < 2 && to == 2 { mbit } else { 64 }, 0.0));
        let mut link = link(4, exact(), rates);
        let late = START + Duration::from_micros(30);
        let said = run(&mut link, &[offer(START, 0, to(1, 7, LEN)), offer(late, 2, to(3, 9, 100))], END);
        let first = START + air(64, LEN);
        let second = first + exact().sifs + exact().ack + pause + air(64, 100);
        assert_eq!(arrivals(&said), [(first, 0, 1, 7), (second, 2, 3, 9)]);
    }
}

#[test]
fn a_medium_in_text_does_not_have_its_fleet() {
    let text = format!("{:?}", with_radios(2, Mac::Perfect, sensed));
    assert!(text.contains("RadioModel") && !text.contains("FixedRadios"), "{text}");
}
