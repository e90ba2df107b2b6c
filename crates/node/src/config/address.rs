//! Addresses, networks and destinations in the notation of the file.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hopcast_config::Diagnostic;
use hopcast_config::decode::text;
use hopcast_config::yaml::Node;
use hopcast_core::plug::Destination;

use super::PeerAddress;

/// Reads an address of this host with a port.
pub(super) fn local(node: &Node, key: &str, example: &str) -> Result<SocketAddr, Diagnostic> {
    let found = text(node, key)?;
    match found.parse::<SocketAddr>() {
        Ok(address) if address.port() != 0 => Ok(address),
        Ok(_) => Err(node.error(format!("`{key}`: expected a port from 1 to 65535, found `{found}`"))),
        Err(_) => Err(node.error(format!(
            "`{key}`: expected an IP address of this host and a port, for example `{example}`, found `{found}`"
        ))),
    }
}

/// Reads the address of a peer.
pub(super) fn peer(node: &Node, key: &str) -> Result<PeerAddress, Diagnostic> {
    let found = text(node, key)?;
    let wrong = || {
        node.error(format!(
            "`{key}`: expected `ADDRESS:PORT`, `NAME:PORT` or `anywhere`, for example `192.0.2.1:7400`, found `{found}`"
        ))
    };
    if found == "anywhere" {
        return Ok(PeerAddress::Anywhere);
    }
    if let Ok(address) = found.parse::<SocketAddr>() {
        let usable = address.port() != 0 && !address.ip().is_unspecified() && !address.ip().is_multicast();
        return if usable { Ok(PeerAddress::Address(address)) } else { Err(wrong()) };
    }
    let (host, port) = found.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse().ok().filter(|&port| port != 0).ok_or_else(wrong)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    // Numbers and dots alone are a misspelt address, and no name.
    let is_name = host.chars().all(fits) && host.chars().any(|c| c.is_ascii_alphabetic());
    if is_name { Ok(PeerAddress::Name { host: host.to_owned(), port }) } else { Err(wrong()) }
}

/// Reads an address on an interface, with the length of its prefix.
pub(super) fn interface(node: &Node, key: &str) -> Result<(IpAddr, u8), Diagnostic> {
    let found = text(node, key)?;
    let address = prefixed(found).filter(|_| found.contains('/'));
    address.ok_or_else(|| {
        node.error(format!(
            "`{key}`: expected an address with its prefix, for example `10.77.0.1/30`, found `{found}`"
        ))
    })
}

/// Reads a network.
pub(super) fn network(node: &Node, key: &str) -> Result<(IpAddr, u8), Diagnostic> {
    let found = text(node, key)?;
    let (address, prefix) = prefixed(found).ok_or_else(|| {
        node.error(format!("`{key}`: expected a network, for example `10.20.0.0/16`, found `{found}`"))
    })?;
    whole_network(node, key, address, prefix)?;
    Ok((address, prefix))
}

/// Reads a network with a port, or with all ports.
pub(super) fn destination(node: &Node, key: &str) -> Result<Destination, Diagnostic> {
    let found = text(node, key)?;
    let wrong = || {
        node.error(format!(
            "`{key}`: expected a network and perhaps a port, for example `10.20.0.0/16` or `10.20.0.5 port 443`, found `{found}`"
        ))
    };
    let mut words = found.split_whitespace();
    let (network, prefix) = words.next().and_then(prefixed).ok_or_else(wrong)?;
    let port = match (words.next(), words.next(), words.next()) {
        (None, None, None) => None,
        (Some("port"), Some(port), None) => {
            Some(port.parse().ok().filter(|&port| port != 0).ok_or_else(wrong)?)
        }
        _ => return Err(wrong()),
    };
    whole_network(node, key, network, prefix)?;
    Ok(Destination { network, prefix, port })
}

/// Whether two destinations have an address and a port in common.
pub(super) fn overlap(one: &Destination, other: &Destination) -> bool {
    let prefix = one.prefix.min(other.prefix);
    let ports = one.port.is_none() || other.port.is_none() || one.port == other.port;
    ports
        && one.network.is_ipv4() == other.network.is_ipv4()
        && masked(one.network, prefix) == masked(other.network, prefix)
}

/// Parses `10.0.0.0/8`; an address without a prefix has all its bits.
fn prefixed(text: &str) -> Option<(IpAddr, u8)> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let max = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix {
        Some(prefix) => prefix.parse().ok().filter(|&prefix| prefix <= max)?,
        None => max,
    };
    Some((address, prefix))
}

fn whole_network(node: &Node, key: &str, address: IpAddr, prefix: u8) -> Result<(), Diagnostic> {
    let network = masked(address, prefix);
    if network == address {
        return Ok(());
    }
    Err(node.error(format!(
        "`{key}`: {address}/{prefix} has bits beyond its prefix: did you mean `{network}/{prefix}`?"
    )))
}

/// Whether an address is in a network.
pub(crate) fn contains((network, prefix): (IpAddr, u8), address: IpAddr) -> bool {
    network.is_ipv4() == address.is_ipv4() && masked(address, prefix) == network
}

/// The special network that an address is in, if any, whose addresses mean something else on each host: this host,
/// loopback, link-local, multicast and broadcast (RFC 6890, RFC 5771, RFC 4291).
pub(crate) fn special(address: IpAddr) -> Option<(IpAddr, u8)> {
    const V4: [([u8; 4], u8); 5] = [
        ([0, 0, 0, 0], 8),
        ([127, 0, 0, 0], 8),
        ([169, 254, 0, 0], 16),
        ([224, 0, 0, 0], 4),
        ([255, 255, 255, 255], 32),
    ];
    const V6: [([u16; 8], u8); 4] = [
        ([0, 0, 0, 0, 0, 0, 0, 0], 128),
        ([0, 0, 0, 0, 0, 0, 0, 1], 128),
        ([0xFE80, 0, 0, 0, 0, 0, 0, 0], 10),
        ([0xFF00, 0, 0, 0, 0, 0, 0, 0], 8),
    ];
    let v4 = V4.into_iter().map(|(network, prefix)| (IpAddr::from(network), prefix));
    let v6 = V6.into_iter().map(|(network, prefix)| (IpAddr::from(network), prefix));
    v4.chain(v6).find(|&network| contains(network, address))
}

/// The first `prefix` bits of an address.
pub(crate) fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}
