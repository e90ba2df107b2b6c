//! Contention on a shared medium, held against what can be calculated.

use crate::common::saturation::Cell;
use crate::common::*;
use hopcast_core::{Buffer, Duration, Instant, Rate};
use hopcast_link::{
    Attachment, Change, Counters, Csma, Direction, DropReason, Event, Link, Loss, Mac, Medium, MediumConfig,
    PairLoss, Queue, QueueLimit, Station,
};

const LEN: usize = 1_514;

fn address(station: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, station as u8]
}

fn config(n: usize, csma: Csma) -> MediumConfig {
    let queue = Queue::DropTail { limit: QueueLimit::Packets(100_000) };
    MediumConfig {
        direction: Direction { rate: Some(Rate::from_mbit(12)), queue, ..Direction::default() },
        stations: (0..n).map(|i| Station { address: address(i), ..Station::default() }).collect(),
        mac: Mac::Csma(csma),
        pairs: Vec::new(),
        hears: None,
        radios: None,
    }
}

fn to(destination: usize, id: u64) -> Buffer {
    let mut frame = frame(id, LEN);
    frame[..6].copy_from_slice(&address(destination));
    frame
}

/// Each of the first `senders` stations has `frames` for the last one from the beginning, or one for everyone.
fn saturate(link: &mut Medium, senders: usize, frames: u64, group: bool, until: Instant) -> Said {
    let last = link.attachments() - 1;
    let offer = |id: u64| (0..senders).map(move |from| (from, id));
    let offers: Vec<_> = (0..frames)
        .flat_map(offer)
        .map(|(from, id)| {
            (Instant::ZERO, Action::Offer(from, if group { frame(id, LEN) } else { to(last, id) }))
        })
        .collect();
    run(link, &offers, until)
}

fn delivered(said: &Said) -> Vec<(Attachment, Attachment, u64)> {
    let heard = said.iter().filter_map(|(_, event)| match event {
        Event::Delivered { from, to, frame, .. } => Some((*from, *to, id(frame))),
        _ => None,
    });
    heard.collect()
}

fn station(link: &mut Medium, from: Attachment) -> Counters {
    link.counters(END, from, usize::from(from == 0))
}

fn close(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() < share, "found {found}, expected {expected}");
}

/// How long a frame is on the air, and the whole of a successful exchange and of a collision with the idle time after.
fn times(csma: &Csma) -> (f64, f64) {
    let air = csma.overhead.as_secs_f64() + LEN as f64 * 8.0 / 12e6;
    (air, air + (csma.sifs + csma.ack + csma.difs).as_secs_f64())
}

#[test]
fn one_station_alone_gets_the_rate_that_its_overhead_leaves() {
    let csma = Csma::default();
    let n = 20_000;
    let mut link = Medium::new(config(2, csma.clone()), |a, b| stream(&format!("{a}-{b}")), &SEED);
    let said = saturate(&mut link, 1, n, false, END);
    let (air, exchange) = times(&csma);
    let expected = exchange + csma.slot.as_secs_f64() * f64::from(csma.cw_min) / 2.0;
    // Five standard errors of the mean of a uniform back-off are 0.1 %.
    close(said.last().unwrap().0.as_secs_f64() / n as f64, expected, 0.002);
    let counters = station(&mut link, 0);
    assert_eq!((counters.collisions, counters.retries), (0, 0));
    close(counters.busy.as_secs_f64(), air * n as f64, 1e-4);
    // The acknowledgements are the other's airtime.
    assert_eq!(station(&mut link, 1).busy, csma.ack * n);
}

#[test]
fn frames_to_a_group_are_neither_acknowledged_nor_retried() {
    let csma = Csma { channel: Loss::Independent(percent(30.0)), ..Csma::default() };
    let n = 10_000;
    let mut link = Medium::new(config(3, csma.clone()), |a, b| stream(&format!("{a}-{b}")), &SEED);
    link.report_sent(true);
    let said = saturate(&mut link, 1, n, true, END);
    assert_eq!(station(&mut link, 0).retries, 0);
    assert_eq!(station(&mut link, 1).busy, Duration::ZERO);
    let (air, exchange) = times(&csma);
    let expected = air + csma.difs.as_secs_f64() + csma.slot.as_secs_f64() * f64::from(csma.cw_min) / 2.0;
    assert!(expected < exchange + csma.slot.as_secs_f64() * f64::from(csma.cw_min) / 2.0);
    close(said.last().unwrap().0.as_secs_f64() / n as f64, expected, 0.003);
    for to in [1, 2] {
        let counters = link.counters(END, 0, to);
        assert_eq!(counters.delivered_packets + counters.lost_packets, n);
        close(counters.lost_packets as f64, 0.3 * n as f64, 0.08);
    }
}

