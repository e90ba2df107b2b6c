//! GraphML: the format of graph editors, topology collections and graph libraries.
//!
//! Data of an edge is a key of a link if its `attr.name` is one: `rate`, `delay`, `loss` and so on, with values as in a
//! scenario. `LinkSpeedRaw`, in bit/s, is the rate in the Internet Topology Zoo. A node has the name of its `name`,
//! else of its `label`, else of its `id`, and the position of its `x` and `y`, or of its `Longitude` and `Latitude`. A
//! hyperedge is a medium, or a switch if its `kind` is that. All other data is ignored.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use roxmltree::{Document, Node as Element, ParsingOptions};

use super::{LinkNames, Names, Network, entry, list, scalar, to_itself, values};
use crate::scenario::files::TextFile;
use crate::scenario::link;
use crate::scenario::model::{LinkModel, Scenario};
use crate::scenario::shared;
use hopcast_config::Diagnostic;
use hopcast_config::yaml::{Entry, Kind, Node, Source, Span, parse};

/// Maximum number of nodes of any kind in an XML document. Chosen: it bounds memory; a million links with a few data
/// each.
const MAX_XML: u32 = 20_000_000;

/// The nodes and links of a GraphML file.
pub(super) fn read(file: &TextFile) -> Result<Network, Diagnostic> {
    let options = ParsingOptions { nodes_limit: MAX_XML, ..ParsingOptions::default() };
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
    let mut graphs = root.descendants().filter(|element| element.tag_name().name() == "graph");
    let graph = graphs.next().ok_or_else(|| places.at(root).error("`<graphml>` needs a `<graph>`"))?;
    if let Some(other) = graphs.next() {
        return Err(places
            .at(other)
            .error("expected one `<graph>`, found another: graphs within nodes are not read"));
    }
    let reader = Reader { keys: keys(root, &places), places: &places };
    let (nodes, names) = reader.nodes(graph)?;
    let (links, notes) = reader.links(graph, &names)?;
    let span = places.at(graph);
    Ok(Network { nodes: list(nodes, &span), links: list(links, &span), notes })
}

fn children<'a, 'i>(parent: Element<'a, 'i>, name: &'static str) -> impl Iterator<Item = Element<'a, 'i>> {
    parent.children().filter(move |child| child.is_element() && child.tag_name().name() == name)
}

/// The declaration of a key.
struct Key<'a> {
    name: &'a str,
    /// The kind of elements it is for, and the default value.
    of: &'a str,
    default: Option<(String, Span)>,
}

fn keys<'a>(root: Element<'a, '_>, places: &Places<'_>) -> BTreeMap<&'a str, Key<'a>> {
    let key = |key: Element<'a, '_>| {
        let default = children(key, "default").next().map(|default| (text(default), places.at(default)));
        let name = key.attribute("attr.name")?;
        Some((key.attribute("id")?, Key { name, of: key.attribute("for").unwrap_or("all"), default }))
    };
    children(root, "key").filter_map(key).collect()
}

/// The text of an element, without comments in it.
fn text(element: Element<'_, '_>) -> String {
    let parts: String =
        element.descendants().filter(Element::is_text).filter_map(|part| part.text()).collect();
    parts.trim().to_owned()
}

struct Reader<'a> {
    keys: BTreeMap<&'a str, Key<'a>>,
    places: &'a Places<'a>,
}

impl<'a> Reader<'a> {
    /// The data of an element by name, with its place.
    fn data(&self, element: Element<'a, 'a>) -> BTreeMap<&'a str, (String, Span)> {
        let of = element.tag_name().name();
        let usual = self.keys.values().filter(|key| key.of == "all" || key.of == of);
        let usual = usual.filter_map(|key| Some((key.name, key.default.clone()?)));
        let own = children(element, "data").filter_map(|data| {
            let key = data.attribute("key")?;
            let name = self.keys.get(key).map_or(key, |key| key.name);
            Some((name, (text(data), self.places.at(data))))
        });
        usual.chain(own).filter(|(_, (text, _))| !text.is_empty()).collect()
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
                    let y = scalar(turned.unwrap_or_else(|| y.clone()), at);
                    written.push(entry("position", list(vec![scalar(x.clone(), at), y], at)));
                    break;
                }
            }
            nodes.push(Node { span, kind: Kind::Map(written) });
        }
        Ok((nodes, by_id))
    }

    /// The links, and notes on edges that are not read as links.
    fn links(
        &self,
        graph: Element<'a, 'a>,
        names: &BTreeMap<&'a str, String>,
    ) -> Result<(Vec<Node>, Vec<String>), Diagnostic> {
        let directed = graph.attribute("edgedefault") == Some("directed");
        let mut names_of_links = LinkNames::default();
        let (mut links, mut notes): (Vec<Node>, Vec<String>) = (Vec::new(), Vec::new());
        // In a directed graph, the links of which only one direction has been read so far.
        let mut one_way: BTreeMap<(String, String), usize> = BTreeMap::new();
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
            if let (false, [from, to]) = (medium, ends.as_slice())
                && from.written() == to.written()
            {
                notes.push(to_itself(&from.written(), &span));
                continue;
            }
            if directed && let [from, to] = ends.as_slice() {
                let (from, to) = (from.written(), to.written());
                if let Some(there) = one_way.remove(&(to.clone(), from.clone())) {
                    if let Kind::Map(written) = &mut links[there].kind {
                        let back = written_keys(&data, |key| link::DIRECTION.contains(&key))?;
                        written.push(entry("backward", Node { span, kind: Kind::Map(back) }));
                    }
                    continue;
                }
                one_way.insert((from, to), links.len());
            }
            let own = data.get("name").map(|(name, _)| name.as_str());
            let name = names_of_links.name(own, &ends);
            let switch = medium && data.get("kind").is_some_and(|(kind, _)| kind == "switch");
            let (kind, own_keys): (&str, &[&str]) = match (medium, switch) {
                (false, _) => ("between", &["duplex", "forward", "backward"]),
                (true, false) => ("medium", &shared::MEDIUM),
                (true, true) => ("switch", &shared::SWITCH),
            };
            let mut written = vec![entry(kind, list(ends, &span))];
            written.extend(name.map(|name| entry("name", scalar(name, &span))));
            let of_link =
                |key: &str| key == "prefix" || link::DIRECTION.contains(&key) || own_keys.contains(&key);
            written.extend(written_keys(&data, of_link)?);
            links.push(Node { span, kind: Kind::Map(written) });
        }
        Ok((links, notes))
    }
}

