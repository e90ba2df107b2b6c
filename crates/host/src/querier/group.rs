//! A router's state of the members of a group on a link.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use hopcast_core::Instant;
use hopcast_wire::membership::{RecordType, Version};

use super::config::Timing;

/// The state of a group (RFC 3376 section 6.2, RFC 3810 section 7.2).
///
/// In the filter mode EXCLUDE some member wants all sources except a few; in INCLUDE all members together want the
/// sources listed. In the RFCs' notation INCLUDE (A) has the sources A with timers, and EXCLUDE (X, Y) has X with
/// timers and Y without.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// The group timer; `None` in mode INCLUDE.
    exclude_until: Option<Instant>,
    /// The source timers; a source without one is excluded by all members.
    sources: BTreeMap<IpAddr, Option<Instant>>,
    /// Times until which a host of version 1, and one of version 2, counts as present.
    older_until: [Option<Instant>; 2],
}

/// The queries that a report calls for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Questions {
    /// For the group, *Q(G)*.
    pub(super) group: bool,
    /// For sources of the group, *Q(G, X)*, of which only those with long timers are queried.
    pub(super) sources: BTreeSet<IpAddr>,
}

impl Group {
    /// The oldest version of hosts that are members (RFC 3376 section 7.3.2).
    fn mode(&self, now: Instant) -> Version {
        let present = |until: Option<Instant>| until.is_some_and(|until| now < until);
        match self.older_until {
            [first, _] if present(first) => Version::V1,
            [_, second] if present(second) => Version::V2,
            _ => Version::V3,
        }
    }

    /// Notes that a host of an older version is a member.
    pub(super) fn older_host(&mut self, now: Instant, version: Version, timing: &Timing) {
        let until = Some(now + timing.older_host_present_interval());
        self.older_until[usize::from(version != Version::V1)] = until;
    }

    /// Takes a record of a report, or the record equivalent to an older message: the tables of RFC 3376 sections 6.4.1
    /// and 6.4.2.
    pub(super) fn report(
        &mut self,
        now: Instant,
        mut kind: RecordType,
        mut named: BTreeSet<IpAddr>,
        timing: &Timing,
    ) -> Questions {
        match (self.mode(now), kind) {
            (Version::V1, RecordType::ToInclude | RecordType::Block) | (Version::V2, RecordType::Block) => {
                return Questions::default();
            }
            (Version::V1 | Version::V2, RecordType::ToExclude) => named.clear(),
            _ => {}
        }
        if kind == RecordType::Allow {
            // The tables treat both alike.
            kind = RecordType::IsInclude;
        }
        let until = Some(now + timing.group_membership_interval());
        let mut questions = Questions::default();
        match (self.exclude_until, kind) {
            (_, RecordType::IsInclude | RecordType::Allow) => self.want(named, until),
            (None, RecordType::Block) => {
                questions.sources = named;
            }
            (None, RecordType::ToInclude) => {
                questions.sources = self.timed().filter(|source| !named.contains(source)).collect();
                self.want(named, until);
            }
            (None, RecordType::IsExclude | RecordType::ToExclude) => {
                if kind == RecordType::ToExclude {
                    questions.sources = self.timed().filter(|source| named.contains(source)).collect();
                }
                self.keep(named, None);
                self.exclude_until = until;
            }
            (Some(_), RecordType::ToInclude) => {
                questions.sources = self.timed().filter(|source| !named.contains(source)).collect();
                questions.group = true;
                self.want(named, until);
            }
            (Some(group), RecordType::Block) => {
                named.retain(|source| self.sources.get(source) != Some(&None));
                for &source in &named {
                    self.sources.entry(source).or_insert(Some(group));
                }
                questions.sources = named;
            }
            (Some(_), RecordType::IsExclude) => {
                self.keep(named, until);
                self.exclude_until = until;
            }
            (Some(group), RecordType::ToExclude) => {
                self.keep(named, Some(group));
                questions.sources = self.timed().collect();
                self.exclude_until = until;
            }
        }
        questions
    }

