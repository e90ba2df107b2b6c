//! The table of originators: by which neighbours its messages come, how good those paths are, and which is the
//! next hop.
//!
//! All of it is kept once for each interface by which a packet may leave, and once for the node's own packets, since a
//! radio that has to send on what it receives is worth less.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use hopcast_core::{Duration, Instant};
use hopcast_wire::ethernet::Mac;
use smallvec::{SmallVec, smallvec};

use super::{OriginatorStatus, Removal, Via};
use crate::address_map::{AddressMap, Slot};
use crate::window::ResetProtection;

/// Time after which a neighbour that sends no messages of an originator is no way there (`BATADV_PURGE_TIMEOUT`).
const NEIGHBOUR_TIMEOUT: Duration = Duration::from_secs(200);
/// Time after which an originator of which no message comes is forgotten.
const ORIGINATOR_TIMEOUT: Duration = Duration::from_secs(400);
/// Maximum number of neighbours by which messages of one originator are taken. Chosen: more stations than hear each
/// other on one channel; beyond, further ones are no next hops to it.
const MAX_NEIGHBOURS: usize = 256;
/// Maximum number of paths to all originators. Chosen: eight to each of as many originators as there are by default, in
/// 4 MB; beyond, further ones are not taken until some are over.
const MAX_PATHS: usize = 32_768;

/// Neighbours of an originator that are kept in its own place of the table, without memory of their own. Chosen: a mesh
/// whose nodes hear eight others.
const FEW: usize = 8;

/// State that a routing algorithm has in the table, and how it compares paths.
pub(crate) trait Algorithm {
    /// State of a neighbour.
    type Neighbour: Default;
    /// State of an originator, for packets that leave by one interface.
    type Out: Clone + Default;
    /// State of the path by a neighbour, for packets that leave by one interface.
    type Path: Clone + Default;

    /// The metric of a path, of which more is better; `None` if no message has come by it.
    fn metric(path: &Self::Path) -> Option<u32>;

    /// Notes that some paths of an originator are gone, and these are left.
    fn keep<'a>(out: &mut Self::Out, paths: impl Iterator<Item = &'a Self::Path>)
    where
        Self::Path: 'a;
}

/// The originators, by their address.
pub(crate) struct Originators<A: Algorithm> {
    entries: AddressMap<Originator<A>>,
    /// Neighbours by which messages of any originator come.
    neighbours: BTreeMap<Via, Neighbour<A::Neighbour>>,
    /// Originators to which there was no route, in the order in which that began. Those that have a route meanwhile are
    /// left out when their turn comes.
    without_route: VecDeque<Mac>,
    /// A time before which nobody can have been silent for too long.
    next_purge: Instant,
    /// Number of candidates of all entries.
    paths: usize,
    outs: usize,
    max: usize,
}

/// A neighbour.
pub(crate) struct Neighbour<T> {
    /// Originator of whose messages it was first heard to be a sender: its own.
    pub(crate) originator: Mac,
    /// Number of originators whose messages come by it.
    entries: usize,
    pub(crate) state: T,
}

pub(crate) struct Originator<A: Algorithm> {
    pub(crate) first_seen: Instant,
    pub(crate) last_seen: Instant,
    /// For each interface by which packets may leave; the last for the node's own.
    pub(crate) outs: SmallVec<[Out<A::Out>; 2]>,
    pub(crate) candidates: SmallVec<[Candidate<A::Path>; FEW]>,
    /// The neighbours of the candidates, beside each other, since each message looks for one.
    vias: SmallVec<[Via; FEW]>,
    /// Whether it is among those without a route.
    listed: bool,
}

/// Messages and next hop of an originator, for packets that leave by one interface.
#[derive(Clone, Debug, Default)]
pub(crate) struct Out<T> {
    pub(crate) newest: u32,
    pub(crate) router: Option<Via>,
    pub(crate) protection: ResetProtection,
    pub(crate) state: T,
}

/// A neighbour by which an originator's messages come, so that it may become the next hop.
pub(crate) struct Candidate<P> {
    pub(crate) via: Via,
    last_seen: Instant,
    /// One for each interface by which packets may leave, and one for the node's own.
    paths: SmallVec<[P; 2]>,
}

impl<A: Algorithm> Originators<A> {
    /// No originators, for this many outs, and at most this many.
    pub(crate) const fn new(outs: usize, max: usize) -> Self {
        Self {
            entries: AddressMap::new(),
            neighbours: BTreeMap::new(),
            without_route: VecDeque::new(),
            next_purge: Instant::ZERO,
            paths: 0,
            outs,
            max,
        }
    }

    #[inline]
    pub(crate) fn get(&self, address: Mac) -> Option<&Originator<A>> {
        self.entries.get(address)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, address: Mac) -> Option<&mut Originator<A>> {
        self.entries.get_mut(address)
    }

