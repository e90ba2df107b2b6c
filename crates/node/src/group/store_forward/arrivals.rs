//! Files of others that have come: those that wait to be written, and those that have been.

use std::collections::BTreeMap;
use std::sync::Arc;

use hopcast_core::{Duration, Instant};

use crate::group::disk::Contents;
use crate::group::incoming::Known;
use crate::group::wire::Refusal;

/// Time after which a file that could not be written is tried again. Chosen; shorter keeps a full disk busy, longer
/// delays files once there is room.
const RETRY: Duration = Duration::from_secs(30);

/// Bytes that a file which waits counts beside its own. Chosen: what its entry takes, about.
const OVERHEAD: u64 = 256;

/// A file that waits to be written.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) name: Arc<str>,
    /// Nanoseconds after 1970 at which it was changed, by its publisher's clock.
    pub(super) changed: u64,
    pub(super) bytes: Contents,
    not_before: Instant,
}

impl Arrival {
    fn size(&self) -> u64 {
        OVERHEAD + self.bytes.len() as u64
    }
}

/// The files of all members, who are known by their places.
#[derive(Debug)]
pub(super) struct Arrivals {
    known: Vec<Known>,
    waiting: BTreeMap<(usize, u64), Arrival>,
    waiting_bytes: u64,
    /// Maximum number of bytes that wait.
    room: u64,
    /// The one that the disk has.
    writing: Option<(usize, u64)>,
    /// Files that came a second time, and those that were given up.
    pub(super) repeated: u64,
    pub(super) given_up: u64,
}

impl Arrivals {
    pub(super) fn new(members: usize, room: u64) -> Self {
        let known = (0..members).map(|_| Known::default()).collect();
        Self {
            known,
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            room,
            writing: None,
            repeated: 0,
            given_up: 0,
        }
    }

    /// Files that were written in earlier runs; those of them that wait are none any more.
    pub(super) fn remember(&mut self, from: usize, ids: Vec<u64>) -> Vec<u64> {
        let waited: Vec<u64> = ids.iter().copied().filter(|&id| self.remove(from, id)).collect();
        ids.into_iter().for_each(|id| self.known[from].insert(id));
        waited
    }

    /// A file has come; whether it waits from now on.
    pub(super) fn came(&mut self, from: usize, id: u64, name: &str, changed: u64, bytes: Contents) -> bool {
        if self.known[from].contains(id) || self.waiting.contains_key(&(from, id)) {
            self.repeated += 1;
            return false;
        }
        let arrival = Arrival { name: name.into(), changed, bytes, not_before: Instant::ZERO };
        if self.waiting_bytes + arrival.size() > self.room {
            self.given_up += 1;
            return false;
        }
        self.waiting_bytes += arrival.size();
        self.waiting.insert((from, id), arrival);
        true
    }

    /// The next file to be written, if the disk has none, into room for so many bytes.
    pub(super) fn next(&mut self, now: Instant, room: u64) -> Option<(usize, u64, Arrival)> {
        if self.writing.is_some() {
            return None;
        }
        let mut due = self.waiting.iter().filter(|(_, arrival)| arrival.not_before <= now);
        let (&(from, id), arrival) = due.find(|(_, arrival)| arrival.bytes.len() as u64 <= room)?;
        self.writing = Some((from, id));
        Some((from, id, arrival.clone()))
    }

    /// Whether files wait and the first has no room of so many bytes.
    pub(super) fn lacks_room(&self, room: u64) -> bool {
        self.writing.is_none()
            && self.waiting.values().next().is_some_and(|arrival| arrival.bytes.len() as u64 > room)
    }

    /// The disk has written a file: its length.
    pub(super) fn written(&mut self, from: usize, id: u64) -> u64 {
        self.writing = None;
        let bytes = self.waiting.get(&(from, id)).map_or(0, |arrival| arrival.bytes.len() as u64);
        self.remove(from, id);
        self.known[from].insert(id);
        bytes
    }

    /// The disk could not write a file: it is tried again later, or given up if that would be of no use.
    pub(super) fn failed(&mut self, now: Instant, from: usize, id: u64, why: Refusal) -> bool {
        self.writing = None;
        if !why.passes() {
            self.given_up += 1;
            return self.remove(from, id);
        }
        if let Some(arrival) = self.waiting.get_mut(&(from, id)) {
            arrival.not_before = now + RETRY;
        }
        false
    }

    /// Number of files that wait.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    fn remove(&mut self, from: usize, id: u64) -> bool {
        let removed = self.waiting.remove(&(from, id));
        self.waiting_bytes -= removed.as_ref().map_or(0, Arrival::size);
        removed.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(len: usize) -> Contents {
        Contents::copy(&vec![0; len])
    }

    #[test]
    fn a_file_is_written_once_and_one_for_which_there_is_no_room_waits() {
        let mut arrivals = Arrivals::new(2, 2 * OVERHEAD + 100);
        let now = Instant::ZERO;
        assert!(arrivals.remember(1, vec![7]).is_empty());
        assert!(!arrivals.came(1, 7, "old", 1, contents(10)), "of an earlier run");
        assert!(arrivals.came(0, 7, "a", 1, contents(60)) && arrivals.came(1, 8, "b", 1, contents(30)));
        assert!(!arrivals.came(0, 7, "a", 1, contents(60)) && !arrivals.came(0, 9, "c", 1, contents(20)));
        assert_eq!((arrivals.repeated, arrivals.given_up, arrivals.waiting()), (2, 1, 2));
        // What fits goes, whatever waits before it.
        let next =
            |arrivals: &mut Arrivals, now, room| arrivals.next(now, room).map(|(from, id, _)| (from, id));
        assert_eq!(next(&mut arrivals, now, 40), Some((1, 8)));
        assert_eq!(next(&mut arrivals, now, 100), None, "one at a time");
        assert_eq!(arrivals.written(1, 8), 30);
        assert_eq!(next(&mut arrivals, now, 40), None);
        assert_eq!(next(&mut arrivals, now, 60), Some((0, 7)));
        assert!(!arrivals.failed(now, 0, 7, Refusal::NoRoom));
        assert_eq!(next(&mut arrivals, now, 60), None);
        assert_eq!(next(&mut arrivals, now + RETRY, 60), Some((0, 7)));
        assert!(arrivals.failed(now, 0, 7, Refusal::Name), "it can never be written");
        assert_eq!((arrivals.waiting(), arrivals.waiting_bytes, arrivals.given_up), (0, 0, 2));
        // One that waited, and was written in an earlier run all the same.
        assert!(arrivals.came(0, 3, "d", 1, contents(10)));
        assert_eq!((arrivals.remember(0, vec![3, 4]), arrivals.waiting()), (vec![3], 0));
    }
}
