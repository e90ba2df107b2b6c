//! The best numbers of packets for a mean budget, with and without feedback.

use crate::bats::ranks::{Channel, Outlook, Ranks, Scheme, horizon};

/// Number of packets that each batch gets, chosen so that the next node's mean rank is as large as the budget allows.
///
/// Two policies, and the share of batches that follow the second; for each batch, [`policy`](Self::policy) says which.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The cheaper, then the dearer.
    policies: [Policy; 2],
    /// Of 2^32 batches, how many go by the dearer; 2^32 - 1 stands for all.
    dearer: u32,
    budget: f64,
    rank: f64,
    after: Ranks,
}

impl Plan {
    /// The plan for batches whose ranks are distributed as `ranks`, on their way over `channel`, in `phases` phases
    /// (at least 1) with a feedback of the receiver's rank between them, and with `budget` packets a batch on average
    /// for all phases together.
    ///
    /// `scheme` is that of the first phase; the others are of random combinations. A budget above what is of any use is
    /// not used up: [`Plan::budget`] has what is.
    ///
    /// Its cost is in the order of phases * M * t steps for each of about ten prices, t going up to a few M, and
    /// M / 2 times that if systematic.
    pub fn new(ranks: &Ranks, channel: &Channel, scheme: Scheme, phases: usize, budget: f64) -> Self {
        let budget = budget.max(0.0);
        let market = Market { ranks, channel, scheme, phases: phases.max(1) };
        let mut cheaper = market.nothing();
        let mut dearer = market.offer(FREE);
        while cheaper.cost < dearer.cost {
            // The price at which the two are worth the same. If something is worth more, it lies between them.
            let price = (dearer.rank - cheaper.rank) / (dearer.cost - cheaper.cost);
            let between = market.offer(price);
            if between.rank - price * between.cost <= cheaper.rank - price * cheaper.cost + INDIFFERENT
                || !(cheaper.cost < between.cost && between.cost < dearer.cost)
            {
                break;
            }
            let side = if between.cost <= budget { &mut cheaper } else { &mut dearer };
            *side = between;
        }
        let room = dearer.cost - cheaper.cost;
        let share = if room > 0.0 { ((budget - cheaper.cost) / room).clamp(0.0, 1.0) } else { 0.0 };
        let after = market.after(&cheaper.policy).mixed(&market.after(&dearer.policy), share);
        Self {
            // The cast saturates.
            dearer: (share * 4_294_967_296.0) as u32,
            budget: cheaper.cost + share * room,
            rank: cheaper.rank + share * (dearer.rank - cheaper.rank),
            policies: [cheaper.policy, dearer.policy],
            after,
        }
    }

    /// The policy of one batch, for all its phases; `draw` is any of 2^32, and over many batches all should be alike
    /// often. The multiples of 0x9E37_79B9 (2^32 over the golden ratio) by the batch's number are, and are spread so
    /// evenly that the budget is met over short stretches too.
    pub fn policy(&self, draw: u32) -> &Policy {
        &self.policies[usize::from(draw < self.dearer || self.dearer == u32::MAX)]
    }

    /// The packets that a batch gets on average, in all phases.
    pub fn budget(&self) -> f64 {
        self.budget
    }

    /// The rank that the next node has on average.
    pub fn rank(&self) -> f64 {
        self.rank
    }

    /// The ranks that the next node has.
    pub fn after(&self) -> &Ranks {
        &self.after
    }
}

/// Number of packets that a batch gets in each phase, by what the next node lacks.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// First phase first; in each, by the deficit 0 ..= M.
    phases: Vec<Vec<usize>>,
}

impl Policy {
    /// The packets to send in `phase`, from 0, if the next node lacks `deficit` dimensions: in phase 0 the rank of what
    /// is here, later that less the rank which was reported. Beyond M it is M's number; beyond the last phase, none.
    pub fn packets(&self, phase: usize, deficit: usize) -> usize {
        let Some(counts) = self.phases.get(phase) else { return 0 };
        counts.get(deficit).or(counts.last()).copied().unwrap_or(0)
    }

    /// Number of phases.
    pub fn phases(&self) -> usize {
        self.phases.len()
    }
}

