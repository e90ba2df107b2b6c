//! Messages that a server has sent to many and that only this member, or few, lost on the way: another that heard them
//! is asked, since the server has the next ones to send.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_core::{Duration, Instant};

use super::wire::{MemberId, MessageId};

/// Messages that this member lost and others have.
#[derive(Debug, Default)]
pub(super) struct Losses {
    all: BTreeMap<MessageId, Lost>,
    /// When to ask for each.
    due: BTreeSet<(Instant, MessageId)>,
}

/// A message of which something was lost.
#[derive(Clone, Copy, Debug)]
struct Lost {
    at: Instant,
    /// Who sent it.
    server: MemberId,
    /// Members that were asked for it since.
    asked: u32,
}

/// Members that are asked for a message in vain until it counts as one that all lack. Chosen: where each tenth has lost
/// it too, and each tenth answer is lost, all but one in a hundred have it by then.
const MAX_ASKED_FOR_ONE: u32 = 3;
/// Messages at most. Chosen: as many as are asked for at a time.
const MAX_LOST: usize = 4096;

impl Losses {
    /// A message that this server has sent was lost; it is asked for after a time, or together with one that is due
    /// earlier; not at all if it arrives first.
    pub(super) fn add(&mut self, now: Instant, id: MessageId, server: MemberId, wait: Duration) {
        let at = self.deadline().filter(|&at| at > now).map_or(now + wait, |at| at.min(now + wait));
        if self.all.len() < MAX_LOST && !self.all.contains_key(&id) {
            self.all.insert(id, Lost { at, server, asked: 0 });
            self.due.insert((at, id));
        }
    }

    /// A message is whole, or of no interest any more.
    pub(super) fn remove(&mut self, id: MessageId) {
        if let Some(lost) = self.all.remove(&id) {
            self.due.remove(&(lost.at, id));
        }
    }

    /// Whether a message is one of them.
    pub(super) fn has(&self, id: MessageId) -> bool {
        self.all.contains_key(&id)
    }

    /// When the first is to be asked for.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.due.first().map(|&(at, _)| at)
    }

    /// A message to ask for now, and the member that has sent it; not again until it is put off.
    pub(super) fn next(&mut self, now: Instant) -> Option<(MessageId, MemberId)> {
        while let Some(&(at, id)) = self.due.first()
            && at <= now
        {
            self.due.pop_first();
            match self.all.get(&id) {
                Some(lost) if lost.asked < MAX_ASKED_FOR_ONE => return Some((id, lost.server)),
                _ => _ = self.all.remove(&id),
            }
        }
        None
    }

    /// A message is to be asked for at a time, unless it comes until then; whether a member has been asked for it.
    pub(super) fn put_off(&mut self, id: MessageId, at: Instant, was_asked: bool) {
        if let Some(lost) = self.all.get_mut(&id) {
            self.due.remove(&(lost.at, id));
            lost.asked += u32::from(was_asked);
            lost.at = at;
            self.due.insert((at, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, id, member};
    use super::*;

    /// Those that are asked for now, and again half a second later.
    fn ids(losses: &mut Losses, millis: u64) -> Vec<u32> {
        let found: Vec<_> = std::iter::from_fn(|| losses.next(at(millis))).collect();
        found.iter().for_each(|&(id, _)| losses.put_off(id, at(millis + 500), true));
        found.iter().map(|(id, _)| id.sequence).collect()
    }

    #[test]
    fn what_is_lost_is_asked_for_together_and_again_until_it_comes() {
        let mut losses = Losses::default();
        losses.add(at(0), id(1), member(1), Duration::from_millis(100));
        // With the first, and not later; one that is sooner does not wait for it.
        losses.add(at(50), id(2), member(2), Duration::from_millis(300));
        losses.add(at(50), id(3), member(2), Duration::from_millis(20));
        losses.add(at(60), id(3), member(2), Duration::from_millis(500));
        assert_eq!(losses.deadline(), Some(at(70)));
        assert_eq!((ids(&mut losses, 69), ids(&mut losses, 70)), (vec![], vec![3]));
        assert_eq!(losses.next(at(100)), Some((id(1), member(1))));
        losses.put_off(id(1), at(600), true);
        assert_eq!((losses.next(at(100)), losses.next(at(100))), (Some((id(2), member(2))), None));
        losses.put_off(id(2), at(600), true);
        losses.remove(id(1));
        assert!(!losses.has(id(1)) && losses.has(id(2)));
        assert_eq!(losses.deadline(), Some(at(570)));
        assert_eq!((ids(&mut losses, 600), ids(&mut losses, 1100)), (vec![3, 2], vec![2, 3]));
        assert_eq!(ids(&mut losses, 2000), [0; 0], "three were asked in vain");
        assert!(!losses.has(id(3)) && losses.deadline().is_none());
    }

    #[test]
    fn what_nobody_was_asked_for_is_put_off_as_often_as_it_takes() {
        let mut losses = Losses::default();
        losses.add(at(0), id(1), member(1), Duration::ZERO);
        for turn in 0..100 {
            assert!(losses.next(at(turn)).is_some());
            losses.put_off(id(1), at(turn + 1), false);
        }
    }

    #[test]
    fn no_more_are_held_than_there_is_room_for() {
        let mut losses = Losses::default();
        (0..5000).for_each(|sequence| losses.add(at(0), id(sequence), member(1), Duration::ZERO));
        assert_eq!((losses.all.len(), losses.due.len()), (MAX_LOST, MAX_LOST));
    }
}
