//! From the places of a document to a plane in metres, to the east and to the north.

use std::f64::consts::PI;

use crate::number::plain;
use crate::plot::canvas::Point;

/// Metres of a degree of latitude on a sphere with the Earth's mean radius (IUGG), rounded to 6371 km. A track is
/// measured with `hopcast-radio`'s 6,371,008.8 m; on a map the difference, 1.4 millionths, is far below a pixel.
const DEGREE: f64 = 6_371_000.0 * PI / 180.0;
/// Maximum distance of a place from the origin, in metres. Chosen: 25 times the way round the Earth; what is farther
/// away is a mistake, and would shrink all else to one point.
const FARTHEST: f64 = 1e9;
/// Minimum of the cosine of the latitude. Chosen: that of 89.4 degrees; at the poles a map would have no width.
const MIN_COSINE: f64 = 0.01;

/// Cylindrical projection with the true scale at the middle latitude, or the plane as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Projection {
    /// Places are metres.
    Metres,
    /// Places are longitude and latitude.
    Degrees {
        /// The meridian at which the world is cut open, where no ship is.
        cut: f64,
        /// Cosine of the middle latitude.
        cosine: f64,
    },
}

impl Projection {
    /// The projection for these places. In degrees, the world is cut in the middle of the widest range of longitudes
    /// without a place, so that a fleet across the date line stays together.
    pub(super) fn of(degrees: bool, places: impl Iterator<Item = [f64; 2]>) -> Self {
        if !degrees {
            return Self::Metres;
        }
        let mut is_used = [false; 360];
        let (mut south, mut north) = (f64::INFINITY, f64::NEG_INFINITY);
        for [longitude, latitude] in places.filter(|place| is_on_globe(*place)) {
            is_used[(longitude.rem_euclid(360.0) as usize).min(359)] = true;
            (south, north) = (south.min(latitude), north.max(latitude));
        }
        let middle = if south <= north { f64::midpoint(south, north) } else { 0.0 };
        Self::Degrees { cut: widest_gap(&is_used), cosine: middle.to_radians().cos().max(MIN_COSINE) }
    }

    /// A place on the plane; `None` for one that is none.
    pub(super) fn place(self, place: [f64; 2]) -> Option<Point> {
        match self {
            Self::Metres => {
                let is_near = place.iter().all(|metres| metres.abs() <= FARTHEST);
                is_near.then_some((place[0], place[1]))
            }
            Self::Degrees { cut, cosine } => is_on_globe(place).then(|| {
                let longitude = cut + (place[0] - cut).rem_euclid(360.0);
                (longitude * DEGREE * cosine, place[1] * DEGREE)
            }),
        }
    }

    /// Whether a ship came from one place to the other across the cut, and not across the map.
    pub(super) fn is_cut(self, from: Point, to: Point) -> bool {
        match self {
            Self::Metres => false,
            Self::Degrees { cosine, .. } => (to.0 - from.0).abs() > 180.0 * DEGREE * cosine,
        }
    }

    /// Metres of a unit of the axes, to the east and to the north; `km` of a plane that is so large.
    pub(super) fn units(self, span: f64) -> (f64, f64) {
        match self {
            Self::Metres if span < 2000.0 => (1.0, 1.0),
            Self::Metres => (1000.0, 1000.0),
            Self::Degrees { cosine, .. } => (DEGREE * cosine, DEGREE),
        }
    }

    /// A tick of the axis to the east.
    pub(super) fn east(self, value: f64) -> String {
        match self {
            Self::Metres => plain(value),
            Self::Degrees { .. } => {
                let longitude = (value + 180.0).rem_euclid(360.0) - 180.0;
                // Nearly 180 is 180: rounding is not to tell two ticks of one meridian apart.
                let is_date_line = (longitude.abs() - 180.0).abs() < 1e-9;
                let side =
                    if is_date_line || longitude.abs() < 1e-9 { "" } else { side(longitude, " E", " W") };
                format!("{}°{side}", plain(longitude.abs()))
            }
        }
    }

    /// A tick of the axis to the north.
    pub(super) fn north(self, value: f64) -> String {
        match self {
            Self::Metres => plain(value),
            Self::Degrees { .. } if value.abs() < 1e-9 => "0°".into(),
            Self::Degrees { .. } => format!("{}°{}", plain(value.abs()), side(value, " N", " S")),
        }
    }