    /// Where an originator is in the table, for [`Self::at_mut`], until it is forgotten.
    #[inline]
    pub(crate) fn find(&self, address: Mac) -> Option<Slot> {
        self.entries.find(address)
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, slot: Slot) -> Option<&mut Originator<A>> {
        self.entries.at_mut(slot)
    }

    pub(crate) const fn len(&self) -> usize {
        self.entries.len()
    }

    /// The next hop to an originator for packets that leave by an interface, or for the node's own.
    #[inline]
    pub(crate) fn router(&self, originator: Mac, out: usize) -> Option<Via> {
        self.get(originator)?.outs[out].router
    }

    #[inline]
    pub(crate) fn neighbour(&self, via: Via) -> Option<&Neighbour<A::Neighbour>> {
        self.neighbours.get(&via)
    }

    #[inline]
    pub(crate) fn neighbour_mut(&mut self, via: Via) -> Option<&mut Neighbour<A::Neighbour>> {
        self.neighbours.get_mut(&via)
    }

    /// The neighbours on an interface.
    pub(crate) fn neighbours_on(
        &self,
        interface: usize,
    ) -> impl Iterator<Item = (Via, &Neighbour<A::Neighbour>)> {
        self.neighbours.range(on(interface)).map(|(&via, neighbour)| (via, neighbour))
    }

    /// The same, to be changed.
    pub(crate) fn neighbours_on_mut(
        &mut self,
        interface: usize,
    ) -> impl Iterator<Item = (Via, &mut Neighbour<A::Neighbour>)> {
        self.neighbours.range_mut(on(interface)).map(|(&via, neighbour)| (via, neighbour))
    }

    /// Whether there is a neighbour on an interface who may not have a flooded packet: another one than the originator
    /// and the one from whom it came.
    pub(crate) fn has_receivers(&self, interface: usize, originator: Mac, from: Option<Mac>) -> bool {
        let mut neighbours = self.neighbours_on(interface).map(|(_, neighbour)| neighbour.originator);
        match (neighbours.next(), neighbours.next()) {
            (None, _) => false,
            (Some(only), None) => only != originator && Some(only) != from,
            _ => true,
        }
    }

    /// Where an originator is, which is added if it was not known; `None` if there is no room. If there are as many as
    /// there may be, the one to which there has been no route for longest is forgotten first, and returned.
    #[inline]
    pub(crate) fn ensure(&mut self, now: Instant, address: Mac) -> (Option<Slot>, Option<Mac>) {
        match self.entries.find(address) {
            Some(slot) => (Some(slot), None),
            None => self.add(now, address),
        }
    }

    fn add(&mut self, now: Instant, address: Mac) -> (Option<Slot>, Option<Mac>) {
        let mut forgotten = None;
        if self.entries.len() >= self.max {
            forgotten = self.forget_one();
            if forgotten.is_none() {
                return (None, None);
            }
        }
        let entry = Originator {
            first_seen: now,
            last_seen: now,
            outs: smallvec![Out::default(); self.outs],
            candidates: SmallVec::new(),
            vias: SmallVec::new(),
            listed: true,
        };
        let slot = self.entries.insert(address, entry);
        self.without_route.push_back(address);
        (Some(slot), forgotten)
    }

    /// Forgets the originator to which there has been no route for longest. One that has a route meanwhile is looked at
    /// once.
    fn forget_one(&mut self) -> Option<Mac> {
        while let Some(address) = self.without_route.pop_front() {
            let Some(entry) = self.entries.get_mut(address) else { continue };
            entry.listed = false;
            if entry.outs[self.outs - 1].router.is_none() {
                self.remove(address);
                return Some(address);
            }
        }
        None
    }

    fn remove(&mut self, address: Mac) {
        if let Some(entry) = self.entries.remove(address) {
            self.paths -= entry.candidates.len();
            entry.candidates.iter().for_each(|candidate| unlink(&mut self.neighbours, candidate.via));
        }
    }

    /// The path by a neighbour to an originator that is known, which is made if there is none; `None` if there are too
    /// many.
    pub(crate) fn path(&mut self, now: Instant, address: Mac, via: Via) -> Option<&mut Candidate<A::Path>> {
        let outs = self.outs;
        let entry = self.entries.get_mut(address)?;
        let place = match entry.place(via) {
            Some(place) => place,
            None if entry.candidates.len() >= MAX_NEIGHBOURS || self.paths >= MAX_PATHS => return None,
            None => {
                let new = || Neighbour { originator: address, entries: 0, state: A::Neighbour::default() };
                self.neighbours.entry(via).or_insert_with(new).entries += 1;
                self.paths += 1;
                entry.candidates.push(Candidate {
                    via,
                    last_seen: now,
                    paths: smallvec![A::Path::default(); outs],
                });
                entry.vias.push(via);
                entry.candidates.len() - 1
            }
        };
        Some(&mut entry.candidates[place])
    }

