//! A bitmap over a list.

use std::fmt;

/// A set of the places of a list: place 0 is the bit on the left.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Map(u32);

impl Map {
    /// No place.
    pub const EMPTY: Self = Self(0);

    /// One place, below 32.
    pub const fn of(place: usize) -> Self {
        Self(1 << (31 - place))
    }

    /// The set with one place more.
    #[must_use]
    pub const fn with(self, place: usize) -> Self {
        Self(self.0 | Self::of(place).0)
    }

    /// Whether a place is in the set.
    pub const fn has(self, place: usize) -> bool {
        self.0 & Self::of(place).0 != 0
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
        (32 - self.0.trailing_zeros()) as usize
    }

    /// Number of places in the set in front of one, which may be 32.
    pub const fn before(self, place: usize) -> usize {
        match place {
            0 => 0,
            _ => (self.0 >> (32 - place)).count_ones() as usize,
        }
    }

    /// The first place of the set from one on, which may be 32.
    pub const fn next(self, from: usize) -> Option<usize> {
        if from > 31 {
            return None;
        }
        match (self.0 << from).leading_zeros() {
            32 => None,
            more => Some(from + more as usize),
        }
    }

    /// Whether all its places are in another set.
    pub const fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Whether two places that follow each other are in the set.
    pub const fn has_neighbours(self) -> bool {
        self.0 & self.0 << 1 != 0
    }

    /// The places, in their order.
    pub fn places(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let place = rest.leading_zeros();
            rest &= !(0x8000_0000_u32.checked_shr(place)?);
            Some(place as usize)
        })
    }
}

impl From<u32> for Map {
    fn from(bits: u32) -> Self {
        Self(bits)
    }
}

impl From<Map> for u32 {
    fn from(map: Map) -> Self {
        map.0
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.places()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn place_0_is_the_bit_on_the_left() {
        assert_eq!((Map::of(0), Map::of(31)), (Map(0x8000_0000), Map(1)));
        // The thesis' example in figure 2.5: "100100" of six addresses.
        assert_eq!(u32::from(Map::of(0).with(3)), 0b100100 << 26);
    }

    proptest! {
        #[test]
        fn each_question_is_answered_as_by_looking_at_each_place(bits: u32, other: u32, place in 0_usize..=32) {
            let map = Map(bits);
            let all: Vec<usize> = (0..32).filter(|&place| map.has(place)).collect();
            prop_assert!(map.places().eq(all.iter().copied()));
            prop_assert_eq!(all.iter().fold(Map::EMPTY, |map, &place| map.with(place)), map);
            prop_assert_eq!((map.len(), map.is_empty()), (all.len(), all.is_empty()));
            prop_assert_eq!(map.end(), all.last().map_or(0, |last| last + 1));
            prop_assert_eq!(map.before(place), all.iter().filter(|&&one| one < place).count());
            prop_assert_eq!(map.next(place), all.iter().find(|&&one| one >= place).copied());
            prop_assert_eq!(map.has_neighbours(), all.windows(2).any(|pair| pair[0] + 1 == pair[1]));
            prop_assert_eq!(map.is_within(Map(other)), all.iter().all(|&place| Map(other).has(place)));
        }
    }
}
