//! The files that come from one member: what is complete, what is under way, what is not taken.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use hopcast_core::{Duration, Instant};

use super::names;
use super::pieces::Pieces;
use super::wire::{Piece, Refusal, Standing, pieces};

/// Files of a member that are remembered as complete; the oldest are forgotten, and taken again if the member still
/// offers them. Chosen: 16 times what a directory may have.
pub(crate) const MAX_KNOWN: usize = 1 << 16;
/// Files of a member that are incomplete at a time. Chosen: one is sent after the other, and a few may be overtaken.
const MAX_PARTIAL: usize = 8;
/// Refusals of a member that are remembered. Chosen: the rest is refused again when it is offered.
const MAX_REFUSED: usize = 1024;
/// Time after which a file that has got no further is given up. Chosen: an outage of a day costs no file its progress.
const MAX_REST: Duration = Duration::from_secs(86_400);
/// Time after which a file for which there was no room may be tried again.
const REFUSED_TIME: Duration = Duration::from_secs(30);

/// Files of one member that were complete, the last [`MAX_KNOWN`] of them.
#[derive(Debug, Default)]
pub(crate) struct Known {
    ids: BTreeSet<u64>,
    order: VecDeque<u64>,
}

impl Known {
    pub(crate) fn insert(&mut self, id: u64) {
        if self.ids.insert(id) {
            self.order.push_back(id);
        }
        if self.order.len() > MAX_KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }

    pub(crate) fn contains(&self, id: u64) -> bool {
        self.ids.contains(&id)
    }
}

/// The files of one member.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    known: Known,
    partial: BTreeMap<u64, Partial>,
    refused: BTreeMap<u64, (Refusal, Instant)>,
    pub(crate) stored: u64,
    pub(crate) stored_bytes: u64,
}

/// A file that is incomplete.
#[derive(Debug)]
struct Partial {
    name: Arc<str>,
    size: u64,
    /// Pieces that were handed to the disk, and those that it has.
    handed: Pieces,
    written: Pieces,
    touched: Instant,
}

/// The next step for a piece.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes to the disk.
    Write,
    /// Nothing.
    Nothing,
    /// The file is not taken, from now on.
    Refuse(Refusal),
}

/// The next step once a piece is on the disk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All of it is there: it gets its name.
    Complete(Arc<str>),
    /// Something is missing.
    Goes,
    /// It was given up meanwhile.
    Gone,
}

impl Incoming {
    /// Files that were complete in earlier runs.
    pub(crate) fn remember(&mut self, ids: impl IntoIterator<Item = u64>) {
        ids.into_iter().for_each(|id| self.known.insert(id));
    }

    /// The pieces that this site has of a file.
    pub(crate) fn standing(&self, id: u64) -> Standing {
        if self.known.contains(id) {
            return Standing::Has;
        }
        if let Some(&(why, _)) = self.refused.get(&id) {
            return Standing::Refused(why);
        }
        match self.partial.get(&id) {
            // What is not complete under its name is missing for others.
            Some(partial) if partial.written.left() > 0 => Standing::Lacks(partial.written.missing()),
            Some(partial) => Standing::lacks(partial.written.count() - 1..partial.written.count()),
            None => Standing::lacks(0..u32::MAX),
        }
    }

    /// Bytes that incomplete files will have.
    pub(crate) fn reserved(&self) -> u64 {
        self.partial.values().map(|partial| partial.size).sum()
    }

    /// Judges a piece; `room` is how many bytes a new file may have, `quota` how many it may have at best. Files that
    /// make room for it are added to `gone`.
    pub(crate) fn piece(
        &mut self,
        now: Instant,
        piece: &Piece<'_>,
        (room, quota): (u64, u64),
        gone: &mut Vec<u64>,
    ) -> Verdict {
        if self.known.contains(piece.id) || self.refused.contains_key(&piece.id) {
            return Verdict::Nothing;
        }
        if !self.partial.contains_key(&piece.id) {
            let count = match (names::check(piece.name), pieces(piece.size)) {
                (Err(_), _) => Err(Refusal::Name),
                (Ok(()), Some(count)) if piece.size <= room.min(quota) => Ok(count),
                (Ok(()), Some(_)) if piece.size <= quota => Err(Refusal::NoRoom),
                (Ok(()), _) => Err(Refusal::TooLarge),
            };
            let count = match count {
                Ok(count) => count,
                Err(why) => {
                    self.refuse(now, piece.id, why);
                    return Verdict::Refuse(why);
                }
            };
            self.begin(now, piece, count, gone);
        }
        let Some(partial) = self.partial.get_mut(&piece.id) else { return Verdict::Nothing };
        if partial.size != piece.size || *partial.name != *piece.name || !partial.handed.insert(piece.piece) {
            return Verdict::Nothing;
        }
        partial.touched = now;
        Verdict::Write
    }

    /// Begins a file: an older one of its name is given up, and the one that has rested longest if there are many.
    fn begin(&mut self, now: Instant, piece: &Piece<'_>, count: u32, gone: &mut Vec<u64>) {
        let same = self.partial.iter().find(|(_, partial)| *partial.name == *piece.name);
        gone.extend(same.map(|(&id, _)| id));
        if self.partial.len() >= MAX_PARTIAL && gone.is_empty() {
            let rested = self.partial.iter().min_by_key(|(_, partial)| partial.touched);
            gone.extend(rested.map(|(&id, _)| id));
        }
        for id in gone.iter() {
            self.partial.remove(id);
        }
        let (handed, written) = (Pieces::none(count), Pieces::none(count));
        let (name, size) = (piece.name.into(), piece.size);
        self.partial.insert(piece.id, Partial { name, size, handed, written, touched: now });
    }

