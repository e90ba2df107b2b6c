//! The status of a group.

use hopcast_core::Instant;

use super::LocalMember;
use super::catalogue::File;
use super::wire::Standing;
use crate::status::{GroupFile, GroupMemberStatus, GroupStatus};

/// Files that a status lists: the last that were found. Chosen: a page of `hopcast node status`, and few enough for the
/// labels of metrics.
const MAX_LISTED: usize = 64;

impl LocalMember {
    /// The status; members' states are their peers'.
    pub(crate) fn status(&self, now: Instant) -> GroupStatus {
        let mut counters = std::collections::BTreeMap::new();
        self.report_counters(&mut |name, value| *counters.entry(name.to_owned()).or_insert(0) += value);
        let mut files: Vec<GroupFile> =
            self.catalogue.iter().rev().take(MAX_LISTED).map(|file| self.file(file)).collect();
        files.reverse();
        GroupStatus {
            name: self.config.name.clone(),
            members: (0..self.up.len()).map(|member| self.member(now, member)).collect(),
            files_offered: self.catalogue.len() as u64,
            files_everywhere: self.catalogue.iter().filter(|file| file.is_everywhere()).count() as u64,
            files,
            messages_sent: self.talk.sent.into(),
            received_bytes: self.used,
            quota: self.config.quota,
            counters,
            ..GroupStatus::default()
        }
    }

    fn member(&self, now: Instant, member: usize) -> GroupMemberStatus {
        let (mut has, mut lacks, mut refuses, mut unknown) = (0, 0, 0, 0);
        for file in self.catalogue.iter() {
            match file.standings[member] {
                Some(Standing::Has) => has += 1,
                Some(Standing::Lacks(_)) => lacks += 1,
                Some(Standing::Refused(_)) => refuses += 1,
                None => unknown += 1,
            }
        }
        let (told, incoming) = (self.talk.told[member], &self.incoming[member]);
        GroupMemberStatus {
            name: self.config.members[member].0.clone(),
            up: self.up[member],
            silent_s: self.statements.heard(member).map(|at| now.since(at).as_secs_f64()),
            files_has: has,
            files_lacks: lacks,
            files_refuses: refuses,
            files_unknown: unknown,
            messages_has: told.came.into(),
            messages_last: told.last.into(),
            files_received: incoming.stored,
            bytes_received: incoming.stored_bytes,
            ..GroupMemberStatus::default()
        }
    }

    fn file(&self, file: &File) -> GroupFile {
        let standing = |member: usize| {
            let words = match (&file.standings[member], file.refusal(member)) {
                (Some(Standing::Has), _) => "has".to_owned(),
                (_, Some(why)) => why.words().to_owned(),
                (Some(_), None) => {
                    let held = file.held(member).unwrap_or(0);
                    format!("{} %", u64::from(held) * 100 / u64::from(file.pieces.max(1)))
                }
                (None, None) if self.up[member] => "asked".to_owned(),
                (None, None) => "down".to_owned(),
            };
            (self.config.members[member].0.clone(), words)
        };
        GroupFile {
            name: file.name.to_string(),
            bytes: file.size,
            members: (0..self.up.len()).map(standing).collect(),
        }
    }

    /// The counters of its transport, of files and messages together, and its own.
    pub(super) fn report_counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.files.counters(report);
        if let Some(messages) = &self.messages {
            messages.counters(report);
        }
        let counts = &self.counts;
        let own = [
            ("statements_malformed", counts.malformed + self.talk.malformed),
            ("statements_foreign", counts.foreign),
            ("statements_of_other_group", counts.other_group),
            ("pieces_sent", counts.pieces_sent),
            ("pieces_received", counts.pieces_received),
            ("pieces_dropped", counts.pieces_dropped),
            ("offers_sent", counts.offers_sent),
            ("receipts_sent", counts.receipts_sent),
            ("file_rounds", counts.rounds),
            ("messages_sent", counts.messages_sent),
            ("messages_refused", counts.messages_refused),
            ("messages_received", counts.messages_received),
            ("messages_repeated", self.talk.repeated),
        ];
        own.into_iter().for_each(|(name, value)| report(name, value));
    }
}
