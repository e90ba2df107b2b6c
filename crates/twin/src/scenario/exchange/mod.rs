//! Networks from other programs' files, and networks for them: GraphML and containerlab in, GraphML and Mermaid out.
//!
//! A file becomes the tree that the same network would be as YAML, each value with its place in that file. Everything
//! that holds for links in a scenario therefore holds here too, and errors are as precise.

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

/// The network of the file that `node` names. It is the file's name, or a map of that as
/// `file` and of what all its links have as `link`.
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

/// The note of an edge from a node to itself, which carries nothing: a host does not send to itself over a link.
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

/// Makes of what other programs call a thing a name that is allowed here and not taken yet.
#[derive(Default)]
struct Names {
    taken: BTreeSet<String>,
    /// The number that the next of this name gets.
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

/// The names of links, which are called after their ends unless they say otherwise or that name is taken.
#[derive(Default)]
struct LinkNames(Names);

impl LinkNames {
    /// The name that a link must be given, if it must be given one.
    fn name(&mut self, own: Option<&str>, ends: &[Node]) -> Option<String> {
        let ends: Vec<String> = ends.iter().map(Node::written).collect();
        let usual = ends.join("-");
        let name = self.0.take(own.unwrap_or(&usual));
        (name != usual).then_some(name)
    }
}
