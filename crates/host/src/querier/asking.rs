//! The queries for a group and its sources that are still to be sent.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopcast_core::Instant;

use super::config::Timing;
use super::group::Group;

/// The outstanding queries that a leave has caused (RFC 3376 section 6.6.3, RFC 3810 section 7.6.3).
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// Number of outstanding queries for the group.
    group: u8,
    /// Number of outstanding queries for each source.
    sources: BTreeMap<IpAddr, u8>,
    /// Time of the next query.
    at: Option<Instant>,
}

/// A query that is due.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    /// The S flag: other routers must not lower their timers.
    pub(super) suppress: bool,
    /// The sources in the query; none for the whole group.
    pub(super) sources: Vec<IpAddr>,
}

impl Asking {
    /// Number of queries that [`ask_group`](Self::ask_group) adds to those already due.
    pub(super) fn cost_of_group(&self, timing: &Timing) -> u8 {
        timing.last_member_query_count - self.group.min(timing.last_member_query_count)
    }

    /// Number of queries that [`ask_sources`](Self::ask_sources) adds to those already due.
    pub(super) fn cost_of_sources(&self, timing: &Timing) -> u8 {
        let left = self.sources.values().copied().max().unwrap_or(0);
        timing.last_member_query_count - left.min(timing.last_member_query_count)
    }

    /// Schedules queries for the group, and lowers its timer.
    pub(super) fn ask_group(&mut self, now: Instant, group: &mut Group, timing: &Timing) {
        group.lower(now + timing.last_member_query_time());
        self.group = timing.last_member_query_count;
        self.at.get_or_insert(now);
    }

    /// Schedules queries for these sources, and lowers their timers.
    pub(super) fn ask_sources(
        &mut self,
        now: Instant,
        sources: impl IntoIterator<Item = IpAddr>,
        group: &mut Group,
        timing: &Timing,
    ) {
        // Reports may replace a group's sources many times before the next query.
        self.sources.retain(|&source, _| group.source(source).is_some());
        let until = now + timing.last_member_query_time();
        for source in sources {
            group.lower_source(source, until);
            self.sources.insert(source, timing.last_member_query_count);
            self.at.get_or_insert(now);
        }
    }

    /// Time of the next query; `None` if none is outstanding.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.at
    }

    /// The queries that are due.
    pub(super) fn due(&mut self, now: Instant, group: &Group, timing: &Timing) -> Vec<Question> {
        if self.at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        let late = now + timing.last_member_query_time();
        let mut questions = Vec::new();
        if !group.is_exclude() {
            // No member is left that may want all sources.
            self.group = 0;
        }
        let whole = self.group > 0;
        if whole {
            self.group -= 1;
            questions.push(Question { suppress: group.outlasts(late), sources: Vec::new() });
        }
        self.sources.retain(|&source, _| group.source(source).is_some());
        let is_long = |source: &IpAddr| group.source(*source).is_some_and(|until| until > late);
        let (long, short): (Vec<IpAddr>, Vec<IpAddr>) =
            self.sources.keys().partition(|source| is_long(source));
        // A query for the whole group makes one with the S flag superfluous.
        let long = if whole { Vec::new() } else { long };
        for (suppress, sources) in [(true, long), (false, short)] {
            if !sources.is_empty() {
                questions.push(Question { suppress, sources });
            }
        }
        self.sources.retain(|_, left| {
            *left -= 1;
            *left > 0
        });
        let more = self.group > 0 || !self.sources.is_empty();
        self.at = more.then(|| now + timing.last_member_query_interval);
        questions
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hopcast_core::Duration;
    use hopcast_wire::membership::RecordType;

    use super::super::Config;
    use super::*;

    fn source(number: u16) -> IpAddr {
        let [high, low] = number.to_be_bytes();
        [10, 9, high, low].into()
    }

    #[test]
    fn a_query_for_the_whole_group_does_for_the_sources_that_others_still_want() {
        let timing = Config::default().timing();
        let (mut group, mut asking, now) = (Group::default(), Asking::default(), Instant::ZERO);
        group.report(now, RecordType::IsExclude, BTreeSet::new(), &timing);
        group.report(now, RecordType::Allow, BTreeSet::from([source(1), source(2)]), &timing);
        asking.ask_sources(now, [source(1), source(2)], &mut group, &timing);
        asking.ask_group(now, &mut group, &timing);
        let question = |suppress, sources: &[u16]| Question {
            suppress,
            sources: sources.iter().map(|&number| source(number)).collect(),
        };
        assert_eq!(asking.due(now, &group, &timing), [question(false, &[]), question(false, &[1, 2])]);
        // Somebody wants the first.
        let later = now + Duration::from_secs(1);
        group.report(later, RecordType::IsInclude, BTreeSet::from([source(1)]), &timing);
        assert_eq!(asking.due(later, &group, &timing), [question(false, &[]), question(false, &[2])]);
        assert_eq!(asking.deadline(), None);
    }

    #[test]
    fn sources_that_are_replaced_are_not_asked_for_any_more() {
        let timing = Config::default().timing();
        let (mut group, mut asking, now) = (Group::default(), Asking::default(), Instant::ZERO);
        group.report(now, RecordType::IsExclude, BTreeSet::new(), &timing);
        for number in 0..1000 {
            let questions =
                group.report(now, RecordType::ToExclude, BTreeSet::from([source(number)]), &timing);
            asking.ask_sources(now, questions.sources, &mut group, &timing);
            assert!(asking.sources.len() <= 1);
        }
    }
}
