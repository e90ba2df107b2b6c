//! A set of numbers within a window, whose smallest member is found quickly.

/// Numbers of a window that are marked.
#[derive(Debug)]
pub(super) struct Marks {
    words: Vec<u64>,
    window: u64,
}

impl Marks {
    pub(super) fn new(window: u64) -> Self {
        Self { words: vec![0; window.div_ceil(64) as usize], window }
    }

    pub(super) fn set(&mut self, number: u64, marked: bool) {
        let at = number % self.window;
        let (word, bit) = (&mut self.words[(at / 64) as usize], 1 << (at % 64));
        if marked { *word |= bit } else { *word &= !bit }
    }

    /// The first marked number from `from` up to `end`, which are at most a window apart.
    pub(super) fn first(&self, from: u64, end: u64) -> Option<u64> {
        let mut number = from;
        while number < end {
            let at = number % self.window;
            let ahead = self.words[(at / 64) as usize] >> (at % 64);
            if ahead != 0 {
                let found = number + u64::from(ahead.trailing_zeros());
                return (found < end).then_some(found);
            }
            // On to the next word, or to the beginning of the first.
            number += (64 - at % 64).min(self.window - at);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_found_across_the_seam() {
        for window in [64, 100, 512] {
            let mut marks = Marks::new(window);
            for from in [0, 7, 63, 64, 99, 1000] {
                for distance in [0, 1, 30, 63] {
                    marks.set(from + distance, true);
                    assert_eq!(marks.first(from, from + window), Some(from + distance));
                    assert_eq!(marks.first(from, from + distance), None);
                    marks.set(from + distance, false);
                    assert_eq!(marks.first(from, from + window), None);
                }
            }
        }
    }
}
