//! Who sends queries in a VLAN: another querier, or the bridge.

use std::net::IpAddr;

use hopcast_core::{Duration, Instant};

/// Time after its last query for which another querier counts as present: RFC 2236 section 8.5 with the defaults.
const OTHER_QUERIER_PRESENT: Duration = Duration::from_secs(255);
/// Maximum time until a host answers a general query: RFC 2236 section 8.3.
pub(super) const QUERY_RESPONSE: Duration = Duration::from_secs(10);
/// Number of queries that are sent a quarter of the interval apart at first: RFC 2236 section 8.7.
const STARTUP_QUERIES: u8 = 2;

/// The queriers of one VLAN and IP version.
#[derive(Debug)]
pub(super) struct Queriers {
    /// The other querier that was heard last, its port, and the time until which it counts as present.
    other: Option<(IpAddr, usize, Instant)>,
    own: Option<Own>,
    /// Time from which hosts have had time to answer the first query.
    settled_at: Instant,
}

/// The bridge's own querier.
#[derive(Debug)]
struct Own {
    address: IpAddr,
    interval: Duration,
    /// Time of the next general query.
    query_at: Instant,
    /// Number of outstanding queries of the start, the next one included.
    startup: u8,
    /// Whether it has sent none yet.
    is_new: bool,
}

impl Queriers {
    /// None but, if they are given, the bridge's own, with this address and interval between its queries.
    pub(super) fn new(own: Option<(IpAddr, Duration)>) -> Self {
        let own = own.map(|(address, interval)| {
            let (query_at, startup, is_new) = (Instant::ZERO, STARTUP_QUERIES, true);
            Own { address, interval, query_at, startup, is_new }
        });
        Self { other: None, own, settled_at: Instant::ZERO }
    }

    /// Whether there is a querier, and hosts have had time to answer it: what they have not reported is wanted by none.
    #[inline]
    pub(super) fn is_settled(&self, now: Instant) -> bool {
        now >= self.settled_at && (self.own.is_some() || self.other(now).is_some())
    }

    /// The other querier that is present.
    fn other(&self, now: Instant) -> Option<IpAddr> {
        self.other.filter(|(.., until)| *until > now).map(|(address, ..)| address)
    }

    /// Port of the other querier that is present.
    pub(super) fn other_port(&self, now: Instant) -> Option<usize> {
        self.other.filter(|(.., until)| *until > now).map(|(_, port, _)| port)
    }

    /// The next time at which it may change without a query whether they are [settled](Self::is_settled), or whether
    /// another querier is present.
    pub(super) fn changes_at(&self, now: Instant) -> Option<Instant> {
        let until = self.other.map(|(.., until)| until);
        [Some(self.settled_at), until].into_iter().flatten().filter(|at| *at > now).min()
    }

    /// Whether another querier is present.
    pub(super) fn is_other_present(&self, now: Instant) -> bool {
        self.other(now).is_some()
    }

    /// Address of the bridge's own querier, while it queries.
    pub(super) fn asks_as(&self, now: Instant) -> Option<IpAddr> {
        self.own.as_ref().map(|own| own.address).filter(|_| self.other(now).is_none())
    }

    /// Takes a general query that arrived on a port; false if its sender gives way to the querier that there is.
    pub(super) fn heard(
        &mut self,
        now: Instant,
        (from, port): (IpAddr, usize),
        max_response: Duration,
    ) -> bool {
        let other = self.other(now);
        let present = other.or(self.own.as_ref().map(|own| own.address));
        // RFC 2236 section 3: the lowest address. One without an address takes no part.
        if present.is_some_and(|present| !present.is_unspecified() && from > present) {
            return false;
        }
        if other.is_none() {
            self.settled_at = now + max_response;
        }
        self.other = Some((from, port, now + OTHER_QUERIER_PRESENT));
        true
    }

    /// The bridge's own address, if it is to send a general query now.
    pub(super) fn due(&mut self, now: Instant) -> Option<IpAddr> {
        let until = self.other.map(|(.., until)| until);
        let own = self.own.as_mut().filter(|own| own.query_at <= now)?;
        if let Some(until) = until {
            if until > now {
                own.query_at = until;
                return None;
            }
            self.other = None;
            own.startup = STARTUP_QUERIES;
        }
        if std::mem::take(&mut own.is_new) {
            self.settled_at = now + QUERY_RESPONSE;
        }
        own.startup = own.startup.saturating_sub(1);
        own.query_at = now + if own.startup > 0 { own.interval / 4 } else { own.interval };
        Some(own.address)
    }

    /// Sends the bridge's next general query no later than `at`.
    pub(super) fn ask_by(&mut self, at: Instant) {
        if let Some(own) = &mut self.own {
            own.query_at = own.query_at.min(at);
        }
    }

    /// Time at which to call `due`.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.own.as_ref().map(|own| own.query_at)
    }

    /// Whether nothing would be lost if this were made anew.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.own.is_none() && self.other(now).is_none()
    }
}
