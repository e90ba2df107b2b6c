//! Loss of the link itself, apart from what a full queue drops.
//!
//! A queue overflows because too much is sent; a noisy link loses whatever is sent. So the link's own loss is learnt
//! from packets that were sent with less than the rate (while draining what a probe has queued, or because the
//! application had no more), and when more than that is lost for long, it is the queue that drops.

use hopcast_core::FadingLoss;

/// Packets after which what is learnt has faded to 1/e. Chosen: fewer, and 1 % is known to half of it; more, and a link
/// that changes is followed late.
const WEIGHT: f64 = 512.0;
/// The same while what is known does not explain what is lost. Chosen: a quarter of it, so that a change is followed
/// sooner; fewer, and chance is followed.
const QUICK_WEIGHT: f64 = 128.0;
/// Packets that are taken as lossless at the beginning. Chosen; fewer, and a first loss counts for many; more, and a
/// lossy link is known late.
const PRIOR: f64 = 16.0;
/// Losses past what is explained from which on the rest is overflow. Chosen: fewer, and chance is taken for it; more,
/// and a queue overflows for longer before anything is done.
const EXCESS: f64 = 8.0;
/// The same for each packet of a mean burst, so that one burst is not taken for overflow. Chosen likewise.
const EXCESS_BURST: f64 = 4.0;
/// Packets after which the excess has faded to 1/e. Chosen; fewer, and a slow overflow goes unnoticed; more, and
/// excesses far apart add up.
const EXCESS_WEIGHT: f64 = 4096.0;
/// Error of the estimate that is allowed for, as a share of packets; and besides, [`DEVIATIONS`]. Chosen; less takes
/// chance for overflow, more leaves some overflow unseen.
const TOLERANCE: f64 = 0.003;
/// Standard deviations of the estimate that are allowed for. Chosen: two cover 95 % of chance; fewer take it for
/// overflow, more leave some overflow unseen.
const DEVIATIONS: f64 = 2.0;
/// Share of packets that a queue drops from which on all have to send less. Chosen: a loss-based TCP makes a queue drop
/// fewer, so that beside one of those a sender does not yield.
const OVERLOAD_SHARE: f64 = 0.03;
/// Maximum share that is believed. Chosen: what loses more is no link, and a share near one would divide by next to
/// nothing.
const MAX_SHARE: f64 = 0.9;

/// The packets and losses between two reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub packets: u64,
    pub lost: u64,
    /// The share of them that was sent with less than the rate while no queue was full.
    pub eased: f64,
    /// The share of them that was sent with more than the rate.
    pub pressed: f64,
}

/// The share of packets that are lost for no fault of the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct RandomLoss {
    /// The losses among packets that were sent with less than the rate.
    eased: FadingLoss,
    /// The same among all.
    all: FadingLoss,
    /// Losses past what the link explains, less those that chance does (a cumulative sum test, Page 1954).
    excess: f64,
    /// The same for packets that were sent with no more than the rate.
    calm_excess: f64,
}

impl Default for RandomLoss {
    fn default() -> Self {
        let loss = FadingLoss::new(PRIOR, 0.0);
        Self { eased: loss, all: loss, excess: 0.0, calm_excess: 0.0 }
    }
}

impl RandomLoss {
    pub(super) fn on_packets(&mut self, interval: &Interval, mean_burst: f64) {
        let (packets, lost) = (interval.packets as f64, interval.lost as f64);
        self.all.add(packets, lost, WEIGHT);
        if interval.eased > 0.0 {
            let weight = if self.excess > 0.0 { QUICK_WEIGHT } else { WEIGHT };
            self.eased.add(packets * interval.eased, lost * interval.eased, weight);
        } else if self.all.share() + 4.0 * (self.all.share().max(1.0 / WEIGHT) / WEIGHT).sqrt()
            < self.eased.share()
        {
            // Pressed, it loses less, and not by chance, than was thought without: the link has become better.
            self.eased = self.all;
        }
        let share = self.get();
        let deviation = (share * mean_burst / self.eased.packets().max(1.0)).sqrt();
        let explained = share + TOLERANCE + DEVIATIONS * deviation;
        let limit = 2.0 * threshold(mean_burst);
        add_excess(&mut self.excess, packets, lost - packets * explained, limit);
        let calm = 1.0 - interval.pressed;
        add_excess(&mut self.calm_excess, packets * calm, (lost - packets * explained) * calm, limit);
    }

    /// Whether more is lost than the link itself loses: a queue overflows.
    pub(super) fn is_overflow(&self, mean_burst: f64) -> bool {
        self.excess > threshold(mean_burst)
    }

    /// The same, although no more was sent than the rate.
    pub(super) fn is_crowded(&self, mean_burst: f64) -> bool {
        self.calm_excess > threshold(mean_burst)
    }

    /// Whether the loss is so far above that of the link itself that it does not matter who fills the queue.
    pub(super) fn is_swamped(&self) -> bool {
        self.all() > self.get() + OVERLOAD_SHARE
    }

    /// The overflow has been answered; counting begins anew.
    pub(super) fn answered(&mut self, mean_burst: f64) {
        self.calm_excess = self.calm_excess.min(threshold(mean_burst) / 2.0);
    }

    /// The share, below 1.
    pub(super) fn get(&self) -> f64 {
        self.eased.share().min(MAX_SHARE)
    }

    /// The share of all packets that are lost, whatever the reason.
    pub(super) fn all(&self) -> f64 {
        self.all.share().min(1.0)
    }
}

fn threshold(mean_burst: f64) -> f64 {
    EXCESS + EXCESS_BURST * mean_burst
}

fn add_excess(excess: &mut f64, packets: f64, more: f64, limit: f64) {
    let kept = *excess * (1.0 - packets / EXCESS_WEIGHT).max(0.0);
    *excess = (kept + more).clamp(0.0, limit);
}
