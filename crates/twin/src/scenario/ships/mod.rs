//! Ships: where nodes are and how they move, and the radios that link them.

mod motion;
mod radio;
mod units;

use std::collections::BTreeMap;

use hopcast_config::Diagnostic;
use hopcast_config::decode::{Fields, number, whole};
use hopcast_config::yaml::{Node, Span};
use hopcast_radio::{Motion, Position, Track};

use super::files::Contents;
use super::model::NodeId;
use super::topology::{MAX_ELEMENTS, Topology};
use units::{dbm, distance, metres};

pub(super) use radio::{KEYS, radio};

/// The keys of a node that is a ship, beside those of any.
pub(super) const NODE_KEYS: [&str; 7] =
    ["place", "heading", "antennas", "power", "height", "columns", "spacing"];

/// A node's place and antennas, as they are written.
#[derive(Clone, Debug)]
pub(crate) struct ShipKeys {
    place: Option<Position>,
    heading: f64,
    /// Number of antennas, or what they are like.
    antennas: Option<Node>,
    power: Option<(f64, Span)>,
    height: Option<(f64, Span)>,
}

impl ShipKeys {
    /// The keys of a node, or of as many as its `count` says; empty without any.
    pub(super) fn of(fields: Fields<'_>, count: u64) -> Result<Vec<Self>, Diagnostic> {
        if NODE_KEYS.iter().all(|key| fields.get(key).is_none()) {
            return Ok(Vec::new());
        }
        if let (Some(heading), None) = (fields.get("heading"), fields.get("place")) {
            return Err(heading.error("`heading` is of a ship that has a `place`: waypoints have their own"));
        }
        let first = Self {
            place: fields.read("place", place)?,
            heading: fields.read("heading", number)?.unwrap_or(0.0),
            antennas: fields.get("antennas").cloned(),
            power: fields.read("power", |node, key| Ok((dbm(node, key)?, node.span.clone())))?,
            height: fields.read("height", |node, key| Ok((distance(node, key)?, node.span.clone())))?,
        };
        let columns = fields.read("columns", |node, key| whole(node, key, 1..=MAX_ELEMENTS))?;
        let spacing = fields.read("spacing", distance)?;
        let several = fields.get("count").is_some();
        let of_several = first.place.is_some() && several;
        for key in ["columns", "spacing"] {
            if let (Some(node), false) = (fields.get(key), of_several) {
                return Err(node.error(format!("`{key}` is of several ships, with a `count` and a `place`")));
            }
        }
        let Some(place) = first.place.filter(|_| several) else {
            return Ok((0..count).map(|_| first.clone()).collect());
        };
        let Some(spacing) = spacing else {
            return Err(
                fields.error("ships with a `place` in a `count` need a `spacing`, such as `spacing: 1 km`")
            );
        };
        let columns = columns.unwrap_or(count);
        let in_formation = |number: u64| {
            let (column, row) = (number % columns, number / columns);
            let place = place.moved(first.heading + 90.0, column as f64 * spacing);
            let place = place.moved(first.heading + 180.0, row as f64 * spacing);
            Self { place: Some(place), ..first.clone() }
        };
        Ok((0..count).map(in_formation).collect())
    }
}

/// Reads `{ x: 10 m, y: 2 km }` or `{ lat: 54.3, lon: 10.1 }`.
fn place(node: &Node, key: &str) -> Result<Position, Diagnostic> {
    let what = format!("`{key}`");
    let fields = Fields::of(node, &what, &["x", "y", "lat", "lon"])?;
    position(fields)
}

/// The position of the keys `x` and `y`, or `lat` and `lon`.
fn position(fields: Fields<'_>) -> Result<Position, Diagnostic> {
    let bad = |error: hopcast_radio::position::PositionError| fields.error(error.to_string());
    let on_globe = ["lat", "lon"].iter().any(|key| fields.get(key).is_some());
    if on_globe && ["x", "y"].iter().any(|key| fields.get(key).is_some()) {
        return Err(
            fields.error("a place is in metres, `x` and `y`, or in degrees, `lat` and `lon`, not in both")
        );
    }
    if on_globe {
        let latitude = number(fields.need("lat", "lat: 54.3")?, "lat")?;
        let longitude = number(fields.need("lon", "lon: 10.1")?, "lon")?;
        return Position::degrees(latitude, longitude).map_err(bad);
    }
    let x = metres(fields.need("x", "x: 10 m")?, "x")?;
    let y = metres(fields.need("y", "y: 2 km")?, "y")?;
    Position::metres(x, y).map_err(bad)
}

/// The motions of nodes: of those with a place or a motion in the file.
#[derive(Default)]
pub(crate) struct Ships {
    keys: BTreeMap<NodeId, ShipKeys>,
    motions: BTreeMap<NodeId, Motion>,
}

impl Ships {
    /// Notes the keys of a node.
    pub(super) fn add(&mut self, node: NodeId, keys: ShipKeys) {
        self.keys.insert(node, keys);
    }

    /// Reads `motion`, and finds out how each ship moves.
    pub(super) fn move_by(
        &mut self,
        node: Option<&Node>,
        topology: &Topology,
        contents: &mut Contents<'_>,
    ) -> Result<(), Diagnostic> {
        for (&node, keys) in &self.keys {
            if let Some(position) = keys.place {
                self.motions.insert(node, Motion::along(Track::still(position, keys.heading)));
            }
        }
        if let Some(node) = node {
            motion::read(node, topology, contents, &mut self.motions)?;
        }
        Ok(())
    }

    /// The motion of a node; `None` if the file does not say where it is.
    fn motion(&self, node: NodeId) -> Option<&Motion> {
        self.motions.get(&node)
    }
}

/// Reads the number of antennas of a ship of MaritimeManet.
fn antennas(node: &Node, key: &str) -> Result<u8, Diagnostic> {
    whole(node, key, 1..=99).map(|number| number as u8)
}
