//! The files that this site offers, and which member has what of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use hopcast_core::{Duration, Instant};

use super::wire::{Refusal, Standing};

/// Pause after the first round of a file that left somebody without it; it doubles with each, up to the maximum.
/// Chosen: a member that a path hardly reaches costs the others little, and a file is not late for long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// Doublings until that.
const MAX_DOUBLINGS: u32 = 6;

/// A file that is offered.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) id: u64,
    pub(crate) name: Arc<str>,
    /// Its length, in bytes.
    pub(crate) size: u64,
    /// Number of its pieces.
    pub(crate) pieces: u32,
    /// Each member's pieces of it; `None` until it has told them.
    pub(crate) standings: Vec<Option<Standing>>,
    /// Rounds in which it was sent, and before when there is no other.
    rounds: u32,
    retry: Instant,
    /// Whether it was logged that all have it.
    pub(crate) is_said: bool,
}

/// The files of a directory in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    files: BTreeMap<u64, File>,
    places: BTreeMap<u64, u64>,
    next: u64,
}

impl Catalogue {
    /// Adds a file that no member has told of.
    pub(crate) fn add(&mut self, (id, name, size): (u64, Arc<str>, u64), pieces: u32, members: usize) {
        if self.places.contains_key(&id) {
            return;
        }
        let standings = vec![None; members];
        let file =
            File { id, name, size, pieces, standings, rounds: 0, retry: Instant::ZERO, is_said: false };
        self.files.insert(self.next, file);
        self.places.insert(id, self.next);
        self.next += 1;
    }

    /// Forgets a file that has gone, or changed.
    pub(crate) fn remove(&mut self, id: u64) {
        if let Some(place) = self.places.remove(&id) {
            self.files.remove(&place);
        }
    }

    pub(crate) fn get(&self, id: u64) -> Option<&File> {
        self.files.get(self.places.get(&id)?)
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut File> {
        self.files.get_mut(self.places.get(&id)?)
    }

    /// All, the oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &File> {
        self.files.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// Nothing that is uncertain is known of a member any more; `all`: nor what it said that it has.
    pub(crate) fn forget_standings(&mut self, member: usize, all: bool) {
        for file in self.files.values_mut() {
            if all || file.standings[member] != Some(Standing::Has) {
                file.standings[member] = None;
                file.retry = Instant::ZERO;
            }
        }
    }

    /// Members that were short of room are asked again.
    pub(crate) fn forget_refusals(&mut self) {
        for standing in self.files.values_mut().flat_map(|file| &mut file.standings) {
            if matches!(standing, Some(Standing::Refused(why)) if why.passes()) {
                *standing = None;
            }
        }
    }

    /// The first file that one of `members` lacks, and that may be sent now.
    pub(crate) fn due(&self, now: Instant, members: &[usize]) -> Option<u64> {
        let due = |file: &&File| file.retry <= now && members.iter().any(|&member| file.lacks_any(member));
        self.files.values().find(due).map(|file| file.id)
    }
}

impl File {
    /// Whether a member has said that it lacks something.
    pub(crate) fn lacks_any(&self, member: usize) -> bool {
        matches!(self.standings[member], Some(Standing::Lacks(_)))
    }

    /// Whether a member lacks a piece.
    pub(crate) fn lacks(&self, member: usize, piece: u32) -> bool {
        match &self.standings[member] {
            Some(Standing::Lacks(ranges)) => ranges.iter().any(|range| range.contains(&piece)),
            Some(Standing::Has | Standing::Refused(_)) | None => false,
        }
    }

    /// The first piece from `from` on that one of `members` lacks.
    pub(crate) fn next_lacking(&self, from: u32, members: &[usize]) -> Option<u32> {
        let ranges = members.iter().filter_map(|&member| match &self.standings[member] {
            Some(Standing::Lacks(ranges)) => Some(ranges),
            Some(Standing::Has | Standing::Refused(_)) | None => None,
        });
        let firsts = ranges.flatten().filter(|range| range.end > from).map(|range| range.start.max(from));
        firsts.min().filter(|&piece| piece < self.pieces)
    }

