//! One hop: which packets arrive, and which of those are innovative.

use super::Error;

/// The packets that a node sends of a batch.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Random linear recoding: every packet is a random combination of those received.
    Random,
    /// Systematic recoding: first the innovative packets as they were received, then random combinations of them
    /// (RFC 9426 advises it on a single path). Over GF(2) it saves most of the 1.6 packets that random ones need too
    /// many.
    Systematic,
}

/// A hop, as a batch sees it: the loss of its packets, alone or in bursts, and the field that is recoded in.
///
/// Bursts are Gilbert and Elliott's: a good and a bad state, each with a loss of its own, and between one packet and
/// the next of the batch a probability of changing to the other. The first packet meets the channel in its long-run
/// mix of the two.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Channel {
    /// The probability that a packet arrives, by state.
    arrives: [f64; 2],
    /// The probability of being in the other state for the next packet, by state.
    leaves: [f64; 2],
    /// The field's number of elements.
    q: u32,
}

impl Channel {
    /// Each packet is lost with the probability `loss`, whatever becomes of the others; coefficients are from GF(`q`).
    ///
    /// # Errors
    ///
    /// [`Error::Loss`] outside of 0 .. 1, 1 not included; [`Error::FieldSize`] below 2.
    pub fn independent(loss: f64, q: u32) -> Result<Self, Error> {
        Self::bursty([loss; 2], [0.0, 1.0], q)
    }

    /// Gilbert and Elliott's channel: the loss in the good and in the bad state, and the probability of leaving each
    /// between two packets.
    ///
    /// # Errors
    ///
    /// [`Error::Loss`] for a number that is no probability, or if nothing would ever arrive; [`Error::FieldSize`].
    pub fn bursty(loss: [f64; 2], leaves: [f64; 2], q: u32) -> Result<Self, Error> {
        if let Some(wrong) = loss.iter().chain(&leaves).find(|share| !(0.0..=1.0).contains(*share)) {
            return Err(Error::Loss(*wrong));
        }
        if q < 2 {
            return Err(Error::FieldSize(q));
        }
        let channel = Self { arrives: loss.map(|loss| 1.0 - loss), leaves, q };
        // Far below any loss that a batch survives, and still no danger to what is divided by it.
        if channel.loss() > 0.999 {
            return Err(Error::Loss(channel.loss()));
        }
        Ok(channel)
    }

    /// The same channel for batches that are interleaved: from one packet of a batch to the next it goes `depth` steps.
    #[must_use]
    pub fn interleaved(self, depth: u32) -> Self {
        // The two-state chain forgets its state as the n-th power of this, here by squaring.
        let mut square = 1.0 - self.leaves[0] - self.leaves[1];
        let mut rest = depth.max(1);
        let mut memory = 1.0;
        while rest > 0 {
            if rest & 1 == 1 {
                memory *= square;
            }
            square *= square;
            rest >>= 1;
        }
        let [good, bad] = self.mix();
        Self { leaves: [bad * (1.0 - memory), good * (1.0 - memory)], ..self }
    }

    /// The share of packets that is lost in the long run.
    pub fn loss(&self) -> f64 {
        let [good, bad] = self.mix();
        1.0 - good * self.arrives[0] - bad * self.arrives[1]
    }

    /// The probability of each rank 0 ..= `rank` at the receiver, if it had nothing of the batch and `sent` packets
    /// were sent by a node of rank `rank`.
    pub fn received(&self, rank: usize, sent: usize, scheme: Scheme) -> Vec<f64> {
        let innovative = self.innovative(rank);
        // By state and by the rank received.
        let mut now = self.mix().map(|share| {
            let mut ranks = vec![0.0; rank + 1];
            ranks[0] = share;
            ranks
        });
        for number in 0..sent {
            let certain = scheme == Scheme::Systematic && number < rank;
            for (ranks, arrives) in now.iter_mut().zip(self.arrives) {
                for received in (0..rank).rev() {
                    let new = if certain { 1.0 } else { innovative[rank - received] };
                    let moves = ranks[received] * arrives * new;
                    ranks[received] -= moves;
                    ranks[received + 1] += moves;
                }
            }
            let [good, bad] = &mut now;
            for (good, bad) in good.iter_mut().zip(bad) {
                let (to_bad, to_good) = (*good * self.leaves[0], *bad * self.leaves[1]);
                *good += to_good - to_bad;
                *bad += to_bad - to_good;
            }
        }
        let [good, bad] = now;
        good.iter().zip(&bad).map(|(good, bad)| good + bad).collect()
    }

    /// Number of innovative packets that the receiver gains on average from `sent` random combinations, if it lacks
    /// `deficit` dimensions.
    pub fn expected_innovative(&self, deficit: usize, sent: usize) -> f64 {
        let received = self.received(deficit, sent, Scheme::Random);
        received.iter().enumerate().map(|(rank, share)| rank as f64 * share).sum()
    }

    /// The probability that a random combination is innovative, by the receiver's deficit 0 ..= `deficits`.
    fn innovative(&self, deficits: usize) -> Vec<f64> {
        let mut miss = 1.0;
        let next = |_| {
            let innovative = 1.0 - miss;
            miss /= f64::from(self.q);
            innovative
        };
        (0..=deficits).map(next).collect()
    }

