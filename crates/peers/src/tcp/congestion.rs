//! The interface of a congestion control to its connection.

use core::fmt;

use hopcast_core::{Duration, Instant, Rate};

use super::rate::{DeliveryRate, RateSample};
use super::window::Window;

/// State of the connection between loss and no loss; Linux's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Nothing is amiss.
    Open,
    /// Something was delivered out of order.
    Disorder,
    /// Losses are being repaired (fast recovery).
    Recovery,
    /// The retransmission timer went off.
    Loss,
}

/// The state of a connection that its congestion control sees, and the window that it may change.
#[derive(Debug)]
pub(super) struct Path<'a> {
    pub now: Instant,
    pub window: &'a mut Window,
    pub rate: &'a mut DeliveryRate,
    pub phase: Phase,
    pub in_flight: u32,
    /// Acknowledged up to here, and sent up to here.
    pub una: u64,
    pub nxt: u64,
    /// Payload of a full segment in bytes.
    pub mss: u32,
    pub smoothed_rtt: Option<Duration>,
    pub min_rtt: Option<Duration>,
    /// Time at which the pacer lets the next segment go.
    pub departure: Instant,
}

/// The news of one acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// Segments newly delivered, cumulatively or selectively.
    pub delivered: u32,
    /// Segments newly marked lost.
    pub lost: u32,
    /// In flight before.
    pub prior_in_flight: u32,
    pub rate: RateSample,
    /// A round trip without ambiguity.
    pub rtt: Option<Duration>,
    /// Whether that may include the peer's delay of the acknowledgement.
    pub delayed: bool,
    /// Whether the window may grow by this (CUBIC and its like): not in recovery, and something is delivered.
    pub may_grow: bool,
}

/// A congestion control.
pub(super) trait CongestionControl: fmt::Debug + Send {
    /// The connection stands.
    fn begin(&mut self, _path: &mut Path<'_>) {}

    /// An acknowledgement has been taken in.
    fn on_ack(&mut self, path: &mut Path<'_>, sample: &Sample);

    /// A loss has been found, in recovery or by the timer: the threshold to reduce the window to.
    fn threshold(&mut self, path: &mut Path<'_>) -> u32;

    /// The reduction was for nothing: the window to go back to, when `prior` is the one before.
    fn undo(&mut self, path: &mut Path<'_>, prior: u32) -> u32;

    /// The retransmission timer went off.
    fn on_timeout(&mut self, _path: &mut Path<'_>) {}

    /// The first segment after nothing was in flight is being sent.
    fn on_restart(&mut self, _path: &mut Path<'_>) {}

    /// Whether it sets the window in recovery too, instead of proportional rate reduction.
    fn rules_recovery(&self) -> bool {
        false
    }

    /// The rate of payload to pace at and how many segments may leave at once; `None` to send as acknowledgements
    /// arrive.
    fn pacing(&self, _mss: u32) -> Option<(Rate, u32)> {
        None
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// A path of round trip `rtt` on which nothing is in flight.
    pub(in crate::tcp) fn path_of<'a>(
        now: Instant,
        window: &'a mut Window,
        rate: &'a mut DeliveryRate,
        rtt: Duration,
    ) -> Path<'a> {
        Path {
            now,
            window,
            rate,
            phase: Phase::Open,
            in_flight: 0,
            una: 0,
            nxt: 0,
            mss: 1448,
            smoothed_rtt: Some(rtt),
            min_rtt: Some(rtt),
            departure: now,
        }
    }
}
