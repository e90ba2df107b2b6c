//! Nodes and links: written out, made by a generator, or both.

use std::collections::BTreeMap;
use std::sync::Arc;

use hopcast_link::Config;
use hopcast_radio::Fleet;

use super::exchange;
use super::files::Contents;
use super::generate;
use super::link;
use super::model::{Link, LinkId, LinkModel, Node as Host, NodeId};
use super::shared;
use super::ships::{self, ShipKeys, Ships};
use hopcast_config::Diagnostic;
use hopcast_config::decode::{
    self, Fields, check_name, did_you_mean, list, name, number, one_or_list, text, whole,
};
use hopcast_config::yaml::{Kind, Node, Span};
use hopcast_stack::network::{Network, Prefix, read_prefixes};

/// Maximum number of nodes, and of links. Chosen: it bounds the memory and time that a generator can take.
pub(crate) const MAX_ELEMENTS: u64 = 1_000_000;

/// Maximum number of stations of a medium or switch: each pair of them has counters of its own. Chosen: it bounds
/// memory, which grows with the square.
pub(crate) const MAX_STATIONS: usize = 256;

/// The network.
#[derive(Default)]
pub(crate) struct Topology {
    pub(crate) nodes: Vec<Host>,
    pub(crate) links: Vec<Link>,
    /// The parts of other programs' files that are left out.
    pub(crate) notes: Vec<String>,
    node_names: BTreeMap<String, NodeId>,
    link_names: BTreeMap<String, LinkId>,
    /// The nodes of each class, whose names the file chooses.
    classes: BTreeMap<String, Vec<NodeId>>,
    /// The values of the file with the prefixes of links.
    prefixes: BTreeMap<LinkId, Node>,
    /// Where nodes are, and how they move.
    pub(super) ships: Ships,
    /// The ships of each radio link.
    pub(crate) fleets: Vec<(LinkId, Arc<Fleet>)>,
}

impl Topology {
    /// The network of `topology`, whose ships move as `motion` says.
    pub(crate) fn of(
        node: &Node,
        motion: Option<&Node>,
        contents: &mut Contents,
    ) -> Result<Self, Diagnostic> {
        let allowed =
            ["nodes", "links", "chain", "star", "tree", "grid", "full", "switch", "graphml", "containerlab"];
        let fields = Fields::of(node, "`topology`", &allowed)?;
        let mut topology = Self::default();
        for key in fields.keys() {
            let Some(part) = fields.get(key) else { continue };
            match key {
                "nodes" => topology.add_nodes(part)?,
                "links" => {}
                format if exchange::FORMATS.contains(&format) => {
                    let network = exchange::read(format, part, contents)?;
                    topology.add_nodes(&network.nodes)?;
                    topology.notes.extend(network.notes);
                    for item in list(&network.links, "links")? {
                        topology.add_written_link(item, contents)?;
                    }
                }
                generator => generate::generate(&mut topology, generator, part, contents)?,
            }
        }
        let mut ships = std::mem::take(&mut topology.ships);
        ships.move_by(motion, &topology, contents)?;
        topology.ships = ships;
        // Last, as they may join what generators make.
        if let Some(links) = fields.get("links") {
            for item in list(links, "links")? {
                topology.add_written_link(item, contents)?;
            }
        }
        if topology.nodes.is_empty() {
            return Err(fields.error(
                "`topology` has no nodes: give it `nodes` and `links`, or a generator such as `chain: { hops: 6 }`",
            ));
        }
        Ok(topology)
    }

