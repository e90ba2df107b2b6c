//! The reports of one interface in one IP version.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopcast_core::{Agenda, Duration, Instant, Pace, Stream};
use hopcast_wire::ip;
use hopcast_wire::membership::{Query, Sources, Version, is_source_specific};

use super::compatibility::Compatibility;
use super::counters::Counters;
use super::group::Group;

use super::packet::{Record, Report};
use super::{Config, Filter, Interface};

/// Maximum number of packets a second that answer queries, on an interface of an IP version. Chosen: with fewer, a host
/// in the maximum number of groups (1024) cannot report them to a querier of version 2, a packet each, within the usual
/// maximum response time of 10 s; with more, a flood of queries causes more than 50 kbit/s of reports. Answers that are
/// due sooner wait, and are merged into one.
pub(super) const ANSWERS_PER_SECOND: u64 = 100;
/// Maximum number of such packets at once: a tenth of a second of them. Chosen: with fewer, the answers to a general
/// query wait for each other; with more, they are a burst.
pub(super) const ANSWERS_AT_ONCE: u64 = 10;

/// The groups of one interface in one IP version, with the deadlines of their reports.
#[derive(Debug)]
pub(super) struct Reporter {
    number: u32,
    version: ip::Version,
    groups: BTreeMap<IpAddr, Group>,
    /// Deadline of the next report of each group's change.
    changes: Agenda<IpAddr>,
    /// Deadline of the answer to queries for each group; in versions 1 and 2 also to general queries.
    answers: Agenda<IpAddr>,
    /// Deadline of the answer to a general query of version 3.
    general: Option<Instant>,
    compatibility: Compatibility,
    pace: Pace,
}

/// State that all reporters of a host share.
pub(super) struct Shared<'a> {
    pub(super) config: &'a Config,
    pub(super) interface: &'a Interface,
    pub(super) random: &'a mut Stream,
    pub(super) counters: &'a mut Counters,
}

impl Reporter {
    pub(super) fn new(config: &Config, number: u32, version: ip::Version) -> Self {
        Self {
            number,
            version,
            groups: BTreeMap::new(),
            changes: Agenda::new(),
            answers: Agenda::new(),
            general: None,
            compatibility: Compatibility::new(config),
            pace: Pace::new(ANSWERS_PER_SECOND, ANSWERS_AT_ONCE),
        }
    }

    /// Sets the host's filter of a group, which must be one that can be reported.
    pub(super) fn set(&mut self, now: Instant, group: IpAddr, filter: Filter, shared: &mut Shared<'_>) {
        self.follow_mode(now);
        if !self.groups.contains_key(&group) {
            if filter == Filter::None {
                return;
            }
            if self.groups.len() >= shared.config.max_groups {
                shared.counters.groups_refused += 1;
                return;
            }
        }
        let mode = self.compatibility.mode();
        let robustness = self.compatibility.robustness();
        let state = self.groups.entry(group).or_default();
        let before = core::mem::replace(&mut state.filter, filter);
        if before == state.filter {
            return;
        }
        if mode == Version::V3 {
            state.change.note(&before, &state.filter, robustness);
        } else if (before == Filter::None) != (state.filter == Filter::None) {
            state.change.note_older(&state.filter, robustness);
        }
        if state.change.is_pending() {
            self.changes.set(group, Some(now));
        }
        self.forget(group);
    }

    /// Takes a query. `sources` are those of the query.
    pub(super) fn query(
        &mut self,
        now: Instant,
        query: &Query,
        sources: Sources<'_>,
        shared: &mut Shared<'_>,
    ) {
        self.compatibility.heard(now, query);
        self.follow_mode(now);
        if self.compatibility.mode() == Version::V3 {
            self.plan_answer(now, query, sources, shared);
        } else {
            self.plan_older_answers(now, query, shared.random);
        }
    }

    /// Takes another host's report of a group in version 1 or 2, which makes an own one superfluous.
    pub(super) fn heard_report(&mut self, now: Instant, group: IpAddr, counters: &mut Counters) {
        self.follow_mode(now);
        if self.compatibility.mode() == Version::V3 || self.answers.get(group).is_none() {
            return;
        }
        self.answers.set(group, None);
        counters.suppressed += 1;
    }

    /// Schedules the answer to a query by RFC 3376 section 5.2.
    fn plan_answer(&mut self, now: Instant, query: &Query, sources: Sources<'_>, shared: &mut Shared<'_>) {
        if !self.groups.values().any(Group::is_member) {
            return;
        }
        let at = now + delay(query.max_response, shared.random);
        if self.general.is_some_and(|general| general <= at) {
            return;
        }
        let Some(group) = query.group else {
            self.general = Some(at);
            return;
        };
        let Some(state) = self.groups.get_mut(&group).filter(|state| state.is_member()) else { return };
        let planned = self.answers.get(group);
        if sources.is_empty() || (planned.is_some() && state.asked.is_empty()) {
            state.asked.clear();
        } else {
            state.asked.extend(sources);
            if state.asked.len() > shared.config.max_sources {
                // The whole state answers narrower queries too.
                state.asked.clear();
            }
        }
        self.answers.set(group, Some(planned.map_or(at, |planned| planned.min(at))));
    }

