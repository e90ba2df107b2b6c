//! Memberships of a machine in groups.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

use hopcast_core::Membership;
use nix::libc;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::SetStruct;
use quinn_udp::UdpSocketState;
use rustix::event::epoll::EventFlags;
use socket2::Socket as Kernel;

use super::batch::{Batch, Received};
use super::interfaces::{Interfaces, of_groups};
use super::{for_groups, in_detail, unbound};
use crate::runtime::counters::Counters;
use crate::runtime::drops::Drops;
use crate::runtime::poller::{Poller, Token};

/// The groups that a machine has joined.
#[derive(Default)]
pub(super) struct Groups {
    /// Receives datagrams to groups, where the plug's own socket is bound to one address.
    inlet: Option<Box<Inlet>>,
}

/// A socket bound to all addresses that receives only datagrams to groups and broadcasts.
struct Inlet {
    socket: Kernel,
    batch: Batch,
    readable: bool,
    drops: Drops,
}

impl Groups {
    /// Joins a group or leaves it. `own` is the plug's socket, bound to `local`.
    pub(super) fn change(
        &mut self,
        membership: &Membership,
        local: SocketAddr,
        (own, interfaces): (&Kernel, &Interfaces),
        (poller, token): (&Rc<Poller>, Token),
    ) -> io::Result<()> {
        let Membership { group, source, interface, joined } = *membership;
        if group.is_ipv4() != local.is_ipv4()
            || source.is_some_and(|source| source.is_ipv4() != local.is_ipv4())
        {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        let socket = if local.ip().is_unspecified() {
            own
        } else {
            let inlet = match self.inlet.take() {
                Some(inlet) => inlet,
                None => Box::new(Inlet::open(poller, token, local)?),
            };
            &self.inlet.insert(inlet).socket
        };
        if group == IpAddr::V4(Ipv4Addr::BROADCAST) {
            // A socket bound to all addresses receives the group's datagrams in any case.
            return Ok(());
        }
        let indices = match interface {
            Some(number) => vec![interfaces.index(number).ok_or(io::ErrorKind::AddrNotAvailable)?],
            None => of_groups(),
        };
        for index in indices {
            change_on(socket, index, group, source, joined)?;
        }
        Ok(())
    }

    pub(super) fn ready(&mut self, readable: bool) {
        if let Some(inlet) = &mut self.inlet {
            inlet.readable |= readable;
        }
    }

    /// Reads datagrams from the socket of groups, if all earlier ones are delivered.
    pub(super) fn read(&mut self, interfaces: &Interfaces, counters: &mut Counters) -> io::Result<()> {
        let Some(inlet) = &mut self.inlet else { return Ok(()) };
        if !inlet.readable || !inlet.batch.is_empty() {
            return Ok(());
        }
        inlet.readable = false;
        inlet.batch.read_in_detail(&inlet.socket, interfaces, counters)
    }

    /// The next datagram to a group.
    pub(super) fn next(&mut self) -> Option<Received> {
        let inlet = self.inlet.as_mut()?;
        let is_to_group = |to: IpAddr| to.is_multicast() || to == IpAddr::V4(Ipv4Addr::BROADCAST);
        loop {
            // A datagram to another address of the host is another socket's.
            let received = inlet.batch.next()?;
            if received.to.is_some_and(is_to_group) {
                return Some(received);
            }
        }
    }

    /// Datagrams that the kernel dropped since they were not read in time.
    pub(super) fn dropped(&self) -> u64 {
        self.inlet.as_ref().map_or(0, |inlet| inlet.drops.count())
    }
}

impl Inlet {
    fn open(poller: &Rc<Poller>, token: Token, local: SocketAddr) -> io::Result<Self> {
        let socket = unbound(local)?;
        let all: IpAddr =
            if local.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        // Beside the plug's own socket, and those of other members of the group.
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddr::new(all, local.port()).into())?;
        for_groups(&socket, local.is_ipv6())?;
        // The socket reports the interface and the traffic class of each datagram.
        UdpSocketState::new((&socket).into())?;
        in_detail(&socket, local.is_ipv6())?;
        let drops = Drops::of_udp(local.is_ipv6(), rustix::fs::fstat(&socket)?.st_ino);
        poller.add(&socket, token, EventFlags::IN)?;
        Ok(Self { socket, batch: Batch::new(), readable: false, drops })
    }
}

