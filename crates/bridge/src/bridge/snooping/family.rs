//! The members and routers of one VLAN, in one IP version.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopcast_core::{Duration, Instant, earliest};

use super::querier::Queriers;

/// Time after its last report for which a member counts as present: RFC 2236 section 8.4 with the defaults.
pub(super) const GROUP_MEMBERSHIP: Duration = Duration::from_secs(260);
/// Time after its last query or Hello for which a multicast router counts as present: Linux `mcast_querier_interval`.
const ROUTER_PRESENT: Duration = Duration::from_secs(255);
/// Time after a leave in which remaining members may answer: RFC 2236 sections 8.8 and 8.9 with the defaults.
pub(super) const LAST_MEMBER: Duration = Duration::from_secs(2);

/// The state of one VLAN and IP version.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) queriers: Queriers,
    /// The ports behind which routers were heard, each with the time until which they count as present.
    pub(super) routers: Until,
    /// The ports behind which each group has members, likewise.
    pub(super) groups: BTreeMap<IpAddr, Until>,
}

/// Ports, each with the time until which something is behind it.
#[derive(Clone, Debug, Default)]
pub(super) struct Until(BTreeMap<u32, Instant>);

impl Until {
    /// Sets the time of a port.
    fn set(&mut self, port: usize, until: Instant) {
        self.0.insert(port as u32, until);
    }

    /// Whether the time of a port has not come.
    #[inline]
    pub(super) fn has(&self, now: Instant, port: usize) -> bool {
        self.0.get(&(port as u32)).is_some_and(|until| *until > now)
    }

    /// The ports whose times have not come, each with its time.
    pub(super) fn present(&self, now: Instant) -> impl Iterator<Item = (usize, Instant)> {
        self.0.iter().filter(move |(_, until)| **until > now).map(|(&port, &until)| (port as usize, until))
    }

    /// Lowers the time of a port.
    pub(super) fn lower(&mut self, port: usize, until: Instant) {
        if let Some(known) = self.0.get_mut(&(port as u32)) {
            *known = until.min(*known);
        }
    }

    /// Lowers the times of all ports.
    pub(super) fn lower_all(&mut self, until: Instant) {
        self.0.values_mut().for_each(|known| *known = until.min(*known));
    }

    /// Removes the ports whose time has come; the earliest of the others.
    fn expire(&mut self, now: Instant) -> Option<Instant> {
        self.0.retain(|_, until| *until > now);
        self.0.values().min().copied()
    }
}

impl Family {
    pub(super) const fn new(queriers: Queriers) -> Self {
        Self { queriers, routers: Until(BTreeMap::new()), groups: BTreeMap::new() }
    }

    /// Notes that a router was heard behind a port.
    pub(super) fn heard_router(&mut self, now: Instant, port: usize) {
        self.routers.set(port, now + ROUTER_PRESENT);
    }

    /// Notes that a group has a member behind a port; false if it is not known and must not be added.
    pub(super) fn join(&mut self, now: Instant, group: IpAddr, port: usize, may_add: bool) -> bool {
        if !may_add && !self.groups.contains_key(&group) {
            return false;
        }
        self.groups.entry(group).or_default().set(port, now + GROUP_MEMBERSHIP);
        true
    }

    /// Removes what is over; the time at which something will be next.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Instant> {
        let mut next = self.routers.expire(now);
        self.groups.retain(|_, members| {
            let until = members.expire(now);
            next = earliest(next, until);
            until.is_some()
        });
        next
    }

    /// Whether nothing is known here.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.groups.is_empty() && self.routers.0.is_empty() && self.queriers.is_over(now)
    }
}
