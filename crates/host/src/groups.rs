//! Groups: the memberships of the host's machines, and the routes of packets to groups.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use hopcast_core::{Buffer, Hook, Instant, Membership};
use hopcast_wire::ethernet::Mac;
use hopcast_wire::ip::{self, Header, Version};

use crate::forward::Station;
use crate::host::Host;
use crate::membership::Filter;

/// The route of packets from one sender to one group through a router, like an entry of the kernel's multicast
/// forwarding cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupRoute {
    /// Number of the interface towards the sender: packets that arrive elsewhere are dropped (reverse-path check).
    /// `None` at the sender itself.
    pub ingress: Option<u32>,
    /// The Ethernet address of the station that forwards them onto that link: copies from other stations there are
    /// dropped. `None` for any station.
    pub upstream: Option<Mac>,
    /// Numbers of the interfaces that lead to members, each once.
    pub egress: Arc<[u32]>,
}

/// A host's multicast routing table.
pub trait GroupRoutes {
    /// The route of packets from `source` to `group`; `None` if there is none. The host keeps the answer until
    /// [`version`](Self::version) changes.
    fn route(&mut self, source: IpAddr, group: IpAddr) -> Option<GroupRoute>;

    /// A number that changes whenever an answer may have changed. It is read for each packet, so it must be cheap.
    fn version(&self) -> u64;

    /// Notes that the host has become a member of a group (`joined`), or has ceased to be one; of the packets of one
    /// source, if it names one.
    fn member(&mut self, group: IpAddr, source: Option<IpAddr>, joined: bool);
}

/// The memberships of a host, and its multicast routing.
#[derive(Default)]
pub(crate) struct Groups {
    joined: BTreeMap<IpAddr, Vec<JoinedGroup>>,
    routes: Option<GroupRouteCache>,
}

/// One machine's membership in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct JoinedGroup {
    above: u32,
    interface: Option<u32>,
    source: Option<IpAddr>,
}

impl JoinedGroup {
    fn admits(&self, source: IpAddr, interface: Option<u32>) -> bool {
        // The host's own packets have no ingress.
        let here = interface.is_none() || self.interface.is_none() || self.interface == interface;
        here && self.source.is_none_or(|only| only == source)
    }
}

impl Groups {
    pub(crate) fn set_routes(&mut self, routes: Box<dyn GroupRoutes>) {
        self.routes = Some(GroupRouteCache::new(routes));
    }

    /// Notes that the machine on `Above(above)` joins or leaves; a repetition has no effect.
    pub(crate) fn change(&mut self, above: u32, membership: Membership) {
        let Membership { group, source, interface, joined } = membership;
        let before = self.wanted(group, source);
        let entry = JoinedGroup { above, interface, source };
        let members = self.joined.entry(group).or_default();
        members.retain(|member| *member != entry);
        if joined {
            members.push(entry);
        } else if members.is_empty() {
            self.joined.remove(&group);
        }
        let after = self.wanted(group, source);
        if before != after
            && let Some(cache) = &mut self.routes
        {
            cache.routes.member(group, source, after);
        }
    }

    /// Whether a machine has joined a group with exactly this source (`None` for any).
    fn wanted(&self, group: IpAddr, source: Option<IpAddr>) -> bool {
        self.joined.get(&group).is_some_and(|members| members.iter().any(|member| member.source == source))
    }

    /// The packets of a group that the host wants of an interface.
    pub(crate) fn filter(&self, group: IpAddr, interface: u32) -> Filter {
        let members = self.joined.get(&group).into_iter().flatten();
        let here = members.filter(|member| member.interface.is_none_or(|only| only == interface));
        here.map(|member| member.source).collect()
    }

    /// Whether a machine has joined a group on an interface, of whatever source.
    pub(crate) fn is_joined(&self, group: IpAddr, interface: u32) -> bool {
        let mut members = self.joined.get(&group).into_iter().flatten();
        members.any(|member| member.interface.is_none_or(|only| only == interface))
    }

    /// The groups that machines have joined.
    pub(crate) fn joined(&self) -> impl Iterator<Item = IpAddr> {
        self.joined.keys().copied()
    }

    /// Whether a packet to a group that arrived on an interface is for a machine of this host.
    pub(crate) fn admits(&self, group: IpAddr, source: IpAddr, interface: Option<u32>) -> bool {
        let members = self.joined.get(&group).map_or(&[][..], Vec::as_slice);
        is_all_hosts(group) || members.iter().any(|member| member.admits(source, interface))
    }

    /// Whether such a packet is for the machine on `Above(above)`.
    fn admits_at(&self, above: u32, group: IpAddr, source: IpAddr, interface: Option<u32>) -> bool {
        let members = self.joined.get(&group).map_or(&[][..], Vec::as_slice);
        let own = members.iter().filter(|member| member.above == above);
        is_all_hosts(group) || own.into_iter().any(|member| member.admits(source, interface))
    }
}

impl Host {
    /// Sets the multicast routes of the host's own packets to groups and of those that it forwards. Without them, a
    /// packet to a group is sent to the one next hop that [`Routes`](crate::Routes) names for the group, and none is
    /// forwarded.
    pub fn set_group_routes(&mut self, routes: Box<dyn GroupRoutes>) {
        self.groups.set_routes(routes);
    }

    /// Whether a datagram to `group` is for the machine on `Above(above)`.
    pub(crate) fn is_for(&self, above: u32, header: &Header, ingress: Option<u32>) -> bool {
        let group = header.destination;
        is_broadcast(group) || self.groups.admits_at(above, group, header.source, ingress)
    }

