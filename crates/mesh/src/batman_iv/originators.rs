//! What is known of each originator: by which neighbours its messages come, how good those paths are, and which is the
//! next hop.
//!
//! All of it is kept once for each interface by which a packet may leave, and once for the node's own packets, since a
//! radio that has to send on what it receives is worth less.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};
use hopcast_wire::ethernet::Mac;

use super::tq::Average;
use crate::window::{self, ResetProtection};

/// Time after which a neighbour that sends no messages of an originator is no way there (`BATADV_PURGE_TIMEOUT`).
const NEIGHBOUR_TIMEOUT: Duration = Duration::from_secs(200);
/// Time after which an originator of which no message comes is forgotten.
const ORIGINATOR_TIMEOUT: Duration = Duration::from_secs(400);
/// Maximum number of neighbours by which messages of one originator are taken. Chosen: more stations than hear each
/// other on one channel; beyond, further ones are no next hops to it.
const MAX_NEIGHBOURS: usize = 256;

/// A neighbour, by its address and the interface on which it is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Via {
    pub(crate) interface: usize,
    pub(crate) address: Mac,
}

/// The originators, by their address.
pub(super) struct Originators {
    entries: BTreeMap<Mac, Originator>,
    /// Neighbours by which messages of any originator come, with the number of those originators.
    links: BTreeMap<Via, Link>,
    outs: usize,
    max: usize,
}

/// A neighbour.
struct Link {
    /// Originator of whose messages it was first heard to be a sender: its own.
    originator: Mac,
    entries: usize,
}

pub(super) struct Originator {
    pub(super) last_seen: Instant,
    /// For each interface by which packets may leave; the last for the node's own.
    pub(super) outs: Vec<Out>,
    /// For each interface, the last of the node's own messages that came back from this originator: bit 0 is that of
    /// the message that was sent last.
    pub(super) echoes: Vec<u64>,
    neighbours: Vec<Neighbour>,
}

/// What is known of an originator for packets that leave by one interface.
#[derive(Clone, Debug, Default)]
pub(super) struct Out {
    pub(super) newest: u32,
    pub(super) last_ttl: u8,
    pub(super) router: Option<Via>,
    protection: ResetProtection,
}

/// A neighbour by which an originator's messages come.
pub(super) struct Neighbour {
    via: Via,
    last_seen: Instant,
    outs: Vec<Path>,
}

/// The path by a neighbour.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    /// The last sequence numbers that came by it: bit 0 is that of the newest that came by any.
    pub(super) received: u64,
    pub(super) quality: Average,
}

/// How a message's sequence number was known before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicate {
    No,
    /// It came by another neighbour.
    OfOriginator,
    /// It came by the same neighbour.
    OfNeighbour,
    /// The originator may not have restarted so soon.
    Refused,
}

/// Consequence of a purge or a new table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// There is no next hop to it any more.
    Route(Mac),
    /// It is forgotten.
    Originator(Mac),
}

impl Originators {
    /// No originators, for this many outs, and at most this many.
    pub(super) const fn new(outs: usize, max: usize) -> Self {
        Self { entries: BTreeMap::new(), links: BTreeMap::new(), outs, max }
    }

