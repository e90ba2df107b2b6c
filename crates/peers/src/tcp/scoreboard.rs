//! The outstanding segments, and the state of each: delivered, lost, sent again.
//!
//! Segments lie in order of sequence in a ring, so that the one at a sequence number is found by bisection, and in a
//! list in order of (last) transmission, which is the order in which RACK finds them lost. Ranges that were selectively
//! acknowledged before are skipped, so that an acknowledgement costs in proportion to what it newly says, however large
//! the window is.

use std::collections::{BTreeSet, VecDeque};

use hopcast_core::Instant;

use super::ranges::Ranges;
use super::rate::Snapshot;

/// The number of a segment in its connection, in order of sequence.
pub(super) type Id = u64;

/// No segment, in a link of the list.
const NONE: Id = Id::MAX;

/// A segment that has been sent and is not acknowledged cumulatively.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// Its first sequence number.
    pub start: u64,
    /// The sequence number behind it; a FIN takes one.
    pub end: u64,
    /// Whether a FIN is its last.
    pub fin: bool,
    /// Time at which it was last sent.
    pub sent_at: Instant,
    /// The snapshot of the delivery rate at that time.
    pub snapshot: Snapshot,
    /// Selectively acknowledged.
    pub sacked: bool,
    /// Taken for lost.
    pub lost: bool,
    /// Sent again since it was taken for lost (or as a probe), and not lost again so far.
    pub retransmitted: bool,
    /// Ever sent again.
    pub ever_retransmitted: bool,
    listed: bool,
    older: Id,
    newer: Id,
}

/// All segments outstanding.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    segments: VecDeque<Segment>,
    first: Id,
    oldest: Id,
    newest: Id,
    sacked: Ranges,
    highest_sacked: Option<Id>,
    /// Lost and not sent again.
    to_retransmit: BTreeSet<Id>,
    sacked_out: u32,
    lost_out: u32,
    retransmitted_out: u32,
}

impl Default for Scoreboard {
    fn default() -> Self {
        Self {
            segments: VecDeque::new(),
            first: 0,
            oldest: NONE,
            newest: NONE,
            sacked: Ranges::default(),
            highest_sacked: None,
            to_retransmit: BTreeSet::new(),
            sacked_out: 0,
            lost_out: 0,
            retransmitted_out: 0,
        }
    }
}

