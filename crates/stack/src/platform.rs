//! A node being built: its machines, and the platform below them: a simulated host, or the kernel of a real one.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::{Index, IndexMut, Range};
use std::rc::Rc;

use hopcast_core::plug::{DevicePlug, FramesPlug, HookPlug, Plug};
use hopcast_core::{Assembly, Machine, Port, Shared, Slot, Stream};
use hopcast_host::pim::GroupTable;
use hopcast_host::{BindError, Hook, Host, Interface, NeighbourConfig, Ping, PingConfig, membership};

use crate::error::Cause;

use crate::network::{Below, NodeGroups, NodeLayers, NodeRoutes, NodeServices, PlacedService};
use crate::network::{
    GlobalRoutes, HOP_LIMIT, Hop, HostInterface, Network, NetworkPlan, NodeId, ServiceSpec, interface_name,
};
use crate::service::{
    GroupEgresses, GroupForwarder, HookChain, MulticastRole, OnKernel, Restartable, ServiceRoutes,
    ServiceStatus,
};

// Numbers of IP's protocols: RFC 9293, RFC 792, RFC 4443.

const TCP: u8 = 6;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// The groups of a link that its multicast routers listen to: all routers, PIM's, and in version 3 of IGMP and 2 of MLD
/// those that reports are sent to (RFC 3376 section 4.2.14, RFC 3810 section 5.2.14, RFC 7761 section 4.9).
const ROUTERS_GROUPS: [IpAddr; 6] = [
    IpAddr::V4(Ipv4Addr::new(224, 0, 0, 2)),
    IpAddr::V4(Ipv4Addr::new(224, 0, 0, 13)),
    IpAddr::V4(Ipv4Addr::new(224, 0, 0, 22)),
    IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2)),
    IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x0d)),
    IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16)),
];

/// The port that a machine is attached to.
#[derive(Clone, Copy, Debug)]
pub enum LowerPort {
    /// This port of the node's platform.
    Platform(u32),
    /// A port of another machine of the node.
    Machine(Slot, Port),
}

impl LowerPort {
    /// The first upper port of a machine.
    pub const fn above(slot: Slot) -> Self {
        Self::Machine(slot, Port::Above(0))
    }
}

/// A machine that has been put on a node.
#[derive(Clone, Debug)]
pub struct PlacedMachine {
    /// The name before its counters: a layer's at an end, a node's between the ends.
    pub name: String,
    /// The node.
    pub node: NodeId,
    /// Its place in the node's assembly.
    pub slot: Slot,
}

/// A node being built.
pub struct NodeBuilder {
    pub(crate) assembly: Assembly,
    pub(crate) platform: Platform,
    /// The hooks of the kernel, each with the machines that share it.
    chains: Vec<(Vec<Hook>, Slot, Shared<HookChain>)>,
    /// What its services and deliveries may look up.
    pub(crate) routes: Rc<dyn ServiceRoutes>,
}

/// The nodes whose machines are built here: all of a virtual world, or the one of a process in a live run.
pub struct BuiltNodes {
    first: NodeId,
    nodes: Vec<NodeBuilder>,
}

impl BuiltNodes {
    /// All nodes of a network, in their order.
    pub const fn all(nodes: Vec<NodeBuilder>) -> Self {
        Self { first: 0, nodes }
    }

    /// One node of a network.
    pub fn only(node: NodeId, builder: NodeBuilder) -> Self {
        Self { first: node, nodes: vec![builder] }
    }

    /// The numbers of the nodes.
    pub fn range(&self) -> Range<NodeId> {
        self.first..self.first + self.nodes.len()
    }

    /// Whether machines are attached to the kernel, which they are at all nodes or at none.
    pub fn is_on_kernel(&self) -> bool {
        self.nodes.first().is_some_and(|node| matches!(node.platform, Platform::Kernel(_)))
    }

    /// Puts a machine on a simulated host whose messages go as echo requests and come back with the answers; says its
    /// place.
    ///
    /// # Errors
    /// The identifier of the requests is another machine's, or ICMP is the kernel's.
    pub fn put_ping(
        &mut self,
        node: NodeId,
        config: PingConfig,
        messages: Box<dyn Machine>,
    ) -> Result<Slot, Cause> {
        let builder = &mut self[node];
        let Platform::Virtual(host) = &mut builder.platform else { return Err(Cause::OnKernel) };
        let replies = host.echo_replies(config.identifier, config.source.is_ipv6())?;
        let ping = builder.assembly.add(Box::new(Ping::new(config)));
        builder.wire((ping, Port::Below(0)), LowerPort::Platform(replies));
        let slot = builder.assembly.add(messages);
        builder.wire((slot, Port::Below(0)), LowerPort::above(ping));
        Ok(slot)
    }

