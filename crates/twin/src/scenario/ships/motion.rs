//! Motion: waypoints, places in formations and convoys, tracks from files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hopcast_config::Diagnostic;
use hopcast_config::decode::{Fields, choice, did_you_mean, duration, entries, flag, list, number, text};
use hopcast_config::yaml::{Kind, Node};
use hopcast_core::Instant;
use hopcast_radio::traces::Format;
use hopcast_radio::{Motion, Track, Waypoint};

use super::units::{distance, metres};
use crate::scenario::files::Contents;
use crate::scenario::model::NodeId;
use crate::scenario::topology::Topology;

/// The keys of an entry, of which one says how it moves.
const KEYS: [&str; 13] = [
    "node",
    "waypoints",
    "follows",
    "behind",
    "beside",
    "ahead",
    "starboard",
    "trace",
    "format",
    "nodes",
    "joins",
    "leaves",
    "within-track",
];
/// The keys of which one says how a ship moves.
const KINDS: [&str; 4] = ["waypoints", "follows", "beside", "trace"];
const FORMATS: [(&str, Format); 5] = [
    ("setdest", Format::Setdest),
    ("bonnmotion", Format::BonnMotion),
    ("gpx", Format::Gpx),
    ("ais-nmea", Format::AisNmea),
    ("ais-csv", Format::AisCsv),
];

/// Reads the entries of `motion` into `motions`, which has the ships that stand still in the places of their nodes.
pub(super) fn read(
    node: &Node,
    topology: &Topology,
    contents: &mut Contents<'_>,
    motions: &mut BTreeMap<NodeId, Motion>,
) -> Result<(), Diagnostic> {
    let mut moved = BTreeSet::new();
    // Ships that keep a place by another, which may come later in the file.
    let mut by_others = BTreeMap::new();
    for item in list(node, "motion")? {
        let fields = Fields::of(item, "a motion", &KEYS)?;
        let kinds: Vec<&str> = KINDS.into_iter().filter(|key| fields.get(key).is_some()).collect();
        if kinds.len() > 1 {
            return Err(fields.error(format!("a motion has `{}` or `{}`, not both", kinds[0], kinds[1])));
        }
        for (key, of) in [
            ("behind", &["follows"][..]),
            ("ahead", &["beside"]),
            ("starboard", &["beside"]),
            ("format", &["trace"]),
            ("nodes", &["trace"]),
            ("within-track", &["trace", "waypoints"]),
        ] {
            if let (Some(node), false) =
                (fields.get(key), kinds.first().is_some_and(|kind| of.contains(kind)))
            {
                return Err(node.error(format!("`{key}` is for a motion with `{}`", of.join("` or `"))));
            }
        }
        let mut once = |ship: NodeId, place: &Node| {
            if moved.insert(ship) {
                return Ok(());
            }
            let name = &topology.nodes[ship].name;
            Err(place.error(format!("`{name}` has a motion already")))
        };
        let times = Times::of(fields)?;
        if kinds.first() == Some(&"trace") {
            if let Some(node) = fields.get("node") {
                return Err(node.error("`node`: those that a `trace` moves are in `nodes`"));
            }
            for (ship, place, track) in trace(fields, topology, contents)? {
                once(ship, place)?;
                if motions.contains_key(&ship) {
                    let name = &topology.nodes[ship].name;
                    return Err(
                        place.error(format!("`{name}` has a `place`, which this trace would replace"))
                    );
                }
                motions.insert(ship, times.applied(Motion::along(track), fields)?);
            }
            continue;
        }
        let named = fields.need("node", "node: ship2")?;
        let ships = topology.node_list(named, "node")?;
        ships.iter().try_for_each(|&ship| once(ship, named))?;
        let has_place = ships.iter().find(|ship| motions.contains_key(ship));
        if let (Some(kind), Some(&ship)) = (kinds.first(), has_place)
            && (*kind != "waypoints" || ships.len() == 1)
        {
            let name = &topology.nodes[ship].name;
            return Err(named.error(format!("`{name}` has a `place`, which this motion would replace")));
        }
        match kinds.first() {
            Some(&"waypoints") => {
                let waypoints = fields.need("waypoints", "waypoints: [{ at: 0 s, x: 0 m, y: 0 m }]")?;
                let leader = Motion::along(waypoints_of(waypoints)?);
                for (ship, motion) in formation(&ships, leader, topology, motions, named)? {
                    motions.insert(ship, times.applied(motion, fields)?);
                }
            }
            Some(&"beside") if ships.len() > 1 => {
                return Err(named.error(
                    "`beside` is of one ship; several with `waypoints` keep the places that they have",
                ));
            }
            Some(_) => {
                // Several are a convoy, each as far behind the one before it as the first behind its own.
                let ranked = ships.iter().zip(1..);
                by_others.extend(ranked.map(|(&ship, rank)| (ship, Beside { item, times, rank })));
            }
            None => {
                for ship in ships {
                    match motions.remove(&ship) {
                        Some(motion) if times.are_given() => {
                            motions.insert(ship, times.applied(motion, fields)?);
                        }
                        Some(_) | None => {
                            return Err(fields.error(
                                "this motion says nothing: expected `waypoints`, `follows`, `beside` or `trace`, or \
                                 `joins` or `leaves` of a node that has a `place`",
                            ));
                        }
                    }
                }
            }
        }
    }
    let mut under_way = BTreeSet::new();
    for &ship in by_others.keys() {
        place_by_other(ship, &by_others, topology, motions, &mut under_way)?;
    }
    Ok(())
}

