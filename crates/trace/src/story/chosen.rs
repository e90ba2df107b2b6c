//! The contents of a log that a query chooses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use hopcast_core::Instant;
use hopcast_wire::ethernet::Mac;

use super::IcmpError;
use super::quick::{QuickMap, QuickSet};
use crate::content::{Keys, Layers};
use crate::log::{Content, Event, EventKind, Flow, Layer, Log, Named};
use crate::query::{Query, is_at};

/// Number of places in the sieve of keys. Chosen: it stays in the processor's cache.
const SIEVE: usize = 1 << 16;

/// The contents that a query chooses, and those that are copies of them.
pub(super) struct Chosen<'l> {
    log: &'l Log,
    keys: Vec<Keys>,
    /// The contents that fit the query, each by its first number.
    pub(super) fitting: QuickSet<u32>,
    /// The first number of each followed content: a recorder that has forgotten a content numbers it anew.
    first: QuickMap<(Layer, u32, &'l [u8]), u32>,
    /// The same by number, as far as it was sought; 0 of others.
    first_numbers: Vec<u32>,
    /// The keys of chosen packets, and of those that carry them.
    followed: QuickSet<u64>,
    /// Whether any followed key has these last bits: most contents are told apart by a look at it.
    sieve: Vec<bool>,
    /// Contents without a key that were chosen.
    alone: QuickSet<u32>,
}

/// What all packets of a log say about others.
pub(super) struct Noticed {
    /// The Ethernet addresses that claimed each IPv4 address by ARP, where there are several.
    pub(super) rivals: BTreeMap<Ipv4Addr, BTreeSet<Mac>>,
    /// The first ICMP error about each packet, by its key.
    pub(super) errors: BTreeMap<u64, IcmpError>,
    /// Whether there are fragments.
    pub(super) has_fragments: bool,
}

impl<'l> Chosen<'l> {
    pub(super) fn of(log: &'l Log, query: &Query) -> (Self, Noticed) {
        let mut keys = Vec::with_capacity(log.contents() as usize + 1);
        keys.push(Keys::default());
        let flow = query.flow.as_ref();
        let of_flow = flow.filter(|flow| has_machines_of(log, flow)).map(|flow| contents_of_flow(log, flow));
        let ends = flow.filter(|_| of_flow.is_none()).map(|flow| EndsOfFlow::of(log, flow));
        let at_places = query.places.first().map(|places| contents_at_places(log, places));
        let at_time = query.at.map(|at| contents_at(log, at));
        let mut fitting = Vec::new();
        let mut claims: BTreeMap<Ipv4Addr, BTreeSet<Mac>> = BTreeMap::new();
        let (mut errors, mut has_fragments) = (BTreeMap::new(), false);
        for number in 1..=log.contents() {
            let Some(content) = log.content(number) else { break };
            let layers = Layers::of(content);
            if let Some(arp) = layers.arp.filter(|arp| !arp.sender.address.is_unspecified()) {
                claims.entry(arp.sender.address).or_default().insert(arp.sender.mac);
            }
            if let Some((ip, message)) = layers.ip.zip(layers.icmp).filter(|_| layers.quoted_key != 0) {
                errors.entry(layers.quoted_key).or_insert(IcmpError { by: ip.source, message });
            }
            has_fragments |= layers.fragment.is_some();
            keys.push(layers.keys);
            let fits = query.fits(&layers)
                && query.packet.is_none_or(|packet| packet == number)
                && at_time.as_ref().is_none_or(|contents| contents.contains(&number))
                && at_places.as_ref().is_none_or(|contents| contents.contains(&number))
                && ends.as_ref().is_none_or(|ends| ends.have(&layers));
            if fits {
                fitting.push(number);
            }
        }
        let mut chosen = Self {
            log,
            keys,
            fitting: QuickSet::default(),
            first: QuickMap::default(),
            first_numbers: vec![0; log.contents() as usize + 1],
            followed: QuickSet::default(),
            sieve: vec![false; SIEVE],
            alone: QuickSet::default(),
        };
        if let Some(of_flow) = of_flow {
            let keys: QuickSet<u64> =
                of_flow.iter().flat_map(|&number| chosen.keys_of(number).iter()).collect();
            fitting.retain(|number| {
                of_flow.contains(number) || chosen.keys_of(*number).iter().any(|key| keys.contains(&key))
            });
        }
        for number in fitting {
            chosen.follow(number);
            let first = chosen.first_number(number);
            chosen.fitting.insert(first);
        }
        claims.retain(|_, macs| macs.len() > 1);
        (chosen, Noticed { rivals: claims, errors, has_fragments })
    }

    pub(super) fn keys_of(&self, content: u32) -> Keys {
        self.keys.get(content as usize).copied().unwrap_or_default()
    }

