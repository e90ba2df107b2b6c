//! A set of pieces of one file.

use std::ops::Range;

use super::wire::MAX_RANGES;

/// The pieces of a file that are here.
#[derive(Clone, Debug)]
pub(crate) struct Pieces {
    count: u32,
    words: Vec<u64>,
    left: u32,
}

impl Pieces {
    /// None of `count`.
    pub(crate) fn none(count: u32) -> Self {
        Self { count, words: vec![0; count.div_ceil(64) as usize], left: count }
    }

    /// Number of pieces that are missing.
    pub(crate) const fn left(&self) -> u32 {
        self.left
    }

    /// Number of all pieces.
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn contains(&self, piece: u32) -> bool {
        self.words.get(piece as usize / 64).is_some_and(|word| word >> (piece % 64) & 1 == 1)
    }

    /// Adds a piece. True if it is new.
    pub(crate) fn insert(&mut self, piece: u32) -> bool {
        if piece >= self.count || self.contains(piece) {
            return false;
        }
        self.words[piece as usize / 64] |= 1 << (piece % 64);
        self.left -= 1;
        true
    }

    /// The ranges that are missing; the last of as many as may be told goes to the end.
    pub(crate) fn missing(&self) -> Vec<Range<u32>> {
        let mut ranges: Vec<Range<u32>> = Vec::new();
        let mut piece = 0;
        while piece < self.count && ranges.len() < MAX_RANGES {
            // Whole words are passed over at once.
            if piece % 64 == 0 && self.words[piece as usize / 64] == u64::MAX {
                piece += 64;
            } else if self.contains(piece) {
                piece += 1;
            } else {
                let start = piece;
                while piece < self.count && !self.contains(piece) {
                    let empty = piece % 64 == 0 && self.words[piece as usize / 64] == 0;
                    piece = (piece + if empty { 64 } else { 1 }).min(self.count);
                }
                ranges.push(start..piece);
            }
        }
        if let (MAX_RANGES, Some(last)) = (ranges.len(), ranges.last_mut()) {
            last.end = self.count;
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_missing_is_told_and_no_more_unless_there_are_many_gaps(
            count in 1..400u32, here in proptest::collection::btree_set(0..400u32, 0..400),
        ) {
            let mut pieces = Pieces::none(count);
            let fit = here.iter().filter(|&&piece| piece < count).count();
            let added = here.iter().filter(|&&piece| pieces.insert(piece)).count();
            prop_assert_eq!((added, pieces.left()), (fit, count - fit as u32));
            let ranges = pieces.missing();
            let told = |piece: u32| ranges.iter().any(|range| range.contains(&piece));
            for piece in 0..count {
                prop_assert!(told(piece) || here.contains(&piece));
                if ranges.len() < MAX_RANGES {
                    prop_assert_eq!(told(piece), !here.contains(&piece));
                }
            }
        }
    }
}
