//! The links of a router: who is there, and the messages that are sent to them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use hopcast_core::{Buffer, Duration, Egress, Instant, Item, Outbox, Stream, Transit, earliest};
use hopcast_wire::ethernet;
use hopcast_wire::ip::Version;

use super::counters::Counters;
use super::neighbours::{Distance, Heard, Neighbours};
use super::refusal::Refusal;
use super::wire::{self, Assert, GroupEntry, Hello, JoinPrune, LanDelay, MAX_RECORDS, Message};
use super::{Channel, Config};

/// One interface of the router in one IP version.
pub(super) struct Link {
    /// The address that messages are sent from.
    pub(super) own: IpAddr,
    /// The router's other address there.
    other: Option<IpAddr>,
    mtu: u32,
    egress: Arc<[u32]>,
    pub(super) neighbours: Neighbours,
    generation: u32,
    /// Time of the next Hello; `None` until there was one.
    hello_at: Option<Instant>,
    /// Time of a Hello for neighbours that have not heard one yet: when the router starts for all, later for new ones.
    greeting_at: Option<Instant>,
}

impl Link {
    /// Whether an address is the router's there.
    pub(super) fn is_own(&self, address: IpAddr) -> bool {
        self.own == address || self.other == Some(address)
    }

    fn deadline(&self) -> Option<Instant> {
        earliest(earliest(self.hello_at, self.greeting_at), self.neighbours.deadline())
    }
}

/// Sources that are joined (true) or pruned, of groups.
type Lists = BTreeMap<IpAddr, BTreeMap<IpAddr, bool>>;

/// All links of a router, and what trees share beside them.
pub(super) struct Links {
    pub(super) config: Config,
    links: Vec<[Option<Link>; 2]>,
    random: Stream,
    pub(super) counters: Counters,
    pub(super) out: Outbox,
    /// Joins and prunes that are to be sent, by interface and neighbour.
    lists: BTreeMap<(u32, IpAddr), Lists>,
}

impl Links {
    pub(super) fn new(config: Config, host: &crate::Config, mut random: Stream) -> Self {
        let mut link = |number: u32, own: IpAddr, other: Option<IpAddr>, mtu: u32| Link {
            own,
            other: other.filter(|other| *other != own),
            mtu,
            egress: Arc::new([number]),
            neighbours: Neighbours::default(),
            generation: random.bits() as u32,
            hello_at: None,
            greeting_at: None,
        };
        let of = |(number, interface): (u32, &crate::Interface)| {
            let v4 = host.v4_on(number).map(|own| link(number, own.into(), None, interface.mtu));
            let v6 = host.v6_on(number).map(|other| {
                link(number, ethernet::link_local(interface.mac).into(), Some(other.into()), interface.mtu)
            });
            [v4, v6]
        };
        let links = (0..).zip(&host.interfaces).map(of).collect();
        Self {
            config,
            links,
            random,
            counters: Counters::default(),
            out: Outbox::new(),
            lists: BTreeMap::new(),
        }
    }

    pub(super) fn get(&self, interface: u32, version: Version) -> Option<&Link> {
        self.links.get(interface as usize)?[version.place()].as_ref()
    }

    fn get_mut(&mut self, interface: u32, version: Version) -> Option<&mut Link> {
        self.links.get_mut(interface as usize)?[version.place()].as_mut()
    }

    /// Whether the router is the designated one of a link.
    pub(super) fn is_designated(&self, interface: u32, version: Version) -> bool {
        let link = self.get(interface, version);
        link.is_some_and(|link| link.neighbours.elects(link.own, self.config.dr_priority))
    }