    /// The titles of both axes, of which degrees have none: their ticks say all.
    pub(super) fn titles(self, span: f64) -> Option<(String, String)> {
        let unit = if span < 2000.0 { "m" } else { "km" };
        match self {
            Self::Metres => Some((format!("east [{unit}]"), format!("north [{unit}]"))),
            Self::Degrees { .. } => None,
        }
    }
}

const fn side(value: f64, positive: &'static str, negative: &'static str) -> &'static str {
    if value < 0.0 { negative } else { positive }
}

fn is_on_globe([longitude, latitude]: [f64; 2]) -> bool {
    longitude.is_finite() && latitude.abs() <= 90.0
}

/// The middle of the widest range of degrees without a place; the date line if all have one, or none has.
fn widest_gap(is_used: &[bool; 360]) -> f64 {
    let (mut widest, mut cut, mut free) = (0, -180.0, 0);
    // Twice around, for a gap across degree 0.
    for step in 0..720_u16 {
        free = if is_used[usize::from(step % 360)] { 0 } else { free + 1 };
        if free > widest && free < 360 {
            (widest, cut) = (free, f64::from(step) + 1.0 - f64::from(free) / 2.0);
        }
    }
    // Without any place the run of free degrees has no end.
    if is_used.iter().all(|used| !used) { -180.0 } else { cut.rem_euclid(360.0) - 360.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn across(places: &[[f64; 2]]) -> f64 {
        let projection = Projection::of(true, places.iter().copied());
        let east = places.iter().filter_map(|place| projection.place(*place)).map(|place| place.0);
        let (low, high) = east.fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)));
        (high - low) / 1000.0
    }

    #[test]
    fn a_fleet_across_the_date_line_stays_together() {
        assert!((across(&[[179.5, 0.0], [-179.5, 0.0]]) - 111.2).abs() < 0.1);
        assert!((across(&[[-0.5, 0.0], [0.5, 0.0]]) - 111.2).abs() < 0.1);
        assert!((across(&[[359.5, 0.0], [0.5, 0.0]]) - 111.2).abs() < 0.1);
        assert!((across(&[[-100.0, 0.0], [100.0, 0.0], [10.0, 0.0]]) - 200.0 * 111.2).abs() < 20.0);
    }

    #[test]
    fn a_degree_of_longitude_is_shorter_away_from_the_equator() {
        assert!((across(&[[10.0, 60.0], [11.0, 60.0]]) - 55.6).abs() < 0.1);
        for latitude in [90.0, -90.0] {
            let width = across(&[[10.0, latitude], [11.0, latitude]]);
            assert!(width > 0.1 && width.is_finite(), "{width}");
        }
    }

    #[test]
    fn what_is_no_place_has_none() {
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300];
        for odd in odd {
            for place in [[odd, 0.0], [0.0, odd]] {
                assert_eq!(Projection::of(false, [place].into_iter()).place(place), None);
            }
            let projection = Projection::of(true, [[0.0, odd], [odd, 0.0]].into_iter());
            assert_eq!(projection.place([0.0, odd]), None);
            assert!(projection.place([odd, 0.0]).is_none_or(|place| place.0.is_finite()));
        }
    }

    #[test]
    fn ticks_are_longitudes_as_charts_have_them() {
        let projection = Projection::of(true, [[179.0, 0.0], [-179.0, 0.0]].into_iter());
        let ticks = [-181.0, -180.0, -179.0, 0.0, 179.5, 180.0].map(|tick| projection.east(tick));
        assert_eq!(ticks, ["179° E", "180°", "179° W", "0°", "179.5° E", "180°"]);
        assert_eq!([-1.5, 0.0, 54.0].map(|tick| projection.north(tick)), ["1.5° S", "0°", "54° N"]);
    }

    #[test]
    fn a_track_around_the_world_is_broken_at_the_cut() {
        let all = (0..360).map(|degree| [f64::from(degree), 0.0]);
        let projection = Projection::of(true, all);
        let [a, b, c] = [-179.5, 179.5, 178.5].map(|longitude| projection.place([longitude, 0.0]).unwrap());
        assert!(projection.is_cut(a, b));
        assert!(!projection.is_cut(b, c));
    }
}
