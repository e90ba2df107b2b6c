//! The need of one child: how many packets of one batch to send it.

use super::super::packet::Cause;
use super::ahead::Guard;
use super::margin::Margin;

/// Packets sent of a batch, for each that is here and `MAX_SENT_EXTRA` more, after which a child is taken to lack what
/// it was thought to have. Chosen: they are enough over a hop that loses half of them; fewer, and losses are taken for
/// it, more, and a batch that is stuck stays so for longer.
const MAX_SENT_PER_RANK: u16 = 3;
/// Packets besides, for batches of few: see [`MAX_SENT_PER_RANK`].
const MAX_SENT_EXTRA: u16 = 8;

/// A child's share of a batch, as far as it is known, and the packets to send it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Need {
    /// Symbols that it was sent as they are.
    pub(super) sent: u32,
    /// Packets that no report has covered.
    pub(super) in_flight: u16,
    /// Its rank as last reported.
    reported: u8,
    /// Number of the packets here, the first ones, that it has, if all that it has is from here.
    known: u8,
    /// It needs nothing more.
    pub(super) done: bool,
    /// It is another child's.
    pub(super) elsewhere: bool,
    /// Packets sent so far.
    pub(super) packets: u8,
    /// Packets have passed since its rank was reported.
    pub(super) unsure: bool,
    /// Number of packets that it has been sent, or been granted, of batches that are new here.
    first: u8,
    /// Packets that are left of the round of repair, where rounds are counted.
    repairs: u8,
    rounds: u8,
    /// The packet after the last one of the round.
    round_end: u64,
    wanted: u8,
    /// The packets that may be protected ahead of need.
    pub(super) guard: Guard,
}

impl Need {
    /// Number of packets to send.
    pub(super) const fn wanted(&self) -> u8 {
        self.wanted
    }

    /// The child needs nothing more of this batch of `symbols` symbols.
    pub(super) fn complete(&mut self, symbols: u8) {
        (self.done, self.reported) = (true, symbols);
    }

    /// The child was restarted and has nothing. How many packets were still to be sent.
    pub(super) fn restart(&mut self) -> u8 {
        let Self { elsewhere, packets, wanted, guard, .. } = *self;
        *self = Self { elsewhere, packets, guard, ..Self::default() };
        wanted
    }

    /// Its rank as last reported.
    pub(super) const fn reported(&self) -> u8 {
        self.reported
    }

    /// The child has reported a rank; ours is `own`.
    pub(super) fn report(&mut self, rank: u8, own: u8) {
        // A later report is the truth, whatever an earlier one may have said.
        (self.unsure, self.done) = (false, false);
        self.reported = rank;
        if rank == own {
            self.known = own;
        }
    }

    /// Whether the next packet is of a new batch, and not a repair.
    pub(super) const fn is_first(&self, own: u8) -> bool {
        self.first < own
    }

    /// The packet whose content a packet that is sent now may bring, by its place among those that came: of what is new
    /// the next, of a repair the first that the child lacks.
    pub(super) const fn brings(&self, own: u8) -> u8 {
        if self.is_first(own) { self.first } else { self.known }
    }

    /// The first packet to combine; those before it the child has.
    pub(super) const fn mix_from(&self, own: u8) -> u8 {
        // It may have got something else before this node was restarted, or from elsewhere: if what should be enough
        // is not, it is sent of everything.
        if self.packets as u16 > MAX_SENT_PER_RANK * own as u16 + MAX_SENT_EXTRA { 0 } else { self.known }
    }

    /// Whether the child may lack something that it was sent.
    pub(super) const fn is_unreported(&self, own: u8) -> bool {
        !self.done && self.in_flight > 0 && self.reported < own
    }

    pub(super) fn on_sent(&mut self, cause: Cause, own: u8, sequence: u64) {
        self.in_flight = self.in_flight.saturating_add(1);
        self.packets = self.packets.saturating_add(1);
        match cause {
            Cause::First => {
                self.first = (self.first + 1).min(own);
                // Rounds are for what is missing when nothing new comes, and all that came has been reported.
                self.rounds = 0;
                self.round_end = sequence + 1;
            }
            Cause::Repair => {
                self.repairs = self.repairs.saturating_sub(1);
                self.round_end = sequence + 1;
            }
            Cause::Ahead | Cause::Probe => {}
        }
    }