    /// The builders, in the order of the nodes.
    pub fn into_builders(self) -> Vec<NodeBuilder> {
        self.nodes
    }
}

/// # Panics
/// At a node that is not built here, which whoever puts machines on nodes has to check before.
impl Index<NodeId> for BuiltNodes {
    type Output = NodeBuilder;

    fn index(&self, node: NodeId) -> &NodeBuilder {
        &self.nodes[node - self.first]
    }
}

/// # Panics
/// As [`index`](Self::index).
impl IndexMut<NodeId> for BuiltNodes {
    fn index_mut(&mut self, node: NodeId) -> &mut NodeBuilder {
        &mut self.nodes[node - self.first]
    }
}

/// The platform below a node's machines. Each of its ports has a number.
pub(crate) enum Platform {
    /// A host in virtual time.
    Virtual(Box<VirtualHost>),
    /// The kernel.
    Kernel(KernelHost),
}

/// A kernel, being plugged into.
pub(crate) struct KernelHost {
    /// The plug of each port.
    pub(crate) plugs: Vec<Plug>,
    /// The names of its interfaces, by their numbers.
    interfaces: Vec<String>,
}

/// A host in virtual time, being built.
pub(crate) struct VirtualHost {
    host: Host,
    /// Wires to the host, for when it is added: (above port of the host, port of a machine).
    wires: Vec<(u32, (Slot, Port))>,
    /// The host's next `Above` port.
    above: u32,
    attachments: Vec<Hop>,
    /// The port below each interface of the host.
    below: Vec<FramePort>,
    services: Vec<PlacedMachine>,
    statuses: Vec<ServiceStatus>,
}

/// A port that carries frames, towards the network.
#[derive(Clone, Copy)]
enum FramePort {
    /// The node's attachment of this number.
    Attachment(u32),
    /// An upper port of a service.
    Service(Slot, Port),
}

/// A node of the virtual world, built: `Below(i)` of its assembly is its attachment i.
pub struct VirtualNode {
    /// The host and all that is attached to it.
    pub assembly: Assembly,
    /// The host.
    pub host: Slot,
    /// For each attachment, the link and its number there.
    pub attachments: Vec<Hop>,
    /// The machines of services.
    pub services: Vec<PlacedMachine>,
    /// The state of each of them.
    pub statuses: Vec<ServiceStatus>,
}

/// A node whose machines are attached to the kernel, built: `Below(i)` of its assembly is plug i.
pub struct KernelNode {
    /// The machines.
    pub assembly: Assembly,
    /// The plug of each port below.
    pub plugs: Vec<Plug>,
}

impl NodeBuilder {
    /// A node of the virtual world; its services draw from `random`.
    pub fn simulated(
        network: Network<'_>,
        plan: &NetworkPlan,
        node: NodeId,
        routes: &Rc<RefCell<GlobalRoutes>>,
        random: Stream,
    ) -> Self {
        let attachments = plan.interfaces(node).to_vec();
        let layers = plan.layers().node(node);
        let config = host_config(network, plan, node);
        let routes = NodeRoutes { node, routes: routes.clone() };
        let mut assembly = Assembly::new();
        let table = GroupTable::new(config.addresses.clone());
        let role = |placed: &PlacedService| network.services[placed.service].layer.settings().multicast();
        let is_router = layers
            .services
            .iter()
            .any(|placed| matches!(role(placed), Some(MulticastRole::Routes | MulticastRole::Designated)));
        let of_groups = is_router.then(|| table.clone());
        let groups = NodeGroups::new(routes.clone(), of_groups, config.interfaces.len());
        let of_services: Rc<dyn ServiceRoutes> = Rc::new(NodeServices::new(routes.clone(), table, random));
        let (services, statuses, below) =
            put_services(&mut assembly, network, layers, (node, &config, &of_services));
        let mut host = Host::new(config, Box::new(routes));
        host.set_group_routes(Box::new(groups));
        let routes_groups = layers.services.iter().any(|placed| role(placed).is_some());
        for (number, _) in (0..).zip(&layers.host).filter(|&(_, &place)| layers.is_of_mesh(place)) {
            host.tell_memberships(number, ROUTERS_GROUPS.into_iter().filter(|_| routes_groups));
        }
        let mut host =
            VirtualHost { host, wires: Vec::new(), above: 0, attachments, below, services, statuses };
        for (placed, service) in layers.services.iter().enumerate() {
            let hooks = network.services[service.service].layer.settings().hooks();
            if !hooks.is_empty() {
                host.hook(hooks, host.services[placed].slot);
            }
        }
        let platform = Platform::Virtual(Box::new(host));
        Self { assembly, platform, chains: Vec::new(), routes: of_services }
    }

