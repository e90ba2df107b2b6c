//! A node being built: a host, and what runs on it.

use std::cell::RefCell;
use std::rc::Rc;

use hopcast_core::{Assembly, Port, Slot};
use hopcast_host::{Host, Interface};

use super::Station;
use super::cabling::Cabling;
use super::routing::{Oracle, OracleRoutes, addresses_of};
use crate::scenario::model::{NodeId, Scenario};

/// What hosts send with: the most there is, so that paths may be longer than an operating system's default of 64.
pub(super) const HOP_LIMIT: u8 = 255;

/// A node being built.
pub(super) struct Builder {
    pub(super) host: Host,
    pub(super) assembly: Assembly,
    /// What is wired to the host once it is added: (above port of the host, port of a machine).
    wires: Vec<(u32, (Slot, Port))>,
    /// The host's next `Above` port.
    above: u32,
    interfaces: Vec<(usize, usize)>,
}

impl Builder {
    pub(super) fn new(
        scenario: &Scenario,
        plan: &Cabling,
        node: NodeId,
        oracle: &Rc<RefCell<Oracle>>,
    ) -> Self {
        let interfaces = plan.interfaces[node].clone();
        let interface = |&(link, attachment): &(usize, usize)| Interface {
            mac: Cabling::mac(link, attachment),
            mtu: scenario.links[link].direction(attachment).mtu,
        };
        let config = hopcast_host::Config {
            addresses: addresses_of(node).to_vec(),
            interfaces: interfaces.iter().map(interface).collect(),
            forwarding: true,
            hop_limit: HOP_LIMIT,
        };
        let routes = OracleRoutes { node, oracle: oracle.clone() };
        let host = Host::new(config, Box::new(routes));
        Self { host, assembly: Assembly::new(), wires: Vec::new(), above: 0, interfaces }
    }

    /// An `Above` port of the host that nothing is plugged into.
    pub(super) fn next_above(&mut self) -> u32 {
        self.above += 1;
        self.above - 1
    }

    /// Plugs a port of a machine into the host's port `above`.
    pub(super) fn wire_to_host(&mut self, above: u32, end: (Slot, Port)) {
        self.wires.push((above, end));
    }

    pub(super) fn finish(self) -> Station {
        let Self { host, mut assembly, wires, interfaces, above: _ } = self;
        let host = assembly.add(Box::new(host));
        for (above, end) in wires {
            assembly.wire((host, Port::Above(above)), end);
        }
        for interface in 0..interfaces.len() as u32 {
            assembly.expose((host, Port::Below(interface)), Port::Below(interface));
        }
        Station { assembly, host, interfaces }
    }
}
