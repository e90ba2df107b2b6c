//! The end of what was sent: NORM_CMD(FLUSH), repeated, and acknowledged by the receivers that are asked to.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};

use crate::norm::wire::{Command, NodeId, Position};

/// The commands at the end of transmission.
#[derive(Clone, Debug)]
pub(super) struct Flush {
    robust: u16,
    /// How often the end was told.
    told: u16,
    next: Option<Instant>,
    /// When something was sent last.
    sent: Instant,
    /// Receivers that are asked to acknowledge, and whether they have.
    ackers: BTreeMap<NodeId, bool>,
    /// How often the sender has yet to say that it leaves, once it is to.
    leaving: Option<u16>,
}

/// Factor by which the time between two commands grows. Chosen: the first commands start the repair of the last blocks,
/// for which a GRTT is long; all twenty take seconds, as with libnorm, so that receivers survive a short outage.
const GROWTH: f64 = 1.3;
/// Maximum time between two commands. Chosen: four times libnorm's initial GRTT; libnorm itself has twice the GRTT.
const MAX_INTERVAL: Duration = Duration::from_secs(1);

impl Flush {
    pub(super) fn new(robust: u16, ackers: &[NodeId]) -> Self {
        let ackers = ackers.iter().map(|&node| (node, false)).collect();
        Self { robust, told: 0, next: None, sent: Instant::ZERO, ackers, leaving: None }
    }

    /// Notes that something was sent: its end is to be told from now on.
    pub(super) fn reset(&mut self, now: Instant) {
        self.told = 0;
        (self.next, self.sent) = (Some(now), now);
    }

    /// Notes that something new was sent, which nobody has acknowledged.
    pub(super) fn advance(&mut self, now: Instant) {
        self.ackers.values_mut().for_each(|acknowledged| *acknowledged = false);
        self.reset(now);
    }

    /// Notes an acknowledgement. True if it was asked for and is the first one.
    pub(super) fn acknowledged(&mut self, node: NodeId) -> bool {
        let first = self.ackers.get_mut(&node).is_some_and(|known| !std::mem::replace(known, true));
        if first && self.is_acknowledged() {
            self.told = self.robust;
            self.next = self.leaving.and(self.next);
        }
        first
    }

    /// Whether each of the receivers that were asked to acknowledge has.
    pub(super) fn is_acknowledged(&self) -> bool {
        self.ackers.values().all(|&known| known)
    }

    /// The sender is to leave once the end has been told.
    pub(super) fn leave(&mut self, now: Instant) {
        if self.leaving.is_none() {
            self.leaving = Some(self.robust);
            self.next = Some(self.next.unwrap_or(now));
        }
    }

