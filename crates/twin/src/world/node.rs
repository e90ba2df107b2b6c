//! A node being built: a host, and what runs on it.

use std::cell::RefCell;
use std::rc::Rc;

use hopcast_core::{Assembly, Machine, Port, Slot};
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
    /// What is wired to the host once it is added: (above port of the host, machine).
    wires: Vec<(u32, Slot)>,
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
        Self { host, assembly: Assembly::new(), wires: Vec::new(), interfaces }
    }

    /// Adds `machine` on top of the host's port `above`.
    pub(super) fn add_on_host(&mut self, above: u32, machine: Box<dyn Machine>) -> Slot {
        let slot = self.assembly.add(machine);
        self.wires.push((above, slot));
        slot
    }

    pub(super) fn finish(self) -> Station {
        let Self { host, mut assembly, wires, interfaces } = self;
        let host = assembly.add(Box::new(host));
        for (above, slot) in wires {
            assembly.wire((host, Port::Above(above)), (slot, Port::Below(0)));
        }
        for interface in 0..interfaces.len() as u32 {
            assembly.expose((host, Port::Below(interface)), Port::Below(interface));
        }
        Station { assembly, host, interfaces }
    }
}