#[test]
fn saturated_stations_get_the_throughput_of_bianchis_model() {
    let csma = Csma::default();
    let seconds = 60;
    for n in 2..=10usize {
        let mut link = Medium::new(config(n + 1, csma.clone()), |a, b| stream(&format!("{a}-{b}")), &SEED);
        let until = Instant::ZERO + Duration::from_secs(seconds);
        let frames = seconds * 1_000 / n as u64 + 5_000;
        let said = saturate(&mut link, n, frames, false, until);
        let counters =
            (0..n).map(|from| link.counters(until, from, n)).fold(Counters::default(), |a, b| a + b);
        let delivered = delivered(&said).len() as f64;
        let (_, busy) = times(&csma);
        let cell = Cell {
            stations: n as i32,
            window: csma.cw_min + 1,
            doublings: ((csma.cw_max + 1) / (csma.cw_min + 1)).ilog2(),
            slot: csma.slot.as_secs_f64(),
            success: busy,
            collision: busy,
        };
        let found = delivered / seconds as f64;
        let collided = counters.collisions as f64 / (delivered + counters.collisions as f64);
        println!(
            "{n}: {found:.1} frames/s, collided {collided:.4}; {:?}, {:?}",
            cell.bianchi(),
            cell.frozen()
        );
        close(found, cell.bianchi().frames, 0.03);
        close(found, cell.frozen().frames, 0.01);
        close(collided, cell.frozen().collided, 0.12);
    }
}

#[test]
fn saturated_stations_share_the_medium_evenly() {
    let mut link = Medium::new(config(5, Csma::default()), |a, b| stream(&format!("{a}-{b}")), &SEED);
    let until = Instant::ZERO + Duration::from_secs(60);
    let said = saturate(&mut link, 4, 30_000, false, until);
    let mut each = [0.0; 4];
    delivered(&said).iter().for_each(|&(from, ..)| each[from] += 1.0);
    let (sum, squares) = each.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    // Jain's index.
    assert!(sum * sum / (4.0 * squares) > 0.999, "{each:?}");
}

#[test]
fn what_the_channel_loses_is_retried_and_what_is_lost_above_is_not() {
    let csma = Csma { channel: Loss::Independent(percent(40.0)), retries: 3, ..Csma::default() };
    let n = 20_000;
    let mut link = Medium::new(config(2, csma), |a, b| stream(&format!("{a}-{b}")), &SEED);
    link.report_sent(true);
    let said = saturate(&mut link, 1, n, false, END);
    // Retries of a frame: geometric, cut off at three.
    let expected = 0.4 + 0.16 + 0.064;
    close(station(&mut link, 0).retries as f64, expected * n as f64, 0.03);
    let dropped = said.iter().filter(|(_, event)| {
        matches!(event, Event::Dropped { to: Some(1), reason: DropReason::RetryLimit, .. })
    });
    let dropped = dropped.count();
    close(dropped as f64, 0.4f64.powi(4) * n as f64, 0.2);
    assert_eq!(link.counters(END, 0, 1).lost_packets, dropped as u64);
    assert_eq!(link.counters(END, 0, 1).sent_packets, n);
    let mut ids: Vec<_> = delivered(&said).iter().map(|&(.., id)| id).collect();
    assert_eq!(ids.len(), n as usize - dropped);
    ids.dedup();
    assert_eq!(ids.len(), n as usize - dropped, "a frame that was retried is delivered once");

    let mut above = config(2, Csma::default());
    above.direction.loss = Loss::Independent(percent(40.0));
    let mut link = Medium::new(above, |a, b| stream(&format!("{a}-{b}")), &SEED);
    let said = saturate(&mut link, 1, n, false, END);
    assert_eq!(station(&mut link, 0).retries, 0);
    close(delivered(&said).len() as f64, 0.6 * n as f64, 0.03);
}

