//! Parts of messages that this member and others have asked for and that are still to come.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use hopcast_core::Instant;

use super::asking::{MAX_ASKED, MAX_LOST};
use super::cache::Cache;
use super::serving::Part;
use super::turns::Turns;
use super::wire::{MAX_RUNS, MAX_SERVERS, MemberId, MessageId, Missing, Want};
use crate::runs::Runs;

/// Parts of messages that are still to come.
#[derive(Debug, Default)]
pub(super) struct Expected {
    asked: BTreeMap<MessageId, Vec<Asked>>,
    /// The order in which servers of many answer.
    orders: Orders,
}

/// Parts of a message that one member, or anyone, was asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// The fragments, all of them if it is whole.
    pub(super) fragments: Runs,
    /// Combinations that are still to come, by chunk.
    combinations: BTreeMap<u32, u32>,
    /// Who is to answer.
    pub(super) server: Option<MemberId>,
    /// When to give that up.
    until: Instant,
}

/// Messages that servers are to send, each in the order in which it was asked for them, by whomever.
#[derive(Debug, Default)]
struct Orders {
    servers: BTreeMap<MemberId, Order>,
    /// Messages of all.
    count: usize,
}

/// Messages that a server is to send.
#[derive(Debug, Default)]
struct Order {
    messages: BTreeMap<u64, MessageId>,
    numbers: BTreeMap<MessageId, u64>,
    next: u64,
    /// Number of the message that it was heard to send last.
    last: Option<u64>,
}

/// Members that are to answer for one message at a time, at most. Chosen: as many as one request passes through.
const MAX_ANSWERING: usize = MAX_SERVERS;
/// Messages that servers are to send, at most. Chosen: more than all requests of some seconds name.
const MAX_ORDERED: usize = 8192;

impl Expected {
    /// Notes what a server is to send of a message, beside what it is to send already.
    pub(super) fn note(
        &mut self,
        id: MessageId,
        missing: &Missing,
        server: Option<MemberId>,
        until: Instant,
    ) {
        if self.asked.len() >= MAX_ASKED && !self.asked.contains_key(&id) {
            return;
        }
        let all = self.asked.entry(id).or_default();
        let place = all.iter().position(|asked| asked.server == server).unwrap_or_else(|| {
            if all.len() >= MAX_ANSWERING {
                all.remove(0);
            }
            let (fragments, combinations) = (Runs::new(), BTreeMap::new());
            all.push(Asked { fragments, combinations, server, until });
            all.len() - 1
        });
        let asked = &mut all[place];
        asked.until = until;
        match missing {
            Missing::Whole(_) => asked.fragments.insert_run(0..u64::MAX),
            Missing::Fragments(runs) if asked.fragments.runs().count() + runs.len() > MAX_RUNS => {
                asked.fragments.insert_run(0..u64::MAX);
            }
            Missing::Fragments(runs) => asked.fragments.insert_all(runs),
            Missing::Combinations { chunk, .. }
                if asked.combinations.len() >= MAX_RUNS && !asked.combinations.contains_key(chunk) => {}
            Missing::Combinations { chunk, count, .. } => {
                let expected = asked.combinations.entry(*chunk).or_default();
                *expected = (*expected).max((*count).into());
            }
        }
    }

    /// A server is asked first for messages, and sends them after all that it was asked for before.
    pub(super) fn in_order(&mut self, server: MemberId, ids: impl Iterator<Item = MessageId>) {
        ids.for_each(|id| self.orders.ask(server, id));
    }