    /// Takes a Hello.
    pub(super) fn hear_hello(&mut self, now: Instant, interface: u32, from: IpAddr, hello: Hello) -> Heard {
        self.counters.hellos_heard += 1;
        let (max, delay) = (self.config.max_neighbours, self.config.triggered_hello_delay);
        let Some(link) = self.get_mut(interface, Version::of(from)) else { return Heard::Full };
        let heard = link.neighbours.hear(now, from, hello, max);
        match heard {
            Heard::New | Heard::Restarted => {
                let at = now + self.within(delay);
                if let Some(link) = self.get_mut(interface, Version::of(from)) {
                    link.greeting_at = Some(link.greeting_at.map_or(at, |before| before.min(at)));
                }
            }
            Heard::Full => self.counters.refuse(Refusal::Neighbours),
            Heard::Gone | Heard::Known(_) => {}
        }
        heard
    }

    /// Sends the Hello messages that are due, and returns the neighbours that are gone, with their interfaces.
    pub(super) fn wake(&mut self, now: Instant) -> Vec<(u32, IpAddr)> {
        let mut gone = Vec::new();
        for interface in 0..self.links.len() as u32 {
            for version in [Version::V4, Version::V6] {
                let first = self.config.triggered_hello_delay;
                let Some(link) = self.get_mut(interface, version) else { continue };
                gone.extend(link.neighbours.expire(now).into_iter().map(|address| (interface, address)));
                let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
                if link.hello_at.or(link.greeting_at).is_none() {
                    // Section 4.3.1: routers that start together do not greet together.
                    let at = now + self.within(first);
                    self.get_mut(interface, version).into_iter().for_each(|link| link.greeting_at = Some(at));
                } else if is_due(link.hello_at) || is_due(link.greeting_at) {
                    self.greet(now, interface, version);
                }
            }
        }
        gone
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.links.iter().flatten().flatten().filter_map(Link::deadline).min()
    }

    /// A time up to `limit`, but not 0.
    fn within(&mut self, limit: Duration) -> Duration {
        Duration::from_nanos(self.random.below(limit.as_nanos()).max(1))
    }

    /// Time until a router of a link overrides what another has said (*t_override*).
    pub(super) fn override_delay(&mut self, interface: u32, version: Version) -> Duration {
        let limit = self.get(interface, version).map(|link| link.neighbours.delays(&self.config).1);
        self.within(limit.unwrap_or(self.config.override_interval))
    }

    /// Time for which another router's join saves the router its own (*t_suppressed*).
    pub(super) fn suppression(&mut self) -> Duration {
        let interval = self.config.join_interval;
        interval.mul_f64(1.1) + self.within(interval.mul_f64(0.3))
    }

    /// Time from a prune until the branch is cut: that in which others may override it, if there are any (section
    /// 4.5.2).
    pub(super) fn prune_delay(&self, interface: u32, version: Version) -> Duration {
        match self.get(interface, version) {
            Some(link) if link.neighbours.len() > 1 => {
                let (propagation, override_interval) = link.neighbours.delays(&self.config);
                propagation + override_interval
            }
            _ => Duration::ZERO,
        }
    }

    /// Joins a channel at a neighbour, or prunes it; the message is sent by [`flush`](Self::flush).
    pub(super) fn list(&mut self, interface: u32, upstream: IpAddr, (source, group): Channel, joined: bool) {
        let lists = self.lists.entry((interface, upstream)).or_default();
        lists.entry(group).or_default().insert(source, joined);
    }

    /// Sends the joins and prunes that have been listed, in as few messages as the links take.
    pub(super) fn flush(&mut self, now: Instant) {
        let holdtime = Config::holdtime(self.config.join_interval);
        for ((interface, upstream), lists) in std::mem::take(&mut self.lists) {
            let version = Version::of(upstream);
            let Some(mtu) = self.get(interface, version).map(|link| link.mtu) else { continue };
            for groups in split(lists, version, mtu) {
                let count = |list: fn(&GroupEntry) -> usize| groups.iter().map(list).sum::<usize>() as u64;
                self.counters.joins += count(|entry| entry.joined.len());
                self.counters.prunes += count(|entry| entry.pruned.len());
                self.counters.join_prunes += 1;
                self.send(
                    now,
                    interface,
                    version,
                    &Message::JoinPrune(JoinPrune { upstream, holdtime, groups }),
                );
            }
        }
    }