    /// Sets the timers of sources that members want.
    fn want(&mut self, named: BTreeSet<IpAddr>, until: Option<Instant>) {
        self.sources.extend(named.into_iter().map(|source| (source, until)));
    }

    /// Keeps only the `named` sources, with their timers; those that are new get the timer `new`.
    fn keep(&mut self, named: BTreeSet<IpAddr>, new: Option<Instant>) {
        let timers = |source| (source, self.sources.get(&source).copied().unwrap_or(new));
        self.sources = named.into_iter().map(timers).collect();
    }

    /// The sources with timers.
    fn timed(&self) -> impl Iterator<Item = IpAddr> {
        self.sources.iter().filter(|(_, until)| until.is_some()).map(|(&source, _)| source)
    }

    /// Ends timers that have expired (RFC 3376 sections 6.3 and 6.5).
    pub(super) fn expire(&mut self, now: Instant) {
        let over = |until: Option<Instant>| until.is_some_and(|until| until <= now);
        if over(self.exclude_until) {
            self.exclude_until = None;
        }
        for until in self.sources.values_mut().filter(|until| over(**until)) {
            *until = None;
        }
        if self.exclude_until.is_none() {
            self.sources.retain(|_, until| until.is_some());
        }
    }

    /// Time at which to call `expire` next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.sources.values().copied().chain([self.exclude_until]).flatten().min()
    }

    /// Whether the group has no members and no state left.
    pub(super) fn is_over(&self) -> bool {
        self.exclude_until.is_none() && self.sources.is_empty()
    }

    /// Lowers the group timer, so that remaining members must report before it ends.
    pub(super) fn lower(&mut self, until: Instant) {
        self.exclude_until = self.exclude_until.map(|now| now.min(until));
    }

    /// Lowers the timer of a source.
    pub(super) fn lower_source(&mut self, source: IpAddr, until: Instant) {
        if let Some(Some(timer)) = self.sources.get_mut(&source) {
            *timer = (*timer).min(until);
        }
    }

    /// Whether the group timer ends after `at`; false in mode INCLUDE.
    pub(super) fn outlasts(&self, at: Instant) -> bool {
        self.exclude_until.is_some_and(|until| until > at)
    }

    /// Whether the group is in mode EXCLUDE.
    pub(super) const fn is_exclude(&self) -> bool {
        self.exclude_until.is_some()
    }

    /// The timer of a source.
    pub(super) fn source(&self, source: IpAddr) -> Option<Instant> {
        self.sources.get(&source).copied().flatten()
    }

    /// Whether packets from `source` are wanted (RFC 3376 section 6.3).
    pub(super) fn forwards(&self, source: IpAddr) -> bool {
        match self.sources.get(&source) {
            Some(until) => until.is_some(),
            None => self.is_exclude(),
        }
    }

    /// The group timer and the source timers.
    #[cfg(test)]
    pub(super) fn timers(&self) -> (Option<Instant>, impl Iterator<Item = (IpAddr, Option<Instant>)>) {
        (self.exclude_until, self.sources.iter().map(|(&source, &until)| (source, until)))
    }

    /// The memberships, for multicast routing: of any source (`None`) or of single ones.
    pub(super) fn wanted(&self) -> BTreeSet<Option<IpAddr>> {
        if self.is_exclude() { BTreeSet::from([None]) } else { self.timed().map(Some).collect() }
    }
}

/// Removes from a record the sources for which the group has no room, and returns their number.
pub(super) fn limit(
    named: &mut BTreeSet<IpAddr>,
    state: Option<&Group>,
    kind: RecordType,
    max_sources: usize,
) -> u64 {
    // The sources of an EXCLUDE filter replace those that there are.
    let state = state.filter(|_| !kind.is_exclude());
    let mut room = max_sources.saturating_sub(state.map_or(0, |state| state.sources.len()));
    let before = named.len();
    named.retain(|source| {
        let is_new = state.is_none_or(|state| !state.sources.contains_key(source));
        let kept = !is_new || room > 0;
        room -= usize::from(is_new && kept);
        kept
    });
    (before - named.len()) as u64
}