    /// When the next one is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.next
    }

    /// Whether the end has still to be told.
    pub(super) fn is_active(&self) -> bool {
        self.next.is_some()
    }

    /// The next command, if it is due. A sender that is to leave does so `hold` after it sent something last, so that
    /// whoever lost that has time to ask again, however few commands there are; at once where all that are asked to
    /// acknowledge have.
    pub(super) fn next(
        &mut self,
        now: Instant,
        last: Option<Position>,
        grtt: Duration,
        hold: Duration,
    ) -> Option<Command<'static>> {
        self.next.filter(|&at| at <= now)?;
        self.next = None;
        if self.told < self.robust
            && let Some(last) = last
        {
            let interval = grtt.mul_f64(GROWTH.powi(self.told.into())).min(MAX_INTERVAL.max(grtt * 2));
            self.told += 1;
            if self.told < self.robust || self.leaving.is_some() {
                self.next = Some(now + interval);
            }
            let waiting = self.ackers.iter().filter(|&(_, &known)| !known);
            return Some(Command::Flush { last, acknowledge: waiting.map(|(&node, _)| node).collect() });
        }
        let is_acknowledged = !self.ackers.is_empty() && self.is_acknowledged();
        let leaving = self.leaving.as_mut()?;
        if last.is_some() && now < self.sent + hold && !is_acknowledged {
            self.next = Some(self.sent + hold);
            return None;
        }
        *leaving = leaving.checked_sub(1)?;
        self.next = Some(now + grtt * 2);
        Some(Command::EndOfTransmission)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::norm::wire::{Fec, PayloadId};

    const GRTT: Duration = Duration::from_millis(100);
    const HOLD: Duration = Duration::from_secs(2);
    const LAST: Position =
        Position { fec: Fec::ReedSolomon8, object: 1, id: PayloadId { block: 2, symbol: 3, block_len: 0 } };

    /// The commands until there are none any more, with the times between them.
    fn run(flush: &mut Flush) -> Vec<(Duration, Command<'static>)> {
        let mut found = Vec::new();
        let mut before = Instant::ZERO;
        while let Some(now) = flush.due() {
            if let Some(command) = flush.next(now, Some(LAST), GRTT, HOLD) {
                found.push((now.since(before), command));
                before = now;
            }
        }
        found
    }

    #[test]
    fn the_end_is_told_as_often_as_was_set_and_ever_more_rarely() {
        let mut flush = Flush::new(20, &[]);
        assert!(flush.next(Instant::ZERO, Some(LAST), GRTT, HOLD).is_none(), "nothing was sent");
        flush.reset(Instant::ZERO);
        let told = run(&mut flush);
        assert_eq!(told.len(), 20);
        assert!(told.iter().skip(1).is_sorted_by_key(|(interval, _)| *interval));
        assert_eq!((told[1].0, told[19].0), (GRTT, MAX_INTERVAL));
    }

    #[test]
    fn it_names_those_that_have_not_acknowledged_and_stops_with_the_last() {
        let mut flush = Flush::new(20, &[NodeId(7), NodeId(8)]);
        flush.advance(Instant::ZERO);
        assert!(!flush.acknowledged(NodeId(9)), "nobody asked");
        assert!(flush.acknowledged(NodeId(7)) && !flush.acknowledged(NodeId(7)));
        let Some(Command::Flush { acknowledge, .. }) = flush.next(Instant::ZERO, Some(LAST), GRTT, HOLD)
        else {
            panic!()
        };
        assert_eq!(acknowledge, [NodeId(8)]);
        assert!(flush.acknowledged(NodeId(8)) && flush.is_acknowledged());
        assert_eq!(run(&mut flush), []);
    }

    #[test]
    fn a_sender_that_leaves_says_so_after_the_end() {
        let mut flush = Flush::new(3, &[]);
        flush.reset(Instant::ZERO);
        flush.leave(Instant::ZERO);
        let told = run(&mut flush);
        let leaves = |command: &Command<'_>| matches!(command, Command::EndOfTransmission);
        assert_eq!(
            told.iter().map(|(_, command)| leaves(command)).collect::<Vec<_>>(),
            [false, false, false, true, true, true]
        );
        // Three commands take half a second.
        let until_it_leaves = told[..4].iter().fold(Duration::ZERO, |sum, &(wait, _)| sum + wait);
        assert_eq!(until_it_leaves, HOLD);
    }

    #[test]
    fn one_that_leaves_does_so_at_once_if_the_last_command_is_acknowledged() {
        let mut flush = Flush::new(1, &[NodeId(7)]);
        flush.reset(Instant::ZERO);
        flush.leave(Instant::ZERO);
        assert!(matches!(flush.next(Instant::ZERO, Some(LAST), GRTT, HOLD), Some(Command::Flush { .. })));
        assert!(flush.acknowledged(NodeId(7)));
        assert_eq!(run(&mut flush), [(GRTT, Command::EndOfTransmission)]);
    }

    #[test]
    fn one_that_is_told_to_leave_after_the_end_was_told_stays_as_long() {
        let leaves = |ackers: &[NodeId], last| {
            let mut flush = Flush::new(1, ackers);
            flush.reset(Instant::ZERO);
            assert!(matches!(
                flush.next(Instant::ZERO, last, GRTT, HOLD),
                Some(Command::Flush { .. }) | None
            ));
            assert_eq!(flush.due(), None, "the end was told");
            let now = Instant::ZERO + GRTT;
            ackers.iter().for_each(|&node| _ = flush.acknowledged(node));
            flush.leave(now);
            while let Some(at) = flush.due() {
                if flush.next(at, last, GRTT, HOLD) == Some(Command::EndOfTransmission) {
                    return Some(at.since(Instant::ZERO));
                }
            }
            None
        };
        assert_eq!(leaves(&[], Some(LAST)), Some(HOLD));
        assert_eq!(leaves(&[NodeId(7)], Some(LAST)), Some(GRTT), "nobody has to ask again");
        assert_eq!(leaves(&[], None), Some(GRTT), "there is nothing to ask for");
    }
}
