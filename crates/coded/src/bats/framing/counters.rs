//! Figures of an edge.

/// The edge's own figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Counters {
    /// Units taken from the application, and refused because too much was queued.
    pub units_sent: u64,
    pub units_refused: u64,
    /// Units that have waited here for longer than the deadline, and were not granted.
    pub units_expired: u64,
    /// Units given to the application, and those of which only a part arrived, at least.
    pub units_received: u64,
    pub units_broken: u64,
    /// Symbols whose checksum is wrong, and such that did not parse to their end.
    pub symbols_damaged: u64,
    pub symbols_malformed: u64,
    /// Chunks of streams that are not there (any more).
    pub chunks_stray: u64,
    /// Streams refused because there were too many or they had no business here.
    pub streams_refused: u64,
    /// Streams that were reset because an end broke the contract: data past the credit or the finish, or less than the
    /// finish says.
    pub streams_broken: u64,
    /// Streams that were reset because symbols were missing or damaged here, the other edge said the same of what it
    /// received, it was started anew, or nothing came of it for too long.
    pub streams_damaged: u64,
    pub streams_damaged_there: u64,
    pub streams_restarted: u64,
    pub streams_timed_out: u64,
}
