//! Snooping of IGMP and MLD (RFC 4541): which ports are given the packets of a group.
//!
//! Each VLAN has state of its own in either IP version (`family`): the groups that were reported, with the ports behind
//! which they have members; the ports behind which routers were heard; and the queriers. Versions 1 to 3 of IGMP and 1
//! and 2 of MLD are heard; of a report with sources only the group is kept, as Linux does unless told otherwise.

mod family;
mod packet;
mod querier;
mod told;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use hopcast_core::{Buffer, Duration, Instant, Membership, Pace, earliest};
use hopcast_wire::ethernet::{self, Header};
use hopcast_wire::ip::Version as IpVersion;
use hopcast_wire::membership::{self, Message, Query, RecordType, Version, is_reported};

use super::config::{self, RouterPort};
use super::counters::SnoopingCounters;
use family::{Family, GROUP_MEMBERSHIP, LAST_MEMBER, Until};
use packet::Heard;
use querier::{QUERY_RESPONSE, Queriers};
pub(super) use told::ToldPort;

/// Minimum time between two searches for what is over. Chosen: what is over is not used in any case, so that it only
/// costs memory.
const SWEEP_GAP: Duration = Duration::from_secs(1);
/// Maximum number of queries for groups a second. Chosen: as many as a querier of a router sends; with fewer, leaves
/// are ignored while many hosts leave, and with more, forged ones make more queries.
const QUERIES_PER_SECOND: u64 = 100;
/// Minimum time between general queries: with less, a bridge would send nothing but queries.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// The members and routers that a bridge has heard of.
#[derive(Debug)]
pub(super) struct Snooping {
    config: config::Snooping,
    /// For each port, whether routers are behind it by configuration.
    ports: Vec<RouterPort>,
    families: BTreeMap<(u16, bool), Family>,
    /// Number of groups, of all families together.
    groups: usize,
    /// Time until which a group was refused, so that those that are not known may have members.
    refused_until: Instant,
    /// Time of the next search for what is over.
    sweep_at: Option<Instant>,
    /// Time of the next query of the bridge's own, or an earlier one.
    query_at: Option<Instant>,
    pace: Pace,
    queries: VecDeque<QueryToSend>,
    /// The ports that are told memberships.
    told: Vec<ToldPort>,
    /// Time at which what they are told may change without a message.
    tell_at: Option<Instant>,
    news: VecDeque<(usize, Membership)>,
    pub(super) counters: SnoopingCounters,
}

/// A query of the bridge's own.
#[derive(Debug)]
pub(super) struct QueryToSend {
    /// Its VLAN.
    pub(super) vlan: u16,
    /// The only port that is given it; `None` for all ports of the VLAN.
    pub(super) port: Option<usize>,
    /// The frame, without a tag.
    pub(super) frame: Buffer,
}

/// The ports that are given a frame to a group.
#[derive(Debug)]
pub(super) enum Verdict<'a> {
    /// None: it is malformed.
    Malformed,
    /// All.
    All,
    /// Those that want it.
    Wanted(Wanted<'a>),
}

/// The ports that want a frame to a group.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    now: Instant,
    members: Option<&'a Until>,
    routers: &'a Until,
    ports: &'a [RouterPort],
}

impl Wanted<'_> {
    /// Whether a port wants it.
    #[inline]
    pub(super) fn has(&self, port: usize) -> bool {
        self.ports.get(port) == Some(&RouterPort::Always)
            || self.routers.has(self.now, port)
            || self.members.is_some_and(|members| members.has(self.now, port))
    }
}

impl Snooping {
    /// Snooping at these ports; an own querier asks in each of these VLANs.
    pub(super) fn new(
        config: config::Snooping,
        ports: Vec<RouterPort>,
        vlans: impl Iterator<Item = u16>,
        told: Vec<ToldPort>,
    ) -> Self {
        let of_vlan = |vlan| [false, true].map(|ipv6| (vlan, ipv6));
        let own =
            |key: (u16, bool)| config.querier.as_ref().map(|querier| (key, own_querier(querier, key.1)));
        let families: BTreeMap<_, _> = vlans.flat_map(of_vlan).filter_map(own).collect();
        Self {
            config,
            ports,
            families,
            groups: 0,
            refused_until: Instant::ZERO,
            sweep_at: None,
            query_at: config.querier.map(|_| Instant::ZERO),
            pace: Pace::new(QUERIES_PER_SECOND, QUERIES_PER_SECOND),
            queries: VecDeque::new(),
            tell_at: (!told.is_empty()).then_some(Instant::ZERO),
            told,
            news: VecDeque::new(),
            counters: SnoopingCounters::default(),
        }
    }

