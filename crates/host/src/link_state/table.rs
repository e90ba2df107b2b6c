//! The routes that a router has found, as its host looks them up.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use crate::prefixes::{Prefix, PrefixTable};

/// A route that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundRoute {
    /// The number of the interface.
    pub interface: u32,
    /// The neighbour's address there.
    pub gateway: IpAddr,
}

/// The unicast routing table that a router's [`LinkState`](super::LinkState) fills. A clone is the same table: one is
/// given to whoever looks routes up, one to the machine.
#[derive(Clone, Debug, Default)]
pub struct RouteTable {
    routes: Rc<RefCell<PrefixTable<FoundRoute>>>,
    changes: Rc<Cell<u64>>,
}

impl RouteTable {
    /// An empty table that counts its changes in `changes`, which several tables may share.
    pub fn counting_in(changes: Rc<Cell<u64>>) -> Self {
        Self { routes: Rc::default(), changes }
    }

    /// The route of the longest prefix that an address is in.
    pub fn find(&self, address: IpAddr) -> Option<FoundRoute> {
        self.routes.borrow().find(address)
    }

    /// All routes, those of shorter prefixes first.
    pub fn routes(&self) -> Vec<(Prefix, FoundRoute)> {
        self.routes.borrow().iter().collect()
    }

    /// Sets all routes; whether they are others than before.
    pub(super) fn replace(&self, routes: &BTreeMap<Prefix, FoundRoute>) -> bool {
        let mut new = PrefixTable::default();
        routes.iter().for_each(|(&prefix, &route)| new.insert_new(prefix, route));
        let is_changed = *self.routes.borrow() != new;
        if is_changed {
            *self.routes.borrow_mut() = new;
            self.changes.set(self.changes.get() + 1);
        }
        is_changed
    }
}
