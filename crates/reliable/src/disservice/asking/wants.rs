//! The wants that a request is made of.

use std::ops::Range;

use hopcast_core::Instant;

use super::super::config::Servers;
use super::super::message::Message;
use super::super::series::SeriesId;
use super::super::wire::{MAX_RUNS, MAX_WANTS, MessageId, Missing, Want};
use super::{Asking, PASSES, Passes, View, coded};
use crate::runs::Runs;

/// Missing fragments of a message that are looked at for a request. Chosen: more than a request names.
pub(super) const MAX_DRAWN: usize = 1 << 16;

/// Room for wants in a request.
pub(super) struct Budget {
    /// Bytes.
    pub(super) room: usize,
    pub(super) fragments: u64,
    /// Fragments of a whole message, as far as is known.
    pub(super) each: u64,
}

impl Asking {
    /// The wants of the next request, of so many parts at most.
    pub(super) fn wants(&mut self, now: Instant, parts: u64, view: &View<'_>) -> Vec<Want> {
        let each = if self.turns.is_crowd() { self.fragments_each } else { 1 };
        let mut budget = Budget { room: self.room, fragments: parts, each };
        let mut wants: Vec<Want> = Vec::new();
        let series: Vec<_> =
            view.catalogue.incomplete().filter(|(_, series)| self.asks_for(series)).collect();
        let is_of_holders = self.turns.is_crowd()
            && matches!(self.servers, Servers::One)
            && self.idle_since.is_none_or(|since| now.since(since) < self.patience);
        for (id, series) in series {
            // What nobody of many is known to hold would only be asked for in vain, and each waits for the others'
            // answers: until nothing is to come for some time, since what holders said may have been lost.
            let held = if is_of_holders { view.neighbours.held(now, id) } else { None };
            let held = held.unwrap_or_else(|| Runs::one(0..u32::MAX));
            for sequence in held.ranges().flat_map(|run| series.missing_in(run)) {
                if budget.is_spent() || wants.len() >= MAX_WANTS {
                    return wants;
                }
                let message = id.message(sequence);
                let is_late = self.passes.get(&message).is_some_and(|passes| passes.next > now);
                if is_late || self.losses.has(message) {
                    continue;
                }
                let found = match view.cache.get(message) {
                    Some(held) => self.of_message(now, message, held, sequence == series.newest),
                    None if self.expected.has(message) || !self.is_drawn(message) => Vec::new(),
                    None => match wants.last_mut() {
                        // One more of several in a row.
                        Some(Want { id: first, missing: Missing::Whole(count) })
                            if SeriesId::from(*first) == id && first.sequence + *count == sequence =>
                        {
                            *count += 1;
                            budget.fragments = budget.fragments.saturating_sub(budget.each);
                            Vec::new()
                        }
                        _ => vec![Want { id: message, missing: Missing::Whole(1) }],
                    },
                };
                for want in found {
                    if !budget.takes(&want) {
                        return wants;
                    }
                    wants.push(want);
                }
            }
        }
        wants
    }

    /// Wants for a message of which something is here.
    pub(super) fn of_message(
        &mut self,
        now: Instant,
        id: MessageId,
        message: &Message,
        is_newest: bool,
    ) -> Vec<Want> {
        // It may still be coming.
        let tail = self.every * u64::from(self.tail_after);
        let tail = if self.is_coded { tail.max(self.spacing * coded::TAIL) } else { tail };
        let comes = is_newest && message.last_new().is_some_and(|last| now.since(last) < tail);
        let end = if comes { message.highest() } else { message.shape.fragments() };
        if self.is_coded {
            // A chunk is asked for when it is over: one combination then serves what several members lost of it.
            let end = if comes { message.shape.fragments_of(message.shape.chunk_of(end)).start } else { end };
            return self.chunks_of(id, message, end);
        }
        let mut missing = message.absent(0..end);
        let asked = self.expected.of(id).iter().flat_map(|asked| asked.fragments.runs());
        asked.for_each(|run| missing.remove_run(run));
        let mut runs: Vec<Range<u32>> = Vec::new();
        if self.draws_all(id) {
            runs.extend(missing.ranges());
        } else {
            for index in missing.numbers().take(MAX_DRAWN) {
                if self.is_drawn(id) {
                    extend(&mut runs, index as u32);
                }
            }
        }
        runs.truncate(MAX_RUNS);
        if runs.is_empty() { Vec::new() } else { vec![Want { id, missing: Missing::Fragments(runs) }] }
    }

    /// Whether all that is missing of a message is asked for.
    fn draws_all(&self, id: MessageId) -> bool {
        let is_fruitless = |passes: &Passes| passes.fruitless >= PASSES;
        self.share >= 1.0 || self.passes.get(&id).is_some_and(is_fruitless)
    }

    /// Whether one of those that are missing is asked for now.
    fn is_drawn(&mut self, id: MessageId) -> bool {
        self.draws_all(id) || self.random.chance(self.share)
    }
}

impl Budget {
    pub(super) const fn is_spent(&self) -> bool {
        self.room < 16 || self.fragments == 0
    }

    /// Whether a want fits, which is then in the request.
    pub(super) fn takes(&mut self, want: &Want) -> bool {
        let len = want.len();
        let fits = len + 4 <= self.room;
        if fits {
            self.room -= len;
            self.fragments = self.fragments.saturating_sub(fragments(want, self.each));
        }
        fits
    }
}

/// Fragments that a want names, with messages of so many each, as far as is known.
pub(super) fn fragments(want: &Want, each: u64) -> u64 {
    want.parts().saturating_mul(if matches!(want.missing, Missing::Whole(_)) { each } else { 1 })
}

/// Adds a number to runs, which is higher than all in them.
pub(super) fn extend(runs: &mut Vec<Range<u32>>, index: u32) {
    match runs.last_mut() {
        Some(run) if run.end == index => run.end += 1,
        _ => runs.push(index..index + 1),
    }
}
