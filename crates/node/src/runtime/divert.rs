//! Rules that redirect connections to sockets of this process: netfilter's, and the routes that they need.
//!
//! All of them are in one nft table and one routing table ([`Rules`]).
//! There are three kinds, each only where it is needed:
//!
//! - **Redirect** (`output`): connections that programs of this host open are redirected to a port on a loopback
//!   address. Sockets of this process carry [`OWN_MARK`] and are exempt.
//! - **TPROXY** (`prerouting`): connections that this host would forward are given to a transparent socket. Their
//!   packets have other hosts' addresses, so a mark and a rule route them to this host.
//! - **Answers** (`prerouting`): packets for connections of this process under other hosts' addresses get the same
//!   mark. Without it they would be forwarded to the host with that address.
//!
//! Connections to the host's own addresses are not redirected, even if they are in a named network.

use std::fmt::Write;
use std::net::IpAddr;

use hopcast_core::plug::Destination;

use super::error::{CommandError, PlugError};
use super::rules::Rules;

/// The mark of all sockets of this process: "hopc" in ASCII.
pub(super) const OWN_MARK: u32 = 0x686f_7063;

/// Connections to divert, and the ports that receive them.
#[derive(Debug, Default)]
pub(super) struct Diversions {
    /// The destinations of these connections.
    pub(super) to: Vec<Destination>,
    /// Ports for redirected connections of this host, each with whether it is of IPv4.
    pub(super) redirect: Vec<(u16, bool)>,
    /// Ports for forwarded connections, each with whether it is of IPv4.
    pub(super) transit: Vec<(u16, bool)>,
    /// Whether sockets of this process use other hosts' addresses.
    pub(super) answers: bool,
}

/// Makes the rules; `None` if none are needed. If one fails, those before it are removed.
pub(super) fn install(diversions: &Diversions) -> Result<Option<Rules>, PlugError> {
    if diversions.redirect.is_empty() && !diversions.answers {
        return Ok(None);
    }
    let mut made = Rules::claim()?;
    let text = rules(&made.named().table(), made.named().mark(), diversions);
    made.filter(&text)?;
    if diversions.answers {
        route_here(&mut made, "-4")?;
        let wants_v6 = diversions.transit.iter().any(|&(_, v4)| !v4);
        match route_here(&mut made, "-6") {
            // A host without IPv6 has no IPv6 connections to divert.
            Err(error) if wants_v6 => return Err(error.into()),
            _ => {}
        }
    }
    Ok(Some(made))
}

/// Routes packets with the mark to this host, whatever their destination.
fn route_here(rules: &mut Rules, version: &str) -> Result<(), CommandError> {
    rules.route(version, "local default dev lo")?;
    rules.route_marked(version)
}

/// The text of the nft table.
fn rules(table: &str, mark: u32, diversions: &Diversions) -> String {
    let mut text = format!("table inet {table} {{\n");
    let mut line = |words: String| {
        let _ = writeln!(text, "{words}");
    };
    let of = |v4: bool| diversions.to.iter().filter(move |to| to.network.is_ipv4() == v4);
    if !diversions.redirect.is_empty() {
        line("chain output { type nat hook output priority -100; policy accept;".to_owned());
        line(format!("meta mark {OWN_MARK} return"));
        line("fib daddr type local return".to_owned());
        for &(port, v4) in &diversions.redirect {
            of(v4).for_each(|to| line(format!("{} redirect to :{port}", matching(to))));
        }
        line("}".to_owned());
    }
    if diversions.answers {
        line("chain prerouting { type filter hook prerouting priority -150; policy accept;".to_owned());
        line(format!("meta l4proto tcp socket transparent 1 meta mark set {mark} accept"));
        line("fib daddr type local return".to_owned());
        for &(port, v4) in &diversions.transit {
            let here = if v4 { format!("ip to 127.0.0.1:{port}") } else { format!("ip6 to [::1]:{port}") };
            of(v4).for_each(|to| line(format!("{} tproxy {here} meta mark set {mark} accept", matching(to))));
        }
        line("}".to_owned());
    }
    line("}".to_owned());
    text
}

/// The part of a rule that matches connections.
fn matching(to: &Destination) -> String {
    let Destination { network, prefix, port } = *to;
    let version = match network {
        IpAddr::V4(_) => "ip",
        IpAddr::V6(_) => "ip6",
    };
    let network = match prefix {
        // nft has no syntax for the network of all addresses.
        0 => format!("meta nfproto {}", if network.is_ipv4() { "ipv4" } else { "ipv6" }),
        _ => format!("{version} daddr {network}/{prefix}"),
    };
    port.map_or_else(|| format!("{network} meta l4proto tcp"), |port| format!("{network} tcp dport {port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_the_network_the_port_and_where_to() {
        let to =
            |network: &str, prefix, port| Destination { network: network.parse().unwrap(), prefix, port };
        let diversions = Diversions {
            to: vec![to("10.0.0.0", 8, Some(80)), to("fd00::", 16, None), to("0.0.0.0", 0, None)],
            redirect: vec![(4000, true), (4001, false)],
            ..Diversions::default()
        };
        let rules = rules("t", 7, &diversions);
        assert!(rules.contains("ip daddr 10.0.0.0/8 tcp dport 80 redirect to :4000\n"), "{rules}");
        assert!(rules.contains("ip6 daddr fd00::/16 meta l4proto tcp redirect to :4001\n"), "{rules}");
        assert!(rules.contains("meta nfproto ipv4 meta l4proto tcp redirect to :4000\n"), "{rules}");
        assert!(!rules.contains("prerouting"), "{rules}");
    }
}
