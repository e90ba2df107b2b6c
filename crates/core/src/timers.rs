//! A machine's timers: a table sized by its timer enum.

use core::marker::PhantomData;

use crate::time::Instant;

/// A machine's timer enum: a field-less enum, each variant documented "When to …".
///
/// Where several timers fall due at one instant they go off in the order of [`Timer::ALL`].
pub trait Timer: Copy + 'static {
    /// Every variant, so that `ALL[t.index()]` is `t`.
    const ALL: &'static [Self];
    /// The variant's place in `ALL`.
    fn index(self) -> usize;
}

/// The deadlines of timers `T`; `N` is `T::ALL.len()`.
#[derive(Clone, Debug)]
pub struct Timers<T, const N: usize> {
    deadlines: [Option<Instant>; N],
    timer: PhantomData<T>,
}

impl<T: Timer, const N: usize> Default for Timers<T, N> {
    fn default() -> Self {
        const { assert!(T::ALL.len() == N, "the table has a place for each timer") };
        Self { deadlines: [None; N], timer: PhantomData }
    }
}

impl<T: Timer, const N: usize> Timers<T, N> {
    /// Sets `timer` to go off at `at`, in place of an earlier setting.
    pub fn set(&mut self, timer: T, at: Instant) {
        self.deadlines[timer.index()] = Some(at);
    }

    /// Stops `timer`.
    pub fn stop(&mut self, timer: T) {
        self.deadlines[timer.index()] = None;
    }

    /// The deadline of `timer`, if it is set.
    pub fn get(&self, timer: T) -> Option<Instant> {
        self.deadlines[timer.index()]
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        self.deadlines.iter().flatten().min().copied()
    }

    /// The earliest timer that is due at `now`, which is thereby stopped; call until `None`.
    pub fn expired(&mut self, now: Instant) -> Option<T> {
        let (index, at) = self
            .deadlines
            .iter()
            .enumerate()
            .filter_map(|(i, at)| at.map(|at| (i, at)))
            .min_by_key(|&(_, at)| at)?;
        if at > now {
            return None;
        }
        self.deadlines[index] = None;
        Some(T::ALL[index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Alarm {
        /// When to ask again.
        Retry,
        /// When to give up.
        GiveUp,
    }

    impl Timer for Alarm {
        const ALL: &'static [Self] = &[Self::Retry, Self::GiveUp];
        fn index(self) -> usize {
            self as usize
        }
    }

    #[test]
    fn timers_go_off_in_time_order_and_ties_in_table_order() {
        let at = Instant::from_nanos;
        let mut timers = Timers::<Alarm, 2>::default();
        timers.set(Alarm::GiveUp, at(5));
        timers.set(Alarm::Retry, at(9));
        assert_eq!(timers.next(), Some(at(5)));
        assert_eq!(timers.expired(at(4)), None);
        assert_eq!(timers.expired(at(9)), Some(Alarm::GiveUp));
        timers.set(Alarm::GiveUp, at(9));
        assert_eq!(timers.expired(at(9)), Some(Alarm::Retry));
        timers.stop(Alarm::GiveUp);
        assert_eq!(timers.expired(at(99)), None);
        assert_eq!(timers.next(), None);
    }
}
