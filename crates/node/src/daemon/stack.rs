//! The machines of the lanes: edges with a tunnel or a proxy on top, and relays.

use std::net::SocketAddr;

use hopcast_core::plug::{Accept, DevicePlug, Plug, TcpPlug};
use hopcast_core::{Assembly, Machine, Pacer, Port, Shared, Slot, Stream};
use hopcast_stack::site::{MemoryShare, SiteEdge, SiteLayer, SiteRelay, Splice, Tunnel};

use super::gate::Gate;
use super::groups::GroupPart;
use super::host::HostPart;
use super::interfaces::Interfaces;
use super::memory::share;
use super::switchboard::Lane;
use super::tcp_access::{Limits, TcpAccess};
use crate::config::{Carrier, Config, Connections, Packets, Relay};
use crate::hello::peer::identity;
use crate::hello::wire::Tag;

/// The assembly's port of the first lane; the ports of plugs are below it. Chosen: more than three plugs for each of
/// the maximum number of carriers.
pub(crate) const LANES: u32 = 1 << 14;
/// Share of a carrier's connections that a server that does not answer may have: one over this number. Chosen; a larger
/// share leaves less to others, a smaller one limits a carrier to one server.
const SERVER_SHARE: u16 = 4;
/// Length of the header of UDP, in bytes (RFC 768).
const UDP_HEADER: u16 = 8;
/// Length of a lane's tag, in bytes.
const TAG: u16 = 1;

/// The machines of a node, their plugs, and their parts of the status.
pub(crate) struct Stack {
    pub(crate) machines: Assembly,
    /// The plugs of the ports. The first is the node's UDP port, which is not the assembly's.
    pub(crate) plugs: Vec<Plug>,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) parts: Vec<Part>,
    pub(crate) groups: Vec<GroupPart>,
    pub(crate) host_parts: Vec<HostPart>,
    pub(super) memory: MemoryShare,
}

/// A carrier or relay in the status: packets or connections, by one route in both directions.
pub(crate) struct Part {
    /// The far site, or the two peers.
    pub(crate) name: String,
    /// The peers through which a far site is reached; empty for a relay.
    pub(crate) via: String,
    pub(crate) tag: Tag,
    pub(crate) relay: bool,
    pub(crate) slots: Vec<Slot>,
    pub(crate) splice: Option<Shared<Splice>>,
    /// The indices of the peers of its route.
    pub(crate) peers: Vec<usize>,
}

impl Part {
    /// Packets to a far site.
    fn new(name: &str, tag: Tag, slots: Vec<Slot>) -> Self {
        Self {
            name: name.to_owned(),
            via: String::new(),
            tag,
            relay: false,
            slots,
            splice: None,
            peers: Vec::new(),
        }
    }

    /// Current number of connections.
    pub(crate) fn streams(&self) -> usize {
        self.splice.as_ref().map_or(0, |splice| splice.get().pairs())
    }
}

impl Stack {
    /// The machines of the node of `config`. Sessions are drawn from `random`, which must differ at each start.
    pub(super) fn new(config: &Config, interfaces: &Interfaces, random: &mut Stream) -> Self {
        let mut stack = Self {
            machines: Assembly::new(),
            plugs: vec![Plug::Udp(config.listen)],
            lanes: Vec::new(),
            parts: Vec::new(),
            groups: Vec::new(),
            host_parts: Vec::new(),
            memory: share(config),
        };
        let datagram = longest_datagram(config);
        for carrier in &config.carriers {
            let before = stack.parts.len();
            if let Some(packets) = &carrier.packets {
                stack.tunnel(carrier, packets, datagram, random);
            }
            if let Some(tcp) = &carrier.tcp {
                stack.proxy(carrier, tcp, config.metrics, datagram, random);
            }
            let via: Vec<&str> = carrier.via.iter().map(|&peer| config.peers[peer].name.as_str()).collect();
            for part in &mut stack.parts[before..] {
                (part.via, part.peers) = (via.join(", "), carrier.via.clone());
            }
        }
        for group in &config.groups {
            stack.group(config, group, datagram, random);
        }
        for relay in &config.relays {
            let [one, other] = relay.between.map(|peer| config.peers[peer].name.as_str());
            stack.relay(relay, &format!("{one} - {other}"), datagram, random);
        }
        stack.host(config, interfaces, random);
        stack
    }

    fn tunnel(&mut self, carrier: &Carrier, packets: &Packets, datagram: u16, random: &mut Stream) {
        let tag = Tag::packets(carrier.channel);
        let edge = self.edge(carrier, (&packets.over, None), tag, datagram, random);
        let mtu = u32::from(datagram - packets.over.transport().overhead());
        let (local, remote) = ends(carrier, tag);
        let tunnel = self.machines.add(Box::new(Tunnel::new(local, remote, mtu)));
        self.machines.wire((tunnel, Port::Below(0)), (edge, Port::Above(0)));
        let gate = self.machines.add(Box::new(Gate::new(packets.from.clone())));
        self.machines.wire((gate, Port::Below(0)), (tunnel, Port::Above(0)));
        self.plug(
            (gate, Port::Above(0)),
            Plug::Tun(DevicePlug {
                name: packets.tun.clone(),
                addresses: packets.addresses.clone(),
                routes: packets.routes.clone(),
                mtu,
                reports_memberships: false,
            }),
        );
        let slots = vec![edge, tunnel, gate];
        self.parts.push(Part::new(&carrier.to, tag, slots));
    }

