//! A flow being built: a stack of machines at both of its ends, with an application on top, and what its transports
//! have on the nodes between.

mod applications;
mod arq;
mod bats;
mod franc;
mod kernel;
mod sites;

use std::cell::RefCell;
use std::net::SocketAddr;

use hopcast_coded::{Tunnel, proxy};
use hopcast_core::{Duration, Instant, Machine, Pacer, Port, Seed, Slot, Stream};
use hopcast_host::Udp;
use hopcast_peers::kcp::{self, Kcp};
use hopcast_peers::quic;
use hopcast_peers::tcp::{self, Tcp};

use self::bats::Tree;
use self::sites::{Foot, Sites};
use super::RunningFlow;
use super::cabling::{Cabling, path_mtu};
use super::node::{Builder, Ground, HOP_LIMIT};
use super::routing::{Oracle, addresses_of};
use crate::app::Ends;
use crate::meter::Meters;
use crate::scenario::model::{App, ETHERNET, Flow, Layer, NodeId, Scenario};

/// The receiving end's port of the first flow; the sending end has the next, and each flow two below the last. The
/// scenario language bounds their number. Up here Wireshark knows no protocol by its port, and guesses none.
const FIRST_PORT: u16 = 60_000;

/// Builds both ends of a flow into their nodes, and what is between them.
pub(super) fn build_flow(
    scenario: &Scenario,
    cabling: &Cabling,
    oracle: &RefCell<Oracle>,
    seed: Seed,
    nodes: &mut [Builder],
    number: usize,
) -> Result<RunningFlow, String> {
    let (mut parts, source) = Parts::of(scenario, cabling, oracle, seed, number)?;
    let flow = parts.flow;
    // Where every node ends the connection, the sender's goes to the next one.
    let source = parts.next_hop(source);
    let on_kernel = matches!(nodes[flow.from].ground, Ground::Kernel(_));
    if on_kernel {
        parts.slack = Pacer::KERNEL_SLACK;
    }
    let (sender, receivers) = if parts.is_program() && on_kernel {
        // A program has sockets of its own.
        (None, flow.to.iter().map(|_| None).collect())
    } else {
        let source = if on_kernel { parts.kernel_application_ends(source) } else { source };
        let (sender, receivers) = parts.applications(source)?;
        (Some(sender), receivers.into_iter().map(Some).collect::<Vec<_>>())
    };
    let mut sites = Sites { scenario, flow, nodes, machines: Vec::new() };
    let receivers = receivers.into_iter().zip(&flow.to).map(|(application, &to)| {
        let own = parts.ends(to).other();
        (to, application, Ends { local: parts.tree.address(to).unwrap_or(own.local), ..own })
    });
    for (node, application, ends) in [(flow.from, sender, source)].into_iter().chain(receivers) {
        let foot = parts.stack(&mut sites, node, ends)?;
        if let (Some(application), Some(foot)) = (application, foot) {
            sites.stand("", node, application, foot);
        }
    }
    parts.gateways(&mut sites, source)?;
    parts.relays(&mut sites)?;
    parts.arq_relays(&mut sites)?;
    parts.between_segments(&mut sites)?;
    parts.splits(&mut sites)?;
    let Sites { machines, .. } = sites;
    Ok(RunningFlow { meters: parts.meters, machines, frame: u64::from(parts.mtu) + ETHERNET })
}

/// The addresses between which a flow's application speaks where hosts are real, at its sender and at each receiver.
pub(super) fn application_ends(
    scenario: &Scenario,
    cabling: &Cabling,
    oracle: &RefCell<Oracle>,
    number: usize,
) -> Result<(SocketAddr, Vec<SocketAddr>), String> {
    let (parts, source) = Parts::of(scenario, cabling, oracle, Seed::new(0, 0), number)?;
    let own = |&to: &NodeId| parts.kernel_ends(0, parts.ends(to).other()).local;
    Ok((parts.kernel_ends(0, source).local, parts.flow.to.iter().map(own).collect()))
}

