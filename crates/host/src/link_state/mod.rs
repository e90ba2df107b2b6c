//! Link-state routing: routers that tell each other of their links, and compute shortest paths over them. Its structure
//! and its defaults are those of OSPF (RFC 2328, RFC 5340), its packets are its own.
//!
//! A router greets the routers on its links by Hello messages, in which it names those that it hears. Two that hear
//! each other *exchange* what they know: each offers the headers of its advertisements, the other requests what it
//! lacks, and sends what it has newer. When all that was offered is acknowledged, the router *originates* an
//! advertisement with the link in it. Each advertisement is *flooded*: whoever receives a newer instance sends it to
//! all of its neighbours, again and again until they acknowledge it. So all routers of an area have the same database,
//! and each computes from it the same shortest paths. A router in several areas, one of them the backbone, says in each
//! what it reaches in the others.
//!
//! - `Below(0)` carries [`Item::Transit`]. Up: the packets that [`HOOKS`] select. Down: messages, with
//!   [`Egress::Group`](hopcast_core::Egress::Group) of one interface.
//!
//! Its routes are in a [`RouteTable`]. One machine serves both versions of IP: its messages are sent by IPv6 where the
//! interface has an address of it, and carry prefixes of both.
//!
//! | file | state |
//! |---|---|
//! | `interface`, `neighbour` | a link: Hellos, who is there, and what each is still to be told |
//! | `areas`, `database` | an area: the advertisements that are known there |
//! | `exchange` | messages about advertisements |
//! | `origin`, `fragments` | the router's own advertisements |
//! | `spf`, `routes`, `throttle` | paths in an area, routes over all of them, and when they are computed |
//! | `table` | the routes |
//! | [`wire`] | the messages |
//!
//! # Bounds
//!
//! [`Config::max_neighbours`] and [`Config::max_advertisements`] bound memory, whatever arrives; what is there stays. A
//! router whose table is full acknowledges nothing new, so that others offer it again. What is sent at once on a link
//! is bounded too, so a forged request costs a part of its rate at most. Nobody is authenticated: who can send on a
//! link can make routes. But a link counts only if both of its ends announce it; an own advertisement that another has
//! made is made again with a higher number; and an advertisement of sequence number 2^32 - 1 is taken back before it
//! begins anew.
//!
//! Of two routers with one identifier on one link the second is not heard (`link_state_refused_identifier`). Farther
//! apart each makes the other's advertisements anew (`link_state_contested`), at intervals that double up to 320 s: in
//! between, routes lead to whichever was last.
//!
//! # Scope and departures
//!
//! - No designated routers: on a link of several routers each is joined to each other, as on OSPF's point-to-multipoint
//!   networks. So media need not let all hear all, and *n* routers cost *n* times *n* entries and each advertisement up
//!   to *n* packets.
//! - The exchange has no states of master and slave: headers are offered again until they are acknowledged.
//! - One path for each prefix: of equal ones that over the first interface.
//! - Summaries list prefixes as they are; no ranges, stub areas, virtual links or external routes. An area that is not
//!   joined to the backbone is reached by nobody outside of it.
//! - A router that stops does not say goodbye, as one that dies.

mod areas;
mod attachments;
mod config;
mod counters;
mod database;
mod exchange;
mod fragments;
mod interface;
mod neighbour;
mod origin;
mod refusal;
mod routes;
mod spf;
mod table;
#[cfg(test)]
mod tests;
mod throttle;
pub mod wire;

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopcast_core::{Hook, Instant, Item, Machine, Port, Stream, Transit, earliest};
use hopcast_wire::ip;

pub use attachments::{Attached, Attachments};
pub use config::{BACKBONE, Config, InterfaceConfig, MAX_NEIGHBOURS};
pub use refusal::Refusal;
pub use table::{FoundRoute, RouteTable};

use crate::prefixes::Prefix;
use areas::Area;
use interface::{Interface, Shared, millis};
use neighbour::{Neighbour, State};
use routes::{Best, Own};
use spf::Hop;
use throttle::Throttle;
use wire::{Hello, Kind, Message};

/// The packets that link-state routing takes out of its host: its messages.
pub const HOOKS: [Hook; 1] = [Hook::Protocol(wire::PROTOCOL)];

