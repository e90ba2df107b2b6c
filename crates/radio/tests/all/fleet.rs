//! Ships' radios as the radios of a medium.
#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

use std::sync::Arc;

use crate::common::*;
use hopcast_core::{Buffer, Duration, Fraction, Instant, Rate, Seed};
use hopcast_link::{
    Csma, Direction, Event, Hearing, Link, Mac, Medium, MediumConfig, RadioModel, RadioSource, Station,
};
use hopcast_radio::maritime::{DELAY, LOSS_PERCENT, Size, channel};
use hopcast_radio::propagation::{Correlation, Polarisation, Sea, SeaState};
use hopcast_radio::{
    Channel, Fleet, Frequency, Law, Motion, Pattern, Position, Radio, RadioLinkState, RateRow, RateTable,
    Shadowing, Ship, Sunflower, Track, Waypoint,
};
use proptest::prelude::*;

/// Ships of one size, named by their numbers.
fn fleet(size: Size, motions: Vec<Motion>, loss: Fraction) -> Fleet {
    let ship = |(number, motion): (usize, Motion)| {
        Arc::new(Ship { name: format!("s{number}").into(), motion, radio: size.radio() })
    };
    let ships = motions.into_iter().enumerate().map(ship).collect();
    Fleet {
        channel: Arc::new(channel()),
        ships,
        loss,
        hysteresis: 2.0,
        sensitivity: channel().rates.sensitivity(),
    }
}

fn still(x: f64, y: f64) -> Motion {
    Motion::along(Track::still(plane(x, y), 0.0))
}

fn medium(fleet: Fleet, mac: Mac) -> Medium {
    let stations = (0..fleet.ships.len())
        .map(|i| Station { address: [2, 0, 0, 0, 0, i as u8], ..Station::default() })
        .collect();
    let config = MediumConfig {
        direction: Direction { delay: DELAY, ..Direction::default() },
        stations,
        mac,
        radios: Some(RadioModel(Arc::new(fleet))),
        ..MediumConfig::default()
    };
    let seed = Seed::new(4, 0);
    Medium::new(config, |from, to| seed.stream(&["air"], (1_000 * from + to) as u64), &seed)
}

/// A frame of 1,250 bytes, 10,000 bits, to a ship, or to all.
fn to(destination: Option<u8>) -> Buffer {
    let mut frame = Buffer::zeroed(1_250);
    match destination {
        Some(number) => frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, number]),
        None => frame[..6].fill(0xff),
    }
    frame
}

/// An arrival: when it was offered, when it came, and from whom to whom.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Arrival {
    offered: Instant,
    at: Instant,
    ends: (usize, usize),
    rate: Option<Rate>,
}

/// Offers frames in the order of time, and follows the link until nothing is under way.
fn run(link: &mut Medium, offers: impl Iterator<Item = (Instant, usize, Buffer)>) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    let mut last = Instant::ZERO;
    let mut until = |link: &mut Medium, end: Instant, last: Instant| {
        while let Some(at) = link.deadline().filter(|&at| at <= end) {
            link.wake(at);
            while let Some(event) = link.poll(at) {
                if let Event::Delivered { from, to, reception, .. } = event {
                    let rate = reception.and_then(|reception| reception.rate);
                    arrivals.push(Arrival { offered: last, at, ends: (from, to), rate });
                }
            }
        }
    };
    for (at, from, frame) in offers {
        until(link, at, last);
        link.offer(at, from, frame);
        last = at;
    }
    until(link, Instant::from_nanos(1 << 62), last);
    arrivals
}

/// A frame from ship 0 each 100 ms for 1,000 s.
fn each_tenth(destination: Option<u8>) -> impl Iterator<Item = (Instant, usize, Buffer)> {
    (0..10_000u64).map(move |n| (Instant::ZERO + Duration::from_millis(100 * n), 0, to(destination)))
}

/// One small ship stands still; the other sails away from it at 10 m/s, from 0 to 10 km.
fn sailing_away() -> Fleet {
    let away = Motion::along(track(&[(0.0, 0.0, 0.0), (1000.0, 0.0, 10_000.0)]));
    fleet(Size::Small, vec![still(0.0, 0.0), away], Fraction::from_percent(LOSS_PERCENT).unwrap())
}

