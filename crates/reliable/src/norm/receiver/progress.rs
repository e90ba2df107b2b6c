//! A sender's position in the data that it sends.

use hopcast_core::Instant;

use crate::norm::wire::Flags;

/// A block: the number of its object, and its own.
pub(super) type Place = (u64, u32);

/// A sender's position in the data that it sends.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// The last place of which was heard; `None` before the first packet of an object.
    pub(super) last: Option<Place>,
    /// The sender has sent nothing after this symbol of a block.
    pub(super) end: Option<(u64, u32, u16)>,
    /// The block of which repairs were heard last, and when.
    repairing: Option<(Place, Instant)>,
    /// The block of whose repairs something new came last: when it had been asked for, and when that was.
    serving: Option<(Place, Instant, Instant)>,
    /// Sequence number of the last packet of new data.
    fresh: Option<u16>,
}

/// Conclusion from a packet of a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// There may be something new to ask for.
    pub(super) news: bool,
    /// The sender has sent all that it will send of this block's repairs.
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

    /// Whether the sender is at its end and repairs nothing.
    pub(super) fn is_idle(&self) -> bool {
        self.end.is_some() && self.repairing.is_none()
    }

    /// Takes note of a repair that this receiver lacked, of a block that was asked for at a time.
    pub(super) fn served(&mut self, now: Instant, place: Place, asked: Option<Instant>) {
        let asked = asked.or(self.serving.filter(|&(at, ..)| at == place).map(|(_, asked, _)| asked));
        self.serving = asked.map(|asked| (place, asked, now)).or(self.serving);
    }

    /// When the sender was heard at repairs that come before those of a place which was asked for at a time: of that
    /// place or one before it, or such as were asked for earlier, since senders may answer in the order of requests.
    pub(super) fn busy_before(&self, place: Place, asked: Option<Instant>) -> Option<Instant> {
        let before = self.repairing.filter(|&(at, _)| at <= place).map(|(_, at)| at);
        let earlier = self.serving.filter(|&(_, served, _)| asked.is_some_and(|asked| served < asked));
        before.max(earlier.map(|(.., at)| at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn who_asked_later_waits_while_what_was_asked_for_earlier_is_sent_whichever_place_that_has() {
        let mut progress = Progress::default();
        progress.served(at(20), (1, 7), Some(at(10)));
        assert_eq!(progress.busy_before((1, 2), Some(at(11))), Some(at(20)));
        assert_eq!(progress.busy_before((1, 2), Some(at(10))), None, "it was asked for no later");
        assert_eq!(progress.busy_before((1, 2), None), None, "it was not asked for");
        // The rest of an answer, once its first symbol has come, and data that nobody had asked for.
        progress.served(at(21), (1, 7), None);
        progress.served(at(30), (1, 9), None);
        assert_eq!(progress.busy_before((1, 2), Some(at(11))), Some(at(21)));
    }
}