    /// Sends a packet of the host's own to a group: on one interface, or by the group's route; and to itself, if it is
    /// a member. A hook for such packets comes first, unless it is the one that sends.
    pub(crate) fn send_to_group(
        &mut self,
        now: Instant,
        packet: Buffer,
        (source, group): (IpAddr, IpAddr),
        interface: Option<u32>,
    ) {
        if interface.is_none()
            && group.is_multicast()
            && !is_link_scope(group)
            && let Some(above) = self.bindings.hooked_by(Hook::OwnToGroup, self.loopback_from)
        {
            return self.hand_to_hook(now, above, packet, None);
        }
        if group.is_multicast() && self.groups.admits(group, source, None) && !is_all_hosts(group) {
            self.loopback.push_back(packet.clone());
        }
        if let Some(interface) = interface {
            if interface as usize >= self.config.interfaces.len() {
                self.counters.unsendable += 1;
                return;
            }
            self.counters.originated += 1;
            return self.send_copies(packet, group, &[interface]);
        }
        match self.group_route(source, group).map(|route| route.egress.clone()) {
            Some(egress) => {
                self.counters.originated += 1;
                self.send_copies(packet, group, &egress);
            }
            None => self.send_by_route(now, packet, group),
        }
    }

    /// Forwards a packet to a group with its hop limit decremented: a copy on each of the interfaces, which lead to
    /// members.
    pub(crate) fn forward_to_group(&mut self, mut packet: Buffer, header: &Header, egress: &[u32]) {
        if is_link_scope(header.destination) {
            return packet.recycle();
        }
        if !ip::decrement_hop_limit(&mut packet) {
            // RFC 1112 section 7.2: no error is sent.
            self.counters.hop_limit_exceeded += 1;
            return packet.recycle();
        }
        self.counters.forwarded += 1;
        self.send_copies(packet, header.destination, egress);
    }

    /// Puts a copy of a packet on each interface, to every station there that listens to the group.
    pub(crate) fn send_copies(&mut self, packet: Buffer, group: IpAddr, egress: &[u32]) {
        let version = Version::of(group);
        let Some((&last, others)) = egress.split_last() else { return packet.recycle() };
        for &interface in others {
            self.send_copy(packet.clone(), version, Station::Group(group), interface);
        }
        self.send_copy(packet, version, Station::Group(group), last);
    }

    fn send_copy(&mut self, packet: Buffer, version: Version, to: Station, interface: u32) {
        let mtu = self.config.interfaces.get(interface as usize).map(|interface| interface.mtu as usize);
        match mtu {
            Some(mtu) if packet.len() <= mtu => {
                self.counters.group_copies += 1;
                self.transmit(packet, version, to, interface);
            }
            // RFC 1112 section 7.2, RFC 4443 section 2.4: no error is sent about what is for a group.
            Some(_) => self.counters.too_big += 1,
            None => self.counters.wrong_items += 1,
        }
    }

    /// The route of packets from a sender to a group through this host.
    pub(crate) fn group_route(&mut self, source: IpAddr, group: IpAddr) -> Option<&GroupRoute> {
        self.groups.routes.as_mut()?.route(source, group)
    }
}

/// The answers of [`GroupRoutes`], kept until its version changes.
struct GroupRouteCache {
    routes: Box<dyn GroupRoutes>,
    version: u64,
    /// The last answer: consecutive packets mostly take the same route.
    last: Option<((IpAddr, IpAddr), Option<GroupRoute>)>,
    known: BTreeMap<(IpAddr, IpAddr), Option<GroupRoute>>,
}

/// Maximum number of pairs of sender and group whose routes a host keeps, each of 100 bytes. Chosen: with more, packets
/// of invented senders fill more memory; with fewer, a router of many senders looks routes up again.
const MAX_KNOWN: usize = 4096;

impl GroupRouteCache {
    fn new(routes: Box<dyn GroupRoutes>) -> Self {
        Self { version: routes.version(), routes, last: None, known: BTreeMap::new() }
    }

    fn route(&mut self, source: IpAddr, group: IpAddr) -> Option<&GroupRoute> {
        let version = self.routes.version();
        if version != self.version {
            self.version = version;
            self.known.clear();
            self.last = None;
        }
        if self.last.as_ref().is_none_or(|(last, _)| *last != (source, group)) {
            if self.known.len() >= MAX_KNOWN {
                self.known.clear();
            }
            let routes = &mut self.routes;
            let route = self.known.entry((source, group)).or_insert_with(|| routes.route(source, group));
            self.last = Some(((source, group), route.clone()));
        }
        self.last.as_ref().and_then(|(_, route)| route.as_ref())
    }
}

/// Whether an address is a multicast or broadcast address.
pub(crate) fn is_group(address: IpAddr) -> bool {
    address.is_multicast() || is_broadcast(address)
}

pub(crate) fn is_broadcast(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if address.is_broadcast())
}

/// The groups that every host is a member of: 224.0.0.1 (RFC 1112 section 4), ff01::1 and ff02::1 (RFC 4291 section
/// 2.7.1).
fn is_all_hosts(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets() == [224, 0, 0, 1],
        IpAddr::V6(group) => matches!(group.segments(), [0xff01 | 0xff02, 0, 0, 0, 0, 0, 0, 1]),
    }
}

/// Whether a group's packets stay on their link: 224.0.0.0/24 (RFC 5771 section 4), and IPv6's scopes of interface and
/// link (RFC 4291 section 2.7).
pub(crate) fn is_link_scope(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => matches!(group.octets(), [224, 0, 0, _]),
        IpAddr::V6(group) => group.segments()[0] & 0xf <= 2,
    }
}
