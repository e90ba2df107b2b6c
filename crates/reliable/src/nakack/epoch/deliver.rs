//! Delivery: messages in their sender's order, or in that of the view, put together to units.

use super::super::credit;
use super::super::wire::{Flags, MemberId};
use super::{Counted, Epoch, Whole};
use crate::nakack::assembly::Unit;

/// Units that are complete, and credit that follows from them.
#[derive(Debug, Default)]
pub(in super::super) struct Delivery {
    /// Units, each with its sender's rank.
    pub(in super::super) units: Vec<Whole>,
    /// Credit that is due to members.
    pub(in super::super) credits: Vec<(MemberId, u64)>,
}

impl Epoch {
    /// Delivers all messages whose turn it is.
    pub(in super::super) fn deliver(&mut self, counted: &mut Counted, out: &mut Delivery) {
        if self.is_total() {
            self.read_order(counted);
            while let Some(rank) = self.order.front() {
                if !self.deliver_next(usize::from(rank), counted, out) {
                    break;
                }
                self.order.delivered();
                self.collect(usize::from(rank));
            }
            self.skip_records();
            self.collect(0);
        } else {
            for rank in 0..self.windows.len() {
                let mut is_news = false;
                while self.deliver_next(rank, counted, out) {
                    is_news = true;
                }
                if is_news {
                    self.collect(rank);
                }
            }
        }
    }

    pub(super) fn collect(&mut self, rank: usize) {
        let stable = self.stability.stable(rank as u16);
        self.windows[rank].collect(stable);
    }

    /// The view is over: all up to its end is delivered, and what has no place in its order comes last, by rank.
    pub(in super::super) fn finish(&mut self, counted: &mut Counted, out: &mut Delivery) {
        self.deliver(counted, out);
        for rank in 0..self.windows.len() {
            while self.deliver_next(rank, counted, out) {}
        }
    }

    /// Delivers the next message of a member's, if it is there and within the view's end.
    fn deliver_next(&mut self, rank: usize, counted: &mut Counted, out: &mut Delivery) -> bool {
        let limit = self.limit(rank);
        loop {
            let window = &mut self.windows[rank];
            if window.delivered() >= limit {
                return false;
            }
            let Some(held) = window.deliver() else { return false };
            if held.flags.has(Flags::ORDER) {
                continue;
            }
            let is_own = rank == usize::from(self.own);
            if !is_own
                && let Some(bytes) = self.credits.delivered(rank as u16, credit::cost(held.payload.len()))
            {
                out.credits.push((self.view.members[rank].0, bytes));
            }
            if is_own && !self.hears_itself {
                return true;
            }
            let (unit, is_given_up) = self.assemblies[rank].take(held.flags, &held.payload);
            counted.deliveries.given_up += u64::from(is_given_up);
            if let Some(unit) = unit {
                match &unit {
                    Unit::Datagram(_) => counted.deliveries.messages += 1,
                    Unit::Message(..) => counted.deliveries.objects += 1,
                    Unit::Piece(piece) => counted.deliveries.objects += u64::from(piece.is_last),
                }
                out.units.push((rank as u16, unit));
            }
            return true;
        }
    }

    /// Reads the order out of what has come of the coordinator's stream.
    fn read_order(&mut self, counted: &mut Counted) {
        let end = self.windows[0].contiguous().min(self.limit(0));
        while self.ordered < end {
            if let Some(held) = self.windows[0].get(self.ordered) {
                let is_sound = if held.flags.has(Flags::ORDER) {
                    self.order.read(&held.payload, 0)
                } else {
                    self.order.add(0, 1)
                };
                counted.strange += u64::from(!is_sound);
            }
            self.ordered += 1;
        }
    }

    /// Records of the order that are read are done with.
    fn skip_records(&mut self) {
        let window = &mut self.windows[0];
        while window.delivered() < self.ordered
            && window.get(window.delivered()).is_some_and(|held| held.flags.has(Flags::ORDER))
        {
            window.deliver();
        }
    }
}