    /// Schedules reports of versions 1 and 2, each after a delay of its own (RFC 2236 section 3).
    fn plan_older_answers(&mut self, now: Instant, query: &Query, random: &mut Stream) {
        let groups = match query.group {
            Some(group) => self.groups.range(group..=group),
            None => self.groups.range(..),
        };
        let asked = groups.filter(|(group, state)| state.is_member() && speaks_older(**group));
        for (&group, _) in asked {
            let at = now + delay(query.max_response, random);
            let planned = self.answers.get(group);
            self.answers.set(group, Some(planned.map_or(at, |planned| planned.min(at))));
        }
    }

    /// The packets that are due.
    pub(super) fn due(&mut self, now: Instant, shared: &mut Shared<'_>) -> Vec<Report> {
        self.follow_mode(now);
        let mut reports = self.due_changes(now, shared);
        let answers =
            if self.compatibility.mode() == Version::V3 { self.due_answers(now, shared) } else { Vec::new() };
        reports.extend(answers);
        if self.compatibility.mode() < Version::V3 {
            self.due_older_answers(now, shared, &mut reports);
        }
        shared.counters.reports += reports.len() as u64;
        reports
    }

    fn due_changes(&mut self, now: Instant, shared: &mut Shared<'_>) -> Vec<Report> {
        let mode = self.compatibility.mode();
        let (mut records, mut reports) = (Vec::new(), Vec::new());
        while let Some(group) = self.changes.expired(now) {
            let Some(state) = self.groups.get_mut(&group) else { continue };
            if mode == Version::V3 {
                state.change.records(group, &state.filter, &mut records);
            } else if speaks_older(group) {
                match state.filter {
                    Filter::None if mode == Version::V1 => {}
                    Filter::None => reports.push(shared.interface.leave(self.number, group)),
                    _ => reports.push(shared.interface.older_report(self.number, mode, group)),
                }
            }
            state.change.sent();
            if state.change.is_pending() {
                let at = now + delay(shared.config.unsolicited_interval, shared.random);
                // Never at this instant again: its records are being sent.
                self.changes.set(group, Some(at.max(now + Duration::from_nanos(1))));
            }
            self.forget(group);
        }
        reports.extend(shared.interface.report(self.number, self.version, records));
        reports
    }

    fn due_answers(&mut self, now: Instant, shared: &Shared<'_>) -> Vec<Report> {
        if !self.pace.is_ready(now) {
            return Vec::new();
        }
        let mut records: Vec<Record> = Vec::new();
        if self.general.is_some_and(|at| at <= now) {
            self.general = None;
            records.extend(self.groups.iter().filter_map(|(&group, state)| state.current(group)));
        }
        while let Some(group) = self.answers.expired(now) {
            records.extend(self.groups.get_mut(&group).and_then(|state| state.answer(group)));
        }
        let reports = shared.interface.report(self.number, self.version, records);
        self.pace.sent(now, reports.len() as u64);
        reports
    }

    fn due_older_answers(&mut self, now: Instant, shared: &Shared<'_>, reports: &mut Vec<Report>) {
        while self.pace.is_ready(now)
            && let Some(group) = self.answers.expired(now)
        {
            if self.groups.get(&group).is_some_and(Group::is_member) {
                reports.push(shared.interface.older_report(self.number, self.compatibility.mode(), group));
                self.pace.sent(now, 1);
            }
        }
    }

    /// The earliest deadline.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let answers = [self.general, self.answers.next()].into_iter().flatten().min();
        let answers = answers.map(|at| at.max(self.pace.ready_at()));
        [answers, self.changes.next()].into_iter().flatten().min()
    }

    /// Cancels all that is pending if the querier's version has changed (RFC 3376 section 7.2.1).
    fn follow_mode(&mut self, now: Instant) {
        if !self.compatibility.has_changed(now) {
            return;
        }
        self.general = None;
        self.answers.clear();
        self.changes.clear();
        for state in self.groups.values_mut() {
            state.change = Default::default();
            state.asked.clear();
        }
        self.groups.retain(|_, state| state.is_member());
    }

    /// Forgets a group that the host has left, once all reports of that are sent.
    fn forget(&mut self, group: IpAddr) {
        if self.groups.get(&group).is_some_and(|state| !state.is_member() && !state.change.is_pending()) {
            self.groups.remove(&group);
            self.changes.set(group, None);
            self.answers.set(group, None);
        }
    }
}

/// Whether versions 1 and 2 may report a group: not a source-specific one, since they have no sources (RFC 4604 section
/// 2.2.4).
fn speaks_older(group: IpAddr) -> bool {
    !is_source_specific(group)
}

/// A random time in (0, `max`]; zero if that is zero.
fn delay(max: Duration, random: &mut Stream) -> Duration {
    let nanos = max.as_nanos();
    Duration::from_nanos(if nanos == 0 { 0 } else { 1 + random.below(nanos) })
}