    /// Takes a packet to a group that has arrived on a port in a VLAN; the ports that are given it.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        (vlan, port): (u16, usize),
        ether_type: u16,
        packet: &[u8],
    ) -> Verdict<'_> {
        match packet::read(ether_type, packet) {
            Heard::NotIp => Verdict::All,
            Heard::Malformed => Verdict::Malformed,
            Heard::Packet(group, announces_router) => {
                if announces_router {
                    self.heard_router(now, (vlan, group.is_ipv6()), port);
                    self.tell(now);
                }
                if is_for_all(group) { Verdict::All } else { self.wanted(now, vlan, group, true) }
            }
            Heard::Message(message, source) => {
                self.take(now, (vlan, source.is_ipv6()), port, message, source);
                self.tell(now);
                match message {
                    // RFC 4541 section 2.1.1: other hosts would take it for a reason not to report.
                    Message::OlderReport(_, group) => self.wanted(now, vlan, group, false),
                    Message::Query(..) | Message::Report(_) | Message::Leave(_) => Verdict::All,
                }
            }
        }
    }

    /// The next query of the bridge's own.
    pub(super) fn next_query(&mut self) -> Option<QueryToSend> {
        self.queries.pop_front()
    }

    /// Sends the queries that are due, and removes what is over.
    pub(super) fn wake(&mut self, now: Instant) {
        if self.query_at.is_some_and(|at| at <= now) {
            let mut due = Vec::new();
            for (&(vlan, _), family) in &mut self.families {
                due.extend(family.queriers.due(now).map(|address| (vlan, address)));
            }
            due.into_iter().for_each(|(vlan, address)| self.ask(vlan, None, address, None));
            self.query_at = self.families.values().filter_map(|family| family.queriers.deadline()).min();
        }
        if self.sweep_at.is_some_and(|at| at <= now) {
            let (mut next, mut groups) = (None, 0);
            self.families.retain(|_, family| {
                next = earliest(next, family.expire(now));
                groups += family.groups.len();
                !family.is_over(now)
            });
            self.groups = groups;
            self.sweep_at = next.map(|at: Instant| at.max(now + SWEEP_GAP));
        }
        if self.tell_at.is_some_and(|at| at <= now) {
            self.tell(now);
        }
    }

    /// Time at which to call `wake`.
    pub(super) fn deadline(&self) -> Option<Instant> {
        earliest(self.tell_at, earliest(self.query_at, self.sweep_at))
    }

    /// The next change that a port is to be told.
    pub(super) fn next_news(&mut self) -> Option<(usize, Membership)> {
        self.news.pop_front()
    }

    /// Prepares what has changed for the ports that are told memberships.
    fn tell(&mut self, now: Instant) {
        let (mut told, mut next) = (std::mem::take(&mut self.told), None);
        for port in &mut told {
            let (news, changes) = port.update(now, self);
            next = earliest(next, changes);
            self.news.extend(news.into_iter().map(|change| (port.port(), change)));
        }
        (self.told, self.tell_at) = (told, next);
    }

    /// Number of groups that it holds, those included that are over and not removed yet.
    pub(super) const fn groups(&self) -> usize {
        self.groups
    }

    /// The ports that want a packet to a group: those of its members, if these are asked for, and of routers.
    fn wanted(&self, now: Instant, vlan: u16, group: IpAddr, of_members: bool) -> Verdict<'_> {
        let family = self.families.get(&(vlan, group.is_ipv6()));
        let Some(family) = family.filter(|family| family.queriers.is_settled(now)) else {
            return Verdict::All;
        };
        let members = family.groups.get(&group).filter(|_| of_members);
        if of_members && members.is_none() && now < self.refused_until {
            return Verdict::All;
        }
        Verdict::Wanted(Wanted { now, members, routers: &family.routers, ports: &self.ports })
    }

    fn take(&mut self, now: Instant, key: (u16, bool), port: usize, message: Message<'_>, source: IpAddr) {
        match message {
            Message::Query(query, sources) => {
                self.counters.queries_heard += 1;
                if sources.is_empty() {
                    self.heard_query(now, key, port, &query, source);
                }
            }
            Message::OlderReport(_, group) => {
                self.counters.reports += 1;
                self.join(now, key, port, group);
            }
            Message::Leave(group) => {
                self.counters.leaves += 1;
                self.leave(now, key, port, group);
            }
            Message::Report(records) => {
                self.counters.reports += 1;
                for record in records {
                    let includes = matches!(record.kind, RecordType::IsInclude | RecordType::ToInclude);
                    if includes && record.sources.is_empty() {
                        self.leave(now, key, port, record.group);
                    } else {
                        self.join(now, key, port, record.group);
                    }
                }
            }
        }
    }

    fn heard_query(&mut self, now: Instant, key: (u16, bool), port: usize, query: &Query, source: IpAddr) {
        // One of version 1 is for all groups, whatever it says.
        if let Some(group) = query.group.filter(|_| query.version > Version::V1) {
            let members = self.families.get_mut(&key).and_then(|family| family.groups.get_mut(&group));
            if let Some(members) = members {
                // Twice: a querier asks twice (RFC 2236 section 8.9).
                members.lower_all(now + query.max_response * 2);
            }
        } else if self.family(key).queriers.heard(now, (source, port), query.max_response) {
            self.heard_router(now, key, port);
        }
    }

    fn heard_router(&mut self, now: Instant, key: (u16, bool), port: usize) {
        if self.ports.get(port) != Some(&RouterPort::Never) {
            self.family(key).heard_router(now, port);
            self.sweep_at.get_or_insert(now + GROUP_MEMBERSHIP);
        }
    }

    fn join(&mut self, now: Instant, key: (u16, bool), port: usize, group: IpAddr) {
        if group.is_ipv6() != key.1 || !is_reported(group) || is_for_all(group) {
            return;
        }
        let has_room = self.groups < self.config.max_groups;
        let family = self.family(key);
        let before = family.groups.len();
        let joined = family.join(now, group, port, has_room);
        let added = family.groups.len() - before;
        self.groups += added;
        if joined {
            self.sweep_at.get_or_insert(now + GROUP_MEMBERSHIP);
        } else {
            self.counters.groups_refused += 1;
            self.refused_until = now + GROUP_MEMBERSHIP;
        }
    }

    fn leave(&mut self, now: Instant, key: (u16, bool), port: usize, group: IpAddr) {
        let Some(family) = self.families.get_mut(&key) else { return };
        let Some(members) = family.groups.get_mut(&group).filter(|members| members.has(now, port)) else {
            return;
        };
        // The other querier asks whether there are more, and its query lowers the time.
        if family.queriers.is_other_present(now) {
            return;
        }
        let until = now + LAST_MEMBER;
        let Some(address) = family.queriers.asks_as(now) else { return members.lower(port, until) };
        // Without a query remaining members would not report, so that the time is not lowered.
        if !self.pace.is_ready(now) {
            self.counters.leaves_ignored += 1;
            return;
        }
        self.pace.sent(now, 1);
        members.lower(port, until);
        // In case that the query is lost.
        family.queriers.ask_by(until);
        self.query_at = earliest(self.query_at, Some(until));
        self.ask(key.0, Some(port), address, Some(group));
    }

    /// The state of a VLAN and IP version, which is made if there is none.
    fn family(&mut self, key: (u16, bool)) -> &mut Family {
        self.families.entry(key).or_insert_with(|| Family::new(Queriers::new(None)))
    }

    /// Prepares a query for a group, or for all.
    fn ask(&mut self, vlan: u16, port: Option<usize>, address: IpAddr, group: Option<IpAddr>) {
        let Some(querier) = &self.config.querier else { return };
        let query = Query {
            version: Version::V2,
            group,
            max_response: if group.is_some() { LAST_MEMBER / 2 } else { QUERY_RESPONSE },
            suppress: false,
            robustness: 0,
            interval: Duration::ZERO,
        };
        let mut frame = membership::query_packet(address, &query, &[]);
        let to = group.unwrap_or_else(|| membership::all_nodes(IpVersion::of(address)));
        let ether_type = if address.is_ipv6() { ethernet::IPV6 } else { ethernet::IPV4 };
        let (destination, source) = (ethernet::of_group(to), querier.mac);
        ethernet::prepend(&mut frame, Header { destination, source, ether_type });
        self.counters.queries += 1;
        self.queries.push_back(QueryToSend { vlan, port, frame });
    }
}

/// The state of a VLAN and IP version in which the bridge has a querier of its own.
fn own_querier(querier: &config::Querier, ipv6: bool) -> Family {
    let v6 = IpAddr::V6(ethernet::link_local(querier.mac));
    let address = if ipv6 { v6 } else { IpAddr::V4(querier.address) };
    Family::new(Queriers::new(Some((address, querier.interval.max(MIN_INTERVAL)))))
}

/// Whether packets to `group` are for all ports: hosts need not report it (RFC 4541 sections 2.1.2 and 3).
fn is_for_all(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets()[..3] == [224, 0, 0],
        IpAddr::V6(_) => group == membership::all_nodes(IpVersion::V6),
    }
}
