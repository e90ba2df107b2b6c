//! Every offered frame is accounted for, at every instant.

use crate::common::*;
use hopcast_core::Instant;
use hopcast_link::{Change, Event, Link, Mac, PointToPoint};
use proptest::prelude::*;

#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    offered: u64,
    delivered: u64,
    sent: u64,
    lost: u64,
    dropped: u64,
}

fn tally(said: &Said, from: usize) -> Tally {
    let mut tally = Tally::default();
    for (_, event) in said {
        match event {
            Event::Delivered { from: sender, .. } if *sender == from => tally.delivered += 1,
            Event::Sent { from: sender, .. } if *sender == from => tally.sent += 1,
            Event::Dropped { from: sender, to: Some(_), .. } if *sender == from => tally.lost += 1,
            Event::Dropped { from: sender, to: None, .. } if *sender == from => tally.dropped += 1,
            _ => {}
        }
    }
    tally
}

fn offered(actions: &[(Instant, Action)], from: usize) -> u64 {
    actions.iter().filter(|(_, action)| matches!(action, Action::Offer(sender, _) if *sender == from)).count()
        as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn every_frame_offered_to_a_link_is_delivered_or_lost_or_dropped(
        config in any::config(), mut actions in any::actions(2),
    ) {
        // Frames that wait at a rate of zero are dropped by an outage at the end.
        actions.push((millis(60_000), Action::Change(None, Change::Down)));
        let mut link = PointToPoint::new(config, streams(1));
        link.report_sent(true);
        let said = run(&mut link, &actions, END);
        prop_assert_eq!(link.deadline(), None);
        for from in [0, 1] {
            let (tally, counters) = (tally(&said, from), link.counters(END, from, 1 - from));
            prop_assert_eq!(tally.sent, counters.sent_packets);
            prop_assert_eq!(tally.lost, counters.lost_packets);
            prop_assert_eq!(tally.dropped, counters.queue_dropped_packets);
            prop_assert_eq!(tally.delivered, counters.delivered_packets);
            prop_assert_eq!(tally.sent + tally.dropped, offered(&actions, from));
            prop_assert_eq!(tally.delivered + tally.lost, tally.sent + counters.duplicated_packets);
        }
    }

    #[test]
    fn every_frame_sent_on_a_medium_reaches_or_misses_each_station_that_wants_it(
        config in any::medium_config(),
        actions in any::actions(5),
    ) {
        let n = config.stations.len();
        let actions = up_to_an_end(actions, n);
        let mut link = medium(config.clone(), 1);
        link.report_sent(true);
        let said = run(&mut link, &actions, END);
        prop_assert_eq!(link.deadline(), None);
        for from in 0..n {
            for to in (0..n).filter(|&to| to != from) {
                let counters = link.counters(END, from, to);
                let (mut wanted, mut heard) = (0, 0);
                for (_, event) in &said {
                    match event {
                        Event::Sent { from: sender, frame } if *sender == from => {
                            let station = &config.stations[to];
                            let group = frame[0] & 1 == 1;
                            let heard = config.hears.as_ref().is_none_or(|hears| hears.contains(&(from, to)));
                            let addressed = frame[..6] == station.address;
                            wanted += u64::from(addressed || heard && (group || station.promiscuous));
                        }
                        Event::Delivered { from: sender, to: receiver, .. } if (*sender, *receiver) == (from, to) => {
                            heard += 1;
                        }
                        _ => {}
                    }
                }
                prop_assert_eq!(heard, counters.delivered_packets);
                prop_assert_eq!(wanted + counters.duplicated_packets, heard + counters.lost_packets);
            }
            let tally = tally(&said, from);
            prop_assert_eq!(tally.sent + tally.dropped, offered(&actions, from));
        }
    }

    #[test]
    fn every_frame_sent_by_radio_arrives_or_is_lost(config in any::radio_config(), actions in any::actions(5)) {
        let n = config.stations.len();
        let lines = config.mac == Mac::EthernetLike;
        let actions = up_to_an_end(actions, n);
        let mut link = medium(config.clone(), 1);
        link.report_sent(true);
        let said = run(&mut link, &actions, END);
        prop_assert_eq!(link.deadline(), None);
        for from in 0..n {
            let (tally, once) = (tally(&said, from), link.sender_counters(END, from));
            prop_assert_eq!(tally.sent, once.sent_packets);
            prop_assert_eq!(tally.sent + tally.dropped, offered(&actions, from));
            for to in (0..n).filter(|&to| to != from) {
                let counters = link.counters(END, from, to);
                let arrived = counters.delivered_packets - counters.duplicated_packets;
                // A frame that is overheard was not sent to this station, unless it has a line.
                if lines || !config.stations[to].promiscuous {
                    prop_assert_eq!(counters.sent_packets, arrived + counters.lost_packets);
                } else {
                    prop_assert!(counters.sent_packets <= arrived + counters.lost_packets);
                }
            }
        }
    }

    #[test]
    fn every_frame_sent_through_a_switch_reaches_or_misses_each_station_that_it_is_for(
        config in any::switch_config(),
        actions in any::actions(5),
    ) {
        let n = config.directions.len();
        let actions = up_to_an_end(actions, n);
        let mut link = switch(&config, 1);
        link.report_sent(true);
        let said = run(&mut link, &actions, END);
        prop_assert_eq!(link.deadline(), None);
        for from in 0..n {
            let (tally, once) = (tally(&said, from), link.sender_counters(END, from));
            prop_assert_eq!(tally.sent + tally.dropped, offered(&actions, from));
            prop_assert_eq!((tally.sent, tally.dropped), (once.sent_packets, once.queue_dropped_packets));
            for to in (0..n).filter(|&to| to != from) {
                let counters = link.counters(END, from, to);
                let of = |event: &Event| match event {
                    Event::Sent { from: sender, frame } => *sender == from
                        && (frame[0] & 1 == 1 || frame[..6] == config.addresses[to]),
                    _ => false,
                };
                let meant = said.iter().filter(|(_, event)| of(event)).count() as u64;
                prop_assert_eq!(meant, counters.sent_packets);
                let arrived = counters.delivered_packets - counters.duplicated_packets;
                prop_assert_eq!(meant, arrived + counters.lost_packets);
                prop_assert_eq!(counters.overheard_packets, 0);
            }
        }
    }

    #[test]
    fn at_no_instant_does_more_come_out_than_went_in(
        config in any::config(), actions in any::actions(2), at in 0u64..200_000,
    ) {
        let mut link = PointToPoint::new(config, streams(1));
        let at = nanos(at);
        let actions: Vec<_> = actions.into_iter().filter(|(then, _)| *then <= at).collect();
        run(&mut link, &actions, at);
        for from in [0, 1] {
            let counters = link.counters(at, from, 1 - from);
            prop_assert!(counters.sent_packets + counters.queue_dropped_packets <= offered(&actions, from));
            let arrived = counters.delivered_packets - counters.duplicated_packets;
            prop_assert!(arrived + counters.lost_packets <= counters.sent_packets);
            prop_assert!(counters.busy <= at.since(Instant::ZERO));
        }
    }
}
