//! The extreme of a value over a sliding window, in constant space.
//!
//! Kathleen Nichols' filter, which Linux keeps bandwidth and round-trip estimates with: the best, second and third best
//! samples, each from a later part of the window than the one before, so that when the best one leaves the window the
//! next takes its place.

/// A sample and when it was taken, in whatever unit the window is measured in.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at: u64,
    value: u64,
}

/// A windowed maximum, or minimum of inverted values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Minmax {
    samples: [Sample; 3],
}

impl Minmax {
    /// A filter that has seen only `value`, at `at`.
    pub(super) const fn new(at: u64, value: u64) -> Self {
        Self { samples: [Sample { at, value }; 3] }
    }

    /// The extreme in the window.
    pub(super) const fn get(&self) -> u64 {
        self.samples[0].value
    }

    /// Takes a sample for a maximum over `window`.
    pub(super) fn update_max(&mut self, window: u64, at: u64, value: u64) -> u64 {
        self.update(window, Sample { at, value }, |one, other| one >= other)
    }

    /// Takes a sample for a minimum over `window`.
    pub(super) fn update_min(&mut self, window: u64, at: u64, value: u64) -> u64 {
        self.update(window, Sample { at, value }, |one, other| one <= other)
    }

    fn update(&mut self, window: u64, new: Sample, better: fn(u64, u64) -> bool) -> u64 {
        let [best, second, third] = &mut self.samples;
        if better(new.value, best.value) || new.at.saturating_sub(third.at) > window {
            self.samples = [new; 3];
            return new.value;
        }
        if better(new.value, second.value) {
            *second = new;
            *third = new;
        } else if better(new.value, third.value) {
            *third = new;
        }
        let age = new.at.saturating_sub(best.at);
        if age > window {
            *best = *second;
            *second = *third;
            *third = new;
            // The second may have left the window as well; the third has not, or all would have been replaced above.
            if new.at.saturating_sub(best.at) > window {
                *best = *second;
                *second = *third;
                *third = new;
            }
        } else if second.at == best.at && age > window / 4 {
            *second = new;
            *third = new;
        } else if third.at == second.at && age > window / 2 {
            *third = new;
        }
        self.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_is_forgotten_when_the_window_has_passed() {
        let mut filter = Minmax::new(0, 0);
        filter.update_max(10, 1, 100);
        for at in 2..=11 {
            assert_eq!(filter.update_max(10, at, 50), 100);
        }
        assert_eq!(filter.update_max(10, 12, 50), 50);
    }

    #[test]
    fn the_best_of_the_later_part_takes_over() {
        let mut filter = Minmax::new(0, 100);
        filter.update_max(10, 4, 70);
        filter.update_max(10, 8, 60);
        assert_eq!(filter.update_max(10, 11, 10), 70);
        assert_eq!(filter.update_max(10, 15, 10), 60);
    }
}