#[test]
fn each_pair_can_have_a_loss_of_its_own_and_change_it() {
    let mut config = config(3, Csma::default());
    config.stations[2].promiscuous = true;
    config.direction.loss = Loss::Independent(percent(50.0));
    config.pairs = vec![
        PairLoss { from: 0, to: 1, loss: Loss::None },
        PairLoss { from: 0, to: 2, loss: Loss::Independent(percent(20.0)) },
    ];
    let mut link = Medium::new(config, |a, b| stream(&format!("{a}-{b}")), &SEED);
    let n = 10_000;
    let said = run(
        &mut link,
        &(0..2 * n)
            .map(|i| (millis(2 * i), Action::Offer(0, to(1, i))))
            .chain([(
                millis(2 * n),
                Action::Change(Some(0), Change::LossTo(1, Loss::Independent(percent(10.0)))),
            )])
            .collect::<std::collections::BTreeMap<_, _>>()
            .into_iter()
            .collect::<Vec<_>>(),
        END,
    );
    let share = |to, from: u64, until: u64| {
        let count =
            delivered(&said).iter().filter(|&&(_, t, id)| t == to && (from..until).contains(&id)).count();
        count as f64 / (until - from) as f64
    };
    assert_eq!(share(1, 0, n), 1.0);
    close(share(2, 0, n), 0.8, 0.03);
    close(share(1, n + 1, 2 * n), 0.9, 0.03);
    close(share(2, n, 2 * n), 0.8, 0.03);
}

#[test]
fn stations_that_begin_in_the_same_slot_collide_and_hear_nothing() {
    let mut link = Medium::new(config(3, Csma::default()), |a, b| stream(&format!("{a}-{b}")), &SEED);
    link.report_sent(true);
    let offers =
        [(micros(5_007), Action::Offer(0, frame(0, LEN))), (micros(5_011), Action::Offer(1, frame(1, LEN)))];
    let said = run(&mut link, &offers, END);
    let reasons: Vec<_> = said
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Dropped { from, to, reason, .. } => Some((*from, to.unwrap(), *reason)),
            _ => None,
        })
        .collect();
    use DropReason::{Collision, HalfDuplex};
    assert_eq!(reasons, [(0, 1, HalfDuplex), (0, 2, Collision), (1, 0, HalfDuplex), (1, 2, Collision)]);
    assert_eq!(delivered(&said), []);
    assert_eq!(station(&mut link, 0).collisions, 1);
    // Frames to one station get through in the end.
    let offers = [(micros(50_007), Action::Offer(0, to(2, 2))), (micros(50_007), Action::Offer(1, to(2, 3)))];
    let mut ids: Vec<_> = delivered(&run(&mut link, &offers, END)).iter().map(|&(.., id)| id).collect();
    ids.sort_unstable();
    assert_eq!(ids, [2, 3]);
}

#[test]
fn a_station_on_an_idle_medium_sends_at_once() {
    let csma = Csma::default();
    let mut link = Medium::new(config(2, csma.clone()), |a, b| stream(&format!("{a}-{b}")), &SEED);
    let said = run(&mut link, &[(millis(7), Action::Offer(0, to(1, 0)))], END);
    let (air, _) = times(&csma);
    let waited = said[0].0.since(millis(7)).as_secs_f64() - air;
    assert!((-1e-9..csma.slot.as_secs_f64()).contains(&waited), "{waited}");
}

#[test]
fn a_sender_that_asks_for_it_hears_when_the_medium_is_done_with_its_frame() {
    let mut config = config(2, Csma { retries: 2, ..Csma::default() });
    config.stations[0].echo = true;
    let mut link = Medium::new(config, |a, b| stream(&format!("{a}-{b}")), &SEED);
    // The second frame is for nobody: it is given up, and comes back all the same.
    let offers = [(millis(0), Action::Offer(0, to(1, 0))), (millis(0), Action::Offer(0, to(9, 1)))];
    let said = run(&mut link, &offers, END);
    let heard: Vec<_> = said
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Delivered { to, frame, overheard, .. } => Some((*to, id(frame), *overheard)),
            _ => None,
        })
        .collect();
    assert_eq!(heard, [(1, 0, false), (0, 0, true), (0, 1, true)]);
    assert_eq!(station(&mut link, 0).retries, 2);
}

