//! The ships of a map: where each is at any time, and its track.

use hopcast_twin::results::{ShipMap, ShipTrack};

use super::projection::Projection;
use crate::plot::canvas::Point;

/// Maximum number of ships that are drawn. Chosen: more are a grey area; a fleet of the studies has 200 at most.
const MAX_SHIPS: usize = 1000;
/// Maximum number of corners of all tracks together, in one picture. Chosen: about 200 kB.
const MAX_CORNERS: usize = 16_000;
/// Tolerance of tracks, as a share of the fleet's extent. Chosen: a third of a pixel of a wide picture.
const TOLERANCE: f64 = 1.0 / 2500.0;
/// Maximum number of points that one straight piece of a track stands for. Bounds the work for each point.
const MAX_STRAIGHT: usize = 64;

/// The ships of a map, on the plane.
pub(super) struct Fleet<'m> {
    pub(super) ships: Vec<Vessel<'m>>,
    /// Number of ships that are not drawn.
    pub(super) left_out: usize,
    pub(super) projection: Projection,
    /// The south-western and the north-eastern corner of all tracks.
    pub(super) corners: (Point, Point),
}

/// A ship with its track.
pub(super) struct Vessel<'m> {
    pub(super) name: &'m str,
    pub(super) antennas: u8,
    stops: Vec<Stop>,
    /// The track with only the points that its shape needs.
    shape: Vec<Stop>,
}

/// A point of a track.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stop {
    at: f64,
    place: Point,
    heading: f64,
}

/// A ship at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fix {
    pub(super) place: Point,
    /// Degrees clockwise from north.
    pub(super) heading: f64,
    /// Whether its track has this time.
    pub(super) on_track: bool,
}

impl<'m> Fleet<'m> {
    pub(super) fn of(map: &'m ShipMap) -> Self {
        let tracks = &map.ships[..map.ships.len().min(MAX_SHIPS)];
        let places = tracks.iter().flat_map(|ship| &ship.points).map(|[_, x, y, _]| [*x, *y]);
        let projection = Projection::of(map.degrees, places);
        let mut ships: Vec<Vessel<'m>> = tracks.iter().map(|track| Vessel::of(track, projection)).collect();
        let corners = corners(&ships);
        let extent = (corners.1.0 - corners.0.0).max(corners.1.1 - corners.0.1);
        let share = (MAX_CORNERS / ships.len().max(1)).max(8);
        for ship in &mut ships {
            ship.shape = simplified(&ship.stops, projection, extent * TOLERANCE, share);
        }
        Self { ships, left_out: map.ships.len() - tracks.len(), projection, corners }
    }

    /// The time of the last point of any track.
    pub(super) fn last_time(&self) -> f64 {
        let times = self.ships.iter().filter_map(|ship| ship.stops.last()).map(|stop| stop.at);
        times.fold(0.0, f64::max)
    }
}

impl<'m> Vessel<'m> {
    fn of(track: &'m ShipTrack, projection: Projection) -> Self {
        let stop = |&[at, x, y, heading]: &[f64; 4]| {
            let heading = if heading.is_finite() { heading } else { 0.0 };
            at.is_finite().then_some(Stop { at, place: projection.place([x, y])?, heading })
        };
        let mut stops: Vec<Stop> = track.points.iter().filter_map(stop).collect();
        stops.sort_by(|a, b| a.at.total_cmp(&b.at));
        Self { name: &track.node, antennas: track.antennas, stops, shape: Vec::new() }
    }

    /// The ship at this time; `None` if it has no track at all.
    pub(super) fn fix(&self, at: f64, projection: Projection) -> Option<Fix> {
        let next = self.stops.partition_point(|stop| stop.at <= at);
        let before = next.checked_sub(1).and_then(|before| self.stops.get(before));
        let (from, to) = match (before, self.stops.get(next)) {
            (Some(from), Some(to)) if !projection.is_cut(from.place, to.place) => (from, to),
            (Some(only), _) | (None, Some(only)) => (only, only),
            (None, None) => return None,
        };
        let span = to.at - from.at;
        let share = if span > 0.0 { ((at - from.at) / span).clamp(0.0, 1.0) } else { 0.0 };
        let along = |a: f64, b: f64| a + (b - a) * share;
        let turn = (to.heading - from.heading + 180.0).rem_euclid(360.0) - 180.0;
        // The second of a moment may be rounded.
        let (first, last) = (self.stops.first()?.at - 1e-6, self.stops.last()?.at + 1e-6);
        Some(Fix {
            place: (along(from.place.0, to.place.0), along(from.place.1, to.place.1)),
            heading: from.heading + turn * share,
            on_track: self.stops.len() == 1 || (first..=last).contains(&at),
        })
    }

    /// The lines of the track until this time, and those after it.
    pub(super) fn track(&self, at: f64, projection: Projection) -> (Vec<Vec<Point>>, Vec<Vec<Point>>) {
        let here = self.fix(at, projection).map(|fix| fix.place);
        let next = self.shape.partition_point(|stop| stop.at <= at);
        let (before, after) = self.shape.split_at(next);
        let places = |stops: &[Stop]| stops.iter().map(|stop| stop.place).collect::<Vec<_>>();
        let sailed = if before.is_empty() { None } else { here };
        let to_come = if after.is_empty() { None } else { here };
        let sailed: Vec<Point> = places(before).into_iter().chain(sailed).collect();
        let to_come: Vec<Point> = to_come.into_iter().chain(places(after)).collect();
        (broken(&sailed, projection), broken(&to_come, projection))
    }
}

