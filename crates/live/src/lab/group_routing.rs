//! Multicast routing of a node's kernel: the interfaces on which it forwards packets from a source to a group.
//!
//! As a routing daemon does, a socket for each IP version tells the kernel the interfaces, and for each source and
//! group the interface on which packets must arrive and those on which copies leave (netinet/ip_mroute of BSD,
//! `linux/mroute.h`, `linux/mroute6.h`). What the node itself sends is routed alike: it leaves by a device of its own,
//! and the kernel loops it back to the routing. So one datagram of a program, or of a machine, leaves by each interface
//! of its tree, and none of them needs to know the tree; the first link sees one hop less than the sender chose.

use std::io;
use std::net::IpAddr;
use std::sync::Mutex;

use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::SetStruct;
use socket2::{Domain, Protocol, Socket, Type};

use super::Error;
use super::ip_commands::OWN_GROUPS;
use crate::layout::{GroupRouteLayout, NodeLayout};

/// Maximum number of interfaces for one IP version: `MAXVIFS` and `MAXMIFS` of the kernel.
const MAX_INTERFACES: usize = 32;
/// The kernel's number, in the multicast routing, of the device of the node's own packets.
const OWN: u16 = 0;

/// The routes of groups in a node's kernel. They are removed when this is dropped.
pub(super) struct GroupRouting {
    v4: Socket,
    v6: Socket,
    /// The numbers of the node's interfaces; the i-th of them has number i + 1 in the multicast routing.
    interfaces: Vec<u32>,
    table: Mutex<Vec<GroupRouteLayout>>,
}

impl GroupRouting {
    /// Starts the routing in the calling thread's network namespace, which has the node's interfaces.
    pub(super) fn start(node: &NodeLayout) -> Result<Self, Error> {
        let found = node.group_interfaces.len();
        if found >= MAX_INTERFACES {
            return Err(Error::GroupInterfaces { found, max: MAX_INTERFACES - 1 });
        }
        let started = Self::start_kernel(&node.group_interfaces, &node.interface_names())
            .map_err(Error::GroupRouting)?;
        started.change(&node.group_routes)?;
        Ok(started)
    }

    fn start_kernel(interfaces: &[u32], names: &[String]) -> io::Result<Self> {
        let v4 = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(libc::IPPROTO_IGMP)))?;
        let v6 = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?;
        setsockopt(&v4, StartV4, &1)?;
        setsockopt(&v6, StartV6, &1)?;
        let names = interfaces.iter().filter_map(|&number| names.get(number as usize));
        for (place, name) in (OWN..).zip([OWN_GROUPS].into_iter().chain(names.map(String::as_str))) {
            let index = if_nametoindex(name)?;
            let interface =
                InterfaceV4 { place, flags: USE_INDEX, threshold: 1, index, ..InterfaceV4::default() };
            setsockopt(&v4, AddInterfaceV4, &interface)?;
            let index = index as u16;
            let interface = InterfaceV6 { place, threshold: 1, index, ..InterfaceV6::default() };
            setsockopt(&v6, AddInterfaceV6, &interface)?;
        }
        Ok(Self { v4, v6, interfaces: interfaces.to_vec(), table: Mutex::default() })
    }

    /// Replaces the routes; only those that differ are set.
    pub(super) fn change(&self, routes: &[GroupRouteLayout]) -> Result<(), Error> {
        let mut table = self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for route in routes.iter().filter(|route| !table.contains(route)) {
            self.set(route).map_err(|error| Error::GroupRouting(error.into()))?;
        }
        *table = routes.to_vec();
        Ok(())
    }

    fn set(&self, route: &GroupRouteLayout) -> nix::Result<()> {
        let GroupRouteLayout { source, group, ingress, own, egress } = route;
        let place = |number: &u32| {
            let place = self.interfaces.iter().position(|known| known == number);
            place.map(|place| place + 1)
        };
        // Nothing arrives on the last place, which no interface has: a node has one for its own packets, and fewer
        // others.
        let nowhere = MAX_INTERFACES - 1;
        let ingress = if *own { Some(usize::from(OWN)) } else { ingress.as_ref().and_then(place) };
        let ingress = ingress.unwrap_or(nowhere) as u16;
        let egress = egress.iter().filter_map(place);
        match (source, group) {
            (IpAddr::V4(source), IpAddr::V4(group)) => {
                let mut route =
                    RouteV4 { source: source.octets(), group: group.octets(), ingress, ..RouteV4::default() };
                egress.for_each(|place| route.thresholds[place] = 1);
                setsockopt(&self.v4, SetRouteV4, &route)
            }
            (IpAddr::V6(source), IpAddr::V6(group)) => {
                let (source, group) = (AddressV6::of(source.octets()), AddressV6::of(group.octets()));
                let mut route = RouteV6 { source, group, ingress, ..RouteV6::default() };
                egress.for_each(|place| route.egress[place / 32] |= 1 << (place % 32));
                setsockopt(&self.v6, SetRouteV6, &route)
            }
            _ => Err(nix::Error::EAFNOSUPPORT),
        }
    }
}