    /// Turns on reports of memberships by IGMP and MLD on a node of the virtual world; a kernel makes its own.
    pub fn report_memberships(&mut self, random: Stream) {
        if let Platform::Virtual(node) = &mut self.platform {
            node.host.report_memberships(membership::Config::default(), random);
        }
    }

    /// Turns on the resolution of neighbours' Ethernet addresses on a node of the virtual world; a kernel has its own.
    pub fn resolve_neighbours(&mut self, random: Stream) {
        if let Platform::Virtual(node) = &mut self.platform {
            node.host.resolve_neighbours(NeighbourConfig::default(), random);
        }
    }

    /// A node whose machines are attached to the kernel; its services draw from `random`. The kernel's routes are those
    /// of the plan, which services look up here.
    pub fn on_kernel(
        plan: &NetworkPlan,
        node: NodeId,
        routes: &Rc<RefCell<GlobalRoutes>>,
        random: Stream,
    ) -> Self {
        let routes = NodeRoutes { node, routes: routes.clone() };
        let table = GroupTable::new(plan.addresses().all(node));
        let routes = Rc::new(NodeServices::new(routes, table, random));
        let interfaces = plan.host_interfaces(node).map(|interface| interface.name.to_owned()).collect();
        let platform = Platform::Kernel(KernelHost { plugs: Vec::new(), interfaces });
        Self { assembly: Assembly::new(), platform, chains: Vec::new(), routes }
    }

    /// Puts the services of a node on its kernel, and returns their machines and the state of each. Those that are
    /// attached to the host take packets out of it; those to groups that they hand back leave by these routes, and
    /// groups that are left to services by what such a service finds. The kernel gives up the interfaces that other
    /// services are attached to, and what these make of them are TAP devices of the same names.
    pub fn put_services_on_kernel(
        &mut self,
        network: Network<'_>,
        plan: &NetworkPlan,
        node: NodeId,
        (groups, left_to_services): (&GroupEgresses, &[IpAddr]),
    ) -> (Vec<PlacedMachine>, Vec<ServiceStatus>) {
        let (mut placed, mut statuses): (Vec<PlacedMachine>, _) = (Vec::new(), Vec::new());
        if matches!(self.platform, Platform::Virtual(_)) {
            return (placed, statuses);
        }
        let layers = plan.layers().node(node);
        let host = host_config(network, plan, node);
        for (place, PlacedService { service, takes }) in layers.services.iter().enumerate() {
            let service = &network.services[*service];
            let settings = service.layer.settings();
            let changes = service.changes_at(node);
            let lower = layers.lower(below_service(layers, service, takes), network.links);
            let attached = (lower, layers.user(place));
            let machine = Restartable::new(&service.layer, changes, &host, attached, self.routes.clone());
            let machine = Shared::new(machine);
            statuses.push(ServiceStatus::new(machine.clone()));
            let machine = Box::new(machine);
            if settings.hooks().is_empty() {
                let slot = self.assembly.add(machine);
                for (port, &taken) in (0..).zip(takes) {
                    self.wire_frames((slot, Port::Below(port)), below(layers, &placed, taken));
                }
                placed.push(PlacedMachine { name: service.name.clone(), node, slot });
                continue;
            }
            let (left, table) = (left_to_services.to_vec(), Box::new(self.routes.group_table()));
            let (machine, hooks): (Box<dyn Machine>, _) = match settings.multicast() {
                Some(MulticastRole::Routes) => {
                    let hooks = GroupForwarder::hooks(settings.hooks(), &left);
                    (Box::new(GroupForwarder::new(machine, table, left)), hooks)
                }
                Some(MulticastRole::Reports | MulticastRole::Designated) | None => {
                    (Box::new(OnKernel::new(machine, groups.clone(), (left, table))), settings.hooks())
                }
            };
            let slot = self.assembly.add(machine);
            let hook = self.hook(hooks, true);
            self.wire((slot, Port::Below(0)), hook);
            placed.push(PlacedMachine { name: service.name.clone(), node, slot });
        }
        attach_queriers(&mut self.assembly, network, layers, &placed);
        self.plug_made_interfaces(plan, (node, &host, layers), &placed);
        (placed, statuses)
    }

