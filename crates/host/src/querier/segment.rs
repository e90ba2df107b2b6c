//! One interface of the router in one IP version: the groups of its link, and the queries there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use hopcast_core::{Agenda, Duration, Egress, Instant, Item, Membership, Outbox, Pace, Port, Transit};
use hopcast_wire::ip;
use hopcast_wire::membership::{
    Message, Query, RecordType, Sources, Version, is_reported, is_source_specific, query_packet,
    sources_that_fit,
};

use super::Config;
use super::asking::{Asking, Question};
use super::counters::Counters;
use super::election::Election;
use super::group::{Group, Questions, limit};

/// The port of all memberships.
const ALL: Port = Port::Above(0);
/// The port of those of the interfaces whose querier this router is.
const AS_QUERIER: Port = Port::Above(1);

/// The members on a link, of one IP version.
#[derive(Debug)]
pub(super) struct Segment {
    number: u32,
    own: IpAddr,
    /// Maximum number of sources in a query.
    room: usize,
    egress: Arc<[u32]>,
    election: Election,
    groups: BTreeMap<IpAddr, (Group, Asking)>,
    /// Time of the next action for each group.
    agenda: Agenda<IpAddr>,
    pace: Pace,
}

/// State that all segments of a router share.
pub(super) struct Shared<'a> {
    pub(super) config: &'a Config,
    pub(super) counters: &'a mut Counters,
    pub(super) out: &'a mut Outbox,
}

impl Segment {
    pub(super) fn new(config: &Config, number: u32, own: IpAddr, mtu: u32) -> Self {
        Self {
            number,
            own,
            room: sources_that_fit(ip::Version::of(own), mtu),
            egress: Arc::new([number]),
            election: Election::new(own, config),
            groups: BTreeMap::new(),
            agenda: Agenda::new(),
            pace: Pace::new(config.queries_per_second, config.queries_per_second),
        }
    }

