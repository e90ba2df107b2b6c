//! Settings of a node's kernel, with which it behaves like the twin's hosts and sends no packets of its own.

use std::fs;

use super::Error;

/// Settings below `/proc/sys/net` that a node must have.
const REQUIRED: &[(&str, &str)] = &[
    // Every node forwards.
    ("ipv4/ip_forward", "1"),
    ("ipv6/conf/all/forwarding", "1"),
    // It has no effect on forwarding: it only decides whether an interface joins the group of all routers.
    ("ipv6/conf/default/forwarding", "0"),
    // The hop limit of the twin: paths may be longer than the usual 64.
    ("ipv4/ip_default_ttl", "255"),
    ("ipv6/conf/all/hop_limit", "255"),
    ("ipv6/conf/default/hop_limit", "255"),
    // Both directions of a flow may use different routes.
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv4/conf/default/rp_filter", "0"),
    // No frames but those of the flows: no duplicate address detection, no solicitations, no advertisements.
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv6/conf/default/dad_transmits", "0"),
    ("ipv6/conf/default/router_solicitations", "0"),
    ("ipv6/conf/default/accept_ra", "0"),
    ("ipv6/conf/default/autoconf", "0"),
    ("ipv6/conf/default/addr_gen_mode", "1"),
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/default/send_redirects", "0"),
    ("ipv4/conf/all/accept_redirects", "0"),
    ("ipv4/conf/default/accept_redirects", "0"),
    // A connection starts without metrics of earlier ones.
    ("ipv4/tcp_no_metrics_save", "1"),
    // Windows for 1 Gbit/s over 250 ms, so that the link limits a connection, and not its buffers.
    ("ipv4/tcp_rmem", "4096 131072 67108864"),
    ("ipv4/tcp_wmem", "4096 65536 67108864"),
];

/// Settings that older kernels lack or share between all namespaces.
const OPTIONAL: &[(&str, &str)] = &[
    // Losses occur on links, and not because a node limits its ICMP errors.
    ("ipv4/icmp_ratelimit", "0"),
    ("ipv4/icmp_msgs_per_sec", "1000000"),
    ("ipv6/icmp/ratelimit", "0"),
];

/// Applies all settings to the network namespace of the calling thread, before it has interfaces.
pub(super) fn apply() -> Result<(), Error> {
    for (key, value) in REQUIRED {
        set(key, value).map_err(|source| Error::Setting { key, value, source })?;
    }
    for (key, value) in OPTIONAL {
        let _ = set(key, value);
    }
    // Programs without privileges may choose any congestion control of this kernel too.
    if let Ok(available) = fs::read_to_string(path("ipv4/tcp_available_congestion_control")) {
        let _ = set("ipv4/tcp_allowed_congestion_control", available.trim());
    }
    Ok(())
}

fn set(key: &str, value: &str) -> std::io::Result<()> {
    fs::write(path(key), value)
}

fn path(key: &str) -> String {
    format!("/proc/sys/net/{key}")
}