#[test]
fn frames_are_sent_at_the_rate_of_the_distance_and_nothing_arrives_beyond_the_last() {
    let arrivals = run(&mut medium(sailing_away(), Mac::EthernetLike), each_tenth(Some(1)));
    // Table 8 of the thesis: 65 Mbit/s to 568 m, 19.5 to 2032 m, 6.5 to 3317 m, 1 to 6586 m. 10,000 bits and 1 ms.
    for (second, micros) in [(50, 154), (200, 513), (300, 1_538), (600, 10_000)] {
        let found: Vec<_> =
            arrivals.iter().filter(|a| a.offered.as_nanos() / 1_000_000_000 == second).collect();
        assert!(found.len() >= 8, "{second}: {}", found.len());
        for Arrival { offered, at, .. } in found {
            let time = at.since(*offered).saturating_sub(DELAY) + Duration::from_nanos(500);
            assert_eq!(time.as_micros(), micros);
        }
    }
    let last = arrivals.iter().map(|arrival| arrival.offered).max().unwrap();
    assert_eq!(last.as_nanos() / 1_000_000_000, 658, "6,586 m");
    // 0.2 % of 6,587 frames, within three standard errors.
    close(6_587.0 - arrivals.len() as f64, 13.2, 3.0 * 13.2f64.sqrt());
}

#[test]
fn with_contention_retries_make_up_for_the_loss_and_frames_to_all_have_the_lowest_rate() {
    let mut link = medium(sailing_away(), Mac::Csma(Csma::default()));
    let arrivals = run(&mut link, each_tenth(Some(1)));
    close(arrivals.len() as f64, 6_587.0, 1.0);
    close(link.sender_counters(Instant::from_nanos(1 << 62), 0).retries as f64, 13.2 + 7.0 * 3_412.0, 15.0);
    for (second, kbit) in [(50, 65_000), (200, 19_500), (300, 6_500), (600, 1_000)] {
        let at = |arrival: &&Arrival| arrival.offered.as_nanos() / 1_000_000_000 == second;
        let rates: Vec<_> = arrivals.iter().filter(at).filter_map(|arrival| arrival.rate).collect();
        let expected = Rate::from_bits_per_sec(kbit * 1_000);
        assert!(rates.iter().filter(|&&rate| rate == expected).count() >= 8, "{second}: {rates:?}");
        // A retry has the next lower one.
        assert!(rates.iter().all(|&rate| rate <= expected));
    }
    let all = run(&mut medium(sailing_away(), Mac::Csma(Csma::default())), each_tenth(None));
    assert!(all.iter().all(|arrival| arrival.rate == Some(Rate::from_mbit(1))));
    close(all.len() as f64, 6_587.0 * 0.998, 3.0 * 13.2f64.sqrt());
}

#[test]
fn the_same_ships_and_seed_give_the_same_frames() {
    for mac in [Mac::EthernetLike, Mac::Csma(Csma::default())] {
        let [one, two] = [0, 1].map(|_| run(&mut medium(sailing_away(), mac.clone()), each_tenth(Some(1))));
        assert_eq!(one, two);
    }
}

#[test]
fn a_ship_hears_and_is_heard_from_when_it_joins_until_it_leaves() {
    let guest = still(0.0, 100.0).joining(seconds(100.0)).leaving(seconds(200.0));
    let ships = || fleet(Size::Small, vec![still(0.0, 0.0), guest.clone()], Fraction::ZERO);
    for mac in [Mac::EthernetLike, Mac::Csma(Csma::default())] {
        // Not at once, as they would collide.
        let later = Duration::from_millis(30);
        let both =
            each_tenth(None).flat_map(|(at, _, frame)| [(at, 0, frame.clone()), (at + later, 1, frame)]);
        let arrivals = run(&mut medium(ships(), mac.clone()), both);
        for ends in [(0, 1), (1, 0)] {
            let of: Vec<_> = arrivals.iter().filter(|arrival| arrival.ends == ends).collect();
            assert_eq!(of.len(), 1_000, "{mac:?}");
            assert!(of[0].at >= seconds(100.0) && of[999].at < seconds(200.0));
        }
    }
    let mut link = medium(ships(), Mac::EthernetLike);
    let quality = [99.0, 100.0, 199.0, 200.0].map(|at| link.quality(seconds(at), 0, 1).is_some());
    assert_eq!(quality, [false, true, true, false]);
}