    #[inline]
    pub(super) fn get(&self, address: Mac) -> Option<&Originator> {
        self.entries.get(&address)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, address: Mac) -> Option<&mut Originator> {
        self.entries.get_mut(&address)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Mac, &Originator)> {
        self.entries.iter().map(|(&address, originator)| (address, originator))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Originator> {
        self.entries.values_mut()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The neighbours on an interface: their addresses, and those of their originators.
    pub(super) fn neighbours_on(&self, interface: usize) -> impl Iterator<Item = (Mac, Mac)> {
        let first = Via { interface, address: [0; 6] };
        let last = Via { interface, address: [0xff; 6] };
        self.links.range(first..=last).map(|(via, link)| (via.address, link.originator))
    }

    /// Whether there is an originator of this address now: it was known, or is. If there are as many as there may be,
    /// the one to which there has been no route for longest is forgotten first, and returned.
    pub(super) fn ensure(&mut self, now: Instant, address: Mac) -> (bool, Option<Mac>) {
        if self.entries.contains_key(&address) {
            return (true, None);
        }
        let mut forgotten = None;
        if self.entries.len() >= self.max {
            let own = self.outs - 1;
            let without_route = self.entries.iter().filter(|(_, entry)| entry.outs[own].router.is_none());
            let oldest = without_route.min_by_key(|(_, entry)| entry.last_seen).map(|(&address, _)| address);
            let Some(oldest) = oldest else { return (false, None) };
            self.remove(oldest);
            forgotten = Some(oldest);
        }
        let entry = Originator {
            last_seen: now,
            outs: vec![Out::default(); self.outs],
            echoes: vec![0; self.outs - 1],
            neighbours: Vec::new(),
        };
        self.entries.insert(address, entry);
        (true, forgotten)
    }

    fn remove(&mut self, address: Mac) {
        if let Some(entry) = self.entries.remove(&address) {
            entry.neighbours.iter().for_each(|neighbour| unlink(&mut self.links, neighbour.via));
        }
    }

    /// The path by a neighbour to an originator that is known, which is made if there is none; `None` if there are too
    /// many.
    pub(super) fn path(&mut self, now: Instant, address: Mac, via: Via) -> Option<&mut Neighbour> {
        let outs = self.outs;
        let entry = self.entries.get_mut(&address)?;
        let place = entry.neighbours.iter().position(|neighbour| neighbour.via == via);
        let place = match place {
            Some(place) => place,
            None if entry.neighbours.len() >= MAX_NEIGHBOURS => return None,
            None => {
                let link = Link { originator: address, entries: 0 };
                self.links.entry(via).or_insert(link).entries += 1;
                entry.neighbours.push(Neighbour { via, last_seen: now, outs: vec![Path::default(); outs] });
                entry.neighbours.len() - 1
            }
        };
        Some(&mut entry.neighbours[place])
    }

    /// Forgets what has not been heard of for long.
    pub(super) fn purge(&mut self, now: Instant, mut removed: impl FnMut(Removal)) {
        let Self { entries, links, outs, .. } = self;
        let own = *outs - 1;
        entries.retain(|&address, entry| {
            if entry.last_seen + ORIGINATOR_TIMEOUT <= now {
                entry.neighbours.iter().for_each(|neighbour| unlink(links, neighbour.via));
                removed(Removal::Originator(address));
                return false;
            }
            let before = entry.neighbours.len();
            entry.neighbours.retain(|neighbour| {
                let kept = neighbour.last_seen + NEIGHBOUR_TIMEOUT > now;
                if !kept {
                    unlink(links, neighbour.via);
                }
                kept
            });
            if entry.neighbours.len() < before {
                for out in 0..=own {
                    let best = entry.best(out);
                    let before = std::mem::replace(&mut entry.outs[out].router, best);
                    if out == own && before.is_some() && best.is_none() {
                        removed(Removal::Route(address));
                    }
                }
            }
            true
        });
    }
}

fn unlink(links: &mut BTreeMap<Via, Link>, via: Via) {
    if let Some(link) = links.get_mut(&via) {
        link.entries -= 1;
        if link.entries == 0 {
            links.remove(&via);
        }
    }
}

impl Originator {
    /// Number of the node's own messages of an interface that came back.
    #[inline]
    pub(super) fn echoed(&self, interface: usize) -> u32 {
        self.echoes[interface].count_ones()
    }

    /// Takes a message's sequence number that came by a neighbour.
    pub(super) fn receive(&mut self, now: Instant, out: usize, seqno: u32, from: Via) -> Duplicate {
        let Self { outs, neighbours, .. } = self;
        let entry = &mut outs[out];
        let ahead = seqno.wrapping_sub(entry.newest).cast_signed();
        if !neighbours.is_empty() && entry.protection.refuses(now, ahead) {
            return Duplicate::Refused;
        }
        let (mut duplicate, mut moved) = (Duplicate::No, false);
        for neighbour in neighbours {
            let path = &mut neighbour.outs[out];
            let by_this = neighbour.via == from;
            if window::contains(path.received, entry.newest, seqno) {
                if by_this {
                    duplicate = Duplicate::OfNeighbour;
                } else if duplicate == Duplicate::No {
                    duplicate = Duplicate::OfOriginator;
                }
            }
            moved |= window::advance(&mut path.received, ahead, by_this);
        }
        if moved {
            entry.newest = seqno;
        }
        duplicate
    }

    /// Notes that a message did not come by any neighbour but one.
    pub(super) fn missed_by_others(&mut self, out: usize, from: Via) {
        let others = self.neighbours.iter_mut().filter(|neighbour| neighbour.via != from);
        others.for_each(|neighbour| neighbour.outs[out].quality.push(0));
    }

    /// Average quality of the path by a neighbour; 0 if there is none.
    #[inline]
    pub(super) fn quality(&self, out: usize, via: Via) -> u8 {
        let neighbour = self.neighbours.iter().find(|neighbour| neighbour.via == via);
        neighbour.map_or(0, |neighbour| neighbour.outs[out].quality.get())
    }

    /// The neighbours by which its messages come, with the average quality of each path.
    pub(super) fn paths(&self, out: usize) -> impl Iterator<Item = (Via, u8)> {
        self.neighbours.iter().map(move |neighbour| (neighbour.via, neighbour.outs[out].quality.get()))
    }

    fn best(&self, out: usize) -> Option<Via> {
        let mut best: Option<(Via, u8)> = None;
        for (via, quality) in self.paths(out) {
            if best.is_none_or(|(_, other)| quality > other) {
                best = Some((via, quality));
            }
        }
        best.map(|(via, _)| via)
    }
}

impl Neighbour {
    #[inline]
    pub(super) const fn seen(&mut self, now: Instant) {
        self.last_seen = now;
    }

    #[inline]
    pub(super) fn out(&mut self, out: usize) -> &mut Path {
        &mut self.outs[out]
    }
}
