//! The commands for `ip` that give a node its addresses, interfaces and routes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::IpAddr;

use hopcast_stack::network::interface_name;
use hopcast_wire::ethernet;

use crate::layout::{InterfaceLayout, MadeInterface, NodeLayout, RouteLayout};

/// Maximum number of frames that wait in an interface's device for the emulator. Chosen: a tenth of a second at 100,000
/// frames a second; with fewer, frames are dropped (and counted) while the emulator is kept from reading, with more
/// they are very late.
const DEVICE_QUEUE: u32 = 10_000;

/// The device by which a node's own packets to groups leave.
pub(super) const OWN_GROUPS: &str = "groups";

/// The commands that set up a node in a namespace that has its TAPs.
pub(super) fn node(node: &NodeLayout) -> String {
    let mut commands = String::from("link set lo up\n");
    // The node's own addresses are set on loopback too, even if an interface has them.
    let in_prefix = |own: &IpAddr| {
        let made = node.made.iter().flat_map(|made| &made.addresses);
        let mut all = node.interfaces.iter().flat_map(|interface| &interface.addresses).chain(made);
        all.any(|&(address, length)| address == *own && length < bits(address))
    };
    for address in node.addresses.iter().filter(|own| !in_prefix(own)) {
        let (prefix, nodad) = if address.is_ipv4() { (32, "") } else { (128, " nodad") };
        line(&mut commands, format_args!("addr add {address}/{prefix} dev lo{nodad}"));
    }
    for (number, interface) in (0..).zip(&node.interfaces) {
        let name = interface_name(number);
        let InterfaceLayout { mac, mtu, addresses, neighbours, is_taken, .. } = interface;
        if *is_taken {
            // Nobody speaks on it but the service.
            line(&mut commands, format_args!("link set {name} arp off"));
        } else if node.link_local {
            // The kernel answers only for addresses of the interface on which it is asked, and from such a one.
            line(&mut commands, format_args!("link set {name} addrgenmode eui64"));
        }
        interface_up(&mut commands, &name, (*mac, *mtu), addresses);
        permanent_neighbours(&mut commands, &name, neighbours);
    }
    for MadeInterface { name, mac, mtu, addresses, neighbours } in &node.made {
        line(&mut commands, format_args!("tuntap add dev {name} mode tap"));
        if node.link_local {
            line(&mut commands, format_args!("link set {name} addrgenmode eui64"));
        }
        interface_up(&mut commands, name, (*mac, *mtu), addresses);
        permanent_neighbours(&mut commands, name, neighbours);
    }
    let names = node.interface_names();
    if let (Some(source), Some(first)) = (of_family(&node.addresses, true), names.first()) {
        // Multicast of programs that name no interface leaves by the first one.
        line(&mut commands, format_args!("route add 224.0.0.0/4 dev {first} src {source}"));
    }
    commands.push_str(&groups(node));
    commands + &reroute((&node.addresses, &names), &[], &node.routes)
}

/// The commands that give an interface its addresses, and turn it on.
fn interface_up(
    commands: &mut String,
    name: &str,
    (address, mtu): ([u8; 6], u32),
    addresses: &[(IpAddr, u8)],
) {
    let address = ethernet::text(address);
    line(commands, format_args!("link set {name} address {address} mtu {mtu} txqueuelen {DEVICE_QUEUE} up"));
    for (own, length) in addresses {
        // The routes to prefixes come with the others, and change with them.
        let flags = if own.is_ipv4() { "noprefixroute" } else { "nodad noprefixroute" };
        line(commands, format_args!("addr add {own}/{length} dev {name} {flags}"));
    }
}

/// The commands that give an interface neighbours for whom nobody asks.
fn permanent_neighbours(commands: &mut String, name: &str, neighbours: &[(IpAddr, [u8; 6])]) {
    for (address, station) in neighbours {
        let station = ethernet::text(*station);
        line(commands, format_args!("neigh replace {address} lladdr {station} dev {name} nud permanent"));
    }
}

/// The commands for a node's own packets to groups, so that they follow its routes of groups: they leave by a device
/// that is not read, and the copy that the kernel loops back is routed.
fn groups(node: &NodeLayout) -> String {
    let mut commands = String::new();
    if node.group_routes.is_empty() {
        return commands;
    }
    // Its MTU is the largest of the interfaces': longer packets are refused where they are sent.
    let made = node.made.iter().map(|made| made.mtu);
    let mtu = node.interfaces.iter().map(|interface| interface.mtu).chain(made).max().unwrap_or(1500);
    line(&mut commands, format_args!("tuntap add dev {OWN_GROUPS} mode tap"));
    line(&mut commands, format_args!("link set {OWN_GROUPS} mtu {mtu} up"));
    if let Some(address) = of_family(&node.addresses, true) {
        // A socket bound to an address sends to groups by the device that was given the address last, whatever the
        // routes.
        line(&mut commands, format_args!("addr add {address}/32 dev {OWN_GROUPS}"));
    }
    let own = node.group_routes.iter().filter(|route| route.own);
    let own: BTreeMap<_, _> = own.map(|route| (route.group, route.source)).collect();
    for (group, source) in own {
        match group {
            IpAddr::V4(_) => {
                line(&mut commands, format_args!("route add {group} dev {OWN_GROUPS} src {source}"));
            }
            // The table that has a route for all groups already, and is looked up first.
            IpAddr::V6(_) => line(
                &mut commands,
                format_args!("route add multicast {group} dev {OWN_GROUPS} src {source} table local"),
            ),
        }
    }
    commands
}