    /// Forgets what has not been heard of for long.
    pub(crate) fn purge(&mut self, now: Instant, mut removed: impl FnMut(Removal)) {
        if now < self.next_purge {
            return;
        }
        let Self { entries, neighbours, without_route, outs, .. } = self;
        let own = *outs - 1;
        // Whoever is heard from now on has longer.
        let mut next = now + NEIGHBOUR_TIMEOUT;
        entries.retain(|address, entry| {
            if entry.last_seen + ORIGINATOR_TIMEOUT <= now {
                entry.candidates.iter().for_each(|candidate| unlink(neighbours, candidate.via));
                removed(Removal::Originator(address));
                return false;
            }
            let before = entry.candidates.len();
            entry.candidates.retain(|candidate| {
                let kept = candidate.last_seen + NEIGHBOUR_TIMEOUT > now;
                match kept {
                    true => next = next.min(candidate.last_seen + NEIGHBOUR_TIMEOUT),
                    false => unlink(neighbours, candidate.via),
                }
                kept
            });
            next = next.min(entry.last_seen + ORIGINATOR_TIMEOUT);
            if entry.candidates.len() < before {
                entry.vias.clear();
                entry.vias.extend(entry.candidates.iter().map(|candidate| candidate.via));
                for out in 0..=own {
                    let paths = entry.candidates.iter().map(|candidate| candidate.path(out));
                    A::keep(&mut entry.outs[out].state, paths);
                    let best = entry.best(out);
                    let before = std::mem::replace(&mut entry.outs[out].router, best);
                    if out == own && before.is_some() && best.is_none() {
                        removed(Removal::Route(address));
                        if !std::mem::replace(&mut entry.listed, true) {
                            without_route.push_back(address);
                        }
                    }
                }
            }
            true
        });
        without_route.retain(|&address| entries.find(address).is_some());
        self.paths = entries.iter().map(|(_, entry)| entry.candidates.len()).sum();
        self.next_purge = next;
    }

    /// The originators to which there is a route.
    pub(crate) fn status(&self) -> Vec<OriginatorStatus> {
        let own = self.outs - 1;
        let reached = self.entries.iter().filter_map(|(originator, entry)| {
            let router = entry.outs[own].router?;
            let others = entry.candidates.iter().filter(|candidate| candidate.via != router);
            let metric = |candidate: &Candidate<A::Path>| A::metric(candidate.path(own));
            Some(OriginatorStatus {
                originator,
                last_seen: entry.last_seen,
                metric: entry.metric(own, router),
                next_hop: router.address,
                interface: router.interface(),
                alternatives: others.filter_map(|other| Some((other.via.address, metric(other)?))).collect(),
            })
        });
        reached.collect()
    }
}

/// Every address on an interface.
const fn on(interface: usize) -> RangeInclusive<Via> {
    Via::new(interface, [0; 6])..=Via::new(interface, [0xff; 6])
}

fn unlink<T>(neighbours: &mut BTreeMap<Via, Neighbour<T>>, via: Via) {
    if let Some(neighbour) = neighbours.get_mut(&via) {
        neighbour.entries -= 1;
        if neighbour.entries == 0 {
            neighbours.remove(&via);
        }
    }
}

impl<A: Algorithm> Originator<A> {
    /// Which candidate a neighbour is.
    #[inline]
    pub(crate) fn place(&self, via: Via) -> Option<usize> {
        self.vias.iter().position(|&other| other == via)
    }

    #[inline]
    pub(crate) fn candidate_mut(&mut self, via: Via) -> Option<&mut Candidate<A::Path>> {
        let place = self.place(via)?;
        self.candidates.get_mut(place)
    }

    /// Metric of the path by a neighbour; 0 if there is none.
    #[inline]
    pub(crate) fn metric(&self, out: usize, via: Via) -> u32 {
        let candidate = self.place(via).map(|place| &self.candidates[place]);
        candidate.and_then(|candidate| A::metric(candidate.path(out))).unwrap_or(0)
    }

    /// The neighbours by which its messages come, with the metric of each path and the time of the last message by it.
    pub(crate) fn heard_by(&self, out: usize) -> impl Iterator<Item = (Via, u32, Instant)> {
        self.candidates.iter().filter_map(move |candidate| {
            A::metric(candidate.path(out)).map(|metric| (candidate.via, metric, candidate.last_seen))
        })
    }

    fn best(&self, out: usize) -> Option<Via> {
        let mut best: Option<(Via, u32)> = None;
        for candidate in &self.candidates {
            if let Some(metric) = A::metric(candidate.path(out))
                && best.is_none_or(|(_, other)| metric > other)
            {
                best = Some((candidate.via, metric));
            }
        }
        best.map(|(via, _)| via)
    }
}

impl<P> Candidate<P> {
    #[inline]
    pub(crate) const fn seen(&mut self, now: Instant) {
        self.last_seen = now;
    }

    #[inline]
    pub(crate) fn out(&mut self, out: usize) -> &mut P {
        &mut self.paths[out]
    }

    #[inline]
    fn path(&self, out: usize) -> &P {
        &self.paths[out]
    }
}