#[test]
fn a_station_that_is_silent_changes_nothing_for_the_others() {
    let run_with = |n: usize| {
        let mut config = config(n, Csma::default());
        config.direction.loss = Loss::Independent(percent(10.0));
        let mut link = Medium::new(config, |a, b| stream(&format!("{a}-{b}")), &SEED);
        let offers: Vec<_> = (0..2_000)
            .map(|i| (micros(700 * i), Action::Offer((i % 2) as usize, to(1 - (i % 2) as usize, i))))
            .collect();
        let mut said = run(&mut link, &offers, END);
        said.retain(|(_, event)| matches!(event, Event::Delivered { to: 0 | 1, .. }));
        said
    };
    assert_eq!(run_with(2), run_with(4));
}

#[test]
fn a_station_that_goes_down_on_the_air_frees_the_medium() {
    let mut link = Medium::new(config(3, Csma::default()), |a, b| stream(&format!("{a}-{b}")), &SEED);
    let actions = [
        (millis(0), Action::Offer(0, to(1, 0))),
        (millis(0), Action::Offer(0, to(1, 1))),
        (micros(200), Action::Offer(1, to(2, 2))),
        (micros(500), Action::Change(Some(0), Change::Down)),
        (millis(5), Action::Change(Some(0), Change::Up)),
        (millis(6), Action::Offer(0, to(1, 3))),
    ];
    let said = run(&mut link, &actions, END);
    assert_eq!(delivered(&said), [(1, 2, 2), (0, 1, 3)]);
    assert!(said[0].0 < micros(2_200));
    assert_eq!(station(&mut link, 0).queue_dropped_packets, 2);
}

#[test]
fn what_waits_at_a_rate_of_zero_is_sent_when_the_rate_returns() {
    let mut link = Medium::new(config(2, Csma::default()), |a, b| stream(&format!("{a}-{b}")), &SEED);
    let actions = [
        (millis(0), Action::Change(None, Change::Rate(Some(Rate::default())))),
        (millis(1), Action::Offer(0, to(1, 0))),
        (millis(9), Action::Change(None, Change::Rate(Some(Rate::from_mbit(12))))),
    ];
    let said = run(&mut link, &actions, END);
    assert_eq!(delivered(&said), [(0, 1, 0)]);
    assert!(said[0].0 > millis(10) && said[0].0 < millis(11), "{:?}", said[0].0);
}

#[test]
fn after_a_collision_all_wait_as_long_as_an_acknowledgement_would_take() {
    // Without a choice of slots everything has its time.
    let csma = Csma { cw_min: 0, cw_max: 0, ..Csma::default() };
    let air = csma.overhead + Rate::from_mbit(12).time_for(LEN as u64);
    let begins_after = |collides: bool| {
        let mut link = Medium::new(config(3, csma.clone()), |a, b| stream(&format!("{a}-{b}")), &SEED);
        let mut offers = vec![(micros(4_990), Action::Offer(0, frame(0, LEN)))];
        if collides {
            offers.push((micros(4_995), Action::Offer(1, frame(1, LEN))));
        }
        offers.push((micros(5_100), Action::Offer(2, frame(2, LEN))));
        let said = run(&mut link, &offers, END);
        let heard = said.iter().filter(|(_, event)| matches!(event, Event::Delivered { from: 2, .. }));
        let heard = heard.map(|&(at, _)| at).max().unwrap();
        assert_eq!(station(&mut link, 0).collisions, u64::from(collides));
        // The slot after the offers begins at 5 ms.
        heard.since(micros(5_000)).saturating_sub(air * 2)
    };
    let near =
        |found: Duration, expected| assert!(found.abs_diff(expected) < Duration::from_nanos(10), "{found:?}");
    near(begins_after(false), csma.difs);
    // EIFS: IEEE 802.11-2020, section 10.3.2.3.7.
    near(begins_after(true), csma.sifs + csma.ack + csma.difs);
}