/// A line in the pieces that do not cross the cut of the map.
fn broken(line: &[Point], projection: Projection) -> Vec<Vec<Point>> {
    let pieces = line.chunk_by(|a, b| !projection.is_cut(*a, *b));
    pieces.filter(|piece| piece.len() > 1).map(<[Point]>::to_vec).collect()
}

/// The south-western and the north-eastern corner of all places; the origin if there is none.
fn corners(ships: &[Vessel<'_>]) -> (Point, Point) {
    let mut places = ships.iter().flat_map(|ship| &ship.stops).map(|stop| stop.place);
    let first = places.next().unwrap_or((0.0, 0.0));
    places.fold((first, first), |(low, high), (x, y)| {
        ((low.0.min(x), low.1.min(y)), (high.0.max(x), high.1.max(y)))
    })
}

/// The points that a track's shape needs: each one left out is at most `tolerance` from the line without it. Of more
/// than `max`, evenly chosen ones.
fn simplified(stops: &[Stop], projection: Projection, tolerance: f64, max: usize) -> Vec<Stop> {
    let mut kept: Vec<usize> = Vec::new();
    for end in 0..stops.len() {
        let Some(&start) = kept.last() else {
            kept.push(end);
            continue;
        };
        // The point before `end` is kept if the line from the last kept one to `end` would miss any between.
        let (from, to) = (stops[start].place, stops[end].place);
        let is_straight = end - start <= MAX_STRAIGHT
            && !projection.is_cut(stops[end - 1].place, to)
            && stops[start + 1..end].iter().all(|stop| distance(stop.place, from, to) <= tolerance);
        if !is_straight && end - 1 > start {
            kept.push(end - 1);
        }
    }
    if stops.len() > 1 {
        kept.push(stops.len() - 1);
    }
    evenly(kept.len(), max).filter_map(|place| stops.get(*kept.get(place)?)).copied().collect()
}

/// Distance of a place from a line between two others.
pub(super) fn distance(place: Point, from: Point, to: Point) -> f64 {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let (px, py) = (place.0 - from.0, place.1 - from.1);
    let square = dx * dx + dy * dy;
    let share = if square > 0.0 { ((px * dx + py * dy) / square).clamp(0.0, 1.0) } else { 0.0 };
    (px - dx * share).hypot(py - dy * share)
}

/// At most `max` of `count` indices at even distances, with the first and the last.
pub(super) fn evenly(count: usize, max: usize) -> impl Iterator<Item = usize> {
    let chosen = count.min(max);
    let last = chosen.saturating_sub(1).max(1);
    (0..chosen).map(move |turn| (turn * count.saturating_sub(1) + last / 2) / last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vessel(points: &[[f64; 4]]) -> ShipTrack {
        ShipTrack { node: "s".into(), antennas: 6, points: points.to_vec() }
    }

    #[test]
    fn a_ship_between_two_points_is_between_and_turns_by_the_smaller_angle() {
        let track = vessel(&[[10.0, 0.0, 0.0, 350.0], [20.0, 100.0, 0.0, 10.0]]);
        let ship = Vessel::of(&track, Projection::Metres);
        let fix = |at| ship.fix(at, Projection::Metres).unwrap();
        assert_eq!(fix(15.0), Fix { place: (50.0, 0.0), heading: 360.0, on_track: true });
        assert_eq!((fix(0.0).place, fix(0.0).on_track), ((0.0, 0.0), false));
        assert_eq!((fix(30.0).place, fix(30.0).on_track), ((100.0, 0.0), false));
        let (sailed, to_come) = {
            let map = ShipMap { ships: vec![track.clone()], ..ShipMap::default() };
            Fleet::of(&map).ships[0].track(15.0, Projection::Metres)
        };
        assert_eq!(sailed, [vec![(0.0, 0.0), (50.0, 0.0)]]);
        assert_eq!(to_come, [vec![(50.0, 0.0), (100.0, 0.0)]]);
    }

    #[test]
    fn a_ship_that_stands_still_is_there_all_the_time_and_one_without_points_never() {
        let track = vessel(&[[0.0, 3.0, 4.0, 90.0]]);
        let fix = Vessel::of(&track, Projection::Metres).fix(99.0, Projection::Metres).unwrap();
        assert_eq!(fix, Fix { place: (3.0, 4.0), heading: 90.0, on_track: true });
        assert_eq!(Vessel::of(&vessel(&[]), Projection::Metres).fix(0.0, Projection::Metres), None);
        let nan = vessel(&[[f64::NAN, 0.0, 0.0, 0.0], [0.0, f64::NAN, 0.0, 0.0]]);
        assert_eq!(Vessel::of(&nan, Projection::Metres).fix(0.0, Projection::Metres), None);
    }

    #[test]
    fn a_track_keeps_its_corners_only() {
        let leg = |at: u32| {
            let at = f64::from(at);
            [at, at.min(500.0), (at - 500.0).max(0.0), 0.0]
        };
        let track = vessel(&(0..=1000).map(leg).collect::<Vec<_>>());
        let map = ShipMap { ships: vec![track], ..ShipMap::default() };
        let shape = &Fleet::of(&map).ships[0].shape;
        assert!(shape.iter().any(|stop| stop.place == (500.0, 0.0)));
        assert!(shape.len() < 25, "{}", shape.len());
    }

    #[test]
    fn a_choice_is_even_and_has_both_ends() {
        assert_eq!(evenly(10, 4).collect::<Vec<_>>(), [0, 3, 6, 9]);
        assert_eq!(evenly(3, 5).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(evenly(5, 1).collect::<Vec<_>>(), [0]);
        assert_eq!(evenly(0, 5).count(), 0);
    }
}