    /// Share of the time that the channel is in each state.
    fn mix(&self) -> [f64; 2] {
        let both = self.leaves[0] + self.leaves[1];
        // One that never changes its state stays in the good one, where it began.
        if both == 0.0 { [1.0, 0.0] } else { [self.leaves[1] / both, self.leaves[0] / both] }
    }
}

/// Number of packets that a batch of `batch` can usefully be sent as: beyond it, one more adds next to nothing. Not so
/// beyond 87 % of loss, where it is a bound on what may be spent on a batch.
pub(in crate::bats) fn horizon(channel: &Channel, batch: usize) -> usize {
    // Twice what is needed on average, over GF(2) too, and some more for small batches and for bursts.
    let each = (2.0 / (1.0 - channel.loss())).min(16.0);
    (each * (batch as f64 + 8.0)) as usize + 32
}

/// The outlook of sending: the mean of some value of the receiver's deficit, after each number of packets.
///
/// It runs the chain backwards, so one pass has the mean for every deficit to begin with: after t packets,
///
/// ```text
/// W_t(d) = a_d W_t-1(d - 1) + (1 - a_d) W_t-1(d),    a_d = (1 - loss) (1 - q^-d),    W_0 = value
/// ```
#[derive(Debug)]
pub(in crate::bats) struct Outlook<'a> {
    channel: &'a Channel,
    mix: [f64; 2],
    innovative: Vec<f64>,
    /// By state in which the first packet is sent, and by deficit.
    means: [Vec<f64>; 2],
    /// Room for what [`each_systematic`](Self::each_systematic) computes besides.
    scratch: [Vec<f64>; 2],
}

impl<'a> Outlook<'a> {
    /// Before anything is sent: `value` of the deficits 0, 1, ..
    pub(in crate::bats) fn new(channel: &'a Channel, value: &[f64]) -> Self {
        let innovative = channel.innovative(value.len() - 1);
        let (means, scratch) = ([value.to_vec(), value.to_vec()], [value.to_vec(), value.to_vec()]);
        Self { channel, mix: channel.mix(), innovative, means, scratch }
    }

    /// Calls `visit` with the mean value for every deficit from 0 and number of packets from 0 up to `max`; for one
    /// deficit in the order of the numbers. With [`Scheme::Systematic`] the receiver is to have nothing yet, so that
    /// the deficit is the sender's rank.
    pub(in crate::bats) fn each(
        mut self,
        scheme: Scheme,
        max: usize,
        mut visit: impl FnMut(usize, usize, f64),
    ) {
        match scheme {
            Scheme::Random => {
                for sent in 0..=max {
                    for deficit in 0..self.innovative.len() {
                        visit(deficit, sent, self.mean(&self.means, deficit));
                    }
                    self.step();
                }
            }
            Scheme::Systematic => self.each_systematic(max, visit),
        }
    }

    /// As [`each`](Self::each): of t packets, the first min(t, deficit) are innovative if they arrive.
    fn each_systematic(mut self, max: usize, mut visit: impl FnMut(usize, usize, f64)) {
        let deficits = self.innovative.len();
        for random in 0..=max {
            for (scratch, means) in self.scratch.iter_mut().zip(&self.means) {
                scratch.copy_from_slice(means);
            }
            // Backwards from before the random ones, over as many systematic ones as the deficit has.
            for systematic in 0..deficits {
                if random + systematic > max {
                    break;
                }
                // Without random ones, larger deficits may have been sent as few as this.
                let last = if random == 0 { deficits } else { systematic + 1 };
                for deficit in systematic..last {
                    visit(deficit, random + systematic, self.mean(&self.scratch, deficit));
                }
                // Smaller deficits have had all that they can be sent as it is.
                step(self.channel, self.scratch.each_mut().map(|means| &mut means[systematic..]), |_| 1.0);
            }
            self.step();
        }
    }

    /// One random combination more.
    fn step(&mut self) {
        let means = self.means.each_mut().map(Vec::as_mut_slice);
        step(self.channel, means, |deficit| self.innovative[deficit]);
    }

    fn mean(&self, means: &[Vec<f64>; 2], deficit: usize) -> f64 {
        self.mix[0] * means[0][deficit] + self.mix[1] * means[1][deficit]
    }
}

/// One packet more, sent before those that `means` has counted. The first of `means` keeps its deficit.
fn step(channel: &Channel, means: [&mut [f64]; 2], innovative: impl Fn(usize) -> f64) {
    let [good, bad] = means;
    // The state after this packet is that in which the next is sent.
    for (good, bad) in good.iter_mut().zip(bad.iter_mut()) {
        let rise = *bad - *good;
        *good += channel.leaves[0] * rise;
        *bad -= channel.leaves[1] * rise;
    }
    for (means, arrives) in [good, bad].into_iter().zip(channel.arrives) {
        for deficit in (1..means.len()).rev() {
            means[deficit] += arrives * innovative(deficit) * (means[deficit - 1] - means[deficit]);
        }
    }
}
