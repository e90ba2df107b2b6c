//! The egress of packets: of the host's own, to a neighbour that is named, and to a group on an interface.
//!
//! All of them leave by raw sockets. Such a socket takes a whole packet and an address for the route lookup that may
//! differ from the packet's destination. For a packet to a neighbour that address is a stand-in, whose route in the
//! socket's routing table leads to the neighbour; so the kernel resolves the Ethernet address, and keeps the packet
//! until it is known.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc;
use nix::sys::socket::{ControlMessage, MsgFlags, SockProtocol, SockaddrStorage, sendmsg};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::super::divert::OWN_MARK;
use super::super::error::PlugError;
use super::super::rules::Rules;
use super::netlink::{REPLACE, Request, open};

/// Maximum number of neighbours of an IP version that have a route; beyond it the oldest route is replaced. Chosen: one
/// byte; with fewer, routes of a router with many neighbours are replaced again and again.
const MAX_NEIGHBOURS: usize = 256;
/// Size of the kernel's buffer of packets to be sent, in bytes. Chosen: packets to neighbours that do not answer stay
/// in it for three seconds (RFC 4861 section 10), and with fewer than 600 a second of them there is room for others.
const SEND_BUFFER: usize = 4 << 20;
/// The networks of stand-ins, in a routing table that no other socket uses: TEST-NET-1 (RFC 5737) and the discard
/// prefix (RFC 6666), which are no packet's destination.
const STAND_INS: [&str; 2] = ["192.0.2.0/24", "100::/64"];

/// `linux/rtnetlink.h`: the request for a new route, its attributes, its maker (an administrator) and its kind, and the
/// flag by which a gateway need not be on a network of the interface.
const NEW_ROUTE: u16 = 24;
const TO: u16 = 1;
const INTERFACE: u16 = 4;
const GATEWAY: u16 = 5;
const TABLE: u16 = 15;
const STATIC: u8 = 4;
const UNICAST: u8 = 1;
const ON_LINK: u32 = 4;

/// The sockets of one IP version.
pub(super) struct EgressSockets {
    v6: bool,
    /// The socket for the host's own packets, also to groups of which it is a member.
    own: Socket,
    /// The socket for packets whose interface is named, which are never looped back to the host.
    named: Socket,
    routes: OwnedFd,
    table: u32,
    /// The interface and address of each neighbour, by the last byte of its stand-in.
    neighbours: Vec<(u32, IpAddr)>,
    /// The index of the neighbour that is replaced next.
    oldest: usize,
}

impl EgressSockets {
    /// The sockets, and the routes that they need, made by `rules`.
    pub(super) fn open(v6: bool, rules: &mut Rules) -> Result<Self, PlugError> {
        let version = if v6 { "-6" } else { "-4" };
        let table = rules.named().mark();
        rules.flush_in_the_end(version);
        // A deleted interface takes its routes along; then no other route must be found.
        rules.route(version, &format!("unreachable {}", STAND_INS[usize::from(v6)]))?;
        rules.route_marked(version)?;
        // Packets that the routes deliver to this host must not seem to have been marked in transit.
        let [own, named] = [raw(v6, OWN_MARK)?, raw(v6, table)?];
        if v6 {
            named.set_multicast_loop_v6(false)?;
            // Packets to groups have others' source addresses.
            named.set_freebind_v6(true)?;
        } else {
            named.set_multicast_loop_v4(false)?;
        }
        let routes = open(SockProtocol::NetlinkRoute)?;
        Ok(Self { v6, own, named, routes, table, neighbours: Vec::new(), oldest: 0 })
    }

    /// Sends a packet as the host's own, by the routes.
    pub(super) fn originate(&self, packet: &[u8], destination: IpAddr) -> io::Result<()> {
        self.own.send_to(packet, &SockAddr::from(SocketAddr::new(destination, 0))).map(drop)
    }