    /// Wires a port of a service to what is below it on a kernel.
    fn wire_frames(&mut self, end: (Slot, Port), below: FramePort) {
        match (below, &mut self.platform) {
            (FramePort::Service(slot, upper), _) => self.assembly.wire((slot, upper), end),
            (FramePort::Attachment(number), Platform::Kernel(kernel)) => {
                let plug = add(&mut kernel.plugs, Plug::Interface(interface_name(number)));
                self.assembly.expose(end, Port::Below(plug));
            }
            (FramePort::Attachment(_), Platform::Virtual(_)) => {}
        }
    }

    /// Plugs the interfaces that services make for the host into its kernel. Their addresses and routes are set there
    /// by whoever sets up the network.
    fn plug_made_interfaces(
        &mut self,
        plan: &NetworkPlan,
        (node, host, layers): (NodeId, &hopcast_host::Config, &NodeLayers),
        placed: &[PlacedMachine],
    ) {
        let Platform::Kernel(kernel) = &mut self.platform else { return };
        let interfaces = plan.host_interfaces(node).zip(&host.interfaces).zip(&layers.host);
        for ((HostInterface { name, mac, .. }, Interface { mtu, .. }), &place) in interfaces {
            if let FramePort::Service(slot, upper) = below(layers, placed, place) {
                let (addresses, routes) = (Vec::new(), Vec::new());
                let (name, reports_memberships) = (name.to_owned(), layers.is_of_mesh(place));
                let device = DevicePlug { name, addresses, routes, mtu: *mtu, reports_memberships };
                let plug = add(&mut kernel.plugs, Plug::Tap(mac, device));
                self.assembly.expose((slot, upper), Port::Below(plug));
            }
        }
    }

    /// The plugs of machines that are attached to the kernel, so far.
    pub fn plugs(&self) -> &[Plug] {
        match &self.platform {
            Platform::Kernel(kernel) => &kernel.plugs,
            Platform::Virtual(_) => &[],
        }
    }

    /// Packets that hooks take out of the host: behind those of machines before, but of a service on a kernel before
    /// those of all others.
    pub(crate) fn hook(&mut self, hooks: Vec<Hook>, is_service: bool) -> LowerPort {
        let KernelHost { plugs, interfaces } = match &mut self.platform {
            Platform::Virtual(host) => return LowerPort::Platform(host.hooked(hooks)),
            Platform::Kernel(kernel) => kernel,
        };
        let known = self.chains.iter().find(|(selected, ..)| *selected == hooks);
        let (slot, chain) = if let Some((_, slot, chain)) = known {
            (*slot, chain.clone())
        } else {
            let chain = Shared::new(HookChain::default());
            let slot = self.assembly.add(Box::new(chain.clone()));
            let interfaces = interfaces.clone();
            let plug = add(plugs, Plug::Hook(HookPlug { hooks: hooks.clone(), interfaces }));
            self.assembly.expose((slot, Port::Below(0)), Port::Below(plug));
            self.chains.push((hooks, slot, chain.clone()));
            (slot, chain)
        };
        let port = chain.get_mut().add(is_service);
        LowerPort::Machine(slot, port)
    }

    /// Wires a port of a machine to the port below it.
    pub(crate) fn wire(&mut self, end: (Slot, Port), lower: LowerPort) {
        match (lower, &mut self.platform) {
            (LowerPort::Machine(slot, port), _) => self.assembly.wire((slot, port), end),
            (LowerPort::Platform(number), Platform::Virtual(host)) => host.wires.push((number, end)),
            (LowerPort::Platform(number), Platform::Kernel(_)) => {
                self.assembly.expose(end, Port::Below(number));
            }
        }
    }