    /// The disk has a piece.
    pub(crate) fn written(&mut self, now: Instant, id: u64, piece: u32) -> Progress {
        let Some(partial) = self.partial.get_mut(&id) else { return Progress::Gone };
        partial.touched = now;
        match partial.written.insert(piece) && partial.written.left() == 0 {
            true => Progress::Complete(Arc::clone(&partial.name)),
            false => Progress::Goes,
        }
    }

    /// A file is complete under its name; its length in bytes.
    pub(crate) fn stored(&mut self, id: u64) -> u64 {
        let size = self.partial.remove(&id).map_or(0, |partial| partial.size);
        self.stored += 1;
        self.stored_bytes += size;
        self.remember([id]);
        size
    }

    /// A file is not taken for now, or for ever.
    pub(crate) fn refuse(&mut self, now: Instant, id: u64, why: Refusal) {
        self.partial.remove(&id);
        if self.refused.len() >= MAX_REFUSED {
            self.refused.pop_first();
        }
        self.refused.insert(id, (why, now));
    }

    /// Tries again what there was no room for some time ago, and gives up what has got no further for long: those files
    /// are added to `gone`.
    pub(crate) fn look(&mut self, now: Instant, gone: &mut Vec<u64>) {
        self.refused.retain(|_, &mut (why, since)| !why.passes() || now < since + REFUSED_TIME);
        let rested = self.partial.iter().filter(|(_, partial)| now >= partial.touched + MAX_REST);
        gone.extend(rested.map(|(&id, _)| id));
        for id in gone.iter() {
            self.partial.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::wire::{PIECE, piece_len};

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn give(incoming: &mut Incoming, id: u64, name: &str, size: u64, piece: u32) -> (Verdict, Vec<u64>) {
        let bytes = vec![0; piece_len(size, piece) as usize];
        let piece = Piece { id, size, piece, name, bytes: &bytes };
        let mut gone = Vec::new();
        (incoming.piece(at(id), &piece, (1 << 20, 1 << 21), &mut gone), gone)
    }

    #[test]
    fn a_file_is_complete_when_all_of_its_pieces_are_on_the_disk_and_it_has_its_name() {
        let mut incoming = Incoming::default();
        let size = 3 * PIECE;
        for piece in [2, 0, 1] {
            assert_eq!(give(&mut incoming, 1, "a", size, piece).0, Verdict::Write);
            assert_eq!(give(&mut incoming, 1, "a", size, piece).0, Verdict::Nothing, "it is with the disk");
        }
        assert_eq!(incoming.written(at(1), 1, 2), Progress::Goes);
        assert_eq!(incoming.standing(1), Standing::lacks(0..2));
        assert_eq!(incoming.written(at(1), 1, 0), Progress::Goes);
        assert_eq!(incoming.written(at(1), 1, 1), Progress::Complete("a".into()));
        assert!(matches!(incoming.standing(1), Standing::Lacks(_)), "it has no name yet");
        assert_eq!(incoming.reserved(), size);
        incoming.stored(1);
        assert_eq!(
            (incoming.standing(1), incoming.reserved(), incoming.stored_bytes),
            (Standing::Has, 0, size)
        );
        assert_eq!(give(&mut incoming, 1, "a", size, 0).0, Verdict::Nothing);
    }

    #[test]
    fn what_cannot_be_taken_is_refused_and_what_had_no_room_is_tried_again() {
        let mut incoming = Incoming::default();
        let refuses = |why| (Verdict::Refuse(why), vec![]);
        assert_eq!(give(&mut incoming, 1, "../a", 1, 0), refuses(Refusal::Name));
        assert_eq!(give(&mut incoming, 2, "b", 1 << 22, 0), refuses(Refusal::TooLarge));
        assert_eq!(give(&mut incoming, 3, "c", 3 << 19, 0), refuses(Refusal::NoRoom));
        assert_eq!(incoming.standing(3), Standing::Refused(Refusal::NoRoom));
        incoming.look(at(40), &mut Vec::new());
        assert_eq!(incoming.standing(3), Standing::lacks(0..u32::MAX));
        assert_eq!(incoming.standing(2), Standing::Refused(Refusal::TooLarge));
    }

    #[test]
    fn a_newer_file_of_the_name_takes_the_place_of_an_older_and_few_are_incomplete_at_a_time() {
        let mut incoming = Incoming::default();
        give(&mut incoming, 1, "a", 2 * PIECE, 0);
        assert_eq!(give(&mut incoming, 2, "a", 2 * PIECE, 0), (Verdict::Write, vec![1]));
        assert_eq!(incoming.written(at(3), 1, 0), Progress::Gone);
        for id in 3..10 {
            assert!(give(&mut incoming, id, &format!("{id}"), 2 * PIECE, 0).1.is_empty());
        }
        assert_eq!(give(&mut incoming, 10, "x", 2 * PIECE, 0).1, [2], "the one that has rested longest");
        let mut gone = Vec::new();
        incoming.look(at(86_400 + 5), &mut gone);
        assert_eq!(gone, [3, 4, 5]);
    }

    #[test]
    fn the_files_that_are_remembered_are_bounded() {
        let mut incoming = Incoming::default();
        incoming.remember(0..MAX_KNOWN as u64 + 10);
        assert_eq!(incoming.standing(9), Standing::lacks(0..u32::MAX));
        assert_eq!(incoming.standing(10), Standing::Has);
    }
}