    /// Sends a packet to a neighbour on the interface with this index, whatever its destination is.
    pub(super) fn send_to_neighbour(
        &mut self,
        packet: &[u8],
        index: u32,
        neighbour: IpAddr,
    ) -> io::Result<()> {
        let known = self.neighbours.iter().position(|&known| known == (index, neighbour));
        let place = known.map_or_else(|| self.route_to(index, neighbour), Ok)?;
        let stand_in = SockAddr::from(SocketAddr::new(self.stand_in(place), 0));
        let sent = self.named.send_to(packet, &stand_in);
        let unreachable = [libc::EHOSTUNREACH, libc::ENETUNREACH];
        if !matches!(&sent, Err(error) if error.raw_os_error().is_some_and(|it| unreachable.contains(&it))) {
            return sent.map(drop);
        }
        // The interface was down in between.
        self.add_route(place, (index, neighbour))?;
        self.named.send_to(packet, &stand_in).map(drop)
    }

    /// Sends a packet to every station of the interface with this index that listens to its group.
    pub(super) fn send_to_group(
        &self,
        packet: &[u8],
        index: u32,
        (source, group): (IpAddr, IpAddr),
    ) -> io::Result<()> {
        let to = SockaddrStorage::from(SocketAddr::new(group, 0));
        let v4 = libc::in_pktinfo {
            ipi_ifindex: index as libc::c_int,
            ipi_spec_dst: libc::in_addr { s_addr: 0 },
            ipi_addr: libc::in_addr { s_addr: 0 },
        };
        // Without a source the kernel of IPv6 looks for one on the interface, and sends nothing if it has none.
        let s6_addr = if let IpAddr::V6(source) = source { source.octets() } else { [0; 16] };
        let v6 = libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr }, ipi6_ifindex: index };
        let on =
            if self.v6 { ControlMessage::Ipv6PacketInfo(&v6) } else { ControlMessage::Ipv4PacketInfo(&v4) };
        sendmsg(self.named.as_raw_fd(), &[IoSlice::new(packet)], &[on], MsgFlags::empty(), Some(&to))?;
        Ok(())
    }

    /// Gives a neighbour a stand-in, and returns its index.
    fn route_to(&mut self, index: u32, neighbour: IpAddr) -> io::Result<usize> {
        if neighbour.is_ipv6() != self.v6 {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        // Noted only once the route exists: after a failure packets must not go to the previous neighbour.
        let place = if self.neighbours.len() < MAX_NEIGHBOURS { self.neighbours.len() } else { self.oldest };
        self.add_route(place, (index, neighbour))?;
        match self.neighbours.get_mut(place) {
            Some(known) => {
                *known = (index, neighbour);
                self.oldest = (place + 1) % MAX_NEIGHBOURS;
            }
            None => self.neighbours.push((index, neighbour)),
        }
        Ok(place)
    }

    fn add_route(&self, place: usize, (index, neighbour): (u32, IpAddr)) -> io::Result<()> {
        let (family, bits) = if self.v6 { (libc::AF_INET6, 128) } else { (libc::AF_INET, 32) };
        let [f0, f1, f2, f3] = ON_LINK.to_ne_bytes();
        let body = [family as u8, bits, 0, 0, 0, STATIC, 0, UNICAST, f0, f1, f2, f3];
        let request = Request::new(NEW_ROUTE, REPLACE, &body);
        let request = with_address(request, TO, self.stand_in(place));
        let request = with_address(request, GATEWAY, neighbour);
        let request = request.with(INTERFACE, &index.to_ne_bytes()).with(TABLE, &self.table.to_ne_bytes());
        request.ask(&self.routes)
    }

    fn stand_in(&self, place: usize) -> IpAddr {
        match self.v6 {
            false => Ipv4Addr::new(192, 0, 2, place as u8).into(),
            true => Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, place as u16).into(),
        }
    }
}

fn with_address(request: Request, kind: u16, address: IpAddr) -> Request {
    match address {
        IpAddr::V4(address) => request.with(kind, &address.octets()),
        IpAddr::V6(address) => request.with(kind, &address.octets()),
    }
}

/// A socket that sends whole packets, with this mark.
fn raw(v6: bool, mark: u32) -> io::Result<Socket> {
    let domain = if v6 { Domain::IPV6 } else { Domain::IPV4 };
    let socket = Socket::new(domain, Type::RAW, Some(Protocol::from(libc::IPPROTO_RAW)))?;
    socket.set_nonblocking(true)?;
    if rustix::net::sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER).is_err() {
        socket.set_send_buffer_size(SEND_BUFFER)?;
    }
    socket.set_mark(mark)?;
    if !v6 {
        socket.set_broadcast(true)?;
    }
    Ok(socket)
}