/// The data of an edge that are keys of a link.
fn written_keys(
    data: &BTreeMap<&str, (String, Span)>,
    of_link: impl Fn(&str) -> bool,
) -> Result<Vec<Entry>, Diagnostic> {
    let mut written = Vec::new();
    for (key, (text, at)) in data {
        match *key {
            "LinkSpeedRaw" if !data.contains_key("rate") => {
                written.push(entry("rate", scalar(format!("{text} bit/s"), at)));
            }
            key if of_link(key) => written.push(entry(key, value(text, at)?)),
            _ => {}
        }
    }
    Ok(written)
}

/// Parses a value as in a scenario: text, or a map in braces.
fn value(text: &str, at: &Span) -> Result<Node, Diagnostic> {
    if !text.starts_with(['{', '[']) {
        return Ok(scalar(text, at));
    }
    // The place of the whole value is reported: a place within the text would be ambiguous.
    let source = Source { lines: false, ..Source::clone(&at.source) };
    let node = parse(text, &Arc::new(source)).map_err(|error| at.error(error.message))?;
    Ok(node.at(at))
}

/// The places of elements in a text.
struct Places<'a> {
    text: &'a str,
    source: &'a Arc<Source>,
    /// Offsets with their line and column: each line's beginning, and further ones within long lines.
    marks: Vec<(usize, usize, usize)>,
}

impl<'a> Places<'a> {
    fn of(text: &'a str, source: &'a Arc<Source>) -> Self {
        let mut marks = vec![(0, 1, 1)];
        let (mut line, mut column, mut last) = (1, 1, 0);
        for (at, c) in text.char_indices() {
            if at >= last + 1024 {
                marks.push((at, line, column));
                last = at;
            }
            column += 1;
            if c == '\n' {
                (line, column, last) = (line + 1, 1, at + 1);
                marks.push((last, line, column));
            }
        }
        Self { text, source, marks }
    }

    fn at(&self, element: Element<'_, '_>) -> Span {
        let offset = element.range().start;
        let place = self.marks.partition_point(|&(at, ..)| at <= offset);
        let (at, line, column) = self.marks[place.saturating_sub(1)];
        let further = self.text.get(at..offset).map_or(0, |before| before.chars().count());
        Span::new(self.source, line, column + further)
    }
}

/// The keys with a type other than text, for other programs.
const KEYS: [(&str, &str, &str); 3] =
    [("name", "all", "string"), ("x", "node", "double"), ("y", "node", "double")];

/// A scenario's network as GraphML, which `topology: { graphml: … }` reads. Losses that replay a trace are left out.
pub fn write(scenario: &Scenario) -> String {
    let mut out = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n",
    );
    let others = ["prefix", "duplex", "backward", "mac", "pairs", "hears", "kind", "stations"];
    let of_links = link::DIRECTION.iter().chain(&others).map(|&key| (key, "all", "string"));
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
        keys.extend(values::prefixes(&link.prefixes));
        match &link.model {
            LinkModel::PointToPoint(config) => {
                let (source, target) = (&ends[0], &ends[1]);
                line(&mut out, 2, &format!("<edge source=\"{source}\" target=\"{target}\">"));
                keys.extend(values::link(config));
                data(&mut out, &keys);
                line(&mut out, 2, "</edge>");
            }
            shared @ (LinkModel::Medium(_) | LinkModel::Switch(_)) => {
                line(&mut out, 2, "<hyperedge>");
                for end in &ends {
                    line(&mut out, 3, &format!("<endpoint node=\"{end}\"/>"));
                }
                let stations: Vec<&str> =
                    link.ends.iter().map(|&end| scenario.nodes[end].name.as_str()).collect();
                match shared {
                    LinkModel::Medium(config) => keys.extend(values::medium(config, &stations)),
                    LinkModel::Switch(config) => keys.extend(values::switch(config, &stations)),
                    LinkModel::PointToPoint(_) => {}
                }
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
