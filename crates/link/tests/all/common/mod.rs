//! A small runner in virtual time, and what the tests share.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

pub mod radios;
pub mod saturation;

use hopcast_core::{Buffer, Duration, Fraction, Instant, Rate, Seed, Stream};
use hopcast_link::{
    Attachment, Change, Config, Counters, Direction, Event, Jitter, Link, Loss, MediumConfig, PointToPoint,
    Switch, SwitchConfig,
};

/// Something the world does to a link.
#[derive(Clone, Debug)]
pub enum Action {
    Offer(Attachment, Buffer),
    Change(Option<Attachment>, Change),
    /// A wake without cause.
    Wake,
}

/// The events of a link, and when they came.
pub type Said = Vec<(Instant, Event)>;

/// Runs `link` through `actions`, which are in the order of time, and then until nothing more happens or `until`.
/// A deadline at the time of an action comes first.
pub fn run(link: &mut dyn Link, actions: &[(Instant, Action)], until: Instant) -> Said {
    let mut said = Vec::new();
    for (at, action) in actions {
        wake_until(link, *at, &mut said);
        match action {
            Action::Offer(from, frame) => link.offer(*at, *from, frame.clone()),
            Action::Change(from, change) => link.change(*at, *from, change),
            Action::Wake => link.wake(*at),
        }
        drain(link, *at, &mut said);
    }
    wake_until(link, until, &mut said);
    said
}

/// Wakes `link` at its deadlines up to and including `until`.
pub fn wake_until(link: &mut dyn Link, until: Instant, said: &mut Said) {
    while let Some(deadline) = link.deadline().filter(|&deadline| deadline <= until) {
        link.wake(deadline);
        drain(link, deadline, said);
    }
}

pub fn drain(link: &mut dyn Link, now: Instant, said: &mut Said) {
    while let Some(event) = link.poll(now) {
        said.push((now, event));
    }
    assert!(link.deadline().is_none_or(|deadline| deadline > now), "a deadline that has passed");
}

pub const END: Instant = Instant::from_nanos(1 << 62);