/// The cost and the gain of a policy, for the ranks at hand.
struct Offer {
    policy: Policy,
    /// Packets a batch.
    cost: f64,
    /// The next node's mean rank.
    rank: f64,
}

/// Market on which packets are bought for rank.
struct Market<'a> {
    ranks: &'a Ranks,
    channel: &'a Channel,
    scheme: Scheme,
    phases: usize,
}

impl Market<'_> {
    fn nothing(&self) -> Offer {
        let phases = vec![vec![0; self.ranks.batch() + 1]; self.phases];
        Offer { policy: Policy { phases }, cost: 0.0, rank: 0.0 }
    }

    /// The policy that is worth most if a packet costs `price` of rank: by dynamic programming from the last phase.
    ///
    /// With n phases to come, V_n(d) = max_t E[V_n-1(what is lacking after t packets)] - price t, and V_0(d) = -d.
    fn offer(&self, price: f64) -> Offer {
        let batch = self.ranks.batch();
        let max = horizon(self.channel, batch);
        let mut worth: Vec<f64> = (0..=batch).map(|deficit| -(deficit as f64)).collect();
        let mut cost = vec![0.0; batch + 1];
        let mut phases = Vec::with_capacity(self.phases);
        for phase in (0..self.phases).rev() {
            let scheme = self.scheme_of(phase);
            let mut counts = vec![0; batch + 1];
            let mut best = vec![f64::NEG_INFINITY; batch + 1];
            Outlook::new(self.channel, &worth).each(scheme, max, |deficit, sent, mean| {
                let worth = mean - price * sent as f64;
                if worth > best[deficit] + INDIFFERENT {
                    (best[deficit], counts[deficit]) = (worth, sent);
                }
            });
            let mut total = vec![0.0; batch + 1];
            Outlook::new(self.channel, &cost).each(scheme, max, |deficit, sent, later| {
                if sent == counts[deficit] {
                    total[deficit] = sent as f64 + later;
                }
            });
            (worth, cost) = (best, total);
            phases.push(counts);
        }
        phases.reverse();
        let mean = |of: &dyn Fn(usize) -> f64| -> f64 {
            self.ranks.as_slice().iter().enumerate().map(|(rank, share)| share * of(rank)).sum()
        };
        let spent = mean(&|rank| cost[rank]);
        // The worth is -(what is lacking in the end) - price * cost.
        let rank = mean(&|rank| rank as f64 + worth[rank] + price * cost[rank]);
        Offer { policy: Policy { phases }, cost: spent, rank }
    }

    /// The ranks behind the hop if all batches follow `policy`.
    fn after(&self, policy: &Policy) -> Ranks {
        let batch = self.ranks.batch();
        let mut after = vec![0.0; batch + 1];
        // The later phases: what becomes of each deficit by the end.
        let mut ends: Vec<Vec<f64>> = (0..=batch).map(|deficit| certainly(deficit, batch)).collect();
        for phase in (0..self.phases).rev() {
            let scheme = self.scheme_of(phase);
            ends = (0..=batch)
                .map(|deficit| {
                    let mut end = vec![0.0; batch + 1];
                    let received = self.channel.received(deficit, policy.packets(phase, deficit), scheme);
                    for (gained, share) in received.iter().enumerate() {
                        for (sum, then) in end.iter_mut().zip(&ends[deficit - gained]) {
                            *sum += share * then;
                        }
                    }
                    end
                })
                .collect();
        }
        for ((rank, share), end) in self.ranks.as_slice().iter().enumerate().zip(&ends) {
            for (lacking, then) in end[..=rank].iter().enumerate() {
                after[rank - lacking] += share * then;
            }
        }
        Ranks::from_shares(after)
    }

    fn scheme_of(&self, phase: usize) -> Scheme {
        if phase == 0 { self.scheme } else { Scheme::Random }
    }
}

fn certainly(deficit: usize, batch: usize) -> Vec<f64> {
    let mut end = vec![0.0; batch + 1];
    end[deficit] = 1.0;
    end
}

/// A price below which a packet is as good as free: it adds less than this to the rank. Chosen: far
/// below what any plan is compared by.
const FREE: f64 = 1e-6;

/// Differences of rank that are rounding. Chosen: above the error of sums of a few hundred doubles, and far below
/// [`FREE`].
const INDIFFERENT: f64 = 1e-12;
