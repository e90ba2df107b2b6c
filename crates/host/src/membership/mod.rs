//! A host's side of group membership: IGMP (RFC 1112, 2236, 3376) and MLD (RFC 2710, 3810).
//!
//! Routers send a group's packets only to links where they know of members, so a host reports the sources that it
//! wants, on each interface and for each group ([`Filter`]). A change is reported at once, and again `robustness - 1`
//! times at random within the unsolicited report interval, since a report may be lost; changes that come meanwhile are
//! merged. A querier asks for all memberships at intervals, and each host answers after a random delay, so that the
//! answers do not coincide. After a query of an older version a host reports in that one until the older querier's
//! timeout.
//!
//! [`MembershipReports`] has no I/O and is no machine: a host owns it and hands it what arrives.
//!
//! ```
//! use hopcast_core::{Instant, Seed};
//! use hopcast_host::membership::{Config, Filter, Interface, MembershipReports};
//!
//! let interface = Interface { mtu: 1500, v4: Some([10, 0, 0, 7].into()), v6: None };
//! let random = Seed::new(1, 0).stream(&["host", "membership"], 0);
//! let mut membership = MembershipReports::new(Config::default(), vec![interface], random);
//! let now = Instant::ZERO;
//! membership.set(now, 0, [239, 1, 2, 3].into(), Filter::Any);
//! let report = membership.poll(now).expect("the join is reported at once");
//! assert_eq!((report.interface, report.destination), (0, [224, 0, 0, 22].into()));
//! assert!(membership.poll(now).is_none());
//! assert!(membership.deadline().is_some_and(|again| again > now));
//! ```
//!
//! | file | state |
//! |---|---|
//! | `reporter` | the groups of an interface, and the deadlines of their reports |
//! | `group` | one group: the host's filter, and the sources in queries to be answered |
//! | `change` | the reports of a change that are still to be sent |
//! | `compatibility` | the version in which the host reports, by the queriers on the link |
//! | `packet` | the packets of reports, none longer than the MTU |
//!
//! # Bounds
//!
//! Whatever arrives, an interface keeps at most [`Config::max_groups`] groups of each IP version, which only the host
//! itself adds, and for each at most [`Config::max_sources`] sources of queries. Queries cause at most 100 packets a
//! second on an interface in an IP version (`reporter::ANSWERS_PER_SECOND`), with any maximum response time. Answers
//! that are due sooner wait and are merged.
//!
//! # Scope and departures
//!
//! - Filters are none, some sources, or any: EXCLUDE with exceptions is not offered to applications.
//! - A group of the source-specific range that is wanted from any source is not reported (RFC 4604 section 2.2.1), nor
//!   is any such group reported to a querier of version 1 or 2.
//! - A host of version 2 sends a leave even if it was not the last to report (RFC 2236 section 3 permits it).
//! - Only general queries make a host speak an older version, in MLD as in IGMP.

mod change;
mod compatibility;
mod config;
mod counters;
mod group;
mod packet;
mod reporter;

use std::collections::VecDeque;
use std::net::IpAddr;

use hopcast_core::{Instant, Stream};
use hopcast_wire::ip::{self, Header};
use hopcast_wire::membership::{self, Message, is_reported, is_source_specific};

pub use config::{Config, Filter, Interface};
use counters::Counters;
pub use packet::Report;
use reporter::{Reporter, Shared};

/// The memberships of a host, and the reports of them; see the [module's documentation](self).
#[derive(Debug)]
pub struct MembershipReports {
    config: Config,
    interfaces: Vec<Interface>,
    /// The reporters for IPv4 and IPv6 of each interface.
    reporters: Vec<[Reporter; 2]>,
    random: Stream,
    out: VecDeque<Report>,
    /// The earliest deadline of the reporters.
    deadline: Option<Instant>,
    counters: Counters,
}

impl MembershipReports {
    /// The reports of a host with these interfaces, whose numbers are their places, that is a member of no group.
    pub fn new(config: Config, interfaces: Vec<Interface>, random: Stream) -> Self {
        let versions = [ip::Version::V4, ip::Version::V6];
        let reporters = (0..)
            .zip(&interfaces)
            .map(|(number, _)| versions.map(|version| Reporter::new(&config, number, version)))
            .collect();
        let counters = Counters::default();
        Self { config, interfaces, reporters, random, out: VecDeque::new(), deadline: None, counters }
    }

