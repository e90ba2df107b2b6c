//! The reports of a change that are still to be sent.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use hopcast_wire::membership::RecordType;

use super::Filter;
use super::packet::Record;

/// The contents of a group's next reports of changes (RFC 3376 section 5.1, RFC 3810 section 6.1). Changes that come
/// before the reports of earlier ones have all been sent are merged into them.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// Number of outstanding reports with a record of the filter mode.
    mode: u8,
    /// Number of outstanding reports with each source that was added or removed.
    sources: BTreeMap<IpAddr, u8>,
}

impl Change {
    /// Notes a change of the filter, to be reported `robustness` times.
    pub(super) fn note(&mut self, before: &Filter, after: &Filter, robustness: u8) {
        let (before_any, after_any) = (*before == Filter::Any, *after == Filter::Any);
        if before_any != after_any {
            // The record of a mode has all of the sources.
            *self = Self { mode: robustness, sources: BTreeMap::new() };
        } else {
            let changed = sources(before).symmetric_difference(sources(after));
            self.sources.extend(changed.map(|&source| (source, robustness)));
        }
    }

    /// Notes a change for queriers that know no sources: a join is reported `robustness` times, a leave once.
    pub(super) fn note_older(&mut self, after: &Filter, robustness: u8) {
        *self = Self { mode: if *after == Filter::None { 1 } else { robustness }, sources: BTreeMap::new() };
    }

    /// Whether a report is outstanding.
    pub(super) fn is_pending(&self) -> bool {
        self.mode > 0 || !self.sources.is_empty()
    }

    /// Notes that one report was sent.
    pub(super) fn sent(&mut self) {
        self.mode = self.mode.saturating_sub(1);
        self.sources.retain(|_, left| {
            *left -= 1;
            *left > 0
        });
    }

    /// Appends the records of the next report.
    pub(super) fn records(&self, group: IpAddr, filter: &Filter, records: &mut Vec<Record>) {
        if self.mode > 0 {
            let kind = match filter {
                Filter::Any => RecordType::ToExclude,
                Filter::None | Filter::Include(_) => RecordType::ToInclude,
            };
            records.push(Record { kind, group, sources: sources(filter).iter().copied().collect() });
            return;
        }
        let wanted = sources(filter);
        let (allow, block) = self.sources.keys().partition(|source| wanted.contains(source));
        for (kind, sources) in [(RecordType::Allow, allow), (RecordType::Block, block)] {
            let sources: Vec<IpAddr> = sources;
            if !sources.is_empty() {
                records.push(Record { kind, group, sources });
            }
        }
    }
}

/// The sources that a filter names.
pub(super) fn sources(filter: &Filter) -> &BTreeSet<IpAddr> {
    static NONE: BTreeSet<IpAddr> = BTreeSet::new();
    match filter {
        Filter::Include(sources) => sources,
        Filter::None | Filter::Any => &NONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn include(sources: &[u8]) -> Filter {
        Filter::Include(sources.iter().map(|&last| [10, 0, 0, last].into()).collect())
    }

    /// The next report: the type of each record and the last byte of its sources.
    fn next(change: &mut Change, filter: &Filter) -> Vec<(RecordType, Vec<u8>)> {
        let mut records = Vec::new();
        change.records([239, 0, 0, 1].into(), filter, &mut records);
        change.sent();
        let last = |source: &IpAddr| match source {
            IpAddr::V4(source) => source.octets()[3],
            IpAddr::V6(_) => panic!("IPv4"),
        };
        records.iter().map(|record| (record.kind, record.sources.iter().map(last).collect())).collect()
    }

    #[test]
    fn a_change_of_mode_is_told_with_all_sources_as_they_are_then() {
        let mut change = Change::default();
        change.note(&Filter::Any, &include(&[1, 2]), 2);
        assert_eq!(next(&mut change, &include(&[1, 2])), [(RecordType::ToInclude, vec![1, 2])]);
        // A source more: the second record of the mode has it, and a report more is about it alone.
        change.note(&include(&[1, 2]), &include(&[1, 2, 3]), 2);
        assert_eq!(next(&mut change, &include(&[1, 2, 3])), [(RecordType::ToInclude, vec![1, 2, 3])]);
        assert_eq!(next(&mut change, &include(&[1, 2, 3])), [(RecordType::Allow, vec![3])]);
        assert!(!change.is_pending());
    }

    #[test]
    fn changes_of_sources_are_merged_and_each_is_told_as_often() {
        let mut change = Change::default();
        change.note(&include(&[1]), &include(&[1, 2]), 2);
        assert_eq!(next(&mut change, &include(&[1, 2])), [(RecordType::Allow, vec![2])]);
        change.note(&include(&[1, 2]), &include(&[2, 3]), 2);
        let now = include(&[2, 3]);
        assert_eq!(next(&mut change, &now), [(RecordType::Allow, vec![2, 3]), (RecordType::Block, vec![1])]);
        assert_eq!(next(&mut change, &now), [(RecordType::Allow, vec![3]), (RecordType::Block, vec![1])]);
        assert!(!change.is_pending());
    }

    #[test]
    fn a_leave_is_a_change_to_no_source_or_a_block_of_the_last() {
        let mut change = Change::default();
        change.note(&Filter::Any, &Filter::None, 1);
        assert_eq!(next(&mut change, &Filter::None), [(RecordType::ToInclude, vec![])]);
        change.note(&include(&[1]), &Filter::None, 1);
        assert_eq!(next(&mut change, &Filter::None), [(RecordType::Block, vec![1])]);
        assert!(!change.is_pending());
    }
}
