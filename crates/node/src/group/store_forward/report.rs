//! The status of a group that stores and forwards.

use std::collections::BTreeMap;

use hopcast_core::Instant;

use super::StoreForward;
use super::machine::{FILES, MESSAGES};
use crate::group::machine::count;
use crate::status::{GroupMemberStatus, GroupStatus, HeldStatus};
use crate::store::Store;

impl StoreForward {
    /// The status; members' states are their peers'.
    pub(crate) fn status(&self, now: Instant) -> GroupStatus {
        let mut counters = BTreeMap::new();
        self.report_counters(&mut |name, value| *counters.entry(name.to_owned()).or_insert(0) += value);
        let (published, due) = self.outgoing.counts();
        let both = [FILES, MESSAGES].map(|place| &self.holders[place]);
        let held = HeldStatus {
            files_published: published,
            files_due: due,
            files_waiting: self.arrivals.waiting(),
            messages: both.iter().map(|holder| holder.holding().messages).sum(),
            bytes: both.iter().map(|holder| holder.holding().bytes).sum(),
            max_bytes: self.config.rooms.iter().map(|&(room, _)| room).sum(),
            unsent_bytes: both.iter().map(|holder| holder.holding().unsent).sum(),
            disk_bytes: self.store.as_ref().map(Store::bytes),
            dropped: both.iter().map(|holder| count(&***holder, "cache_dropped")).sum(),
            expired: both.iter().map(|holder| count(&***holder, "cache_expired")).sum(),
        };
        GroupStatus {
            name: self.config.name.clone(),
            members: (0..self.up.len()).map(|member| self.member(now, member)).collect(),
            messages_sent: self.counts.messages_sent,
            received_bytes: self.used,
            quota: self.config.quota,
            held: Some(held),
            counters,
            ..GroupStatus::default()
        }
    }

    fn member(&self, now: Instant, member: usize) -> GroupMemberStatus {
        let (other, came) = (&self.config.members[member], self.came[member]);
        GroupMemberStatus {
            name: other.name.clone(),
            up: self.up[member],
            afar: other.address.is_none(),
            silent_s: self.heard[member].map(|at| now.since(at).as_secs_f64()),
            files_received: came.files,
            bytes_received: came.bytes,
            messages_received: came.messages,
            ..GroupMemberStatus::default()
        }
    }

    /// The counters of its transport, of files and messages together, and its own.
    pub(super) fn report_counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.holders.iter().for_each(|holder| holder.counters(report));
        let counts = &self.counts;
        let own = [
            ("statements_malformed", counts.malformed),
            ("statements_foreign", counts.foreign),
            ("files_published", counts.files_published),
            ("files_refused", counts.files_refused),
            ("files_received", self.came.iter().map(|came| came.files).sum()),
            ("files_repeated", self.arrivals.repeated),
            ("files_overtaken", counts.files_overtaken),
            ("files_given_up", self.arrivals.given_up),
            ("messages_sent", counts.messages_sent),
            ("messages_refused", counts.messages_refused),
            ("messages_received", counts.messages_received),
            ("records_damaged", counts.records_damaged),
            ("records_lost", self.store.as_ref().map_or(0, Store::lost)),
        ];
        own.into_iter().for_each(|(name, value)| report(name, value));
    }
}
