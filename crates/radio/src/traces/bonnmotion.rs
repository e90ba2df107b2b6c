//! BonnMotion's own format: a line for each node, `time x y time x y …`.

use hopcast_config::Diagnostic;

use super::{Line, Traces, instant};
use crate::track::{Track, Waypoint};

pub(super) fn read(file: &str, text: &str) -> Result<Traces, Diagnostic> {
    let mut traces = Traces::default();
    for line in Line::all(file, text).filter(|line| !line.is_empty()) {
        let track = track(&line)?;
        traces.tracks.insert(traces.tracks.len().to_string(), track);
    }
    Ok(traces)
}

fn track(line: &Line<'_>) -> Result<Track, Diagnostic> {
    let mut words = line.text.split_whitespace();
    let mut points: Vec<Waypoint> = Vec::new();
    while let Some(time) = words.next() {
        let at = instant(line.seconds(time)?);
        if points.last().is_some_and(|last| at < last.at) {
            return Err(line.error(time, "expected a time that is not before the one before it"));
        }
        let [x, y] = [words.next(), words.next()].map(|word| {
            word.ok_or_else(|| {
                line.error_at_end("expected a time, x and y of each waypoint, found the end of the line")
            })
        });
        let (x, y) = (x?, y?);
        let (east, north) = (line.number(x, "metres")?, line.number(y, "metres")?);
        let position = line.plane([x, y], east, north)?;
        points.push(Waypoint { at, position, heading: None });
    }
    Track::new(points).map_err(|error| line.error(line.text, error.to_string()))
}
