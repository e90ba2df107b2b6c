//! A network to be set up on the kernel, as plain data.

use std::net::IpAddr;

use hopcast_core::Instant;
use hopcast_link::{Attachment, Change, Link};
use hopcast_stack::network::{Prefix, interface_name};
use hopcast_twin::capture::LinkType;

/// Maximum length of a frame of a TAP, in bytes: the longest IP packet and Ethernet's header.
pub(crate) const MAX_FRAME: usize = 65_535 + 14;

/// A network of nodes and links, with its scheduled changes.
#[derive(Default)]
pub struct NetworkLayout {
    /// The nodes.
    pub nodes: Vec<NodeLayout>,
    /// The links.
    pub links: Vec<LinkLayout>,
    /// Changes of links.
    pub changes: Vec<Scheduled<LinkChange>>,
    /// Changes of routes.
    pub reroutes: Vec<Scheduled<Reroute>>,
    /// The interfaces that are captured or recorded, in the order of the capture and of the log.
    pub captured: Vec<Captured>,
}

/// An interface whose frames or packets are captured, or recorded in the log of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// The number of the node.
    pub node: usize,
    /// The interface's name there.
    pub name: String,
    /// The kind of packets that it carries.
    pub carries: LinkType,
    /// Whether its link captures it; otherwise a packet socket does.
    pub by_link: bool,
    /// Whether the capture has it, if there is one; a log has all of them.
    pub in_capture: bool,
}

/// A node: a network namespace.
#[derive(Clone, Debug, Default)]
pub struct NodeLayout {
    /// Its name, in any characters.
    pub name: String,
    /// All of its addresses; the first one of an IP version is the source of its packets. Addresses that no interface
    /// has are on loopback, and do not depend on an interface.
    pub addresses: Vec<IpAddr>,
    /// Its attachments to links, called `eth0`, `eth1` and so on.
    pub interfaces: Vec<InterfaceLayout>,
    /// The interfaces that its services make. The kernel has those of `interfaces` that are not taken, and then these:
    /// so its interfaces are numbered.
    pub made: Vec<MadeInterface>,
    /// Its routes to other nodes.
    pub routes: Vec<RouteLayout>,
    /// Whether its interfaces have IPv6 addresses of their links, from which the kernel resolves neighbours and reports
    /// memberships.
    pub link_local: bool,
    /// Its routes of groups at the start. The pairs of source and group are the same throughout the run; a node that
    /// never forwards to groups has none.
    pub group_routes: Vec<GroupRouteLayout>,
    /// The numbers of the interfaces that routes of groups name at some time of the run.
    pub group_interfaces: Vec<u32>,
}

/// An attachment of a node to a link.
#[derive(Clone, Debug, Default)]
pub struct InterfaceLayout {
    /// The number of the link.
    pub link: usize,
    /// Its attachment to the link.
    pub attachment: Attachment,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Maximum length of a packet, in bytes.
    pub mtu: u32,
    /// The node's addresses on it, each with the length of its prefix in bits. The routes to the prefixes are among the
    /// node's.
    pub addresses: Vec<(IpAddr, u8)>,
    /// The addresses of the other hosts of these prefixes with their Ethernet addresses; none where the kernel resolves
    /// them.
    pub neighbours: Vec<(IpAddr, [u8; 6])>,
    /// Whether a service of the node takes its frames, and the kernel none.
    pub is_taken: bool,
}

/// An interface that a service of a node makes: a TAP device whose frames the node's process reads.
#[derive(Clone, Debug, Default)]
pub struct MadeInterface {
    /// Its name.
    pub name: String,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Maximum length of a packet, in bytes.
    pub mtu: u32,
    /// As [`InterfaceLayout::addresses`].
    pub addresses: Vec<(IpAddr, u8)>,
    /// As [`InterfaceLayout::neighbours`].
    pub neighbours: Vec<(IpAddr, [u8; 6])>,
}

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteLayout {
    /// The destinations.
    pub to: Prefix,
    /// The number of the interface among the kernel's.
    pub interface: u32,
    /// The address of the next hop; `None` where the destinations are on the interface's link.
    pub via: Option<IpAddr>,
    /// The Ethernet address of the next hop, which then need not be resolved; `None` where the kernel resolves it.
    pub via_mac: Option<[u8; 6]>,
}

/// The route of packets from one source to one group through a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRouteLayout {
    /// The source.
    pub source: IpAddr,
    /// The group.
    pub group: IpAddr,
    /// The number of the interface on which they arrive; `None` where the source is this node, or cannot be reached.
    pub ingress: Option<u32>,
    /// Whether the source is this node.
    pub own: bool,
    /// The numbers of the interfaces on which copies leave.
    pub egress: Vec<u32>,
}

