//! Ships' radios below a point-to-point link: what is delivered as they move.
#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

use std::sync::Arc;

use crate::common::*;
use hopcast_core::{Buffer, Duration, Fraction, Instant, Rate, Seed};
use hopcast_link::{Conditions, Config, Direction, Event, Link, PointToPoint};
use hopcast_radio::maritime::{DELAY, LOSS_PERCENT, Size, channel};
use hopcast_radio::{Motion, OneWay, RadioLink, Ship, Track};

fn ship(name: &str, track: Track) -> Arc<Ship> {
    Arc::new(Ship { name: name.into(), motion: Motion::along(track), radio: Size::Small.radio() })
}

/// One small ship stands still; the other sails away from it at 10 m/s, from 0 to 10 km.
fn ships() -> [Arc<Ship>; 2] {
    let away = track(&[(0.0, 0.0, 0.0), (1000.0, 0.0, 10_000.0)]);
    [ship("a", Track::still(plane(0.0, 0.0), 0.0)), ship("b", away)]
}

fn conditions(from: &Arc<Ship>, to: &Arc<Ship>) -> Box<OneWay> {
    let link = RadioLink::new(Arc::new(channel()), from.clone(), to.clone(), &Seed::new(3, 0), 2.0);
    Box::new(OneWay::new(link, Fraction::from_percent(LOSS_PERCENT).unwrap()))
}

/// Arrivals of frames of 1,250 bytes, which are sent every 100 ms: the second that each left in, and its time on the
/// way.
fn arrivals() -> Vec<(u64, Duration)> {
    let [a, b] = ships();
    let direction = Direction { delay: DELAY, ..Direction::default() };
    let config = Config { forward: direction.clone(), backward: direction, ..Config::default() };
    let seed = Seed::new(4, 0);
    let streams = [seed.stream(&["a", "b"], 0), seed.stream(&["b", "a"], 0)];
    let mut link =
        PointToPoint::new(config, streams).with_conditions([conditions(&a, &b), conditions(&b, &a)]);
    let mut arrivals = Vec::new();
    for n in 0..10_000u64 {
        let left = Instant::ZERO + Duration::from_millis(100 * n);
        link.offer(left, 0, Buffer::zeroed(1250));
        while let Some(deadline) = link.deadline() {
            link.wake(deadline);
            while let Some(event) = link.poll(deadline) {
                if let Event::Delivered { .. } = event {
                    arrivals.push((n / 10, deadline.since(left)));
                }
            }
        }
    }
    arrivals
}

#[test]
fn frames_are_sent_at_the_rate_of_the_distance_and_lost_beyond_the_last() {
    let arrivals = arrivals();
    // Table 8 of the thesis: 65 Mbit/s to 568 m, 19.5 to 2032 m, 6.5 to 3317 m, 1 to 6586 m. 10,000 bits and 1 ms.
    for (second, micros) in [(50, 154), (200, 513), (300, 1_538), (600, 10_000)] {
        let found: Vec<Duration> =
            arrivals.iter().filter(|(at, _)| *at == second).map(|(_, time)| *time).collect();
        assert!(found.len() >= 8, "{second}: {}", found.len());
        for time in found {
            assert_eq!((time.saturating_sub(DELAY) + Duration::from_nanos(500)).as_micros(), micros);
        }
    }
    assert_eq!(arrivals.iter().map(|(second, _)| *second).max(), Some(658), "6,586 m");
    // 0.2 % of 6,587 frames, within three standard errors.
    let lost = 6_587.0 - arrivals.len() as f64;
    close(lost, 13.2, 3.0 * 13.2f64.sqrt());
}

#[test]
fn the_same_ships_and_seed_give_the_same_frames() {
    assert_eq!(arrivals(), arrivals());
}

#[test]
fn without_a_link_frames_leave_at_the_lowest_rate_and_are_lost() {
    let [a, b] = ships();
    let mut far = conditions(&a, &b);
    let [near, gone] = [5.0, 999.0].map(|time| far.at(seconds(time)));
    assert_eq!((near.rate, near.loss.get()), (Rate::from_mbit(65), 0.002));
    assert_eq!((gone.rate, gone.loss), (Rate::from_mbit(1), Fraction::ONE));
    assert!(near.signal > gone.signal && gone.signal.is_some());
    let absent = Ship { motion: b.motion.clone().joining(seconds(2000.0)), ..(*b).clone() };
    let nobody = conditions(&a, &Arc::new(absent)).at(seconds(5.0));
    assert_eq!((nobody.rate, nobody.loss, nobody.signal), (Rate::from_mbit(1), Fraction::ONE, None));
}
