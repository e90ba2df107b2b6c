//! The bitmap over a list of destinations.

use std::fmt;

/// A set of the places of a list: place 0 is the bit on the left of the first byte.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks(u128);

impl Marks {
    /// No place.
    pub const NONE: Self = Self(0);

    /// The first places, 128 at most.
    pub const fn first(count: usize) -> Self {
        match count {
            0 => Self(0),
            _ => Self(u128::MAX << (128 - count)),
        }
    }

    /// The set with one place more, below 128.
    #[must_use]
    pub const fn with(self, place: usize) -> Self {
        Self(self.0 | 1 << (127 - place))
    }

    /// Whether a place is in the set.
    pub const fn has(self, place: usize) -> bool {
        self.0 >> (127 - place) & 1 == 1
    }

    /// Number of places in the set.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether no place is in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Place behind the last that is in the set; 0 of the empty set.
    pub const fn end(self) -> usize {
        (128 - self.0.trailing_zeros()) as usize
    }

    /// The places, in their order.
    pub fn places(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let place = rest.leading_zeros();
            rest &= !((1_u128 << 127).checked_shr(place)?);
            Some(place as usize)
        })
    }

    /// Reads 8 or 16 bytes, or fewer.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut all = [0; 16];
        all[..bytes.len()].copy_from_slice(bytes);
        Self(u128::from_be_bytes(all))
    }

    pub(super) const fn bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl fmt::Debug for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.places()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_question_is_answered_as_by_looking_at_each_place(bits: u128, count in 0_usize..=128) {
            let marks = Marks(bits);
            let all: Vec<usize> = (0..128).filter(|&place| marks.has(place)).collect();
            prop_assert!(marks.places().eq(all.iter().copied()));
            prop_assert_eq!(all.iter().fold(Marks::NONE, |marks, &place| marks.with(place)), marks);
            prop_assert_eq!((marks.len(), marks.is_empty()), (all.len(), all.is_empty()));
            prop_assert_eq!(marks.end(), all.last().map_or(0, |last| last + 1));
            prop_assert_eq!(Marks::read(&marks.bytes()), marks);
            prop_assert!(Marks::first(count).places().eq(0..count));
        }
    }
}