/// The link-state routing of a router; see the [module's documentation](self).
pub struct LinkState {
    shared: Shared,
    interfaces: Vec<Interface>,
    areas: BTreeMap<u32, Area>,
    attachments: Box<dyn Attachments>,
    /// The router's own addresses.
    addresses: Vec<IpAddr>,
    /// The version of the attachments that is followed; `None` until the router has started.
    version: Option<u64>,
    /// Whether the router's own links may have changed.
    is_changed: bool,
    throttle: Throttle,
    table: RouteTable,
}

impl LinkState {
    /// The routing of a host, whose interfaces have these settings; those without are as the default. It fills the
    /// table.
    pub fn new(
        config: Config,
        host: &crate::Config,
        interfaces: &[InterfaceConfig],
        attachments: Box<dyn Attachments>,
        table: RouteTable,
        mut random: Stream,
    ) -> Self {
        let router = config.router_id.unwrap_or_else(|| identifier(&host.addresses));
        let of = |number: u32| {
            let settings = interfaces.get(number as usize).copied().unwrap_or_default();
            Interface::new(number, host, settings)
        };
        let interfaces: Vec<Interface> = (0..host.interfaces.len() as u32).map(of).collect();
        let areas = interfaces.iter().map(|one| (one.config.area, Area::new(one.config.area, router)));
        let generation = random.bits() as u32;
        Self {
            areas: areas.collect(),
            shared: Shared {
                config,
                router,
                generation,
                random,
                counters: counters::Counters::default(),
                out: hopcast_core::Outbox::new(),
            },
            interfaces,
            attachments,
            addresses: host.addresses.clone(),
            version: None,
            is_changed: true,
            throttle: Throttle::default(),
            table,
        }
    }

    fn receive(&mut self, now: Instant, transit: &Transit) {
        let counters = &mut self.shared.counters;
        let place = transit.ingress.map(|ingress| ingress as usize);
        let Some(place) = place.filter(|&place| place < self.interfaces.len()) else {
            counters.wrong_items += 1;
            return;
        };
        let Ok(header) = ip::parse(&transit.packet) else { return counters.refuse(Refusal::Truncated) };
        let mut unsound = 0;
        let parsed = wire::parse(&transit.packet, &header, &mut unsound);
        (0..unsound).for_each(|_| counters.refuse(Refusal::Advertisement));
        let packet = match parsed {
            Ok(packet) => packet,
            Err(reason) => return counters.refuse(reason),
        };
        if packet.area != self.interfaces[place].config.area {
            return counters.refuse(Refusal::Area);
        }
        if packet.router == self.shared.router {
            return counters.refuse(Refusal::Identifier);
        }
        let from = (place, packet.router);
        match packet.message {
            Message::Hello(hello) => self.hear_hello(now, from, header.source, &hello),
            message => {
                let known = self.interfaces[place].neighbours.get(&packet.router);
                if known.is_some_and(|one| one.is_two_way() && one.source == header.source) {
                    self.hear(now, from, message);
                } else {
                    self.shared.counters.refuse(Refusal::Stranger);
                }
            }
        }
    }

