//! The rules that bring others' connections to our sockets: netfilter's, and the routes that they need.
//!
//! All of them stand in one nft table and one routing table of our own, numbered by a [`Claim`], and go with
//! [`Divert`]. Three things are done, each only where it is needed:
//!
//! - **Redirect** (`output`): connections that programs of this host open are redirected to a port of ours on a
//!   loopback address. Our own sockets carry [`OWN_MARK`] and are let through.
//! - **Take out of transit** (`prerouting`): connections that this host would forward are given to a transparent
//!   socket of ours (TPROXY). Their packets are for others' addresses, so a mark and a rule route them to this host.
//! - **Bring answers** (`prerouting`): packets for connections that our sockets have under others' addresses are given
//!   the same mark. Without it they would be forwarded to whose address it is.
//!
//! Connections to the host's own addresses are left alone, even if they belong to a network that is named.

use std::fmt::Write;
use std::net::IpAddr;

use hopcast_core::plug::Destination;

use super::claim::Claim;
use super::command::{ip, run};
use super::error::{CommandError, PlugError};

/// The mark of all our own sockets: "hopc".
pub(super) const OWN_MARK: u32 = 0x686f_7063;

/// What is to be brought where.
#[derive(Debug, Default)]
pub(super) struct Take {
    /// Of which connections.
    pub(super) to: Vec<Destination>,
    /// The ports to which connections of this host are redirected, each with whether it is IPv4's.
    pub(super) redirect: Vec<(u16, bool)>,
    /// The ports to which connections in transit are given.
    pub(super) transit: Vec<(u16, bool)>,
    /// Whether our sockets use others' addresses.
    pub(super) answers: bool,
}

/// The rules, for as long as this is there.
#[derive(Debug)]
pub(super) struct Divert {
    /// What takes them away again, in the order in which they were made: programs and their words.
    undo: Vec<(&'static str, String)>,
    /// Given back after that.
    _claim: Claim,
}

impl Divert {
    /// Makes the rules; `None` if there is nothing to do. Where one fails, those before it are taken away again.
    pub(super) fn install(take: &Take) -> Result<Option<Self>, PlugError> {
        if take.redirect.is_empty() && !take.answers {
            return Ok(None);
        }
        let claim = Claim::first_free()?;
        let (table, mark) = (claim.table(), claim.mark());
        let mut divert = Self { undo: Vec::new(), _claim: claim };
        let undo = format!("delete table inet {table}");
        // Of one that had our number, and was killed.
        let _ = run("nft", &undo, "");
        divert.undo.push(("nft", undo));
        run("nft", "-f -", &rules(&table, mark, take))?;
        if take.answers {
            divert.route_here("-4", mark)?;
            let wants_v6 = take.transit.iter().any(|&(_, v4)| !v4);
            match divert.route_here("-6", mark) {
                // A host without IPv6 has no connections to be taken over either.
                Err(error) if wants_v6 => return Err(error.into()),
                _ => {}
            }
        }
        Ok(Some(divert))
    }

    /// Lets packets with the mark be received here, whomever they are for.
    fn route_here(&mut self, version: &str, mark: u32) -> Result<(), CommandError> {
        // The table has the same number as the mark.
        let mut both = |verb: [&str; 2], what: String| {
            let undo = format!("{version} {} {what}", verb[1]);
            let _ = ip(&undo);
            ip(&format!("{version} {} {what}", verb[0]))?;
            self.undo.push(("ip", undo));
            Ok::<(), CommandError>(())
        };
        both(["route add", "route del"], format!("local default dev lo table {mark}"))?;
        both(["rule add", "rule del"], format!("fwmark {mark} lookup {mark}"))
    }
}

impl Drop for Divert {
    fn drop(&mut self) {
        for (program, line) in self.undo.drain(..).rev() {
            // If somebody else has taken it away, it is gone as well.
            let _ = run(program, &line, "");
        }
    }
}

/// The nft table.
fn rules(table: &str, mark: u32, take: &Take) -> String {
    let mut text = format!("table inet {table} {{\n");
    let mut line = |words: String| {
        let _ = writeln!(text, "{words}");
    };
    let of = |v4: bool| take.to.iter().filter(move |to| to.network.is_ipv4() == v4);
    if !take.redirect.is_empty() {
        line("chain output { type nat hook output priority -100; policy accept;".to_owned());
        line(format!("meta mark {OWN_MARK} return"));
        line("fib daddr type local return".to_owned());
        for &(port, v4) in &take.redirect {
            of(v4).for_each(|to| line(format!("{} redirect to :{port}", matching(to))));
        }
        line("}".to_owned());
    }
    if take.answers {
        line("chain prerouting { type filter hook prerouting priority -150; policy accept;".to_owned());
        line(format!("meta l4proto tcp socket transparent 1 meta mark set {mark} accept"));
        line("fib daddr type local return".to_owned());
        for &(port, v4) in &take.transit {
            let here = if v4 { format!("ip to 127.0.0.1:{port}") } else { format!("ip6 to [::1]:{port}") };
            of(v4).for_each(|to| line(format!("{} tproxy {here} meta mark set {mark} accept", matching(to))));
        }
        line("}".to_owned());
    }
    line("}".to_owned());
    text
}

/// The part of a rule that says which connections.
fn matching(to: &Destination) -> String {
    let Destination { network, prefix, port } = *to;
    let version = match network {
        IpAddr::V4(_) => "ip",
        IpAddr::V6(_) => "ip6",
    };
    let network = match prefix {
        // nft knows no network of all addresses.
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
        let take = Take {
            to: vec![to("10.0.0.0", 8, Some(80)), to("fd00::", 16, None), to("0.0.0.0", 0, None)],
            redirect: vec![(4000, true), (4001, false)],
            ..Take::default()
        };
        let rules = rules("t", 7, &take);
        assert!(rules.contains("ip daddr 10.0.0.0/8 tcp dport 80 redirect to :4000\n"), "{rules}");
        assert!(rules.contains("ip6 daddr fd00::/16 meta l4proto tcp redirect to :4001\n"), "{rules}");
        assert!(rules.contains("meta nfproto ipv4 meta l4proto tcp redirect to :4000\n"), "{rules}");
        assert!(!rules.contains("prerouting"), "{rules}");
    }
}
