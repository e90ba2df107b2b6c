//! A shared medium: who hears what, who loses what, and whose turn it is.

use crate::common::*;
use hopcast_core::{Buffer, Duration, Instant, Rate};
use hopcast_link::{Change, Direction, DropReason, Event, Link, Loss, Mac, Medium, MediumConfig, Station};
use proptest::prelude::*;

fn address(station: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, station]
}

/// Stations, of which some are promiscuous, at 10 Mbit/s: 1,250 bytes take a millisecond.
fn stations(promiscuous: &[bool], loss: Loss) -> Medium {
    let station =
        |(i, &promiscuous)| Station { address: address(i as u8), promiscuous, ..Station::default() };
    let config = MediumConfig {
        direction: Direction { rate: Some(Rate::from_mbit(10)), loss, ..Direction::default() },
        stations: promiscuous.iter().enumerate().map(station).collect(),
        ..MediumConfig::default()
    };
    medium(config, 1)
}

fn to(destination: [u8; 6], id: u64) -> Buffer {
    let mut frame = frame(id, 1_250);
    frame[..6].copy_from_slice(&destination);
    frame
}

/// The frames heard: by whom, from whom, which, and whether only overheard.
fn heard(said: &Said) -> Vec<(usize, usize, u64, bool)> {
    let heard = said.iter().filter_map(|(_, event)| match event {
        Event::Delivered { from, to, frame, overheard, .. } => Some((*from, *to, id(frame), *overheard)),
        _ => None,
    });
    heard.collect()
}

#[test]
fn a_group_frame_is_for_everyone_but_its_sender() {
    let mut link = stations(&[false, false, true, false], Loss::None);
    for (id, group) in [[0xff; 6], [0x01, 0, 0x5e, 1, 2, 3]].into_iter().enumerate() {
        let at = millis(id as u64 * 10);
        let said = run(&mut link, &[(at, Action::Offer(1, to(group, 7)))], at + Duration::from_millis(5));
        assert_eq!(heard(&said), [(1, 0, 7, false), (1, 2, 7, false), (1, 3, 7, false)]);
    }
}

#[test]
fn a_frame_for_one_is_overheard_by_promiscuous_stations_alone() {
    let mut link = stations(&[false, false, true, false, true], Loss::None);
    let said = run(&mut link, &[(millis(0), Action::Offer(0, to(address(3), 7)))], END);
    assert_eq!(heard(&said), [(0, 2, 7, true), (0, 3, 7, false), (0, 4, 7, true)]);
    let counters = |link: &mut Medium, to| link.counters(END, 0, to);
    assert_eq!(counters(&mut link, 3).overheard_packets, 0);
    assert_eq!(counters(&mut link, 2).overheard_packets, 1);
    assert_eq!(counters(&mut link, 1).delivered_packets, 0);
    // A frame counts as sent where it was addressed to, so that the directions add up to what was on the air.
    assert_eq!([1, 2, 3, 4].map(|to| link.counters(END, 0, to).sent_packets), [0, 0, 1, 0]);
    assert_eq!(link.counters(END, 2, 0).sent_packets, 0);
}

#[test]
fn a_frame_for_nobody_and_one_too_short_for_an_address_reach_promiscuous_stations_alone() {
    let mut link = stations(&[false, false, true], Loss::None);
    let short = Buffer::copy_from(&[0xff; 5]);
    let offers = [(millis(0), Action::Offer(0, to(address(9), 1))), (millis(1), Action::Offer(0, short))];
    let said = run(&mut link, &offers, END);
    assert_eq!(said.len(), 2);
    assert!(said.iter().all(|(_, event)| matches!(event, Event::Delivered { to: 2, overheard: true, .. })));
}

#[test]
fn each_listener_loses_on_its_own_and_as_much_as_the_others() {
    let mut link = stations(&[false; 4], Loss::Independent(percent(20.0)));
    link.report_sent(true);
    let n = 20_000;
    let said = run(&mut link, &row(n, 125, Duration::from_micros(100)), END);
    let mut received = [const { Vec::new() }; 4];
    for (_, to, id, _) in heard(&said) {
        received[to].push(id);
    }
    // Five standard errors of a share of 80 %, and of the 64 % that two stations receive both.
    let near = |seen: usize, share: f64| {
        (seen as f64 / n as f64 - share).abs() < 5.0 * (share * (1.0 - share) / n as f64).sqrt()
    };
    for to in 1..4 {
        assert!(near(received[to].len(), 0.8));
        assert_eq!(link.counters(END, 0, to).lost_packets, n - received[to].len() as u64);
        let lost = |event: &Event| matches!(event, Event::Dropped { to: Some(missed), reason: DropReason::Lost, .. } if *missed == to);
        assert_eq!(said.iter().filter(|(_, event)| lost(event)).count(), n as usize - received[to].len());
        for other in to + 1..4 {
            let both = received[to].iter().filter(|id| received[other].binary_search(id).is_ok()).count();
            assert!(near(both, 0.64), "{both}");
        }
    }
}

