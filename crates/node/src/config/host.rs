//! The keys of what a node does for its host: services for what that forwards or between its interfaces, and groups to
//! which its programs send.

use std::collections::BTreeSet;
use std::net::IpAddr;

use hopcast_config::Diagnostic;
use hopcast_config::decode::{Fields, one_or_list, text};
use hopcast_config::yaml::Node;
use hopcast_core::Seed;
use hopcast_stack::site::{SiteDeliveryLayer, SiteGroup, SiteInterface, SiteService};

use super::address;
use super::decode::device;
use super::{HostDevice, HostSender, HostService};

/// Minimum MTU of a device for IPv6, in bytes (RFC 8200, section 5).
const MIN_IPV6_MTU: u64 = 1280;
/// Maximum number of interfaces that services are between. Chosen: no host has as many, and each costs a socket with
/// its buffers.
const MAX_INTERFACES: usize = 4096;
/// Maximum number of members of a group. Chosen: each costs a packet or a place in one for each of a program, and a
/// network with more has groups of its own.
const MAX_MEMBERS: usize = 1024;

/// Reads `services` of the node `own`: a map or a list of maps, each with its own options.
pub(super) fn services(node: &Node, own: &str) -> Result<Vec<HostService>, Diagnostic> {
    let mut services: Vec<HostService> = Vec::new();
    for node in one_or_list(node) {
        let run = node.get("run").ok_or_else(|| node.error("`services` needs `run`, the service"))?;
        let row = SiteService::find(run)?;
        let keys = if row.on_host { &["run", "address", "interfaces"][..] } else { &BETWEEN };
        let options = (row.options)();
        let keys: Vec<&str> = keys.iter().copied().chain(options.iter().map(|option| option.key)).collect();
        let fields = Fields::of(node, "`services`", &keys)?;
        let service = match row.on_host {
            true => for_host(&fields, SiteService::read(row, node)?)?,
            false => between(node, &fields, (own, SiteService::read(row, node)?))?,
        };
        let is_twice = |other: &HostService| row.on_host && other.service.name() == row.name;
        if services.iter().any(is_twice) {
            return Err(run.error(format!("`run`: `{}` is there twice", row.name)));
        }
        if !row.on_host {
            let between = services.iter().filter(|other| other.device.is_some());
            let mut taken: BTreeSet<&String> = between.flat_map(|other| &other.interfaces).collect();
            if let Some(twice) = service.interfaces.iter().find(|name| !taken.insert(name)) {
                return Err(node.error(format!("`interfaces`: `{twice}` is listed twice")));
            }
            if taken.len() > MAX_INTERFACES {
                return Err(
                    node.error(format!("`interfaces`: services take at most {MAX_INTERFACES}, these more"))
                );
            }
        }
        services.push(service);
    }
    Ok(services)
}

/// The keys of a service between interfaces.
const BETWEEN: [&str; 4] = ["run", "tap", "address", "interfaces"];

/// A service for what the host forwards.
fn for_host(fields: &Fields<'_>, service: SiteService) -> Result<HostService, Diagnostic> {
    let addresses = fields.need("address", "address: fd00:1::1")?;
    let addresses = one_or_list(addresses).iter().map(|node| host(node, "address"));
    let addresses = addresses.collect::<Result<_, _>>()?;
    Ok(HostService { addresses, interfaces: interfaces(fields)?, device: None, service })
}

/// A service between interfaces.
fn between(
    node: &Node,
    fields: &Fields<'_>,
    (own, service): (&str, SiteService),
) -> Result<HostService, Diagnostic> {
    let interfaces = interfaces(fields)?;
    // Only a mesh leaves the host frames of other types.
    let example = if service.ether_type().is_some() { "tap: bat0" } else { "tap: br0" };
    let tap = device(fields.need("tap", example)?, "tap")?.to_owned();
    let addresses = fields.get("address").map_or(&[][..], one_or_list);
    let addresses = addresses.iter().map(|node| address::interface(node, "address"));
    // A station keeps its address, by which others know it: the same of the same names.
    let [first, rest @ ..] = Seed::new(0, 0).stream(&["address", own, &tap], 0).bits().to_be_bytes();
    let mac = [first & !1 | 2, rest[0], rest[1], rest[2], rest[3], rest[4]];
    let device = HostDevice { tap, addresses: addresses.collect::<Result<_, _>>()?, mac };
    let known = interfaces.iter().map(|name| SiteInterface::unknown(name, device.mac)).collect::<Vec<_>>();
    let random = Seed::new(0, 0).stream(&["services", own, &device.tap], 0);
    let between = service.between((&device.tap, device.mac), &known, random);
    between.map_err(|error| node.error(error))?;
    Ok(HostService { addresses: Vec::new(), interfaces, device: Some(device), service })
}

