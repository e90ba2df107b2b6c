//! How much a link loses, and in what bursts, as its receiver sees it in the sequence numbers.

/// The forgetting of the estimate: it rests on about so many packets.
const WEIGHT: f64 = 1024.0;
/// The prior counts as so many packets.
const PRIOR_WEIGHT: f64 = 16.0;
/// How far back a late packet is recognised as one that was taken for lost.
const WINDOW: u64 = 128;

/// What an arriving sequence number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The first of all, or the one after the highest.
    InOrder,
    /// So many before it have not arrived.
    Gap(u64),
    /// It was taken for lost, and was only late.
    Late,
    /// It has been here before, or is too old to tell.
    Old,
}

/// Estimates the share of packets that a link loses and the mean number that it loses in a row.
///
/// Packets carry sequence numbers that rise by one. Each packet's weight fades as 1024 others follow, and at the
/// beginning a prior stands for 16 packets.
#[derive(Clone, Debug)]
pub struct LossEstimator {
    next: Option<u64>,
    /// Bit i: sequence `next - 1 - i` has arrived.
    arrived: u128,
    received: u64,
    faded: Faded,
}

/// Counts that fade with every packet.
#[derive(Clone, Copy, Debug, Default)]
struct Faded {
    packets: f64,
    lost: f64,
    bursts: f64,
}

impl LossEstimator {
    /// An estimator that knows nothing but `prior`, the share of packets that are lost where one does not know.
    pub fn new(prior: f64) -> Self {
        let lost = prior.clamp(0.0, 1.0) * PRIOR_WEIGHT;
        Self {
            next: None,
            arrived: 0,
            received: 0,
            faded: Faded { packets: PRIOR_WEIGHT, lost, bursts: lost },
        }
    }

    /// Notes the packet numbered `sequence`.
    pub fn on_packet(&mut self, sequence: u64) -> Arrival {
        let Some(next) = self.next else {
            (self.next, self.arrived) = (sequence.checked_add(1), u128::MAX);
            self.received += 1;
            self.faded.add(1.0, 0.0, 0.0);
            return Arrival::InOrder;
        };
        let Some(gap) = sequence.checked_sub(next) else { return self.on_old(next - 1 - sequence) };
        self.next = sequence.checked_add(1);
        self.received += 1;
        self.arrived = shift(self.arrived, gap.saturating_add(1)) | 1;
        if gap == 0 {
            self.faded.add(1.0, 0.0, 0.0);
            return Arrival::InOrder;
        }
        self.faded.add(1.0 + gap as f64, gap as f64, 1.0);
        Arrival::Gap(gap)
    }

    fn on_old(&mut self, age: u64) -> Arrival {
        if age >= WINDOW || self.arrived & (1 << age) != 0 {
            return Arrival::Old;
        }
        self.received += 1;
        let neighbours = [age.checked_sub(1), Some(age + 1).filter(|&age| age < WINDOW)];
        let missing = neighbours.iter().flatten().filter(|&&age| self.arrived & (1 << age) == 0).count();
        self.arrived |= 1 << age;
        self.faded.lost = (self.faded.lost - 1.0).max(0.0);
        // A burst of one is no more, an end of one leaves it, one in the middle makes two of it.
        self.faded.bursts = (self.faded.bursts - 1.0 + missing as f64).max(0.0);
        Arrival::Late
    }

    /// The highest sequence number so far.
    pub fn highest(&self) -> Option<u64> {
        self.next.map(|next| next - 1)
    }

    /// How many packets have arrived, none of them counted twice.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// The share of packets lost, 0 to 1.
    pub fn loss(&self) -> f64 {
        (self.faded.lost / self.faded.packets).clamp(0.0, 1.0)
    }

    /// The mean number of packets lost in a row; 1 where none is known to be lost.
    pub fn mean_burst(&self) -> f64 {
        if self.faded.bursts < 1e-3 { 1.0 } else { (self.faded.lost / self.faded.bursts).max(1.0) }
    }
}

impl Faded {
    fn add(&mut self, packets: f64, lost: f64, bursts: f64) {
        let keep = (1.0 - 1.0 / WEIGHT).powf(packets);
        // A gap longer than the memory fills it and no more.
        let take = if packets > WEIGHT { WEIGHT / packets } else { 1.0 };
        self.packets = self.packets * keep + packets * take;
        self.lost = self.lost * keep + lost * take;
        self.bursts = self.bursts * keep + bursts * take;
    }
}

fn shift(bits: u128, by: u64) -> u128 {
    if by >= WINDOW { 0 } else { bits << by }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    #[test]
    fn gaps_late_and_repeated_packets_are_told_apart() {
        let mut estimator = LossEstimator::new(0.0);
        let arrivals: Vec<_> =
            [7, 8, 11, 10, 10, 8, 9, 12, 500, 7].map(|sequence| estimator.on_packet(sequence)).into();
        use Arrival::{Gap, InOrder, Late, Old};
        assert_eq!(arrivals, [InOrder, InOrder, Gap(2), Late, Old, Old, Late, InOrder, Gap(487), Old]);
        assert_eq!((estimator.highest(), estimator.received()), (Some(500), 7));
    }

    #[test]
    fn independent_loss_and_bursts_are_measured() {
        for (enter, leave) in [(0.0, 1.0), (0.05, 0.95), (0.2, 0.8), (0.0125, 0.125)] {
            let mut random = Seed::new(5, 0).stream(&["loss"], 0);
            let mut estimator = LossEstimator::new(0.01);
            let (mut lost, mut share, mut burst) = (false, 0.0, 0.0);
            for sequence in 0..400_000 {
                lost = random.chance(if lost { 1.0 - leave } else { enter });
                if !lost {
                    estimator.on_packet(sequence);
                }
                share += estimator.loss() / 400_000.0;
                burst += estimator.mean_burst() / 400_000.0;
            }
            let expected: f64 = enter / (enter + leave);
            assert!((share - expected).abs() < 0.06 * expected + 1e-3, "{share} of {expected}");
            assert!((burst - 1.0 / leave).abs() < 0.1 / leave, "{burst} of {}", 1.0 / leave);
        }
    }

    #[test]
    fn nothing_known_is_the_prior_and_the_end_of_numbers_is_no_end() {
        let mut estimator = LossEstimator::new(0.01);
        assert_eq!((estimator.loss(), estimator.mean_burst()), (0.01, 1.0));
        estimator.on_packet(0);
        assert_eq!(estimator.on_packet(u64::MAX - 1), Arrival::Gap(u64::MAX - 2));
        assert!(estimator.loss() > 0.9 && estimator.mean_burst().is_finite());
        estimator.on_packet(u64::MAX);
        estimator.on_packet(3);
        assert!(estimator.loss() <= 1.0);
    }

    #[test]
    fn what_was_only_late_is_not_lost() {
        let mut estimator = LossEstimator::new(0.0);
        for pair in 0..2_000 {
            estimator.on_packet(2 * pair + 1);
            estimator.on_packet(2 * pair);
        }
        assert!(estimator.loss() < 0.01, "{}", estimator.loss());
    }
}
