//! The files that a scenario is made of and names: includes, contents to send, traces of losses and of videos.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hopcast_link::Loss;

use super::studies;
use super::video_trace::VideoTrace;
use hopcast_config::Diagnostic;
use hopcast_config::decode::{one_or_list, text};
use hopcast_config::yaml::{Entry, Kind, Node, Source, Span, parse};

/// The largest scenario file, in bytes.
const LARGEST_SCENARIO: u64 = 16 << 20;
/// The largest file to send or trace to replay, in bytes.
const LARGEST_CONTENTS: u64 = 1 << 30;
/// How many files may make up a scenario.
const MOST_FILES: usize = 256;

/// Contents already read: a sweep decodes the same file once for each case.
#[derive(Default)]
pub(crate) struct Contents {
    read: BTreeMap<PathBuf, Arc<[u8]>>,
    traces: BTreeMap<PathBuf, Loss>,
    videos: BTreeMap<PathBuf, VideoTrace>,
}

impl Contents {
    /// The contents of the file that `node` names, relative to where it is written.
    pub(crate) fn file(&mut self, node: &Node, key: &str) -> Result<Arc<[u8]>, Diagnostic> {
        let path = path(node, key)?;
        if let Some(contents) = self.read.get(&path) {
            return Ok(Arc::clone(contents));
        }
        let contents: Arc<[u8]> = read(&path, LARGEST_CONTENTS)
            .map_err(|why| node.error(format!("`{key}`: cannot read `{}`: {why}", path.display())))?
            .into();
        self.read.insert(path, Arc::clone(&contents));
        Ok(contents)
    }

    /// The text of the file of a network that `node` names, no larger than a scenario may be.
    pub(crate) fn scenario_sized(&mut self, node: &Node, key: &str) -> Result<TextFile, Diagnostic> {
        let path = path(node, key)?;
        let contents = self.file(node, key)?;
        if contents.len() as u64 > LARGEST_SCENARIO {
            let largest = hopcast_core::Bytes::new(LARGEST_SCENARIO);
            return Err(node.error(format!("`{key}`: `{}` is larger than {largest}", path.display())));
        }
        let text = utf8(&contents, &path)?.to_owned();
        Ok(TextFile { text, source: source(&path) })
    }

    /// The loss trace that `node` names.
    pub(crate) fn trace(&mut self, node: &Node, key: &str) -> Result<Loss, Diagnostic> {
        let path = path(node, key)?;
        if let Some(trace) = self.traces.get(&path) {
            return Ok(trace.clone());
        }
        let contents = self.file(node, key)?;
        let text = utf8(&contents, &path)?;
        let trace = Loss::trace_from_str(text).map_err(|error| {
            Diagnostic::at(path.display().to_string(), error.line, error.column, error.message)
        })?;
        self.traces.insert(path, trace.clone());
        Ok(trace)
    }

    /// The trace of a video that `node` names.
    pub(crate) fn video_trace(&mut self, node: &Node, key: &str) -> Result<VideoTrace, Diagnostic> {
        let path = path(node, key)?;
        if let Some(trace) = self.videos.get(&path) {
            return Ok(trace.clone());
        }
        let contents = self.file(node, key)?;
        let trace = VideoTrace::parse(utf8(&contents, &path)?, &path.display().to_string())?;
        self.videos.insert(path, trace.clone());
        Ok(trace)
    }
}

/// A text with where it came from.
pub(crate) struct TextFile {
    pub(crate) text: String,
    pub(crate) source: Arc<Source>,
}

impl TextFile {
    pub(crate) fn yaml(&self) -> Result<Node, Diagnostic> {
        parse(&self.text, &self.source)
    }
}

fn source(path: &Path) -> Arc<Source> {
    let dir = path.parent().map(Path::to_owned).unwrap_or_default();
    Arc::new(Source { name: path.display().to_string(), dir, lines: true })
}

fn path(node: &Node, key: &str) -> Result<PathBuf, Diagnostic> {
    Ok(node.span.source.dir.join(text(node, key)?))
}

/// The bytes of the scenario file at `path`, which may be a study of the program's own.
///
/// # Errors
/// Why it cannot be read.
pub fn read_scenario(path: &Path) -> Result<Vec<u8>, String> {
    read(path, LARGEST_SCENARIO)
}