    /// Computes the packets to send, now that our rank is `own` and all packets before `reported` are reported.
    pub(super) fn refresh(&mut self, own: u8, rounds: Option<u8>, reported: u64, margin: &Margin) {
        let has = u16::from(self.reported) + self.in_flight;
        let missing = u16::from(own).saturating_sub(has) as u8;
        // Repairs on their way, sent ahead of need, do not make up for what is new.
        let lacks = own.saturating_sub(self.reported);
        let first = own.saturating_sub(self.first).min(lacks);
        self.wanted = match rounds {
            _ if self.done || self.unsure || self.elsewhere => 0,
            None => missing.max(first),
            Some(limit) => first + self.bounded(missing.saturating_sub(first), limit, reported, margin),
        };
    }

    /// Number of the missing repairs to send, where rounds are counted.
    fn bounded(&mut self, missing: u8, limit: u8, reported: u64, margin: &Margin) -> u8 {
        if missing > 0 && self.repairs == 0 && self.rounds < limit && reported >= self.round_end {
            self.rounds += 1;
            self.repairs = if self.rounds == limit { margin.packets(missing) } else { missing };
        }
        if self.rounds == limit { self.repairs } else { self.repairs.min(missing) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_bounded_and_what_is_new_is_not() {
        let mut margin = Margin::new([1e-4; 2]);
        margin.update(0.2, 1.0);
        let mut need = Need::default();
        let mut sequence = 0;
        let mut sent = 0;
        for own in 1..=4 {
            need.refresh(own, Some(2), sequence, &margin);
            while need.wanted() > 0 {
                need.on_sent(if need.is_first(own) { Cause::First } else { Cause::Repair }, own, sequence);
                sequence += 1;
                sent += 1;
                need.refresh(own, Some(2), 0, &margin);
            }
        }
        assert_eq!(sent, 4);
        for round in 1..=3 {
            // All of them are lost.
            need.in_flight = 0;
            need.report(0, 4);
            need.refresh(4, Some(2), sequence, &margin);
            let expected = match round {
                1 => 4,
                2 => margin.packets(4),
                _ => 0,
            };
            assert_eq!(need.wanted(), expected);
            while need.wanted() > 0 {
                need.on_sent(Cause::Repair, 4, sequence);
                sequence += 1;
                need.refresh(4, Some(2), 0, &margin);
            }
        }
    }

    #[test]
    fn a_child_that_what_should_be_enough_does_not_help_is_sent_of_everything() {
        let mut need = Need::default();
        need.report(4, 4);
        // Four more have come here, which it lacks: three for each of the eight, and eight more.
        for (packets, from) in [(0, 4), (31, 4), (32, 4), (33, 0), (255, 0)] {
            need.packets = packets;
            assert_eq!(need.mix_from(8), from, "after {packets}");
        }
        need.packets = 11;
        assert_eq!(need.mix_from(1), 4);
        need.packets = 12;
        assert_eq!(need.mix_from(1), 0);
    }

    #[test]
    fn what_a_child_lacks_is_what_it_has_not_reported_and_is_not_on_its_way() {
        let margin = Margin::new([1e-4; 2]);
        let mut need = Need::default();
        need.refresh(5, None, 0, &margin);
        assert_eq!(need.wanted(), 5);
        (0..5).for_each(|sequence| need.on_sent(Cause::First, 5, sequence));
        need.refresh(5, None, 0, &margin);
        assert_eq!((need.wanted(), need.is_unreported(5)), (0, true));
        need.in_flight = 1;
        need.report(2, 5);
        need.refresh(5, None, 0, &margin);
        assert_eq!((need.wanted(), need.is_first(5)), (2, false));
        need.complete(16);
        need.refresh(5, None, 0, &margin);
        assert_eq!((need.wanted(), need.reported(), need.is_unreported(5)), (0, 16, false));
    }
}
