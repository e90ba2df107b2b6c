//! Objects, infos, blocks and symbols that are missing of a sender.

use hopcast_core::{Duration, Instant};

use super::asked::Asked;
use super::held::OBJECT;
use super::object::Object;
use super::progress::Place;
use super::remote::Remote;
use crate::norm::wire::Flags;

/// Something that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// Anything at all of an object.
    Object(u64),
    /// Its info.
    Info(u64),
    /// A block of which nothing came.
    Block(u64, u32),
    /// Symbols of a block.
    Symbols(u64, u32, Vec<u16>),
}

/// Blocks and objects that are looked at in a round. Chosen: more than a NACK names; the others have their turn in the
/// next one.
pub(super) const MAX_LOOKED_AT: usize = 512;

impl Remote {
    /// Missing things, in the order in which they were sent: those that are to be asked for now, and those for which a
    /// back-off is to begin. The answer to what was asked for is waited for `hold`. Nothing is asked for that `buffer`
    /// bytes would have no room for.
    ///
    /// With `all`, no back-off is waited for.
    pub(super) fn missing(&self, now: Instant, hold: Duration, buffer: u64, all: bool) -> Lack {
        let lack = Lack::default();
        let room = buffer.saturating_sub(self.objects.held().incomplete);
        let mut found = Found { now, hold, all, room, seen: 0, lack };
        let Some(last) = self.progress.last else { return found.lack };
        for number in self.objects.wanted(last.0) {
            if found.is_full() {
                break;
            }
            match self.objects.get(number) {
                Some(object) if object.is_known() || object.flags.contains(Flags::INFO) => {
                    self.missing_of(number, object, &mut found);
                }
                _ => {
                    self.note(&mut found, self.objects.asked_of(number), (number, 0), OBJECT, || {
                        Missing::Object(number)
                    });
                }
            }
        }
        found.lack
    }

    /// Looks for missing parts of an object.
    fn missing_of(&self, number: u64, object: &Object, found: &mut Found) {
        let (last, last_block) = self.progress.last.unwrap_or_default();
        if object.lacks_info() && (number < last || last_block > 0 || self.progress.end.is_some()) {
            self.note(found, object.asked_info, (number, 0), 0, || Missing::Info(number));
        }
        let known = object.count().unwrap_or(object.heard.map_or(0, |heard| heard.saturating_add(1)));
        let end = self.progress.end.filter(|&(at, ..)| at == number);
        let past = match end {
            _ if number < last => known,
            // The sender has gone past the last block once it has said that there is nothing after it.
            Some((_, block, _)) if block == last_block => known.min(last_block.saturating_add(1)),
            _ => known.min(last_block),
        };
        for block in object.lacking(0..past) {
            if found.is_full() {
                return;
            }
            let at_end = end.filter(|&(_, at, _)| at == block).map(|(.., symbol)| symbol);
            let missing = || Self::missing_of_block(number, object, block, at_end);
            let Some(missing) = missing() else { continue };
            let bytes = object.bytes_to_come(block);
            self.note(found, object.asked_of(block), (number, block), bytes, || missing);
        }
    }

    /// Notes that something is missing, of which `bytes` are to come.
    fn note(
        &self,
        found: &mut Found,
        asked: Asked,
        place: Place,
        bytes: u64,
        missing: impl FnOnce() -> Missing,
    ) {
        found.note(asked, self.progress.busy_before(place, asked.at()), bytes, missing);
    }

    /// Symbols that are missing of a block, of which the sender has sent all or, at its end, those up to a symbol.
    fn missing_of_block(number: u64, object: &Object, block: u32, at_end: Option<u16>) -> Option<Missing> {
        let source = object.source(block);
        // Of the unfinished block of a stream there are only the symbols that were sent.
        let wanted = match (at_end, source, object.block(block)) {
            (Some(last), Some(source), _) if last < source.saturating_sub(1) => {
                object.missing_until(block, last)
            }
            (_, Some(source), Some(state)) => state.wanted(source, object.parity()),
            (_, _, None) | (_, None, Some(_)) => return Some(Missing::Block(number, block)),
        };
        (!wanted.is_empty()).then_some(Missing::Symbols(number, block, wanted))
    }

    /// Changes the state of the requests for missing parts.
    pub(super) fn asked<R: Default>(&mut self, missing: &Missing, change: impl FnOnce(&mut Asked) -> R) -> R {
        let result = match *missing {
            Missing::Object(number) => return change(self.objects.asked(number)),
            Missing::Info(number) => self.objects.change(number, |object| change(&mut object.asked_info)),
            Missing::Block(number, block) | Missing::Symbols(number, block, _) => {
                self.objects.change(number, |object| change(object.asked(block)))
            }
        };
        result.unwrap_or_default()
    }
}

/// What a receiver lacks of a sender.
#[derive(Debug, Default)]
pub(super) struct Lack {
    /// Missing things to be asked for now: their back-off is over.
    pub(super) due: Vec<Missing>,
    /// Those for which no back-off has begun.
    pub(super) new: Vec<Missing>,
    /// When the next back-off ends.
    pub(super) next: Option<Instant>,
    /// When the answer to what was asked for is overdue.
    pub(super) overdue: Option<Instant>,
    /// Whether more is missing, for which there would be no room.
    pub(super) is_held_back: bool,
}

struct Found {
    now: Instant,
    hold: Duration,
    all: bool,
    /// Bytes for which there is room.
    room: u64,
    seen: usize,
    lack: Lack,
}

impl Found {
    fn is_full(&self) -> bool {
        self.seen >= MAX_LOOKED_AT || self.lack.is_held_back
    }

    fn note(&mut self, asked: Asked, busy: Option<Instant>, bytes: u64, missing: impl FnOnce() -> Missing) {
        // What is next always has room.
        if self.seen > 0 && bytes > self.room {
            self.lack.is_held_back = true;
            return;
        }
        self.seen += 1;
        self.room = self.room.saturating_sub(bytes);
        if asked.is_awaited(self.now, self.hold, busy) {
            let until = asked.until(self.hold, busy);
            self.lack.overdue = self.lack.overdue.into_iter().chain(until).min();
            return;
        }
        match asked.due() {
            _ if self.all => self.lack.due.push(missing()),
            None => self.lack.new.push(missing()),
            Some(due) if due <= self.now => self.lack.due.push(missing()),
            due => self.lack.next = self.lack.next.into_iter().chain(due).min(),
        }
    }
}
