//! GraphML: what graph editors, topology collections and graph libraries exchange.
//!
//! Data of an edge is a key of a link if its `attr.name` is one: `rate`, `delay`, `loss` and so on, with values as in a
//! scenario. `LinkSpeedRaw`, in bit/s, is the rate in the Internet Topology Zoo. A node is called by its `name`, or else by its
//! `label`, or else by its `id`, and stands at its `x` and `y`, or at its `Longitude` and `Latitude`. A hyperedge is a medium.
//! Data that is none of these is not the network's, and is passed over.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use roxmltree::{Document, Node as Element, ParsingOptions};

use super::{Names, Pairs, entry, list, scalar, values};
use crate::scenario::diagnostic::Diagnostic;
use crate::scenario::files::TextFile;
use crate::scenario::link;
use crate::scenario::model::{LinkModel, Scenario};
use crate::scenario::yaml::{Kind, Node, Source, Span, parse};

/// What an XML document may have of nodes of any kind: a million links with a few data each.
const MOST_XML: u32 = 20_000_000;

/// The nodes and links of a GraphML file.
pub(super) fn read(file: &TextFile) -> Result<[Node; 2], Diagnostic> {
    let options = ParsingOptions { nodes_limit: MOST_XML, ..ParsingOptions::default() };
    let document = Document::parse_with_options(&file.text, options).map_err(|error| {
        let place = error.pos();
        let message = format!("this is not valid XML: {error}");
        Diagnostic::at(file.source.name.clone(), place.row as usize, place.col as usize, message)
    })?;
    let places = Places::of(&file.text, &file.source);
    let root = document.root_element();
    if root.tag_name().name() != "graphml" {
        let found = root.tag_name().name();
        return Err(places
            .at(root)
            .error(format!("expected a GraphML file, which begins with `<graphml>`, found `<{found}>`")));
    }
    let graph = children(root, "graph").next();
    let graph = graph.ok_or_else(|| places.at(root).error("`<graphml>` needs a `<graph>`"))?;
    let reader = Reader { keys: keys(root), places: &places };
    let (nodes, names) = reader.nodes(graph)?;
    let links = reader.links(graph, &names)?;
    let span = places.at(graph);
    Ok([list(nodes, &span), list(links, &span)])
}

fn children<'a, 'i>(parent: Element<'a, 'i>, name: &'static str) -> impl Iterator<Item = Element<'a, 'i>> {
    parent.children().filter(move |child| child.is_element() && child.tag_name().name() == name)
}

/// What the ids of keys stand for.
fn keys<'a>(root: Element<'a, '_>) -> BTreeMap<&'a str, &'a str> {
    let named = |key: Element<'a, '_>| Some((key.attribute("id")?, key.attribute("attr.name")?));
    children(root, "key").filter_map(named).collect()
}

struct Reader<'a> {
    keys: BTreeMap<&'a str, &'a str>,
    places: &'a Places<'a>,
}

impl<'a> Reader<'a> {
    /// The data of an element by name, with its place.
    fn data(&self, element: Element<'a, 'a>) -> BTreeMap<&'a str, (&'a str, Span)> {
        let named = |data: Element<'a, 'a>| {
            let key = data.attribute("key")?;
            let name = self.keys.get(key).copied().unwrap_or(key);
            Some((name, (data.text()?.trim(), self.places.at(data))))
        };
        children(element, "data").filter_map(named).filter(|(_, (text, _))| !text.is_empty()).collect()
    }

    fn nodes(&self, graph: Element<'a, 'a>) -> Result<(Vec<Node>, BTreeMap<&'a str, String>), Diagnostic> {
        let mut names = Names::default();
        let (mut nodes, mut by_id) = (Vec::new(), BTreeMap::new());
        for element in children(graph, "node") {
            let span = self.places.at(element);
            let id = element.attribute("id").ok_or_else(|| span.error("`<node>` needs an `id`"))?;
            let data = self.data(element);
            let wanted = ["name", "label"].iter().find_map(|key| data.get(key));
            let name = names.take(wanted.map_or(id, |(text, _)| text));
            if by_id.insert(id, name.clone()).is_some() {
                return Err(span.error(format!("the node id `{id}` is taken already")));
            }
            let mut written = vec![entry("name", scalar(name, &span))];
            // North is up.
            for (x, y, turned) in [("x", "y", false), ("Longitude", "Latitude", true)] {
                if let (Some((x, at)), Some((y, _))) = (data.get(x), data.get(y)) {
                    let turned = turned.then(|| y.strip_prefix('-').map_or(format!("-{y}"), str::to_owned));
                    let y = scalar(turned.unwrap_or_else(|| (*y).to_owned()), at);
                    written.push(entry("position", list(vec![scalar(*x, at), y], at)));
                    break;
                }
            }
            nodes.push(Node { span, kind: Kind::Map(written) });
        }
        Ok((nodes, by_id))
    }

    fn links(
        &self,
        graph: Element<'a, 'a>,
        names: &BTreeMap<&'a str, String>,
    ) -> Result<Vec<Node>, Diagnostic> {
        let mut pairs = Pairs::default();
        let mut links = Vec::new();
        for element in graph.children().filter(Element::is_element) {
            let span = self.places.at(element);
            let end = |at: Element<'a, 'a>, key: &str| -> Result<Node, Diagnostic> {
                let here = self.places.at(at);
                let id = at
                    .attribute(key)
                    .ok_or_else(|| here.error(format!("`<{}>` needs a `{key}`", at.tag_name().name())))?;
                let name =
                    names.get(id).ok_or_else(|| here.error(format!("`{key}`: there is no node `{id}`")))?;
                Ok(scalar(name.clone(), &here))
            };
            let data = self.data(element);
            let medium = match element.tag_name().name() {
                "edge" => false,
                "hyperedge" => true,
                _ => continue,
            };
            let ends = if medium {
                children(element, "endpoint").map(|at| end(at, "node")).collect::<Result<Vec<_>, _>>()?
            } else {
                vec![end(element, "source")?, end(element, "target")?]
            };
            let name = match (data.get("name"), ends.as_slice()) {
                (Some((name, _)), _) => Some((*name).to_owned()),
                (None, [one, other]) if !medium => pairs.name(&one.written(), &other.written()),
                _ => None,
            };
            let mut written = vec![entry(if medium { "medium" } else { "between" }, list(ends, &span))];
            written.extend(name.map(|name| entry("name", scalar(name, &span))));
            for (key, (text, at)) in &data {
                let of_link = link::DIRECTION.contains(key)
                    || (medium && link::MEDIUM.contains(key))
                    || (!medium && ["duplex", "forward", "backward"].contains(key));
                match *key {
                    "LinkSpeedRaw" if !data.contains_key("rate") => {
                        written.push(entry("rate", scalar(format!("{text} bit/s"), at)));
                    }
                    key if of_link => written.push(entry(key, value(text, at)?)),
                    _ => {}
                }
            }
            links.push(Node { span, kind: Kind::Map(written) });
        }
        Ok(links)
    }
}