    /// The network, as flows are built on it, without roles.
    pub(crate) fn network(&self) -> Network<'_> {
        static NO_ROLES: BTreeMap<String, Vec<NodeId>> = BTreeMap::new();
        Network { nodes: &self.nodes, links: &self.links, roles: &NO_ROLES, services: &[] }
    }

    /// The links with prefixes, each with their value in the file, in the order of the file.
    pub(crate) fn written_prefixes(&self) -> impl Iterator<Item = (LinkId, &Node)> {
        self.prefixes.iter().map(|(&link, node)| (link, node))
    }

    /// The value of the file with the prefixes of a link.
    pub(crate) fn written_prefix(&self, link: LinkId) -> Option<&Node> {
        self.prefixes.get(&link)
    }

    /// The node that `node` names.
    pub(crate) fn node(&self, node: &Node, key: &str) -> Result<NodeId, Diagnostic> {
        let found = text(node, key)?;
        self.node_names.get(found).copied().ok_or_else(|| {
            if self.classes.contains_key(found) {
                return node.error(format!("`{key}`: expected one node, and `{found}` is a class of nodes"));
            }
            let hint = did_you_mean(found, self.node_names.keys().map(String::as_str));
            node.error(format!("`{key}`: there is no node `{found}`{hint}"))
        })
    }

    /// Whether there is a node of this name.
    pub(crate) fn has_node(&self, name: &str) -> bool {
        self.node_names.contains_key(name)
    }

    /// Whether a name stands for several nodes: a class, or `all`.
    pub(crate) fn is_list(&self, name: &str) -> bool {
        name == "all" || self.classes.contains_key(name)
    }

    /// The names of all nodes.
    pub(crate) fn node_names(&self) -> impl Iterator<Item = &str> {
        self.node_names.keys().map(String::as_str)
    }

    /// The nodes that a name or list of names stands for, each once: of nodes, of classes of nodes, or `all`.
    pub(crate) fn node_list(&self, node: &Node, key: &str) -> Result<Vec<NodeId>, Diagnostic> {
        let mut nodes = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for item in one_or_list(node) {
            for id in self.named(item, key)? {
                if !seen.insert(id) {
                    let (name, found) = (&self.nodes[id].name, item.found());
                    let whose =
                        if found == format!("`{name}`") { String::new() } else { format!("`{name}` of ") };
                    return Err(item.error(format!("`{key}`: {whose}{found} is listed twice")));
                }
                nodes.push(id);
            }
        }
        Ok(nodes)
    }

    /// The nodes that one name stands for.
    fn named(&self, item: &Node, key: &str) -> Result<Vec<NodeId>, Diagnostic> {
        match &item.kind {
            Kind::Scalar(name) if self.node_names.contains_key(name) => {}
            Kind::Scalar(name) if name == "all" => return Ok((0..self.nodes.len()).collect()),
            Kind::Scalar(name) if self.classes.contains_key(name) => return Ok(self.classes[name].clone()),
            Kind::Scalar(name) if !name.is_empty() => {
                let classes = self.classes.keys().map(String::as_str);
                let hint = did_you_mean(name, self.node_names().chain(classes).chain(["all"]));
                return Err(item.error(format!("`{key}`: there is no node `{name}`{hint}")));
            }
            Kind::Scalar(_) | Kind::List(_) | Kind::Map(_) => {}
        }
        self.node(item, key).map(|id| vec![id])
    }

    /// The link that `node` names.
    pub(crate) fn link(&self, node: &Node, key: &str) -> Result<LinkId, Diagnostic> {
        let found = text(node, key)?;
        self.link_names.get(found).copied().ok_or_else(|| {
            let hint = match self.link_between(found) {
                Some(link) => format!(": did you mean `{}`?", link.name),
                None => did_you_mean(found, self.link_names.keys().map(String::as_str)),
            };
            node.error(format!("`{key}`: there is no link `{found}`{hint}"))
        })
    }

    /// The first link between the two nodes that `found` names, in either order, whatever its own name.
    fn link_between(&self, found: &str) -> Option<&Link> {
        let node = |name: &str| self.node_names.get(name).copied();
        let mut pairs = decode::ends_of_link(found).filter_map(|(one, other)| node(one).zip(node(other)));
        pairs.find_map(|(one, other)| {
            self.links.iter().find(|link| *link.ends == [one, other] || *link.ends == [other, one])
        })
    }

    pub(crate) fn add_node(
        &mut self,
        name: &str,
        position: Option<(f64, f64)>,
        span: &Span,
    ) -> Result<NodeId, Diagnostic> {
        let id = self.nodes.len();
        if id as u64 >= MAX_ELEMENTS {
            return Err(span.error(format!("a topology has at most {MAX_ELEMENTS} nodes")));
        }
        if self.node_names.insert(name.to_owned(), id).is_some() {
            return Err(span.error(format!("the node name `{name}` is taken already")));
        }
        self.nodes.push(Host { name: name.to_owned(), position, claims: Vec::new() });
        Ok(id)
    }

    /// Adds a link; without a name it gets that of its ends.
    pub(crate) fn add_link(
        &mut self,
        name: Option<&str>,
        ends: Vec<NodeId>,
        model: LinkModel,
        span: &Span,
    ) -> Result<(), Diagnostic> {
        let id = self.links.len();
        if id as u64 >= MAX_ELEMENTS {
            return Err(span.error(format!("a topology has at most {MAX_ELEMENTS} links")));
        }
        let name = match name {
            Some(name) => name.to_owned(),
            None => {
                let ends: Vec<_> = ends.iter().map(|end| self.nodes[*end].name.as_str()).collect();
                ends.join("-")
            }
        };
        if self.link_names.insert(name.clone(), id).is_some() {
            return Err(
                span.error(format!("the link name `{name}` is taken already: give this one a `name`"))
            );
        }
        self.links.push(Link { name, ends, prefixes: Vec::new(), model });
        Ok(())
    }

    pub(crate) fn add_pair(
        &mut self,
        from: NodeId,
        to: NodeId,
        config: &Config,
        span: &Span,
    ) -> Result<(), Diagnostic> {
        self.add_link(None, vec![from, to], LinkModel::PointToPoint(config.clone()), span)
    }

    fn add_nodes(&mut self, node: &Node) -> Result<(), Diagnostic> {
        for item in list(node, "nodes")? {
            match &item.kind {
                Kind::Map(_) => self.add_written_nodes(item)?,
                Kind::Scalar(_) | Kind::List(_) => {
                    self.add_node(name(item, "nodes")?, None, &item.span)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a node with its keys, or as many as its `count` says.
    fn add_written_nodes(&mut self, item: &Node) -> Result<(), Diagnostic> {
        let own = ["name", "count", "position", "class", "claims"];
        let fields = Fields::of(item, "a node", &[&own[..], &ships::NODE_KEYS].concat())?;
        let position = fields.read("position", position)?;
        let named = fields.need("name", "gateway")?;
        let first = self.nodes.len();
        let own = name(named, "name")?;
        match fields.get("count") {
            None => _ = self.add_node(own, position, &named.span)?,
            Some(count) => {
                if let Some(node) = fields.get("position") {
                    return Err(
                        node.error("`position`: several nodes have several, and `count` makes several")
                    );
                }
                let nodes = whole(count, "count", 1..=MAX_ELEMENTS)?;
                check_name(&format!("{own}{}", nodes - 1), "name", &named.span)?;
                for number in 0..nodes {
                    self.add_node(&format!("{own}{number}"), None, &named.span)?;
                }
            }
        }
        let ships = ShipKeys::of(fields, (self.nodes.len() - first) as u64)?;
        for (node, keys) in (first..).zip(ships) {
            self.ships.add(node, keys);
        }
        if let Some(claims) = fields.get("claims") {
            let address = |node: &Node| {
                let found = text(node, "claims")?;
                found.parse().map_err(|_| {
                    node.error(format!(
                        "`claims`: expected an address such as 10.0.0.2, found {}",
                        node.found()
                    ))
                })
            };
            let claimed = one_or_list(claims).iter().map(address).collect::<Result<Vec<_>, _>>()?;
            self.nodes[first..].iter_mut().for_each(|node| node.claims.clone_from(&claimed));
        }
        let mut seen = std::collections::BTreeSet::new();
        for class in fields.get("class").map_or(&[][..], one_or_list) {
            let class_name = name(class, "class")?;
            if !seen.insert(class_name) {
                return Err(class.error(format!("`class`: {} is listed twice", class.found())));
            }
            self.add_to_class(class_name, first..self.nodes.len());
        }
        Ok(())
    }

    /// Makes nodes members of a class.
    pub(crate) fn add_to_class(&mut self, class: &str, nodes: std::ops::Range<NodeId>) {
        self.classes.entry(class.to_owned()).or_default().extend(nodes);
    }

    pub(crate) fn add_written_link(
        &mut self,
        item: &Node,
        contents: &mut Contents,
    ) -> Result<(), Diagnostic> {
        let kind = Written::of(item);
        let (key, what) = kind.words();
        let mut allowed: Vec<&str> = vec!["name", "prefix"];
        allowed.extend(if kind == Written::Pair { KINDS.as_slice() } else { std::slice::from_ref(&key) });
        allowed.extend(link::DIRECTION.iter().filter(|key| kind != Written::Radio || **key != "rate"));
        allowed.extend(kind.own_keys());
        let fields = Fields::of(item, what, &allowed)?;
        let joined = fields.need(key, "[a, b]")?;
        let ends = self.node_list(joined, key)?;
        let max = if kind == Written::Pair { 2 } else { MAX_STATIONS };
        if !(2..=max).contains(&ends.len()) {
            let expected = match kind {
                Written::Pair => {
                    "two nodes (more of them share a `medium`, or are joined by a `switch`)".to_owned()
                }
                Written::Medium | Written::Switch | Written::Radio => format!("2 to {MAX_STATIONS} stations"),
            };
            return Err(joined.error(format!("`{key}`: expected {expected}, found {}", ends.len())));
        }
        let prefix = fields.get("prefix");
        let prefixes: Vec<Prefix> = fields.read("prefix", read_prefixes)?.unwrap_or_default();
        let station = |node: &Node, key: &str| station_of(self, &ends, node, key, what);
        let model = match kind {
            Written::Pair => LinkModel::PointToPoint(link::point_to_point(fields, contents)?),
            Written::Medium => LinkModel::Medium(shared::medium(fields, station, contents)?),
            Written::Radio => {
                let (config, fleet) = ships::radio(fields, (joined, &ends), self, contents)?;
                self.fleets.push((self.links.len(), fleet));
                LinkModel::Medium(config)
            }
            Written::Switch => LinkModel::Switch(shared::switch(fields, ends.len(), station, contents)?),
        };
        let (named, span) = match fields.get("name") {
            Some(node) => (Some(name(node, "name")?), &node.span),
            None => (None, &item.span),
        };
        self.add_link(named, ends, model, span)?;
        if let (Some(prefix), Some(link)) = (prefix, self.links.last_mut()) {
            link.prefixes = prefixes;
            self.prefixes.insert(self.links.len() - 1, prefix.clone());
        }
        Ok(())
    }
}

/// The keys of links in the file that name their nodes, one for each kind.
const KINDS: [&str; 4] = ["between", "medium", "switch", "radio"];

/// The kind of a link in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Pair,
    Medium,
    Switch,
    Radio,
}

impl Written {
    fn of(item: &Node) -> Self {
        match ["medium", "switch", "radio"].map(|key| item.get(key).is_some()) {
            [true, ..] => Self::Medium,
            [_, true, _] => Self::Switch,
            [.., true] => Self::Radio,
            [false, false, false] => Self::Pair,
        }
    }

    /// The key with the nodes, and the name of the kind in messages.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Pair => ("between", "a link"),
            Self::Medium => ("medium", "a medium"),
            Self::Switch => ("switch", "a switch"),
            Self::Radio => ("radio", "a radio link"),
        }
    }

    /// The keys beside those of a direction.
    fn own_keys(self) -> &'static [&'static str] {
        match self {
            Self::Pair => &["duplex", "forward", "backward"],
            Self::Medium => &shared::MEDIUM,
            Self::Switch => &shared::SWITCH,
            Self::Radio => &ships::KEYS,
        }
    }
}

/// The station of a node's name on a medium or switch of `ends`.
fn station_of(
    topology: &Topology,
    ends: &[NodeId],
    node: &Node,
    key: &str,
    what: &str,
) -> Result<usize, Diagnostic> {
    let id = topology.node(node, key)?;
    ends.iter().position(|end| *end == id).ok_or_else(|| {
        let what = what.trim_start_matches("a ");
        node.error(format!("`{key}`: {} is no station of this {what}", node.found()))
    })
}

fn position(node: &Node, key: &str) -> Result<(f64, f64), Diagnostic> {
    match list(node, key)? {
        [x, y] => Ok((number(x, key)?, number(y, key)?)),
        other => Err(node.error(format!("`{key}`: expected `[x, y]`, found {} numbers", other.len()))),
    }
}