    /// Takes a message that has arrived from `from`.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        from: IpAddr,
        message: Message<'_>,
        shared: &mut Shared<'_>,
    ) {
        if from == self.own {
            return;
        }
        if let Message::Query(query, sources) = message {
            shared.counters.queries_heard += 1;
            return self.heard_query(now, from, &query, sources, shared);
        }
        shared.counters.reports += 1;
        if from.is_ipv6() && from.is_unspecified() {
            // RFC 3810 section 5.2.13.
            shared.counters.reports_ignored += 1;
            return;
        }
        match message {
            Message::Report(records) => {
                for record in records {
                    self.heard_record(now, record.kind, record.group, record.sources, shared);
                }
            }
            // RFC 3376 section 7.3.2: what older messages stand for.
            Message::OlderReport(version, group) => {
                let kind = RecordType::IsExclude;
                if self.heard_record(now, kind, group, Sources::none(ip::Version::of(self.own)), shared)
                    && let Some((state, _)) = self.groups.get_mut(&group)
                {
                    state.older_host(now, version, self.election.timing());
                }
            }
            Message::Leave(group) if is_source_specific(group) => shared.counters.reports_ignored += 1,
            Message::Leave(group) => {
                let none = Sources::none(ip::Version::of(self.own));
                self.heard_record(now, RecordType::ToInclude, group, none, shared);
            }
            Message::Query(..) => {}
        }
    }

    /// Ends the timers and sends the queries that are due.
    pub(super) fn wake(&mut self, now: Instant, shared: &mut Shared<'_>) {
        let was_querier = self.is_querier();
        if self.election.is_due(now, shared.config) {
            self.tell_role(was_querier, shared);
            let response = self.election.timing().query_response_interval;
            self.send(None, response, false, &[], shared);
        }
        while let Some(group) = self.agenda.expired(now) {
            self.change(now, group, shared, |state, _, _| state.expire(now));
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.agenda.next().map_or(self.election.deadline(), |at| at.min(self.election.deadline()))
    }

    pub(super) const fn is_querier(&self) -> bool {
        self.election.is_querier()
    }

    pub(super) fn group(&self, group: IpAddr) -> Option<&Group> {
        self.groups.get(&group).map(|(state, _)| state)
    }

    /// The current memberships.
    pub(super) fn memberships(&self) -> impl Iterator<Item = Membership> {
        let interface = Some(self.number);
        self.groups.iter().flat_map(move |(&group, (state, _))| {
            let one = move |source| Membership { group, source, interface, joined: true };
            state.wanted().into_iter().map(one)
        })
    }

    /// Takes a query of another router: that may be the querier from now on, and its query lowers timers here too (RFC
    /// 3376 section 6.6.1).
    fn heard_query(
        &mut self,
        now: Instant,
        from: IpAddr,
        query: &Query,
        sources: Sources<'_>,
        shared: &mut Shared<'_>,
    ) {
        let was_querier = self.is_querier();
        let gives_way = self.election.heard(now, from, query, shared.config);
        self.tell_role(was_querier, shared);
        if !gives_way || query.suppress {
            return;
        }
        let Some(group) = query.group.filter(|group| self.groups.contains_key(group)) else { return };
        let timing = self.election.timing();
        let answered = query.max_response * u64::from(timing.last_member_query_count);
        // Never sooner than after this router's own queries: one that gives no time would end the group before any
        // member could answer.
        let until = now + answered.max(timing.last_member_query_time());
        self.change(now, group, shared, |state, _, _| {
            if sources.is_empty() {
                state.lower(until);
            }
            sources.for_each(|source| state.lower_source(source, until));
        });
    }

    /// Hands up the memberships as of a router that has become the querier, or has ceased to be it.
    fn tell_role(&self, was_querier: bool, shared: &mut Shared<'_>) {
        let joined = self.is_querier();
        if joined != was_querier {
            for membership in self.memberships() {
                shared.out.push(AS_QUERIER, Item::Membership(Membership { joined, ..membership }));
            }
        }
    }

    /// Takes a record of a report; false if it is ignored.
    fn heard_record(
        &mut self,
        now: Instant,
        kind: RecordType,
        group: IpAddr,
        sources: Sources<'_>,
        shared: &mut Shared<'_>,
    ) -> bool {
        let sound = group.is_ipv4() == self.own.is_ipv4() && is_reported(group);
        // RFC 4604 section 2.2: a membership of all sources of such a group is not permitted.
        if !sound || (kind.is_exclude() && is_source_specific(group)) {
            shared.counters.reports_ignored += 1;
            return false;
        }
        let mut named: BTreeSet<IpAddr> =
            sources.filter(|source| !source.is_multicast() && !source.is_unspecified()).collect();
        let known = self.groups.get(&group);
        let adds = kind.is_exclude() || (!named.is_empty() && kind != RecordType::Block);
        if known.is_none() {
            if !adds {
                return false;
            }
            if self.groups.len() >= shared.config.max_groups {
                shared.counters.groups_refused += 1;
                return false;
            }
        }
        let room = shared.config.max_sources;
        shared.counters.sources_refused += limit(&mut named, known.map(|(state, _)| state), kind, room);
        let timing = *self.election.timing();
        let asks = self.election.is_querier() && shared.config.version > Version::V1;
        let names_sources = shared.config.version == Version::V3;
        self.change(now, group, shared, |state, asking, (pace, counters)| {
            let Questions { group, mut sources } = state.report(now, kind, named, &timing);
            if !asks {
                return;
            }
            let late = now + timing.last_member_query_time();
            sources.retain(|&source| names_sources && state.source(source).is_some_and(|until| until > late));
            // Without a query remaining members would not report, so no timer is lowered.
            let mut pay = |queries: u8| {
                let paid = queries == 0 || pace.is_ready(now);
                if paid {
                    pace.sent(now, queries.into());
                } else {
                    counters.leaves_ignored += 1;
                }
                paid
            };
            if !sources.is_empty() && pay(asking.cost_of_sources(&timing)) {
                asking.ask_sources(now, sources, state, &timing);
            }
            if group && state.is_exclude() && pay(asking.cost_of_group(&timing)) {
                asking.ask_group(now, state, &timing);
            }
        });
        true
    }

    /// Changes the state of a group, reports changed memberships above, and sends the queries that are due.
    fn change(
        &mut self,
        now: Instant,
        group: IpAddr,
        shared: &mut Shared<'_>,
        work: impl FnOnce(&mut Group, &mut Asking, (&mut Pace, &mut Counters)),
    ) {
        let (state, asking) = self.groups.entry(group).or_default();
        let before = state.wanted();
        work(state, asking, (&mut self.pace, &mut *shared.counters));
        let after = state.wanted();
        let timing = *self.election.timing();
        let questions = if self.election.is_querier() { asking.due(now, state, &timing) } else { Vec::new() };
        if state.is_over() {
            self.groups.remove(&group);
            self.agenda.set(group, None);
        } else {
            if !self.election.is_querier() {
                *asking = Asking::default();
            }
            let next = [state.deadline(), asking.deadline()].into_iter().flatten().min();
            self.agenda.set(group, next);
        }
        // Joins come first, so that no source is cut off between the two.
        let interface = Some(self.number);
        let begun = after.difference(&before).map(|&source| (source, true));
        for (source, joined) in begun.chain(before.difference(&after).map(|&source| (source, false))) {
            let membership = Membership { group, source, interface, joined };
            shared.out.push(ALL, Item::Membership(membership));
            if self.election.is_querier() {
                shared.out.push(AS_QUERIER, Item::Membership(membership));
            }
        }
        for Question { suppress, sources } in questions {
            if sources.is_empty() {
                self.send(Some(group), timing.last_member_query_interval, suppress, &[], shared);
            }
            for part in sources.chunks(self.room) {
                self.send(Some(group), timing.last_member_query_interval, suppress, part, shared);
            }
        }
    }

    fn send(
        &self,
        group: Option<IpAddr>,
        max_response: Duration,
        suppress: bool,
        sources: &[IpAddr],
        shared: &mut Shared<'_>,
    ) {
        let timing = self.election.timing();
        let query = Query {
            version: shared.config.version,
            group,
            max_response,
            suppress,
            robustness: timing.robustness,
            interval: timing.query_interval,
        };
        shared.counters.queries += 1;
        let packet = query_packet(self.own, &query, sources);
        let egress = Egress::Group(Arc::clone(&self.egress));
        shared.out.down(Item::Transit(Transit { packet, ingress: None, egress }));
    }
}
