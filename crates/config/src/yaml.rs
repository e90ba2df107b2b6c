//! YAML into a tree that knows where each of its nodes was written.
//!
//! A scalar stays the text that was written: whether `5` or `on` is what the key wants is for the key to say. Depth
//! and size are bounded, an alias counts as all that it stands for, and a key written twice is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use saphyr_parser::{Event, Parser};

use super::diagnostic::Diagnostic;

/// Maximum depth of lists and maps. Chosen: a scenario needs about ten, and the stack has room for more.
const DEEPEST: usize = 40;
/// Maximum number of nodes of a tree. Chosen: it bounds memory; ten-thousand-node networks written out have a few
/// hundred thousand.
const MAX_NODES: usize = 2_000_000;

/// The origin of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name in diagnostics.
    pub name: String,
    /// The folder of relative paths in it.
    pub dir: PathBuf,
    /// Whether it has lines; a value from the command line has not.
    pub lines: bool,
}

/// A place in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The text it is a place in.
    pub source: Arc<Source>,
    line: u32,
    column: u32,
}

impl Span {
    /// The start of a source.
    pub fn start(source: &Arc<Source>) -> Self {
        Self::new(source, 1, 1)
    }

    /// A place, counted from 1.
    pub fn new(source: &Arc<Source>, line: usize, column: usize) -> Self {
        let bounded = |n: usize| if source.lines { u32::try_from(n).unwrap_or(u32::MAX) } else { 0 };
        Self { source: Arc::clone(source), line: bounded(line), column: bounded(column) }
    }

    /// An error here.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::at(self.source.name.clone(), self.line as usize, self.column as usize, message)
    }
}

/// A scalar, list or map.
#[derive(Clone, Debug)]
pub struct Node {
    /// Place of its beginning.
    pub span: Span,
    /// Its value.
    pub kind: Kind,
}

/// The value of a node.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A value, as it is written.
    Scalar(String),
    /// A list.
    List(Vec<Node>),
    /// A map, in the order of the file.
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Its place.
    pub key_span: Span,
    /// Its value.
    pub value: Node,
}

impl Node {
    /// An error where it begins.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        self.span.error(message)
    }

    /// The same, all of it standing at `span`.
    pub fn at(self, span: &Span) -> Self {
        let kind = match self.kind {
            Kind::Scalar(text) => Kind::Scalar(text),
            Kind::List(items) => Kind::List(items.into_iter().map(|item| item.at(span)).collect()),
            Kind::Map(entries) => {
                let at =
                    |entry: Entry| Entry { key_span: span.clone(), value: entry.value.at(span), ..entry };
                Kind::Map(entries.into_iter().map(at).collect())
            }
        };
        Self { span: span.clone(), kind }
    }

    /// The value of `key`, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.kind {
            Kind::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
            Kind::Scalar(_) | Kind::List(_) => None,
        }
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        match &mut self.kind {
            Kind::Map(entries) => {
                entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.value)
            }
            Kind::Scalar(_) | Kind::List(_) => None,
        }
    }

    /// Takes `key` out of this map.
    pub fn take(&mut self, key: &str) -> Option<Self> {
        match &mut self.kind {
            Kind::Map(entries) => {
                let place = entries.iter().position(|entry| entry.key == key)?;
                Some(entries.remove(place).value)
            }
            Kind::Scalar(_) | Kind::List(_) => None,
        }
    }

    /// The value found here, for messages.
    pub fn found(&self) -> String {
        match &self.kind {
            Kind::Scalar(text) if text.is_empty() => "nothing".to_owned(),
            Kind::Scalar(text) => format!("`{text}`"),
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(_) => "a map".to_owned(),
        }
    }

    /// The node as one would write it on one line.
    pub fn written(&self) -> String {
        match &self.kind {
            Kind::Scalar(text) => text.clone(),
            Kind::List(items) => {
                let items: Vec<_> = items.iter().map(Self::written).collect();
                format!("[{}]", items.join(", "))
            }
            Kind::Map(entries) => {
                let entries: Vec<_> =
                    entries.iter().map(|entry| format!("{}: {}", entry.key, entry.value.written())).collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }

    /// (nodes, depth) of this tree.
    fn extent(&self) -> (usize, usize) {
        let children: &mut dyn Iterator<Item = &Self> = match &self.kind {
            Kind::Scalar(_) => return (1, 1),
            Kind::List(items) => &mut items.iter(),
            Kind::Map(entries) => &mut entries.iter().map(|entry| &entry.value),
        };
        children.map(Self::extent).fold((1, 1), |(nodes, depth), (n, d)| (nodes + n, depth.max(d + 1)))
    }
}

/// The one document in `text`.
pub fn parse(text: &str, source: &Arc<Source>) -> Result<Node, Diagnostic> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parser = Parser::new_from_str(text);
    let mut builder = Builder { open: Vec::new(), root: None, anchors: BTreeMap::new(), nodes: 0 };
    loop {
        let (event, span) = match parser.next_event() {
            None => break,
            Some(Ok(next)) => next,
            Some(Err(error)) => {
                let place = Span::new(source, error.marker().line(), error.marker().col() + 1);
                return Err(place.error(format!("this is not valid YAML: {}", error.info())));
            }
        };
        let span = Span::new(source, span.start.line(), span.start.col() + 1);
        if event == Event::StreamEnd {
            break;
        }
        builder.take(event, span)?;
    }
    builder.root.ok_or_else(|| Span::start(source).error("expected a scenario, found nothing"))
}

