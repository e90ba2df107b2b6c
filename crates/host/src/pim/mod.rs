//! A router's side of multicast routing: PIM-SM for source trees alone (RFC 7761, 4607), for IPv4 and IPv6.
//!
//! A *channel* is a source and a group. Its packets come to each router that wants them from the neighbour through
//! which the router would reach the source: the tree is made of reverse paths. A router that has members of a channel,
//! as the [queriers](crate::querier) of its links report, sends a Join to that neighbour, which forwards to the link
//! from then on and joins at its own. Joins are repeated, since they expire; a router that wants no more sends a Prune,
//! and on a link of several routers another that still does overrides it with a Join. Where two routers forward the
//! same packets to one link, they hear each other's, and the nearer to the source remains (Assert). Routers know each
//! other by Hello messages.
//!
//! - `Below(0)` carries [`Item::Transit`]. Up: the packets that [`HOOKS`] select. Down: messages, with
//!   [`Egress::Group`](hopcast_core::Egress::Group) of one interface.
//! - `Above(n)`, of any number, carries [`Item::Membership`], down from nowhere and into this machine: the memberships
//!   that a querier reports, which have their interfaces.
//!
//! Its routes are in a [`GroupTable`], by which the host forwards. The way to a source is looked up in the host's
//! unicast [`Routes`], again whenever they have changed.
//!
//! | file | state |
//! |---|---|
//! | `links` | an interface in an IP version: when to say Hello, and what is to be said to whom |
//! | `neighbours` | the other routers there, the designated router, and the delays that all allow for |
//! | `tree` | one channel: how its parts follow one another |
//! | `downstream`, `assert` | one interface of it: whether routers have joined; who forwards |
//! | `table` | the routes |
//! | [`wire`] | the messages |
//!
//! # Bounds
//!
//! [`Config::max_neighbours`] and [`Config::max_routes`] bound memory, whatever arrives; what is there stays. Members
//! for which there is no room wait until there is, as many as the queriers report. A Hello makes one Hello, up to a
//! random delay later; an Assert makes at most one Assert; a Join and a Prune make at most one entry of a message
//! upstream. Nobody is authenticated: on a link whose stations are not trusted, a forged Hello makes a designated
//! router, and a forged Assert takes a link's packets away for three minutes. Only a router that has said Hello is
//! heard otherwise.
//!
//! # Scope and departures
//!
//! - No shared trees, and so no Register, Bootstrap or rendezvous points: a membership of any source is counted, and
//!   has no effect (section 4.8.2). Groups need not be of the source-specific range.
//! - SPTbit is not kept: without shared trees, packets come by the source's tree or not at all.
//! - Joins are always suppressed where others have sent the same: the T bit of LAN Prune Delay is never set.
//! - A holdtime of *for ever* in a Join is 18 hours, so that no forged one fills the table until the end.
//! - A router that stops does not say goodbye, as one that dies.

mod assert;
mod config;
mod counters;
mod downstream;
mod links;
mod neighbours;
mod refusal;
mod table;
#[cfg(test)]
mod tests;
mod tree;
pub mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use hopcast_core::{
    Agenda, Duration, Hook, Instant, Item, Machine, Membership, Port, Stream, Transit, earliest,
};
use hopcast_wire::ip::{self, Version};

pub use config::Config;
pub use refusal::Refusal;
pub use table::GroupTable;

use crate::routes::Routes;
use links::Links;
use neighbours::{Distance, Heard};
use tree::{Rpf, Tree};
use wire::{Assert, Hello, JoinPrune, Message};

/// The packets that PIM takes out of its host: its messages, and packets to groups that arrive where the router itself
/// forwards them to.
pub const HOOKS: [Hook; 2] = [Hook::Protocol(wire::PROTOCOL), Hook::WrongInterface];

/// A source and a group.
type Channel = (IpAddr, IpAddr);

/// The PIM of a router; see the [module's documentation](self).
pub struct Pim {
    links: Links,
    trees: BTreeMap<Channel, Tree>,
    /// Interfaces with members of channels that have no tree for want of room.
    waiting: BTreeMap<Channel, BTreeSet<u32>>,
    /// Time of the next action for each tree.
    agenda: Agenda<Channel>,
    table: GroupTable,
    routes: Box<dyn Routes>,
    /// The version of the routes that trees follow.
    version: u64,
    /// Time at which to look at the routes; `None` until the router has started.
    check_at: Option<Instant>,
}

impl Pim {
    /// The PIM of a host, whose unicast routes are these. It fills the table.
    pub fn new(
        config: Config,
        host: &crate::Config,
        routes: Box<dyn Routes>,
        table: GroupTable,
        random: Stream,
    ) -> Self {
        let version = routes.version();
        let links = Links::new(config, host, random);
        Self {
            links,
            trees: BTreeMap::new(),
            waiting: BTreeMap::new(),
            agenda: Agenda::new(),
            table,
            routes,
            version,
            check_at: None,
        }
    }

