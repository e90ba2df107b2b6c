//! Numbers of which only the newest counts.

/// Whether something that carries this number is news after what carried the last one. It may be late by a thousand,
/// but all that was sent in an outage may be lost, however much that is.
pub(in super::super) const fn is_news(number: u16, last: u16) -> bool {
    // Chosen: more than are under way over any path, and a sixty-fourth of all numbers; with more, what was sent
    // after a long outage counts as old more often.
    const MAX_LATE: u16 = 1024;
    last.wrapping_sub(number) >= MAX_LATE
}