    /// Pieces that a member has; `None` if it has not said.
    pub(crate) fn held(&self, member: usize) -> Option<u32> {
        match self.standings[member].as_ref()? {
            Standing::Has => Some(self.pieces),
            Standing::Refused(_) => Some(0),
            Standing::Lacks(ranges) => {
                let end = |range: &std::ops::Range<u32>| range.end.min(self.pieces);
                let missing: u32 = ranges.iter().map(|range| end(range).saturating_sub(range.start)).sum();
                Some(self.pieces.saturating_sub(missing))
            }
        }
    }

    /// Notes that a round is over, and forgets what those said that lack something: the members that are asked before
    /// the next.
    pub(crate) fn end_round(&mut self, now: Instant) -> Vec<usize> {
        let lack: Vec<usize> = (0..self.standings.len()).filter(|&member| self.lacks_any(member)).collect();
        for &member in &lack {
            self.standings[member] = None;
            self.retry = now + (FIRST_PAUSE * (1 << self.rounds.min(MAX_DOUBLINGS))).min(MAX_PAUSE);
        }
        self.rounds += 1;
        lack
    }

    /// Whether every member has it.
    pub(crate) fn is_everywhere(&self) -> bool {
        self.standings.iter().all(|standing| *standing == Some(Standing::Has))
    }

    /// Why a member does not take it, if that is so.
    pub(crate) fn refusal(&self, member: usize) -> Option<Refusal> {
        match self.standings[member] {
            Some(Standing::Refused(why)) => Some(why),
            Some(Standing::Has | Standing::Lacks(_)) | None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Catalogue {
        let mut catalogue = Catalogue::default();
        catalogue.add((7, "a".into(), 1), 10, 2);
        catalogue.add((3, "b".into(), 1), 10, 2);
        catalogue.add((7, "a".into(), 1), 10, 2);
        catalogue
    }

    #[test]
    fn the_oldest_file_that_somebody_lacks_goes_first() {
        let mut catalogue = catalogue();
        assert_eq!((catalogue.len(), catalogue.due(Instant::ZERO, &[0, 1])), (2, None));
        catalogue.get_mut(3).unwrap().standings[0] = Some(Standing::lacks(0..u32::MAX));
        assert_eq!(
            (catalogue.due(Instant::ZERO, &[0, 1]), catalogue.due(Instant::ZERO, &[1])),
            (Some(3), None)
        );
        catalogue.get_mut(7).unwrap().standings[1] = Some(Standing::Lacks(vec![2..3, 5..6]));
        assert_eq!(catalogue.due(Instant::ZERO, &[0, 1]), Some(7));
        let file = catalogue.get(7).unwrap();
        assert_eq!((file.held(0), file.held(1)), (None, Some(8)));
        let pieces: Vec<_> = [0, 2, 3, 6].map(|from| file.next_lacking(from, &[0, 1])).into();
        assert_eq!(pieces, [Some(2), Some(2), Some(5), None]);
        assert!(file.lacks(1, 5) && !file.lacks(1, 4));
        catalogue.remove(7);
        assert_eq!(catalogue.due(Instant::ZERO, &[0, 1]), Some(3));
    }

    #[test]
    fn a_round_that_left_somebody_without_is_followed_by_ever_longer_pauses() {
        let mut catalogue = catalogue();
        let (mut now, mut pauses) = (Instant::ZERO, Vec::new());
        for _ in 0..9 {
            let file = catalogue.get_mut(7).unwrap();
            file.standings[0] = Some(Standing::lacks(0..1));
            assert_eq!(file.end_round(now), [0]);
            assert_eq!(file.standings[0], None, "it is asked again");
            pauses.push(file.retry.since(now).as_secs_f64());
            now = file.retry;
        }
        assert_eq!(pauses, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]);
        catalogue.forget_standings(0, false);
        assert_eq!(catalogue.get(7).unwrap().retry, Instant::ZERO, "a member that is back is served at once");
    }
}
