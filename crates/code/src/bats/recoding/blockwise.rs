//! Numbers of packets for a block of batches whose ranks are known.

use std::collections::BinaryHeap;

use crate::bats::ranks::{Channel, Outlook, Scheme, horizon};

/// Blockwise adaptive recoding: shares a whole number of packets among the batches of a block, so that the next node
/// has as much rank of them as it can (Yin, Yang, Zhou, Yung and Ng, *BAR: Blockwise Adaptive Recoding for Batched
/// Network Coding*, Entropy 25(7), 2023).
///
/// The slopes fall with every packet, so giving each packet to the batch that gains most by it is optimal. Nothing is
/// allocated once a block of the largest size has been seen.
#[derive(Clone, Debug)]
pub struct Blockwise {
    /// The gain of one packet more: by rank, and by the packets that were sent.
    gains: Vec<f64>,
    /// The length of one rank's.
    horizon: usize,
    heap: BinaryHeap<Bid>,
}

impl Blockwise {
    /// For batches of rank up to `batch`, on their way over `channel`.
    pub fn new(channel: &Channel, scheme: Scheme, batch: usize) -> Self {
        let horizon = horizon(channel, batch);
        let lacking: Vec<f64> = (0..=batch).map(|deficit| -(deficit as f64)).collect();
        let mut gains = vec![0.0; (batch + 1) * horizon];
        let mut before = lacking.clone();
        Outlook::new(channel, &lacking).each(scheme, horizon, |rank, sent, mean| {
            if sent > 0 {
                gains[rank * horizon + sent - 1] = mean - before[rank];
                before[rank] = mean;
            }
        });
        Self { gains, horizon, heap: BinaryHeap::new() }
    }

    /// Writes into `counts` how many packets each batch gets, `budget` in all; `ranks` are those of the batches. Fewer
    /// if more would be of no use, as for a block of rank 0. A rank above the largest is taken as the largest.
    ///
    /// The batches beyond the shorter of the two lists are left alone. Of equals, the earlier batch comes first.
    pub fn assign(&mut self, ranks: &[usize], budget: usize, counts: &mut [usize]) {
        self.heap.clear();
        for (batch, (rank, count)) in ranks.iter().zip(counts.iter_mut()).enumerate() {
            *count = 0;
            let bid = Bid { gain: self.gain(*rank, 0), batch };
            self.heap.push(bid);
        }
        for _ in 0..budget {
            let Some(Bid { gain, batch }) = self.heap.pop() else { break };
            if gain <= 0.0 {
                break;
            }
            counts[batch] += 1;
            let bid = Bid { gain: self.gain(ranks[batch], counts[batch]), batch };
            self.heap.push(bid);
        }
    }

    /// The gain of one packet more for a batch of rank `rank` of which `sent` were sent.
    fn gain(&self, rank: usize, sent: usize) -> f64 {
        if sent >= self.horizon {
            return 0.0;
        }
        let largest = self.gains.len() / self.horizon - 1;
        self.gains[rank.min(largest) * self.horizon + sent]
    }
}

/// The gain of a batch by its next packet; the largest comes first, then the earlier batch.
#[derive(Copy, Clone, Debug)]
struct Bid {
    gain: f64,
    batch: usize,
}

impl Ord for Bid {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.gain.total_cmp(&other.gain).then_with(|| other.batch.cmp(&self.batch))
    }
}

impl PartialOrd for Bid {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Bid {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Bid {}
