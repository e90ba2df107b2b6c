//! GPX: each `<trk>` is a ship; waypoints and routes have no times, and are ignored.

use std::collections::BTreeSet;

use hopcast_config::Diagnostic;
use roxmltree::{Document, Node, ParsingOptions};

use super::Traces;
use super::utc::{self, Utc};
use crate::position::Position;
use crate::track::{Track, Waypoint};

/// Maximum number of nodes of any kind in an XML document. Chosen: it bounds memory, at some 80 bytes a node without
/// its attributes. A point has six nodes or more, with the spaces between its elements: this is about three million
/// points.
const MAX_XML: u32 = 20_000_000;
/// Maximum number of attributes of an element. Chosen: each is compared with all before it; GPX has a handful.
const MAX_ATTRIBUTES: usize = 100;
/// Maximum number of prefixes of namespaces in a document. Chosen: an element that declares a namespace has a copy of
/// the list of all that its parent has; programs that write GPX declare up to ten.
const MAX_PREFIXES: usize = 64;
/// Maximum length of a namespace that has a prefix, in bytes. Chosen: attributes are compared with their namespaces.
const MAX_NAMESPACE: usize = 1000;

pub(super) fn read(file: &str, text: &str) -> Result<Traces, Diagnostic> {
    check_bounds(text).map_err(|(at, message)| {
        let before = &text[..at];
        let line = before.rfind('\n').map_or(0, |end| end + 1);
        let (row, column) = (before.matches('\n').count() + 1, before[line..].chars().count() + 1);
        Diagnostic::at(file, row, column, message)
    })?;
    let options = ParsingOptions { nodes_limit: MAX_XML, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let place = error.pos();
        let message = format!("this is not valid XML: {error}");
        Diagnostic::at(file, place.row as usize, place.col as usize, message)
    })?;
    let error = |node: Node<'_, '_>, message: String| {
        let place = document.text_pos_at(node.range().start);
        Diagnostic::at(file, place.row as usize, place.col as usize, message)
    };
    let root = document.root_element();
    if root.tag_name().name() != "gpx" {
        let found = root.tag_name().name();
        return Err(error(
            root,
            format!("expected a GPX file, which begins with `<gpx>`, found `<{found}>`"),
        ));
    }
    let mut ships: Vec<NamedTrack<'_, '_>> = Vec::new();
    for track in children(root, "trk") {
        let named = children(track, "name").next().and_then(|name| name.text()).map(str::trim);
        let name = match named.filter(|name| !name.is_empty()) {
            Some(name) => name.to_owned(),
            None => format!("track {}", ships.len() + 1),
        };
        let mut points: Vec<(Utc, Position)> = Vec::new();
        for point in children(track, "trkseg").flat_map(|segment| children(segment, "trkpt")) {
            let (at, position) = read_point(point).map_err(|message| error(point, message))?;
            if points.last().is_some_and(|&(last, _)| at < last) {
                return Err(error(point, "expected a time that is not before the one before it".into()));
            }
            points.push((at, position));
        }
        ships.push(NamedTrack { track, name, points });
    }
    let zero = ships.iter().filter_map(|ship| Some(ship.points.first()?.0)).min().unwrap_or(0);
    let mut traces = Traces::default();
    for NamedTrack { track: node, name, points } in ships {
        let waypoint = |(at, position)| Waypoint { at: utc::since(zero, at), position, heading: None };
        let Ok(track) = Track::new(points.into_iter().map(waypoint)) else {
            traces.ignored += 1;
            continue;
        };
        if traces.tracks.contains_key(&name) {
            return Err(error(node, format!("expected tracks of different names, found a second `{name}`")));
        }
        traces.tracks.insert(name, track);
    }
    Ok(traces)
}

/// Refuses what would cost the XML parser work or memory by the square of the text's length, at a byte of the text.
fn check_bounds(text: &str) -> Result<(), (usize, String)> {
    check_attributes(text)?;
    check_namespaces(text)
}

/// Within a tag there is no `<` at all, and no `>` outside quotes. What only looks like a tag, as in a comment, may be
/// refused too.
fn check_attributes(text: &str) -> Result<(), (usize, String)> {
    let bytes = text.as_bytes();
    let (mut tag, mut quote, mut attributes) = (None, None, 0);
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'<' => {
                let begins = !matches!(bytes.get(at + 1), Some(b'!' | b'?'));
                (tag, quote, attributes) = (begins.then_some(at), None, 0);
            }
            _ if tag.is_none() => {}
            _ if quote == Some(byte) => quote = None,
            _ if quote.is_some() => {}
            b'"' | b'\'' => quote = Some(byte),
            b'>' => tag = None,
            b'=' => attributes += 1,
            _ => {}
        }
        if let Some(tag) = tag.filter(|_| attributes > MAX_ATTRIBUTES) {
            return Err((
                tag,
                format!("expected at most {MAX_ATTRIBUTES} attributes of an element, found more"),
            ));
        }
    }
    Ok(())
}

fn check_namespaces(text: &str) -> Result<(), (usize, String)> {
    let mut prefixes = BTreeSet::new();
    for (at, xmlns) in text.match_indices("xmlns:") {
        let rest = &text[at + xmlns.len()..];
        let end = rest.find(|c: char| c == '=' || c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (prefix, value) = rest.split_at(end);
        prefixes.insert(prefix);
        if prefixes.len() > MAX_PREFIXES {
            return Err((at, format!("expected at most {MAX_PREFIXES} prefixes of namespaces, found more")));
        }
        let value = value.trim_ascii_start().strip_prefix('=').unwrap_or_default().trim_ascii_start();
        if let Some((quote, namespace)) = value.as_bytes().split_first() {
            let length = namespace.iter().take(MAX_NAMESPACE + 1).take_while(|&byte| byte != quote).count();
            if length > MAX_NAMESPACE {
                return Err((
                    at,
                    format!("expected a namespace of at most {MAX_NAMESPACE} bytes, found more"),
                ));
            }
        }
    }
    Ok(())
}

/// A track of the file.
struct NamedTrack<'a, 'i> {
    track: Node<'a, 'i>,
    name: String,
    points: Vec<(Utc, Position)>,
}

fn read_point(point: Node<'_, '_>) -> Result<(Utc, Position), String> {
    let degrees = |name: &str| {
        let value = point.attribute(name).ok_or_else(|| format!("expected `<trkpt>` to have `{name}`"))?;
        value.trim().parse::<f64>().map_err(|_| format!("expected degrees in `{name}`, found `{value}`"))
    };
    let position = Position::degrees(degrees("lat")?, degrees("lon")?).map_err(|error| error.to_string())?;
    let time = children(point, "time").next().and_then(|time| time.text());
    let time = time.ok_or("expected `<trkpt>` to have a `<time>`: without it there is no motion")?;
    let at = utc::parse(time).ok_or_else(|| format!("expected {}, found `{time}`", utc::FORMS))?;
    Ok((at, position))
}

fn children<'a, 'i>(parent: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    parent.children().filter(move |child| child.is_element() && child.tag_name().name() == name)
}
