//! Messages that others of many have and this member lost on the way: how it notices, and its request for them.

use hopcast_core::Instant;

use super::super::config::Servers;
use super::super::wire::{MAX_WANTS, MemberId, MessageId, Missing, Want};
use super::wants::Budget;
use super::{Asking, View};

/// Messages in a row that a member of many lost, at most: others may not have more either. Chosen: a burst of some
/// packets.
pub(in super::super) const MAX_LOST: usize = 8;

impl Asking {
    /// A server of many answers what it was asked for of a message. If it was to send a few others since it was heard
    /// last, those have been lost on the way to this member, or to several.
    pub(super) fn note_passed(&mut self, now: Instant, server: MemberId, id: MessageId) {
        if !self.turns.is_crowd() {
            return;
        }
        for id in self.expected.passed(server, id) {
            self.note_lost(now, server, id);
        }
    }

    /// A message of a series is heard from its publisher for the first time: those before it were lost.
    pub(in super::super) fn note_published(&mut self, now: Instant, id: MessageId, view: &View<'_>) {
        if !self.turns.is_crowd() {
            return;
        }
        let Some(series) = view.catalogue.get(id.into()).filter(|series| self.asks_for(series)) else {
            return;
        };
        let before = id.sequence.saturating_sub(MAX_LOST as u32)..id.sequence;
        for sequence in series.missing_in(before) {
            let lost = MessageId { sequence, ..id };
            if !self.expected.has(lost) {
                self.note_lost(now, id.publisher, lost);
            }
        }
    }

    /// A server has sent all of a message, and unless the rest comes soon, another that heard it is asked.
    pub(super) fn note_lost(&mut self, now: Instant, server: MemberId, id: MessageId) {
        if self.turns.is_crowd() && matches!(self.servers, Servers::One) {
            let wait = self.every.mul_f64(2.0 * self.random.uniform());
            self.losses.add(now, id, server, wait);
        }
    }

    /// The request to make now for what this member lost of what others have, and of whom.
    pub(super) fn lost(&mut self, now: Instant, view: &View<'_>) -> Option<(MemberId, Vec<Want>)> {
        let again = now + self.every * 4;
        let mut budget = Budget { room: self.room, fragments: MAX_WANTS as u64, each: self.fragments_each };
        let (mut wants, mut except) = (Vec::new(), Vec::new());
        while !budget.is_spent()
            && wants.len() < MAX_WANTS
            && let Some((id, server)) = self.losses.next(now)
        {
            let whole = Want { id, missing: Missing::Whole(1) };
            if self.missing_of(&whole, view).next().is_none() {
                self.losses.remove(id);
                continue;
            }
            let found = match view.cache.get(id) {
                // Somebody else may have asked for it meanwhile.
                _ if self.expected.has(id) => Vec::new(),
                Some(held) => self.of_message(now, id, held, false),
                None => vec![whole],
            };
            let is_any = !found.is_empty();
            if found.iter().all(|want| budget.takes(want)) {
                self.losses.put_off(id, again, is_any);
                wants.extend(found);
                if is_any && !except.contains(&server) {
                    except.push(server);
                }
            } else {
                // It is in the next request, or too long for any.
                self.losses.put_off(id, if wants.is_empty() { again } else { now }, false);
                break;
            }
        }
        if wants.is_empty() {
            return None;
        }
        let server = view.neighbours.any(now, &except, &mut self.random)?;
        for want in &wants {
            self.expected.note(want.id, &want.missing, Some(server), again);
        }
        Some((server, wants))
    }

    /// While it is not this member's turn: the last few that it lacks of what others hold need none.
    pub(super) fn note_last_few(&mut self, now: Instant, view: &View<'_>) {
        let mut lost = Vec::new();
        for (id, series) in view.catalogue.incomplete().filter(|(_, series)| self.asks_for(series)) {
            let Some(held) = view.neighbours.held(now, id) else { continue };
            for sequence in held.ranges().flat_map(|run| series.missing_in(run)) {
                let message = id.message(sequence);
                if self.expected.has(message) || self.losses.has(message) {
                    continue;
                }
                if lost.len() >= MAX_LOST {
                    return;
                }
                lost.push(message);
            }
        }
        if let Some(server) = self.turns.current() {
            lost.into_iter().for_each(|id| self.note_lost(now, server, id));
        }
    }
}
