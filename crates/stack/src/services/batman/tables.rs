//! The tables of a node, as `batctl` shows them.

use hopcast_mesh::multicast::flags_text;
use hopcast_mesh::{
    ArpEntry, BackboneStatus, ClaimStatus, GatewayStatus, Key, Mesh, MulticastStatus, OriginatorStatus,
};
use hopcast_wire::ethernet;
use hopcast_wire::vlan::MAX_ID;

use super::Algorithm;
use crate::service::{ORIGINATORS, StatusCell, StatusTable};

/// The tables that `batctl n`, `o`, `tg`, `tl`, `mcast_flags`, `gwl`, `dc`, `cl` and `bbt` would show, of a node whose
/// interfaces have these names.
pub(super) fn tables(mesh: &Mesh, names: &[String], algorithm: Algorithm) -> Vec<StatusTable> {
    let (columns, metric): (&'static [&str], fn(u32) -> String) = match algorithm {
        Algorithm::Iv => (&["originator", "last seen", "tq", "next hop", "interface"], |tq| tq.to_string()),
        // In units of 100 kbit/s.
        Algorithm::V => (&["originator", "last seen", "throughput", "next hop", "interface"], |throughput| {
            format!("{:.1} Mbit/s", f64::from(throughput) / 10.0)
        }),
    };
    let neighbours = names.iter().enumerate().flat_map(|(number, name)| {
        mesh.neighbours(number).into_iter().map(move |address| vec![StatusCell::Address(address), text(name)])
    });
    let originator = |one: OriginatorStatus| {
        let by = names.get(one.interface).map_or("", String::as_str);
        vec![
            StatusCell::Address(one.originator),
            StatusCell::Time(one.last_seen),
            text(&metric(one.metric)),
            StatusCell::Address(one.next_hop),
            text(&by),
        ]
    };
    let (groups, stations): (Vec<_>, Vec<_>) =
        mesh.global_clients().into_iter().partition(|(key, _)| ethernet::is_group(key.address));
    let global = |(key, node): (Key, _)| {
        vec![StatusCell::Address(key.address), vlan(key.vlan), StatusCell::Address(node)]
    };
    let group = |(key, node): (Key, _)| vec![StatusCell::Address(key.address), StatusCell::Address(node)];
    let own = mesh.local_clients().into_iter();
    let local = own.filter(|key| !ethernet::is_group(key.address));
    let local = local.map(|key| vec![StatusCell::Address(key.address), vlan(key.vlan)]);
    let MulticastStatus { flags, others, .. } = mesh.multicast();
    let wishes = |(node, flags): (_, Option<u8>)| {
        vec![StatusCell::Address(node), text(&flags.map_or_else(|| "none".to_owned(), flags_text))]
    };
    let wishes = [(mesh.address(), Some(flags))].into_iter().chain(others).map(wishes);
    vec![
        StatusTable { name: "neighbours", columns: &["neighbour", "interface"], rows: neighbours.collect() },
        StatusTable {
            name: ORIGINATORS,
            columns,
            rows: mesh.originators().into_iter().map(originator).collect(),
        },
        StatusTable {
            name: "global clients",
            columns: &["client", "vlan", "originator"],
            rows: stations.into_iter().map(global).collect(),
        },
        StatusTable { name: "local clients", columns: &["client", "vlan"], rows: local.collect() },
        StatusTable {
            name: "groups",
            columns: &["group", "originator"],
            rows: groups.into_iter().map(group).collect(),
        },
        StatusTable { name: "multicast flags", columns: &["originator", "flags"], rows: wishes.collect() },
        gateways(mesh, metric),
        arp_table(mesh),
        claims(mesh),
        backbones(mesh),
    ]
}

fn gateways(mesh: &Mesh, metric: fn(u32) -> String) -> StatusTable {
    let row = |one: GatewayStatus| {
        let metric = one.metric.map_or_else(|| "no route".to_owned(), metric);
        let used = if one.selected { "yes" } else { "no" };
        vec![StatusCell::Address(one.node), text(&one.down), text(&one.up), text(&metric), text(&used)]
    };
    StatusTable {
        name: "gateways",
        columns: &["gateway", "down", "up", "metric", "used"],
        rows: mesh.gateways().into_iter().map(row).collect(),
    }
}

fn arp_table(mesh: &Mesh) -> StatusTable {
    let row = |ArpEntry { address, mac, vlan: id, last_heard }| {
        vec![text(&address), StatusCell::Address(mac), vlan(id), StatusCell::Time(last_heard)]
    };
    StatusTable {
        name: "ARP table",
        columns: &["address", "client", "vlan", "last heard"],
        rows: mesh.arp_table().into_iter().map(row).collect(),
    }
}

fn claims(mesh: &Mesh) -> StatusTable {
    let row = |ClaimStatus { client, node, .. }| {
        vec![StatusCell::Address(client.address), vlan(client.vlan), StatusCell::Address(node)]
    };
    StatusTable {
        name: "claims",
        columns: &["client", "vlan", "node"],
        rows: mesh.claims().into_iter().map(row).collect(),
    }
}

fn backbones(mesh: &Mesh) -> StatusTable {
    let row = |BackboneStatus { node, vlan: id, last_heard, .. }| {
        vec![StatusCell::Address(node), vlan(id), StatusCell::Time(last_heard)]
    };
    StatusTable {
        name: "backbones",
        columns: &["node", "vlan", "last heard"],
        rows: mesh.backbones().into_iter().map(row).collect(),
    }
}

fn text(shown: &dyn ToString) -> StatusCell {
    StatusCell::Text(shown.to_string())
}

fn vlan(vlan: u16) -> StatusCell {
    match vlan & MAX_ID {
        0 => text(&"none"),
        id => text(&id),
    }
}
