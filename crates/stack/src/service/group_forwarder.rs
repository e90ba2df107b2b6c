//! A service that routes groups, on a kernel: the node forwards by its table itself.
//!
//! A simulated host looks a packet to a group up in the table that the service fills. A kernel's multicast routing has
//! numbers of its own for interfaces, and belongs to one process of a node, which has it for the groups of idealised
//! trees. So packets to the groups that are left to services are taken out of the kernel, and copies leave by the
//! table's interfaces; the kernel keeps what its own members receive.

use std::net::IpAddr;

use hopcast_core::{Egress, Hook, Instant, Item, Machine, Outbox, Port, Transit};
use hopcast_host::GroupRoutes;
use hopcast_wire::ip;

/// A machine that fills a table of groups, and the forwarding by it.
pub(crate) struct GroupForwarder {
    machine: Box<dyn Machine>,
    table: Box<dyn GroupRoutes>,
    groups: Vec<IpAddr>,
    out: Outbox,
    forwarded: u64,
    /// Packets that have no route.
    unrouted: u64,
}

impl GroupForwarder {
    /// The machine of a service that fills this table for these groups.
    pub(crate) fn new(machine: Box<dyn Machine>, table: Box<dyn GroupRoutes>, groups: Vec<IpAddr>) -> Self {
        Self { machine, table, groups, out: Outbox::new(), forwarded: 0, unrouted: 0 }
    }

    /// The hooks of such a service on a kernel, in place of its own: a kernel cannot say which packets are on the wrong
    /// interface, and all to the groups are taken.
    pub(crate) fn hooks(own: Vec<Hook>, groups: &[IpAddr]) -> Vec<Hook> {
        let of_group =
            |&prefix: &IpAddr| Hook::Destination { prefix, length: ip::Version::of(prefix).address_bits() };
        let own = own.into_iter().filter(|hook| *hook != Hook::WrongInterface);
        own.chain(groups.iter().map(of_group)).collect()
    }

    /// Forwards a packet to a group, or hands it to the machine if it is on the wrong interface.
    fn forward(&mut self, now: Instant, transit: Transit, (source, group): (IpAddr, IpAddr)) {
        let Some(route) = self.table.route(source, group) else {
            self.unrouted += 1;
            return;
        };
        if route.ingress != transit.ingress {
            return self.machine.handle(now, Port::Below(0), Item::Transit(transit));
        }
        if !route.egress.is_empty() {
            self.forwarded += 1;
            self.out.down(Item::Transit(Transit { egress: Egress::Group(route.egress), ..transit }));
        }
    }
}

impl Machine for GroupForwarder {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        match item {
            Item::Transit(transit) => {
                let header = ip::parse(&transit.packet).ok();
                match header.filter(|header| self.groups.contains(&header.destination)) {
                    Some(header) => self.forward(now, transit, (header.source, header.destination)),
                    None => self.machine.handle(now, port, Item::Transit(transit)),
                }
            }
            item => self.machine.handle(now, port, item),
        }
    }

    fn wake(&mut self, now: Instant) {
        self.machine.wake(now);
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        self.out.pop().or_else(|| self.machine.poll(now))
    }

    fn deadline(&self) -> Option<Instant> {
        self.machine.deadline()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("groups_forwarded", self.forwarded);
        report("groups_unrouted", self.unrouted);
        self.machine.counters(report);
    }
}

/// A table for tests: of one source to the first of the groups, from interface 0 to 1 and 2.
#[cfg(test)]
pub(super) struct OneRoute;

#[cfg(test)]
impl GroupRoutes for OneRoute {
    fn route(&mut self, source: IpAddr, group: IpAddr) -> Option<hopcast_host::GroupRoute> {
        let is_known = (source, group) == ([10, 0, 0, 1].into(), [232, 0, 1, 1].into());
        let route = hopcast_host::GroupRoute { ingress: Some(0), upstream: None, egress: [1, 2].into() };
        is_known.then_some(route)
    }

    fn version(&self) -> u64 {
        0
    }

    fn member(&mut self, _: IpAddr, _: Option<IpAddr>, _: bool) {}
}

/// A machine for tests that hands back what it is given.
#[cfg(test)]
pub(super) struct Pass(pub(super) Outbox);

#[cfg(test)]
impl Machine for Pass {
    fn handle(&mut self, _: Instant, port: Port, item: Item) {
        self.0.push(port, item);
    }

    fn wake(&mut self, _: Instant) {}

    fn poll(&mut self, _: Instant) -> Option<(Port, Item)> {
        self.0.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use hopcast_core::Buffer;
    use hopcast_wire::udp;

    use super::*;

    const SOURCE: [u8; 4] = [10, 0, 0, 1];
    const GROUPS: [[u8; 4]; 2] = [[232, 0, 1, 1], [232, 0, 1, 2]];

    #[test]
    fn packets_follow_the_table_and_the_service_hears_of_those_on_the_wrong_interface() {
        let groups = GROUPS.map(IpAddr::from).to_vec();
        let mut node = GroupForwarder::new(Box::new(Pass(Outbox::new())), Box::new(OneRoute), groups);
        let mut given = |to: [u8; 4], ingress: u32| {
            let mut packet = Buffer::copy_from(b"x");
            let (source, to) = (SocketAddr::from((SOURCE, 1)), SocketAddr::from((to, 2)));
            udp::prepend(&mut packet, source, to);
            ip::prepend(&mut packet, source.ip(), to.ip(), ip::UDP, 9, 0);
            node.handle(Instant::ZERO, Port::Below(0), Item::Transit(Transit::arrived(packet, ingress)));
            match node.poll(Instant::ZERO) {
                Some((Port::Below(0), Item::Transit(transit))) => Some(transit.egress),
                _ => None,
            }
        };
        assert_eq!(given(GROUPS[0], 0), Some(Egress::Group([1, 2].into())));
        assert_eq!(given(GROUPS[1], 0), None, "no route");
        // The service is handed these, and gives them back.
        assert_eq!(given(GROUPS[0], 1), Some(Egress::Routes));
        assert_eq!(given([224, 0, 0, 13], 0), Some(Egress::Routes), "its own messages");
        let hooks = GroupForwarder::hooks(
            vec![Hook::Protocol(103), Hook::WrongInterface],
            &[GROUPS[0].into(), "ff38::1".parse().unwrap()],
        );
        let to = |prefix: &str, length| Hook::Destination { prefix: prefix.parse().unwrap(), length };
        assert_eq!(hooks, [Hook::Protocol(103), to("232.0.1.1", 32), to("ff38::1", 128)]);
    }
}