#[test]
fn a_ship_that_its_formation_turns_into_range_is_heard_at_once() {
    // The leader sails 1 m to the east and back; the other is 8 km to starboard, first in the south and then north.
    let leader = Motion::along(track(&[(0.0, 0.0, 0.0), (100.0, 1.0, 0.0), (200.0, 0.0, 0.0)]));
    let outer = leader.beside(0.0, 8_000.0);
    let ships = fleet(Size::Small, vec![outer, still(0.0, 12_000.0)], Fraction::ZERO);
    let mut radios = ships.radios(&Seed::new(1, 0));
    let heard = [1.0, 99.0, 101.0].map(|at| {
        let mut hearers = Vec::new();
        radios.hearers(seconds(at), 0, &mut hearers);
        hearers.len()
    });
    assert_eq!(heard, [0, 0, 1]);
    // A jump has no bound at all.
    let jump = Motion::along(track(&[(0.0, 0.0, 90e3), (100.0, 0.0, 90e3), (100.0, 0.0, 100.0)]));
    let ships = fleet(Size::Small, vec![jump, still(0.0, 0.0)], Fraction::ZERO);
    let mut radios = ships.radios(&Seed::new(1, 0));
    assert_eq!([1.0, 101.0].map(|at| radios.hearing(seconds(at), 1, 0).is_some()), [false, true]);
}

#[test]
fn a_hand_over_loses_no_frame() {
    // A ship sails round another, which hands over from beam to beam: 24 sectors in 100 s.
    let circle = (0..=360).map(|i| {
        let (sin, cos) = f64::from(i).to_radians().sin_cos();
        (f64::from(i) / 3.6, 400.0 * sin, 400.0 * cos)
    });
    let round = Motion::along(track(&circle.collect::<Vec<_>>()));
    let ships = fleet(Size::Large, vec![still(0.0, 0.0), round], Fraction::ZERO);
    let seed = Seed::new(4, 0);
    let mut link = ships.link(0, 1, &seed);
    let beams = (0..1_000).map(|n| link.at(seconds(f64::from(n) / 10.0)).beams().unwrap().a);
    let mut beams: Vec<_> = beams.collect();
    beams.dedup();
    assert!(beams.len() >= 24, "{beams:?}");
    for mac in [Mac::EthernetLike, Mac::Csma(Csma::default())] {
        // As fast as the line carries them, 65 Mbit/s, so that frames are under way at each hand-over.
        let offers = (0..50_000u64).map(|n| (Instant::ZERO + Duration::from_millis(2) * n, 0, to(Some(1))));
        let mut medium = medium(ships.clone(), mac.clone());
        let arrivals = run(&mut medium, offers);
        assert_eq!(arrivals.len(), 50_000, "{mac:?}");
        assert!(arrivals.iter().all(|arrival| arrival.rate == Some(Rate::from_mbit(65))));
        assert_eq!(medium.sender_counters(Instant::from_nanos(1 << 62), 0).retries, 0);
    }
}

#[test]
fn a_link_that_hysteresis_would_lose_hands_over_at_once() {
    let antennas = Sunflower::new(6, 0.0, Pattern::Sector { front_to_back: 20.0 }).unwrap();
    let radio = Radio::new(0.7378, antennas, 10.0).unwrap();
    // It sails from before the bow to abeam, where the beam ahead is 20 dB weaker.
    let round = Motion::along(track(&[(0.0, 0.0, 3_000.0), (100.0, 3_000.0, 0.0)]));
    let ship = |name: &str, motion| Arc::new(Ship { name: name.into(), motion, radio });
    let ships = vec![ship("a", still(0.0, 0.0)), ship("b", round)];
    let fleet = Fleet {
        channel: Arc::new(channel()),
        ships,
        loss: Fraction::ZERO,
        hysteresis: 90.0,
        sensitivity: channel().rates.sensitivity(),
    };
    let mut link = fleet.link(0, 1, &Seed::new(1, 0));
    let first = link.at(seconds(0.0)).beams().unwrap();
    let budget = link.at(seconds(100.0));
    assert!(budget.forward.is_up() && budget.path.unwrap().handed_over, "{budget}");
    assert_ne!(budget.beams().unwrap(), first);
}

/// A ship's place by another: the leader's track, metres behind, ahead and to starboard, and which of them count.
type Place = (usize, f64, f64, f64, u32);

/// The second in which a ship joins, and how long it stays.
type Times = Option<(u32, u32)>;

/// The size of a ship, decibels more than the size's power, and whether its beams are parabolic.
type Make = (Size, f64, u32);