    /// The node of the virtual world; `None` of one on the kernel.
    pub fn into_virtual(self) -> Option<VirtualNode> {
        let Self { mut assembly, platform: Platform::Virtual(host), .. } = self else { return None };
        let VirtualHost { host, wires, attachments, below, services, statuses, above: _ } = *host;
        let host = assembly.add(Box::new(host));
        for (above, end) in wires {
            assembly.wire((host, Port::Above(above)), end);
        }
        for (interface, below) in (0..).zip(below) {
            match below {
                FramePort::Service(below, upper) => {
                    assembly.wire((below, upper), (host, Port::Below(interface)));
                }
                FramePort::Attachment(attachment) => {
                    assembly.expose((host, Port::Below(interface)), Port::Below(attachment));
                }
            }
        }
        Some(VirtualNode { assembly, host, attachments, services, statuses })
    }

    /// The node on the kernel; `None` of one of the virtual world.
    pub fn into_kernel(self) -> Option<KernelNode> {
        match self.platform {
            Platform::Kernel(kernel) => Some(KernelNode { assembly: self.assembly, plugs: kernel.plugs }),
            Platform::Virtual(_) => None,
        }
    }
}

/// A node's host.
fn host_config(network: Network<'_>, plan: &NetworkPlan, node: NodeId) -> hopcast_host::Config {
    let (layers, addresses) = (plan.layers().node(node), plan.addresses());
    let interface = |(number, &place): (u32, &usize)| {
        let interface = &layers.interfaces[place];
        let Hop { link, attachment } = interface.hop;
        let [v4, v6] = [false, true].map(|ipv6| addresses.on(node, number, ipv6));
        Interface {
            mac: NetworkPlan::mac(link, attachment),
            mtu: layers.mtu(place, network.links),
            v4: if let IpAddr::V4(own) = v4 { Some(own) } else { None },
            v6: if let IpAddr::V6(own) = v6 { Some(own) } else { None },
        }
    };
    hopcast_host::Config {
        addresses: addresses
            .all(node)
            .into_iter()
            .chain(network.nodes[node].claims.iter().copied())
            .collect(),
        interfaces: (0..).zip(&layers.host).map(interface).collect(),
        forwarding: true,
        hop_limit: HOP_LIMIT,
    }
}

/// Puts a node's services on its attachments; returns their machines, the state of each, and what is below each
/// interface of the host: a port of a service, or an attachment.
fn put_services(
    assembly: &mut Assembly,
    network: Network<'_>,
    layers: &NodeLayers,
    (node, host, routes): (NodeId, &hopcast_host::Config, &Rc<dyn ServiceRoutes>),
) -> (Vec<PlacedMachine>, Vec<ServiceStatus>, Vec<FramePort>) {
    let (mut placed, mut statuses): (Vec<PlacedMachine>, _) = (Vec::new(), Vec::new());
    for (place, PlacedService { service, takes }) in layers.services.iter().enumerate() {
        let service = &network.services[*service];
        let changes = service.changes_at(node);
        let lower = layers.lower(below_service(layers, service, takes), network.links);
        let attached = (lower, layers.user(place));
        let machine = Restartable::new(&service.layer, changes, host, attached, routes.clone());
        let machine = Shared::new(machine);
        let slot = assembly.add(Box::new(machine.clone()));
        statuses.push(ServiceStatus::new(machine));
        for (port, &taken) in (0..).zip(takes) {
            match below(layers, &placed, taken) {
                FramePort::Service(below, upper) => assembly.wire((below, upper), (slot, Port::Below(port))),
                FramePort::Attachment(attachment) => {
                    assembly.expose((slot, Port::Below(port)), Port::Below(attachment));
                }
            }
        }
        placed.push(PlacedMachine { name: service.name.clone(), node, slot });
    }
    attach_queriers(assembly, network, layers, &placed);
    let below = layers.host.iter().map(|&place| below(layers, &placed, place)).collect();
    (placed, statuses, below)
}

/// The places of the interfaces below a service: those that it is attached to, or all of its host's.
fn below_service<'a>(layers: &'a NodeLayers, service: &ServiceSpec, takes: &'a [usize]) -> &'a [usize] {
    if service.layer.row().on_host { &layers.host } else { takes }
}

/// The port below an interface of a node, whose services below it have been placed.
fn below(layers: &NodeLayers, placed: &[PlacedMachine], place: usize) -> FramePort {
    match layers.interfaces[place].below {
        Below::Attachment(number) => FramePort::Attachment(number),
        Below::Service(service, port) => FramePort::Service(placed[service].slot, Port::Above(port)),
    }
}