    fn hear_hello(&mut self, now: Instant, (place, router): (usize, u32), source: IpAddr, hello: &Hello) {
        let Shared { config, counters, .. } = &mut self.shared;
        counters.hellos_heard += 1;
        if (hello.interval, hello.dead) != (millis(config.hello_interval), millis(config.dead_interval)) {
            return counters.refuse(Refusal::Timers);
        }
        let interface = &mut self.interfaces[place];
        if !interface.is_up {
            return;
        }
        let (until, is_full) =
            (now + config.dead_interval, interface.neighbours.len() >= config.max_neighbours);
        let known = interface.neighbours.get(&router);
        if known.is_some_and(|one| one.source != source) {
            return counters.refuse(Refusal::Identifier);
        }
        let is_new = known.is_none();
        if is_new && is_full {
            return counters.refuse(Refusal::Neighbours);
        }
        let known = interface.neighbours.entry(router);
        let neighbour = known.or_insert_with(|| Neighbour::new(source, hello.generation, until));
        let hears = hello.heard.contains(&self.shared.router);
        let has_restarted = neighbour.generation != hello.generation;
        self.is_changed |= neighbour.gateways != hello.addresses;
        neighbour.until = until;
        neighbour.gateways = hello.addresses;
        neighbour.generation = hello.generation;
        let was_two_way = neighbour.is_two_way();
        if was_two_way && (has_restarted || !hears) {
            neighbour.reset();
            self.shared.counters.neighbours_lost += 1;
            self.is_changed = true;
        }
        let begins = hears && !neighbour.is_two_way();
        if is_new || begins || (was_two_way && !hears) {
            // It is to hear that it is heard before it is told anything.
            let at = interface.greet_soon(now);
            if begins && let Some(neighbour) = interface.neighbours.get_mut(&router) {
                self.shared.counters.neighbours_found += 1;
                let area = self.areas.get(&interface.config.area);
                neighbour.begin(area.into_iter().flat_map(|area| area.database.keys()), at);
            }
        }
    }

    /// Follows the links of the router: those that are up, and what is attached to them.
    fn follow_links(&mut self, now: Instant) {
        let version = self.attachments.version();
        let before = self.version.replace(version);
        if before == Some(version) {
            return;
        }
        for (number, interface) in (0..).zip(&mut self.interfaces) {
            let has_carrier = !self.shared.config.carrier || self.attachments.is_up(number);
            // Without an address it has nothing to answer with.
            let is_up = has_carrier && interface.own.is_some();
            let was_up = before.is_some() && interface.is_up;
            match (was_up, is_up) {
                (false, true) => interface.start(now, &mut self.shared.random),
                (true, false) => self.shared.counters.neighbours_lost += interface.stop(),
                (false, false) => interface.is_up = false,
                (true, true) => continue,
            }
            self.is_changed |= is_up != was_up;
        }
    }

    /// Says anew what the router's own links are.
    fn describe_links(&mut self, now: Instant) {
        let (config, is_border) = (&self.shared.config, areas::joins(&self.areas));
        let attached = self.attachments.attached();
        for (&number, area) in &mut self.areas {
            let mut links: BTreeMap<u32, u16> = BTreeMap::new();
            for interface in self.interfaces.iter().filter(|one| one.config.area == number) {
                for (router, _) in interface.full() {
                    let cost = links.entry(router).or_insert(u16::MAX);
                    *cost = interface.config.cost.min(*cost);
                }
            }
            area.origins.want_links(now, config, is_border, &links);
            area.own = self.addresses.iter().map(|&own| (Prefix::of(own), 0)).collect();
            for one in &attached {
                let interface = self.interfaces.get(one.interface as usize);
                let interface = interface.filter(|found| found.is_up && found.config.area == number);
                let Some(interface) = interface else { continue };
                let metric = area.own.entry(one.to).or_insert(u32::MAX);
                *metric = u32::from(interface.config.cost).min(*metric);
            }
            area.origins.want_prefixes(now, config, Kind::Prefixes, &area.own);
        }
        self.throttle.request(now, config);
    }

    /// Computes the routes, and what is said of them in other areas.
    fn compute(&mut self, now: Instant) {
        self.shared.counters.computations += 1;
        let of_area = |(&number, area): (&u32, &'_ Area)| {
            let mut neighbours: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
            for (place, interface) in (0..).zip(&self.interfaces) {
                for (router, _) in interface.full().filter(|_| interface.config.area == number) {
                    let new = (u32::from(interface.config.cost), place);
                    let known = neighbours.entry(router).or_insert(new);
                    *known = new.min(*known);
                }
            }
            spf::paths(&area.database, self.shared.router, &neighbours)
        };
        let reached: Vec<_> = self.areas.iter().map(of_area).collect();
        let areas = self.areas.iter().zip(reached).map(|((&number, Area { database, own, .. }), reached)| {
            (number, routes::Area { database, reached, own })
        });
        let joins = areas::joins(&self.areas);
        let best = routes::best(&areas.collect(), joins);
        self.shared.counters.route_changes += u64::from(self.table.replace(&self.found(&best)));
        for (&number, area) in &mut self.areas {
            let said = if joins { routes::summary(&best, number, &area.own) } else { Own::new() };
            area.origins.want_prefixes(now, &self.shared.config, Kind::Summary, &said);
        }
    }

