//! Numbers of packets that are very likely to be enough.

use crate::bats::ranks::{Channel, Outlook, Scheme, horizon};

/// For each deficit, the minimum number of random combinations after which it is made up with a stated probability: the
/// smallest t with Pr[Bin(t, 1 - loss) >= deficit] >= certainty, and a little more for the field's size.
///
/// For the transports that repair until the next node can have everything, and would rather overshoot than wait for
/// another feedback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repairs {
    counts: Vec<usize>,
}

impl Repairs {
    /// For deficits up to `batch` over `channel`. A certainty that no reasonable number reaches gives the largest
    /// reasonable number, about twice what is needed on average.
    pub fn new(channel: &Channel, batch: usize, certainty: f64) -> Self {
        let max = horizon(channel, batch);
        let mut counts = vec![max; batch + 1];
        let mut made_up = vec![0.0; batch + 1];
        made_up[0] = 1.0;
        Outlook::new(channel, &made_up).each(Scheme::Random, max, |deficit, sent, probability| {
            if probability >= certainty {
                counts[deficit] = counts[deficit].min(sent);
            }
        });
        Self { counts }
    }

    /// The packets to send if the next node lacks `deficit` dimensions; beyond the largest deficit, the largest's
    /// number.
    pub fn packets(&self, deficit: usize) -> usize {
        self.counts.get(deficit).or(self.counts.last()).copied().unwrap_or(0)
    }
}