/// The whole of a regular file or of one in the program, or why not.
fn read(path: &Path, largest: u64) -> Result<Vec<u8>, String> {
    if let Some(contents) = studies::read(path) {
        return contents.map(<[u8]>::to_vec);
    }
    // Asked before opening: to open a pipe may wait for ever.
    let metadata = fs::metadata(path).map_err(|error| reason(&error))?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut contents = Vec::new();
    let file = fs::File::open(path).map_err(|error| reason(&error))?;
    file.take(largest + 1).read_to_end(&mut contents).map_err(|error| reason(&error))?;
    if contents.len() as u64 > largest {
        return Err(format!("it is larger than {}", hopcast_core::Bytes::new(largest)));
    }
    Ok(contents)
}

/// The operating system's words without its number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// The text of a scenario-sized file; an error stands at `from` if another file names it.
pub(crate) fn read_text(path: &Path, from: Option<&Span>) -> Result<String, Diagnostic> {
    let bytes = read(path, LARGEST_SCENARIO).map_err(|why| match from {
        Some(span) => span.error(format!("cannot read `{}`: {why}", path.display())),
        None => Diagnostic::of_file(path.display().to_string(), format!("cannot read this file: {why}")),
    })?;
    utf8(&bytes, path).map(str::to_owned)
}

fn utf8<'a>(bytes: &'a [u8], path: &Path) -> Result<&'a str, Diagnostic> {
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = &bytes[..error.valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        let last = valid.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        let column = 1 + String::from_utf8_lossy(last).chars().count();
        let found = bytes[error.valid_up_to()];
        let message = format!("expected UTF-8 text, found the byte {found:#04x}");
        Diagnostic::at(path.display().to_string(), line, column, message)
    })
}

/// A scenario file with all that it includes.
pub(crate) fn load(path: &Path) -> Result<Node, Diagnostic> {
    Loader::default().load(path, None)
}

/// The same, of a text that stands in for the file `path`.
pub(crate) fn load_text(path: &Path, text: &str) -> Result<Node, Diagnostic> {
    Loader::default().merge(path, text)
}

#[derive(Default)]
struct Loader {
    /// The files whose including is under way, outermost first.
    open: Vec<PathBuf>,
    files: usize,
}

impl Loader {
    fn load(&mut self, path: &Path, from: Option<&Span>) -> Result<Node, Diagnostic> {
        let text = read_text(path, from)?;
        let identity = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if let (true, Some(span)) = (self.open.contains(&identity), from) {
            return Err(span.error(format!("`{}` is being included already: a cycle", path.display())));
        }
        self.files += 1;
        if let (true, Some(span)) = (self.files > MOST_FILES, from) {
            return Err(span.error(format!("a scenario has at most {MOST_FILES} files")));
        }
        self.open.push(identity);
        let node = self.merge(path, &text);
        self.open.pop();
        node
    }

    fn merge(&mut self, path: &Path, text: &str) -> Result<Node, Diagnostic> {
        let source = source(path);
        let mut own = parse(text, &source)?;
        let Some(include) = own.take("include") else {
            return Ok(own);
        };
        let mut merged = Node::empty_map(&own.span);
        for node in one_or_list(&include) {
            let included = source.dir.join(self::text(node, "include")?);
            let included = self.load(&included, Some(&node.span))?;
            merged = overlay(merged, included);
        }
        let span = own.span.clone();
        merged = overlay(merged, own);
        Ok(Node { span, ..merged })
    }
}

/// `over` on top of `under`: maps are merged key by key, anything else is replaced.
pub(crate) fn overlay(under: Node, over: Node) -> Node {
    match (under, over) {
        (Node { kind: Kind::Map(mut entries), .. }, Node { kind: Kind::Map(others), span }) => {
            for other in others {
                match entries.iter().position(|entry| entry.key == other.key) {
                    Some(place) => {
                        let below = std::mem::replace(&mut entries[place].value, Node::empty_map(&span));
                        let Entry { key, key_span, value } = other;
                        entries[place] = Entry { key, key_span, value: overlay(below, value) };
                    }
                    None => entries.push(other),
                }
            }
            Node { kind: Kind::Map(entries), span }
        }
        (_, over) => over,
    }
}
