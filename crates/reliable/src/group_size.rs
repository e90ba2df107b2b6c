//! The number of receivers, as a sender estimates it from their feedback.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};

/// An estimate of the number of receivers, for their back-off: too small, and their NACKs implode; too large, and
/// they wait without cause.
///
/// Suppression hides most of a large group. What shows its size are the NACKs that are sent all the same in a round:
/// where they are more than expected, the group is larger than the back-off was made for (RFC 5401, section 3.2.2).
#[derive(Clone, Debug)]
pub struct GroupSize {
    /// Told by whoever knows the group.
    told: Option<f64>,
    estimate: f64,
    /// When each receiver was last heard; at most [`MAX_HEARD`].
    heard: BTreeMap<u32, Instant>,
    /// NACKs of the current round, and when it began.
    round: Option<(Instant, u32)>,
}

/// Receivers whose addresses are remembered. More are a large group in any case.
const MAX_HEARD: usize = 256;
/// NACKs in a round above which the group is taken for larger. RFC 5401, section 3.2.2, expects about three.
const MANY: u32 = 6;
/// NACKs in a round below which it is taken for smaller.
const FEW: u32 = 3;
/// Maximum estimate: the largest group of RFC 5740's header.
const MAX: f64 = 5e8;

impl GroupSize {
    /// An estimate that begins with `assumed` receivers; `told` fixes it.
    pub fn new(told: Option<u64>, assumed: u64) -> Self {
        let told = told.map(|told| (told.max(1) as f64).min(MAX));
        Self { told, estimate: assumed.max(1) as f64, heard: BTreeMap::new(), round: None }
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
        }
    }

    /// Notes a receiver's NACK. Those within `round` after the first of them belong to one round.
    pub fn nack(&mut self, now: Instant, receiver: u32, round: Duration) {
        self.note(now, receiver);
        match &mut self.round {
            Some((began, nacks)) if now.since(*began) <= round => *nacks = nacks.saturating_add(1),
            _ => {
                if let Some((_, nacks)) = self.round.replace((now, 1)) {
                    self.finish(nacks);
                }
            }
        }
    }

    /// Forgets the receivers that were not heard for `silence`.
    pub fn expire(&mut self, now: Instant, silence: Duration) {
        self.heard.retain(|_, &mut at| now.since(at) <= silence);
    }

    fn finish(&mut self, nacks: u32) {
        if nacks > MANY {
            self.estimate = (self.estimate * f64::from(nacks) / f64::from(FEW)).min(MAX);
        } else if nacks <= FEW {
            self.estimate *= 0.8;
        }
        self.estimate = self.estimate.max(self.heard.len() as f64).max(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn many_nacks_in_a_round_are_a_larger_group_and_few_in_many_rounds_a_smaller_one() {
        let mut size = GroupSize::new(None, 10);
        (0..30).for_each(|receiver| size.nack(at(receiver), receiver as u32, ROUND));
        size.nack(at(200), 1, ROUND);
        assert_eq!(size.get(), 100.0);
        (3..60).for_each(|round| size.nack(at(200 * round), 1, ROUND));
        assert_eq!(size.get(), 30.0, "thirty have been heard");
        size.expire(at(20_000), Duration::from_secs(10));
        assert_eq!(size.heard(), 1);
    }

    #[test]
    fn forged_receivers_take_bounded_memory_and_a_group_that_was_told_stays() {
        let mut size = GroupSize::new(Some(3), 10);
        (0..100_000).for_each(|receiver| size.nack(at(u64::from(receiver) / 10), receiver, ROUND));
        assert_eq!((size.heard(), size.get()), (256, 3.0));
    }
}
