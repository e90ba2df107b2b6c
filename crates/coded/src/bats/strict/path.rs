//! The path to the sink, as its source knows it: how much the worst hop loses, and how much of a batch arrives.

use super::super::bursts::BURSTY;
use super::super::wire::HopQuality;
use super::order::MAX_HEADER_DEPTH;

/// Packets to spend on a batch, as a share of those that the worst hop needs for the whole of it. Calculated (`bound`
/// in the tests): a little fewer than one is best over six hops, whatever they lose, and by half a percent at most
/// better than this.
const SPENT: f64 = 0.98;
/// Loss below which the path counts as free of losses, and nothing is spent or interleaved for it: what noise makes of
/// none. Chosen; with less, noise has packets spent on it; with more, a small loss goes without repair.
const MIN_LOSS: f64 = 0.002;
/// Batches over which losses in bursts are spread, for each packet of a burst. Chosen: fewer, and a burst takes much of
/// one batch; more, and each batch takes longer to be over.
const SPREAD: f64 = 2.0;
/// Maximum depth of interleaving, as a power of two: 16 batches, which take as many times as long to be over. Chosen;
/// more is delay, with less a long burst takes much of one batch.
const MAX_DEPTH: u8 = 4;

/// The path to the sink.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    symbols: f64,
    /// The loss and the mean burst of the worst hop.
    loss: f64,
    burst: f64,
    /// The share of packets that arrives without any repair.
    arrives: f64,
    /// The mean rank at the sink of whole batches, once it is known.
    mean: f64,
}

impl Path {
    /// Before anything is known, for batches of `symbols` symbols.
    pub(super) const fn new(symbols: usize) -> Self {
        Self { symbols: symbols as f64, loss: 0.0, burst: 1.0, arrives: 1.0, mean: 0.0 }
    }

    /// Takes what is known of each hop, and of the ranks behind the last.
    pub(super) fn update<'a>(&mut self, hops: impl Iterator<Item = &'a HopQuality>, mean: f64) {
        (self.loss, self.burst, self.arrives) = (0.0, 1.0, 1.0);
        for hop in hops {
            self.loss = self.loss.max(hop.loss());
            self.burst = self.burst.max(hop.burst());
            self.arrives *= 1.0 - hop.loss();
        }
        self.mean = mean.min(self.symbols);
    }

    pub(super) fn is_lossy(&self) -> bool {
        self.loss > MIN_LOSS
    }

    /// Number of packets that each hop should spend on a whole batch.
    pub(super) fn budget(&self) -> f64 {
        (SPENT * self.symbols / (1.0 - self.loss.min(0.8))).max(self.symbols)
    }

    /// The rank that is expected of a batch of `packets` packets.
    pub(super) fn expected(&self, packets: u16) -> f64 {
        let packets = f64::from(packets);
        // Small batches are sent hardly more often than they are large.
        packets * (self.arrives + (self.whole() - self.arrives) * (packets / self.symbols).min(1.0))
    }

    /// And its variance.
    pub(super) fn variance(&self, packets: u16) -> f64 {
        let share = self.expected(packets) / f64::from(packets.max(1));
        f64::from(packets) * share * (1.0 - share)
    }

    /// The share of a whole batch that arrives.
    fn whole(&self) -> f64 {
        if self.mean > 0.0 { (self.mean / self.symbols).max(self.arrives) } else { 1.0 }
    }

    /// Number of batches to interleave of a block of `batches`, as a power of two.
    pub(super) fn depth(&self, batches: u64) -> u8 {
        if self.burst < BURSTY || !self.is_lossy() {
            return 0;
        }
        let wanted = (SPREAD * self.burst).log2().ceil() as u8;
        wanted.min(MAX_DEPTH).min(MAX_HEADER_DEPTH).min(batches.max(1).ilog2() as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(loss: f64, burst: f64, mean: f64) -> Path {
        let mut path = Path::new(16);
        path.update([HopQuality::new(loss / 2.0, 1.0), HopQuality::new(loss, burst)].iter(), mean);
        path
    }

    #[test]
    fn a_little_less_is_spent_than_the_worst_hop_needs() {
        // 16 packets must arrive where every fifth is lost.
        assert!((path(0.2, 1.0, 0.0).budget() - 0.98 * 20.0).abs() < 1e-9);
        assert_eq!(path(0.0, 1.0, 0.0).budget(), 16.0, "but no less than a batch");
        assert!((path(0.9, 1.0, 0.0).budget() - 0.98 * 80.0).abs() < 1e-9, "nor for ever more");
    }

    #[test]
    fn batches_are_interleaved_two_for_each_packet_of_a_burst() {
        for (burst, batches, depth) in [
            (1.0, 64, 0),
            (1.25, 64, 0),
            (1.5, 64, 2),
            (2.0, 64, 2),
            (2.25, 64, 3),
            (4.0, 64, 3),
            (8.0, 64, 4),
            (60.0, 64, 4),
            (60.0, 7, 2),
            (60.0, 1, 0),
        ] {
            assert_eq!(path(0.2, burst, 0.0).depth(batches), depth, "bursts of {burst}, {batches} batches");
        }
        assert_eq!(path(0.0, 8.0, 0.0).depth(64), 0);
    }

    #[test]
    fn a_loss_below_two_in_a_thousand_is_none() {
        let of = |loss| Path { loss, burst: 8.0, ..Path::new(16) };
        assert!(!of(0.002).is_lossy() && of(0.0021).is_lossy() && of(0.0039).is_lossy());
        assert_eq!((of(0.002).depth(64), of(0.0021).depth(64)), (0, 4));
    }

    #[test]
    fn of_small_batches_what_no_hop_loses_arrives_and_of_whole_ones_the_mean_rank() {
        let path = path(0.2, 1.0, 14.0);
        // Hops lose 51/255 and 26/255.
        let arrives = 204.0 / 255.0 * (229.0 / 255.0);
        assert!((path.expected(16) - 14.0).abs() < 1e-9 && (path.expected(32) - 28.0).abs() < 1e-9);
        let half = 8.0 * (arrives + (14.0 / 16.0 - arrives) / 2.0);
        assert!((path.expected(8) - half).abs() < 1e-9);
        assert!((path.variance(16) - 16.0 * 0.875 * 0.125).abs() < 1e-9);
        assert_eq!((path.expected(0), path.variance(0)), (0.0, 0.0));
    }
}