#[test]
fn what_one_station_hears_does_not_depend_on_who_else_listens() {
    let loss =
        || Loss::GilbertElliott { p: percent(5.0), r: percent(20.0), k: percent(99.0), h: percent(1.0) };
    let offers: Vec<_> =
        (0..3_000).map(|i| (millis(2 * i), Action::Offer(0, to(address(1 + (i % 2) as u8), i)))).collect();
    let at_station_1 = |promiscuous: &[bool]| {
        let mut heard = heard(&run(&mut stations(promiscuous, loss()), &offers, END));
        heard.retain(|&(_, to, _, overheard)| to == 1 && !overheard);
        heard
    };
    let expected = at_station_1(&[false, false, false]);
    assert_eq!(expected, at_station_1(&[false, false, true]));
    // Nor on whether it overhears what is for others: its bursts of loss go on in the air's time.
    assert_eq!(expected, at_station_1(&[false, true, false]));
}

#[test]
fn the_station_that_has_waited_longest_sends_first_and_of_several_the_lowest() {
    let mut link = stations(&[false; 4], Loss::None);
    let offers = [(3, 0), (2, 100), (2, 150), (1, 200), (0, 200), (3, 300)];
    let offers: Vec<_> =
        (0..).zip(offers).map(|(i, (from, at))| (micros(at), Action::Offer(from, frame(i, 1_250)))).collect();
    let said = run(&mut link, &offers, END);
    let mut order: Vec<_> = heard(&said).iter().map(|&(from, _, id, _)| (from, id)).collect();
    order.dedup();
    assert_eq!(order, [(3, 0), (2, 1), (2, 2), (0, 4), (1, 3), (3, 5)]);
}

#[test]
fn a_station_that_goes_down_in_the_middle_of_a_frame_frees_the_medium_and_still_receives() {
    let mut link = stations(&[false; 3], Loss::None);
    let actions = [
        (millis(0), Action::Offer(0, frame(0, 1_250))),
        (micros(100), Action::Offer(1, frame(1, 1_250))),
        (micros(500), Action::Change(Some(0), Change::Down)),
        (micros(600), Action::Offer(0, frame(2, 1_250))),
    ];
    let said = run(&mut link, &actions, END);
    assert_eq!(heard(&said), [(1, 0, 1, false), (1, 2, 1, false)]);
    assert_eq!(said[0].0, micros(1_500));
    assert_eq!(link.counters(END, 0, 1).queue_dropped_packets, 2);
}

#[test]
fn media_of_no_and_of_one_station_are_quiet() {
    let mut none = stations(&[], Loss::None);
    assert_eq!((none.attachments(), none.deadline()), (0, None));
    none.change(millis(1), None, &Change::Down);
    let mut one = stations(&[true], Loss::None);
    assert!(run(&mut one, &row(10, 1_250, Duration::ZERO), END).is_empty());
}

proptest! {
    #[test]
    fn never_are_two_transmissions_on_the_air(
        config in any::medium_config(),
        actions in any::actions(5),
        rate in 1_000_000u64..100_000_000,
    ) {
        let (n, rate) = (config.stations.len(), Rate::from_bits_per_sec(rate));
        let offers: Vec<_> =
            actions.into_iter().filter(|(_, a)| matches!(a, Action::Offer(from, _) if *from < n)).collect();
        let mut config = config;
        config.direction.rate = Some(rate);
        config.mac = Mac::Perfect;
        config.stations.iter_mut().for_each(|station| station.echo = false);
        let mut link = medium(config, 1);
        link.report_sent(true);
        let said = run(&mut link, &offers, END);
        let (mut free, mut total) = (Instant::ZERO, Duration::ZERO);
        for (at, event) in said {
            if let Event::Sent { frame, .. } = event {
                let time = rate.time_for(frame.len() as u64);
                // The carry of a fraction of a nanosecond.
                prop_assert!(at + Duration::from_nanos(1) >= free + time);
                (free, total) = (at, total + time);
            }
        }
        let busy = (0..n).map(|from| link.counters(END, from, usize::from(from == 0)).busy);
        let busy = busy.fold(Duration::ZERO, |sum, busy| sum + busy);
        prop_assert!(n < 2 || busy.abs_diff(total) <= Duration::from_nanos(offers.len() as u64));
    }
}
