//! A connection's timers.

use hopcast_core::{Duration, Instant, Timers};

use super::wheel;

/// The timers of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// When to send the SYN or SYN-ACK again.
    Handshake,
    /// When to take all that is outstanding for lost (RFC 6298).
    Retransmission,
    /// When to probe for the loss of a tail (RFC 8985 section 7).
    LossProbe,
    /// When the time allowed for reordering is over, and missing segments are lost (RFC 8985 section 6.3).
    Reordering,
    /// When to probe a closed window (RFC 9293 section 3.8.6.1).
    Persist,
    /// When the pacing rate permits the next burst.
    Pacing,
    /// When to acknowledge data that has not been acknowledged yet.
    DelayedAck,
    /// When to send the selective acknowledgement that stands for several.
    CompressedAck,
}

impl hopcast_core::Timer for Timer {
    const ALL: &'static [Self] = &[
        Self::Handshake,
        Self::Retransmission,
        Self::LossProbe,
        Self::Reordering,
        Self::Persist,
        Self::Pacing,
        Self::DelayedAck,
        Self::CompressedAck,
    ];
    fn index(self) -> usize {
        self as usize
    }
}

/// A connection's deadlines.
pub(super) type Deadlines = Timers<Timer, 8>;

/// The four timers that wait for the peer's acknowledgement. As in Linux at most one of them is set.
const WAITING: [Timer; 4] = [Timer::Retransmission, Timer::LossProbe, Timer::Reordering, Timer::Persist];

/// Sets one of the four timers that wait for an acknowledgement, and stops the other three.
pub(super) fn wait_for_ack(timers: &mut Deadlines, timer: Timer, now: Instant, wait: Duration) {
    stop_waiting(timers);
    timers.set(timer, wheel::expiry(now, wait));
}

/// Stops the timers that wait for an acknowledgement.
pub(super) fn stop_waiting(timers: &mut Deadlines) {
    for timer in WAITING {
        timers.stop(timer);
    }
}