    /// Whether the router is the designated one of an interface.
    #[cfg(test)]
    fn is_designated(&self, interface: u32, version: Version) -> bool {
        self.links.is_designated(interface, version)
    }

    fn receive(&mut self, now: Instant, transit: Transit) {
        let Ok(header) = ip::parse(&transit.packet) else {
            self.links.counters.refuse(Refusal::Truncated);
            return;
        };
        let version = Version::of(header.source);
        let Some(interface) = transit.ingress.filter(|&ingress| self.links.get(ingress, version).is_some())
        else {
            self.links.counters.wrong_items += 1;
            return;
        };
        if header.protocol != wire::PROTOCOL {
            let channel = (header.source, header.destination);
            return self.change(now, channel, |tree, links| tree.hear_data(now, channel, interface, links));
        }
        match wire::parse(&transit.packet, &header) {
            Ok(message) => self.hear(now, interface, header.source, message),
            Err(reason) => self.links.counters.refuse(reason),
        }
    }

    fn hear(&mut self, now: Instant, interface: u32, from: IpAddr, message: Message) {
        let Some(link) = self.links.get(interface, Version::of(from)).filter(|link| !link.is_own(from))
        else {
            return;
        };
        if !matches!(message, Message::Hello(_)) && link.neighbours.primary(from) != Some(from) {
            self.links.counters.refuse(Refusal::Stranger);
            return;
        }
        match message {
            Message::Hello(hello) => self.hear_hello(now, interface, from, hello),
            Message::JoinPrune(lists) => self.hear_join_prune(now, interface, lists),
            Message::Assert(assert) => self.hear_assert(now, interface, from, &assert),
        }
    }

    fn hear_hello(&mut self, now: Instant, interface: u32, from: IpAddr, hello: Hello) {
        let heard = self.links.hear_hello(now, interface, from, hello);
        match heard {
            Heard::Restarted | Heard::Gone => self.forget_neighbour(now, interface, from),
            // There may be a neighbour to join at, and another designated router.
            Heard::New | Heard::Known(true) => self.review_all(now),
            Heard::Known(false) | Heard::Full => {}
        }
        if heard == Heard::Restarted {
            for channel in self.channels() {
                self.change(now, channel, |tree, links| tree.rejoin(now, channel, (interface, from), links));
            }
        }
    }

    fn hear_join_prune(&mut self, now: Instant, interface: u32, lists: JoinPrune) {
        self.links.counters.join_prunes_heard += 1;
        let JoinPrune { upstream, holdtime, groups } = lists;
        let Some(link) = self.links.get(interface, Version::of(upstream)) else { return };
        let is_own = link.is_own(upstream);
        let neighbour = link.neighbours.primary(upstream);
        let hold = Duration::from_secs(holdtime.min(u16::MAX - 1).into());
        for entry in groups {
            (0..entry.shared).for_each(|_| self.links.counters.refuse(Refusal::SharedTree));
            let joined = entry.joined.into_iter().map(|source| (source, true));
            for (source, joined) in joined.chain(entry.pruned.into_iter().map(|source| (source, false))) {
                let channel = (source, entry.group);
                match (is_own, neighbour) {
                    (true, _) if joined => {
                        if self.open(channel) {
                            self.change(now, channel, |tree, _| tree.join(now, interface, hold));
                        }
                    }
                    (true, _) => {
                        self.change(now, channel, |tree, links| tree.prune(now, channel, interface, links));
                    }
                    (false, Some(neighbour)) => {
                        let (at, joined) = ((interface, neighbour), joined.then_some(hold));
                        self.change(now, channel, |tree, links| {
                            tree.overhear(now, channel, at, joined, links);
                        });
                    }
                    (false, None) => {}
                }
            }
        }
    }

    fn hear_assert(&mut self, now: Instant, interface: u32, from: IpAddr, assert: &Assert) {
        self.links.counters.asserts_heard += 1;
        if assert.shared_tree {
            self.links.counters.refuse(Refusal::SharedTree);
            return;
        }
        let channel = (assert.source, assert.group);
        let heard = Distance { metric: (assert.preference, assert.metric), address: from };
        self.change(now, channel, |tree, links| tree.hear_assert(now, channel, interface, heard, links));
    }

    /// Takes a change of the members on an interface.
    fn members(&mut self, now: Instant, membership: Membership) {
        let Membership { group, source, interface, joined } = membership;
        let Some(source) = source else {
            self.links.counters.members_of_any_source += 1;
            return;
        };
        let channel = (source, group);
        let known = interface.filter(|&interface| self.links.get(interface, Version::of(group)).is_some());
        let Some(interface) = known else {
            self.links.counters.wrong_items += 1;
            return;
        };
        if joined && !self.open(channel) {
            // The querier says it once.
            self.waiting.entry(channel).or_default().insert(interface);
        } else if let Some(waiting) = self.waiting.get_mut(&channel) {
            waiting.remove(&interface);
            if waiting.is_empty() {
                self.waiting.remove(&channel);
            }
        } else {
            self.change(now, channel, |tree, _| tree.set_members(interface, joined));
        }
    }