/// The motions of ships of which the first moves as `leader` says, and the others keep their places beside it: those in
/// which the file has them all, where the first heads as it does there.
fn formation(
    ships: &[NodeId],
    leader: Motion,
    topology: &Topology,
    motions: &BTreeMap<NodeId, Motion>,
    named: &Node,
) -> Result<Vec<(NodeId, Motion)>, Diagnostic> {
    let [first, others @ ..] = ships else { return Ok(Vec::new()) };
    let place = |ship: &NodeId| {
        motions.get(ship).and_then(|motion| motion.at(Instant::ZERO)).ok_or_else(|| {
            let name = &topology.nodes[*ship].name;
            named.error(format!("`{name}` has no `place`, by which it would have one beside the others"))
        })
    };
    let mut all = Vec::with_capacity(ships.len());
    if !others.is_empty() {
        let from = place(first)?;
        for ship in others {
            let Some(apart) = from.position.to(&place(ship)?.position) else {
                return Err(named.error("one of these places is in metres, and another in degrees"));
            };
            let (starboard, ahead) = (apart.bearing - from.heading).to_radians().sin_cos();
            all.push((*ship, leader.beside(ahead * apart.metres, starboard * apart.metres)));
        }
    }
    all.push((*first, leader));
    Ok(all)
}

/// An entry of a ship that keeps a place by another.
struct Beside<'n> {
    item: &'n Node,
    times: Times,
    /// Its number in a convoy, from 1.
    rank: u32,
}

/// Finds the motion of a ship that keeps a place by another, after that of the other.
fn place_by_other(
    ship: NodeId,
    by_others: &BTreeMap<NodeId, Beside<'_>>,
    topology: &Topology,
    motions: &mut BTreeMap<NodeId, Motion>,
    under_way: &mut BTreeSet<NodeId>,
) -> Result<(), Diagnostic> {
    // A convoy may be long: no recursion.
    let mut chain = vec![ship];
    while let Some(&ship) = chain.last() {
        let Beside { item, times, rank } = &by_others[&ship];
        let fields = Fields::of(item, "a motion", &KEYS)?;
        let key = if fields.get("follows").is_some() { "follows" } else { "beside" };
        let named = fields.need(key, "follows: ship1")?;
        let other = topology.node(named, key)?;
        if motions.contains_key(&ship) {
            chain.pop();
        } else if let Some(of_other) = motions.get(&other) {
            let motion = match key {
                "follows" => {
                    let behind = distance(fields.need("behind", "behind: 500 m")?, "behind")?;
                    of_other.followed_at(behind * f64::from(*rank))
                }
                _ => {
                    let ahead = fields.read("ahead", metres)?.unwrap_or(0.0);
                    of_other.beside(ahead, fields.read("starboard", metres)?.unwrap_or(0.0))
                }
            };
            let motion = times.applied(motion, fields)?;
            motions.insert(ship, motion);
            under_way.remove(&ship);
            chain.pop();
        } else if !under_way.insert(ship) {
            return Err(named.error(format!("`{key}`: these ships keep places by each other, in a circle")));
        } else if by_others.contains_key(&other) {
            chain.push(other);
        } else {
            let name = &topology.nodes[other].name;
            return Err(named.error(format!("`{key}`: `{name}` has no `place` and no motion of its own")));
        }
    }
    Ok(())
}

