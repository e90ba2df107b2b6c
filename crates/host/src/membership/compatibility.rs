//! The version of IGMP or MLD in which a host reports, by the queriers on its link.

use hopcast_core::{Duration, Instant};
use hopcast_wire::membership::{Query, Version};

use super::Config;

/// A host's compatibility mode on an interface (RFC 3376 section 7.2.1, RFC 3810 section 8.2.1), and what it has learnt
/// from queriers.
#[derive(Debug)]
pub(super) struct Compatibility {
    newest: Version,
    oldest: Version,
    /// Times until which a querier of version 1, and one of version 2, counts as present.
    older_until: [Option<Instant>; 2],
    mode: Version,
    robustness: u8,
    interval: Duration,
}

/// Maximum number of times that a change is reported: the largest value of the field of a query (RFC 3376 section
/// 4.1.6).
const MAX_ROBUSTNESS: u8 = 7;

impl Compatibility {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            newest: config.version,
            oldest: config.oldest.min(config.version),
            older_until: [None; 2],
            mode: config.version,
            robustness: config.robustness.clamp(1, MAX_ROBUSTNESS),
            interval: config.query_interval,
        }
    }

    /// Notes a query.
    pub(super) fn heard(&mut self, now: Instant, query: &Query) {
        let older = match query.version {
            Version::V1 => 0,
            Version::V2 => 1,
            Version::V3 => {
                // RFC 3376 sections 4.1.6 and 4.1.7: 0 stands for none.
                if query.robustness > 0 {
                    self.robustness = query.robustness;
                }
                if !query.interval.is_zero() {
                    self.interval = query.interval;
                }
                return;
            }
        };
        if query.group.is_none() && query.version >= self.oldest {
            // Section 8.12; a query of versions 1 and 2 has no interval, so that of the last one of version 3 holds.
            let timeout = self.interval * u64::from(self.robustness) + query.max_response;
            self.older_until[older] = Some(now + timeout);
        }
    }

    /// Whether the mode has changed since the last call.
    pub(super) fn has_changed(&mut self, now: Instant) -> bool {
        let present = |until: Option<Instant>| until.is_some_and(|until| now < until);
        let heard = match self.older_until {
            [first, _] if present(first) => Version::V1,
            [_, second] if present(second) => Version::V2,
            _ => Version::V3,
        };
        let mode = heard.min(self.newest);
        core::mem::replace(&mut self.mode, mode) != mode
    }

    /// The version in which the host reports.
    pub(super) const fn mode(&self) -> Version {
        self.mode
    }

    /// Number of times that a change is reported.
    pub(super) const fn robustness(&self) -> u8 {
        self.robustness
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(version: Version, robustness: u8, interval: u64) -> Query {
        let interval = Duration::from_secs(interval);
        let max_response = Duration::from_secs(10);
        Query { version, group: None, max_response, suppress: false, robustness, interval }
    }

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    #[test]
    fn the_oldest_querier_that_is_there_decides_until_it_is_gone() {
        let mut host = Compatibility::new(&Config::default());
        host.heard(at(0), &query(Version::V3, 3, 20));
        assert!(!host.has_changed(at(0)));
        host.heard(at(0), &query(Version::V2, 0, 0));
        assert!(host.has_changed(at(0)));
        assert_eq!(host.mode(), Version::V2);
        host.heard(at(5), &query(Version::V1, 0, 0));
        host.heard(at(50), &query(Version::V2, 0, 0));
        assert!(host.has_changed(at(50)));
        assert_eq!(host.mode(), Version::V1);
        // Three intervals of 20 s and 10 s after the last of each.
        assert!(!host.has_changed(at(74)) && host.has_changed(at(75)));
        assert_eq!(host.mode(), Version::V2);
        assert!(!host.has_changed(at(119)) && host.has_changed(at(120)));
        assert_eq!(host.mode(), Version::V3);
    }

    #[test]
    fn a_host_may_refuse_to_speak_an_old_version() {
        let mut host = Compatibility::new(&Config { oldest: Version::V2, ..Config::default() });
        host.heard(at(0), &query(Version::V1, 0, 0));
        assert!(!host.has_changed(at(0)));
        let mut old = Compatibility::new(&Config { version: Version::V2, ..Config::default() });
        old.heard(at(0), &query(Version::V3, 2, 125));
        assert!(!old.has_changed(at(0)));
        assert_eq!(old.mode(), Version::V2);
    }
}
