//! SEQUENCER: one order for all messages of a view, which the coordinator says.
//!
//! A message of the coordinator's has the place in the order that it has in the coordinator's own stream. Of others'
//! messages the coordinator says in its stream, as it receives them, how many of whom come next. Whoever has that
//! delivers that number of that member's messages next.

use std::collections::VecDeque;

use hopcast_core::bytes::{Malformed, Reader};

/// The order of a view, as far as it is known and not delivered.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Ranks, each with the number of its messages that come next.
    next: VecDeque<(u16, u64)>,
    /// At the coordinator: the number up to which each member's messages have their place.
    placed: Vec<u64>,
}

/// Maximum number of runs that wait for their messages. Chosen: one for each message that a window holds.
const MAX_WAITING: usize = 1 << 16;
/// Runs of a record. Chosen: it fits the shortest fragment twice, and any more follow at once.
const MAX_RUNS: usize = 64;

impl Order {
    /// The order of a view whose members' messages begin with a number.
    pub(super) fn new(members: usize, first: u64) -> Self {
        Self { next: VecDeque::new(), placed: vec![first; members] }
    }

    /// The rank whose next message comes next.
    pub(super) fn front(&self) -> Option<u16> {
        self.next.front().map(|&(rank, _)| rank)
    }

    /// Notes that this message was delivered.
    pub(super) fn delivered(&mut self) {
        if let Some((_, count)) = self.next.front_mut() {
            *count -= 1;
            if *count == 0 {
                self.next.pop_front();
            }
        }
    }

    /// Notes that `count` messages of a member come next. False if too many wait, which is the coordinator's fault.
    pub(super) fn add(&mut self, rank: u16, count: u64) -> bool {
        let is_full = self.next.len() >= MAX_WAITING;
        match self.next.back_mut() {
            Some((last, waiting)) if *last == rank => *waiting += count,
            _ if is_full => return false,
            _ => self.next.push_back((rank, count)),
        }
        true
    }

    /// At the coordinator: places all messages of members that are there up to these numbers, other than its own; a
    /// record of them, if there are any, of at most `room` bytes.
    pub(super) fn place(
        &mut self,
        own: u16,
        have: impl Iterator<Item = u64>,
        room: usize,
    ) -> Option<Vec<u8>> {
        let mut record = Vec::new();
        for (rank, have) in have.enumerate().filter(|&(rank, _)| rank != usize::from(own)) {
            let count = have.saturating_sub(self.placed[rank]).min(u64::from(u16::MAX));
            if count > 0 && record.len() + RUN <= room.min(MAX_RUNS * RUN) {
                self.placed[rank] += count;
                record.extend((rank as u16).to_be_bytes());
                record.extend((count as u16).to_be_bytes());
            }
        }
        (!record.is_empty()).then_some(record)
    }

    /// At the coordinator: whether there is something to place.
    pub(super) fn has_to_place(&self, own: u16, have: impl Iterator<Item = u64>) -> bool {
        let mut others = have.zip(&self.placed).enumerate().filter(|&(rank, _)| rank != usize::from(own));
        others.any(|(_, (have, &placed))| have > placed)
    }

    /// Reads a record of the coordinator's. False if it is none: a rank that is not in the view, or the coordinator's.
    pub(super) fn read(&mut self, record: &[u8], own: u16) -> bool {
        let members = self.placed.len();
        let mut reader = Reader::new(record);
        while !reader.is_empty() {
            let mut run = || -> Result<(u16, u16), Malformed> {
                let found = (reader.u16("rank of run")?, reader.u16("length of run")?);
                Malformed::unless(usize::from(found.0) < members && found.0 != own && found.1 > 0, "run")?;
                Ok(found)
            };
            let Ok((rank, count)) = run() else { return false };
            if !self.add(rank, u64::from(count)) {
                return false;
            }
        }
        true
    }
}

/// Bytes of a run.
const RUN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_how_many_of_whom_come_next() {
        let mut coordinator = Order::new(3, 10);
        let record = coordinator.place(0, [10, 12, 11].into_iter(), 100).unwrap();
        assert_eq!(coordinator.place(0, [10, 12, 11].into_iter(), 100), None, "each has one place");
        let mut member = Order::new(3, 10);
        assert!(member.read(&record, 0));
        let mut found = Vec::new();
        while let Some(rank) = member.front() {
            found.push(rank);
            member.delivered();
        }
        assert_eq!(found, [1, 1, 2]);
    }

    #[test]
    fn a_record_of_nobody_is_none() {
        let mut member = Order::new(2, 0);
        for record in [&[0, 5, 0, 1][..], &[0, 0, 0, 1], &[0, 1, 0, 0], &[0, 1, 0]] {
            assert!(!member.read(record, 0), "{record:?}");
        }
        assert_eq!(member.front(), None);
    }
}
