//! Messages that a server has sent to many and that only this member, or few, lost on the way: another that heard them
//! is asked, since the server has the next ones to send.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_core::{Duration, Instant};

use super::wire::{MAX_WANTS, MemberId, MessageId, Want};

/// What a member lost of what others have by now.
#[derive(Debug, Default)]
pub(super) struct Losses {
    all: BTreeMap<MessageId, Lost>,
    /// When to ask for each.
    due: BTreeSet<(Instant, MessageId)>,
}

/// The order in which servers are to send what they were asked for, by whomever.
#[derive(Debug, Default)]
pub(super) struct Orders {
    all: BTreeMap<(MemberId, MessageId), u64>,
    next: u64,
    /// The server that was heard to answer last, and the number of what it sent.
    last: Option<(MemberId, u64)>,
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
/// Messages that servers are to send, at most. Chosen: more than all requests of some seconds name.
const MAX_ORDERED: usize = 8192;
/// Messages at most. Chosen: as many as are asked for at a time.
const MAX_LOST: usize = 4096;

impl Orders {
    /// A server is asked for messages, after all that it was asked for before.
    pub(super) fn ask(&mut self, server: MemberId, want: &Want) {
        for sequence in want.sequences().take(MAX_WANTS) {
            if self.all.len() >= MAX_ORDERED {
                return;
            }
            self.all.insert((server, MessageId { sequence, ..want.id }), self.next);
            self.next += 1;
        }
    }

    /// A server sends something of a message. Gives the number of what it sent before, if it was heard to, and of this.
    pub(super) fn answered(&mut self, server: MemberId, id: MessageId) -> Option<(Option<u64>, u64)> {
        let number = self.all.remove(&(server, id))?;
        let last = self.last.replace((server, number)).filter(|&(last, _)| last == server);
        Some((last.map(|(_, last)| last), number))
    }

    /// The place of a message among all that servers are to send.
    pub(super) fn number(&self, server: MemberId, id: MessageId) -> Option<u64> {
        self.all.get(&(server, id)).copied()
    }

    /// Forgets the servers that are not to send any more.
    pub(super) fn retain(&mut self, sends: impl Fn(MemberId) -> bool) {
        self.all.retain(|&(server, _), _| sends(server));
    }
}

impl Losses {
    /// A message that this server has sent was lost; it is asked for after a time, or with another that is before,
    /// unless it comes until then.
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

    /// The messages to ask for now, `max` at most, and the members that have sent them. Each is asked for again at
    /// `again`, of another, if it does not come until then.
    pub(super) fn take(
        &mut self,
        now: Instant,
        again: Instant,
        max: usize,
    ) -> (Vec<MessageId>, BTreeSet<MemberId>) {
        let (mut found, mut servers) = (Vec::new(), BTreeSet::new());
        while found.len() < max
            && let Some(&(at, id)) = self.due.first()
            && at <= now
        {
            self.due.pop_first();
            let Some(lost) = self.all.get_mut(&id) else { continue };
            if lost.asked >= MAX_ASKED_FOR_ONE {
                self.all.remove(&id);
                continue;
            }
            lost.asked += 1;
            lost.at = again;
            self.due.insert((again, id));
            servers.insert(lost.server);
            found.push(id);
        }
        (found, servers)
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::Missing;
    use super::*;

    fn member(node: u32) -> MemberId {
        MemberId { node, run: 1 }
    }

    fn id(sequence: u32) -> MessageId {
        MessageId { group: 1, publisher: member(9), sequence }
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn ids(losses: &mut Losses, millis: u64) -> Vec<u32> {
        let (found, _) = losses.take(at(millis), at(millis + 500), 10);
        found.iter().map(|id| id.sequence).collect()
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
        assert_eq!(losses.take(at(100), at(600), 10).1, BTreeSet::from([member(1), member(2)]));
        losses.remove(id(1));
        assert!(!losses.has(id(1)) && losses.has(id(2)));
        assert_eq!(losses.deadline(), Some(at(570)));
        assert_eq!((ids(&mut losses, 600), ids(&mut losses, 1100)), (vec![3, 2], vec![3, 2]));
        assert_eq!(ids(&mut losses, 2000), [0; 0], "three were asked in vain");
        assert!(!losses.has(id(3)) && losses.deadline().is_none());
    }

    #[test]
    fn no_more_are_taken_or_held_than_there_is_room_for() {
        let mut losses = Losses::default();
        (0..5000).for_each(|sequence| losses.add(at(0), id(sequence), member(1), Duration::ZERO));
        assert_eq!(losses.all.len(), MAX_LOST);
        assert_eq!(losses.take(at(1), at(9), 10).0.len(), 10);
    }

    #[test]
    fn a_server_sends_in_the_order_in_which_it_was_asked() {
        let mut orders = Orders::default();
        let whole = |sequence, count| Want { id: id(sequence), missing: Missing::Whole(count) };
        orders.ask(member(1), &whole(10, 3));
        orders.ask(member(2), &whole(10, 1));
        orders.ask(member(1), &whole(5, 1));
        assert_eq!(orders.answered(member(1), id(10)), Some((None, 0)));
        assert_eq!(orders.answered(member(1), id(10)), None, "it was to send it once");
        assert_eq!(orders.answered(member(1), id(5)), Some((Some(0), 4)));
        assert_eq!((orders.number(member(1), id(11)), orders.number(member(1), id(12))), (Some(1), Some(2)));
        assert_eq!(orders.answered(member(2), id(10)), Some((None, 3)));
        // Asked again, it sends that after all others.
        orders.ask(member(1), &whole(11, 1));
        assert_eq!(orders.number(member(1), id(11)), Some(5));
        orders.retain(|server| server == member(2));
        assert_eq!(orders.number(member(1), id(12)), None);
    }
}
