//! Memberships that a port is told: a mesh behind it announces the groups that are wanted behind all other ports.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_core::{Instant, Membership, earliest};

use super::{RouterPort, Snooping};

/// All groups of each IP version.
const ALL: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];

/// A port that is told memberships, and what it has been told.
#[derive(Debug)]
pub(crate) struct ToldPort {
    port: usize,
    /// The VLANs whose frames it is given without a tag: a mesh announces groups of no VLAN.
    vlans: Vec<u16>,
    /// Whether it has been told that all groups of an IP version are wanted; `None` if it has been told nothing.
    all: [Option<bool>; 2],
    groups: BTreeSet<IpAddr>,
}

impl ToldPort {
    pub(crate) const fn new(port: usize, vlans: Vec<u16>) -> Self {
        Self { port, vlans, all: [None; 2], groups: BTreeSet::new() }
    }

    /// The changes since it was told last, and the time at which time alone changes something.
    pub(super) fn update(&mut self, now: Instant, snooping: &Snooping) -> (Vec<Membership>, Option<Instant>) {
        let (mut news, mut next) = (Vec::new(), None);
        let mut groups = BTreeSet::new();
        for ipv6 in [false, true] {
            let mut all = false;
            for &vlan in &self.vlans {
                let (knows, changes) = snooping.knows_members(now, (vlan, ipv6), self.port);
                all |= !knows;
                next = earliest(next, changes);
                let members = snooping.members_elsewhere(now, (vlan, ipv6), self.port);
                members.for_each(|(group, until)| {
                    groups.insert(group);
                    next = earliest(next, Some(until));
                });
            }
            let v6 = usize::from(ipv6);
            if self.all[v6] != Some(all) {
                self.all[v6] = Some(all);
                news.push(membership(ALL[v6], all));
            }
        }
        let before = std::mem::replace(&mut self.groups, groups);
        news.extend(self.groups.difference(&before).map(|&group| membership(group, true)));
        news.extend(before.difference(&self.groups).map(|&group| membership(group, false)));
        (news, next)
    }

    pub(super) const fn port(&self) -> usize {
        self.port
    }
}

const fn membership(group: IpAddr, joined: bool) -> Membership {
    Membership { group, source: None, interface: None, joined }
}

impl Snooping {
    /// Whether the members behind other ports than this one are known, and when time alone may change that. They are
    /// not without a querier, nor with one behind another port, to which alone members may have reported, nor with a
    /// multicast router there, which wants all.
    fn knows_members(&self, now: Instant, key: (u16, bool), port: usize) -> (bool, Option<Instant>) {
        let elsewhere = |other: usize| other != port;
        let always =
            (0..).zip(&self.ports).any(|(other, kind)| elsewhere(other) && *kind == RouterPort::Always);
        let Some(family) = self.families.get(&key) else { return (false, None) };
        let (until, routers) = (family.queriers.changes_at(now), family.routers.present(now));
        let (mut router, mut next) = (false, until);
        for (_, until) in routers.filter(|&(other, _)| elsewhere(other)) {
            router = true;
            next = earliest(next, Some(until));
        }
        let querier = family.queriers.other_port(now).is_some_and(elsewhere);
        (family.queriers.is_settled(now) && !always && !router && !querier, next)
    }

    /// The groups that have members behind other ports than this one, each with the time until which it has.
    fn members_elsewhere(
        &self,
        now: Instant,
        key: (u16, bool),
        port: usize,
    ) -> impl Iterator<Item = (IpAddr, Instant)> {
        let groups = self.families.get(&key).into_iter().flat_map(|family| &family.groups);
        groups.filter_map(move |(&group, members)| {
            let others = members.present(now).filter(|&(other, _)| other != port);
            others.map(|(_, until)| until).max().map(|until| (group, until))
        })
    }
}