/// Reads `send`: a map, or a list of maps. A node's packets have `mtu` bytes at most.
pub(super) fn senders(node: &Node, mtu: u16) -> Result<Vec<HostSender>, Diagnostic> {
    let mut senders: Vec<HostSender> = Vec::new();
    for node in one_or_list(node) {
        let sender = sender(node, mtu)?;
        if senders.iter().any(|other| other.to == sender.to) {
            return Err(node.error(format!("`to`: there are two groups with the address {}", sender.to)));
        }
        senders.push(sender);
    }
    Ok(senders)
}

fn sender(node: &Node, mtu: u16) -> Result<HostSender, Diagnostic> {
    const KEYS: [&str; 7] = ["to", "tun", "address", "from", "members", "interfaces", "over"];
    let fields = Fields::of(node, "`send`", &KEYS)?;
    let to = fields.need("to", "to: ff18::1")?;
    let named = fields.need("members", "members: [fd00:2::5, fd00:3::7]")?;
    let members = one_or_list(named).iter().map(|node| host(node, "members"));
    let on_device = fields.get("address").map_or(&[][..], one_or_list);
    let sender = HostSender {
        to: ip(to, "to", "ff18::1")?,
        tun: device(fields.need("tun", "tun: group0")?, "tun")?.to_owned(),
        addresses: on_device
            .iter()
            .map(|node| address::interface(node, "address"))
            .collect::<Result<_, _>>()?,
        from: host(fields.need("from", "from: fd00:1::1")?, "from")?,
        members: members.collect::<Result<_, _>>()?,
        interfaces: interfaces(&fields)?,
        over: fields.get("over").map(SiteDeliveryLayer::read).transpose()?.unwrap_or_default(),
    };
    if sender.members.is_empty() || sender.members.len() > MAX_MEMBERS {
        let found = sender.members.len();
        return Err(named.error(format!("`members`: expected 1 to {MAX_MEMBERS} addresses, found {found}")));
    }
    if let Some(twice) = (1..sender.members.len())
        .find(|&place| sender.members[..place].contains(&sender.members[place]))
        .map(|place| sender.members[place])
    {
        return Err(named.error(format!("`members`: {twice} is listed twice")));
    }
    let group = SiteGroup { own: sender.from, to: sender.to, members: &sender.members };
    if let Some(reason) = sender.over.delivery().refuses(&group) {
        return Err(named.error(format!("`{}` {reason}", sender.over.name())));
    }
    let left = u64::from(mtu).saturating_sub(sender.over.overhead());
    if left < MIN_IPV6_MTU {
        return Err(node.error(format!(
            "`{}` leaves {left} bytes of `mtu`, {mtu}, to a packet of a program, and IPv6 needs {MIN_IPV6_MTU}",
            sender.over
        )));
    }
    Ok(sender)
}

/// The interfaces of the host by which packets come.
fn interfaces(fields: &Fields<'_>) -> Result<Vec<String>, Diagnostic> {
    let node = fields.need("interfaces", "interfaces: [eth0, eth1]")?;
    let names = one_or_list(node).iter().map(|node| Ok(device(node, "interfaces")?.to_owned()));
    let names = names.collect::<Result<Vec<_>, Diagnostic>>()?;
    match names.is_empty() {
        true => Err(node.error("`interfaces`: expected the name of one at least, found an empty list")),
        false => Ok(names),
    }
}

/// An address of one host.
fn host(node: &Node, key: &str) -> Result<IpAddr, Diagnostic> {
    let found = ip(node, key, "fd00:1::1")?;
    match address::special(found) {
        None => Ok(found),
        Some(_) => {
            Err(node
                .error(format!("`{key}`: expected an address that other hosts can reach, found `{found}`")))
        }
    }
}

fn ip(node: &Node, key: &str, example: &str) -> Result<IpAddr, Diagnostic> {
    let found = text(node, key)?;
    found.parse().map_err(|_| {
        node.error(format!("`{key}`: expected an IP address, for example `{example}`, found `{found}`"))
    })
}
