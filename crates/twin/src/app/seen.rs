//! Which numbers have arrived already.

/// A window over the most recent numbers of a sequence: tells the first arrival of each from later ones.
///
/// What is older than the window counts as seen: with 65,536 numbers that is over two seconds behind at the rate
/// of our fastest studies, and memory stays flat.
pub(crate) struct Seen {
    bits: Vec<u64>,
    /// One past the highest number seen.
    next: u64,
}

const WINDOW: u64 = 1 << 16;

impl Seen {
    pub(crate) fn new() -> Self {
        Self { bits: vec![0; (WINDOW / 64) as usize], next: 0 }
    }

    /// Notes `number`; true if it is new.
    pub(crate) fn first(&mut self, number: u64) -> bool {
        if number >= self.next {
            // The places that the window moves on to held numbers that are now too old.
            let fresh = (number + 1 - self.next).min(WINDOW);
            for number in (number + 1 - fresh)..=number {
                self.bits[(number % WINDOW / 64) as usize] &= !(1 << (number % 64));
            }
            self.next = number + 1;
        } else if number + WINDOW < self.next {
            return false;
        }
        let (word, bit) = ((number % WINDOW / 64) as usize, 1 << (number % 64));
        let first = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn within_the_window_it_is_a_set(numbers in prop::collection::vec(0..WINDOW, 0..200)) {
            let mut seen = Seen::new();
            let mut model = std::collections::BTreeSet::new();
            for number in numbers {
                prop_assert_eq!(seen.first(number), model.insert(number));
            }
        }
    }

    #[test]
    fn a_jump_forgets_what_fell_out_of_the_window() {
        let mut seen = Seen::new();
        assert!(seen.first(5));
        assert!(seen.first(5 + WINDOW));
        assert!(!seen.first(4), "too old to tell");
        assert!(seen.first(6 + 3 * WINDOW));
        assert!(!seen.first(6 + 3 * WINDOW));
        assert!(seen.first(7 + 2 * WINDOW));
    }
}