/// What a flow is made from.
struct Parts<'a> {
    scenario: &'a Scenario,
    cabling: &'a Cabling,
    seed: Seed,
    number: usize,
    flow: &'a Flow,
    /// The link directions from one end to the other, or to the first of several.
    route: Vec<(usize, usize)>,
    /// The longest packet that fits the route, in bytes.
    mtu: u32,
    /// Who carries it where relays take part.
    tree: Tree,
    /// The rates of the first link over time, if it has any.
    rates: Option<Vec<(Instant, hopcast_core::Rate)>>,
    meters: Meters,
    /// How late the nodes may be woken.
    slack: Duration,
}

impl<'a> Parts<'a> {
    /// The parts of a flow, and its ends as the sender sees them.
    fn of(
        scenario: &'a Scenario,
        cabling: &'a Cabling,
        oracle: &RefCell<Oracle>,
        seed: Seed,
        number: usize,
    ) -> Result<(Self, Ends), String> {
        let flow = &scenario.flows[number];
        let mut routes: Vec<_> =
            flow.to.iter().map(|&to| cabling.route(&mut oracle.borrow_mut(), flow.from, to)).collect();
        while routes.len() < flow.paths {
            let Some(route) = cabling.route_beside(scenario, &routes, flow.from, flow.to[0]) else {
                let (name, ways, found) = (&flow.name, flow.paths, routes.len());
                return Err(format!(
                    "flow `{name}`: `paths`: wanted {ways} without a node in common, found {found}"
                ));
            };
            routes.push(route);
        }
        // What a sender to several sends to the first of them, its transport brings to all.
        let source = ends(flow, number, flow.to[0]);
        let mtu = routes.iter().map(|route| path_mtu(scenario, route)).min();
        let parts = Self {
            scenario,
            cabling,
            seed,
            number,
            flow,
            mtu: mtu.unwrap_or(1500),
            tree: Tree::new(scenario, cabling, flow, &routes, source),
            rates: routes[0].first().and_then(|&first| Cabling::rates(scenario, first)),
            route: routes.into_iter().next().unwrap_or_default(),
            meters: Meters::new(flow.to.len(), scenario.measure, scenario.duration),
            slack: Duration::ZERO,
        };
        Ok((parts, source))
    }

    /// The two ends, with this receiver, as the sender sees them.
    fn ends(&self, to: NodeId) -> Ends {
        ends(self.flow, self.number, to)
    }
}

fn ends(flow: &Flow, number: usize, to: NodeId) -> Ends {
    let port = FIRST_PORT - 2 * number as u16;
    Ends::new([flow.from, to].map(|node| addresses_of(node)[usize::from(flow.ipv6)]), port + 1, port)
}

