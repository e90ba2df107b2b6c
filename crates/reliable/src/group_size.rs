//! The number of receivers, as a sender estimates it from their feedback.

use std::collections::BTreeMap;
use std::f64::consts::E;

use hopcast_core::{Duration, Instant};

/// An estimate of the number of receivers, for their back-off: too small, and their NACKs implode; too large, and
/// they wait without cause.
///
/// Suppression hides most of a large group. What shows its size are the NACKs that are sent all the same in a round of
/// requests for one block: where they are more than expected, the group is larger than the back-off was made for (RFC
/// 5401, section 3.2.2).
#[derive(Clone, Debug)]
pub struct GroupSize {
    /// Told by whoever knows the group.
    told: Option<f64>,
    estimate: f64,
    /// Maximum of the estimate.
    max: f64,
    /// When each receiver was last heard; at most [`MAX_HEARD`].
    heard: BTreeMap<u32, Instant>,
}

/// Receivers whose addresses are remembered. More are a large group in any case.
const MAX_HEARD: usize = 256;
/// NACKs for a block in a round that show by themselves that the group is larger than assumed. Chosen: fewer come by
/// chance where half as many are expected.
const EXCESS_NACKS: u32 = 10;
/// Power of its ratio to the expected number by which the number of NACKs of one round changes the estimate, where they
/// are fewer. Chosen: those of some ten rounds decide together.
const GAIN: f64 = 0.25;
/// NACKs that a back-off may be expected to leave, at most. The more receivers a back-off is made for, the more of them
/// draw a long one: beyond that size too many would come at its end, whatever the group is.
const MAX_EXPECTED: f64 = 10.0;
/// Maximum estimate: the largest group of RFC 5740's header.
const MAX: f64 = 5e8;

impl GroupSize {
    /// An estimate that begins with `assumed` receivers; `told` fixes it. `delay` is the time until a NACK is heard by
    /// others, as a share of the longest back-off that a group can be given.
    pub fn new(told: Option<u64>, assumed: u64, delay: f64) -> Self {
        let told = told.map(|told| (told.max(1) as f64).min(MAX));
        let max = (MAX_EXPECTED.ln() / (1.2 * delay) - 1.0).exp().min(MAX);
        Self { told, estimate: assumed.max(1) as f64, max, heard: BTreeMap::new() }
    }

    /// The estimate; at least one.
    pub fn get(&self) -> f64 {
        self.told.unwrap_or(self.estimate)
    }

    /// Number of receivers that were heard at all: a lower bound, of at most 256.
    pub fn heard(&self) -> usize {
        self.heard.len()
    }

    /// Notes that a receiver was heard.
    pub fn note(&mut self, now: Instant, receiver: u32) {
        if self.heard.len() < MAX_HEARD || self.heard.contains_key(&receiver) {
            self.heard.insert(receiver, now);
            self.estimate = self.estimate.max(self.heard.len() as f64);
        }
    }

    /// Takes the number of NACKs so far in a round of requests for a block, whose back-off was made for a group of
    /// `made_for`. `delay` is the time until a NACK is heard by others, as a share of the longest back-off.
    pub fn nacks(&mut self, nacks: u32, made_for: f64, delay: f64) {
        if nacks <= EXCESS_NACKS {
            return;
        }
        // By the time t of the first NACK about one receiver has drawn less, by t + delay all these have.
        let rise = (lambda(made_for) * delay).exp_m1();
        let ratio = E * ((f64::from(nacks) - 1.0) / rise - 1.0);
        self.set(self.estimate.max(made_for * ratio));
    }

    /// A round of requests for a block is over, in which this number of NACKs came; `delay` as for
    /// [`nacks`](Self::nacks).
    pub fn round(&mut self, nacks: u32, delay: f64) {
        if (1..=EXCESS_NACKS).contains(&nacks) {
            let ratio = f64::from(nacks) / expected(self.estimate, delay);
            self.set(self.estimate * ratio.powf(GAIN));
        }
    }

    /// Forgets the receivers that were not heard for `silence`.
    pub fn expire(&mut self, now: Instant, silence: Duration) {
        self.heard.retain(|_, &mut at| now.since(at) <= silence);
    }