    /// Sends an Assert with a preference and metric to a link.
    pub(super) fn assert(
        &mut self,
        now: Instant,
        interface: u32,
        (source, group): Channel,
        metric: (u32, u32),
    ) {
        self.counters.asserts += 1;
        let (preference, metric) = metric;
        let assert = Assert { group, source, shared_tree: false, preference, metric };
        self.send(now, interface, Version::of(group), &Message::Assert(assert));
    }

    /// The router's own distance from a sender, on a link.
    pub(super) fn distance(&self, interface: u32, version: Version, metric: (u32, u32)) -> Option<Distance> {
        self.get(interface, version).map(|link| Distance { metric, address: link.own })
    }

    /// Sends a message to a link, after a Hello if there are routers that have heard none.
    fn send(&mut self, now: Instant, interface: u32, version: Version, message: &Message) {
        let Some(link) = self.get(interface, version) else { return };
        // Section 4.3.1: a neighbour takes no other message of somebody who has not said Hello.
        if link.greeting_at.is_some() {
            self.greet(now, interface, version);
        }
        self.put(interface, version, message);
    }

    /// Sends a Hello.
    fn greet(&mut self, now: Instant, interface: u32, version: Version) {
        let config = self.config;
        let millis = |span: Duration, max: u16| span.as_millis().min(max.into()) as u16;
        let Some(link) = self.get_mut(interface, version) else { return };
        link.greeting_at = None;
        link.hello_at = Some(now + config.hello_interval);
        let hello = Hello {
            holdtime: Config::holdtime(config.hello_interval),
            lan_delay: Some(LanDelay {
                tracking: false,
                propagation: millis(config.propagation_delay, 0x7fff),
                override_interval: millis(config.override_interval, u16::MAX),
            }),
            priority: Some(config.dr_priority),
            generation: Some(link.generation),
            addresses: link.other.into_iter().collect(),
        };
        self.counters.hellos += 1;
        self.put(interface, version, &Message::Hello(hello));
    }

    fn put(&mut self, interface: u32, version: Version, message: &Message) {
        let Some(link) = self.get(interface, version) else { return };
        let mut packet = Buffer::default();
        wire::prepend(&mut packet, link.own, message);
        let egress = Egress::Group(Arc::clone(&link.egress));
        self.out.down(Item::Transit(Transit { packet, ingress: None, egress }));
    }
}

/// The groups of messages that fit a link, with all that is listed, each in the order of groups and sources.
fn split(lists: Lists, version: Version, mtu: u32) -> Vec<Vec<GroupEntry>> {
    let (room, [of_group, of_source]) = wire::room(version, mtu);
    let (mut messages, mut entries, mut left) = (Vec::new(), Vec::<GroupEntry>::new(), room);
    for (group, sources) in lists {
        for (source, joined) in sources {
            let continues = entries.last().is_some_and(|entry| entry.group == group);
            let cost = if continues { of_source } else { of_group + of_source };
            if (left < cost && !entries.is_empty()) || (!continues && entries.len() == MAX_RECORDS) {
                messages.push(std::mem::take(&mut entries));
                left = room;
            }
            if entries.last().is_none_or(|entry| entry.group != group) {
                entries.push(GroupEntry { group, joined: Vec::new(), pruned: Vec::new(), shared: 0 });
                left = left.saturating_sub(of_group);
            }
            left = left.saturating_sub(of_source);
            if let Some(entry) = entries.last_mut() {
                if joined { &mut entry.joined } else { &mut entry.pruned }.push(source);
            }
        }
    }
    if !entries.is_empty() {
        messages.push(entries);
    }
    messages
}
