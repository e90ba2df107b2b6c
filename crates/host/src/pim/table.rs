//! The multicast routes that PIM finds, as the router's host looks them up.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;

use super::Channel;
use crate::groups::{GroupRoute, GroupRoutes};

/// The multicast routing table that a router's [`Pim`](super::Pim) fills. A clone is the same table: one is given to
/// the host, one to the machine.
#[derive(Clone, Debug, Default)]
pub struct GroupTable(Rc<RefCell<Table>>);

#[derive(Debug, Default)]
struct Table {
    routes: BTreeMap<Channel, GroupRoute>,
    /// Addresses of the host, whose packets leave by a route or not at all.
    own: Vec<IpAddr>,
    /// The channels that machines on the host itself want.
    wanted: BTreeSet<Channel>,
    version: u64,
}

impl GroupTable {
    /// An empty table of a host with these addresses.
    pub fn new(own: Vec<IpAddr>) -> Self {
        Self(Rc::new(RefCell::new(Table { own, ..Table::default() })))
    }

    /// Whether an address is the host's own.
    pub(super) fn owns(&self, address: IpAddr) -> bool {
        self.0.borrow().own.contains(&address)
    }

    pub(super) fn set(&self, channel: Channel, route: Option<GroupRoute>) {
        let mut table = self.0.borrow_mut();
        let before = match &route {
            Some(route) => table.routes.insert(channel, route.clone()),
            None => table.routes.remove(&channel),
        };
        table.version += u64::from(before != route);
    }

    pub(super) fn clear(&self) {
        let mut table = self.0.borrow_mut();
        table.routes.clear();
        table.version += 1;
    }

    /// The channels that machines on the host itself want.
    pub(super) fn wanted(&self) -> BTreeSet<Channel> {
        self.0.borrow().wanted.clone()
    }
}

impl GroupRoutes for GroupTable {
    fn route(&mut self, source: IpAddr, group: IpAddr) -> Option<GroupRoute> {
        let table = self.0.borrow();
        let own = || table.own.contains(&source).then(GroupRoute::default);
        table.routes.get(&(source, group)).cloned().or_else(own)
    }

    fn version(&self) -> u64 {
        self.0.borrow().version
    }

    fn member(&mut self, group: IpAddr, source: Option<IpAddr>, joined: bool) {
        let Some(source) = source else { return };
        let wanted = &mut self.0.borrow_mut().wanted;
        if joined {
            wanted.insert((source, group));
        } else {
            wanted.remove(&(source, group));
        }
    }
}
