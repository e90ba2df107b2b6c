//! The keys of what a node does for its host: services for what that forwards, and groups to which its programs send.

use std::net::IpAddr;

use hopcast_config::Diagnostic;
use hopcast_config::decode::{Fields, one_or_list, text};
use hopcast_config::yaml::Node;
use hopcast_stack::site::{SiteDeliveryLayer, SiteGroup, SiteService};

use super::address;
use super::decode::device;
use super::{HostSender, HostService};

/// Minimum MTU of a device for IPv6, in bytes (RFC 8200, section 5).
const MIN_IPV6_MTU: u64 = 1280;
/// Maximum number of members of a group. Chosen: each costs a packet or a place in one for each of a program, and a
/// network with more has groups of its own.
const MAX_MEMBERS: usize = 1024;

/// Reads `services`: a map or a list of maps, each with its own options.
pub(super) fn services(node: &Node) -> Result<Vec<HostService>, Diagnostic> {
    let mut services: Vec<HostService> = Vec::new();
    for node in one_or_list(node) {
        const KEYS: [&str; 3] = ["run", "address", "interfaces"];
        let run = node.get("run").ok_or_else(|| node.error("`services` needs `run`, the service"))?;
        let row = SiteService::find(run)?;
        let options = (row.options)();
        let keys: Vec<&str> = KEYS.into_iter().chain(options.iter().map(|option| option.key)).collect();
        let fields = Fields::of(node, "`services`", &keys)?;
        let addresses = fields.need("address", "address: fd00:1::1")?;
        let addresses = one_or_list(addresses).iter().map(|node| host(node, "address"));
        let service = HostService {
            addresses: addresses.collect::<Result<_, _>>()?,
            interfaces: interfaces(&fields)?,
            service: SiteService::read(row, node)?,
        };
        if services.iter().any(|other| other.service.name() == service.service.name()) {
            return Err(run.error(format!("`run`: `{}` is there twice", row.name)));
        }
        services.push(service);
    }
    Ok(services)
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