/// Ships of all kinds: still, under way, turning, in formations and convoys, with jumps, and not there all the time.
fn ships(globe: bool) -> impl Strategy<Value = Vec<(Motion, Radio)>> {
    let place = (-1.0f64..1.0, -1.0f64..1.0).prop_map(move |(x, y)| {
        if globe {
            Position::degrees(54.0 + y * 0.3, 179.9 + x * 0.5).unwrap()
        } else {
            plane(x * 30e3, y * 30e3)
        }
    });
    let point = (0u32..200, place, proptest::option::weighted(0.2, 0.0f64..360.0));
    let track = proptest::collection::vec(point, 1..6).prop_map(|mut points| {
        points.sort_by_key(|point| point.0);
        let points = points.into_iter().map(|(at, position, heading)| Waypoint {
            at: seconds(f64::from(at)),
            position,
            heading,
        });
        Arc::new(Track::new(points).unwrap())
    });
    let tracks = proptest::collection::vec(track, 1..4);
    let follow = (0usize..4, 0.0f64..9_000.0, -4_000.0f64..4_000.0, -4_000.0f64..4_000.0, 0u32..4);
    let times = proptest::option::weighted(0.3, (0u32..100, 0u32..100));
    let radio =
        (prop_oneof![Just(Size::Small), Just(Size::Medium), Just(Size::Large)], -3.0f64..3.0, 0u32..2);
    let ship = (follow, times, radio);
    (tracks, proptest::collection::vec(ship, 2..9)).prop_map(|(tracks, ships)| {
        let motion = |((leader, behind, ahead, starboard, kind), times, (size, more, parabolic)): (
            Place,
            Times,
            Make,
        )| {
            let base = Motion::along(Arc::<Track>::clone(&tracks[leader % tracks.len()]));
            let motion = match kind {
                0 => base,
                1 => base.followed_at(behind),
                2 => base.beside(ahead, starboard),
                _ => base.followed_at(behind).beside(ahead, starboard),
            };
            let motion = match times {
                Some((from, more)) => {
                    let until = seconds(f64::from(from + more));
                    motion.joining(seconds(f64::from(from))).leaving(until)
                }
                None => motion,
            };
            let own: Radio = Size::radio(size);
            let antennas = *own.antennas();
            let pattern = Pattern::Parabolic { front_to_back: 20.0 };
            let parabola = Sunflower::new(antennas.beams(), antennas.max_gain(), pattern).unwrap();
            let antennas = if parabolic == 1 { parabola } else { antennas };
            (motion, Radio::new(own.power() + more, antennas, own.height()).unwrap())
        };
        ships.into_iter().map(motion).collect()
    })
}

fn channels() -> impl Strategy<Value = Channel> {
    let carrier = Frequency::hertz(2.4e9).unwrap();
    let sea = Sea::water(Polarisation::Vertical, SeaState(0.3));
    let row = |signal, mbit| RateRow { signal, rate: Rate::from_mbit(mbit) };
    // With about the range of the maritime channel.
    let rates = RateTable::new(vec![row(-100.0, 10), row(-106.0, 5), row(-112.0, 1)]).unwrap();
    let free = Channel { law: Law::FreeSpace { carrier }, shadowing: None, rates: rates.clone() };
    let two = Channel { law: Law::TwoRay { carrier, sea }, shadowing: None, rates };
    let channel = prop_oneof![Just(channel()), Just(free), Just(two)];
    let correlation = prop_oneof![Just(Correlation::Pair), Just(Correlation::Position { distance: 500.0 })];
    let shadowing =
        (0.0f64..6.0, correlation).prop_map(|(deviation, correlation)| Shadowing { deviation, correlation });
    (channel, proptest::option::of(shadowing))
        .prop_map(|(channel, shadowing)| Channel { shadowing, ..channel })
}

fn fleets() -> impl Strategy<Value = Fleet> {
    // The last ship is on the globe among ships on a plane, now and then.
    let ships = prop_oneof![
        4 => ships(false),
        4 => ships(true),
        1 => (ships(false), ships(true)).prop_map(|(mut one, two)| { one.extend(two); one }),
    ];
    let one_power = proptest::bool::ANY;
    (channels(), ships, 0.0f64..30.0, one_power).prop_map(|(channel, ships, hysteresis, one_power)| {
        let first = ships[0].1.power();
        let ship = |(number, (motion, radio)): (usize, (Motion, Radio))| {
            let power = if one_power { first } else { radio.power() };
            let radio = Radio::new(power, *radio.antennas(), radio.height()).unwrap();
            Arc::new(Ship { name: format!("s{number}").into(), motion, radio })
        };
        let ships = ships.into_iter().enumerate().map(ship).collect();
        // Weaker than any rate needs, in every other fleet.
        let margin = if hysteresis < 15.0 { 5.0 } else { 0.0 };
        let sensitivity = channel.rates.sensitivity() - margin;
        Fleet { channel: Arc::new(channel), ships, loss: Fraction::ZERO, hysteresis, sensitivity }
    })
}

