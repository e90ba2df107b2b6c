//! A flow's stack where it stands on a kernel: TCP is the kernel's own, and so is what an application says to it.
//!
//! What has packets above it (`tunnel`, `franc`) ends in a TUN device, and the flow goes between the addresses of the two
//! devices. A proxy's TCP is the kernel's too: connections are redirected to it on their own node, or taken out of transit.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hopcast_coded::{Tunnel, proxy};
use hopcast_core::plug::{Accept, Destination, DevicePlug, TcpPlug};
use hopcast_core::{Port, Slot};
use hopcast_peers::tcp::{self, Congestion};

use super::Parts;
use super::sites::{Foot, Sites};
use crate::app::Ends;
use crate::scenario::model::{ETHERNET, Layer, NodeId};

impl Parts<'_> {
    /// Puts the stack on one node, from the bottom up; says what the application stands on, unless that is a program with
    /// sockets of its own.
    pub(super) fn kernel_stack(
        &self,
        sites: &mut Sites<'_>,
        node: NodeId,
        ends: Ends,
    ) -> Result<Option<Foot>, String> {
        let over = self.own_layers();
        let name = |name: &'static str| if self.has_several_machines() { name } else { "" };
        // The kernel itself, until a machine stands on it.
        let mut foot = None;
        for (depth, layer) in over.iter().enumerate().rev() {
            let own = self.kernel_ends(depth, ends);
            if let (Some(packets), Some(Layer::Tunnel | Layer::Franc(_))) = (foot, over.get(depth + 1)) {
                self.tun(sites, node, depth + 1, own, packets)?;
            }
            let above = depth.checked_sub(1).map(|above| &over[above]);
            let sockets_of_its_own = match above {
                None => self.is_program() && matches!(layer, Layer::Udp | Layer::Tcp(_) | Layer::Split(_)),
                Some(above) => matches!((above, layer), (Layer::Kcptun(_), Layer::Udp)),
            };
            if sockets_of_its_own {
                foot = None;
                continue;
            }
            foot = Some(match (layer, foot) {
                (Layer::Kcptun(_), _) if self.is_program() => return Ok(None),
                (Layer::Kcptun(_), _) => {
                    let listens = self.flow.to.contains(&node).then_some(Accept::At(local_host(own.local)));
                    sites.kernel_tcp(node, TcpPlug { accept: listens, ..TcpPlug::default() })?
                }
                (Layer::Udp, _) => sites.udp(node, own.local)?,
                (Layer::Tcp(config) | Layer::Split(config), _) => {
                    let listens = self.flow.to.contains(&node).then_some(Accept::At(own.local));
                    let tcp = TcpPlug { redirectable: true, ..kernel_tcp(config, listens) };
                    sites.kernel_tcp(node, tcp)?
                }
                (Layer::Franc(config), _) => {
                    let (edge, below) = self.franc_end(sites, node, config)?;
                    sites.stand(name("franc"), node, edge, below)
                }
                (_, None) => return Err(sites.error(node, &"nothing to stand on")),
                (Layer::Proxy(config), Some(below)) => {
                    let edge = self.edge(config, depth, node, own);
                    let edge = sites.stand(name("bats"), node, edge, below);
                    match above {
                        Some(Layer::Tcp(config)) => {
                            let from_here = Accept::LocalOutput { to: vec![destination(ends.remote)] };
                            let accept = (node == self.flow.from).then_some(from_here);
                            self.kernel_splice(sites, node, kernel_tcp(config, accept), edge)?;
                            continue;
                        }
                        _ => edge,
                    }
                }
                (Layer::Tunnel, Some(below)) => {
                    let tunnel = Tunnel::new(own.local, own.remote, self.tunnel_mtu(depth));
                    sites.stand(name("tunnel"), node, Box::new(tunnel), below)
                }
                (layer, Some(below)) => match self.on_datagrams(layer, depth, node, own)? {
                    Some((layer, machine)) => sites.stand(name(layer), node, machine, below),
                    None => return Err(sites.error(node, &"what it stands on carries no datagrams")),
                },
            });
        }
        Ok(foot)
    }

    /// The ends of the flow as its application sees them.
    pub(super) fn kernel_application_ends(&self, ends: Ends) -> Ends {
        let Ends { local, remote } = self.kernel_ends(0, ends);
        match self.flow.over.first() {
            // The near end of a program that carries connections on.
            Some(Layer::Kcptun(_)) => {
                Ends { local: SocketAddr::new(local_host(local).ip(), 0), remote: local_host(remote) }
            }
            _ => Ends { local, remote },
        }
    }

    /// The ends of the flow as what stands at this depth sees them: the devices' addresses above a TUN device.
    pub(super) fn kernel_ends(&self, depth: usize, ends: Ends) -> Ends {
        let below = self.flow.over.iter().enumerate().skip(depth + 1);
        let tun =
            below.filter(|(_, layer)| matches!(layer, Layer::Tunnel | Layer::Franc(_))).map(|(at, _)| at);
        let Some(depth) = tun.min() else { return ends };
        let local = usize::from(!self.is_sender(ends));
        let [own, peer] = [local, 1 - local].map(|end| self.tun_address(depth, end));
        Ends::new([own, peer], ends.local.port(), ends.remote.port())
    }

    fn is_sender(&self, ends: Ends) -> bool {
        ends.local.port() > ends.remote.port()
    }

    /// The address of one end of the TUN device above the layer at `depth`: networks of four addresses for each.
    fn tun_address(&self, depth: usize, end: usize) -> IpAddr {
        // The scenario language bounds the flows and the layers of each.
        let place = ((self.number as u32) << 5 | (depth as u32) << 2) + 1 + end as u32;
        if self.flow.ipv6 {
            IpAddr::V6(Ipv6Addr::from_bits((0xfd01 << 112) | u128::from(place)))
        } else {
            IpAddr::V4(Ipv4Addr::from_bits(0xac10_0000 | place))
        }
    }

    /// Joins a packet port to a TUN device.
    fn tun(
        &self,
        sites: &mut Sites<'_>,
        node: NodeId,
        depth: usize,
        ends: Ends,
        packets: Foot,
    ) -> Result<(), String> {
        let mtu = match &self.flow.over[depth] {
            Layer::Franc(config) => u32::from(config.mtu),
            _ => self.tunnel_mtu(depth),
        };
        let tun = DevicePlug {
            name: format!("hop{}-{depth}", self.number),
            addresses: vec![(ends.local.ip(), if self.flow.ipv6 { 126 } else { 30 })],
            routes: Vec::new(),
            mtu,
        };
        let device = sites.tun(node, tun)?;
        if let Foot::Machine(slot, port) = packets {
            sites.plug(node, (slot, port), device);
        }
        Ok(())
    }

    /// The longest packet that fits the tunnel at `depth`.
    pub(super) fn tunnel_mtu(&self, depth: usize) -> u32 {
        (u64::from(self.mtu) + ETHERNET).saturating_sub(self.flow.overhead(depth)) as u32
    }

    /// The kernel's TCP joined to the edge that carries its connections on.
    fn kernel_splice(
        &self,
        sites: &mut Sites<'_>,
        node: NodeId,
        tcp: TcpPlug,
        edge: Foot,
    ) -> Result<(), String> {
        let tcp = sites.kernel_tcp(node, tcp)?;
        let splice: Slot = sites.put("splice", node, Box::new(proxy::Splice::new()));
        sites.plug(node, (splice, Port::Below(0)), tcp);
        sites.plug(node, (splice, Port::Below(1)), edge);
        Ok(())
    }

    /// A gateway's: the connections to the flow's receiver are taken out of transit, and those it opens come from the
    /// flow's sender.
    pub(super) fn kernel_gateway(
        &self,
        sites: &mut Sites<'_>,
        node: NodeId,
        config: &tcp::Config,
        receiver: SocketAddr,
        edge: Foot,
    ) -> Result<(), String> {
        let accept = Accept::Forwarded { to: vec![destination(receiver)] };
        self.kernel_splice(sites, node, TcpPlug { spoof: true, ..kernel_tcp(config, Some(accept)) }, edge)
    }

    /// The two connections of a node that splits a flow, joined.
    pub(super) fn kernel_split(
        &self,
        sites: &mut Sites<'_>,
        node: NodeId,
        config: &tcp::Config,
        own: SocketAddr,
        next: SocketAddr,
    ) -> Result<(), String> {
        let left = sites.kernel_tcp(node, kernel_tcp(config, Some(Accept::At(own))))?;
        let right = sites.kernel_tcp(node, kernel_tcp(config, None))?;
        let onwards = SocketAddr::new(own.ip(), 0);
        let name = &self.scenario.nodes[node].name;
        let splice = sites.put(name, node, Box::new(proxy::Splice::towards(onwards, next)));
        sites.plug(node, (splice, Port::Below(0)), left);
        sites.plug(node, (splice, Port::Below(1)), right);
        Ok(())
    }
}

fn kernel_tcp(config: &tcp::Config, accept: Option<Accept>) -> TcpPlug {
    let congestion = match config.congestion {
        Congestion::Cubic => "cubic",
        Congestion::Bbr => "bbr",
        Congestion::Reno => "reno",
        Congestion::Vegas => "vegas",
    };
    TcpPlug { accept, congestion: Some(congestion.to_owned()), ..TcpPlug::default() }
}

/// The same port of the loopback.
fn local_host(address: SocketAddr) -> SocketAddr {
    let ip = if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    SocketAddr::new(ip, address.port())
}

/// Exactly one socket.
fn destination(address: SocketAddr) -> Destination {
    let prefix = if address.is_ipv4() { 32 } else { 128 };
    Destination { network: address.ip(), prefix, port: Some(address.port()) }
}
