//! A datagram port on raw IP sockets: packets of one protocol of IP, without its header.
//!
//! One socket is bound to the address of the plug, by which it sends; another, opened when it is needed, sends what
//! bears a Router Alert. Each group that the machine joins has a socket of its own, bound to the group, so that each
//! receives what is sent to its address alone.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::rc::Rc;

use hopcast_core::{Attributes, Buffer, Datagram, Item, Membership};
use hopcast_wire::{ip, router_alert};
use nix::libc;
use nix::sys::socket::sockopt::SetStruct;
use nix::sys::socket::{SockaddrStorage, recvfrom, setsockopt};
use rustix::event::epoll::EventFlags;
use rustix::net::sockopt;
use socket2::{Domain, Protocol, SockAddr, Socket as Kernel, Type};

use super::counters::Counters;
use super::poller::{Poller, Token};
use super::socket::Socket;
use super::udp::{Interfaces, change_membership, of_groups};

/// Size of the kernel's buffers, in bytes. Chosen: as that of UDP's sockets to send; a protocol on raw sockets is no
/// faster.
const BUFFER: usize = 1 << 20;
/// Maximum number of packets read in one turn. Chosen; more delays the other sockets, fewer costs turns.
const MAX_PER_TURN: usize = 64;
/// Length of the longest packet.
const MAX_PACKET: usize = 65_535;
/// Hop limit of packets to groups: the maximum, as for hosts in virtual time.
const GROUP_HOP_LIMIT: u32 = 255;
/// Groups at a time. Chosen: a machine has one.
const MAX_GROUPS: usize = 64;

/// Sockets of one protocol of IP.
pub(super) struct Raw {
    protocol: u8,
    local: IpAddr,
    poller: Rc<Poller>,
    plug: usize,
    /// The plug's own socket, then those of groups, each with the address that it is bound to, and whether it can
    /// be read now.
    sockets: Vec<(IpAddr, Kernel, bool)>,
    /// Sends what routers are to look at, once there was such a datagram.
    alerting: Option<Kernel>,
    interfaces: Interfaces,
    allowed: usize,
    memory: Vec<u8>,
    counters: Counters,
}

impl Raw {
    pub(super) fn open(
        poller: &Rc<Poller>,
        plug: usize,
        (protocol, local): (u8, IpAddr),
    ) -> io::Result<Self> {
        let mut raw = Self {
            protocol,
            local,
            poller: Rc::clone(poller),
            plug,
            sockets: Vec::new(),
            alerting: None,
            interfaces: Interfaces::of_namespace(),
            allowed: 0,
            memory: vec![0; MAX_PACKET],
            counters: Counters::default(),
        };
        raw.bind(local)?;
        Ok(raw)
    }

    /// A socket that is bound to an address.
    fn open_bound(&self, address: IpAddr) -> io::Result<Kernel> {
        let at = SocketAddr::new(address, 0);
        let protocol = Protocol::from(i32::from(self.protocol));
        let socket = Kernel::new(Domain::for_address(at), Type::RAW, Some(protocol))?;
        socket.set_nonblocking(true)?;
        socket.bind(&at.into())?;
        if address.is_ipv6() {
            socket.set_multicast_hops_v6(GROUP_HOP_LIMIT)?;
        } else {
            socket.set_multicast_ttl_v4(GROUP_HOP_LIMIT)?;
        }
        Ok(socket)
    }

