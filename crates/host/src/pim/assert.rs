//! Who forwards a channel's packets to a link that several routers forward to (RFC 7761 section 4.6.1).

use std::net::IpAddr;

use hopcast_core::{Duration, Instant};

use super::neighbours::Distance;
use super::wire::Assert;

/// Time for which an Assert holds (*Assert_Time*, section 4.11).
const ASSERT_TIME: Duration = Duration::from_secs(180);
/// Time before that at which the winner says it again (*Assert_Override_Interval*).
const OVERRIDE_INTERVAL: Duration = Duration::from_secs(3);

/// The state of an interface. Without it nobody has asserted anything (*NoInfo*).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AssertState {
    /// This router forwards, and says so again at this time.
    Winner { until: Instant },
    /// Another router forwards, as long as it says so.
    Loser { winner: Distance, until: Instant },
}

impl AssertState {
    pub(super) fn winning(now: Instant) -> Self {
        Self::Winner { until: now + ASSERT_TIME.saturating_sub(OVERRIDE_INTERVAL) }
    }

    fn losing(now: Instant, winner: Distance) -> Self {
        Self::Loser { winner, until: now + ASSERT_TIME }
    }

    /// The other router that forwards.
    pub(super) const fn winner(&self) -> Option<IpAddr> {
        match self {
            Self::Winner { .. } => None,
            Self::Loser { winner, .. } => Some(winner.address),
        }
    }

    pub(super) const fn deadline(&self) -> Instant {
        let (Self::Winner { until } | Self::Loser { until, .. }) = self;
        *until
    }
}

/// The state after an Assert has been heard, and whether the router answers with its own. `own` is its distance if it
/// forwards to the link; `tracks` says whether it has to know who does.
pub(super) fn hear(
    now: Instant,
    state: Option<AssertState>,
    own: Option<Distance>,
    tracks: bool,
    heard: Distance,
) -> (Option<AssertState>, bool) {
    // What withdraws is better than nothing of anybody.
    let is_acceptable = own.map_or(heard.metric != Assert::CANCEL, |own| heard.beats(&own));
    match state {
        Some(AssertState::Loser { winner, .. }) if winner.address == heard.address => {
            (is_acceptable.then(|| AssertState::losing(now, heard)), false)
        }
        Some(AssertState::Loser { winner, .. }) => {
            (if heard.beats(&winner) { Some(AssertState::losing(now, heard)) } else { state }, false)
        }
        Some(AssertState::Winner { .. }) | None if is_acceptable => {
            (if tracks { Some(AssertState::losing(now, heard)) } else { state }, false)
        }
        Some(AssertState::Winner { .. }) | None => match own {
            Some(_) => (Some(AssertState::winning(now)), true),
            None => (state, false),
        },
    }
}