    /// Follows a content and its copies from now on.
    pub(super) fn follow(&mut self, content: u32) {
        let keys = self.keys_of(content);
        let of_datagram = (keys.datagram != 0).then_some(keys.datagram);
        for key in keys.iter().chain(of_datagram) {
            self.followed.insert(key);
            self.sieve[key as usize % SIEVE] = true;
        }
        if keys == Keys::default() {
            self.alone.insert(content);
        }
    }

    pub(super) fn has(&self, content: u32) -> bool {
        if self.first_numbers.get(content as usize).is_some_and(|&first| first != 0) {
            return true;
        }
        let is_followed = |key: u64| self.sieve[key as usize % SIEVE] && self.followed.contains(&key);
        let keys = self.keys_of(content);
        // A key of 0 is followed nowhere.
        keys.iter().chain([keys.datagram]).any(is_followed) || self.alone.contains(&content)
    }

    /// The number by which a content is followed: that of the first followed one with the same bytes.
    pub(super) fn first_number(&mut self, content: u32) -> u32 {
        match self.first_numbers.get(content as usize) {
            Some(&first) if first != 0 => return first,
            Some(_) if self.has(content) => {}
            Some(_) | None => return content,
        }
        let Some(Content { layer, length, bytes }) = self.log.content(content) else { return content };
        let first = *self.first.entry((layer, length, bytes)).or_insert(content);
        self.first_numbers[content as usize] = first;
        first
    }

    /// Whether two contents are copies of one packet.
    pub(super) fn alike(&self, one: u32, other: u32) -> bool {
        let (first, second) = (self.keys_of(one), self.keys_of(other));
        one == other
            || first.packet != 0 && first.packet == second.packet
            || first.payload != 0 && first.payload == second.payload
    }
}

/// The ends of a flow of whose machines a log has nothing, as captures and logs of live runs.
struct EndsOfFlow {
    port: u16,
    from: BTreeSet<IpAddr>,
    to: BTreeSet<IpAddr>,
}

impl EndsOfFlow {
    fn of(log: &Log, flow: &Flow) -> Self {
        let addresses = |names: &[String]| {
            let of_node = |named: &Named| match named {
                Named::Node { name, addresses } if names.contains(name) => addresses.clone(),
                Named::Node { .. } | Named::Group { .. } | Named::Flow(_) => Vec::new(),
            };
            log.named().iter().flat_map(of_node).collect()
        };
        Self { port: flow.port, from: addresses(std::slice::from_ref(&flow.from)), to: addresses(&flow.to) }
    }

    /// Whether a packet has the flow's port, or goes from one end to the other and has no ports.
    fn have(&self, layers: &Layers) -> bool {
        if let Some((source, destination)) = layers.ports {
            let own = self.port..=self.port.saturating_add(1);
            return own.contains(&source) || own.contains(&destination);
        }
        let Some(ip) = layers.ip.filter(|_| !layers.is_icmp_error()) else { return false };
        let is_between = |one: &BTreeSet<IpAddr>, other: &BTreeSet<IpAddr>| {
            one.contains(&ip.source) && other.contains(&ip.destination)
        };
        is_between(&self.from, &self.to) || is_between(&self.to, &self.from)
    }
}

/// The contents that one of these places has received, sent or dropped.
fn contents_at_places(log: &Log, places: &BTreeSet<u32>) -> BTreeSet<u32> {
    log.events().filter(|event| is_at(places, event)).map(|event| event.content).collect()
}

/// Whether a log has what machines of a flow did.
pub(super) fn has_machines_of(log: &Log, flow: &Flow) -> bool {
    log.places().iter().any(|place| place.flow() == Some(&flow.name))
}

/// The contents that machines of a flow handed on.
fn contents_of_flow(log: &Log, flow: &Flow) -> BTreeSet<u32> {
    let of_flow = |event: &Event| {
        matches!(event.kind, EventKind::HandedOn { .. })
            && log.places()[event.place as usize].flow() == Some(&flow.name)
    };
    log.events().filter(of_flow).map(|event| event.content).collect()
}

/// The contents of frames at the time of events that is nearest to this one.
fn contents_at(log: &Log, at: Instant) -> BTreeSet<u32> {
    let is_of_frame = |event: &Event| {
        matches!(
            event.kind,
            EventKind::Offered
                | EventKind::Sent
                | EventKind::Delivered { .. }
                | EventKind::Dropped { .. }
                | EventKind::Seen
        )
    };
    let distance = |event: &Event| event.at.as_nanos().abs_diff(at.as_nanos());
    let Some(least) = log.events().filter(is_of_frame).map(|event| distance(&event)).min() else {
        return BTreeSet::new();
    };
    let nearest = log.events().filter(|event| is_of_frame(event) && distance(event) == least);
    nearest.map(|event| event.content).collect()
}
