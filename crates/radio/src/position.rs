//! Positions, and how one lies from another.

use core::fmt;

use thiserror::Error;

/// Mean radius of the earth, in metres: (2a + b) / 3 of WGS 84 (IUGG; Moritz, Geodetic Reference System 1980).
///
/// A great circle on this sphere differs from the ellipsoid's geodesic by at most 0.56 %, which is 0.06 dB of
/// the loss at a distance exponent of 2.35.
pub const EARTH_RADIUS: f64 = 6_371_008.8;

/// Maximum coordinate of a position in metres. Chosen: a thousand times round the earth, and squares stay finite.
const MAX_METRES: f64 = 4e10;

/// Maximum distance of one move in metres. Chosen: across all of the plane, and on the globe the angle stays finite.
const MAX_MOVE: f64 = 1e12;

/// A position of a ship: finite, and in range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Position {
    /// On a plane.
    Plane {
        /// Metres east of the origin.
        x: f64,
        /// Metres north of the origin.
        y: f64,
    },
    /// On the globe.
    Globe {
        /// Degrees north of the equator, -90 to 90.
        latitude: f64,
        /// Degrees east of Greenwich, from -180 to below 180.
        longitude: f64,
    },
}

/// The error of coordinates that are no position.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum PositionError {
    /// A coordinate in metres that is not finite, or too big.
    #[error("expected metres from -4e10 to 4e10, found {0}")]
    Metres(f64),
    /// A latitude out of range.
    #[error("expected a latitude from -90 to 90 degrees, found {0}")]
    Latitude(f64),
    /// A longitude out of range.
    #[error("expected a longitude from -360 to 360 degrees, found {0}")]
    Longitude(f64),
}

/// Distance and directions between two positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Separation {
    /// Distance in metres, along the plane or the great circle.
    pub metres: f64,
    /// Direction of the second as the first sees it, in degrees clockwise from north, from 0 to below 360.
    pub bearing: f64,
    /// Direction of the first as the second sees it.
    pub back_bearing: f64,
}

impl Position {
    /// The position `x` metres east and `y` metres north of the origin of a plane.
    ///
    /// # Errors
    ///
    /// If a coordinate is not finite, or beyond 4e10 m.
    pub fn metres(x: f64, y: f64) -> Result<Self, PositionError> {
        match [x, y].into_iter().find(|value| !(-MAX_METRES..=MAX_METRES).contains(value)) {
            Some(bad) => Err(PositionError::Metres(bad)),
            None => Ok(Self::Plane { x, y }),
        }
    }

    /// The position at a latitude and a longitude, in degrees. Longitudes to 360 degrees either side of Greenwich are
    /// taken, since some write the date line as 190; they are kept from -180 to below 180.
    ///
    /// # Errors
    ///
    /// If one is not a number or out of range.
    pub fn degrees(latitude: f64, longitude: f64) -> Result<Self, PositionError> {
        if !(-90.0..=90.0).contains(&latitude) {
            return Err(PositionError::Latitude(latitude));
        }
        if !(-360.0..=360.0).contains(&longitude) {
            return Err(PositionError::Longitude(longitude));
        }
        Ok(Self::Globe { latitude, longitude: half_turn(longitude) })
    }

    /// Distance and directions from here to `other`; `None` if one is on a plane and the other on the globe.
    ///
    /// In one place both bearings are 0. At a pole, north is along the meridian of the position's longitude and beyond
    /// the pole: two positions at one pole are one place, with different ideas of north. Antipodes are half the
    /// circumference apart by any way, of which the one that rounding prefers is taken.
    pub fn to(&self, other: &Self) -> Option<Separation> {
        match (*self, *other) {
            (Self::Plane { x, y }, Self::Plane { x: to_x, y: to_y }) => {
                let (east, north) = (to_x - x, to_y - y);
                let metres = east.hypot(north);
                let back = if metres == 0.0 { 0.0 } else { bearing_of(-east, -north) };
                Some(Separation { metres, bearing: bearing_of(east, north), back_bearing: back })
            }
            (Self::Globe { .. }, Self::Globe { .. }) => {
                let (from, to) = (self.vector(), other.vector());
                let metres = EARTH_RADIUS * length(cross(from, to)).atan2(dot(from, to));
                if metres == 0.0 {
                    return Some(Separation { metres, bearing: 0.0, back_bearing: 0.0 });
                }
                let bearing = self.bearing_to(to);
                Some(Separation { metres, bearing, back_bearing: other.bearing_to(from) })
            }
            _ => None,
        }
    }

