//! The replication controllers that bring messages to neighbours without being asked.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};

use super::cache::Cache;
use super::config::Replication;
use super::neighbours::Neighbours;
use super::series::{Catalogue, SeriesId};
use super::wire::{MemberId, MessageId};

/// Messages that are pushed to neighbours.
#[derive(Debug)]
pub(super) struct Pushes {
    policy: Replication,
    /// Time after which a message is pushed to a member again that still lacks it.
    again_after: Duration,
    pushed: BTreeMap<(MemberId, MessageId), Instant>,
}

/// Pushes that are remembered, and messages in one.
const MAX_PUSHED: usize = 8192;
const MAX_AT_A_TIME: usize = 64;

impl Pushes {
    pub(super) const fn new(policy: Replication, again_after: Duration) -> Self {
        Self { policy, again_after, pushed: BTreeMap::new() }
    }

    /// The messages that a neighbour is to be sent, which has just said what it holds.
    pub(super) fn to(
        &mut self,
        now: Instant,
        member: MemberId,
        catalogue: &Catalogue,
        cache: &Cache,
        neighbours: &Neighbours,
    ) -> Vec<MessageId> {
        let Some(neighbour) = neighbours.get(member) else { return Vec::new() };
        let is_served = match &self.policy {
            Replication::None | Replication::Pull => false,
            Replication::Push => true,
            Replication::Convoy(after) => now.since(neighbour.since) >= *after,
            Replication::Targets(nodes) => nodes.contains(&member.node),
        };
        if !is_served {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (id, series) in catalogue.iter().filter(|(id, _)| id.publisher != member) {
            let told = neighbour.told(id);
            let lacks = |sequence: u64| told.is_none_or(|told| !told.held.contains(sequence));
            for sequence in series.held.numbers().filter(|&sequence| lacks(sequence)) {
                if found.len() >= MAX_AT_A_TIME {
                    return found;
                }
                let message = SeriesId::message(id, sequence as u32);
                if cache.get(message).is_some() && self.is_time(now, member, message) {
                    found.push(message);
                }
            }
        }
        found
    }

    fn is_time(&mut self, now: Instant, member: MemberId, message: MessageId) -> bool {
        if self.pushed.get(&(member, message)).is_some_and(|&at| now.since(at) < self.again_after) {
            return false;
        }
        if self.pushed.len() >= MAX_PUSHED {
            self.pushed.retain(|_, at| now.since(*at) < self.again_after);
        }
        if self.pushed.len() >= MAX_PUSHED {
            return false;
        }
        self.pushed.insert((member, message), now);
        true
    }
}
