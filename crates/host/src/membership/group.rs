//! One group that a host is a member of, or has just left.

use std::collections::BTreeSet;
use std::net::IpAddr;

use hopcast_wire::membership::RecordType;

use super::Filter;
use super::change::{Change, sources};
use super::packet::Record;

/// A group on an interface: the host's filter, and the reports that are outstanding. Their deadlines are in the
/// [`Reporter`](super::reporter::Reporter).
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) filter: Filter,
    /// Reports of changes.
    pub(super) change: Change,
    /// Sources in the queries to be answered, to which the next answer is limited; empty for all.
    pub(super) asked: BTreeSet<IpAddr>,
}

impl Group {
    /// Whether the host wants the group's packets.
    pub(super) fn is_member(&self) -> bool {
        self.filter != Filter::None
    }

    /// The record of the current state; `None` if the host is no member.
    pub(super) fn current(&self, group: IpAddr) -> Option<Record> {
        let kind = match self.filter {
            Filter::None => return None,
            Filter::Include(_) => RecordType::IsInclude,
            Filter::Any => RecordType::IsExclude,
        };
        Some(Record { kind, group, sources: sources(&self.filter).iter().copied().collect() })
    }

    /// Takes the answer to the outstanding queries for this group (RFC 3376 section 5.2, RFC 3810 section 6.3); `None`
    /// if none of their sources is wanted.
    pub(super) fn answer(&mut self, group: IpAddr) -> Option<Record> {
        let asked = core::mem::take(&mut self.asked);
        if asked.is_empty() {
            return self.current(group);
        }
        let wanted = |source: &&IpAddr| match &self.filter {
            Filter::None => false,
            Filter::Include(sources) => sources.contains(*source),
            Filter::Any => true,
        };
        let sources: Vec<_> = asked.iter().filter(wanted).copied().collect();
        (!sources.is_empty()).then_some(Record { kind: RecordType::IsInclude, group, sources })
    }
}
