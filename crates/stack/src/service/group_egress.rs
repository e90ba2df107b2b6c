//! A service on a kernel: it names the interfaces of packets to groups that it hands back to the routes.
//!
//! A simulated host routes such a packet like any other. A kernel looks at the interface on which a packet to a group
//! arrives, and one that is put back has come from none; so the node's own trees say where it goes, which are those of
//! the kernel's multicast routing, or those that the node's own service has found.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use hopcast_core::{Egress, Instant, Item, Machine, Port, Transit};
use hopcast_host::GroupRoutes;
use hopcast_wire::ip;

/// The route of packets from a source to a group through a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupEgress {
    /// The source.
    pub source: IpAddr,
    /// The group.
    pub group: IpAddr,
    /// The number of the interface on which they arrive; from elsewhere they go nowhere.
    pub ingress: Option<u32>,
    /// The numbers of the interfaces on which copies leave.
    pub egress: Vec<u32>,
}

/// The routes of groups through a node, each from a time on, in the order of time.
pub type GroupEgresses = Vec<(Instant, Vec<GroupEgress>)>;

/// A machine on a hook, whose packets to groups leave by the routes of the moment.
pub(crate) struct OnKernel {
    machine: Box<dyn Machine>,
    routes: Vec<GroupEgress>,
    changes: VecDeque<(Instant, Vec<GroupEgress>)>,
    /// The groups that are left to services, and the routes that those of this node have found.
    left_to_services: (Vec<IpAddr>, Box<dyn GroupRoutes>),
    /// Packets to groups that have no route, or arrived on another interface than theirs.
    unrouted: u64,
}

impl OnKernel {
    pub(crate) fn new(
        machine: Box<dyn Machine>,
        routes: GroupEgresses,
        left_to_services: (Vec<IpAddr>, Box<dyn GroupRoutes>),
    ) -> Self {
        Self { machine, routes: Vec::new(), changes: routes.into(), left_to_services, unrouted: 0 }
    }

    /// The transit with the interfaces of its route, if it is a packet to a group that is to follow it; `None` if it
    /// goes nowhere.
    fn routed(&mut self, now: Instant, transit: Transit) -> Option<Transit> {
        let header = ip::parse(&transit.packet).ok().filter(|header| header.destination.is_multicast());
        let (Egress::Routes, Some(ingress), Some(header)) = (&transit.egress, transit.ingress, header) else {
            return Some(transit);
        };
        while let Some((_, routes)) = self.changes.pop_front_if(|&mut (at, _)| at <= now) {
            self.routes = routes;
        }
        let (source, group) = (header.source, header.destination);
        let (left, found) = &mut self.left_to_services;
        let egress: Arc<[u32]> = if left.contains(&group) {
            found.route(source, group).filter(|route| route.ingress == Some(ingress))?.egress
        } else {
            let is_route = |route: &&GroupEgress| (route.source, route.group) == (source, group);
            let route = self.routes.iter().find(is_route).filter(|route| route.ingress == Some(ingress));
            route?.egress.iter().copied().filter(|&to| to != ingress).collect()
        };
        (!egress.is_empty()).then_some(Transit { egress: Egress::Group(egress), ..transit })
    }
}

impl Machine for OnKernel {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.machine.handle(now, port, item);
    }

    fn wake(&mut self, now: Instant) {
        self.machine.wake(now);
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        loop {
            match self.machine.poll(now)? {
                (port, Item::Transit(transit)) => match self.routed(now, transit) {
                    Some(transit) => return Some((port, Item::Transit(transit))),
                    None => self.unrouted += 1,
                },
                other => return Some(other),
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.machine.deadline()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("groups_unrouted", self.unrouted);
        self.machine.counters(report);
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use hopcast_core::{Buffer, Duration, Outbox};
    use hopcast_wire::udp;

    use super::super::group_forwarder::{OneRoute, Pass};
    use super::*;

    fn transit(source: [u8; 4], to: [u8; 4], ingress: u32) -> Item {
        let mut packet = Buffer::copy_from(b"x");
        let (source, to) = (SocketAddr::from((source, 1)), SocketAddr::from((to, 2)));
        udp::prepend(&mut packet, source, to);
        ip::prepend(&mut packet, source.ip(), to.ip(), ip::UDP, 9, 0);
        Item::Transit(Transit { packet, ingress: Some(ingress), egress: Egress::Routes })
    }

    #[test]
    fn a_packet_to_a_group_leaves_by_the_interfaces_of_the_moment_and_others_by_the_routes() {
        let (source, group) = ([10, 0, 0, 1], [239, 0, 0, 1]);
        let to = |egress: &[u32]| {
            vec![GroupEgress {
                source: source.into(),
                group: group.into(),
                ingress: Some(0),
                egress: egress.to_vec(),
            }]
        };
        let later = Instant::ZERO + Duration::from_secs(1);
        let routes = vec![(Instant::ZERO, to(&[1, 2])), (later, to(&[2]))];
        let left = (vec![[232, 0, 1, 1].into()], Box::new(OneRoute) as Box<dyn GroupRoutes>);
        let mut service = OnKernel::new(Box::new(Pass(Outbox::new())), routes, left);
        let mut given = |now, item| {
            service.handle(now, Port::Below(0), item);
            match service.poll(now) {
                Some((_, Item::Transit(transit))) => Some(transit.egress),
                _ => None,
            }
        };
        let named = |interfaces: &[u32]| Some(Egress::Group(interfaces.into()));
        assert_eq!(given(Instant::ZERO, transit(source, group, 0)), named(&[1, 2]));
        assert_eq!(given(Instant::ZERO, transit(source, group, 1)), None, "not from the source's side");
        assert_eq!(given(Instant::ZERO, transit([10, 0, 0, 9], group, 0)), None);
        assert_eq!(given(Instant::ZERO, transit(source, [10, 0, 0, 2], 0)), Some(Egress::Routes));
        assert_eq!(given(later, transit(source, group, 0)), named(&[2]));
        // Of a group that is left to services, the table's.
        assert_eq!(given(later, transit(source, [232, 0, 1, 1], 0)), named(&[1, 2]));
        assert_eq!(given(later, transit(source, [232, 0, 1, 1], 1)), None);
    }
}