    /// A member that was asked does not have this; of many, no other waits for it then.
    pub(super) fn note_absent(&mut self, server: MemberId, want: &Want, is_crowd: bool) {
        let Some(all) = self.asked.get_mut(&want.id) else { return };
        for asked in all.iter_mut().filter(|asked| asked.server == Some(server)) {
            match &want.missing {
                Missing::Whole(_) => asked.fragments = Runs::new(),
                Missing::Fragments(runs) => asked.fragments.remove_all(runs),
                Missing::Combinations { chunk, count, .. } => {
                    if let Some(expected) = asked.combinations.get_mut(chunk) {
                        *expected = expected.saturating_sub((*count).into());
                    }
                }
            }
        }
        if is_crowd {
            self.retain(want.id, |asked| !asked.is_nothing());
        }
    }

    /// A part of a message came from a member; the next is late at a time.
    pub(super) fn comes(&mut self, from: MemberId, (id, part): (MessageId, Part), until: Instant) {
        let all = self.asked.get_mut(&id).into_iter().flatten();
        for asked in all.filter(|asked| asked.server.is_none_or(|server| server == from)) {
            asked.until = until;
            if let Part::Chunk(chunk) = part
                && let Some(expected) = asked.combinations.get_mut(&chunk)
            {
                *expected = expected.saturating_sub(1);
            }
        }
    }

    /// A server has sent all that it is to send of a message. Whether nobody else is to send anything of it.
    pub(super) fn ends(&mut self, server: MemberId, id: MessageId) -> bool {
        self.retain(id, |asked| asked.server.is_some_and(|other| other != server))
    }

    /// A server of many sends something of a message. Gives the messages that it was to send before, and nobody else is
    /// to: all if they are few, or those since it was heard last.
    pub(super) fn passed(&mut self, server: MemberId, id: MessageId) -> Vec<MessageId> {
        let asked = &self.asked;
        let is_asked = |id: MessageId| {
            asked.get(&id).is_some_and(|all| all.iter().any(|asked| asked.server == Some(server)))
        };
        let passed = self.orders.passed(server, id, is_asked);
        let is_lost = |&id: &MessageId| self.retain(id, |asked| asked.server != Some(server));
        passed.into_iter().filter(is_lost).collect()
    }

    /// Waits for some of those that are to send a message, and no longer for the others. Whether there were some, and
    /// none is left.
    fn retain(&mut self, id: MessageId, keeps: impl Fn(&Asked) -> bool) -> bool {
        let Some(all) = self.asked.get_mut(&id) else { return false };
        all.retain(keeps);
        let is_over = all.is_empty();
        if is_over {
            self.asked.remove(&id);
        }
        is_over
    }

    /// A message is whole, or of no interest any more.
    pub(super) fn forget(&mut self, id: MessageId) {
        self.asked.remove(&id);
    }

    /// Gives up what is late, but for that of members which answer; forgets the order of those that neither answer nor
    /// are waited for.
    pub(super) fn expire(&mut self, now: Instant, turns: &Turns, is_awaited: impl Fn(MemberId) -> bool) {
        for all in self.asked.values_mut() {
            all.retain(|asked| asked.ends(turns) > now);
        }
        self.asked.retain(|_, asked| !asked.is_empty());
        self.orders.retain(|server| turns.answers_until(server).is_some() || is_awaited(server));
    }

    /// When the first will be given up.
    pub(super) fn next_end(&self, turns: &Turns) -> Option<Instant> {
        self.asked.values().flatten().map(|asked| asked.ends(turns)).min()
    }

    /// Whether anything of a message is to come.
    pub(super) fn has(&self, id: MessageId) -> bool {
        self.asked.contains_key(&id)
    }

    /// The parts of a message that are to come, by who is to send them.
    pub(super) fn of(&self, id: MessageId) -> &[Asked] {
        self.asked.get(&id).map_or(&[], |all| all)
    }

    /// Number of parts that are to come, where a message of which nothing is here has so many fragments.
    pub(super) fn parts(&self, cache: &Cache, fragments_each: u64) -> u64 {
        let of = |(&id, all): (&MessageId, &Vec<Asked>)| {
            let (missing, fragments) = match cache.get(id) {
                Some(message) => {
                    let fragments = u64::from(message.shape.fragments());
                    (fragments - message.present().count(), fragments)
                }
                None => (fragments_each, fragments_each),
            };
            let asked = |asked: &Asked| {
                let combinations = asked.combinations.values().copied().map(u64::from).sum::<u64>();
                asked.fragments.count().min(fragments) + combinations
            };
            all.iter().map(asked).sum::<u64>().min(missing)
        };
        self.asked.iter().map(of).sum()
    }
}