struct Builder {
    open: Vec<Open>,
    root: Option<Node>,
    /// Each finished anchor with its extent.
    anchors: BTreeMap<usize, (Node, (usize, usize))>,
    nodes: usize,
}

/// A list or map whose end has not come yet.
struct Open {
    node: Node,
    anchor: usize,
    /// The keys so far, of a map.
    keys: BTreeSet<String>,
    /// The key whose value comes next, of a map.
    key: Option<(String, Span)>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Diagnostic> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(span.error("expected one document, found a second one"))
            }
            Event::DocumentStart(_) => Ok(()),
            Event::Scalar(_, _, _, Some(tag))
            | Event::SequenceStart(_, Some(tag))
            | Event::MappingStart(_, Some(tag)) => {
                Err(span.error(format!("tags such as `{tag}` mean nothing in a scenario: leave it out")))
            }
            Event::Scalar(text, _, anchor, None) => {
                self.count(1, &span)?;
                self.finish(Node { span, kind: Kind::Scalar(text.into_owned()) }, anchor)
            }
            Event::SequenceStart(anchor, None) => self.start(Kind::List(Vec::new()), anchor, span),
            Event::MappingStart(anchor, None) => self.start(Kind::Map(Vec::new()), anchor, span),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open { node, anchor, .. }) => self.finish(node, anchor),
                None => Ok(()),
            },
            Event::Alias(anchor) => {
                let Some((node, (nodes, depth))) = self.anchors.get(&anchor) else {
                    return Err(span.error("this alias stands inside what it refers to"));
                };
                let (node, nodes, depth) = (node.clone(), *nodes, *depth);
                self.count(nodes, &span)?;
                if self.open.len() + depth > DEEPEST {
                    return Err(too_deep(&span));
                }
                self.finish(node, 0)
            }
        }
    }

    fn start(&mut self, kind: Kind, anchor: usize, span: Span) -> Result<(), Diagnostic> {
        self.count(1, &span)?;
        if self.open.len() >= DEEPEST {
            return Err(too_deep(&span));
        }
        self.open.push(Open { node: Node { span, kind }, anchor, keys: BTreeSet::new(), key: None });
        Ok(())
    }

    fn count(&mut self, nodes: usize, span: &Span) -> Result<(), Diagnostic> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES {
            return Err(span.error(format!("a scenario has at most {MAX_NODES} values, aliases counted")));
        }
        Ok(())
    }

    /// Puts a whole node where it belongs.
    fn finish(&mut self, node: Node, anchor: usize) -> Result<(), Diagnostic> {
        if anchor != 0 {
            // Each anchor is kept beside the tree, so it counts twice.
            let extent = node.extent();
            self.count(extent.0, &node.span)?;
            self.anchors.insert(anchor, (node.clone(), extent));
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut parent.node.kind {
            Kind::List(items) => items.push(node),
            Kind::Map(entries) => match parent.key.take() {
                Some((key, key_span)) => entries.push(Entry { key, key_span, value: node }),
                None => {
                    let Node { span, kind: Kind::Scalar(key) } = node else {
                        return Err(node.error(format!("expected a key, found {}", node.found())));
                    };
                    if !parent.keys.insert(key.clone()) {
                        return Err(span.error(format!("the key `{key}` is given twice")));
                    }
                    parent.key = Some((key, span));
                }
            },
            Kind::Scalar(_) => {}
        }
        Ok(())
    }
}

fn too_deep(span: &Span) -> Diagnostic {
    span.error(format!("lists and maps may be nested {DEEPEST} deep"))
}

impl Node {
    /// An empty map written at `span`.
    pub fn empty_map(span: &Span) -> Self {
        Self { span: span.clone(), kind: Kind::Map(Vec::new()) }
    }
}