impl Parts<'_> {
    /// The layers that stand on the ends themselves: where gateways take connections over, the ends know nothing of it.
    fn own_layers(&self) -> &[Layer] {
        if self.has_gateways() { &self.flow.over[..1] } else { &self.flow.over }
    }

    /// Whether there is more than one machine at an end: a single one's counters need no name before them.
    fn has_several_machines(&self) -> bool {
        let over = self.own_layers();
        over.len() > 1 + usize::from(matches!(over.last(), Some(Layer::Udp)))
    }

    /// Whether a real program is what sends.
    fn is_program(&self) -> bool {
        matches!(self.flow.app, App::Program { .. })
    }

    /// Puts the stack on one node, from the bottom up; says what the application stands on, if it needs anything.
    fn stack(&self, sites: &mut Sites<'_>, node: NodeId, ends: Ends) -> Result<Option<Foot>, String> {
        if sites.on_kernel(node) {
            return self.kernel_stack(sites, node, ends);
        }
        let Self { flow, .. } = self;
        let over = self.own_layers();
        let (last, port) = (over.len() - 1, ends.local.port());
        let name = |name: &'static str| if self.has_several_machines() { name } else { "" };
        let mut foot = match &over[last] {
            Layer::Tcp(_) | Layer::Split(_) => {
                let many = if node == flow.from { self.client_ports() } else { 0..0 };
                sites.tcp(node, many.chain([port]))?
            }
            Layer::Franc(config) => {
                let (edge, foot) = self.franc_end(sites, node, config)?;
                sites.stand(name("franc"), node, edge, foot)
            }
            // At the bottom UDP is the host's, as it is below all that takes datagrams.
            _ => sites.udp(node, ends.local)?,
        };
        for (depth, layer) in over.iter().enumerate().rev() {
            let machine: (&'static str, Box<dyn Machine>) = match layer {
                Layer::Udp if depth == last => continue,
                Layer::Franc(_) => continue,
                Layer::Udp => ("udp", Box::new(Udp::new(ends.local, HOP_LIMIT))),
                Layer::Tcp(config) | Layer::Split(config) => {
                    let port = flow.to.contains(&node).then_some(port);
                    let config = self.tcp(config, node, depth);
                    ("tcp", Box::new(Tcp::new(config, port, vec![ends.local.ip()], self.random(node, depth))))
                }
                Layer::Proxy(config) => {
                    let edge = sites.stand(name("bats"), node, self.edge(config, depth, node, ends), foot);
                    foot = match depth.checked_sub(1).map(|above| &over[above]) {
                        Some(Layer::Tcp(config)) => {
                            // What the client's TCP hands down, this one takes as if a network had brought it.
                            let (tcp, port) = self.splice(sites, node, config, edge);
                            Foot::Machine(tcp, port)
                        }
                        _ => edge,
                    };
                    continue;
                }
                Layer::Tunnel => {
                    ("tunnel", Box::new(Tunnel::new(ends.local, ends.remote, self.tunnel_mtu(depth))))
                }
                layer => match self.on_datagrams(layer, depth, node, ends)? {
                    Some(machine) => machine,
                    None => continue,
                },
            };
            foot = sites.stand(name(machine.0), node, machine.1, foot);
        }
        Ok(Some(foot))
    }

    /// The machine of a layer that stands on datagrams, whoever carries those; `None` of any other layer.
    #[allow(clippy::type_complexity)] // a name in the counters, and its machine
    fn on_datagrams(
        &self,
        layer: &Layer,
        depth: usize,
        node: NodeId,
        ends: Ends,
    ) -> Result<Option<(&'static str, Box<dyn Machine>)>, String> {
        Ok(Some(match layer {
            Layer::Kcp(config) => {
                let random = self.random(node, depth);
                let config = self.kcp(config, depth);
                ("kcp", Box::new(Kcp::new(config, ends.local, ends.remote, random)))
            }
            Layer::HopArq(config) => ("arq", self.arq_edge(config, depth, node, ends)),
            Layer::Quic(config) => {
                let random = self.random(node, depth);
                let config = self.quic(config, depth)?;
                let quic = quic::quic(config, ends.local, ends.remote, random);
                ("quic", quic.ok_or("this build has no QUIC")?)
            }
            Layer::Bats(config) => ("bats", self.edge(config, depth, node, ends)),
            Layer::Udp
            | Layer::Tcp(_)
            | Layer::Split(_)
            | Layer::Kcptun(_)
            | Layer::Proxy(_)
            | Layer::Tunnel
            | Layer::Franc(_) => return Ok(None),
        }))
    }

    /// Whom the sender's application opens its connection to.
    fn next_hop(&self, source: Ends) -> Ends {
        match self.flow.over.as_slice() {
            [Layer::Split(_)] => Ends { remote: self.tree.beside_root().unwrap_or(source.remote), ..source },
            _ => source,
        }
    }

    /// Puts two TCPs on each node between the ends, joined to each other.
    fn splits(&self, sites: &mut Sites<'_>) -> Result<(), String> {
        let [Layer::Split(config)] = self.flow.over.as_slice() else { return Ok(()) };
        for (node, own, next) in self.tree.between() {
            let name = &self.scenario.nodes[node].name;
            if sites.on_kernel(node) {
                self.kernel_split(sites, node, config, own, next)?;
                continue;
            }
            let mut random = self.random(node, 0);
            let mut side = |listens: Option<u16>| {
                let config = self.tcp(config, node, 0);
                Box::new(Tcp::new(config, listens, vec![own.ip()], random.fork()))
            };
            let onwards = SocketAddr::new(own.ip(), own.port() + 1);
            let foot = sites.tcp(node, [own.port()])?;
            let left = sites.stand(name, node, side(Some(own.port())), foot);
            let foot = sites.tcp(node, [onwards.port()])?;
            let right = sites.stand(name, node, side(None), foot);
            let splice = sites.put(name, node, Box::new(proxy::Splice::towards(onwards, next)));
            sites.plug(node, (splice, Port::Below(0)), left);
            sites.plug(node, (splice, Port::Below(1)), right);
        }
        Ok(())
    }

    /// The TCP that ends a client's connections, joined to the edge that carries them on; says which port takes the
    /// packets.
    fn splice(&self, sites: &mut Sites<'_>, node: NodeId, config: &tcp::Config, edge: Foot) -> (Slot, Port) {
        let random = self.random(node, 0).fork();
        let ending = Tcp::transparent(self.tcp(config, node, 0), random);
        let tcp = sites.put("proxy", node, Box::new(ending));
        let splice = sites.put("splice", node, Box::new(proxy::Splice::new()));
        sites.plug(node, (splice, Port::Below(0)), Foot::on(tcp));
        sites.plug(node, (splice, Port::Below(1)), edge);
        (tcp, Port::Below(0))
    }

    fn tcp(&self, config: &tcp::Config, node: NodeId, depth: usize) -> tcp::Config {
        // What a host knows is the MTU of its own link; it finds a smaller one on the way by itself.
        let own = self.cabling.interfaces[node].iter();
        let own = own.map(|&(link, attachment)| self.scenario.links[link].direction(attachment).mtu);
        let own = own.max().unwrap_or(config.mtu);
        let mtu = match self.flow.over.get(depth + 1) {
            Some(Layer::Franc(config)) => own.min(u32::from(config.mtu)),
            _ => own,
        };
        tcp::Config { mtu, hop_limit: HOP_LIMIT, ..config.clone() }
    }

    fn kcp(&self, config: &kcp::Config, depth: usize) -> kcp::Config {
        kcp::Config { mtu: config.mtu.min(self.room(depth)), ..config.clone() }
    }

    fn quic(&self, config: &quic::Config, depth: usize) -> Result<quic::Config, String> {
        let (name, datagram, least) = (&self.flow.name, self.room(depth), quic::config::LEAST_DATAGRAM);
        if datagram < least {
            return Err(format!(
                "flow `{name}`: QUIC needs datagrams of {least} bytes (RFC 9000 section 14), its way has room for {datagram}"
            ));
        }
        Ok(quic::Config { datagram, ..config.clone() })
    }

    /// What the layers below this one leave of the way's packets for a datagram, in bytes.
    fn room(&self, depth: usize) -> u16 {
        let room = (u64::from(self.mtu) + ETHERNET).saturating_sub(self.flow.overhead(depth + 1));
        u16::try_from(room).unwrap_or(u16::MAX)
    }

    fn random(&self, node: NodeId, depth: usize) -> Stream {
        self.seed.stream(&["flow", &self.flow.name, &self.scenario.nodes[node].name], depth as u64)
    }
}

/// A node's address in a flow.
fn address(flow: &Flow, node: NodeId, port: u16) -> SocketAddr {
    SocketAddr::new(addresses_of(node)[usize::from(flow.ipv6)], port)
}
