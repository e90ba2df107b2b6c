//! Memberships that an interface is told: a mesh below announces the groups that its host listens to.

use std::collections::BTreeSet;
use std::net::IpAddr;

use hopcast_core::{Instant, Item, Membership, Port};
use hopcast_wire::nd;

use crate::host::Host;

/// The interfaces that are told which groups the host listens to there, and what they have been told.
#[derive(Debug, Default)]
pub(crate) struct MembershipsBelow {
    interfaces: Vec<u32>,
    /// Groups that the host listens to in any case.
    always: BTreeSet<IpAddr>,
    told: BTreeSet<(u32, IpAddr)>,
    /// Whether there are interfaces that have not been told anything yet.
    is_new: bool,
}

impl Host {
    /// Tells an interface which groups the host listens to there, now and whenever that changes, by
    /// [`Item::Membership`] down on its port: those that machines have joined, these, and the solicited-node groups of
    /// its own addresses. The mesh of an interface needs it, which floods no group that nobody wants; other links do
    /// not.
    pub fn tell_memberships(&mut self, interface: u32, groups: impl IntoIterator<Item = IpAddr>) {
        let below = &mut self.memberships_below;
        below.interfaces.push(interface);
        below.always.extend(groups);
        below.always.extend(self.config.addresses.iter().filter_map(|&own| match own {
            IpAddr::V6(own) => Some(IpAddr::V6(nd::solicited_node(own))),
            IpAddr::V4(_) => None,
        }));
        below.is_new = true;
    }

    /// Tells interfaces that a machine has joined or left a group, if that changes what the host listens to.
    pub(crate) fn tell_membership(&mut self, group: IpAddr) {
        let below = &mut self.memberships_below;
        for &interface in &below.interfaces {
            let joined = below.always.contains(&group) || self.groups.is_joined(group, interface);
            let key = (interface, group);
            let changed = if joined { below.told.insert(key) } else { below.told.remove(&key) };
            if changed {
                let membership = Membership { group, source: None, interface: None, joined };
                self.out.push(Port::Below(interface), Item::Membership(membership));
            }
        }
    }

    /// Tells interfaces of everything that has been joined before the host first runs.
    pub(crate) fn wake_memberships_below(&mut self) {
        if std::mem::take(&mut self.memberships_below.is_new) {
            let always = self.memberships_below.always.iter().copied();
            let groups: BTreeSet<IpAddr> = always.chain(self.groups.joined()).collect();
            groups.into_iter().for_each(|group| self.tell_membership(group));
        }
    }
}

impl MembershipsBelow {
    /// Time at which to tell what is new: at once.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.is_new.then_some(Instant::ZERO)
    }
}
