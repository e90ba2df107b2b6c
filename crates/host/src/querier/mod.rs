//! A router's side of group membership: the querier of IGMP (RFC 2236, 3376) and MLD (RFC 2710, 3810).
//!
//! A router queries the hosts of each link for the groups that they want: for all groups at intervals, and for one
//! group when a host leaves it. Memberships that no report refreshes expire. Of the routers on a link the one with the
//! lowest address sends queries, and all of them listen to the reports. [`Querier`] reports each membership that begins
//! or ends to the machine above, which does the multicast routing.
//!
//! It is one machine for all interfaces of a router and both IP versions: all packets come by one hook, each with its
//! ingress, and the machine above needs the members of all interfaces. The state of an interface and version
//! (`segment`) is separate, and so are its bounds.
//!
//! - `Below(0)` carries [`Item::Transit`]. Up: packets that the host's hooks select, with their `ingress`. Down:
//!   queries, with [`Egress::Group`](hopcast_core::Egress::Group) of one interface; packets that are neither IGMP nor
//!   MLD are handed back unchanged.
//! - `Above(0)` carries [`Item::Membership`], up: a group, or one source of it, has members on an interface from now
//!   on, or has none any more.
//! - `Above(1)` carries the same of the interfaces whose querier this router is, for a machine that serves a link
//!   alone: with the role memberships begin, and they end with it.
//!
//! On a [`Host`](crate::Host) these hooks select them: `Hook::Protocol(ip::IGMP)`, and for MLD, which is all that hosts
//! send with hop-by-hop options, `Hook::ExtensionHeader { header: 0, kind: None }`. A router must receive them for
//! every destination group: members of versions 1 and 2 report to the group itself.
//!
//! | file | state |
//! |---|---|
//! | `segment` | an interface in an IP version: its groups, and their deadlines |
//! | `group` | one group: filter mode, timers of the group, its sources and older hosts |
//! | `asking` | the queries for a group and its sources that are still to be sent |
//! | `election` | the querier of the link, and the time of the next general query |
//!
//! # Bounds
//!
//! Memory is bounded by [`Config::max_groups`] and [`Config::max_sources`], and queries for groups by
//! [`Config::queries_per_second`], whatever arrives. Nobody is authenticated, so on a link whose stations are not
//! trusted: a forged leave causes a query, which remaining members answer; a forged report has a group's packets sent
//! to the link until its timer ends, and many may fill the table, so that new groups are refused; forged general
//! queries from a lower address keep the router from sending its own while they go on (RFC 3376 section 9), and one for
//! a group lowers that group's timer, which remaining members set again.
//!
//! # Scope and departures
//!
//! - In mode EXCLUDE a membership of any source is reported above, whatever sources are excluded or listed: the machine
//!   above forwards more than is wanted, never less. [`Querier::forwards`] has the exact answer.
//! - A query for one group makes no router the querier (RFC 3376 section 6.6.2 has any query do so), and lowers timers
//!   to no less than this router's own last member query time: otherwise either would end memberships whose members
//!   could not answer.
//! - Older versions of queries are sent only if configured, never automatically (RFC 3376 section 7.3.1).
//! - Reports are accepted from any address except the unspecified one in IPv6 (RFC 3810 section 5.2.13).

mod asking;
mod config;
mod counters;
mod election;
mod group;
mod segment;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use hopcast_core::{Instant, Item, Machine, Membership, Outbox, Port, Transit};
use hopcast_wire::ip::{self, Version};
use hopcast_wire::membership;

pub use config::Config;

pub use crate::membership::Interface;
use counters::Counters;
use segment::{Segment, Shared};

/// The querier of a router; see the [module's documentation](self).
pub struct Querier {
    config: Config,
    /// The segments for IPv4 and IPv6 of each interface.
    segments: Vec<[Option<Segment>; 2]>,
    out: Outbox,
    /// The earliest deadline of the segments.
    deadline: Option<Instant>,
    counters: Counters,
}

impl Querier {
    /// A querier on these interfaces, whose numbers are their places. It sends a general query on each first.
    pub fn new(config: Config, interfaces: &[Interface]) -> Self {
        let segments = (0..)
            .zip(interfaces)
            .map(|(number, &Interface { mtu, v4, v6 })| {
                [v4.map(IpAddr::V4), v6.map(IpAddr::V6)]
                    .map(|own| own.map(|own| Segment::new(&config, number, own, mtu)))
            })
            .collect();
        let (out, counters) = (Outbox::new(), Counters::default());
        let mut querier = Self { config, segments, out, deadline: None, counters };
        querier.update_deadline();
        querier
    }

    /// Whether packets from `source` to `group` are wanted on an interface.
    pub fn forwards(&self, interface: u32, group: IpAddr, source: IpAddr) -> bool {
        let segment = self.segment(interface, Version::of(group));
        segment.and_then(|segment| segment.group(group)).is_some_and(|group| group.forwards(source))
    }

    /// Whether this router is the querier of an interface.
    pub fn is_querier(&self, interface: u32, version: Version) -> bool {
        self.segment(interface, version).is_some_and(Segment::is_querier)
    }

    /// The current memberships: those reported above that have not ended.
    pub fn memberships(&self) -> impl Iterator<Item = Membership> {
        self.segments.iter().flatten().flatten().flat_map(Segment::memberships)
    }

    fn segment(&self, interface: u32, version: Version) -> Option<&Segment> {
        self.segments.get(interface as usize)?[version.place()].as_ref()
    }

    fn receive(&mut self, now: Instant, transit: Transit) {
        let Ok(header) = ip::parse(&transit.packet) else {
            self.counters.malformed += 1;
            return;
        };
        let message = match membership::parse(&transit.packet, &header) {
            Ok(Some(message)) => message,
            Ok(None) if header.protocol == ip::IGMP => return,
            Ok(None) => return self.out.down(Item::Transit(transit)),
            Err(_) => {
                self.counters.malformed += 1;
                return;
            }
        };
        let pair = transit.ingress.and_then(|ingress| self.segments.get_mut(ingress as usize));
        match pair.and_then(|pair| pair[header.version.place()].as_mut()) {
            Some(segment) => {
                let Self { config, counters, out, .. } = self;
                segment.receive(now, header.source, message, &mut Shared { config, counters, out });
                self.update_deadline();
            }
            None => self.counters.wrong_items += 1,
        }
    }

    fn update_deadline(&mut self) {
        self.deadline = self.segments.iter().flatten().flatten().map(Segment::deadline).min();
    }
}

impl Machine for Querier {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.wake(now);
        match (port, item) {
            (Port::Below(_), Item::Transit(transit)) => self.receive(now, transit),
            _ => self.counters.wrong_items += 1,
        }
    }

    fn wake(&mut self, now: Instant) {
        if self.deadline.is_none_or(|at| at > now) {
            return;
        }
        let Self { config, counters, out, .. } = self;
        for segment in self.segments.iter_mut().flatten().flatten().filter(|one| one.deadline() <= now) {
            segment.wake(now, &mut Shared { config, counters, out });
        }
        self.update_deadline();
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.counters.report(report);
    }
}
