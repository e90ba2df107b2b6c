//! The files of a scenario: includes, contents to send, traces of losses and of videos.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hopcast_config::decode::{nearest, one_or_list, text};
use hopcast_config::yaml::{Entry, Kind, Node, Source, Span, parse};
use hopcast_config::{Diagnostic, FileError, Files};
use hopcast_core::Bytes;
use hopcast_link::Loss;
use hopcast_radio::Track;
use hopcast_radio::traces::{Format, Traces};

use super::studies;
use super::video_trace::VideoTrace;

/// Maximum size of a scenario file. Chosen: it bounds memory.
const MAX_SCENARIO: Bytes = Bytes::new(16 << 20);
/// Maximum size of a file to send or a trace to replay. Chosen: it bounds memory.
const MAX_CONTENTS: Bytes = Bytes::new(1 << 30);
/// Maximum size of a file of tracks. Chosen: it bounds memory, of which GPX takes some tens of times its size.
const MAX_TRACKS: Bytes = Bytes::new(64 << 20);
/// Maximum number of files of a scenario. Chosen: it bounds the work that nested includes can cause.
const MAX_FILES: usize = 256;

/// A cache of the contents of files: a sweep decodes the same file for each case.
pub(crate) struct Contents<'f> {
    files: &'f dyn Files,
    read: BTreeMap<PathBuf, Arc<[u8]>>,
    traces: BTreeMap<PathBuf, Loss>,
    videos: BTreeMap<PathBuf, VideoTrace>,
    tracks: BTreeMap<(PathBuf, Format), Tracks>,
}

/// The tracks of ships, by their names in a file.
pub(crate) type Tracks = Arc<BTreeMap<String, Arc<Track>>>;

impl<'f> Contents<'f> {
    /// An empty cache over `files`.
    pub(crate) fn new(files: &'f dyn Files) -> Self {
        Self {
            files,
            read: BTreeMap::new(),
            traces: BTreeMap::new(),
            videos: BTreeMap::new(),
            tracks: BTreeMap::new(),
        }
    }

    /// The text and path of the table that `node` names, limited to the size of a scenario.
    pub(crate) fn table(&self, node: &Node, key: &str) -> Result<(String, PathBuf), Diagnostic> {
        let path = path(node, key)?;
        Ok((read_text(self.files, &path, Some(&node.span))?, path))
    }

    /// The contents of the file that `node` names, relative to the file in which it is written.
    pub(crate) fn file(&mut self, node: &Node, key: &str) -> Result<Arc<[u8]>, Diagnostic> {
        let path = path(node, key)?;
        if let Some(contents) = self.read.get(&path) {
            return Ok(Arc::clone(contents));
        }
        let contents: Arc<[u8]> = read(self.files, &path, MAX_CONTENTS)
            .map_err(|why| {
                let hint = hint(self.files, &path, &why).unwrap_or_default();
                node.error(format!("`{key}`: cannot read `{}`: {why}{hint}", path.display()))
            })?
            .into();
        self.read.insert(path, Arc::clone(&contents));
        Ok(contents)
    }

