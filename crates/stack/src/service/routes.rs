//! The routes of a service's node, as its machine may look them up at any time.

use std::cell::RefCell;
use std::net::IpAddr;

use hopcast_core::{Seed, Stream};
use hopcast_host::RouteEntry;
use hopcast_host::link_state::{Attached, RouteTable};
use hopcast_host::pim::GroupTable;

/// The routes of a node, and who runs which service: all as it is at the moment of the question.
pub trait ServiceRoutes {
    /// The route towards an address: the interface, the neighbour on it, and the number of hops. `None` if there is
    /// none, and for the node's own addresses.
    fn route(&self, to: IpAddr) -> Option<RouteEntry>;

    /// A number that changes whenever an answer may have changed. It is cheap to read.
    fn version(&self) -> u64;

    /// Whether a service of this kind, a row of the table, runs at the node with an address, or a delivery of it sends
    /// from there.
    fn runs(&self, kind: &str, at: IpAddr) -> bool;

    /// The first node behind this one on the route towards an address that runs a service of a kind, be it the last.
    /// `None` if there is none, or no route.
    fn first_that_runs(&self, kind: &str, to: IpAddr) -> Option<ServiceNode>;

    /// Whether the trees of a group are left to services; those of others are idealised ones.
    fn is_left_to_services(&self, group: IpAddr) -> bool {
        let _ = group;
        false
    }

    /// The node's table of groups, for a service that [routes](super::MulticastRole::Routes) them: what is in it the
    /// host forwards by.
    fn group_table(&self) -> GroupTable {
        GroupTable::default()
    }

    /// The node's table of routes, for a service that [finds](super::Service::routes_unicast) them: what is in it the
    /// host forwards by.
    fn route_table(&self) -> RouteTable {
        RouteTable::default()
    }

    /// A number that changes whenever [`is_up`](Self::is_up) may have changed. It is cheap to read.
    fn links_version(&self) -> u64 {
        0
    }

    /// Whether the node can send by an interface of its host.
    fn is_up(&self, interface: u32) -> bool {
        let _ = interface;
        true
    }

    /// What the node reaches over its own links without another router, whatever is down.
    fn attached(&self) -> Vec<Attached> {
        Vec::new()
    }

    /// Whether another node on the segment of an interface finds routes by a service too.
    fn has_router(&self, interface: u32) -> bool {
        let _ = interface;
        true
    }

    /// Random numbers of a machine, other ones at each call.
    fn random(&self) -> Stream {
        Seed::new(0, 0).stream(&["service"], 0)
    }
}

/// A node on a route that runs a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceNode {
    /// Its address: as a neighbour if it is one, or else the one that it is sent to.
    pub address: IpAddr,
    /// The number of the interface by which the route begins.
    pub interface: u32,
    /// Number of hops to it; 1 of a neighbour.
    pub hops: u32,
}

/// No route to anywhere: a site of a deployment knows none of its kernel's. A service that needs them is not one
/// [for sites](super::ServiceRow::for_sites).
pub(crate) struct NoRoutes {
    random: RefCell<Stream>,
}

impl NoRoutes {
    /// Services draw from `random`.
    pub(crate) const fn new(random: Stream) -> Self {
        Self { random: RefCell::new(random) }
    }
}

impl ServiceRoutes for NoRoutes {
    fn route(&self, _: IpAddr) -> Option<RouteEntry> {
        None
    }

    fn version(&self) -> u64 {
        0
    }

    fn runs(&self, _: &str, _: IpAddr) -> bool {
        false
    }

    fn first_that_runs(&self, _: &str, _: IpAddr) -> Option<ServiceNode> {
        None
    }

    fn random(&self) -> Stream {
        self.random.borrow_mut().fork()
    }
}