    fn proxy(
        &mut self,
        carrier: &Carrier,
        tcp: &Connections,
        metrics: Option<SocketAddr>,
        datagram: u16,
        random: &mut Stream,
    ) {
        let tag = Tag::tcp(carrier.channel);
        let edge = self.edge(carrier, (&tcp.over, Some(tcp.streams)), tag, datagram, random);
        let splice = Shared::new(Splice::new());
        let spliced = self.machines.add(Box::new(splice.clone()));
        let tcp_access = self.machines.add(Box::new(TcpAccess::new(Limits {
            reach: tcp.reach.clone(),
            own: metrics,
            from: tcp.from.clone(),
            as_client: tcp.as_client,
            per_source: tcp.per_source,
            unanswered: tcp.streams.div_ceil(SERVER_SHARE),
        })));
        self.machines.wire((spliced, Port::Below(1)), (edge, Port::Above(0)));
        self.machines.wire((spliced, Port::Below(0)), (tcp_access, Port::Above(0)));
        let to = tcp.take.clone();
        let accept = match to.is_empty() {
            true => vec![None],
            false => vec![Some(Accept::LocalOutput { to: to.clone() }), Some(Accept::Forwarded { to })],
        };
        for (side, accept) in accept.into_iter().enumerate() {
            let plug = TcpPlug {
                accept,
                congestion: tcp.congestion.clone(),
                spoof: tcp.as_client,
                connect_timeout: Some(tcp.connect_timeout),
                ..TcpPlug::default()
            };
            self.plug((tcp_access, Port::Below(side as u32)), Plug::Tcp(plug));
        }
        let slots = vec![edge, spliced, tcp_access];
        self.parts.push(Part { splice: Some(splice), ..Part::new(&carrier.to, tag, slots) });
    }

    fn edge(
        &mut self,
        carrier: &Carrier,
        (over, streams): (&SiteLayer, Option<u16>),
        tag: Tag,
        datagram: u16,
        random: &mut Stream,
    ) -> Slot {
        let neighbours: Vec<_> = carrier.via.iter().map(|&peer| identity(Some(peer), tag)).collect();
        let edge = over.transport().edge(SiteEdge {
            datagram,
            slack: Pacer::KERNEL_SLACK,
            memory: self.memory,
            streams,
            ends: ends(carrier, tag),
            neighbours: &neighbours,
            random: random.fork(),
        });
        self.lane(Lane { tag, peers: carrier.via.clone(), relay: false, multicast: None }, edge)
    }

    fn relay(&mut self, relay: &Relay, name: &str, datagram: u16, random: &mut Stream) {
        let both = [(Tag::packets(relay.channel), &relay.packets), (Tag::tcp(relay.channel), &relay.tcp)];
        for (tag, over) in both {
            let node = over.transport().relay(SiteRelay {
                datagram,
                slack: Pacer::KERNEL_SLACK,
                memory: self.memory,
                address: identity(None, tag),
                between: relay.between.map(|peer| identity(Some(peer), tag)),
                random: random.fork(),
            });
            let lane = Lane { tag, peers: relay.between.to_vec(), relay: true, multicast: None };
            let slot = self.lane(lane, node);
            let slots = vec![slot];
            self.parts.push(Part {
                relay: true,
                peers: relay.between.to_vec(),
                ..Part::new(name, tag, slots)
            });
        }
    }

    /// Puts a machine on a lane.
    pub(super) fn lane(&mut self, lane: Lane, machine: Box<dyn Machine>) -> Slot {
        let slot = self.machines.add(machine);
        self.machines.expose((slot, Port::Below(0)), Port::Below(LANES + self.lanes.len() as u32));
        self.lanes.push(lane);
        slot
    }

    /// Plugs a port of a machine into the host.
    pub(super) fn plug(&mut self, port: (Slot, Port), plug: Plug) {
        self.machines.expose(port, Port::Below(self.plugs.len() as u32));
        self.plugs.push(plug);
    }
}

/// Maximum length of a datagram that lanes send, in bytes of UDP payload after the tag.
pub(crate) fn longest_datagram(config: &Config) -> u16 {
    config.mtu - headers(config) - TAG
}

/// The headers of IP and UDP around it.
pub(crate) const fn headers(config: &Config) -> u16 {
    let ip = if config.listen.is_ipv4() { 20 } else { 40 };
    ip + UDP_HEADER
}

/// The addresses of this end and of the other, as the machines of a lane use them, whatever nodes are between.
fn ends(carrier: &Carrier, tag: Tag) -> (SocketAddr, SocketAddr) {
    (identity(None, tag), identity(carrier.via.first().copied(), tag))
}
