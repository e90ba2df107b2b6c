//! A record of the numbers that have arrived already.

/// A window over the most recent numbers of a sequence, which distinguishes the first arrival of each from later ones.
///
/// It covers four million numbers, which is four seconds of the smallest datagrams at 10 Gbit/s, in at most half a
/// megabyte. Its memory grows with the sequence up to that size.
pub(crate) struct Seen {
    /// A ring of bits; shorter than the window as long as no number has needed more.
    bits: Vec<u64>,
    /// One past the highest number seen.
    next: u64,
}

/// The arrival of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The first arrival.
    First,
    /// A repeated arrival.
    Again,
    /// Older than the window: it is unknown which.
    TooOld,
}

/// Number of the latest units that are remembered, each a bit: 512 kB. Chosen: more than are under way at a time, so
/// that no arrival is too old; more is memory for each receiver.
const WINDOW: u64 = 1 << 22;

impl Seen {
    pub(crate) fn new() -> Self {
        Self { bits: Vec::new(), next: 0 }
    }

    /// Notes `number`.
    pub(crate) fn note(&mut self, number: u64) -> Arrival {
        if number >= self.next {
            let needed = (number.min(WINDOW - 1) / 64) as usize + 1;
            if self.bits.len() < needed {
                self.bits.resize(needed, 0);
            }
            // The bits that the window moves to belonged to numbers that are now too old.
            if number >= WINDOW {
                self.bits.resize((WINDOW / 64) as usize, 0);
                let fresh = (number + 1 - self.next).min(WINDOW);
                for number in (number + 1 - fresh)..=number {
                    let (word, bit) = place(number);
                    self.bits[word] &= !bit;
                }
            }
            self.next = number + 1;
        } else if number + WINDOW < self.next {
            return Arrival::TooOld;
        }
        let (word, bit) = place(number);
        let before = self.bits[word] & bit;
        self.bits[word] |= bit;
        if before == 0 { Arrival::First } else { Arrival::Again }
    }
}

fn place(number: u64) -> (usize, u64) {
    ((number % WINDOW / 64) as usize, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn within_the_window_it_is_a_set(
            base in prop_oneof![Just(0), Just(WINDOW - 100), Just(5 * WINDOW - 3)],
            numbers in prop::collection::vec(0..WINDOW / 2, 0..200),
        ) {
            let mut seen = Seen::new();
            let mut model = std::collections::BTreeSet::new();
            for number in numbers {
                let expected = if model.insert(number) { Arrival::First } else { Arrival::Again };
                prop_assert_eq!(seen.note(base + number), expected);
            }
        }
    }

    #[test]
    fn a_jump_forgets_what_fell_out_of_the_window() {
        let mut seen = Seen::new();
        assert_eq!(seen.note(5), Arrival::First);
        assert_eq!(seen.note(5 + WINDOW), Arrival::First);
        assert_eq!(seen.note(4), Arrival::TooOld);
        assert_eq!(seen.note(6 + 3 * WINDOW), Arrival::First);
        assert_eq!(seen.note(6 + 3 * WINDOW), Arrival::Again);
        assert_eq!(seen.note(7 + 2 * WINDOW), Arrival::First);
    }

    #[test]
    fn memory_is_taken_up_as_the_sequence_goes_on() {
        let mut seen = Seen::new();
        seen.note(100);
        assert_eq!(seen.bits.len(), 2);
        seen.note(9 * WINDOW);
        assert_eq!(seen.bits.len() as u64, WINDOW / 64);
    }
}