impl Asked {
    fn is_nothing(&self) -> bool {
        self.fragments.is_empty() && self.combinations.values().all(|&expected| expected == 0)
    }

    /// Combinations of a chunk that are to come; all that there can be, if it is asked for whole.
    pub(super) fn combinations_of(&self, chunk: u32) -> u32 {
        let is_whole = self.fragments.contains(u64::from(u32::MAX));
        if is_whole { u32::MAX } else { self.combinations.get(&chunk).copied().unwrap_or(0) }
    }

    /// When to give it up.
    fn ends(&self, turns: &Turns) -> Instant {
        let answers = self.server.and_then(|server| turns.answers_until(server));
        answers.map_or(self.until, |until| until.max(self.until))
    }
}

impl Orders {
    /// A server is asked for a message, and sends it after all that it was asked for before.
    fn ask(&mut self, server: MemberId, id: MessageId) {
        if self.count >= MAX_ORDERED {
            return;
        }
        let order = self.servers.entry(server).or_default();
        if let Entry::Vacant(entry) = order.numbers.entry(id) {
            entry.insert(order.next);
            order.messages.insert(order.next, id);
            order.next += 1;
            self.count += 1;
        }
    }

    /// A server sends something of a message. Takes out those that it was to send before and is still waited for: all
    /// if they are few, or those since it was heard last, or else none.
    fn passed(
        &mut self,
        server: MemberId,
        id: MessageId,
        is_asked: impl Fn(MessageId) -> bool,
    ) -> Vec<MessageId> {
        let Some(order) = self.servers.get_mut(&server) else { return Vec::new() };
        let before = order.messages.len();
        let Some(number) = order.forget(id) else { return Vec::new() };
        let last = order.last.replace(number).filter(|&last| last < number);
        let passed = order.few(0..number, &is_asked);
        let passed = passed.or_else(|| order.few(last?..number, &is_asked)).unwrap_or_default();
        passed.iter().for_each(|&id| _ = order.forget(id));
        self.count -= before - order.messages.len();
        passed
    }

    /// Forgets the servers that are not to send any more.
    fn retain(&mut self, sends: impl Fn(MemberId) -> bool) {
        self.servers.retain(|&server, _| sends(server));
        self.count = self.servers.values().map(|order| order.messages.len()).sum();
    }
}

impl Order {
    /// The messages with these numbers that the server is still waited for; `None` if they are many. Others that are
    /// found on the way are forgotten.
    fn few(&mut self, numbers: Range<u64>, is_asked: impl Fn(MessageId) -> bool) -> Option<Vec<MessageId>> {
        let mut messages = self.messages.range(numbers).map(|(_, &id)| id);
        let (mut few, mut others) = (Vec::new(), Vec::new());
        let is_many = messages.any(|id| {
            let found = if is_asked(id) { &mut few } else { &mut others };
            found.push(id);
            few.len() > MAX_LOST
        });
        others.into_iter().for_each(|id| _ = self.forget(id));
        (!is_many).then_some(few)
    }

