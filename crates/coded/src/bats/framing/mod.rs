//! What an edge puts into symbols, and takes out of them: datagrams and streams of the application.
//!
//! A symbol is filled in the moment that it may be sent, from what is queued then ([`Framing::fill`]); nothing waits for
//! a symbol to become full. Streams take turns, a symbol each as long as all have enough, and units of datagrams take
//! theirs among them. At the far end symbols come in order: all of them where delivery is reliable, so that a stream's
//! data needs no offsets, or with some missing ([`Framing::skip`]), so that at worst units are incomplete.
//!
//! *Bounds*: [`Config`] says how many streams there are and how much is queued for each, and for the units. A stream's
//! data is handed up as it arrives, since the far application has granted credit for it; one unit is put together at a
//! time.

mod chunk;
mod meeting;
mod units;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use hopcast_core::{Buffer, Duration, Instant, StreamId, StreamItem};

use super::streams::Streams;
pub(super) use chunk::{Chunk, Filler, GREATEST};
pub(super) use meeting::Meeting;
use units::{Reassembly, UnitQueue};

/// The least symbol: the longest chunk that is not cut into pieces fits.
pub(super) const LEAST_SYMBOL: usize = 64;

/// The bounds of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Config {
    /// Bytes of units that may be queued. Default: 4 MiB.
    pub unit_bytes: usize,
    /// While the first unit has waited longer than this, no more are taken. Default: 50 ms. Too short loses bursts that
    /// would have passed, too long delays all units behind a queue.
    pub unit_delay: Duration,
    /// Streams at a time, those included whose end the other side has yet to be told. Default: 1,024; zero where
    /// delivery is not reliable.
    pub streams: usize,
    /// Bytes of a stream that may be queued. Default: 256 KiB. Too few, and an application that is slow to write on
    /// leaves symbols unsent.
    pub stream_bytes: u64,
    /// Bytes of all streams that may be queued. Default: 256 MiB.
    pub queue: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            unit_bytes: 4 << 20,
            unit_delay: Duration::from_millis(50),
            streams: 1024,
            stream_bytes: 256 << 10,
            queue: 256 << 20,
        }
    }
}

/// What goes up to the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Up {
    Unit(Buffer),
    Stream(StreamId, StreamItem),
}

/// The edge's own figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Units taken from the application, and refused because too much was queued.
    pub units_sent: u64,
    pub units_refused: u64,
    /// Units given to the application, and those of which only a part arrived, at least.
    pub units_received: u64,
    pub units_broken: u64,
    /// Symbols that did not parse to their end.
    pub symbols_malformed: u64,
    /// Chunks of streams that are not there (any more).
    pub chunks_stray: u64,
    /// Streams refused because there were too many or they had no business here.
    pub streams_refused: u64,
    /// Streams that were reset because an end broke the contract: data past the credit or the finish.
    pub streams_broken: u64,
}

/// Both directions of an edge.
#[derive(Debug)]
pub(super) struct Framing {
    units: UnitQueue,
    reassembly: Reassembly,
    streams: Streams,
    /// Whether units go first into the next symbol.
    units_first: bool,
    up: VecDeque<Up>,
    counters: Counters,
}

impl Framing {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            units: UnitQueue::new(config.unit_bytes, config.unit_delay),
            reassembly: Reassembly::default(),
            streams: Streams::new(config.streams, config.stream_bytes, config.queue),
            units_first: true,
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

    /// The application hands over an item of a stream.
    pub(super) fn handle_stream(&mut self, id: StreamId, item: StreamItem) {
        self.streams.handle(id, item, &mut self.up, &mut self.counters);
    }

    /// Whether a symbol would hold anything.
    pub(super) fn has_data(&self) -> bool {
        !self.units.is_empty() || self.streams.has_data()
    }

    /// Fills a symbol of at least [`LEAST_SYMBOL`] bytes with what is queued; how many bytes it took. The rest is left
    /// as it is, and should be zero.
    pub(super) fn fill(&mut self, symbol: &mut [u8]) -> usize {
        let mut filler = Filler::new(symbol);
        self.streams.fill_control(&mut filler);
        let both = !self.units.is_empty() && self.streams.has_data();
        if self.units_first {
            self.units.fill(&mut filler);
            self.streams.fill(&mut filler, &mut self.up);
        } else {
            self.streams.fill(&mut filler, &mut self.up);
            self.units.fill(&mut filler);
        }
        self.units_first ^= both;
        filler.used()
    }

    /// Takes the next symbol.
    pub(super) fn take(&mut self, symbol: &[u8]) {
        for chunk in chunk::chunks(symbol) {
            match chunk {
                Ok(Chunk::Unit { first, last, bytes }) => {
                    if let Some(unit) = self.reassembly.take(first, last, bytes) {
                        self.counters.units_received += 1;
                        self.up.push_back(Up::Unit(unit));
                    }
                }
                Ok(chunk) => self.streams.take(&chunk, &mut self.up, &mut self.counters),
                Err(_) => self.counters.symbols_malformed += 1,
            }
        }
    }

    /// The next `symbols` symbols are missing: a unit that was begun stays incomplete, and no stream survives.
    pub(super) fn skip(&mut self, symbols: u64) {
        if symbols > 0 {
            self.reassembly.skip();
            self.streams.restart(&mut self.up);
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
            self.reassembly.skip();
            self.streams.restart(&mut self.up);
        }
    }

    /// What goes up next, until there is nothing more.
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
