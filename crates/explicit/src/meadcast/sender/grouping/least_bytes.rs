//! Grouping by bytes: few on the links of the tree, each of which is a MEADcast hop.
//!
//! A copy of a packet costs its length on each link that it crosses. What the packets cost together depends on the form
//! of lists, which [`Form`] says; with short lists that are split where the tree parts, it is the number of packets on
//! each link, and what receivers' addresses take is the same whatever packet they are in.
//!
//! 1. **Who serves.** Each receiver is served by the last router on its path. One that is alone there is served by the
//!    first router before it that others are behind too: from there a plain packet crosses the same links as a copy
//!    with a list would, and is shorter.
//! 2. **Which packet.** From the leaves to the sender, at each router the packets that come from below are combined,
//!    the longest first, each with the one in which it leaves the least room (best fit decreasing, Johnson 1973), as
//!    long as that saves bytes. Below a router they would have shared no link, and above it they share all.
//!
//! The least number of packets on a link is that of the bins that its receivers need, so the result is at most as far
//! from the best as that of best fit decreasing is, which uses 11/9 of the least bins and a few; tests compare it with
//! all groupings of small trees. Receivers of a router are split only if they fit no packet together. A packet for one
//! receiver is sent by unicast.
//!
//! Work grows with the number of receivers and the depth of the tree: a packet is compared with a bounded number of
//! others at a router, and full ones are not looked at again.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use hopcast_wire::{ip, udp};

use super::{Config, Section, Tree};
use crate::meadcast::wire::{FIXED, short};

/// Maximum number of packets that one is compared with: the shortest, which have the most room. With fewer, some that
/// would fit are not found; with more, grouping takes longer where lists are whole and do not fill their packets.
const MAX_CANDIDATES: usize = 64;

/// The packets of a tree.
pub(super) fn packets(tree: &Tree, config: &Config, source: Ipv6Addr) -> Vec<Vec<Section>> {
    let served = served(tree);
    let sizes = Sizes::new(tree, config, source);
    let form = Form::new(config);
    let mut done = Vec::new();
    let mut waiting: Vec<Vec<Packet>> = vec![Vec::new(); tree.places.len()];
    // A place is created behind the one that it is below.
    for place in (1..tree.places.len()).rev() {
        let it = &tree.places[place];
        let hops = u32::from(it.hops);
        let mut bins = std::mem::take(&mut waiting[place]);
        let mut own = sizes.pieces(place, &served[place], hops);
        if !(own.is_empty() && it.children.len() < 2) {
            own.append(&mut bins);
            bins = combine(own, &sizes, &form, hops);
        }
        // A packet without room for another section stays as it is.
        let above = it.parent;
        for packet in bins {
            match above != Tree::ROOT && sizes.has_room(&packet) {
                true => waiting[above].push(packet),
                false => done.push(packet),
            }
        }
    }
    done.into_iter().filter(|packet| packet.receivers > 1).map(|packet| packet.sections).collect()
}

/// Receivers of each place, by the router that serves them.
fn served(tree: &Tree) -> Vec<Vec<Ipv6Addr>> {
    let mut below: Vec<usize> = tree.places.iter().map(|place| place.leaves.len()).collect();
    for place in (1..below.len()).rev() {
        below[tree.places[place].parent] += below[place];
    }
    // A router that is at several places, while routes change, is listed at one.
    let mut homes = BTreeMap::new();
    for (place, it) in tree.places.iter().enumerate().skip(1) {
        homes.entry(it.router).or_insert(place);
    }
    let mut served = vec![Vec::new(); tree.places.len()];
    for (place, it) in tree.places.iter().enumerate().skip(1) {
        let mut head = place;
        while head != Tree::ROOT && below[head] == 1 {
            head = tree.places[head].parent;
        }
        // One that is alone on its whole path is served by unicast.
        if head != Tree::ROOT {
            let home = homes.get(&tree.places[head].router).copied().unwrap_or(head);
            served[home].extend(&it.leaves);
        }
    }
    served
}

/// Packets from below a place, and of it, as few of them as is worth it.
fn combine(mut packets: Vec<Packet>, sizes: &Sizes<'_>, form: &Form, hops: u32) -> Vec<Packet> {
    packets.sort_by_key(|packet| std::cmp::Reverse(packet.bytes));
    let mut full = Vec::new();
    let mut bins: Vec<Packet> = Vec::new();
    for packet in packets {
        let last = bins.iter().enumerate().rev().take(MAX_CANDIDATES);
        let candidates = last.filter(|(_, bin)| sizes.fit(bin, &packet));
        let gain = |bin: &Packet| form.gain(bin, &packet, hops);
        let best = candidates
            .map(|(at, bin)| (gain(bin), bin.bytes, at))
            .filter(|&(gain, ..)| gain > 0)
            .max_by_key(|&(gain, bytes, at)| (gain, bytes, usize::MAX - at));
        let Some((.., at)) = best else {
            bins.push(packet);
            continue;
        };
        bins[at].absorb(packet, hops);
        if !sizes.has_room(&bins[at]) {
            full.push(bins.swap_remove(at));
        }
    }
    full.append(&mut bins);
    full
}

/// A packet that is being put together.
#[derive(Clone, Debug)]
struct Packet {
    sections: Vec<Section>,
    /// Number of receivers, and of addresses with those of routers.
    receivers: usize,
    addresses: usize,
    /// Bytes of the list.
    bytes: usize,
    /// Distance at which the paths of its sections part.
    common: u32,
    /// Sum of the distances of its sections.
    distances: u32,
    /// Whether it has a part of the receivers of a router.
    is_cut: bool,
}