    fn set(&mut self, estimate: f64) {
        self.estimate = estimate.min(self.max).max(self.heard.len() as f64).max(1.0);
    }
}

/// Parameter of a back-off for a group of `receivers` (RFC 5401, section 3.2.2).
fn lambda(receivers: f64) -> f64 {
    receivers.max(1.0).ln() + 1.0
}

/// NACKs that are expected of a group, where its back-off is made for it (RFC 5401, section 3.2.2, in which NACKs are
/// heard by the others half a round trip after they were sent).
fn expected(receivers: f64, delay: f64) -> f64 {
    (1.2 * lambda(receivers) * delay).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time until a NACK is heard, as a share of a back-off of four round trips.
    const DELAY: f64 = 1.0 / 8.0;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn it_expects_what_rfc_5401_does() {
        // exp(1.2 * (ln 1000 + 1) / 8), by hand.
        assert!((expected(1000.0, DELAY) - 3.274).abs() < 0.001);
    }

    #[test]
    fn many_nacks_show_how_much_larger_the_group_is_and_few_in_many_rounds_that_it_is_smaller() {
        let mut size = GroupSize::new(None, 100, DELAY);
        size.nacks(10, 100.0, DELAY);
        assert_eq!(size.get(), 100.0);
        // Of 10,000 receivers 1 + (1 + 100 / e) * (e^(5.605 / 8) - 1) ask, which are 39.
        (1..=39).for_each(|nacks| size.nacks(nacks, 100.0, DELAY));
        assert!((9_000.0..11_000.0).contains(&size.get()), "{}", size.get());
        (0..100).for_each(|_| size.round(1, DELAY));
        assert!(size.get() < 2.0, "{}", size.get());
        (0..30).for_each(|receiver| size.note(at(receiver), receiver as u32));
        assert_eq!(size.get(), 30.0, "thirty have been heard");
        size.round(1, DELAY);
        assert_eq!(size.get(), 30.0, "and are there whatever a round shows");
        size.note(at(15_000), 1);
        size.expire(at(20_000), Duration::from_secs(10));
        assert_eq!(size.heard(), 1);
    }

    #[test]
    fn a_round_lowers_the_estimate_by_a_quarter_at_most_and_one_of_many_nacks_only_raises_it() {
        let mut size = GroupSize::new(None, 1000, DELAY);
        size.round(1000, DELAY);
        assert_eq!(size.get(), 1000.0, "many say what `nacks` takes from them");
        // Of a back-off for a single receiver, eleven are 202: fewer than are known by now.
        size.nacks(11, 1.0, DELAY);
        assert_eq!(size.get(), 1000.0);
        // 1 / 3.274, to the power of a quarter.
        size.round(1, DELAY);
        assert!((size.get() - 743.4).abs() < 0.5, "{}", size.get());
    }

    #[test]
    fn as_many_nacks_as_expected_change_little() {
        let mut size = GroupSize::new(None, 1000, DELAY);
        (0..100).for_each(|round| size.round(2 + 2 * (round % 2), DELAY));
        assert!((100.0..2000.0).contains(&size.get()), "{}", size.get());
    }

    #[test]
    fn it_does_not_run_away_where_no_back_off_helps() {
        let mut size = GroupSize::new(None, 100, 1.0 / 6.0);
        for _ in 0..100 {
            let before = size.get();
            size.nacks(100_000, before, 1.0 / 6.0);
        }
        // exp(ln 10 * 6 / 1.2 - 1), by hand.
        assert!((size.get() - 36_788.0).abs() < 1.0, "{}", size.get());
        // Without a back-off NACKs say nothing but from whom they are.
        size.nacks(100_000, 1.0, f64::INFINITY);
        size.round(1, f64::INFINITY);
        assert_eq!(size.get(), 1.0);
    }

    #[test]
    fn forged_receivers_take_bounded_memory_and_a_group_that_was_told_stays() {
        let mut size = GroupSize::new(Some(3), 10, DELAY);
        (0..100_000).for_each(|receiver| size.note(at(u64::from(receiver) / 10), receiver));
        size.nacks(100_000, 3.0, DELAY);
        assert_eq!((size.heard(), size.get()), (256, 3.0));
    }
}
