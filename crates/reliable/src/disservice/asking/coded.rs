//! Requests where repairs are combinations: what they name, whom they ask, and when.

use std::ops::Range;

use hopcast_core::{Duration, Instant};

use super::super::message::Message;
use super::super::wire::{MemberId, MessageId, Missing, Want};
use super::wants::{MAX_DRAWN, extend};
use super::{Asking, MAX_ASKED, View};

/// Packets of data for whose time what is missing is gathered while they come. Chosen: a third less in requests than
/// where repairs are repetitions; what is asked of one member for more messages yet is less often what it has of each.
pub(super) const GATHERED: u64 = 24;
/// Longest time for which what is missing is gathered. Chosen: three times as long as where repairs are repetitions,
/// since a server gives a third of what it can.
pub(super) const MAX_GATHERING: Duration = Duration::from_secs(3);
/// Requests in a row that may have been lost before the time between them grows, and the maximum factor by which it
/// does. Chosen: each pass asks another member, and of what nobody holds a request a second would cost as much as what
/// is to be had.
pub(super) const LOST_PASSES: u32 = 1;
pub(super) const MAX_BACK_OFF: u32 = 8;
/// Passes in vain after which members that lack a message themselves are asked for combinations of it too. Chosen: one
/// fragment in 60 is with them alone where half of all is lost.
const WANTING_AFTER: u32 = 2;
/// Mean times between packets of data after which a message that still came is over: what is asked for before its
/// publisher has sent it is sent twice. Chosen: where half of them are lost, and the mean is twice the publisher's, one
/// pause in 4,000 is as long.
pub(super) const TAIL: u64 = 6;

impl Asking {
    /// A member sends a combination of a message that is not whole here. One that has all of a chunk in what it sends
    /// has more to give than most.
    pub(in super::super) fn note_combination(&mut self, id: MessageId, from: MemberId, coefficients: &[u8]) {
        let has_room = self.givers.len() < MAX_ASKED || self.givers.contains_key(&id);
        if has_room && !coefficients.contains(&0) {
            self.givers.insert(id, from);
        }
    }

    /// The member that is to be asked for combinations, most of which are of one message: one that holds what is
    /// wanted, or that sent combinations of all fragments of it, or else one that was not asked before; of those rather
    /// one that does not lack it itself, since what that sends says something new to all that do.
    pub(super) fn server_of_parts(
        &mut self,
        now: Instant,
        id: MessageId,
        wants: &[Want],
        view: &View<'_>,
    ) -> Option<MemberId> {
        let passes = self.passes.get(&id);
        let in_vain = passes.map_or(0, |passes| passes.fruitless);
        let asked = passes.map_or(&[][..], |passes| &passes.asked);
        let wanting = view.neighbours.wanting(now, id);
        let mut server = |wanted: &[MessageId], except: &[MemberId]| {
            view.neighbours.server(now, wanted, (except, None), &mut self.random)
        };
        let giver = self.givers.get(&id).filter(|giver| in_vain == 0 && !wanting.contains(giver));
        if let Some(&giver) = giver.filter(|&&giver| view.neighbours.get(giver).is_some()) {
            return Some(giver);
        }
        // While something comes of the message, others can wait.
        let wants: Vec<MessageId> = wants.iter().map(|want| want.id).collect();
        let ids = if in_vain > 0 { &wants[..] } else { &[id] };
        let is_holder = |&server: &MemberId| {
            view.neighbours.get(server).is_some_and(|known| known.answers(now))
                && ids.iter().any(|&id| view.neighbours.holds(server, id))
        };
        if let Some(holder) = server(ids, &[]).filter(is_holder) {
            return Some(holder);
        }
        let others = if in_vain < WANTING_AFTER { server(&wants, &[&wanting, asked].concat()) } else { None };
        if let Some(server) = others.or_else(|| server(&wants, asked)) {
            return Some(server);
        }
        let any = server(&wants, &[]);
        if let Some(passes) = self.passes.get_mut(&id) {
            passes.asked.clear();
        }
        any
    }

    /// Wants for combinations: for each chunk before a fragment as many as make it whole, unless as many are
    /// still to come.
    pub(super) fn chunks_of(&self, id: MessageId, message: &Message, end: u32) -> Vec<Want> {
        let mut chunks: Vec<(u32, Vec<Range<u32>>)> = Vec::new();
        for index in message.missing(0..end).take(MAX_DRAWN) {
            let chunk = message.shape.chunk_of(index);
            if chunks.last().is_none_or(|&(last, _)| last != chunk) {
                chunks.push((chunk, Vec::new()));
            }
            if let Some((_, unknown)) = chunks.last_mut() {
                extend(unknown, index);
            }
        }
        let asked = self.expected.of(id);
        let want = |(chunk, unknown)| {
            let expected =
                asked.iter().map(|asked| asked.combinations_of(chunk)).fold(0, u32::saturating_add);
            let lacks = message.lacks(chunk) as u32;
            let missing = Missing::Combinations { chunk, count: lacks as u8, unknown };
            (lacks > expected).then_some(Want { id, missing })
        };
        chunks.into_iter().filter_map(want).collect()
    }
}
