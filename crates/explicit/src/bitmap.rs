//! A bitmap over a list.

use std::fmt;

/// A set of the places of a list, 128 at most: place 0 is the bit on the left of the first byte.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Bitmap(u128);

impl Bitmap {
    /// No place.
    pub const EMPTY: Self = Self(0);

    /// One place, below 128.
    pub const fn of(place: usize) -> Self {
        Self(1 << (127 - place))
    }

    /// The first places, 128 at most.
    pub const fn first(count: usize) -> Self {
        match count {
            0 => Self(0),
            _ => Self(u128::MAX << (128 - count)),
        }
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
        (128 - self.0.trailing_zeros()) as usize
    }

    /// Number of places in the set in front of one, which may be 128.
    pub const fn before(self, place: usize) -> usize {
        match place {
            0 => 0,
            _ => (self.0 >> (128 - place)).count_ones() as usize,
        }
    }

    /// The first place of the set from one on, which may be 128.
    pub const fn next(self, from: usize) -> Option<usize> {
        if from > 127 {
            return None;
        }
        match (self.0 << from).leading_zeros() {
            128 => None,
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
    pub fn places(self) -> impl Iterator<Item = usize> + Clone {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let place = rest.leading_zeros();
            rest &= !((1_u128 << 127).checked_shr(place)?);
            Some(place as usize)
        })
    }

    /// Reads 16 bytes or fewer.
    #[inline]
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut all = [0; 16];
        all[..bytes.len()].copy_from_slice(bytes);
        Self(u128::from_be_bytes(all))
    }

    /// All bytes; a header has the first few, as its list is long.
    pub(crate) const fn bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl fmt::Debug for Bitmap {
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
        assert_eq!((Bitmap::of(0), Bitmap::of(127)), (Bitmap(1 << 127), Bitmap(1)));
        // The example in figure 2.5 of the thesis on MEADcast: "100100" of six addresses.
        assert_eq!(Bitmap::of(0).with(3), Bitmap::read(&[0b1001_0000]));
    }

    proptest! {
        #[test]
        fn each_question_is_answered_as_by_looking_at_each_place(bits: u128, other: u128, place in 0_usize..=128) {
            let map = Bitmap(bits);
            let all: Vec<usize> = (0..128).filter(|&place| map.has(place)).collect();
            prop_assert!(map.places().eq(all.iter().copied()));
            prop_assert_eq!(all.iter().fold(Bitmap::EMPTY, |map, &place| map.with(place)), map);
            prop_assert_eq!((map.len(), map.is_empty()), (all.len(), all.is_empty()));
            prop_assert_eq!(map.end(), all.last().map_or(0, |last| last + 1));
            prop_assert_eq!(map.before(place), all.iter().filter(|&&one| one < place).count());
            prop_assert_eq!(map.next(place), all.iter().copied().find(|&one| one >= place));
            prop_assert_eq!(map.has_neighbours(), all.windows(2).any(|pair| pair[0] + 1 == pair[1]));
            for other in [other, other | bits, other & bits] {
                let within = all.iter().all(|&place| Bitmap(other).has(place));
                prop_assert_eq!(map.is_within(Bitmap(other)), within);
            }
            prop_assert_eq!(Bitmap::read(&map.bytes()), map);
            prop_assert!(Bitmap::first(place).places().eq(0..place));
        }
    }
}
