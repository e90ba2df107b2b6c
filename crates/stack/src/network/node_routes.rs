//! One node's view of the idealised routes.

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;

use hopcast_core::Stream;
use hopcast_host::link_state::{Attached, RouteTable};
use hopcast_host::pim::GroupTable;
use hopcast_host::{NextHop, RouteEntry, Routes};

use super::NodeId;
use super::numbering::MacAddress;
use super::routes::GlobalRoutes;
use crate::service::{ServiceNode, ServiceRoutes};

/// One node's view of the routes, for its host and its services.
#[derive(Clone)]
pub(crate) struct NodeRoutes {
    pub(crate) node: NodeId,
    pub(crate) routes: Rc<RefCell<GlobalRoutes>>,
}

impl NodeRoutes {
    /// The route towards an address, and the nodes on it. `None` if there is none, and for the node's own addresses.
    fn route_and_nodes(&self, to: IpAddr) -> Option<(RouteEntry, Vec<NodeId>)> {
        let mut routes = self.routes.borrow_mut();
        routes.addresses().owner(to)?;
        let leg = routes.leg(self.node, to)?;
        let nodes = routes.nodes_towards(self.node, to);
        let neighbour = routes.neighbour_on(leg, to)?;
        let interface = routes.paths.interface(leg.own);
        let route = RouteEntry { interface, neighbour, metric: nodes.len() as u32 };
        (!nodes.is_empty()).then_some((route, nodes))
    }
}

impl Routes for NodeRoutes {
    fn next_hop(&mut self, destination: IpAddr) -> Option<NextHop> {
        let mut routes = self.routes.borrow_mut();
        let leg = routes.leg(self.node, destination)?;
        Some(NextHop { interface: routes.paths.interface(leg.own), mac: routes.mac(leg.far?) })
    }

    fn version(&self) -> u64 {
        self.routes.borrow().version_of_nodes()
    }