/// `VIFF_USE_IFINDEX`: an interface is named by its index.
const USE_INDEX: u8 = 8;

/// `struct vifctl` of `linux/mroute.h`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct InterfaceV4 {
    place: u16,
    flags: u8,
    /// Minimum hop limit of what leaves by it.
    threshold: u8,
    rate_limit: u32,
    index: u32,
    remote: [u8; 4],
}

/// `struct mif6ctl` of `linux/mroute6.h`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct InterfaceV6 {
    place: u16,
    flags: u8,
    threshold: u8,
    index: u16,
    _padding: u16,
    rate_limit: u32,
}

/// `struct mfcctl` of `linux/mroute.h`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct RouteV4 {
    source: [u8; 4],
    group: [u8; 4],
    ingress: u16,
    /// The threshold of each interface: packets with a larger hop limit leave by it; 0 for none.
    thresholds: [u8; MAX_INTERFACES],
    _padding: u16,
    counts: [u32; 3],
    expire: i32,
}

/// `struct mf6cctl` of `linux/mroute6.h`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct RouteV6 {
    source: AddressV6,
    group: AddressV6,
    ingress: u16,
    _padding: u16,
    /// A bit for each interface.
    egress: [u32; 8],
}

/// `struct sockaddr_in6`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct AddressV6 {
    family: u16,
    port: u16,
    flow: u32,
    address: [u8; 16],
    scope: u32,
}

impl AddressV6 {
    fn of(address: [u8; 16]) -> Self {
        Self { family: libc::AF_INET6 as u16, address, ..Self::default() }
    }
}

/// The number of the first socket option of multicast routing, in both IP versions: `MRT_BASE` and `MRT6_BASE`.
const BASE: libc::c_int = 200;
// `MRT_INIT`, `MRT_ADD_VIF`, `MRT_ADD_MFC` of linux/mroute.h, and their like of mroute6.h.
const START: libc::c_int = BASE;
const ADD_INTERFACE: libc::c_int = BASE + 2;
const SET_ROUTE: libc::c_int = BASE + 4;

macro_rules! option {
    ($name:ident, $level:path, $option:path, $value:ty) => {
        #[derive(Clone, Copy)]
        struct $name;
        nix::setsockopt_impl!($name, $level, $option, $value, SetStruct<'_, $value>);
    };
}

option!(StartV4, libc::IPPROTO_IP, START, libc::c_int);
option!(StartV6, libc::IPPROTO_IPV6, START, libc::c_int);
option!(AddInterfaceV4, libc::IPPROTO_IP, ADD_INTERFACE, InterfaceV4);
option!(AddInterfaceV6, libc::IPPROTO_IPV6, ADD_INTERFACE, InterfaceV6);
option!(SetRouteV4, libc::IPPROTO_IP, SET_ROUTE, RouteV4);
option!(SetRouteV6, libc::IPPROTO_IPV6, SET_ROUTE, RouteV6);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_reads_has_its_length() {
        assert_eq!([size_of::<InterfaceV4>(), size_of::<RouteV4>()], [16, 60]);
        assert_eq!([size_of::<InterfaceV6>(), size_of::<RouteV6>()], [12, 92]);
    }
}
