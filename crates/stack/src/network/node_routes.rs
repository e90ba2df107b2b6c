//! One node's view of the idealised routes.

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;

use hopcast_host::{NextHop, RouteEntry, Routes};

use super::NodeId;
use super::numbering::MacAddress;
use super::routes::GlobalRoutes;

/// Maximum metric: no packet has more hops (RFC 791, RFC 8200).
const MAX_METRIC: u32 = 255;

/// One node's view of the routes, for its host.
pub(crate) struct NodeRoutes {
    pub(crate) node: NodeId,
    pub(crate) routes: Rc<RefCell<GlobalRoutes>>,
}

impl Routes for NodeRoutes {
    fn next_hop(&mut self, destination: IpAddr) -> Option<NextHop> {
        let mut routes = self.routes.borrow_mut();
        let leg = routes.leg(self.node, destination)?;
        Some(NextHop { interface: routes.paths.interface(leg.own), mac: routes.mac(leg.far?) })
    }

    fn version(&self) -> u64 {
        self.routes.borrow().version
    }

    fn route(&mut self, destination: IpAddr) -> Option<RouteEntry> {
        let mut routes = self.routes.borrow_mut();
        let to = routes.addresses().owner(destination)?;
        let leg = routes.leg(self.node, destination)?;
        let mut node = routes.paths.node(leg.far?);
        let mut metric = 1;
        // Static routes may lead in a circle.
        while node != to && metric < MAX_METRIC {
            let Some(far) = routes.leg(node, destination).and_then(|leg| leg.far) else { break };
            node = routes.paths.node(far);
            metric += 1;
        }
        let neighbour = routes.neighbour_on(leg, destination)?;
        Some(RouteEntry { interface: routes.paths.interface(leg.own), neighbour, metric })
    }

    fn neighbour(&mut self, destination: IpAddr) -> Option<(u32, IpAddr)> {
        let mut routes = self.routes.borrow_mut();
        let leg = routes.leg(self.node, destination)?;
        Some((routes.paths.interface(leg.own), routes.neighbour_on(leg, destination)?))
    }

    fn station(&mut self, interface: u32, neighbour: IpAddr) -> Option<MacAddress> {
        let routes = self.routes.borrow();
        let neighbour = routes.addresses().owner(neighbour)?;
        let step = routes.paths.neighbour(self.node, interface, neighbour)?;
        Some(routes.mac(step.to))
    }
}