    /// Adds a socket that is bound to an address, to receive.
    fn bind(&mut self, address: IpAddr) -> io::Result<&Kernel> {
        let socket = self.open_bound(address)?;
        // Beyond the host's limits if allowed.
        if sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER).is_err() {
            socket.set_recv_buffer_size(BUFFER)?;
        }
        let token = Token { plug: self.plug, key: self.sockets.len() as u64 };
        self.poller.add(&socket, token, EventFlags::IN)?;
        self.sockets.push((address, socket, false));
        Ok(&self.sockets[self.sockets.len() - 1].1)
    }

    /// The socket that sends with a Router Alert, or without.
    fn sender(&mut self, router_alert: bool) -> io::Result<&Kernel> {
        if !router_alert {
            return Ok(&self.sockets[0].1);
        }
        let socket = match self.alerting.take() {
            Some(socket) => socket,
            None => self.open_alerting()?,
        };
        Ok(self.alerting.insert(socket))
    }

    fn open_alerting(&self) -> io::Result<Kernel> {
        let socket = self.open_bound(self.local)?;
        // It receives the same as the plug's own, which nobody reads here.
        socket.set_recv_buffer_size(0)?;
        if self.local.is_ipv6() {
            // The kernel sets the next header.
            let [a, b, c, d, e, f] = router_alert::V6_OPTIONS;
            setsockopt(&socket, HopByHopOptions, &[0, 0, a, b, c, d, e, f])?;
        } else {
            setsockopt(&socket, IpOptions, &router_alert::V4_OPTION)?;
        }
        Ok(socket)
    }

    fn change(&mut self, membership: &Membership) -> io::Result<()> {
        let Membership { group, source, interface, joined } = *membership;
        let is_other = |address: IpAddr| address.is_ipv4() != self.local.is_ipv4();
        if is_other(group) || source.is_some_and(is_other) || self.sockets.len() > MAX_GROUPS {
            return Err(ErrorKind::AddrNotAvailable.into());
        }
        let indices = match interface {
            Some(number) => vec![self.interfaces.index(number).ok_or(ErrorKind::AddrNotAvailable)?],
            None => of_groups(self.local),
        };
        let known = self.sockets.iter().position(|(address, ..)| *address == group);
        let socket = match known {
            Some(place) => &self.sockets[place].1,
            None => self.bind(group)?,
        };
        indices.into_iter().try_for_each(|index| change_membership(socket, index, group, source, joined))
    }

    /// The next packet of a socket. Ends what may be read of it if there is none.
    fn read(&mut self, place: usize) -> Option<Item> {
        let (address, socket, readable) = &mut self.sockets[place];
        self.counters.syscalls += 1;
        let (len, from) = match recvfrom::<SockaddrStorage>(socket.as_raw_fd(), &mut self.memory) {
            Ok(read) => read,
            Err(error) => {
                self.counters.receive_errors += u64::from(error != nix::Error::EAGAIN);
                *readable = false;
                return None;
            }
        };
        let bytes = &self.memory[..len];
        // Of an IPv4 packet the header is there too.
        let payload = match address.is_ipv4() {
            true => ip::parse(bytes).ok().and_then(|header| bytes.get(header.payload())),
            false => Some(bytes),
        };
        let Some((payload, from)) = payload.zip(from.and_then(|from| address_of(&from))) else {
            self.counters.receive_errors += 1;
            return None;
        };
        self.counters.received += 1;
        self.counters.received_bytes += payload.len() as u64;
        let (local, remote) = (SocketAddr::new(*address, 0), SocketAddr::new(from, 0));
        let payload = Buffer::copy_from(payload);
        Some(Item::Datagram(Datagram { local, remote, payload, attributes: Attributes::CHOICE }))
    }
}

/// The socket options `IP_OPTIONS` (ip(7)) and `IPV6_HOPOPTS` (RFC 3542 section 8): options of all packets sent.
#[derive(Clone, Copy)]
struct IpOptions;
nix::setsockopt_impl!(IpOptions, libc::IPPROTO_IP, libc::IP_OPTIONS, [u8; 4], SetStruct<'_, [u8; 4]>);
#[derive(Clone, Copy)]
struct HopByHopOptions;
nix::setsockopt_impl!(
    HopByHopOptions,
    libc::IPPROTO_IPV6,
    libc::IPV6_HOPOPTS,
    [u8; 8],
    SetStruct<'_, [u8; 8]>
);

fn address_of(from: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = from.as_sockaddr_in().map(|address| address.ip().into());
    v4.or_else(|| from.as_sockaddr_in6().map(|address| address.ip().into()))
}

impl Socket for Raw {
    fn ready(&mut self, key: u64, flags: EventFlags) {
        if let Some((_, _, readable)) = self.sockets.get_mut(key as usize) {
            *readable |= flags.intersects(EventFlags::IN | EventFlags::ERR);
        }
    }

    fn begin_turn(&mut self) {
        self.allowed = MAX_PER_TURN;
    }

    fn next(&mut self) -> Option<Item> {
        while self.allowed > 0 {
            let place = self.sockets.iter().position(|&(_, _, readable)| readable)?;
            self.allowed -= 1;
            if let Some(item) = self.read(place) {
                return Some(item);
            }
        }
        None
    }

    fn has_more(&self) -> bool {
        self.sockets.iter().any(|&(_, _, readable)| readable)
    }

    fn give(&mut self, item: Item) {
        match item {
            Item::Datagram(datagram) if datagram.remote.is_ipv4() == self.local.is_ipv4() => {
                let to = SockAddr::from(SocketAddr::new(datagram.remote.ip(), 0));
                self.counters.syscalls += 1;
                let socket = self.sender(datagram.attributes.router_alert);
                match socket.and_then(|socket| socket.send_to(&datagram.payload, &to)) {
                    Ok(_) => {
                        self.counters.sent += 1;
                        self.counters.sent_bytes += datagram.payload.len() as u64;
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => self.counters.send_dropped += 1,
                    Err(_) => self.counters.send_refused += 1,
                }
                datagram.payload.recycle();
            }
            Item::Datagram(_) => self.counters.send_refused += 1,
            Item::Membership(membership) => {
                let changed = self.change(&membership);
                self.counters.groups_refused += u64::from(changed.is_err());
            }
            _ => self.counters.wrong_items += 1,
        }
    }

    fn address(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.local, 0))
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