    /// Forgets a message, and gives its number.
    fn forget(&mut self, id: MessageId) -> Option<u64> {
        let number = self.numbers.remove(&id)?;
        self.messages.remove(&number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Duration;

    use super::super::tests::{at, id, member};
    use super::*;

    fn whole(sequence: u32, count: u32) -> Want {
        Want { id: id(sequence), missing: Missing::Whole(count) }
    }

    /// A server is asked for these messages, in their order.
    fn asked(sequences: Range<u32>) -> Expected {
        let mut expected = Expected::default();
        for sequence in sequences {
            expected.in_order(member(1), [id(sequence)].into_iter());
            expected.note(id(sequence), &Missing::Whole(1), Some(member(1)), at(100));
        }
        expected
    }

    fn passed(expected: &mut Expected, sequence: u32) -> Vec<u32> {
        expected.passed(member(1), id(sequence)).iter().map(|id| id.sequence).collect()
    }

    #[test]
    fn what_a_server_was_to_send_before_is_lost_if_it_is_little() {
        let mut expected = asked(0..20);
        assert_eq!(passed(&mut expected, 3), [0, 1, 2]);
        expected.forget(id(3));
        assert!(!expected.has(id(0)) && expected.has(id(4)));
        // Nine at once may be sent later; of those the next few that are passed are known to be lost.
        assert_eq!(passed(&mut expected, 13), [0; 0]);
        assert_eq!(passed(&mut expected, 16), [14, 15]);
        assert!(expected.has(id(4)));
    }

    #[test]
    fn what_another_is_to_send_too_is_not_lost() {
        let mut expected = asked(0..2);
        expected.note(id(0), &Missing::Whole(1), Some(member(2)), at(100));
        assert_eq!(passed(&mut expected, 1), [0; 0]);
        assert_eq!(
            expected.of(id(0)).iter().map(|asked| asked.server).collect::<Vec<_>>(),
            [Some(member(2))]
        );
        assert!(!expected.ends(member(1), id(0)) && expected.ends(member(2), id(0)) && !expected.has(id(0)));
    }

    #[test]
    fn of_many_nobody_waits_for_a_member_that_lacks_what_it_was_asked_for() {
        for (is_crowd, has) in [(false, true), (true, false)] {
            let mut expected = asked(0..1);
            expected.note_absent(member(1), &whole(0, 1), is_crowd);
            assert_eq!(expected.has(id(0)), has);
        }
    }

    #[test]
    fn a_server_that_is_asked_again_sends_in_the_old_place_unless_it_has_sent() {
        let mut expected = asked(0..3);
        expected.in_order(member(1), [id(0)].into_iter());
        assert_eq!(passed(&mut expected, 0), [0; 0], "it was asked for the others later");
        expected.in_order(member(1), [id(0)].into_iter());
        assert_eq!(passed(&mut expected, 1), [0; 0]);
        assert_eq!(passed(&mut expected, 0), [2]);
    }

    #[test]
    fn the_order_is_bounded_and_forgotten_with_its_server() {
        let mut expected = asked(0..3);
        expected.in_order(member(2), (0..10_000).map(id));
        assert_eq!((expected.orders.count, expected.orders.servers[&member(2)].messages.len()), (8192, 8189));
        let turns = Turns::new(Duration::from_millis(100), false);
        expected.expire(at(0), &turns, |server| server == member(1));
        assert_eq!((expected.orders.count, expected.orders.servers.len()), (3, 1));
        expected.expire(at(100), &turns, |_| false);
        assert!(!expected.has(id(0)) && expected.orders.servers.is_empty());
    }

    #[test]
    fn fragments_and_chunks_without_end_are_not_remembered_one_by_one() {
        let mut expected = Expected::default();
        for at_a_time in 0..10 {
            let runs =
                (0..500).map(|run| 1000 * at_a_time + 2 * run..1000 * at_a_time + 2 * run + 1).collect();
            expected.note(id(0), &Missing::Fragments(runs), Some(member(1)), at(100));
        }
        assert_eq!(expected.of(id(0))[0].fragments.runs().count(), 1);
        for chunk in 0..2000 {
            let missing = Missing::Combinations { chunk, count: 1, unknown: Vec::new() };
            expected.note(id(1), &missing, Some(member(1)), at(100));
        }
        assert_eq!(expected.of(id(1))[0].combinations.len(), MAX_RUNS);
    }
}