    /// Sets the sources from which the host wants the packets of `group` on `interface`, all of its sockets together.
    /// Groups that are never reported (that of all nodes, those limited to the host) are ignored.
    ///
    /// The next [`poll`](Self::poll) returns the report; changes of one instant share packets.
    pub fn set(&mut self, now: Instant, interface: u32, group: IpAddr, filter: Filter) {
        if !is_reported(group) {
            return;
        }
        let filter = self.admissible(group, filter);
        self.with(interface, group, |reporter, shared| reporter.set(now, group, filter, shared));
    }

    /// Takes an IP packet with this header that arrived on `interface`; ignores it and returns false if it is none of
    /// IGMP or MLD.
    ///
    /// It evaluates queries, and the reports that other hosts send in versions 1 and 2, of any group.
    pub fn receive(&mut self, now: Instant, interface: u32, packet: &[u8], header: &Header) -> bool {
        let message = match membership::parse(packet, header) {
            Ok(Some(message)) => message,
            Ok(None) => return header.protocol == ip::IGMP,
            Err(_) => {
                self.counters.malformed += 1;
                return true;
            }
        };
        let own = self.interfaces.get(interface as usize).and_then(|own| own.address(header.version));
        if own == Some(header.source) {
            return true;
        }
        match message {
            Message::Query(query, sources) => {
                self.counters.queries += 1;
                let respond = |reporter: &mut Reporter, shared: &mut Shared<'_>| {
                    reporter.query(now, &query, sources, shared);
                };
                self.with(interface, header.source, respond);
            }
            Message::OlderReport(_, group) => {
                self.with(interface, header.source, |reporter, shared| {
                    reporter.heard_report(now, group, shared.counters);
                });
            }
            Message::Report(_) | Message::Leave(_) => {}
        }
        true
    }

    /// The deadline has been reached, or may have been.
    pub fn wake(&mut self, now: Instant) {
        if self.deadline.is_none_or(|at| at > now) {
            return;
        }
        for (pair, interface) in self.reporters.iter_mut().zip(&self.interfaces) {
            for reporter in pair.iter_mut().filter(|reporter| reporter.deadline().is_some_and(|at| at <= now))
            {
                let mut shared = Shared {
                    config: &self.config,
                    interface,
                    random: &mut self.random,
                    counters: &mut self.counters,
                };
                self.out.extend(reporter.due(now, &mut shared));
            }
        }
        self.update_deadline();
    }

    /// The next packet to send; `None` once there is nothing more.
    pub fn poll(&mut self, now: Instant) -> Option<Report> {
        self.wake(now);
        self.out.pop_front()
    }

    /// Time at which to call [`wake`](Self::wake), or [`poll`](Self::poll), which calls it.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The counters, by name and cumulative.
    pub fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.counters.report(report);
    }

    /// A number that rises with each counter of what was dropped or refused.
    pub(crate) const fn discards(&self) -> u64 {
        let counters = &self.counters;
        counters.malformed + counters.wrong_items + counters.groups_refused + counters.sources_refused
    }

    /// The part of `filter` that may be reported for `group`.
    fn admissible(&mut self, group: IpAddr, filter: Filter) -> Filter {
        let Filter::Include(mut sources) = filter else {
            if filter == Filter::Any && is_source_specific(group) {
                self.counters.sources_refused += 1;
                return Filter::None;
            }
            return filter;
        };
        let before = sources.len();
        let mut left = self.config.max_sources;
        sources.retain(|source| {
            let sound =
                source.is_ipv4() == group.is_ipv4() && !source.is_multicast() && !source.is_unspecified();
            let kept = sound && left > 0;
            left -= usize::from(kept);
            kept
        });
        self.counters.sources_refused += (before - sources.len()) as u64;
        if sources.is_empty() { Filter::None } else { Filter::Include(sources) }
    }

    /// Calls `work` with the reporter of an interface in the version of `address`.
    fn with(&mut self, interface: u32, address: IpAddr, work: impl FnOnce(&mut Reporter, &mut Shared<'_>)) {
        let number = interface as usize;
        let (Some(pair), Some(interface)) = (self.reporters.get_mut(number), self.interfaces.get(number))
        else {
            self.counters.wrong_items += 1;
            return;
        };
        let [v4, v6] = pair;
        let reporter = if address.is_ipv4() { v4 } else { v6 };
        let mut shared = Shared {
            config: &self.config,
            interface,
            random: &mut self.random,
            counters: &mut self.counters,
        };
        work(reporter, &mut shared);
        self.update_deadline();
    }

    fn update_deadline(&mut self) {
        self.deadline = self.reporters.iter().flatten().filter_map(Reporter::deadline).min();
    }
}
