//! The text of the rules that take packets out of the kernel.
//!
//! They are in `prerouting`, where a packet is as it arrived, with its hop limit not yet decremented, both in transit
//! and for this host. One rule logs a packet to this process and drops it, so that the same packets are taken and
//! dropped. A packet to a group may have members on this host too: it is logged and marked, and only its forwarded
//! copies are dropped.

use std::fmt::Write;
use std::net::IpAddr;

use hopcast_core::Hook;
use hopcast_core::plug::HookPlug;

use super::super::claim::Claim;
use super::super::divert::OWN_MARK;
use super::super::error::PlugError;
use super::ingress::GROUP;

/// The packets of a hook, of one IP version.
struct Selection {
    v6: bool,
    words: String,
    for_host: bool,
}

/// Whether a plug may take packets of IPv4, and of IPv6.
pub(super) fn versions(hooks: &[Hook]) -> [bool; 2] {
    let of = |hook: &Hook| match *hook {
        Hook::All | Hook::Protocol(_) | Hook::Transport { .. } | Hook::WrongInterface | Hook::OwnToGroup => {
            [true; 2]
        }
        Hook::Destination { prefix, .. } => [prefix.is_ipv4(), prefix.is_ipv6()],
        Hook::ExtensionHeader { .. } => [false, true],
    };
    hooks.iter().map(of).fold([false; 2], |all, one| [all[0] | one[0], all[1] | one[1]])
}

/// The nft table that takes the packets of a plug to the log group of `claim`; `forwards` says whether the host
/// forwards IPv4, and IPv6: what it does not forward is not in transit.
///
/// # Errors
/// A hook or name that nft cannot express.
pub(super) fn table(claim: &Claim, plug: &HookPlug, forwards: [bool; 2]) -> Result<String, PlugError> {
    let (mark, group) = (claim.mark(), claim.log_group());
    let mut names = String::new();
    for name in &plug.interfaces {
        if name.contains(['"', '*', '\\']) {
            return Err(PlugError::InterfaceName);
        }
        let _ = write!(names, "\"{name}\", ");
    }
    let mut text = format!("table inet {} {{\n", claim.table());
    let mut line = |words: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "{words}");
    };
    // Before connection tracking, which would take it for a packet of a connection.
    line(format_args!("chain prerouting {{ type filter hook prerouting priority -300; policy accept;"));
    line(format_args!("iifgroup {GROUP} return"));
    line(format_args!("meta mark {OWN_MARK} return"));
    line(format_args!("meta mark & {:#x} == {:#x} return", Claim::MASK, Claim::MARKS));
    let all = plug.hooks.iter().map(selections).collect::<Result<Vec<_>, _>>()?;
    for Selection { v6, words, for_host } in all.iter().flatten() {
        // What the host itself sends to a group comes back to it, as from the interface by which it left.
        line(format_args!(
            "iifname {{ {names} }} {words} fib daddr type {{ multicast, broadcast }} fib saddr type != local \
             log group {group} meta mark set {mark} accept"
        ));
        if *for_host {
            line(format_args!(
                "iifname {{ {names} \"lo\" }} {words} fib daddr type local log group {group} drop"
            ));
        }
        if forwards[usize::from(*v6)] {
            line(format_args!(
                "iifname {{ {names} }} {words} fib daddr type != {{ local, anycast, multicast, broadcast }} \
                 log group {group} drop"
            ));
        }
    }
    line(format_args!("}}"));
    line(format_args!("chain forward {{ type filter hook forward priority -300; policy accept;"));
    line(format_args!("meta mark {mark} drop"));
    line(format_args!("}}\n}}"));
    Ok(text)
}

fn selections(hook: &Hook) -> Result<Vec<Selection>, PlugError> {
    let both = |words: String| {
        let of = |(v6, version)| Selection {
            v6,
            words: format!("meta nfproto {version} {words}"),
            for_host: hook.is_for_host(),
        };
        [(false, "ipv4"), (true, "ipv6")].map(of).into()
    };
    Ok(match *hook {
        Hook::All => both(String::new()),
        Hook::Protocol(protocol) => both(format!("meta l4proto {protocol}")),
        Hook::Transport { protocol, port: None } => both(format!("meta l4proto {protocol}")),
        Hook::Transport { protocol, port: Some(port) } => {
            both(format!("meta l4proto {protocol} th dport {port}"))
        }
        // Netfilter comes before the kernel's multicast routing, which alone knows the interface.
        Hook::WrongInterface | Hook::OwnToGroup => return Err(PlugError::NoSelection(*hook)),
        Hook::Destination { prefix, length } => {
            let (v6, version, max) = match prefix {
                IpAddr::V4(_) => (false, "ip", 32),
                IpAddr::V6(_) => (true, "ip6", 128),
            };
            let words = match length.min(max) {
                // nft has no syntax for the network of all addresses.
                0 => format!("meta nfproto {}", if v6 { "ipv6" } else { "ipv4" }),
                length => format!("{version} daddr {prefix}/{length}"),
            };
            vec![Selection { v6, words, for_host: false }]
        }
        Hook::ExtensionHeader { header, kind } => {
            let words = match (header, kind) {
                (43, Some(kind)) => format!("rt type {kind}"),
                (0, None) => "exthdr hbh exists".to_owned(),
                (43, None) => "exthdr rt exists".to_owned(),
                (44, None) => "exthdr frag exists".to_owned(),
                (60, None) => "exthdr dst exists".to_owned(),
                (135, None) => "exthdr mh exists".to_owned(),
                _ => return Err(PlugError::NoSelection(*hook)),
            };
            vec![Selection { v6: true, words, for_host: true }]
        }
    })
}