pub fn nanos(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

pub fn micros(micros: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(micros)
}

pub fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

pub fn percent(percent: f64) -> Fraction {
    Fraction::from_percent(percent).unwrap()
}

pub const SEED: Seed = Seed::new(1, 0);

pub fn stream(name: &str) -> Stream {
    SEED.stream(&[name], 0)
}

/// A link with `direction` both ways.
pub fn both_ways(direction: &Direction, seed: u64) -> PointToPoint {
    let config =
        Config { forward: direction.clone(), backward: direction.clone(), duplex: Default::default() };
    PointToPoint::new(config, streams(seed))
}

pub fn streams(seed: u64) -> [Stream; 2] {
    let seed = Seed::new(seed, 0);
    [seed.stream(&["a", "b"], 0), seed.stream(&["b", "a"], 0)]
}

pub fn medium(config: MediumConfig, seed: u64) -> hopcast_link::Medium {
    let seed = Seed::new(seed, 0);
    let stream = |from: usize, to: usize| seed.stream(&[&from.to_string(), &to.to_string()], 0);
    hopcast_link::Medium::new(config, stream, &seed)
}

pub fn switch(config: &SwitchConfig, seed: u64) -> Switch {
    let seed = Seed::new(seed, 0);
    Switch::new(config, |from, to| seed.stream(&["switch", &from.to_string(), &to.to_string()], 0))
}

/// A frame of `len` bytes to everyone, which holds its number.
pub fn frame(id: u64, len: usize) -> Buffer {
    let mut frame = Buffer::zeroed(len.max(14));
    frame[..6].fill(0xff);
    frame[6..14].copy_from_slice(&id.to_be_bytes());
    frame
}

pub fn id(frame: &Buffer) -> u64 {
    u64::from_be_bytes(frame[6..14].try_into().unwrap())
}

/// `n` frames of `len` bytes from attachment 0, `apart` from one another, the first at zero.
pub fn row(n: u64, len: usize, apart: Duration) -> Vec<(Instant, Action)> {
    (0..n).map(|i| (Instant::ZERO + apart * i, Action::Offer(0, frame(i, len)))).collect()
}

/// The actions of the first `n` stations, and at last the end of the link, after which nothing is under way.
pub fn up_to_an_end(actions: Vec<(Instant, Action)>, n: usize) -> Vec<(Instant, Action)> {
    let of_these = |action: &Action| match action {
        Action::Offer(from, _) => *from < n,
        Action::Change(from, _) => from.is_none_or(|from| from < n),
        Action::Wake => true,
    };
    let actions = actions.into_iter().filter(|(_, action)| of_these(action));
    actions.chain([(millis(60_000), Action::Change(None, Change::Down))]).collect()
}

/// When which frame arrived at `to`.
pub fn deliveries(said: &Said, to: Attachment) -> Vec<(Instant, u64)> {
    let arrival = |(at, event): &(Instant, Event)| match event {
        Event::Delivered { to: receiver, frame, .. } if *receiver == to => Some((*at, id(frame))),
        _ => None,
    };
    said.iter().filter_map(arrival).collect()
}

/// Which of `n` frames the link model loses.
pub fn losses(loss: &Loss, n: u64, seed: u64) -> Vec<bool> {
    let mut link = both_ways(&Direction { loss: loss.clone(), ..Direction::default() }, seed);
    let said = run(&mut link, &row(n, 14, Duration::from_nanos(1)), END);
    let mut lost = vec![true; n as usize];
    for (_, id) in deliveries(&said, 1) {
        lost[id as usize] = false;
    }
    lost
}

pub fn all_counters(link: &mut dyn Link, now: Instant) -> Vec<Counters> {
    let n = link.attachments();
    (0..n * n).map(|pair| link.counters(now, pair / n, pair % n)).collect()
}

pub mod any {
    //! Strategies for everything a link can be, small enough that queues fill and frames collide in time.

    use super::*;
    use hopcast_core::Bytes;
    use hopcast_link::{Csma, Duplex, Mac, PairLoss, Queue, QueueLimit, RadioModel, Rts, Station};
    use proptest::prelude::*;
    use std::sync::Arc;

    pub fn fraction() -> impl Strategy<Value = Fraction> {
        prop_oneof![
            Just(Fraction::ZERO),
            Just(Fraction::ONE),
            (0.0..1.0).prop_map(|share| Fraction::new(share).unwrap())
        ]
    }

    fn half() -> impl Strategy<Value = Fraction> {
        (0.0..0.5).prop_map(|share| Fraction::new(share).unwrap())
    }

    pub fn loss() -> impl Strategy<Value = Loss> {
        prop_oneof![
            Just(Loss::None),
            fraction().prop_map(Loss::Independent),
            (fraction(), fraction(), fraction(), fraction()).prop_map(|(p, r, k, h)| Loss::GilbertElliott {
                p,
                r,
                k,
                h
            }),
            (half(), half(), half(), fraction(), half())
                .prop_map(|(p13, p31, p32, p23, p14)| Loss::FourState { p13, p31, p32, p23, p14 }),
            proptest::collection::vec(any::<bool>(), 0..20).prop_map(|lost| Loss::Trace(lost.into())),
        ]
    }

    pub fn rate() -> impl Strategy<Value = Option<Rate>> {
        prop_oneof![
            1 => Just(None),
            1 => Just(Some(Rate::default())),
            6 => (1_000_000u64..1_000_000_000).prop_map(|rate| Some(Rate::from_bits_per_sec(rate))),
        ]
    }

    pub fn delay() -> impl Strategy<Value = Duration> {
        prop_oneof![Just(0), 0u64..200_000].prop_map(Duration::from_nanos)
    }

    pub fn jitter() -> impl Strategy<Value = Jitter> {
        prop_oneof![
            2 => Just(Jitter::None),
            1 => delay().prop_map(Jitter::Uniform),
            1 => (0u64..20_000).prop_map(|deviation| Jitter::Normal(Duration::from_nanos(deviation))),
        ]
    }

    pub fn queue() -> impl Strategy<Value = Queue> {
        let limit = prop_oneof![
            (0u32..10).prop_map(QueueLimit::Packets),
            (0u64..5_000).prop_map(|bytes| QueueLimit::Bytes(Bytes::new(bytes))),
        ];
        prop_oneof![
            limit.clone().prop_map(|limit| Queue::DropTail { limit }),
            (limit, 0u64..20_000, 0u64..50_000).prop_map(|(limit, target, interval)| Queue::CoDel {
                limit,
                target: Duration::from_nanos(target),
                interval: Duration::from_nanos(interval)
            }),
        ]
    }

    pub fn direction() -> impl Strategy<Value = Direction> {
        (rate(), queue(), loss(), delay(), jitter(), any::<bool>(), fraction(), fraction()).prop_map(
            |(rate, queue, loss, delay, jitter, reorder, duplicate, corrupt)| Direction {
                rate,
                queue,
                loss,
                delay,
                jitter,
                reorder,
                duplicate,
                corrupt,
                mtu: 600,
            },
        )
    }

    pub fn config() -> impl Strategy<Value = Config> {
        let duplex = prop_oneof![Just(Duplex::Full), Just(Duplex::Half)];
        (direction(), direction(), duplex).prop_map(|(forward, backward, duplex)| Config {
            forward,
            backward,
            duplex,
        })
    }

    pub fn medium_config() -> impl Strategy<Value = MediumConfig> {
        let stations = proptest::collection::vec(any::<(bool, bool)>(), 0..5);
        let hears = proptest::option::of(proptest::collection::btree_set((0usize..5, 0usize..5), 0..16));
        (direction(), stations, mac(), hears).prop_map(|(direction, stations, mac, hears)| {
            let station = |(i, (promiscuous, echo))| Station {
                address: [2, 0, 0, 0, 0, i as u8],
                promiscuous,
                // The perfect schedule's own tests count what arrives.
                echo: echo && mac != Mac::Perfect,
            };
            let stations = stations.into_iter().enumerate().map(station).collect();
            MediumConfig { direction, stations, mac: mac.clone(), pairs: Vec::new(), hears, radios: None }
        })
    }

    /// Stations with radios whose answers depend on all questions before.
    pub fn radio_config() -> impl Strategy<Value = MediumConfig> {
        let mac = prop_oneof![2 => mac(), 1 => Just(Mac::EthernetLike)];
        (medium_config(), mac).prop_map(|(config, mac)| {
            let radios = Arc::new(radios::Stateful::new(config.stations.len()));
            MediumConfig { mac, radios: Some(RadioModel(radios)), ..config }
        })
    }

    pub fn switch_config() -> impl Strategy<Value = SwitchConfig> {
        let pair = (0usize..5, 0usize..5, loss()).prop_map(|(from, to, loss)| PairLoss { from, to, loss });
        let pairs = proptest::collection::vec(pair, 0..3);
        (proptest::collection::vec(direction(), 0..5), pairs).prop_map(|(directions, pairs)| {
            let addresses = (0..directions.len()).map(|i| [2, 0, 0, 0, 0, i as u8]).collect();
            SwitchConfig { directions, addresses, pairs, bridges: Vec::new() }
        })
    }

    /// Small windows and few retries, so that frames collide and are given up.
    fn mac() -> impl Strategy<Value = Mac> {
        let rts = proptest::option::of((0u64..700, 0u64..40_000).prop_map(|(threshold, rts)| Rts {
            threshold: Bytes::new(threshold),
            rts: Duration::from_nanos(rts),
            cts: Duration::from_nanos(rts),
        }));
        let csma = (0u64..30_000, 0u32..4, 0u32..4, fraction(), rts).prop_map(
            |(slot, cw_min, retries, channel, rts)| {
                Mac::Csma(Csma {
                    slot: Duration::from_nanos(slot),
                    cw_min,
                    cw_max: 2 * cw_min + 1,
                    retries,
                    channel: Loss::Independent(channel),
                    rts,
                    ..Csma::default()
                })
            },
        );
        prop_oneof![Just(Mac::Perfect), csma]
    }

    pub fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            rate().prop_map(Change::Rate),
            delay().prop_map(Change::Delay),
            jitter().prop_map(Change::Jitter),
            loss().prop_map(Change::Loss),
            fraction().prop_map(Change::Corrupt),
            fraction().prop_map(Change::Duplicate),
            queue().prop_map(Change::Queue),
            (600u32..700).prop_map(Change::Mtu),
            any::<bool>().prop_map(Change::Reorder),
            Just(Change::Down),
            Just(Change::Up),
        ]
    }

    /// Actions on a link with `n` attachments, within 200 µs.
    pub fn actions(n: usize) -> impl Strategy<Value = Vec<(Instant, Action)>> {
        let bytes = (0..n, 14usize..700, 0..=n as u8).prop_map(|(from, len, to)| {
            let mut frame = frame(0, len);
            if usize::from(to) < 5 {
                frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, to]);
            }
            Action::Offer(from, frame)
        });
        let change =
            (proptest::option::of(0..n), change()).prop_map(|(from, change)| Action::Change(from, change));
        let action = prop_oneof![12 => bytes, 1 => change];
        proptest::collection::vec((0u64..200_000, action), 0..80).prop_map(|mut actions| {
            actions.sort_by_key(|(at, _)| *at);
            let number = |(order, (at, action)): (usize, (u64, Action))| {
                let action = match action {
                    Action::Offer(from, mut frame) => {
                        frame[6..14].copy_from_slice(&(order as u64).to_be_bytes());
                        Action::Offer(from, frame)
                    }
                    other => other,
                };
                (nanos(at), action)
            };
            actions.into_iter().enumerate().map(number).collect()
        })
    }
}
