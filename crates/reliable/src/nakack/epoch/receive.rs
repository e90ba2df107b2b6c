//! Receiving in a view: messages, digests and requests.

use hopcast_core::{Duration, Instant};

use super::super::wire::{Flags, Sent};
use super::{Counted, Epoch};

impl Epoch {
    /// A transmission of a member, to all: its rank, if it is another member's. Notes what was lost before it.
    pub(in super::super) fn heard(&mut self, now: Instant, from: Sent) -> Option<u16> {
        let rank = usize::from(from.rank);
        if from.tag != self.tag || rank >= self.windows.len() || from.rank == self.own {
            return None;
        }
        if self.heard[rank].note(now, from.transmission) {
            // What was lost may have been a repair of anybody's message.
            for origin in 0..self.windows.len() {
                self.missing(now, origin, rank, false);
            }
        }
        Some(from.rank)
    }

    /// A message of `origin`'s, for the first time or again.
    pub(in super::super) fn message(
        &mut self,
        now: Instant,
        origin: u16,
        sequence: u32,
        (flags, payload): (Flags, &[u8]),
        counted: &mut Counted,
    ) {
        let rank = usize::from(origin);
        if rank >= self.windows.len() || origin == self.own || payload.len() > usize::from(u16::MAX) {
            counted.strange += 1;
            return;
        }
        let limit = self.limit(rank);
        let window = &mut self.windows[rank];
        let number = window.in_full(sequence);
        if number >= limit {
            return;
        }
        if window.has(number) {
            counted.duplicates += 1;
            return;
        }
        let was_missing = number < window.known();
        if !window.insert(number, flags, payload, 0) {
            counted.strange += 1;
            return;
        }
        if was_missing {
            self.requests[rank].arrived(now, number);
        }
        let lacks = self.windows[rank].lacks(limit);
        match (lacks, was_missing) {
            (false, _) => self.requests[rank].complete(),
            (true, false) => self.missing(now, rank, rank, false),
            (true, true) => {}
        }
        self.acknowledge_own(now, rank);
        self.unsaid += payload.len() as u64 + 1;
        if self.unsaid >= self.stack.stable_bytes {
            self.digest_due = Some(now);
        }
    }

    /// A digest of a member's.
    pub(in super::super) fn digest_of(
        &mut self,
        now: Instant,
        from: u16,
        (asks, is_idle): (bool, bool),
        (stable, entries): (Option<u32>, &[(u16, u32)]),
    ) {
        if let Some(stable) = stable {
            // This member is among those that have it.
            let window = &mut self.windows[usize::from(from)];
            let stable = window.in_full(stable).min(window.contiguous());
            self.stability.note_stable(from, stable);
            window.collect(stable);
        }
        for &(of, low) in entries {
            let rank = usize::from(of);
            let Some(window) = self.windows.get_mut(rank) else { continue };
            let number = window.in_full(low);
            // What a member says that it has exists, unless it is this one's own.
            let exists = of != self.own && self.end.is_none() && window.learn(number);
            let is_known = number <= window.known();
            if is_known {
                self.stability.note(now, from, of, number);
            }
            if exists || (is_idle && of == from) {
                self.missing(now, rank, rank, is_idle);
            }
            let stable = self.stability.stable(of);
            self.windows[rank].collect(stable);
        }
        self.finish_announcing(now);
        if asks {
            // Answers of many members do not come at one time.
            let spread = ANSWER_SPREAD * self.windows.len() as u64;
            let at = now + spread.mul_f64(self.random.uniform());
            self.digest_due = Some(self.digest_due.map_or(at, |due| due.min(at)));
        }
    }

    /// A request for messages of `origin`'s: those that are here are to be sent again, unless they were since the
    /// member that asks heard of this one last.
    pub(in super::super) fn request(
        &mut self,
        now: Instant,
        from: Sent,
        (origin, first): (u16, u32),
        runs: &[(u64, u64)],
        counted: &mut Counted,
    ) {
        let rank = usize::from(origin);
        let members = self.windows.len();
        if from.tag != self.tag
            || usize::from(from.rank) >= members
            || from.rank == self.own
            || rank >= members
        {
            counted.strange += 1;
            return;
        }
        counted.requests.received += 1;
        let heard = hopcast_core::bytes::complete(from.transmission, 32, self.transmission);
        if heard > self.transmission {
            counted.strange += 1;
            return;
        }
        if let Some((announced, at)) = self.announcing.last
            && announced == heard
        {
            self.announcing.round_trip.sample(now.since(at));
            self.announcing.last = None;
        }
        let window = &self.windows[rank];
        let mut at = window.in_full(first);
        // What is before the first that it lacks is there.
        if at <= window.known() && self.stability.note(now, from.rank, origin, at) {
            self.collect(rank);
        }
        let window = &self.windows[rank];
        for &(between, length) in runs {
            at = at.saturating_add(between);
            let end = at.saturating_add(length).min(window.known());
            for number in at.max(window.base())..end {
                if window.get(number).is_some_and(|held| held.transmitted <= heard) {
                    self.asked.insert((origin, number));
                }
            }
            at = at.saturating_add(length);
            if at >= window.known() {
                break;
            }
        }
    }

    /// Asks for what is missing of `origin`, when losses have been gathered of what `of` sends. Nothing is in a view
    /// that is frozen, until its leader says up to where messages are to be fetched.
    fn missing(&mut self, now: Instant, origin: usize, of: usize, is_idle: bool) {
        if self.windows[origin].lacks(self.limit(origin)) {
            self.requests[origin].missing(now, &self.heard[of], is_idle);
        }
    }

    /// This member's own digest, as far as it counts here.
    pub(super) fn acknowledge_own(&mut self, now: Instant, rank: usize) {
        let has = self.windows[rank].contiguous();
        if self.stability.note(now, self.own, rank as u16, has) {
            let stable = self.stability.stable(rank as u16);
            self.windows[rank].collect(stable);
        }
    }
}

/// Time over which answers of each member of a view are spread. Chosen: a packet's on a link of 1 Mbit/s.
const ANSWER_SPREAD: Duration = Duration::from_millis(1);