    /// The routes as the host has them.
    fn found(&self, best: &BTreeMap<Prefix, Best>) -> BTreeMap<Prefix, FoundRoute> {
        let mut found = BTreeMap::new();
        for (&to, one) in best {
            let Some(Hop { interface, neighbour }) = one.hop else { continue };
            let next = self.interfaces.get(interface as usize).and_then(|one| one.neighbours.get(&neighbour));
            let gateway = next.and_then(|next| next.gateways[usize::from(to.first().is_ipv6())]);
            found.extend(gateway.map(|gateway| (to, FoundRoute { interface, gateway })));
        }
        let mut attached = self.attachments.attached();
        // Of several interfaces to a host the first of the lowest cost.
        attached.sort_by_key(|one| self.interfaces.get(one.interface as usize).map(|one| one.config.cost));
        for one in attached {
            let is_up = self.interfaces.get(one.interface as usize).is_some_and(|found| found.is_up);
            let is_nearest = best.get(&one.to).is_some_and(|best| best.hop.is_none());
            if let Some(gateway) = one.gateway.filter(|_| is_up && is_nearest) {
                found.entry(one.to).or_insert(FoundRoute { interface: one.interface, gateway });
            }
        }
        found
    }

    /// Lets everything follow, and sends what is due.
    fn settle(&mut self, now: Instant) {
        for neighbour in self.interfaces.iter_mut().flat_map(|one| one.neighbours.values_mut()) {
            self.is_changed |= neighbour.becomes_full();
        }
        if std::mem::take(&mut self.is_changed) {
            self.describe_links(now);
        }
        if self.throttle.is_due(now, &self.shared.config) {
            self.compute(now);
        }
        for area in self.areas.values_mut() {
            area.wake(now, &mut self.interfaces, &mut self.shared);
            // What has been forgotten may begin anew at once.
            if area.forget(now, &self.interfaces) {
                area.wake(now, &mut self.interfaces, &mut self.shared);
            }
            if std::mem::take(&mut area.is_changed) {
                self.throttle.request(now, &self.shared.config);
            }
        }
        for interface in self.interfaces.iter_mut().filter(|one| one.is_up) {
            if let Some(area) = self.areas.get(&interface.config.area) {
                interface.flush(now, &area.database, &mut self.shared);
            }
        }
    }
}

/// The identifier of a router with these addresses: the bits of the first of IPv4, or else the last of the first of
/// IPv6.
fn identifier(addresses: &[IpAddr]) -> u32 {
    let v4 = |address: &IpAddr| if let IpAddr::V4(own) = address { Some(own.to_bits()) } else { None };
    let v6 = |address: &IpAddr| if let IpAddr::V6(own) = address { Some(own.to_bits() as u32) } else { None };
    addresses.iter().find_map(v4).or_else(|| addresses.iter().find_map(v6)).unwrap_or(0)
}

/// The host of a router that stops forwards no longer by what it has found.
impl Drop for LinkState {
    fn drop(&mut self) {
        self.table.replace(&BTreeMap::new());
    }
}

impl Machine for LinkState {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.wake(now);
        match (port, item) {
            (Port::Below(_), Item::Transit(transit)) => {
                self.receive(now, &transit);
                transit.packet.recycle();
            }
            _ => self.shared.counters.wrong_items += 1,
        }
        self.settle(now);
    }

    fn wake(&mut self, now: Instant) {
        self.follow_links(now);
        for interface in &mut self.interfaces {
            let lost = interface.expire(now);
            self.shared.counters.neighbours_lost += lost;
            self.is_changed |= lost > 0;
        }
        self.settle(now);
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.shared.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        if self.version.is_none() {
            return Some(Instant::ZERO);
        }
        let interfaces = self.interfaces.iter().filter_map(Interface::deadline).min();
        let areas = self.areas.values().filter_map(Area::deadline).min();
        earliest(earliest(interfaces, areas), self.throttle.deadline())
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.shared.counters.report(report);
    }
}