/// Times at which a ship of a number is asked about, each a while after the one before.
fn questions() -> impl Strategy<Value = Vec<(Instant, usize)>> {
    let wait = prop_oneof![Just(0u64), 1u64..1_000, 1u64..1_000_000_000, 1u64..40_000_000_000];
    proptest::collection::vec((wait, 0usize..18), 1..40).prop_map(|waits| {
        let mut now = Instant::ZERO;
        let mut later = |(wait, from)| {
            now += Duration::from_nanos(wait);
            (now, from)
        };
        waits.into_iter().map(&mut later).collect()
    })
}

/// The hearers of a ship, and whether they read and do not only sense its frames, by the budgets of all its pairs, each
/// by a link of its own that is new at every question.
fn by_budgets(fleet: &Fleet, seed: &Seed, now: Instant, from: usize) -> Vec<(usize, bool)> {
    let hears = |to: usize| {
        let budget = fleet.link(from.min(to), from.max(to), seed).at(now);
        match if from < to { budget.forward } else { budget.back } {
            RadioLinkState::Up { .. } => Some((to, true)),
            RadioLinkState::TooWeak { signal, .. } => (signal >= fleet.sensitivity).then_some((to, false)),
            RadioLinkState::Absent(_) | RadioLinkState::NotComparable => None,
        }
    };
    (0..fleet.ships.len()).filter(|&to| to != from).filter_map(hears).collect()
}

