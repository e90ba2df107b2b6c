//! Networks from other programs' files, and networks for them: GraphML and containerlab in, GraphML and Mermaid out.
//!
//! What comes in becomes the tree that the same network would be as YAML, each value with its place in the file that it
//! came from. So everything that is said about links in a scenario holds here too, and errors are as precise.

mod containerlab;
mod graphml;
mod mermaid;
mod values;

use std::collections::BTreeSet;

pub use graphml::write as to_graphml;
pub use mermaid::write as to_mermaid;

use super::decode::{Fields, text};
use super::diagnostic::Diagnostic;
use super::files::{Contents, overlay};
use super::yaml::{Entry, Kind, Node, Span};

/// Where a network can come from, as keys of `topology`.
pub(crate) const FORMATS: [&str; 2] = ["graphml", "containerlab"];

/// The nodes and links of the file that `node` names, as lists of a scenario. It is the file's name, or a map of that as
/// `file` and of what all its links have as `link`.
pub(crate) fn read(format: &str, node: &Node, contents: &mut Contents) -> Result<[Node; 2], Diagnostic> {
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
    let [nodes, mut links] = match format {
        "graphml" => graphml::read(&file)?,
        _ => containerlab::read(&file)?,
    };
    if let (Some(template), Kind::List(links)) = (template, &mut links.kind) {
        for link in links {
            let own = std::mem::replace(link, Node::empty_map(&template.span));
            let span = own.span.clone();
            *link = Node { span, ..overlay(template.clone(), own) };
        }
    }
    Ok([nodes, links])
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

/// Makes of what other programs call a thing a name that is allowed here and not taken yet.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    fn take(&mut self, wanted: &str) -> String {
        let fits = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
        let mut name: String = wanted.trim().chars().map(fits).take(LONGEST).collect();
        while name.len() > LONGEST {
            name.pop();
        }
        if name.is_empty() {
            name.push('_');
        }
        let mut tried = name.clone();
        let mut number = 2;
        while !self.0.insert(tried.clone()) {
            tried = format!("{name}_{number}");
            number += 1;
        }
        tried
    }
}

/// Room for a number behind it.
const LONGEST: usize = 56;

/// Links between the same two nodes need names; the first is called after them.
#[derive(Default)]
struct Pairs(Names, BTreeSet<[String; 2]>);

impl Pairs {
    /// The name that a link between these needs, if it needs one.
    fn name(&mut self, one: &str, other: &str) -> Option<String> {
        let pair = [one.min(other).to_owned(), one.max(other).to_owned()];
        let first = self.1.insert(pair);
        let name = self.0.take(&format!("{one}-{other}"));
        (!first).then_some(name)
    }
}