/// Attaches the services that report members to the one that brings groups' packets to them, if there is one.
fn attach_queriers(
    assembly: &mut Assembly,
    network: Network<'_>,
    layers: &NodeLayers,
    placed: &[PlacedMachine],
) {
    let with = |role: MulticastRole| {
        let all = layers.services.iter().zip(placed);
        let has = move |one: &PlacedService| {
            network.services[one.service].layer.settings().multicast() == Some(role)
        };
        all.filter(move |(one, _)| has(one)).map(|(_, machine)| machine.slot)
    };
    for (role, members) in [(MulticastRole::Routes, 0), (MulticastRole::Designated, 1)] {
        let Some(router) = with(role).next() else { continue };
        for (port, querier) in (0..).zip(with(MulticastRole::Reports)) {
            assembly.wire((querier, Port::Above(members)), (router, Port::Above(port)));
        }
    }
}

impl Platform {
    /// Datagrams to an address of the node.
    pub(crate) fn udp(&mut self, local: SocketAddr) -> Result<u32, BindError> {
        match self {
            Self::Virtual(host) => host.bind(|host, above| host.bind_udp(above, local.port())),
            Self::Kernel(kernel) => Ok(add(&mut kernel.plugs, Plug::Udp(local))),
        }
    }

    /// Packets of a protocol of IP: whole ones of a host in virtual time, datagrams to and from `local` on the kernel.
    pub(crate) fn ip_protocol(&mut self, protocol: u8, local: IpAddr) -> Result<u32, BindError> {
        match self {
            Self::Virtual(host) => host.bind(|host, above| host.bind_protocol(above, protocol, None)),
            Self::Kernel(kernel) => Ok(add(&mut kernel.plugs, Plug::Raw(protocol, local))),
        }
    }

    /// Frames of one EtherType on an interface, to any address.
    pub(crate) fn frames(&mut self, interface: u32, ether_type: u16) -> Result<u32, BindError> {
        match self {
            Self::Virtual(host) => {
                host.bind(|host, above| host.bind_frames(above, interface, ether_type, true))
            }
            Self::Kernel(KernelHost { plugs, interfaces }) => {
                let named = interfaces.get(interface as usize).cloned();
                let interface = named.unwrap_or_else(|| interface_name(interface));
                Ok(add(plugs, Plug::Frames(FramesPlug { interface, ether_type, promiscuous: true })))
            }
        }
    }
}

impl VirtualHost {
    /// Attaches a service to the host by hooks, which take packets out of it.
    fn hook(&mut self, hooks: Vec<Hook>, service: Slot) {
        let above = self.hooked(hooks);
        self.wires.push((above, (service, Port::Below(0))));
    }

    fn hooked(&mut self, hooks: Vec<Hook>) -> u32 {
        let above = self.above;
        self.above += 1;
        hooks.into_iter().for_each(|hook| self.host.hook(above, hook));
        above
    }

    fn bind(&mut self, bind: impl FnOnce(&mut Host, u32) -> Result<(), BindError>) -> Result<u32, BindError> {
        let above = self.above;
        self.above += 1;
        bind(&mut self.host, above)?;
        Ok(above)
    }

    /// TCP's packets to ports of the node.
    pub(crate) fn tcp(&mut self, ports: impl IntoIterator<Item = u16>) -> Result<u32, BindError> {
        let mut ports = ports.into_iter();
        self.bind(|host, above| ports.try_for_each(|port| host.bind_protocol(above, TCP, Some(port))))
    }

    /// The answers to echo requests with an identifier, and the errors about them.
    pub(crate) fn echo_replies(&mut self, identifier: u16, ipv6: bool) -> Result<u32, BindError> {
        let protocol = if ipv6 { ICMPV6 } else { ICMP };
        self.bind(|host, above| host.bind_protocol(above, protocol, Some(identifier)))
    }

    /// TCP's packets that the node would forward.
    pub(crate) fn tcp_in_transit(&mut self) -> u32 {
        let above = self.above;
        self.above += 1;
        self.host.hook(above, Hook::Protocol(TCP));
        above
    }
}

/// Adds a plug to those of a kernel; says its number.
pub(crate) fn add(plugs: &mut Vec<Plug>, plug: Plug) -> u32 {
    plugs.push(plug);
    plugs.len() as u32 - 1
}