/// The hearers, and whether they read and do not only sense.
fn readers(hearers: &[Hearing]) -> Vec<(usize, bool)> {
    hearers.iter().map(|hearing| (hearing.to, hearing.reads())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    /// The bounds and what is kept change no answer.
    #[test]
    fn hearers_are_those_of_the_pairs_each_asked_for(fleet in fleets(), questions in questions()) {
        let seed = Seed::new(7, 0);
        let (mut one, mut each) = (fleet.radios(&seed), fleet.radios(&seed));
        let count = fleet.ships.len();
        for (now, from) in questions {
            let from = from % count;
            let mut found = Vec::new();
            one.hearers(now, from, &mut found);
            let asked: Vec<Hearing> = (0..count).filter_map(|to| each.hearing(now, from, to)).collect();
            prop_assert_eq!(&found, &asked);
            // Twice at one time is once.
            let again: Vec<Hearing> = (0..count).filter_map(|to| one.hearing(now, from, to)).collect();
            prop_assert_eq!(&found, &again);
            if fleet.hysteresis < 5.0 {
                continue;
            }
            // A link with no beams yet takes the best, so who is in range with those is in range.
            let fresh = by_budgets(&fleet, &seed, now, from);
            let asymmetric = fleet.ships.iter().any(|ship| ship.radio.power() != fleet.ships[0].radio.power());
            if !asymmetric {
                prop_assert_eq!(readers(&found), fresh);
            }
        }
    }

    /// Without hysteresis an answer depends on the time alone, and is that of the budget.
    #[test]
    fn without_hysteresis_a_hearing_is_the_budget_of_its_pair(fleet in fleets(), questions in questions()) {
        let (fleet, seed) = (Fleet { hysteresis: 0.0, ..fleet }, Seed::new(7, 0));
        let mut radios = fleet.radios(&seed);
        for (now, from) in questions {
            let from = from % fleet.ships.len();
            let mut found = Vec::new();
            radios.hearers(now, from, &mut found);
            prop_assert_eq!(readers(&found), by_budgets(&fleet, &seed, now, from));
        }
    }

    #[test]
    fn spectators_change_nothing(fleet in fleets(), questions in questions()) {
        let seed = Seed::new(7, 0);
        let (mut calm, mut seen) = (fleet.radios(&seed), fleet.radios(&seed));
        let count = fleet.ships.len();
        for (now, from) in questions {
            let from = from % count;
            let peeked: Vec<Hearing> = (0..count).filter_map(|to| seen.peek(now, from, to)).collect();
            let (mut one, mut other) = (Vec::new(), Vec::new());
            calm.hearers(now, from, &mut one);
            seen.hearers(now, from, &mut other);
            prop_assert_eq!(&one, &other);
            prop_assert_eq!(&one, &peeked);
        }
    }

    #[test]
    fn a_ship_gets_no_farther_than_its_drift_and_rests_as_long_as_it_says(
        fleet in fleets(),
        times in (0u64..250_000_000_000, 0u64..250_000_000_000),
    ) {
        let (one, other) = (times.0.min(times.1), times.0.max(times.1));
        let (now, later) = (Instant::from_nanos(one), Instant::from_nanos(other));
        for ship in &fleet.ships {
            let motion = &ship.motion;
            let (here, there) = (motion.at(now), motion.at(later));
            if let (Some(drift), Some(here), Some(there)) = (motion.drift(), here, there) {
                let metres = here.position.to(&there.position).unwrap().metres;
                let bound = drift.slack + drift.speed * later.since(now).as_secs_f64();
                prop_assert!(metres <= bound + 0.01, "{} m of {}", metres, bound);
            }
            match motion.rests_until(now) {
                Some(until) => {
                    prop_assert!(until >= now);
                    if until > now {
                        let last = Instant::from_nanos(until.as_nanos() - 1).min(later);
                        prop_assert_eq!(motion.at(last), here);
                    }
                }
                None => prop_assert_eq!(there, here),
            }
        }
    }
}

/// Figures for a person: `cargo test --release -p hopcast-radio --test all -- --ignored --nocapture two_hundred`.
#[test]
#[ignore = "it measures"]
#[allow(clippy::disallowed_methods, reason = "a person waits for the figure")]
fn two_hundred_ships() {
    for (what, speed) in [("still", 0.0), ("under way", 10.0)] {
        let mut stream = Seed::new(9, 0).stream(&["ships"], 0);
        let motions = (0..200).map(|_| {
            let mut draw = |size: f64| (stream.uniform() - 0.5) * size;
            let (x, y) = (draw(40_000.0), draw(40_000.0));
            let (dx, dy) = (draw(2.0) * speed * 1_000.0, draw(2.0) * speed * 1_000.0);
            let sails = Motion::along(track(&[(0.0, x, y), (1_000.0, x + dx, y + dy)]));
            if speed > 0.0 { sails } else { still(x, y) }
        });
        let loss = Fraction::from_percent(LOSS_PERCENT).unwrap();
        let ships = fleet(Size::Medium, motions.collect(), loss);
        let mut radios = ships.radios(&Seed::new(4, 0));
        let mut heard = Vec::new();
        (0..200).for_each(|from| radios.hearers(Instant::ZERO, from, &mut heard));
        println!("{what}: {:.1} hearers of each", heard.len() as f64 / 200.0);
        for (name, mac) in [("csma", Mac::Csma(Csma::default())), ("ethernet-like", Mac::EthernetLike)] {
            for group in [true, false] {
                let begun = std::time::Instant::now();
                let mut medium = medium(ships.clone(), mac.clone());
                let made = begun.elapsed();
                let mut stream = Seed::new(9, 1).stream(&["frames"], 0);
                let neighbours: Vec<Vec<u8>> = (0..200)
                    .map(|from| {
                        let mut heard = Vec::new();
                        radios.hearers(Instant::ZERO, from, &mut heard);
                        heard.iter().map(|hearing| hearing.to as u8).collect()
                    })
                    .collect();
                let offers = (0..40_000u64).map(|n| {
                    let from = stream.below(200) as usize;
                    let near = &neighbours[from];
                    let one = near.get(stream.below(near.len().max(1) as u64) as usize).copied();
                    // 4,000 frames a second in all.
                    (Instant::ZERO + Duration::from_micros(250) * n, from, to(if group { None } else { one }))
                });
                let begun = std::time::Instant::now();
                let arrivals = run(&mut medium, offers);
                let took = begun.elapsed().as_secs_f64();
                let end = Instant::from_nanos(1 << 62);
                let sent: u64 = (0..200)
                    .map(|from| medium.sender_counters(end, from))
                    .map(|of| of.sent_packets + of.retries)
                    .sum();
                println!(
                    "{what}, {name}, {}: {:.0} frames/s of {sent} transmissions, {} arrivals, {took:.2} s; made in {made:?}",
                    if group { "to all" } else { "to one" },
                    sent as f64 / took,
                    arrivals.len(),
                );
            }
        }
    }
}
