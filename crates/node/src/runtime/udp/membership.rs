//! A membership of one socket in a group on one interface, as the kernel takes it.

use std::io;
use std::net::IpAddr;

use nix::libc;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::SetStruct;
use socket2::Socket as Kernel;

/// Joins or leaves a group on one interface. It is no error if that was done already.
pub(super) fn change(
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
