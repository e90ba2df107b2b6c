//! The content of symbols at an edge: datagrams and streams of the application.
//!
//! A symbol is filled in the moment that it may be sent, from what is queued then ([`Framing::fill`]); nothing waits
//! for a symbol to become full. Streams take turns, a symbol each as long as all have enough, and units of datagrams
//! take theirs among them. At the far end symbols come in order: all of them where delivery is reliable, so that a
//! stream's data needs no offsets, or with some missing ([`Framing::skip`]), so that at worst units are incomplete.
//!
//! A symbol whose [checksum](seal) or format is wrong counts as missing. Whatever is missing may have been of any
//! stream, so all streams are reset, at both edges. The end of a stream tells how many bytes it had: no stream ends
//! well that lacks some.
//!
//! *Bounds*: [`Config`] says how many streams there are and how much is queued for each, and for the units. A stream's
//! data is handed up as it arrives, since the far application has granted credit for it; one unit is put together at a
//! time.

mod chunk;
mod counters;
mod grants;
mod meeting;
mod seal;
mod streams;
mod units;
mod up;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use hopcast_core::{Buffer, Duration, Instant, StreamId, StreamItem};

use super::age;
pub(super) use chunk::HEADER as CHUNK_HEADER;
use chunk::{Chunk, Filler};
pub(super) use counters::Counters;
pub(super) use seal::SEAL;
use streams::{Cause, Streams};
use units::{Reassembly, UnitQueue};
pub(super) use up::Up;

/// Minimum length of a symbol, in bytes: the longest chunk that is not cut into pieces fits.
pub(super) const MIN_SYMBOL: usize = SEAL + 64;

/// The bounds of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Config {
    /// Bytes of units that may be queued. Default: 4 MiB.
    pub unit_bytes: usize,
    /// While the first unit has waited longer than this, no more are taken. Default: 50 ms. Too short loses bursts that
    /// would have passed, too long delays all units behind a queue.
    pub unit_delay: Duration,
    /// Whether the application is granted units, of which none is refused. Default: no.
    pub unit_credit: bool,
    /// Whether units are stamped, since delivery has a deadline. Default: no.
    pub unit_stamps: bool,
    /// Streams at a time, those included whose end is still to be announced to the other side. Default: 1,024; zero
    /// where delivery is not reliable.
    pub streams: usize,
    /// Bytes of a stream that may be queued. Default: 256 KiB. Too few, and an application that is slow to write on
    /// leaves symbols unsent.
    pub stream_bytes: u64,
    /// All streams are reset when nothing has come of the other edge for so long, though it was asked. Default: 2
    /// minutes.
    pub stream_timeout: Duration,
    /// Bytes of all streams that may be queued. Default: 256 MiB.
    pub queue: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            unit_bytes: 4 << 20,
            unit_delay: Duration::from_millis(50),
            unit_credit: false,
            unit_stamps: false,
            streams: 1024,
            stream_bytes: 256 << 10,
            stream_timeout: Duration::from_secs(120),
            queue: 256 << 20,
        }
    }
}

/// The stamps of the first and the last unit that begin in a symbol of `len` bytes, where units have stamps and any
/// begins there. `None` if the symbol's checksum is not right: a stamp that is wrong would make all that comes seem too
/// old, and for long. `symbol` may lack zeros at its end.
pub(super) fn stamps(session: u32, number: u64, symbol: &[u8], len: usize) -> Option<(u32, u32)> {
    let mut stamps = chunk::chunks(symbol.get(SEAL..).unwrap_or_default()).filter_map(|chunk| match chunk {
        Ok(Chunk::Unit { first: true, bytes, .. }) => age::read(bytes),
        _ => None,
    });
    let first = stamps.next()?;
    let last = stamps.last().unwrap_or(first);
    seal::is_intact(session, number, symbol, len).then_some((first, last))
}

/// Maximum number of symbols that are looked at for a stamp. Chosen: more, and who sends symbols with a false checksum
/// makes each datagram cost as many checksums; fewer, and no stamp is found behind the pieces of a unit of 64 kB, so
/// that what is held may be late.
const MAX_STAMP_LOOKUPS: usize = 128;

/// Finds the stamp of the first unit among symbols that are given one after the other, of which each lacks no zeros.
/// When it has an answer, which may be that it gives up, it says so.
pub(super) fn first_stamp(session: u32) -> impl FnMut(u64, &[u8]) -> Option<Option<u32>> {
    let mut looked_at = 0;
    move |number, symbol| match stamps(session, number, symbol, symbol.len()) {
        Some((first, _)) => Some(Some(first)),
        None => {
            looked_at += 1;
            (looked_at == MAX_STAMP_LOOKUPS).then_some(None)
        }
    }
}

/// Both directions of an edge.
#[derive(Debug)]
pub(super) struct Framing {
    units: UnitQueue,
    reassembly: Reassembly,
    streams: Streams,
    /// Whether units go first into the next symbol.
    units_first: bool,
    /// The numbers of the last symbols that were filled and taken.
    filled: Option<u64>,
    taken: Option<u64>,
    up: VecDeque<Up>,
    counters: Counters,
}