/// The times from which and until which a ship takes part.
#[derive(Clone, Copy)]
struct Times {
    joins: Option<Instant>,
    leaves: Option<Instant>,
    within_track: bool,
}

impl Times {
    fn of(fields: Fields<'_>) -> Result<Self, Diagnostic> {
        let time = |node: &Node, key: &str| Ok(Instant::ZERO + duration(node, key)?);
        Ok(Self {
            joins: fields.read("joins", time)?,
            leaves: fields.read("leaves", time)?,
            within_track: fields.read("within-track", flag)?.unwrap_or(false),
        })
    }

    const fn are_given(&self) -> bool {
        self.joins.is_some() || self.leaves.is_some()
    }

    /// The motion of a ship that takes part in these times.
    fn applied(&self, motion: Motion, fields: Fields<'_>) -> Result<Motion, Diagnostic> {
        if let (Some(joins), Some(leaves)) = (self.joins, self.leaves)
            && leaves <= joins
        {
            return Err(fields.error(format!("the ship leaves at {leaves}, before it joins at {joins}")));
        }
        let mut motion = if self.within_track { motion.within_track() } else { motion };
        if let Some(at) = self.joins {
            motion = motion.joining(at);
        }
        if let Some(at) = self.leaves {
            motion = motion.leaving(at);
        }
        Ok(motion)
    }
}

fn waypoints_of(node: &Node) -> Result<Track, Diagnostic> {
    let items = list(node, "waypoints")?;
    let waypoint = |item: &Node| {
        let fields = Fields::of(item, "a waypoint", &["at", "x", "y", "lat", "lon", "heading"])?;
        let at = Instant::ZERO + duration(fields.need("at", "at: 10 s")?, "at")?;
        Ok(Waypoint { at, position: super::position(fields)?, heading: fields.read("heading", number)? })
    };
    let points = items.iter().map(waypoint).collect::<Result<Vec<_>, _>>()?;
    Track::new(points).map_err(|error| {
        use hopcast_radio::track::TrackError::{Empty, Heading, Mixed, OutOfOrder};
        let place = match error {
            OutOfOrder(index) | Mixed(index) | Heading(index) => items.get(index).unwrap_or(node),
            Empty => node,
        };
        place.error(format!("`waypoints`: {error}"))
    })
}

/// A ship, its name in the file of tracks, and its track.
type Traced<'n> = (NodeId, &'n Node, Arc<Track>);

/// The ships that a file of tracks moves, with their places in the file, and their tracks.
fn trace<'n>(
    fields: Fields<'n>,
    topology: &Topology,
    contents: &mut Contents<'_>,
) -> Result<Vec<Traced<'n>>, Diagnostic> {
    let file = fields.need("trace", "trace: ships.gpx")?;
    let written = fields.need("format", "format: gpx")?;
    let names = FORMATS.map(|(name, _)| name);
    let (name, ..) = choice(written, "format", &names)?;
    let format = FORMATS.iter().find(|(other, _)| *other == name).map_or(Format::Gpx, |(_, format)| *format);
    let tracks = contents.tracks(file, "trace", format)?;
    let nodes = fields.need("nodes", "nodes: { ship1: 265547250 }")?;
    let mut found = Vec::new();
    for entry in entries(nodes, "`nodes`")? {
        let named = Node { span: entry.key_span.clone(), kind: Kind::Scalar(entry.key.clone()) };
        let ship = topology.node(&named, "nodes")?;
        let wanted = text(&entry.value, &entry.key)?;
        let track = tracks.get(wanted).ok_or_else(|| {
            let hint = did_you_mean(wanted, tracks.keys().map(String::as_str));
            let some: Vec<String> = tracks.keys().take(5).map(|name| format!("`{name}`")).collect();
            let more = if tracks.len() > 5 { ", …" } else { "" };
            entry.value.error(format!(
                "`nodes`: the trace has no ship `{wanted}`{hint} (there: {}{more})",
                some.join(", ")
            ))
        })?;
        found.push((ship, &entry.value, track.clone()));
    }
    Ok(found)
}