/// Joins or leaves a group on one interface. It is no error if that was done already.
pub(in crate::runtime) fn change_on(
    socket: &Kernel,
    interface: u32,
    group: IpAddr,
    source: Option<IpAddr>,
    joined: bool,
) -> io::Result<()> {
    let any = GroupRequest { interface, group: SocketStorage::of(group) };
    let one = source.map(SocketStorage::of).map(|source| SourceRequest { of: any, source });
    let changed = match (one, joined, group.is_ipv6()) {
        (None, true, false) => setsockopt(socket, JoinV4, &any),
        (None, true, true) => setsockopt(socket, JoinV6, &any),
        (None, false, false) => setsockopt(socket, LeaveV4, &any),
        (None, false, true) => setsockopt(socket, LeaveV6, &any),
        (Some(one), true, false) => setsockopt(socket, JoinSourceV4, &one),
        (Some(one), true, true) => setsockopt(socket, JoinSourceV6, &one),
        (Some(one), false, false) => setsockopt(socket, LeaveSourceV4, &one),
        (Some(one), false, true) => setsockopt(socket, LeaveSourceV6, &one),
    };
    match changed {
        Ok(()) | Err(nix::Error::EADDRINUSE | nix::Error::EADDRNOTAVAIL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// `group_req` of the kernel (RFC 3678 section 5.1): an interface and a group.
#[derive(Clone, Copy)]
#[repr(C)]
struct GroupRequest {
    interface: u32,
    group: SocketStorage,
}

/// `group_source_req` of the kernel (RFC 3678 section 5.1): an interface, a group and a source.
#[derive(Clone, Copy)]
#[repr(C)]
struct SourceRequest {
    of: GroupRequest,
    source: SocketStorage,
}

/// `sockaddr_storage` of the kernel, which is aligned as a pointer.
#[derive(Clone, Copy)]
#[cfg_attr(target_pointer_width = "64", repr(C, align(8)))]
#[cfg_attr(target_pointer_width = "32", repr(C, align(4)))]
struct SocketStorage([u8; 128]);

impl SocketStorage {
    /// An address without a port.
    fn of(address: IpAddr) -> Self {
        let mut bytes = [0; 128];
        // The family; the port and, of IPv6, the flow label stand before the address.
        let family = if address.is_ipv6() { libc::AF_INET6 } else { libc::AF_INET } as u16;
        bytes[..2].copy_from_slice(&family.to_ne_bytes());
        match address {
            IpAddr::V4(address) => bytes[4..8].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => bytes[8..24].copy_from_slice(&address.octets()),
        }
        Self(bytes)
    }
}

/// A socket option that changes a membership.
macro_rules! membership {
    ($name:ident, $level:path, $option:path, $request:ty) => {
        #[derive(Clone, Copy)]
        struct $name;
        nix::setsockopt_impl!($name, $level, $option, $request, SetStruct<'_, $request>);
    };
}

membership!(JoinV4, libc::IPPROTO_IP, libc::MCAST_JOIN_GROUP, GroupRequest);
membership!(JoinV6, libc::IPPROTO_IPV6, libc::MCAST_JOIN_GROUP, GroupRequest);
membership!(LeaveV4, libc::IPPROTO_IP, libc::MCAST_LEAVE_GROUP, GroupRequest);
membership!(LeaveV6, libc::IPPROTO_IPV6, libc::MCAST_LEAVE_GROUP, GroupRequest);
membership!(JoinSourceV4, libc::IPPROTO_IP, libc::MCAST_JOIN_SOURCE_GROUP, SourceRequest);
membership!(JoinSourceV6, libc::IPPROTO_IPV6, libc::MCAST_JOIN_SOURCE_GROUP, SourceRequest);
membership!(LeaveSourceV4, libc::IPPROTO_IP, libc::MCAST_LEAVE_SOURCE_GROUP, SourceRequest);
membership!(LeaveSourceV6, libc::IPPROTO_IPV6, libc::MCAST_LEAVE_SOURCE_GROUP, SourceRequest);