    fn route(&mut self, destination: IpAddr) -> Option<RouteEntry> {
        ServiceRoutes::route(self, destination)
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

impl ServiceRoutes for NodeRoutes {
    fn route(&self, to: IpAddr) -> Option<RouteEntry> {
        self.route_and_nodes(to).map(|(route, _)| route)
    }

    fn version(&self) -> u64 {
        self.routes.borrow().version_of_nodes()
    }

    fn runs(&self, kind: &str, at: IpAddr) -> bool {
        let routes = self.routes.borrow();
        routes.addresses().owner(at).is_some_and(|node| routes.running.runs(kind, node))
    }

    fn is_left_to_services(&self, group: IpAddr) -> bool {
        self.routes.borrow().is_left_to_services(group)
    }

    fn first_that_runs(&self, kind: &str, to: IpAddr) -> Option<ServiceNode> {
        let (RouteEntry { interface, neighbour, .. }, nodes) = self.route_and_nodes(to)?;
        let routes = self.routes.borrow();
        let place = nodes.iter().position(|&node| routes.running.runs(kind, node))?;
        let address = match place {
            0 => neighbour,
            _ => routes.addresses().first(nodes[place], to.is_ipv6()),
        };
        Some(ServiceNode { address, interface, hops: place as u32 + 1 })
    }

    fn route_table(&self) -> RouteTable {
        self.routes.borrow().found_table(self.node).cloned().unwrap_or_default()
    }

    fn links_version(&self) -> u64 {
        self.routes.borrow().version
    }

    fn is_up(&self, interface: u32) -> bool {
        self.routes.borrow().is_up(self.node, interface)
    }

    fn attached(&self) -> Vec<Attached> {
        self.routes.borrow().attached(self.node)
    }

    fn has_router(&self, interface: u32) -> bool {
        self.routes.borrow().has_router(self.node, interface)
    }
}

/// What the services of one node share: its routes, its table of groups, and a source of random numbers.
pub(crate) struct NodeServices {
    routes: NodeRoutes,
    groups: GroupTable,
    random: RefCell<Stream>,
}

impl NodeServices {
    pub(crate) fn new(routes: NodeRoutes, groups: GroupTable, random: Stream) -> Self {
        Self { routes, groups, random: RefCell::new(random) }
    }
}

impl ServiceRoutes for NodeServices {
    fn route(&self, to: IpAddr) -> Option<RouteEntry> {
        ServiceRoutes::route(&self.routes, to)
    }

    fn version(&self) -> u64 {
        ServiceRoutes::version(&self.routes)
    }

    fn runs(&self, kind: &str, at: IpAddr) -> bool {
        self.routes.runs(kind, at)
    }

    fn first_that_runs(&self, kind: &str, to: IpAddr) -> Option<ServiceNode> {
        self.routes.first_that_runs(kind, to)
    }

    fn is_left_to_services(&self, group: IpAddr) -> bool {
        self.routes.is_left_to_services(group)
    }

    fn group_table(&self) -> GroupTable {
        self.groups.clone()
    }

    fn route_table(&self) -> RouteTable {
        self.routes.route_table()
    }

    fn links_version(&self) -> u64 {
        self.routes.links_version()
    }

    fn is_up(&self, interface: u32) -> bool {
        self.routes.is_up(interface)
    }

    fn attached(&self) -> Vec<Attached> {
        self.routes.attached()
    }

    fn has_router(&self, interface: u32) -> bool {
        self.routes.has_router(interface)
    }

    fn random(&self) -> Stream {
        self.random.borrow_mut().fork()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use hopcast_config::yaml::{Source, parse};
    use hopcast_core::{Duration, Instant};
    use hopcast_link::{Change, Config};

    use super::super::numbering::addresses_of;
    use super::super::{Link, LinkModel, Network, NetworkPlan, Node, ServiceChange, ServiceSpec};
    use super::*;
    use crate::service::ServiceLayer;

    fn service() -> ServiceLayer {
        let source = Source { name: "x".into(), dir: "".into(), lines: true };
        let options = parse("{}", &Arc::new(source)).unwrap();
        let row = crate::services::find(&options, "mld-querier").unwrap();
        (row.read)(row, &options).unwrap()
    }

    /// A chain of 0 to 4, and 0 - 5 - 6 - 7 - 4 beside it; a service on 2 and 4, which stops on 2 after a second.
    fn network() -> (Rc<RefCell<GlobalRoutes>>, Vec<ServiceSpec>) {
        let nodes: Vec<_> =
            (0..8).map(|n| Node { name: format!("n{n}"), position: None, claims: Vec::new() }).collect();
        let ends = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 5), (5, 6), (6, 7), (7, 4)];
        let links = ends.map(|(a, b)| Link {
            name: String::new(),
            ends: vec![a, b],
            prefixes: Vec::new(),
            model: LinkModel::PointToPoint(Config::default()),
        });
        let stop = ServiceChange { at: Instant::ZERO + Duration::from_secs(1), on: vec![2], to: None };
        let services = vec![ServiceSpec {
            name: "q".into(),
            layer: service(),
            on: vec![2, 4],
            interfaces: Vec::new(),
            changes: vec![stop],
        }];
        let network = Network { nodes: &nodes, links: &links, roles: &BTreeMap::new(), services: &services };
        (Rc::new(RefCell::new(NetworkPlan::of(network).routes(network))), services)
    }

    #[test]
    fn a_service_knows_its_routes_and_who_runs_what_on_them_as_they_change() {
        let (routes, services) = network();
        let own = NodeRoutes { node: 0, routes: routes.clone() };
        let address = |node: NodeId| addresses_of(node)[1];
        let first = |to| own.first_that_runs("mld-querier", address(to));
        let node = |number, interface, hops| Some(ServiceNode { address: address(number), interface, hops });
        let route = |to| own.version_and_route(address(to));
        assert_eq!(route(4), (0, Some(RouteEntry { interface: 0, neighbour: address(1), metric: 4 })));
        assert_eq!(first(4), node(2, 0, 2));
        assert_eq!((first(2), first(1), first(5)), (node(2, 0, 2), None, None));
        assert_eq!([0, 9].map(route), [(0, None); 2], "nowhere to go");
        let beside = NodeRoutes { node: 1, routes: routes.clone() };
        assert_eq!(beside.first_that_runs("mld-querier", address(4)), node(2, 1, 1));
        assert_eq!(beside.first_that_runs("igmp-querier", address(4)), None);
        assert!(own.runs("mld-querier", address(2)) && !own.runs("mld-querier", address(3)));

        routes.borrow_mut().change_service(0, &services[0], services[0].changes[0].at);
        assert_eq!((first(4), first(2)), (node(4, 0, 4), None));
        assert!(!own.runs("mld-querier", address(2)));
        assert_eq!(route(4).0, 1);

        routes.borrow_mut().change_link(2, None, &Change::Down);
        assert_eq!(route(4), (2, Some(RouteEntry { interface: 1, neighbour: address(5), metric: 4 })));
        routes.borrow_mut().change_link(7, None, &Change::Down);
        assert_eq!((route(4), first(4)), ((3, None), None));
    }

    impl NodeRoutes {
        fn version_and_route(&self, to: IpAddr) -> (u64, Option<RouteEntry>) {
            (ServiceRoutes::version(self), ServiceRoutes::route(self, to))
        }
    }
}