impl Packet {
    fn absorb(&mut self, mut other: Self, hops: u32) {
        self.sections.append(&mut other.sections);
        self.receivers += other.receivers;
        self.addresses += other.addresses;
        self.bytes += other.bytes;
        self.distances += other.distances;
        self.common = hops;
        self.is_cut |= other.is_cut;
    }
}

/// Lengths of lists.
struct Sizes<'a> {
    tree: &'a Tree,
    /// Maximum number of addresses in a list, and of its bytes.
    max_addresses: usize,
    max_bytes: usize,
    /// Leading bytes that all routers and the sender have in common, of short lists.
    common: Option<usize>,
    /// Bytes of the shortest section.
    shortest: usize,
}

impl<'a> Sizes<'a> {
    fn new(tree: &'a Tree, config: &Config, source: Ipv6Addr) -> Self {
        let routers = tree.places.iter().skip(1).map(|place| place.router.octets());
        let with_source = routers.map(|router| short::shared(&source.octets(), &router)).min().unwrap_or(0);
        let fixed = if config.short_lists { short::FIXED } else { FIXED };
        Self {
            tree,
            max_addresses: config.max(),
            max_bytes: config.longest_header() - fixed,
            common: config.short_lists.then_some(with_source),
            // A router and a receiver, each but for what it has in common with others.
            shortest: if config.short_lists { 2 * (short::SECTION + 1) } else { 32 },
        }
    }

    fn fit(&self, one: &Packet, other: &Packet) -> bool {
        one.addresses + other.addresses <= self.max_addresses
            && one.bytes + other.bytes <= self.max_bytes
            && !self.have_one_router(one, other)
    }

    /// Whether two packets have sections of one router, which a list may have once: one section of all its receivers
    /// may be longer than the two.
    fn have_one_router(&self, one: &Packet, other: &Packet) -> bool {
        let router = |section: &Section| self.tree.places[section.place].router;
        one.is_cut
            && other.is_cut
            && one.sections.iter().any(|ours| other.sections.iter().any(|its| router(ours) == router(its)))
    }

    fn has_room(&self, packet: &Packet) -> bool {
        packet.addresses + 2 <= self.max_addresses && packet.bytes + self.shortest <= self.max_bytes
    }

    /// Packets of one section each with the receivers of a place, as many as they need.
    fn pieces(&self, place: usize, receivers: &[Ipv6Addr], hops: u32) -> Vec<Packet> {
        let mut sorted = receivers.to_vec();
        if self.common.is_some() {
            sorted.sort_unstable();
        }
        let mut rest = &sorted[..];
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            let longest = rest.len().min(self.max_addresses - 1);
            // The length grows with the number of receivers.
            let fitting = (1..=longest).collect::<Vec<_>>();
            let count =
                fitting.partition_point(|&count| self.section(place, &rest[..count]) <= self.max_bytes);
            let (taken, behind) = rest.split_at(count.max(1));
            rest = behind;
            pieces.push(Packet {
                sections: vec![Section { place, receivers: taken.to_vec() }],
                receivers: taken.len(),
                addresses: taken.len() + 1,
                bytes: self.section(place, taken),
                common: hops,
                distances: hops,
                is_cut: taken.len() < sorted.len(),
            });
        }
        pieces
    }

    /// Bytes of a section, wherever it is in a list.
    fn section(&self, place: usize, receivers: &[Ipv6Addr]) -> usize {
        let Some(common) = self.common else { return 16 * (1 + receivers.len()) };
        let router = self.tree.places[place].router.octets();
        let octets: Vec<[u8; 16]> = receivers.iter().map(Ipv6Addr::octets).collect();
        let section = short::Section { branch: 0, router: &router, receivers: &octets };
        // Behind its own router it is as if nothing of the router's address had to be written.
        short::sections_len(&router, [section].into_iter()) + short::shared(&router, &router) - common
    }
}

/// The lengths of packets on links, by the form of their lists.
struct Form {
    /// Bytes of a plain packet.
    plain: usize,
    fixed: usize,
    is_short: bool,
    hold: bool,
}

impl Form {
    const fn new(config: &Config) -> Self {
        let fixed = if config.short_lists { short::FIXED } else { FIXED };
        let plain = config.payload + udp::HEADER + ip::V6_HEADER;
        Self { plain, fixed, is_short: config.short_lists, hold: config.hold }
    }

    /// Bytes on links that are saved if two packets become one whose sections part at this distance.
    fn gain(&self, one: &Packet, other: &Packet, hops: u32) -> i64 {
        if self.is_short {
            // Each section's bytes cross the same links in any packet; the rest is once on those that are shared.
            let shared = if self.hold { hops } else { 1 };
            return i64::from(shared) * (self.plain + self.fixed) as i64;
        }
        let both = self.cost(
            one.sections.len() + other.sections.len(),
            one.receivers + other.receivers,
            one.bytes + other.bytes,
            hops,
            one.distances + other.distances,
        );
        let alone =
            |it: &Packet| self.cost(it.sections.len(), it.receivers, it.bytes, it.common, it.distances);
        alone(one) + alone(other) - both
    }

    /// Bytes on links of a packet with whole lists: each copy has all of it.
    fn cost(&self, sections: usize, receivers: usize, bytes: usize, common: u32, distances: u32) -> i64 {
        if receivers == 1 {
            return (self.plain as u32 * distances).into();
        }
        let first = if self.hold { common } else { common.min(1) };
        let copies = i64::from(first) + i64::from(distances) - sections as i64 * i64::from(first);
        copies * (self.plain + self.fixed + bytes) as i64
    }
}
