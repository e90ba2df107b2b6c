//! The numbers of interfaces in a network's plan, and the kernel's indices.

use std::collections::BTreeMap;
use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};

/// The numbered interfaces of a network namespace: `eth0` is number 0 of its node.
#[derive(Default)]
pub(in crate::runtime) struct Interfaces {
    /// Each number, with the kernel's index.
    numbered: Vec<(u32, u32)>,
}

impl Interfaces {
    /// The interfaces of the calling thread's network namespace; none if they cannot be read.
    pub(in crate::runtime) fn of_namespace() -> Self {
        let number = |name: &String| name.strip_prefix("eth")?.parse().ok();
        let numbered = all().into_iter().filter_map(|(name, (index, _))| Some((number(&name)?, index)));
        Self { numbered: numbered.collect() }
    }

    /// The kernel's index of an interface.
    pub(in crate::runtime) fn index(&self, number: u32) -> Option<u32> {
        self.numbered.iter().find(|&&(known, _)| known == number).map(|&(_, index)| index)
    }

    /// The number of the interface with this index; `None` if it is not numbered.
    pub(in crate::runtime) fn number(&self, index: u32) -> Option<u32> {
        self.numbered.iter().find(|&&(_, known)| known == index).map(|&(number, _)| number)
    }
}

/// The kernel's indices of the interfaces on which a plug with this address joins groups. With a loopback address those
/// are the loopback interfaces, by which the kernel sends to groups from there (by IPv4; it has no route to groups from
/// `::1`). Otherwise they are all with multicast, except loopback and point-to-point interfaces such as TUN devices,
/// whose packets are a machine's.
pub(in crate::runtime) fn of_groups(local: IpAddr) -> Vec<u32> {
    let takes_groups = |flags: InterfaceFlags| match local.is_loopback() {
        true => flags.contains(InterfaceFlags::IFF_LOOPBACK),
        false => {
            flags.contains(InterfaceFlags::IFF_MULTICAST)
                && !flags.intersects(InterfaceFlags::IFF_LOOPBACK | InterfaceFlags::IFF_POINTOPOINT)
        }
    };
    let interfaces = all().into_values();
    interfaces.filter(|&(_, flags)| takes_groups(flags)).map(|(index, _)| index).collect()
}

/// All interfaces, by name, with their indices and flags.
fn all() -> BTreeMap<String, (u32, InterfaceFlags)> {
    let each = getifaddrs().into_iter().flatten().filter_map(|interface| {
        let index = if_nametoindex(interface.interface_name.as_str()).ok()?;
        Some((interface.interface_name, (index, interface.flags)))
    });
    each.collect()
}