impl Scoreboard {
    /// Number of segments that are outstanding.
    pub(super) fn len(&self) -> u32 {
        self.segments.len() as u32
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Number of segments that are thought to be in the network: RFC 6675's pipe.
    pub(super) fn in_flight(&self) -> u32 {
        // Anonymous selective acknowledgements may count what is lost as well.
        (self.len() + self.retransmitted_out).saturating_sub(self.sacked_out + self.lost_out)
    }

    pub(super) const fn sacked_out(&self) -> u32 {
        self.sacked_out
    }

    pub(super) const fn lost_out(&self) -> u32 {
        self.lost_out
    }

    pub(super) const fn retransmitted_out(&self) -> u32 {
        self.retransmitted_out
    }

    /// The first segment that is lost and not sent again.
    pub(super) fn next_lost(&self) -> Option<Id> {
        self.to_retransmit.first().copied()
    }

    /// The segment `id`, if it is outstanding.
    pub(super) fn get(&self, id: Id) -> Option<&Segment> {
        self.segments.get(usize::try_from(id.checked_sub(self.first)?).ok()?)
    }

    /// The earliest segment outstanding.
    pub(super) fn head(&self) -> Option<(Id, &Segment)> {
        self.segments.front().map(|segment| (self.first, segment))
    }

    /// The latest segment outstanding.
    pub(super) fn tail(&self) -> Option<(Id, &Segment)> {
        self.segments.back().map(|segment| (self.first + self.segments.len() as u64 - 1, segment))
    }

    /// The sequence number behind the highest segment that was selectively acknowledged (Linux `tcp_highest_sack_seq`).
    pub(super) fn highest_sacked(&self) -> Option<u64> {
        self.highest_sacked.and_then(|id| self.get(id)).map(|segment| segment.end)
    }

    /// Adds a segment that has just been sent for the first time.
    pub(super) fn push(&mut self, start: u64, end: u64, fin: bool, sent_at: Instant, snapshot: Snapshot) {
        let id = self.first + self.segments.len() as u64;
        self.segments.push_back(Segment {
            start,
            end,
            fin,
            sent_at,
            snapshot,
            sacked: false,
            lost: false,
            retransmitted: false,
            ever_retransmitted: false,
            listed: false,
            older: NONE,
            newer: NONE,
        });
        self.list(id);
    }

    /// Notes that the segment `id` is being sent again.
    pub(super) fn retransmit(&mut self, id: Id, sent_at: Instant, snapshot: Snapshot) {
        self.unlist(id);
        self.to_retransmit.remove(&id);
        let Some(segment) = self.get_mut(id) else { return };
        segment.sent_at = sent_at;
        segment.snapshot = snapshot;
        segment.ever_retransmitted = true;
        if !core::mem::replace(&mut segment.retransmitted, true) {
            self.retransmitted_out += 1;
        }
        self.list(id);
    }

    /// Takes off the segments that lie wholly before `una`, and gives each to `acked`. One that lies partly before it
    /// is shortened.
    pub(super) fn acknowledge(&mut self, una: u64, mut acked: impl FnMut(&Segment)) {
        while let Some(head) = self.segments.front_mut() {
            if head.end > una {
                head.start = head.start.max(una);
                break;
            }
            let id = self.first;
            self.unlist(id);
            self.to_retransmit.remove(&id);
            let Some(segment) = self.segments.pop_front() else { break };
            self.first += 1;
            self.sacked_out = self.sacked_out.saturating_sub(u32::from(segment.sacked));
            self.lost_out -= u32::from(segment.lost);
            self.retransmitted_out -= u32::from(segment.retransmitted);
            acked(&segment);
        }
        self.sacked.forget_below(self.first);
        self.highest_sacked = self.highest_sacked.filter(|&id| id >= self.first);
    }

    /// Notes that the bytes `start..end` have been acknowledged selectively, and gives each segment that this delivers,
    /// as it was before, to `delivered`. A segment that the block covers partly stays as it is.
    pub(super) fn sack(&mut self, start: u64, end: u64, mut delivered: impl FnMut(&Segment)) {
        let from = self.segments.partition_point(|segment| segment.start < start);
        let to = self.segments.partition_point(|segment| segment.end <= end);
        if from >= to {
            return;
        }
        let (from, to) = (self.first + from as u64, self.first + to as u64);
        let mut sacked = core::mem::take(&mut self.sacked);
        sacked.insert(from, to, |from, to| {
            for id in from..to {
                self.sack_one(id, &mut delivered);
            }
        });
        self.sacked = sacked;
    }

    fn sack_one(&mut self, id: Id, delivered: &mut impl FnMut(&Segment)) {
        let Some(segment) = self.get_mut(id) else { return };
        delivered(segment);
        segment.sacked = true;
        // A retransmission of what was not lost may still be in the network.
        let was_lost = core::mem::take(&mut segment.lost);
        let was_retransmitted = was_lost && core::mem::take(&mut segment.retransmitted);
        self.sacked_out += 1;
        self.lost_out -= u32::from(was_lost);
        self.retransmitted_out -= u32::from(was_retransmitted);
        self.unlist(id);
        self.to_retransmit.remove(&id);
        self.highest_sacked = self.highest_sacked.max(Some(id));
    }

    /// Takes the segment `id` for lost; its last transmission, if it was sent again. False if it was so already, or
    /// has been delivered.
    pub(super) fn mark_lost(&mut self, id: Id) -> bool {
        let Some(segment) = self.get_mut(id) else { return false };
        if segment.sacked || (segment.lost && !segment.retransmitted) {
            return false;
        }
        let was_lost = core::mem::replace(&mut segment.lost, true);
        let was_retransmitted = core::mem::take(&mut segment.retransmitted);
        self.lost_out += u32::from(!was_lost);
        self.retransmitted_out -= u32::from(was_retransmitted);
        self.unlist(id);
        self.to_retransmit.insert(id);
        true
    }

    /// Takes no segment for lost any more: the losses turned out not to be any.
    pub(super) fn clear_lost(&mut self) {
        for id in self.ids() {
            let Some(segment) = self.get_mut(id) else { continue };
            if core::mem::take(&mut segment.lost) && !segment.retransmitted {
                // It is listed with the time of its last transmission, as if it had never left the list.
                self.list(id);
            }
        }
        self.lost_out = 0;
        self.to_retransmit.clear();
    }

    /// Forgets all selective acknowledgements: the peer does not keep what it acknowledged so (RFC 2018 section 8).
    pub(super) fn clear_sacked(&mut self) {
        for id in self.ids() {
            let Some(segment) = self.get_mut(id) else { continue };
            if core::mem::take(&mut segment.sacked) {
                self.list(id);
            }
        }
        self.sacked_out = 0;
        self.sacked.clear();
        self.highest_sacked = None;
    }

    /// Counts a duplicate acknowledgement for a delivered segment, for a peer that does not say which (RFC 5681). True
    /// if there can be such a segment.
    pub(super) fn add_anonymous_sack(&mut self) -> bool {
        let possible = self.sacked_out + self.lost_out < self.len();
        self.sacked_out += u32::from(possible);
        possible
    }

    /// Takes back `count` anonymous selective acknowledgements, or all there are.
    pub(super) fn remove_anonymous_sacks(&mut self, count: u32) {
        self.sacked_out = self.sacked_out.saturating_sub(count);
    }

    /// The segments outstanding, in order of sequence.
    pub(super) fn ids(&self) -> core::ops::Range<Id> {
        self.first..self.first + self.segments.len() as u64
    }

    /// The segment sent longest ago of those that are neither delivered nor lost, and the one sent after `id`.
    pub(super) fn oldest(&self) -> Option<(Id, &Segment)> {
        self.get(self.oldest).map(|segment| (self.oldest, segment))
    }

    /// The segment sent next after `id`, of those that are neither delivered nor lost.
    pub(super) fn sent_after(&self, id: Id) -> Option<(Id, &Segment)> {
        let next = self.get(id)?.newer;
        self.get(next).map(|segment| (next, segment))
    }

    fn get_mut(&mut self, id: Id) -> Option<&mut Segment> {
        self.segments.get_mut(usize::try_from(id.checked_sub(self.first)?).ok()?)
    }

    /// Puts the segment at its place in the order of transmission, which nearly always is the end.
    fn list(&mut self, id: Id) {
        let Some(sent_at) = self.get(id).filter(|segment| !segment.listed).map(|segment| segment.sent_at)
        else {
            return;
        };
        let mut older = self.newest;
        while let Some(segment) = self.get(older) {
            if segment.sent_at <= sent_at {
                break;
            }
            older = segment.older;
        }
        let newer = match self.get_mut(older) {
            Some(segment) => core::mem::replace(&mut segment.newer, id),
            None => core::mem::replace(&mut self.oldest, id),
        };
        match self.get_mut(newer) {
            Some(segment) => segment.older = id,
            None => self.newest = id,
        }
        if let Some(segment) = self.get_mut(id) {
            segment.listed = true;
            segment.older = older;
            segment.newer = newer;
        }
    }

    fn unlist(&mut self, id: Id) {
        let Some(segment) = self.get_mut(id) else { return };
        if !core::mem::take(&mut segment.listed) {
            return;
        }
        let (older, newer) = (segment.older, segment.newer);
        match self.get_mut(older) {
            Some(segment) => segment.newer = newer,
            None => self.oldest = newer,
        }
        match self.get_mut(newer) {
            Some(segment) => segment.older = older,
            None => self.newest = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(n: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        for i in 0..n {
            board.push(10 * i, 10 * i + 10, false, Instant::from_nanos(i), Snapshot::default());
        }
        board
    }

    fn in_order_of_transmission(board: &Scoreboard) -> Vec<Id> {
        let mut order = Vec::new();
        let mut next = board.oldest().map(|(id, _)| id);
        while let Some(id) = next {
            order.push(id);
            next = board.sent_after(id).map(|(id, _)| id);
        }
        order
    }

    #[test]
    fn a_block_delivers_each_segment_once_and_never_a_part() {
        let mut board = board(10);
        let mut seen = Vec::new();
        board.sack(20, 45, |segment| seen.push(segment.start));
        board.sack(15, 60, |segment| seen.push(segment.start));
        assert_eq!(seen, [20, 30, 40, 50]);
        assert_eq!((board.sacked_out(), board.in_flight()), (4, 6));
        assert_eq!(board.highest_sacked(), Some(60));
        assert_eq!(in_order_of_transmission(&board), [0, 1, 6, 7, 8, 9]);
    }

    #[test]
    fn a_lost_segment_leaves_flight_and_comes_back_when_it_is_sent_again() {
        let mut board = board(4);
        assert!(board.mark_lost(1) && !board.mark_lost(1));
        assert_eq!((board.in_flight(), board.next_lost()), (3, Some(1)));
        board.retransmit(1, Instant::from_nanos(9), Snapshot::default());
        assert_eq!((board.in_flight(), board.next_lost()), (4, None));
        assert_eq!(in_order_of_transmission(&board), [0, 2, 3, 1]);
        assert!(board.mark_lost(1), "a retransmission is lost as well");
        assert_eq!((board.in_flight(), board.lost_out(), board.retransmitted_out()), (3, 1, 0));
        let mut acked = 0;
        board.acknowledge(40, |_| acked += 1);
        assert_eq!((acked, board.in_flight(), board.lost_out()), (4, 0, 0));
    }

    #[test]
    fn a_partial_acknowledgement_shortens_the_first_segment() {
        let mut board = board(2);
        board.acknowledge(4, |_| unreachable!());
        assert_eq!(board.head().map(|(_, segment)| segment.start), Some(4));
    }

    #[test]
    fn losses_that_were_none_are_in_flight_again_in_order_of_transmission() {
        let mut board = board(5);
        board.mark_lost(1);
        board.mark_lost(3);
        board.retransmit(3, Instant::from_nanos(9), Snapshot::default());
        board.clear_lost();
        assert_eq!((board.in_flight(), board.next_lost()), (6, None));
        assert_eq!(in_order_of_transmission(&board), [0, 1, 2, 4, 3]);
    }
}