impl Framing {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            units: UnitQueue::new(
                config.unit_bytes,
                config.unit_delay,
                config.unit_credit,
                config.unit_stamps,
            ),
            reassembly: Reassembly::default(),
            streams: Streams::new(config.streams, config.stream_bytes, config.queue, config.stream_timeout),
            units_first: true,
            filled: None,
            taken: None,
            up: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// The application sends a unit; false if it is refused because too much waits, or it is too large.
    pub(super) fn push_unit(&mut self, now: Instant, unit: Buffer) -> bool {
        let taken = self.units.push(now, unit);
        self.counters.units_sent += u64::from(taken);
        self.counters.units_refused += u64::from(!taken);
        taken
    }

    /// Number of further units that the application may hand over, if there is anything to announce.
    pub(super) fn grant(&mut self) -> Option<u64> {
        let due = self.grant_due()?;
        self.units.granted(due);
        Some(due)
    }

    /// The same, before it is sent.
    pub(super) fn grant_due(&self) -> Option<u64> {
        self.units.grant_due()
    }

    /// Drops the units that have waited for longer than this, and were not granted.
    pub(super) fn expire(&mut self, now: Instant, after: Duration) {
        self.counters.units_expired += self.units.expire(now, after);
    }

    /// The application hands over an item of a stream.
    pub(super) fn handle_stream(&mut self, now: Instant, id: StreamId, item: StreamItem) {
        self.streams.handle(now, id, item, &mut self.up, &mut self.counters);
    }

    /// Does the work that is due.
    pub(super) fn wake(&mut self, now: Instant) {
        self.streams.wake(now, &mut self.up, &mut self.counters);
    }

    /// Time at which something is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.streams.deadline()
    }

    /// Time from which the age of the next unit is counted; now, if none waits.
    pub(super) fn oldest(&self, now: Instant) -> Instant {
        self.units.oldest().unwrap_or(now)
    }

    /// Whether a symbol would hold anything.
    pub(super) fn has_data(&self) -> bool {
        !self.units.is_empty() || self.streams.has_data()
    }

    /// Fills a symbol of this number, which has at least [`MIN_SYMBOL`] bytes, with what is queued; how many bytes it
    /// took. The rest is left as it is, and must be zero.
    pub(super) fn fill(&mut self, now: Instant, number: u64, symbol: &mut [u8]) -> usize {
        let mut filler = Filler::new(&mut symbol[SEAL..]);
        if let Some(before) = self.filled.filter(|before| before + 1 != number) {
            filler.put(&Chunk::Jump { before });
        }
        let empty = filler.used();
        self.streams.fill_control(&mut filler);
        let both = !self.units.is_empty() && self.streams.has_data();
        if self.units_first {
            self.units.fill(now, &mut filler);
            self.streams.fill(&mut filler, &mut self.up);
        } else {
            self.streams.fill(&mut filler, &mut self.up);
            self.units.fill(now, &mut filler);
        }
        self.units_first ^= both;
        let used = filler.used();
        if used == empty {
            return 0;
        }
        self.filled = Some(number);
        seal::seal(self.streams.meeting.own(), number, symbol);
        SEAL + used
    }

    /// Takes the next symbol, which has this number.
    pub(super) fn take(&mut self, now: Instant, number: u64, symbol: &[u8]) {
        let opened = self.streams.meeting.other().and_then(|session| seal::open(session, number, symbol));
        let Some(body) = opened else {
            self.counters.symbols_damaged += 1;
            self.skip(1);
            return;
        };
        self.streams.heard(now);
        let mut chunks = chunk::chunks(body).peekable();
        // What is given up is known to be missing. A block may be shorter than it could be, which is not.
        let before = self.taken.replace(number).filter(|before| before + 1 != number);
        let jump = chunks.next_if(|chunk| matches!(chunk, Ok(Chunk::Jump { .. })));
        if before.is_some_and(|before| jump != Some(Ok(Chunk::Jump { before }))) {
            self.skip(1);
        }
        for chunk in chunks {
            match chunk {
                Ok(Chunk::Unit { first, last, bytes }) => {
                    if let Some(unit) = self.reassembly.take(first, last, bytes) {
                        self.counters.units_received += 1;
                        self.up.push_back(Up::Unit(unit));
                    }
                }
                Ok(chunk) => self.streams.take(now, &chunk, &mut self.up, &mut self.counters),
                Err(_) => {
                    self.counters.symbols_malformed += 1;
                    self.skip(1);
                }
            }
        }
    }

    /// The next `symbols` symbols are missing: a unit that was begun stays incomplete, and no stream survives.
    pub(super) fn skip(&mut self, symbols: u64) {
        if symbols > 0 {
            self.taken = None;
            self.reassembly.skip();
            self.streams.lose(Cause::Damage, &mut self.up, &mut self.counters);
        }
    }

    /// This edge's session is that of this mark.
    pub(super) const fn begin(&mut self, session: u32) {
        self.streams.meeting.begin(session);
    }

    /// The other edge has begun a session, of which what comes is the `whole` or only the rest. If it had another one
    /// before, it knows of no stream any more.
    pub(super) fn meet(&mut self, session: u32, whole: bool) {
        if self.streams.meeting.meet(session, whole) {
            self.taken = None;
            self.reassembly.skip();
            self.streams.lose(Cause::Restart, &mut self.up, &mut self.counters);
        }
    }

    /// The next item for the application, until there is none.
    pub(super) fn poll(&mut self) -> Option<Up> {
        self.up.pop_front()
    }

    /// The figures so far.
    pub(super) const fn counters(&self) -> Counters {
        let mut counters = self.counters;
        counters.units_broken = self.reassembly.broken;
        counters
    }
}
