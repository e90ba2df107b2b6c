//! A segment on a shared medium in virtual time, with traffic at both ends.

use std::collections::BTreeMap;

use hopcast_core::{Assembly, Duration, Fraction, Frame, Instant, Item, Machine, Port, Rate, Seed, Slot};
use hopcast_link::{
    Change, Csma, Direction, Event, Link, Loss, Mac as Access, Medium, MediumConfig, PairLoss, Queue,
    QueueLimit, Station,
};
use hopcast_wire::ethernet::Mac;

use crate::franc::{self, Config};

/// Time that a frame costs the medium beyond its bits, so that TCP without loss gets 7.0 Mbit/s at 12 Mbit/s.
const OVERHEAD: Duration = Duration::from_micros(150);

/// Maximum number of packets that an interface queues: as much as a driver does, lest what is measured is the queue.
const INTERFACE: u32 = 100;

pub(super) fn mac(station: usize) -> Mac {
    [2, 0, 0, 0, 0, station as u8]
}

pub(super) fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// 802.11 at 12 Mbit/s, as the paper measured it.
pub(super) fn csma() -> Csma {
    Csma { overhead: OVERHEAD, ..Csma::default() }
}

/// Losses between stations, alike in both directions.
pub(super) fn symmetric(losses: &[(usize, usize, f64)]) -> Vec<PairLoss> {
    let pair =
        |from, to, share| PairLoss { from, to, loss: Loss::Independent(Fraction::new(share).unwrap()) };
    losses.iter().flat_map(|&(a, b, share)| [pair(a, b, share), pair(b, a, share)]).collect()
}

/// Stations on a medium; each is an assembly whose `Below` ports all hear what the station hears.
pub(super) struct Net {
    pub(super) link: Medium,
    /// With the lowest machine of each.
    nodes: Vec<Vec<(Assembly, Slot)>>,
    pub(super) now: Instant,
}

impl Net {
    pub(super) fn new(stations: usize, pairs: Vec<PairLoss>, csma: Csma, seed: u64) -> Self {
        let station = |i| Station { address: mac(i), promiscuous: true, echo: true };
        let queue = Queue::DropTail { limit: QueueLimit::Packets(INTERFACE) };
        Self::on(
            MediumConfig {
                direction: Direction { rate: Some(Rate::from_mbit(12)), queue, ..Direction::default() },
                stations: (0..stations).map(station).collect(),
                mac: Access::Csma(csma),
                pairs,
                hears: None,
                radios: None,
            },
            seed,
        )
    }

    pub(super) fn on(config: MediumConfig, seed: u64) -> Self {
        let (seed, stations) = (Seed::new(seed, 0), config.stations.len());
        let stream = |a: usize, b: usize| seed.stream(&["air", &a.to_string(), &b.to_string()], 0);
        Self {
            link: Medium::new(config, stream, &seed),
            nodes: (0..stations).map(|_| Vec::new()).collect(),
            now: Instant::ZERO,
        }
    }

    /// Puts `machines` on a station, one on top of the other; gives the place.
    pub(super) fn add(&mut self, station: usize, machines: Vec<Box<dyn Machine>>) -> usize {
        let mut assembly = Assembly::new();
        let mut machines =
            machines.into_iter().map(|machine| assembly.add(machine)).collect::<Vec<_>>().into_iter();
        let lowest = machines.next().unwrap();
        assembly.expose((lowest, Port::Below(0)), Port::Below(0));
        machines.fold(lowest, |below, slot| {
            assembly.wire((below, Port::Above(0)), (slot, Port::Below(0)));
            slot
        });
        self.nodes[station].push((assembly, lowest));
        self.nodes[station].len() - 1
    }

    /// The machines at this place are gone, and others there.
    pub(super) fn replace(&mut self, station: usize, place: usize, machines: Vec<Box<dyn Machine>>) {
        self.add(station, machines);
        self.nodes[station].swap_remove(place);
    }

    /// The counters of the lowest machine at a place.
    pub(super) fn counters(&self, station: usize, place: usize) -> BTreeMap<&'static str, u64> {
        let mut counters = BTreeMap::new();
        let (assembly, lowest) = &self.nodes[station][place];
        assembly.machine(*lowest).counters(&mut |name, value| {
            counters.insert(name, value);
        });
        counters
    }

    /// From now on the pair loses this share, both ways.
    pub(super) fn change_loss(&mut self, (a, b): (usize, usize), share: f64) {
        let loss = Loss::Independent(Fraction::new(share).unwrap());
        self.link.change(self.now, Some(a), &Change::LossTo(b, loss.clone()));
        self.link.change(self.now, Some(b), &Change::LossTo(a, loss));
    }

    pub(super) fn run(&mut self, until: Instant) {
        loop {
            let nodes = self.nodes.iter().flatten().filter_map(|(node, _)| node.deadline());
            let Some(next) = nodes.chain(self.link.deadline()).min().filter(|&next| next <= until) else {
                break;
            };
            self.now = self.now.max(next);
            let now = self.now;
            if self.link.deadline().is_some_and(|at| at <= now) {
                self.link.wake(now);
            }
            self.hear();
            for station in 0..self.nodes.len() {
                for place in 0..self.nodes[station].len() {
                    if self.nodes[station][place].0.deadline().is_some_and(|at| at <= now) {
                        self.nodes[station][place].0.wake(now);
                        self.drain(station, place);
                        let after = self.nodes[station][place].0.deadline();
                        assert!(after.is_none_or(|at| at > now), "a deadline that has passed");
                    }
                }
            }
            self.hear();
        }
        self.now = until;
    }

    fn hear(&mut self) {
        while let Some(event) = self.link.poll(self.now) {
            if let Event::Delivered { to, frame, overheard, .. } = event {
                for place in 0..self.nodes[to].len() {
                    let frame = Frame { overheard, ..Frame::new(frame.clone()) };
                    self.nodes[to][place].0.handle(self.now, Port::Below(0), Item::Frame(frame));
                    self.drain(to, place);
                }
            }
        }
    }

    fn drain(&mut self, station: usize, place: usize) {
        while let Some((_, item)) = self.nodes[station][place].0.poll(self.now) {
            if let Item::Frame(frame) = item {
                self.link.offer(self.now, station, frame.bytes);
            }
        }
    }
}

/// An edge at `station` towards `peer`.
pub(super) fn edge(config: &Config, station: usize, peer: usize, seed: u64) -> Box<dyn Machine> {
    let random = Seed::new(seed, 0).stream(&["edge", &station.to_string(), &peer.to_string()], 0);
    franc::edge(config.clone(), mac(station), mac(peer), random).unwrap()
}

pub(super) fn helper(config: &Config, station: usize, ends: [usize; 2], seed: u64) -> Box<dyn Machine> {
    let random = Seed::new(seed, 0).stream(&["helper", &station.to_string()], 0);
    franc::helper(config.clone(), mac(station), ends.map(mac), random).unwrap()
}
