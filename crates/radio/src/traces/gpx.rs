//! GPX: each `<trk>` is a ship; waypoints and routes have no times, and are ignored.

use hopcast_config::Diagnostic;
use roxmltree::{Document, Node, ParsingOptions};

use super::utc::{self, Utc};
use super::{Traces, ais};
use crate::position::Position;
use crate::track::{Track, Waypoint};

/// Maximum number of nodes of any kind in an XML document. Chosen: it bounds memory; a million points have five
/// million.
const MAX_XML: u32 = 20_000_000;

pub(super) fn read(file: &str, text: &str) -> Result<Traces, Diagnostic> {
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
    let mut ships: Vec<Ship<'_, '_>> = Vec::new();
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
        ships.push(Ship { track, name, points });
    }
    let zero = ships.iter().filter_map(|ship| Some(ship.points.first()?.0)).min().unwrap_or(0);
    let mut traces = Traces::default();
    for Ship { track: node, name, points } in ships {
        let waypoint = |(at, position)| Waypoint { at: ais::since(zero, at), position, heading: None };
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

/// A track of the file.
struct Ship<'a, 'i> {
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
