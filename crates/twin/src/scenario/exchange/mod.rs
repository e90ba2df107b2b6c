//! Networks from other programs' files, and networks for them: GraphML and containerlab in, GraphML and Mermaid out.
//!
//! A file becomes the tree that the same network would have as YAML, each value with its place in that file. All rules
//! for links in a scenario therefore hold here too, and errors are as precise.

mod containerlab;
mod graphml;
mod mermaid;
mod values;

use std::collections::{BTreeMap, BTreeSet};

pub use graphml::write as to_graphml;
pub use mermaid::write as to_mermaid;

use super::files::{Contents, overlay};
use hopcast_config::Diagnostic;
use hopcast_config::decode::{Fields, text};
use hopcast_config::yaml::{Entry, Kind, Node, Span};

/// The formats of networks, as keys of `topology`.
pub(crate) const FORMATS: [&str; 2] = ["graphml", "containerlab"];

/// A network from another program's file.
pub(crate) struct Network {
    /// The nodes, as the list of a scenario.
    pub(crate) nodes: Node,
    /// The links, as the list of a scenario.
    pub(crate) links: Node,
    /// The parts of the file that are left out, with their places.
    pub(crate) notes: Vec<String>,
}

/// Reads the network of the file that `node` names: the file's name, or a map with the name as `file` and keys for all
/// its links as `link`.
pub(crate) fn read(format: &str, node: &Node, contents: &mut Contents) -> Result<Network, Diagnostic> {
    let what = format!("`{format}`");
    let (file, template) = match &node.kind {
        Kind::Map(_) => {
            let fields = Fields::of(node, &what, &["file", "link"])?;
            (fields.need("file", "file: network.graphml")?, fields.get("link"))
        }
        Kind::Scalar(_) | Kind::List(_) => (node, None),
    };
    text(file, format)?;
    let file = contents.scenario_sized(file, format)?;
    let mut network = match format {
        "graphml" => graphml::read(&file)?,
        _ => containerlab::read(&file)?,
    };
    if let (Some(template), Kind::List(links)) = (template, &mut network.links.kind) {
        for link in links {
            let own = std::mem::replace(link, Node::empty_map(&template.span));
            let span = own.span.clone();
            *link = Node { span, ..overlay(template.clone(), own) };
        }
    }
    Ok(network)
}

/// The note on an edge from a node to itself, which is left out: a host does not send to itself over a link.
fn to_itself(node: &str, at: &Span) -> String {
    at.error(format!("an edge from `{node}` to itself is left out")).to_string()
}

fn entry(key: &str, value: Node) -> Entry {
    Entry { key: key.to_owned(), key_span: value.span.clone(), value }
}

fn scalar(text: impl Into<String>, span: &Span) -> Node {
    Node { span: span.clone(), kind: Kind::Scalar(text.into()) }
}

fn list(items: Vec<Node>, span: &Span) -> Node {
    Node { span: span.clone(), kind: Kind::List(items) }
}

/// Maximum length of a name, in bytes, as in a scenario.
const MAX_NAME: usize = 64;

/// Converts names of other programs to permitted and unique ones.
#[derive(Default)]
struct Names {
    taken: BTreeSet<String>,
    /// The number of the next duplicate of each name.
    numbers: BTreeMap<String, u64>,
}

impl Names {
    fn take(&mut self, wanted: &str) -> String {
        let fits = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
        let mut name: String = wanted.trim().chars().map(fits).take(MAX_NAME).collect();
        shorten(&mut name, MAX_NAME);
        if name.is_empty() {
            name.push('_');
        }
        if self.taken.insert(name.clone()) {
            return name;
        }
        let number = self.numbers.entry(name.clone()).or_insert(1);
        loop {
            *number += 1;
            let behind = format!("_{number}");
            let mut tried = name.clone();
            shorten(&mut tried, MAX_NAME - behind.len());
            tried.push_str(&behind);
            if self.taken.insert(tried.clone()) {
                return tried;
            }
        }
    }
}

fn shorten(name: &mut String, max_len: usize) {
    while name.len() > max_len {
        name.pop();
    }
}

/// The names of links: their own, or else those of their ends, unless that is taken.
#[derive(Default)]
struct LinkNames(Names);

impl LinkNames {
    /// The explicit name of a link; `None` if the default name will do.
    fn name(&mut self, own: Option<&str>, ends: &[Node]) -> Option<String> {
        let ends: Vec<String> = ends.iter().map(Node::written).collect();
        let usual = ends.join("-");
        let name = self.0.take(own.unwrap_or(&usual));
        (name != usual).then_some(name)
    }
}
