//! The files of this site that are published: each once, in whatever run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use hopcast_core::{Duration, Instant};

/// Time after the start after which a file that was published and has not been seen is gone. Chosen: a directory that
/// is mounted later is there by then; what it has is published again otherwise, and received once all the same.
const SEEN_WITHIN: Duration = Duration::from_secs(60);

/// The files of the directory.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Those that are to be published, in the order in which they were found.
    due: VecDeque<u64>,
    /// All that are in the directory: name and length.
    seen: BTreeMap<u64, (Arc<str>, u64)>,
    /// The one that is being read.
    reading: Option<u64>,
    published: BTreeSet<u64>,
    is_pruned: bool,
}

impl Outgoing {
    /// A file was published in an earlier run.
    pub(super) fn was_published(&mut self, id: u64) {
        self.published.insert(id);
    }

    /// A file was found.
    pub(super) fn found(&mut self, id: u64, name: Arc<str>, size: u64) {
        self.seen.insert(id, (name, size));
        if !self.published.contains(&id) && !self.due.contains(&id) {
            self.due.push_back(id);
        }
    }

    /// A file is gone, or has changed; whether it had been published.
    pub(super) fn gone(&mut self, id: u64) -> bool {
        self.seen.remove(&id);
        self.due.retain(|&due| due != id);
        self.reading.take_if(|reading| *reading == id);
        self.published.remove(&id)
    }

    /// The next file that is to be read, if none is.
    pub(super) fn next(&mut self) -> Option<u64> {
        if self.reading.is_some() {
            return None;
        }
        self.reading = self.due.pop_front();
        self.reading
    }

    /// A file was read: its name. It counts as published.
    pub(super) fn was_read(&mut self, id: u64) -> Option<Arc<str>> {
        self.reading.take_if(|reading| *reading == id)?;
        let name = self.seen.get(&id).map(|(name, _)| Arc::clone(name))?;
        self.published.insert(id);
        Some(name)
    }

    /// Published files that are gone since an earlier run, once.
    pub(super) fn prune(&mut self, now: Instant) -> Vec<u64> {
        if now < Instant::ZERO + SEEN_WITHIN || std::mem::replace(&mut self.is_pruned, true) {
            return Vec::new();
        }
        let gone: Vec<u64> =
            self.published.iter().copied().filter(|id| !self.seen.contains_key(id)).collect();
        gone.iter().for_each(|id| _ = self.published.remove(id));
        gone
    }

    /// Number of files of the directory that are published, and of those that are not yet.
    pub(super) fn counts(&self) -> (u64, u64) {
        let published = self.seen.keys().filter(|id| self.published.contains(id)).count();
        (published as u64, (self.seen.len() - published) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_published_once_and_again_when_it_has_changed() {
        let mut outgoing = Outgoing::default();
        outgoing.was_published(1);
        outgoing.was_published(9);
        for id in [1, 2, 3] {
            outgoing.found(id, "a".into(), 10);
        }
        assert_eq!((outgoing.next(), outgoing.next(), outgoing.counts()), (Some(2), None, (1, 2)));
        assert_eq!((outgoing.was_read(3), outgoing.was_read(2).as_deref()), (None, Some("a")));
        assert!(outgoing.gone(2) && !outgoing.gone(3), "the last one has not been published");
        assert_eq!(outgoing.next(), None);
        outgoing.found(4, "b".into(), 1);
        assert_eq!(outgoing.next(), Some(4));
        // One that changes while it is read.
        assert!(!outgoing.gone(4));
        outgoing.found(5, "b".into(), 1);
        assert_eq!((outgoing.next(), outgoing.was_read(4)), (Some(5), None));
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        assert_eq!(
            (outgoing.prune(at(59)), outgoing.prune(at(60)), outgoing.prune(at(61))),
            (vec![], vec![9], vec![])
        );
        outgoing.found(9, "c".into(), 1);
        assert_eq!(outgoing.was_read(5).as_deref(), Some("b"));
        assert_eq!(outgoing.next(), Some(9));
    }
}