    /// The position `metres` from here in the direction `bearing`, in degrees clockwise from north: along a straight
    /// line or a great circle. Beyond the border of the plane it stays at the border. More than 1e12 m counts as that,
    /// and what is not a number as 0.
    pub fn moved(&self, bearing: f64, metres: f64) -> Self {
        let metres = if metres.is_nan() { 0.0 } else { metres.clamp(-MAX_MOVE, MAX_MOVE) };
        let (sin, cos) = bearing.to_radians().sin_cos();
        match *self {
            Self::Plane { x, y } => Self::Plane {
                x: (x + metres * sin).clamp(-MAX_METRES, MAX_METRES),
                y: (y + metres * cos).clamp(-MAX_METRES, MAX_METRES),
            },
            Self::Globe { .. } => {
                let (here, (east, north)) = (self.vector(), self.axes());
                let (sin_angle, cos_angle) = (metres / EARTH_RADIUS).sin_cos();
                let axis = |i: usize| here[i] * cos_angle + (east[i] * sin + north[i] * cos) * sin_angle;
                let (x, y, z) = (axis(0), axis(1), axis(2));
                Self::Globe {
                    latitude: z.atan2(x.hypot(y)).to_degrees(),
                    longitude: half_turn(y.atan2(x).to_degrees()),
                }
            }
        }
    }

    /// Cartesian coordinates in metres: the plane's with a height of 0, or those of the globe from its centre.
    pub fn cartesian(&self) -> [f64; 3] {
        match *self {
            Self::Plane { x, y } => [x, y, 0.0],
            Self::Globe { .. } => self.vector().map(|axis| axis * EARTH_RADIUS),
        }
    }

    /// The unit vector from the centre of the globe. Only positions on the globe have one that means something.
    fn vector(&self) -> [f64; 3] {
        let Self::Globe { latitude, longitude } = *self else { return [0.0; 3] };
        let (sin_lat, cos_lat) = latitude.to_radians().sin_cos();
        let (sin_lon, cos_lon) = longitude.to_radians().sin_cos();
        [cos_lat * cos_lon, cos_lat * sin_lon, sin_lat]
    }

    /// The unit vectors to the east and to the north, tangent to the globe.
    fn axes(&self) -> ([f64; 3], [f64; 3]) {
        let Self::Globe { latitude, longitude } = *self else { return ([0.0; 3], [0.0; 3]) };
        let (sin_lat, cos_lat) = latitude.to_radians().sin_cos();
        let (sin_lon, cos_lon) = longitude.to_radians().sin_cos();
        ([-sin_lon, cos_lon, 0.0], [-sin_lat * cos_lon, -sin_lat * sin_lon, cos_lat])
    }

    fn bearing_to(&self, to: [f64; 3]) -> f64 {
        let (east, north) = self.axes();
        bearing_of(dot(to, east), dot(to, north))
    }
}

/// The angle from 0 to below 360 degrees that `degrees` is after whole turns.
pub fn full_turn(degrees: f64) -> f64 {
    let turned = degrees.rem_euclid(360.0);
    // A tiny negative angle is rounded to 360.
    if turned < 360.0 { turned } else { 0.0 }
}

/// The angle from -180 to below 180 degrees that `degrees` is after whole turns.
pub fn half_turn(degrees: f64) -> f64 {
    if (-180.0..180.0).contains(&degrees) { degrees } else { full_turn(degrees + 180.0) - 180.0 }
}

fn bearing_of(east: f64, north: f64) -> f64 {
    full_turn(east.atan2(north).to_degrees())
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn length(a: [f64; 3]) -> f64 {
    dot(a, a).sqrt()
}

impl fmt::Display for Position {
    /// `1200.0 m E, -40.0 m N`, or `48.381633°, -123.395383°`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plane { x, y } => write!(f, "{x:.1} m E, {y:.1} m N"),
            Self::Globe { latitude, longitude } => write!(f, "{latitude:.6}°, {longitude:.6}°"),
        }
    }
}
