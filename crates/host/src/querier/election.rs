//! The election of a link's querier: the router with the lowest address.

use std::net::IpAddr;

use hopcast_core::Instant;
use hopcast_wire::membership::Query;

use super::Config;
use super::config::Timing;

/// The role of a router on a link (RFC 3376 section 6.6.2, RFC 3810 section 7.6.2).
#[derive(Debug)]
pub(super) struct Election {
    own: IpAddr,
    /// Time until which another router counts as the querier; `None` if this router is it.
    other_until: Option<Instant>,
    /// Time of the next general query, while this router is the querier.
    query_at: Instant,
    /// Number of outstanding startup queries.
    startup: u8,
    timing: Timing,
}

impl Election {
    pub(super) fn new(own: IpAddr, config: &Config) -> Self {
        Self {
            own,
            other_until: None,
            query_at: Instant::ZERO,
            startup: config.startup_query_count(),
            timing: config.timing(),
        }
    }

    /// Whether this router is the querier.
    pub(super) const fn is_querier(&self) -> bool {
        self.other_until.is_none()
    }

    /// The variables in force.
    pub(super) const fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Takes a query of another router; false if that router gives way to this one.
    ///
    /// Only a general query makes the other router the querier: the members of all groups answer it, so that all
    /// routers learn of them. Queries for one group would else keep this router from asking for the other groups.
    pub(super) fn heard(&mut self, now: Instant, from: IpAddr, query: &Query, config: &Config) -> bool {
        // A query without a source is a switch's, which takes no part (RFC 4541 section 2.1.1).
        if from.is_unspecified() || from >= self.own {
            return false;
        }
        if query.group.is_none() {
            self.timing = config.timing().adopt(query);
            self.other_until = Some(now + self.timing.other_querier_present_interval());
            self.startup = 0;
        }
        true
    }

    /// Time at which the role may change, or a general query is due.
    pub(super) fn deadline(&self) -> Instant {
        self.other_until.unwrap_or(self.query_at)
    }

    /// Whether a general query is to be sent now.
    pub(super) fn is_due(&mut self, now: Instant, config: &Config) -> bool {
        if self.deadline() > now {
            return false;
        }
        if self.other_until.take().is_some() {
            self.timing = config.timing();
        }
        self.startup = self.startup.saturating_sub(1);
        let next =
            if self.startup > 0 { config.startup_query_interval() } else { self.timing.query_interval };
        // At least a nanosecond later, whatever the configuration is.
        self.query_at = (now + next).max(now + hopcast_core::Duration::from_millis(1));
        true
    }
}