    /// Makes trees for members that have waited, as far as there is room.
    fn admit_waiting(&mut self, now: Instant) {
        while self.trees.len() < self.links.config.max_routes
            && let Some(&channel) = self.waiting.keys().next()
        {
            self.open(channel);
            self.change(now, channel, |_, _| {});
        }
    }

    /// Makes sure that there is a tree of a channel, with the members that have waited for it; false if there is no
    /// room for one.
    fn open(&mut self, channel: Channel) -> bool {
        if self.trees.contains_key(&channel) {
            return true;
        }
        if self.trees.len() >= self.links.config.max_routes {
            self.links.counters.refuse(Refusal::Routes);
            return false;
        }
        let mut tree = Tree::default();
        tree.set_rpf(self.rpf(channel.0));
        let waiting = self.waiting.remove(&channel);
        waiting.into_iter().flatten().for_each(|interface| tree.set_members(interface, true));
        self.trees.insert(channel, tree);
        true
    }

    /// The way towards a source.
    fn rpf(&mut self, source: IpAddr) -> Option<Rpf> {
        if self.table.owns(source) {
            return Some(Rpf { interface: None, next_hop: None, metric: (0, 0) });
        }
        let route = self.routes.route(source)?;
        let metric = (self.links.config.preference, route.metric);
        Some(Rpf { interface: Some(route.interface), next_hop: Some(route.neighbour), metric })
    }

    /// Changes a tree, if there is one, and lets everything follow.
    fn change(&mut self, now: Instant, channel: Channel, change: impl FnOnce(&mut Tree, &mut Links)) {
        let Self { links, trees, agenda, table, .. } = self;
        let Some(tree) = trees.get_mut(&channel) else { return };
        change(tree, links);
        tree.expire(now, channel, links);
        table.set(channel, tree.review(now, channel, links));
        agenda.set(channel, tree.deadline());
        if tree.is_over() {
            trees.remove(&channel);
            agenda.set(channel, None);
        }
    }

    fn channels(&self) -> Vec<Channel> {
        self.trees.keys().copied().collect()
    }

    fn review_all(&mut self, now: Instant) {
        for channel in self.channels() {
            self.change(now, channel, |_, _| {});
        }
    }

    /// Forgets what a neighbour has said that is gone or has started anew.
    fn forget_neighbour(&mut self, now: Instant, interface: u32, neighbour: IpAddr) {
        for channel in self.channels() {
            self.change(now, channel, |tree, _| tree.forget_neighbour(interface, neighbour));
        }
    }

    /// Follows the unicast routes, and the memberships of machines on the host itself.
    fn follow_host(&mut self, now: Instant) {
        let version = self.routes.version();
        let has_moved = std::mem::replace(&mut self.version, version) != version;
        let wanted = self.table.wanted();
        for &channel in &wanted {
            self.open(channel);
        }
        for channel in self.channels() {
            let rpf = if has_moved { Some(self.rpf(channel.0)) } else { None };
            let is_own = wanted.contains(&channel);
            // What else a tree follows changes it when it changes.
            if rpf.is_none() && self.trees.get(&channel).is_none_or(|tree| tree.is_own() == is_own) {
                continue;
            }
            self.change(now, channel, |tree, _| {
                tree.set_own(is_own);
                rpf.into_iter().for_each(|rpf| tree.set_rpf(rpf));
            });
        }
    }
}

/// The host of a router that stops forwards no longer by what it has found.
impl Drop for Pim {
    fn drop(&mut self) {
        self.table.clear();
    }
}

impl Machine for Pim {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.wake(now);
        match (port, item) {
            (Port::Below(_), Item::Transit(transit)) => self.receive(now, transit),
            (Port::Above(_), Item::Membership(membership)) => self.members(now, membership),
            _ => self.links.counters.wrong_items += 1,
        }
        self.admit_waiting(now);
        self.links.flush(now);
    }

    fn wake(&mut self, now: Instant) {
        for (interface, neighbour) in self.links.wake(now) {
            self.forget_neighbour(now, interface, neighbour);
        }
        if self.check_at.is_none_or(|at| at <= now) || self.routes.version() != self.version {
            self.check_at = Some(now + self.links.config.route_check);
            self.follow_host(now);
        }
        while let Some(channel) = self.agenda.expired(now) {
            self.change(now, channel, |_, _| {});
        }
        self.admit_waiting(now);
        self.links.flush(now);
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.links.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        if self.check_at.is_none() {
            return Some(Instant::ZERO);
        }
        earliest(earliest(self.check_at, self.links.deadline()), self.agenda.next())
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.links.counters.report(report);
    }
}