/// A value as it stands in a scenario: text, or a map in braces.
fn value(text: &str, at: &Span) -> Result<Node, Diagnostic> {
    if !text.starts_with(['{', '[']) {
        return Ok(scalar(text, at));
    }
    // Of a place within the text nobody would know from where it is counted.
    let source = Source { lines: false, ..Source::clone(&at.source) };
    let node = parse(text, &Arc::new(source)).map_err(|error| at.error(error.message))?;
    Ok(node.at(at))
}

/// Where the elements of a text stand.
struct Places<'a> {
    text: &'a str,
    source: &'a Arc<Source>,
    /// The offset at which each line begins.
    lines: Vec<usize>,
}

impl<'a> Places<'a> {
    fn of(text: &'a str, source: &'a Arc<Source>) -> Self {
        let after = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { text, source, lines: std::iter::once(0).chain(after).collect() }
    }

    fn at(&self, element: Element<'_, '_>) -> Span {
        let offset = element.range().start;
        let line = self.lines.partition_point(|&start| start <= offset);
        let start = self.lines.get(line.wrapping_sub(1)).copied().unwrap_or(0);
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count());
        Span::new(self.source, line, column + 1)
    }
}

/// Of each key the type by which others may read it.
const KEYS: [(&str, &str, &str); 3] =
    [("name", "all", "string"), ("x", "node", "double"), ("y", "node", "double")];

/// A scenario's network as GraphML: what `topology: { graphml: … }` takes. Losses that replay a trace have no value there.
pub fn write(scenario: &Scenario) -> String {
    let mut out = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n",
    );
    let of_links = link::DIRECTION.iter().chain(&["duplex", "backward"]).map(|&key| (key, "edge", "string"));
    for (key, of, kind) in KEYS.into_iter().chain(of_links) {
        line(
            &mut out,
            1,
            &format!("<key id=\"{key}\" for=\"{of}\" attr.name=\"{key}\" attr.type=\"{kind}\"/>"),
        );
    }
    line(&mut out, 1, "<graph id=\"network\" edgedefault=\"undirected\">");
    for node in &scenario.nodes {
        let id = escaped(&node.name);
        match node.position {
            None => line(&mut out, 2, &format!("<node id=\"{id}\"/>")),
            Some((x, y)) => {
                line(&mut out, 2, &format!("<node id=\"{id}\">"));
                data(&mut out, &[("x", x.to_string()), ("y", y.to_string())]);
                line(&mut out, 2, "</node>");
            }
        }
    }
    for link in &scenario.links {
        let ends: Vec<String> = link.ends.iter().map(|&end| escaped(&scenario.nodes[end].name)).collect();
        let mut keys = vec![("name", link.name.clone())];
        match &link.model {
            LinkModel::PointToPoint(config) => {
                let (source, target) = (&ends[0], &ends[1]);
                line(&mut out, 2, &format!("<edge source=\"{source}\" target=\"{target}\">"));
                keys.extend(values::link(config));
                data(&mut out, &keys);
                line(&mut out, 2, "</edge>");
            }
            LinkModel::Medium(config) => {
                line(&mut out, 2, "<hyperedge>");
                for end in &ends {
                    line(&mut out, 3, &format!("<endpoint node=\"{end}\"/>"));
                }
                keys.extend(values::direction(&config.direction, &hopcast_link::Direction::default()));
                data(&mut out, &keys);
                line(&mut out, 2, "</hyperedge>");
            }
        }
    }
    out.push_str("  </graph>\n</graphml>\n");
    out
}

fn data(out: &mut String, keys: &[(&str, String)]) {
    for (key, value) in keys {
        line(out, 3, &format!("<data key=\"{key}\">{}</data>", escaped(value)));
    }
}

fn line(out: &mut String, depth: usize, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{:1$}{text}", "", 2 * depth);
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
