//! Whether the routers on an interface want a channel's packets (RFC 7761 section 4.5.2).

use hopcast_core::{Duration, Instant};

/// The state of an interface on which a router has joined. Without it there is none (*NoInfo*).
#[derive(Clone, Copy, Debug)]
pub(super) struct Downstream {
    /// Time at which the join no longer holds (*Expiry Timer*).
    until: Instant,
    /// Time at which the branch is cut, unless somebody joins before (*Prune-Pending Timer*).
    prune_at: Option<Instant>,
}

impl Downstream {
    pub(super) const fn until(until: Instant) -> Self {
        Self { until, prune_at: None }
    }

    pub(super) fn join(&mut self, now: Instant, hold: Duration) {
        self.until = self.until.max(now + hold);
        self.prune_at = None;
    }

    pub(super) fn prune(&mut self, now: Instant, delay: Duration) {
        self.prune_at.get_or_insert(now + delay);
    }

    /// Whether nobody has overridden a prune in time.
    pub(super) fn is_pruned(&self, now: Instant) -> bool {
        self.prune_at.is_some_and(|at| at <= now)
    }

    /// Whether nobody wants the packets any more.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.until <= now || self.is_pruned(now)
    }

    pub(super) fn deadline(&self) -> Instant {
        self.prune_at.map_or(self.until, |at| at.min(self.until))
    }
}
