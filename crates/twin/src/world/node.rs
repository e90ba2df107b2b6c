//! A node being built: what runs on it, and what that stands on: a simulated host, or the kernel of a real one.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use hopcast_coded::franc;
use hopcast_core::plug::{DevicePlug, FramesPlug, Plug, TcpPlug};
use hopcast_core::{Assembly, Port, Slot};
use hopcast_host::{BindError, Hook, Host, Interface};

use super::Station;
use super::cabling::Cabling;
use super::routing::{Oracle, OracleRoutes, addresses_of};
use crate::scenario::model::{NodeId, Scenario};

/// What hosts send with: the most there is, so that paths may be longer than an operating system's default of 64.
pub(super) const HOP_LIMIT: u8 = 255;

/// TCP's number among IP's protocols.
const TCP: u8 = 6;

/// A node being built.
pub(super) struct Builder {
    pub(super) assembly: Assembly,
    pub(super) ground: Ground,
}

/// What a node's machines stand on. Each of its ports has a number.
pub(super) enum Ground {
    /// A host in virtual time.
    Virtual(Box<VirtualHost>),
    /// The kernel: what each port is plugged into.
    Kernel(Vec<Plug>),
}

/// A host in virtual time, being built.
pub(super) struct VirtualHost {
    host: Host,
    /// What is wired to the host once it is added: (above port of the host, port of a machine).
    wires: Vec<(u32, (Slot, Port))>,
    /// The host's next `Above` port.
    above: u32,
    interfaces: Vec<(usize, usize)>,
}

impl Builder {
    /// A node of the virtual world.
    pub(super) fn simulated(
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
        let ground = VirtualHost { host, wires: Vec::new(), above: 0, interfaces };
        Self { assembly: Assembly::new(), ground: Ground::Virtual(Box::new(ground)) }
    }

    /// A node whose machines stand on the kernel.
    pub(super) fn on_kernel() -> Self {
        Self { assembly: Assembly::new(), ground: Ground::Kernel(Vec::new()) }
    }

    /// Plugs a port of a machine into a port of the ground.
    pub(super) fn wire_to_ground(&mut self, number: u32, end: (Slot, Port)) {
        match &mut self.ground {
            Ground::Virtual(host) => host.wires.push((number, end)),
            Ground::Kernel(_) => self.assembly.expose(end, Port::Below(number)),
        }
    }

    /// A station of the virtual world; what stands on the kernel is none.
    pub(super) fn finish(self) -> Option<Station> {
        let Self { mut assembly, ground: Ground::Virtual(ground) } = self else { return None };
        let VirtualHost { host, wires, interfaces, above: _ } = *ground;
        let host = assembly.add(Box::new(host));
        for (above, end) in wires {
            assembly.wire((host, Port::Above(above)), end);
        }
        for interface in 0..interfaces.len() as u32 {
            assembly.expose((host, Port::Below(interface)), Port::Below(interface));
        }
        Some(Station { assembly, host, interfaces })
    }
}

impl Ground {
    /// Datagrams to an address of the node.
    pub(super) fn udp(&mut self, local: SocketAddr) -> Result<u32, BindError> {
        match self {
            Self::Virtual(ground) => ground.bind(|host, above| host.bind_udp(above, local.port())),
            Self::Kernel(plugs) => Ok(plug(plugs, Plug::Udp(local))),
        }
    }

    /// FRANC's frames on an interface, whoever they are for.
    pub(super) fn franc(&mut self, interface: u32) -> Result<u32, BindError> {
        let ether_type = franc::ETHER_TYPE;
        match self {
            Self::Virtual(ground) => {
                ground.bind(|host, above| host.bind_frames(above, interface, ether_type, true))
            }
            Self::Kernel(plugs) => {
                let interface = interface_name(interface);
                Ok(plug(plugs, Plug::Frames(FramesPlug { interface, ether_type, promiscuous: true })))
            }
        }
    }
}

impl VirtualHost {
    fn bind(&mut self, bind: impl FnOnce(&mut Host, u32) -> Result<(), BindError>) -> Result<u32, BindError> {
        let above = self.above;
        self.above += 1;
        bind(&mut self.host, above)?;
        Ok(above)
    }

    /// TCP's packets to ports of the node.
    pub(super) fn tcp(&mut self, ports: impl IntoIterator<Item = u16>) -> Result<u32, BindError> {
        let mut ports = ports.into_iter();
        self.bind(|host, above| ports.try_for_each(|port| host.bind_protocol(above, TCP, Some(port))))
    }

    /// TCP's packets that the node would forward.
    pub(super) fn transit(&mut self) -> u32 {
        let above = self.above;
        self.above += 1;
        self.host.hook(above, Hook::Protocol(TCP));
        above
    }
}

/// The kernel's TCP.
pub(super) fn tcp_plug(plugs: &mut Vec<Plug>, tcp: TcpPlug) -> u32 {
    plug(plugs, Plug::Tcp(tcp))
}

/// A TUN device.
pub(super) fn tun_plug(plugs: &mut Vec<Plug>, tun: DevicePlug) -> u32 {
    plug(plugs, Plug::Tun(tun))
}

fn plug(plugs: &mut Vec<Plug>, plug: Plug) -> u32 {
    plugs.push(plug);
    plugs.len() as u32 - 1
}

/// What a node's interface is called.
pub(crate) fn interface_name(interface: u32) -> String {
    format!("eth{interface}")
}
