//! Topologies of containerlab: `topology.nodes`, and `topology.links` in the brief and in the extended form.
//!
//! A file names the interfaces that are joined, and of a link's properties at most the MTU. Links to the host or to no
//! node (`host`, `mgmt-net`, `macvlan`, `vxlan`, `dummy`) are left out; a bridge is read as a node.

use std::collections::BTreeMap;

use super::{LinkNames, Names, Network, entry, list, scalar, to_itself};
use crate::scenario::files::TextFile;
use hopcast_config::Diagnostic;
use hopcast_config::decode::{self, entries, text};
use hopcast_config::yaml::{Kind, Node};

/// Words in place of a node at the end of a link that leaves the lab.
const OUTSIDE: [&str; 4] = ["host", "mgmt-net", "macvlan", "dummy"];

/// The nodes and links of a parsed file.
pub(super) fn read(file: &TextFile) -> Result<Network, Diagnostic> {
    let root = file.yaml()?;
    let topology = root
        .get("topology")
        .ok_or_else(|| root.error("a containerlab file needs `topology`, which is not here"))?;
    let nodes = topology.get("nodes").ok_or_else(|| topology.error("`topology` needs `nodes`"))?;
    let mut names = Names::default();
    let (mut known, mut by_name) = (Vec::new(), BTreeMap::new());
    for node in entries(nodes, "`nodes`")? {
        let name = names.take(&node.key);
        by_name.insert(node.key.as_str(), name.clone());
        known.push(scalar(name, &node.key_span));
    }
    let mut link_names = LinkNames::default();
    let (mut links, mut notes) = (Vec::new(), Vec::new());
    for link in
        topology.get("links").map(|links| decode::list(links, "links")).transpose()?.unwrap_or_default()
    {
        let Some(ends) = endpoints(link)? else { continue };
        let mut joined = Vec::new();
        for (name, at) in &ends {
            let found = by_name.get(name.as_str()).ok_or_else(|| {
                let hint = decode::did_you_mean(name, by_name.keys().copied());
                at.error(format!("`endpoints`: there is no node `{name}`{hint}"))
            })?;
            joined.push(scalar(found.clone(), &at.span));
        }
        if joined[0].written() == joined[1].written() {
            notes.push(to_itself(&joined[0].written(), &link.span));
            continue;
        }
        let name = link_names.name(None, &joined);
        let mut written = vec![entry("between", list(joined, &link.span))];
        written.extend(name.map(|name| entry("name", scalar(name, &link.span))));
        written.extend(link.get("mtu").map(|mtu| entry("mtu", mtu.clone())));
        links.push(Node { span: link.span.clone(), kind: Kind::Map(written) });
    }
    Ok(Network { nodes: list(known, &nodes.span), links: list(links, &topology.span), notes })
}

/// The names of the two nodes that a link joins, each with its place in the file; `None` if the link leaves the lab.
fn endpoints(link: &Node) -> Result<Option<[(String, &Node); 2]>, Diagnostic> {
    let joins_nodes = |kind: &Node| matches!(&kind.kind, Kind::Scalar(kind) if kind == "veth");
    if link.get("type").is_some_and(|kind| !joins_nodes(kind)) {
        return Ok(None);
    }
    let ends = link
        .get("endpoints")
        .ok_or_else(|| link.error("a link needs `endpoints`, such as `[\"a:eth1\", \"b:eth1\"]`"))?;
    let mut found = Vec::new();
    for end in decode::list(ends, "endpoints")? {
        let (node, at) = match end.get("node") {
            Some(node) => (text(node, "node")?.to_owned(), node),
            None => {
                let written = text(end, "endpoints")?;
                let (node, _) = written.split_once(':').ok_or_else(|| {
                    end.error(format!("`endpoints`: expected `node:interface`, found `{written}`"))
                })?;
                (node.to_owned(), end)
            }
        };
        if OUTSIDE.contains(&node.as_str()) {
            return Ok(None);
        }
        found.push((node, at));
    }
    let count = found.len();
    let two: [_; 2] = found
        .try_into()
        .map_err(|_| ends.error(format!("`endpoints`: expected two of them, found {count}")))?;
    Ok(Some(two))
}
