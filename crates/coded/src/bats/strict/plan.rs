//! Number of packets that a node sends of a batch: adaptive recoding (BAR), for what it has measured.

use hopcast_code::bats::ranks::{Channel, Ranks, Scheme};
use hopcast_code::bats::recoding::{Plan, Repairs};

use super::super::bursts::BURSTY;

/// Batches after which a plan is made anew, as the ranks of batches here may have changed. Chosen: a plan takes time to
/// compute; with more, changed ranks are followed late.
const BATCHES: u64 = 128;
/// Change of the loss at which a plan is made anew, as a share of it, and in all by [`LOSS`] more. Chosen: smaller ones
/// are noise.
const LOSS_SHARE: f64 = 0.1;
/// Minimum change of the loss, in all: see [`LOSS_SHARE`].
const LOSS: f64 = 0.005;
/// Change of the budget at which a plan is made anew, as a share: all hops are to be equally busy. Chosen; with more,
/// hops differ by as much; with less, noise has plans made anew.
const BUDGET_SHARE: f64 = 0.01;
/// Probability that a batch passes a hop as it is, where capacity is to spare. Chosen: six hops then pass 94 % of small
/// batches whole.
const CERTAINTY: f64 = 0.99;

/// Basis of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Basis {
    /// The share of packets lost, and how many in a row.
    pub(super) loss: f64,
    pub(super) burst: f64,
    /// Number of interleaved batches.
    pub(super) depth: u32,
    /// Number of packets to spend on a batch, on average.
    pub(super) budget: f64,
}

/// The plan of one hop.
#[derive(Debug, Default)]
pub(super) struct Recoding {
    plan: Option<Plan>,
    repairs: Option<Repairs>,
    basis: Basis,
    since: u64,
}

impl Recoding {
    /// Sees to it that the plan is one for `basis` and for batches that have been over with such ranks, when the batch
    /// of that number is the next.
    pub(super) fn update(&mut self, basis: &Basis, ranks: &[f64], serial: u64) {
        let old = &self.basis;
        let same = (basis.loss - old.loss).abs() <= LOSS + LOSS_SHARE * old.loss
            && (basis.budget - old.budget).abs() <= BUDGET_SHARE * old.budget
            && (basis.burst - old.burst).abs() <= 0.25 * old.burst
            && basis.depth == old.depth;
        if self.plan.is_some() && same && serial < self.since + BATCHES {
            return;
        }
        let Some(channel) = channel(basis) else { return };
        let limit = ranks.len() - 1;
        // Before any batch was over, all are taken for whole.
        let ranks = Ranks::new(ranks).unwrap_or_else(|_| Ranks::full(limit));
        self.plan = Some(Plan::new(&ranks, &channel, Scheme::Random, 1, basis.budget));
        self.repairs = Some(Repairs::new(&channel, limit, CERTAINTY));
        (self.basis, self.since) = (*basis, serial);
    }

    /// Number of packets to send of a batch of a rank; `idle`: with capacity to spare.
    pub(super) fn packets(&self, serial: u64, rank: u8, idle: bool) -> u16 {
        let deficit = usize::from(rank);
        let packets = match (&self.plan, &self.repairs) {
            (_, Some(repairs)) if idle => repairs.packets(deficit),
            // By multiples of the golden ratio each policy has its share over short stretches too.
            (Some(plan), _) => plan.policy((serial as u32).wrapping_mul(0x9E37_79B9)).packets(0, deficit),
            (None, _) => deficit,
        };
        packets.min(4 * deficit) as u16
    }
}

/// The hop as a batch sees it.
fn channel(basis: &Basis) -> Option<Channel> {
    let loss = basis.loss.clamp(0.0, 0.9);
    if basis.burst < BURSTY || loss == 0.0 {
        return Channel::independent(loss, 256).ok();
    }
    // Gilbert's: nothing passes in the bad state, which is left with probability 1 / burst.
    let leave = 1.0 / basis.burst;
    let enter = (leave * loss / (1.0 - loss)).min(1.0);
    Channel::bursty([0.0, 1.0], [enter, leave], 256).ok().map(|channel| channel.interleaved(basis.depth))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: [f64; 17] = {
        let mut ranks = [0.0; 17];
        ranks[16] = 1.0;
        ranks
    };

    fn recoding(loss: f64, burst: f64) -> Recoding {
        let mut recoding = Recoding::default();
        recoding.update(&Basis { loss, burst, depth: 1, budget: 20.0 }, &FULL, 0);
        recoding
    }

    /// Whether a basis and a serial number make a plan anew.
    fn anew(recoding: &mut Recoding, basis: Basis, serial: u64) -> bool {
        let before = (recoding.basis, recoding.since);
        recoding.update(&basis, &FULL, serial);
        (recoding.basis, recoding.since) != before
    }

    #[test]
    fn a_plan_is_made_anew_after_128_batches_or_when_its_basis_has_changed() {
        let mut recoding = recoding(0.2, 2.0);
        let basis = recoding.basis;
        assert!(!anew(&mut recoding, basis, 127));
        assert!(anew(&mut recoding, basis, 128));
        assert!(!anew(&mut recoding, basis, 255));
        // By 0.005 and a tenth: 0.025.
        for (loss, expected) in [(0.224, false), (0.176, false), (0.226, true)] {
            assert_eq!(anew(&mut recoding, Basis { loss, ..basis }, 255), expected, "{loss}");
        }
        recoding = super::tests::recoding(0.0, 2.0);
        let clean = recoding.basis;
        for (loss, expected) in [(0.0049, false), (0.0051, true)] {
            assert_eq!(anew(&mut recoding, Basis { loss, ..clean }, 0), expected, "{loss}");
        }
        recoding = super::tests::recoding(0.2, 2.0);
        for (budget, expected) in [(20.19, false), (19.81, false), (20.21, true)] {
            assert_eq!(anew(&mut recoding, Basis { budget, ..basis }, 0), expected, "{budget}");
        }
        recoding = super::tests::recoding(0.2, 2.0);
        for (burst, expected) in [(2.49, false), (2.51, true)] {
            assert_eq!(anew(&mut recoding, Basis { burst, ..basis }, 0), expected, "{burst}");
        }
        recoding = super::tests::recoding(0.2, 2.0);
        assert!(anew(&mut recoding, Basis { depth: 2, ..basis }, 0));
    }

    #[test]
    fn with_capacity_to_spare_a_batch_passes_with_99_percent() {
        // One packet of a batch, of which each copy is lost or says nothing new with probability f: f^n <= 0.01.
        for (fails, expected) in
            [(0.0099_f64, 1), (0.0101, 2), (0.0990, 2), (0.1010, 3), (0.2150, 3), (0.2160, 4)]
        {
            let recoding = recoding((fails - 1.0 / 256.0) / (1.0 - 1.0 / 256.0), 1.0);
            assert_eq!(recoding.packets(0, 1, true), expected, "{fails}");
        }
    }

    #[test]
    fn bursts_of_one_and_a_half_packets_are_no_accident_and_shorter_ones_are() {
        let packets = |burst| recoding(0.2, burst).packets(0, 16, true);
        assert_eq!(packets(1.49), packets(1.0));
        assert!(packets(1.5) > packets(1.0) && packets(8.0) > packets(2.5));
    }
}
