//! The thesis' algorithm 1.
//!
//! A packet begins with the deepest router, first in depth-first order, whose receivers are in no packet yet. From
//! there the tree is walked down to routers with such receivers, and up, but not to the sender: each router whose
//! receivers fit is appended with them. A packet ends when the next do not fit, when it is [long
//! enough](Config::ok), or one address short of its maximum, since a router needs a receiver too.
//!
//! Where the algorithm as printed would start again without end, because the next receivers do not fit, the packet ends
//! here, as in the thesis' second example. Receivers of a router with more than fit any packet are split over several,
//! and fill the packet that is there first, as in the thesis' program.

use std::net::Ipv6Addr;

use super::{Config, Section, Tree};

/// The packets of a tree whose small routers have been [cut](Tree::cut).
pub(super) fn packets(tree: &Tree, config: &Config) -> Vec<Vec<Section>> {
    let mut grouping = DepthFirst::new(tree, config);
    while let Some(start) = grouping.start() {
        grouping.fill(start);
        grouping.finish();
    }
    grouping.packets
}

struct DepthFirst<'a> {
    tree: &'a Tree,
    config: &'a Config,
    /// Of each place, the leaves that are in no packet yet.
    free: Vec<&'a [Ipv6Addr]>,
    /// Their number at each place and below.
    below: Vec<usize>,
    /// The packet that is being filled.
    sections: Vec<Filled>,
    packets: Vec<Vec<Section>>,
}

/// A section of the packet that is being filled.
struct Filled {
    place: usize,
    /// Hops to the router that it began with.
    begun_at: u8,
    receivers: Vec<Ipv6Addr>,
}

impl<'a> DepthFirst<'a> {
    fn new(tree: &'a Tree, config: &'a Config) -> Self {
        // Those of the sender, and of routers with few, go by unicast.
        let free = |(place, it): (usize, &'a super::Place)| match &it.leaves[..] {
            leaves if place != Tree::ROOT && leaves.len() >= config.min_leaves => leaves,
            _ => &[],
        };
        let free: Vec<&[Ipv6Addr]> = tree.places.iter().enumerate().map(free).collect();
        let mut below: Vec<usize> = free.iter().map(|leaves| leaves.len()).collect();
        for place in (1..below.len()).rev() {
            // One that was cut is below its parent still, and has none.
            below[tree.places[place].parent] += below[place];
        }
        Self { tree, config, free, below, sections: Vec::new(), packets: Vec::new() }
    }

    /// The first place below one at which, or below which, receivers are free.
    fn child(&self, place: usize) -> Option<usize> {
        self.tree.places[place].children.iter().copied().find(|&child| self.below[child] > 0)
    }

    /// The router with which a packet begins.
    fn start(&self) -> Option<usize> {
        let mut place = self.child(Tree::ROOT)?;
        while let Some(child) = self.child(place) {
            place = child;
        }
        Some(place)
    }

    /// Fills a packet, beginning with the router at a place.
    fn fill(&mut self, mut place: usize) {
        loop {
            if !self.free[place].is_empty() && self.add(place) {
                return;
            }
            match (self.child(place), self.tree.places[place].parent) {
                (Some(child), _) => place = child,
                (None, Tree::ROOT) => return,
                (None, parent) => place = parent,
            }
        }
    }

    /// Adds the receivers of the router at a place to the packet, if they fit; whether the packet ends then.
    fn add(&mut self, place: usize) -> bool {
        let (max, len) = (self.config.max(), self.len());
        let section = self.section_for(place);
        let room = (max - len).saturating_sub(usize::from(section.is_none()));
        let free = self.free[place].len();
        // Two places for a router and one receiver are the least that a packet begins with.
        let fits = free <= room;
        let must_split = free >= max;
        if !fits && (room == 0 || !(self.config.split || must_split)) {
            return true;
        }
        let taken = self.take(place, free.min(room));
        match section {
            Some((at, head)) => {
                let section = &mut self.sections[at];
                section.place = head;
                section.receivers.extend(taken);
            }
            None => {
                let begun_at = self.tree.places[place].hops;
                self.sections.push(Filled { place, begun_at, receivers: taken.to_vec() });
            }
        }
        let len = self.len();
        !fits || len + 1 >= max || len >= self.config.ok()
    }

    /// The section to which the receivers of a place can be added without another router, and the place whose router
    /// serves it then: one of the same router, or the last one, if a router that both are behind is near enough.
    fn section_for(&self, place: usize) -> Option<(usize, usize)> {
        let router = |place: usize| self.tree.places[place].router;
        let same = self.sections.iter().position(|section| router(section.place) == router(place));
        if let Some(at) = same {
            return Some((at, self.sections[at].place));
        }
        let (last, others) = self.sections.split_last()?;
        let head = self.tree.common(last.place, place);
        let below = |lower: u8, upper: usize| lower.saturating_sub(self.tree.places[upper].hops);
        // The sender is never what they have in common: a packet ends below it. A router may so be farther from the
        // one that serves in the end than the range, which the thesis' figures for `merge` show.
        let is_near = below(last.begun_at, head) <= self.config.merge
            && below(self.tree.places[place].hops, last.place) <= self.config.merge;
        let is_new = others.iter().all(|section| router(section.place) != router(head));
        (self.config.merge > 0 && is_near && is_new).then_some((others.len(), head))
    }

    fn take(&mut self, place: usize, count: usize) -> &'a [Ipv6Addr] {
        let (taken, rest) = self.free[place].split_at(count);
        self.free[place] = rest;
        let mut above = place;
        loop {
            self.below[above] -= count;
            if above == Tree::ROOT {
                return taken;
            }
            above = self.tree.places[above].parent;
        }
    }

    /// Number of addresses in the packet.
    fn len(&self) -> usize {
        self.sections.iter().map(|section| 1 + section.receivers.len()).sum()
    }

    fn finish(&mut self) {
        let section = |Filled { place, receivers, .. }| Section { place, receivers };
        let sections: Vec<Section> = self.sections.drain(..).map(section).collect();
        if !sections.is_empty() {
            self.packets.push(sections);
        }
    }
}
