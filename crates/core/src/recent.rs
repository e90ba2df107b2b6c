//! The recent ones of the numbers that a sender gives its packets, and whether each has arrived.

/// The last numbers of 32 bits, which wrap around. A number that is older than these counts as one that has arrived: a
/// packet that is delivered twice is worse than one that is lost.
#[derive(Clone, Debug)]
pub struct RecentNumbers {
    /// One past the newest number that has arrived.
    newest: u32,
    /// Whether each of the last numbers has arrived, by the number modulo the window.
    arrived: Box<[bool]>,
}

impl RecentNumbers {
    /// No numbers yet, and a window of 2^`bits` of them.
    ///
    /// # Panics
    /// With more than 24 bits, 16 MiB.
    pub fn new(bits: u32) -> Self {
        assert!(bits <= 24, "a window of 2^{bits} numbers");
        Self { newest: 0, arrived: vec![false; 1 << bits].into() }
    }

    /// Notes that a number has arrived; whether it is the first time, as far as is known.
    pub fn is_first(&mut self, number: u32) -> bool {
        let window = self.arrived.len() as u32;
        let slot = |number: u32| (number % window) as usize;
        let ahead = number.wrapping_sub(self.newest);
        if ahead < u32::MAX / 2 {
            // At most once around: those between have not arrived.
            (0..=ahead.min(window - 1))
                .for_each(|back| self.arrived[slot(number.wrapping_sub(back))] = false);
            self.newest = number.wrapping_add(1);
        } else if self.newest.wrapping_sub(number) > window {
            return false;
        }
        !core::mem::replace(&mut self.arrived[slot(number)], true)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const WINDOW: u32 = 1024;

    fn first(recent: &mut RecentNumbers, arriving: &[u32]) -> Vec<u32> {
        arriving.iter().copied().filter(|&number| recent.is_first(number)).collect()
    }

    #[test]
    fn numbers_wrap_around_and_those_that_are_too_old_have_arrived() {
        let mut recent = RecentNumbers { newest: u32::MAX - 1, ..RecentNumbers::new(10) };
        assert_eq!(first(&mut recent, &[u32::MAX, 0, u32::MAX, 1, 0]), [u32::MAX, 0, 1]);
        let mut recent = RecentNumbers::new(10);
        let (old, kept) = (5000 - WINDOW, 5001 - WINDOW);
        assert_eq!(first(&mut recent, &[0, 5000, old, kept]), [0, 5000, kept]);
    }

    proptest! {
        #[test]
        fn nothing_is_new_twice_and_all_in_the_window_once(numbers in prop::collection::vec(0u32..3000, 1..400)) {
            let mut recent = RecentNumbers::new(10);
            let (mut newest, mut seen) = (0, BTreeSet::new());
            for number in numbers {
                newest = newest.max(number);
                let expected = number + WINDOW > newest && !seen.contains(&number);
                prop_assert_eq!(recent.is_first(number), expected, "{} behind {}", number, newest);
                seen.insert(number);
            }
        }
    }
}
