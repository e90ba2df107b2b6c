//! Movements for ns-2: statements of Tcl, of which those that set a position or a destination are read.
//!
//! ```text
//! $node_(0) set X_ 100.0
//! $node_(0) set Y_ 200.0
//! $ns_ at 10.0 "$node_(0) setdest 300.0 200.0 5.0"
//! ```
//!
//! A node that is given a destination leaves for it at once, at the speed in metres per second, and waits there. A
//! further destination replaces it on the way; so does a speed of 0, which stops the node, and a coordinate that is
//! set at a time, to which it jumps. Heights (`Z_`) are checked and not used, and so are the statements to the
//! simulator's `$god_`. Statements may come in any order; those of one time count in the order of the file.

use std::collections::BTreeMap;

use hopcast_config::Diagnostic;

use super::{Line, MAX_SECONDS, Traces, instant};
use crate::position::Position;
use crate::track::{Track, Waypoint};

pub(super) fn read(file: &str, text: &str) -> Result<Traces, Diagnostic> {
    let mut nodes: BTreeMap<u32, Vec<Statement<'_>>> = BTreeMap::new();
    for line in Line::all(file, text).filter(|line| !line.is_empty()) {
        if let Some((node, statement)) = statement(line)? {
            nodes.entry(node).or_default().push(statement);
        }
    }
    let mut traces = Traces::default();
    for (node, mut statements) in nodes {
        statements.sort_by(|a, b| a.time.total_cmp(&b.time));
        let mut walk = Walk::default();
        statements.iter().try_for_each(|statement| walk.obey(statement))?;
        let first = statements[0].line;
        let track = walk.finish().ok_or_else(|| {
            first.error(first.text, format!("node {node} is never given both `X_` and `Y_`"))
        })?;
        traces.tracks.insert(node.to_string(), track);
    }
    Ok(traces)
}

/// A statement about a node.
struct Statement<'a> {
    line: Line<'a>,
    /// Seconds; below 0 for the position at the start.
    time: f64,
    order: Order<'a>,
}

enum Order<'a> {
    X(f64),
    Y(f64),
    Z,
    Destination { to: Position, speed: f64, word: &'a str },
}

/// The time of what is set without one, before all others.
const AT_START: f64 = -1.0;

fn statement(line: Line<'_>) -> Result<Option<(u32, Statement<'_>)>, Diagnostic> {
    let words = |c: char| c.is_whitespace() || c == '"';
    let mut words = line.text.split(words).filter(|word| !word.is_empty());
    let mut next = |what: &str| {
        words.next().ok_or_else(|| line.error_at_end(format!("expected {what}, found the end of the line")))
    };
    let mut subject = next("a statement")?;
    let mut time = AT_START;
    if subject.starts_with("$ns") {
        let at = next("`at`")?;
        if at != "at" {
            return Err(line.error(at, format!("expected `at`, found `{at}`")));
        }
        time = line.seconds(next("a time")?)?;
        subject = next("`$node_(N)`")?;
    }
    if subject.starts_with("$god_") {
        return Ok(None);
    }
    let node = subject.strip_prefix("$node_(").and_then(|rest| rest.strip_suffix(')')?.parse().ok());
    let node: u32 = node.ok_or_else(|| {
        line.error(subject, format!("expected `$node_(N)`, `$ns_ at`, `$god_` or `#`, found `{subject}`"))
    })?;
    let verb = next("`set` or `setdest`")?;
    let order = match verb {
        "set" => {
            let name = next("`X_`, `Y_` or `Z_`")?;
            let word = next("metres")?;
            let value = line.number(word, "metres")?;
            // Checked here, so that a coordinate alone has an error with its own place.
            line.plane([word, word], value, 0.0)?;
            match name {
                "X_" => Order::X(value),
                "Y_" => Order::Y(value),
                "Z_" => Order::Z,
                other => {
                    return Err(line.error(other, format!("expected `X_`, `Y_` or `Z_`, found `{other}`")));
                }
            }
        }
        "setdest" => {
            let (x, y) = (next("metres")?, next("metres")?);
            let to = line.plane([x, y], line.number(x, "metres")?, line.number(y, "metres")?)?;
            let word = next("a speed")?;
            let what = "a speed of at least 0 m/s";
            let speed = line.number(word, what)?;
            if speed < 0.0 {
                return Err(line.error(word, format!("expected {what}, found `{word}`")));
            }
            Order::Destination { to, speed, word: verb }
        }
        other => return Err(line.error(other, format!("expected `set` or `setdest`, found `{other}`"))),
    };
    if let Some(more) = words.next() {
        return Err(line.error(more, format!("expected the end of the statement, found `{more}`")));
    }
    Ok(Some((node, Statement { line, time, order })))
}

/// A node that obeys its statements.
#[derive(Default)]
struct Walk {
    x: Option<f64>,
    y: Option<f64>,
    points: Vec<Waypoint>,
    /// The leg that it is on; `None` while it stands still.
    leg: Option<Leg>,
}

/// The way to a destination, with the times in seconds when the node left and when it arrives.
#[derive(Clone, Copy)]
struct Leg {
    from: Position,
    left: f64,
    to: Position,
    arrives: f64,
}

impl Walk {
    fn obey(&mut self, statement: &Statement<'_>) -> Result<(), Diagnostic> {
        let now = statement.time.max(0.0);
        match statement.order {
            Order::Z => {}
            Order::X(x) => {
                self.stop(now);
                // Until now it was where it was; from now on elsewhere.
                self.note(now);
                self.x = Some(x);
                self.note(now);
            }
            Order::Y(y) => {
                self.stop(now);
                self.note(now);
                self.y = Some(y);
                self.note(now);
            }
            Order::Destination { to, speed, word } => {
                self.stop(now);
                let from = self.position().ok_or_else(|| {
                    statement.line.error(word, "expected the node's `X_` and `Y_` to be set before it sails")
                })?;
                let metres = from.to(&to).map_or(0.0, |way| way.metres);
                self.note(now);
                if speed > 0.0 && metres > 0.0 {
                    self.leg = Some(Leg { from, left: now, to, arrives: now + metres / speed });
                }
            }
        }
        Ok(())
    }

    /// Notes where the node is at `now`, where it is to stand still.
    fn stop(&mut self, now: f64) {
        let Some(leg) = self.leg.take() else { return };
        let here = if now >= leg.arrives { leg.to } else { leg.at(now) };
        if let Position::Plane { x, y } = here {
            (self.x, self.y) = (Some(x), Some(y));
        }
        self.note(now.min(leg.arrives));
        self.note(now);
    }

    fn finish(mut self) -> Option<Track> {
        if let Some(leg) = self.leg {
            self.stop(leg.arrives.min(MAX_SECONDS));
        }
        Track::new(self.points).ok()
    }

    fn position(&self) -> Option<Position> {
        Position::metres(self.x?, self.y?).ok()
    }

    /// A waypoint here at `now`, unless it is there already.
    fn note(&mut self, now: f64) {
        let Some(position) = self.position() else { return };
        let point = Waypoint { at: instant(now), position, heading: None };
        if self.points.last() != Some(&point) {
            self.points.push(point);
        }
    }
}

impl Leg {
    fn at(&self, now: f64) -> Position {
        let share = (now - self.left) / (self.arrives - self.left);
        let way = self.from.to(&self.to);
        way.map_or(self.from, |way| self.from.moved(way.bearing, way.metres * share))
    }
}
