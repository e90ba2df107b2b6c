mod discovery;
mod examples;
mod groups;
mod network;
mod responses;
mod revision;
mod testbed;

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Machine, Port, Seed, Stream, Transit};

use super::tree::Path;
use super::{Config, Group, Grouping, Groups, Sender, Tree};
use crate::meadcast::wire::{Kind, NO_NEXT_HEADER, Packet};
use crate::testing::at;

const GROUP: &str = "ff18::1";

fn random() -> Stream {
    Seed::new(1, 0).stream(&["sender"], 0)
}

/// A datagram of the application to the group.
fn datagram(payload: Buffer) -> Item {
    Item::Datagram(Datagram::new((at("fd14::1"), 4000).into(), (at(GROUP), 5001).into(), payload))
}

/// Address of the router or receiver with a short name: `R1`, `E3`.
fn named(name: &str) -> Ipv6Addr {
    let (kind, number) = name.split_at(1);
    at(&format!("fd14::{}:{number}", if kind == "R" { 1 } else { 2 }))
}

/// The short name of an address.
fn name(address: Ipv6Addr) -> String {
    let [.., kind, number] = address.segments();
    format!("{}{number:x}", if kind == 1 { "R" } else { "E" })
}

/// The names in a group, as the thesis writes them.
fn names(group: &Group) -> String {
    let names: Vec<String> = group.list.iter().map(|octets| name(Ipv6Addr::from(*octets))).collect();
    names.join(" ")
}

/// Groups by names: of each packet, and of unicast.
fn all_names(groups: &Groups) -> (Vec<String>, String) {
    let unicast: Vec<String> = groups.unicast.iter().copied().map(name).collect();
    (groups.packets.iter().map(names).collect(), unicast.join(" "))
}

/// Receivers with the routers on the way to each, from the first on, by their names.
fn paths(named_paths: &[(&str, &[&str])]) -> (Vec<Ipv6Addr>, BTreeMap<Ipv6Addr, Path>) {
    let path =
        |routers: &[&str]| routers.iter().zip(1..).map(|(router, hops)| (hops, named(router))).collect();
    let receivers = named_paths.iter().map(|(receiver, _)| named(receiver)).collect();
    (receivers, named_paths.iter().map(|(receiver, routers)| (named(receiver), path(routers))).collect())
}

fn groups(named_paths: &[(&str, &[&str])], config: &Config) -> Groups {
    let (receivers, paths) = paths(named_paths);
    let mut tree = Tree::new(&receivers, &paths);
    tree.cut(config.min_leaves, config.min_routers);
    Groups::new(&tree, config, at("fd14::1"), &receivers)
}