/// A link.
pub struct LinkLayout {
    /// Its name, for captures and messages.
    pub name: String,
    /// Its model, which delivers or drops each frame.
    pub model: Box<dyn Link + Send>,
    /// The node of each attachment, and the number of its interface.
    pub ends: Vec<(usize, u32)>,
    /// The index of each attachment in [`NetworkLayout::captured`]; `None` if it is not captured.
    pub captured: Vec<Option<usize>>,
}

/// A scheduled event.
#[derive(Clone, Debug)]
pub struct Scheduled<T> {
    /// Its time.
    pub at: Instant,
    /// The event.
    pub what: T,
}

/// A change of a link.
#[derive(Clone, Debug)]
pub struct LinkChange {
    /// The number of the link.
    pub link: usize,
    /// The direction that leaves this attachment; `None` for all.
    pub from: Option<Attachment>,
    /// The change.
    pub change: Change,
}

/// New routes and MTUs for a node.
#[derive(Clone, Debug)]
pub struct Reroute {
    /// The number of the node.
    pub node: usize,
    /// Its routes from now on; `None` where they stay.
    pub tables: Option<NodeRoutes>,
    /// The interfaces whose MTU changes, by number, each with the new one in bytes.
    pub mtus: Vec<(u32, u32)>,
}

/// All routes of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRoutes {
    /// The routes to other nodes.
    pub routes: Vec<RouteLayout>,
    /// The routes of groups.
    pub groups: Vec<GroupRouteLayout>,
}

impl NodeLayout {
    /// The names of its kernel's interfaces, by their numbers.
    pub fn interface_names(&self) -> Vec<String> {
        let attached = (0..).zip(&self.interfaces).filter(|(_, interface)| !interface.is_taken);
        let attached = attached.map(|(number, _)| interface_name(number));
        attached.chain(self.made.iter().map(|made| made.name.clone())).collect()
    }
}

impl NetworkLayout {
    /// Whether a node forwards packets to groups.
    pub fn routes_groups(&self) -> bool {
        self.nodes.iter().any(|node| !node.group_routes.is_empty())
    }

    /// Nodes `n0`, `n1` and so on in a row, joined by a link for each of `models`, with routes between all of them and
    /// interfaces of `mtu` bytes: for benchmarks and tests.
    pub fn chain(models: impl IntoIterator<Item = Box<dyn Link + Send>>, mtu: u32) -> Self {
        let links = models.into_iter().enumerate().map(|(number, model)| LinkLayout {
            name: format!("n{number}-n{}", number + 1),
            model,
            ends: vec![(number, u32::from(number > 0)), (number + 1, 0)],
            captured: vec![None; 2],
        });
        let links: Vec<_> = links.collect();
        let nodes = (0..=links.len()).map(|number| chained(number, links.len(), mtu)).collect();
        Self { nodes, links, ..Self::default() }
    }
}

/// A node of a chain, whose last one is number `last`.
fn chained(number: usize, last: usize, mtu: u32) -> NodeLayout {
    let addresses = |node: usize| -> [IpAddr; 2] {
        let low = node as u16 + 1;
        let [high, low_byte] = low.to_be_bytes();
        [[10, 0, high, low_byte].into(), [0xfd00, 0, 0, 0, 0, 0, 0, low].into()]
    };
    let mac = |link: usize, attachment: usize| [2, attachment as u8, 0, 0, (link >> 8) as u8, link as u8];
    let back = number.checked_sub(1).map(|link| (link, 1));
    let ahead = (number < last).then_some((number, 0));
    let interfaces = [back, ahead].into_iter().flatten();
    let interfaces = interfaces.map(|(link, attachment)| InterfaceLayout {
        link,
        attachment,
        mac: mac(link, attachment),
        mtu,
        ..InterfaceLayout::default()
    });
    let mut routes = Vec::new();
    for to in (0..=last).filter(|&to| to != number) {
        let (interface, via, via_mac) = if to < number {
            (0, number - 1, mac(number - 1, 0))
        } else {
            (u32::from(number > 0), number + 1, mac(number, 1))
        };
        let families = addresses(to).into_iter().zip(addresses(via));
        let route =
            |(to, via)| RouteLayout { to: Prefix::of(to), interface, via: Some(via), via_mac: Some(via_mac) };
        routes.extend(families.map(route));
    }
    NodeLayout {
        name: format!("n{number}"),
        addresses: addresses(number).to_vec(),
        interfaces: interfaces.collect(),
        routes,
        ..NodeLayout::default()
    }
}
