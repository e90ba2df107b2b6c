//! Where a sender is in what it sends.

use hopcast_core::Instant;

use crate::norm::wire::Flags;

/// A block: the number of its object, and its own.
pub(super) type Place = (u64, u32);

/// Where a sender is in what it sends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// The last place of which was heard; `None` before the first packet of an object.
    pub(super) last: Option<Place>,
    /// The sender has sent nothing after this symbol of a block.
    pub(super) end: Option<(u64, u32, u16)>,
    /// The block of which repairs were heard last, and when.
    repairing: Option<(Place, Instant)>,
    /// Sequence number of the last packet of new data.
    fresh: Option<u16>,
}

/// Conclusion from a packet of a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// There may be something new to ask for.
    pub(super) news: bool,
    /// The sender has sent what it will of the repairs of this block.
    pub(super) answered: Option<Place>,
}

impl Progress {
    /// Takes note of a packet of a place, the sender's `sequence`th.
    pub(super) fn passed(&mut self, now: Instant, place: Place, flags: Flags, sequence: u16) -> Shown {
        let before = self.last;
        self.advance(place);
        // libnorm marks no repairs, but goes back for them.
        let answered = if flags.contains(Flags::REPAIR) || before.is_some_and(|before| place < before) {
            self.repairing.replace((place, now)).filter(|&(other, _)| other != place)
        } else {
            // Repairs and new data may take turns: two packets of new data in a row are the end of repairs.
            let before = self.fresh.replace(sequence);
            let in_a_row = before.is_some_and(|before| before.wrapping_add(1) == sequence);
            self.repairing.take_if(|(other, _)| in_a_row && *other != place)
        };
        if self.end.is_some_and(|(number, block, _)| place > (number, block)) {
            self.end = None;
        }
        let answered = answered.map(|(other, _)| other);
        Shown { news: before != self.last || answered.is_some(), answered }
    }

    /// Takes note that the sender has come to a place.
    pub(super) fn advance(&mut self, place: Place) {
        self.last = self.last.max(Some(place));
    }

    /// Takes note that the sender has nothing after a symbol. Returns the block whose repairs are over with it.
    pub(super) fn flushed(&mut self, (number, block): Place, symbol: u16) -> Option<Place> {
        self.advance((number, block));
        self.end = Some((number, block, symbol));
        self.repairing.take().map(|(other, _)| other)
    }

    /// When the sender was heard at repairs that come before a place, or of it.
    pub(super) fn busy_before(&self, place: Place) -> Option<Instant> {
        self.repairing.filter(|&(at, _)| at <= place).map(|(_, at)| at)
    }
}