    /// The text of the file of a network that `node` names, limited to the size of a scenario.
    pub(crate) fn scenario_sized(&mut self, node: &Node, key: &str) -> Result<TextFile, Diagnostic> {
        let path = path(node, key)?;
        let contents = self.file(node, key)?;
        if contents.len() as u64 > MAX_SCENARIO.get() {
            return Err(node.error(format!("`{key}`: `{}` is larger than {MAX_SCENARIO}", path.display())));
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

    /// The tracks in the file that `node` names.
    pub(crate) fn tracks(&mut self, node: &Node, key: &str, format: Format) -> Result<Tracks, Diagnostic> {
        let path = path(node, key)?;
        let cached = (path.clone(), format);
        if let Some(tracks) = self.tracks.get(&cached) {
            return Ok(tracks.clone());
        }
        let contents = self.file(node, key)?;
        if contents.len() as u64 > MAX_TRACKS.get() {
            return Err(node.error(format!("`{key}`: `{}` is larger than {MAX_TRACKS}", path.display())));
        }
        let traces = Traces::read(format, &path.display().to_string(), utf8(&contents, &path)?)?;
        let tracks = traces.tracks.into_iter().map(|(name, track)| (name, Arc::new(track))).collect();
        let tracks = Arc::new(tracks);
        self.tracks.insert(cached, Arc::clone(&tracks));
        Ok(tracks)
    }
}

/// A text with its file.
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
/// If it cannot be read.
pub fn read_scenario(files: &dyn Files, path: &Path) -> Result<Vec<u8>, FileError> {
    read(files, path, MAX_SCENARIO)
}

fn read(files: &dyn Files, path: &Path, max: Bytes) -> Result<Vec<u8>, FileError> {
    studies::read(path).unwrap_or_else(|| files.read(path, max))
}

/// The text of a file, limited to the size of a scenario; errors are reported at `from` if another file names it.
fn read_text(files: &dyn Files, path: &Path, from: Option<&Span>) -> Result<String, Diagnostic> {
    let bytes = read_scenario(files, path).map_err(|why| {
        let hint = hint(files, path, &why);
        match from {
            Some(span) => {
                let hint = hint.unwrap_or_default();
                span.error(format!("cannot read `{}`: {why}{hint}", path.display()))
            }
            None => {
                let hint = hint.or_else(|| hint_of_study(path, &why)).unwrap_or_default();
                let message = format!("cannot read this file: {why}{hint}");
                Diagnostic::of_file(path.display().to_string(), message)
            }
        }
    })?;
    utf8(&bytes, path).map(str::to_owned)
}

/// `: did you mean …?` if there is no such file and one beside it has nearly this name. A file of YAML is offered in
/// place of one, whichever of its two endings either has.
fn hint(files: &dyn Files, path: &Path, why: &FileError) -> Option<String> {
    let name = path.file_name().and_then(OsStr::to_str).filter(|_| *why == FileError::NotFound)?;
    let ending =
        |name: &str| Path::new(name).extension().and_then(OsStr::to_str).map(|ending| format!(".{ending}"));
    let of_yaml = |name: &str| ending(name).is_some_and(|ending| [".yaml", ".yml"].contains(&&*ending));
    let endings = if of_yaml(name) {
        vec![".yaml".to_owned(), ".yml".to_owned()]
    } else {
        ending(name).into_iter().collect()
    };
    // Endings that names have in common make none likelier.
    let stem =
        |name: &str| endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name).to_owned();
    let beside = files.beside(path).into_iter().filter(|other| of_yaml(other) || !of_yaml(name));
    let names: BTreeMap<String, String> = beside.map(|name| (stem(&name), name)).collect();
    let found = nearest(&stem(name), names.keys().map(String::as_str))?;
    Some(format!(": did you mean `{}`?", path.with_file_name(&names[found]).display()))
}

/// The same where a study of the program's own has nearly this name.
fn hint_of_study(path: &Path, why: &FileError) -> Option<String> {
    let name = path.file_stem().and_then(OsStr::to_str).filter(|_| *why == FileError::NotFound)?;
    let study = nearest(name, studies::studies().map(|(study, _)| study))?;
    Some(format!(": did you mean the study `{study}`?"))
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

/// The tree of a scenario file, with all that it includes merged into it.
///
/// # Errors
/// If a file cannot be read or is no YAML.
pub fn tree(files: &dyn Files, path: &Path) -> Result<Node, Diagnostic> {
    Loader::new(files).load(path, None)
}

/// The tree of `text`, which is read in place of the file `path`.
pub(crate) fn tree_of_text(files: &dyn Files, path: &Path, text: &str) -> Result<Node, Diagnostic> {
    Loader::new(files).merge(path, text)
}

struct Loader<'f> {
    files: &'f dyn Files,
    /// The files that are being included, outermost first.
    open: Vec<PathBuf>,
    /// Number of files read so far.
    count: usize,
}

impl<'f> Loader<'f> {
    fn new(files: &'f dyn Files) -> Self {
        Self { files, open: Vec::new(), count: 0 }
    }

    fn load(&mut self, path: &Path, from: Option<&Span>) -> Result<Node, Diagnostic> {
        let text = read_text(self.files, path, from)?;
        let identity = self.files.canonical(path);
        if let (true, Some(span)) = (self.open.contains(&identity), from) {
            return Err(span.error(format!("`{}` is being included already: a cycle", path.display())));
        }
        self.count += 1;
        if let (true, Some(span)) = (self.count > MAX_FILES, from) {
            return Err(span.error(format!("a scenario has at most {MAX_FILES} files")));
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

/// Merges `over` into `under`: maps key by key, anything else is replaced.
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
