//! Motion of a ship: a track of its own, or a place in a formation or a convoy on another's.

use std::sync::Arc;

use hopcast_core::{Instant, earliest};

use crate::track::{Fix, Track};

/// Motion of one ship, and when it takes part.
///
/// Ships of a formation and of a convoy share one [`Track`], the leader's: each is `behind` on its way, and then
/// `ahead` and to `starboard` of that place, in the frame of the leader's heading there. A convoy behind a convoy, or
/// a formation in a formation, is therefore one sum, however deep. When a leader leaves, others go on on its track.
///
/// A formation turns with its leader at once: at a waypoint its outer ships jump.
#[derive(Clone, Debug)]
pub struct Motion {
    track: Arc<Track>,
    behind: f64,
    ahead: f64,
    starboard: f64,
    from: Instant,
    until: Option<Instant>,
}

/// Maximum distance between a ship's positions at two times: `slack` and `speed` times the time between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Maximum speed, in metres per second.
    pub speed: f64,
    /// Metres that it may be farther away at once, by jumps in a formation.
    pub slack: f64,
}

impl Motion {
    /// The motion along `track`; the ship takes part from the start to the end of the run.
    pub fn along(track: impl Into<Arc<Track>>) -> Self {
        let track = track.into();
        Self { track, behind: 0.0, ahead: 0.0, starboard: 0.0, from: Instant::ZERO, until: None }
    }

    /// The motion of a ship that follows this one on its way, `metres` behind. What is not finite or below 0 counts as
    /// 0.
    #[must_use]
    pub fn followed_at(&self, metres: f64) -> Self {
        let behind = if metres.is_finite() { metres.max(0.0) } else { 0.0 };
        Self { behind: self.behind + behind, from: Instant::ZERO, until: None, ..self.clone() }
    }

    /// The motion of a ship that keeps a place beside this one: metres `ahead` (below 0: astern) and to `starboard`
    /// (below 0: to port). What is not finite counts as 0.
    #[must_use]
    pub fn beside(&self, ahead: f64, starboard: f64) -> Self {
        let finite = |metres: f64| if metres.is_finite() { metres } else { 0.0 };
        Self {
            ahead: self.ahead + finite(ahead),
            starboard: self.starboard + finite(starboard),
            from: Instant::ZERO,
            until: None,
            ..self.clone()
        }
    }

    /// The same place by another track.
    #[must_use]
    pub fn on(self, track: impl Into<Arc<Track>>) -> Self {
        Self { track: track.into(), ..self }
    }

    /// The same motion of a ship that joins at `at`.
    #[must_use]
    pub fn joining(self, at: Instant) -> Self {
        Self { from: at, ..self }
    }

    /// The same motion of a ship that leaves at `at`: it is not there at that time any more.
    #[must_use]
    pub fn leaving(self, at: Instant) -> Self {
        Self { until: Some(at), ..self }
    }

    /// The same motion of a ship that is only there while its track says where: from the first waypoint until the
    /// last, at which it leaves. Without this a ship stands still before and after.
    #[must_use]
    pub fn within_track(self) -> Self {
        let (from, until) = (self.track.begins(), Some(self.track.ends()));
        Self { from, until, ..self }
    }

    /// The track that it is on, its own or its leader's.
    pub fn track(&self) -> &Track {
        &self.track
    }

    /// The same track, as all ships on it share it: two of one track have the same [`Arc`].
    pub const fn shared_track(&self) -> &Arc<Track> {
        &self.track
    }

    /// A bound of how far it gets; `None` if there is none, because the track jumps.
    pub fn drift(&self) -> Option<Drift> {
        // Beside its leader's track a ship is at any bearing after a turn, which takes no time.
        let slack = 2.0 * self.ahead.hypot(self.starboard);
        Some(Drift { speed: self.track.max_speed()?, slack })
    }

    /// The time until which [`at`](Self::at) stays as it is at `now`: `now` itself while the ship moves or turns,
    /// `None` if it never changes again.
    pub fn rests_until(&self, now: Instant) -> Option<Instant> {
        if now < self.from {
            return Some(self.from);
        }
        match self.until {
            Some(until) if now >= until => None,
            until => earliest(until, self.track.rests_until(now)),
        }
    }

    /// Position, heading and speed at `now`; `None` before the ship joins and after it has left.
    pub fn at(&self, now: Instant) -> Option<Fix> {
        if now < self.from || self.until.is_some_and(|until| now >= until) {
            return None;
        }
        let mut fix = self.track.behind(now, self.behind);
        let offset = self.ahead.hypot(self.starboard);
        if offset > 0.0 {
            let direction = fix.heading + self.starboard.atan2(self.ahead).to_degrees();
            fix.position = fix.position.moved(direction, offset);
        }
        Some(fix)
    }
}
