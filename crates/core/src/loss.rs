//! An estimate of the share of lost packets, in which recent packets weigh more than older ones.

/// Counts of packets and of lost packets, both of which decay as further packets are counted.
///
/// All estimates of a share of losses use it; a place that uses another estimator states the reason.
///
/// With a weight of `w` packets, `n` new packets remove the fraction `n / w` of the earlier counts; so the estimate
/// rests on about the last `w` packets. More than `w` packets at once count as `w` packets with the same share.
#[derive(Clone, Copy, Debug)]
pub struct FadingLoss {
    packets: f64,
    lost: f64,
}

impl FadingLoss {
    /// The estimate before the first packet: as if `lost` of `packets` had been lost.
    pub const fn new(packets: f64, lost: f64) -> Self {
        Self { packets, lost }
    }

    /// Adds `packets`, of which `lost` were lost, to an estimate over `weight` packets.
    #[inline]
    pub fn add(&mut self, packets: f64, lost: f64, weight: f64) {
        let keep = (1.0 - packets / weight).max(0.0);
        let take = (weight / packets.max(1.0)).min(1.0);
        self.packets = self.packets * keep + packets * take;
        self.lost = self.lost * keep + lost * take;
    }

    /// The share that is lost; above 1 where more were lost than sent, as when packets are late. A count of less than
    /// one packet is taken as one.
    #[inline]
    pub fn share(&self) -> f64 {
        self.lost / self.packets.max(1.0)
    }

    /// The packets on which the estimate rests.
    pub const fn packets(&self) -> f64 {
        self.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_with_an_assumption_that_fades_over_the_weight() {
        let mut loss = FadingLoss::new(16.0, 0.0);
        assert_eq!(loss.share(), 0.0);
        loss.add(4.0, 4.0, 128.0);
        // Of 16 (1 - 4/128) and 4.
        assert!((loss.share() - 4.0 / 19.5).abs() < 1e-12, "{}", loss.share());
        loss.add(64.0, 0.0, 128.0);
        assert!((loss.share() - 2.0 / (9.75 + 64.0)).abs() < 1e-12, "{}", loss.share());
        assert!((loss.packets() - 73.75).abs() < 1e-12);
    }

    #[test]
    fn many_packets_at_once_count_as_the_weight() {
        let mut loss = FadingLoss::new(20.0, 1.0);
        loss.add(4000.0, 1000.0, 400.0);
        assert_eq!((loss.packets(), loss.share()), (400.0, 0.25));
    }

    #[test]
    fn it_follows_a_link_that_changes() {
        let mut loss = FadingLoss::new(16.0, 0.0);
        for (share, rounds) in [(0.3, 60), (0.0, 60), (0.1, 60)] {
            (0..rounds).for_each(|_| loss.add(50.0, 50.0 * share, 500.0));
            assert!((loss.share() - share).abs() < 0.003, "{} of {share}", loss.share());
        }
    }

    #[test]
    fn less_than_one_packet_is_taken_as_one() {
        assert_eq!(FadingLoss::new(0.0, 0.0).share(), 0.0);
        assert_eq!(FadingLoss::new(0.5, 0.5).share(), 0.5);
    }
}