/// The commands that change the MTUs of attachments, given by number.
pub(super) fn mtus(mtus: &[(u32, u32)]) -> String {
    mtus.iter().map(|(interface, mtu)| format!("link set eth{interface} mtu {mtu}\n")).collect()
}

/// The commands that replace one table of routes of a node with these addresses and interfaces by another; at any
/// moment each address in both tables has a route.
pub(super) fn reroute(
    (addresses, names): (&[IpAddr], &[String]),
    before: &[RouteLayout],
    after: &[RouteLayout],
) -> String {
    let mut commands = String::new();
    // An interface that does not exist is the kernel's error to report.
    let name =
        |interface: u32| names.get(interface as usize).cloned().unwrap_or_else(|| interface_name(interface));
    let known: BTreeSet<_> = before.iter().filter_map(neighbour).collect();
    let neighbours: BTreeSet<_> = after.iter().filter_map(neighbour).collect();
    for (interface, via, address) in neighbours.difference(&known) {
        let (mac, name) = (ethernet::text(*address), name(*interface));
        line(&mut commands, format_args!("neigh replace {via} lladdr {mac} dev {name} nud permanent"));
    }
    let unchanged: BTreeMap<_, _> = before.iter().map(|route| (route.to, route)).collect();
    for route in after.iter().filter(|route| unchanged.get(&route.to) != Some(route)) {
        let RouteLayout { to, interface, via, .. } = route;
        let via = via.map(|via| format!("via {via} ")).unwrap_or_default();
        let onlink = if via.is_empty() { "" } else { " onlink" };
        let mut command = format!("route replace {to} {via}dev {}{onlink}", name(*interface));
        if let Some(source) = of_family(addresses, to.first().is_ipv4()) {
            let _ = write!(command, " src {source}");
        }
        line(&mut commands, format_args!("{command}"));
    }
    let kept: BTreeSet<_> = after.iter().map(|route| route.to).collect();
    for RouteLayout { to, .. } in before.iter().filter(|route| !kept.contains(&route.to)) {
        line(&mut commands, format_args!("route del {to}"));
    }
    commands
}

/// The neighbour of a route with its Ethernet address, if the kernel does not resolve that itself.
fn neighbour(route: &RouteLayout) -> Option<(u32, IpAddr, [u8; 6])> {
    Some((route.interface, route.via?, route.via_mac?))
}

/// Number of bits of an address.
const fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn of_family(addresses: &[IpAddr], v4: bool) -> Option<&IpAddr> {
    addresses.iter().find(|address| address.is_ipv4() == v4)
}

fn line(commands: &mut String, command: std::fmt::Arguments<'_>) {
    // Writing into a string cannot fail.
    let _ = writeln!(commands, "{command}");
}

#[cfg(test)]
mod tests {
    use hopcast_stack::network::Prefix;

    use super::*;

    fn route(to: &str, interface: u32) -> RouteLayout {
        RouteLayout {
            to: Prefix::of(to.parse().unwrap()),
            interface,
            via: Some(format!("10.0.0.{}", 8 + interface).parse().unwrap()),
            via_mac: Some([2, 0, 0, 0, 0, interface as u8]),
        }
    }

    #[test]
    fn only_what_differs_is_changed_and_nothing_goes_before_its_successor_is_there() {
        let before = [route("10.0.0.2", 0), route("10.0.0.3", 0), route("10.0.0.4", 0)];
        let after = [route("10.0.0.2", 0), route("10.0.0.3", 1)];
        let names = ["eth0", "eth1"].map(str::to_owned);
        let commands = reroute((&["10.0.0.1".parse().unwrap()], &names), &before, &after);
        let expected = "neigh replace 10.0.0.9 lladdr 02:00:00:00:00:01 dev eth1 nud permanent\n\
                        route replace 10.0.0.3/32 via 10.0.0.9 dev eth1 onlink src 10.0.0.1\n\
                        route del 10.0.0.4/32\n";
        assert_eq!(commands, expected);
        assert_eq!(reroute((&[], &names), &after, &after), "");
    }
}
