//! Tracks: where a ship is at any time, from waypoints.

use hopcast_core::Instant;
use thiserror::Error;

use crate::position::{Position, full_turn, half_turn};

/// A point of a track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waypoint {
    /// The time of arrival.
    pub at: Instant,
    /// The place.
    pub position: Position,
    /// Heading in degrees clockwise from north, if it is known apart from the course.
    pub heading: Option<f64>,
}

/// Position and movement of a ship at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fix {
    /// The place.
    pub position: Position,
    /// Direction of the bow, in degrees clockwise from north, from 0 to below 360.
    pub heading: f64,
    /// Speed over ground in metres per second.
    pub speed: f64,
}

/// The error of waypoints that make no track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TrackError {
    /// No waypoint at all.
    #[error("expected at least one waypoint, found none")]
    Empty,
    /// A waypoint, by its index, that is earlier than the one before it.
    #[error("waypoint {0} is earlier than the one before it")]
    OutOfOrder(usize),
    /// A waypoint, by its index, on a plane where the first is on the globe, or the reverse.
    #[error("waypoint {0} and the first are not both in metres, nor both in degrees")]
    Mixed(usize),
    /// A waypoint, by its index, with a heading that is not finite.
    #[error("the heading of waypoint {0} is not a number of degrees")]
    Heading(usize),
}

/// A path through waypoints, and a schedule.
///
/// - Between two waypoints a ship sails straight (on the globe along the great circle) at a constant speed.
/// - Two waypoints of one time are a jump: at that time the later of the two is in force. A jump is no way made good:
///   it adds nothing to [`odometer`](Self::odometer), and changes no course.
/// - Before the first waypoint and after the last it stands still.
/// - The heading is the course, and where the ship stands still, that of its last movement; before any movement, that
///   of the first to come; north without any. A waypoint with a heading of its own has that instead. Between two of
///   these a ship turns by the smaller angle; from one of these to one without it keeps the heading.
///
/// A position is found in O(log n) of the number of waypoints, by time or by distance sailed.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    legs: Vec<Leg>,
}

/// A waypoint, and what is known of the way to it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Leg {
    point: Waypoint,
    /// Way made good until here, in metres.
    odometer: f64,
    /// Course on which a ship that stands still here heads.
    course: f64,
}

/// A place on a track: the waypoint before, and the share of the way to the next.
#[derive(Clone, Copy, Debug)]
struct Place {
    index: usize,
    share: f64,
}

impl Track {
    /// The track through `points`, in their order.
    ///
    /// # Errors
    ///
    /// If there is none, if times go back, or if points are of two kinds.
    pub fn new(points: impl IntoIterator<Item = Waypoint>) -> Result<Self, TrackError> {
        let points = points.into_iter();
        let mut legs: Vec<Leg> = Vec::with_capacity(points.size_hint().0);
        // Whether the ship has moved yet, and so has a course.
        let mut moving = false;
        for (index, mut point) in points.enumerate() {
            if point.heading.is_some_and(|heading| !heading.is_finite()) {
                return Err(TrackError::Heading(index));
            }
            point.heading = point.heading.map(full_turn);
            let Some(last) = legs.last() else {
                legs.push(Leg { point, odometer: 0.0, course: 0.0 });
                continue;
            };
            if point.at < last.point.at {
                return Err(TrackError::OutOfOrder(index));
            }
            let way = last.point.position.to(&point.position).ok_or(TrackError::Mixed(index))?;
            let (mut odometer, mut course) = (last.odometer, last.course);
            if point.at > last.point.at && way.metres > 0.0 {
                odometer += way.metres;
                course = full_turn(way.back_bearing + 180.0);
                if !moving {
                    legs.iter_mut().for_each(|leg| leg.course = way.bearing);
                    moving = true;
                }
            }
            legs.push(Leg { point, odometer, course });
        }
        if legs.is_empty() { Err(TrackError::Empty) } else { Ok(Self { legs }) }
    }

    /// The track of a ship that stands still.
    pub fn still(position: Position, heading: f64) -> Self {
        let heading = heading.is_finite().then(|| full_turn(heading));
        let point = Waypoint { at: Instant::ZERO, position, heading };
        Self { legs: vec![Leg { point, odometer: 0.0, course: 0.0 }] }
    }

    /// The time of the first waypoint.
    pub fn begins(&self) -> Instant {
        self.legs[0].point.at
    }

    /// The time of the last waypoint.
    pub fn ends(&self) -> Instant {
        self.legs[self.legs.len() - 1].point.at
    }

    /// Number of waypoints.
    pub fn waypoints(&self) -> usize {
        self.legs.len()
    }

    /// Maximum speed over ground between any two waypoints, in metres per second; `None` if the track jumps.
    pub fn max_speed(&self) -> Option<f64> {
        self.legs.windows(2).try_fold(0.0, |max: f64, legs| {
            let [here, next] = legs else { return Some(max) };
            let time = next.point.at.since(here.point.at).as_secs_f64();
            if time == 0.0 {
                return (here.point.position == next.point.position).then_some(max);
            }
            Some(max.max((next.odometer - here.odometer) / time))
        })
    }

    /// The time until which position, heading and speed stay as they are at `now`: `now` itself while the ship moves or
    /// turns; `None` if they never change again.
    pub fn rests_until(&self, now: Instant) -> Option<Instant> {
        let here = &self.legs[self.place_at(now).index];
        if now < here.point.at {
            return Some(here.point.at);
        }
        let next = &self.legs.get(self.place_at(now).index + 1)?;
        let turns = matches!((here.point.heading, next.point.heading), (Some(from), Some(to)) if from != to);
        Some(if turns || next.odometer > here.odometer { now } else { next.point.at })
    }

    /// Position, heading and speed at `now`.
    pub fn at(&self, now: Instant) -> Fix {
        let place = self.place_at(now);
        let speed = self.speed_after(place, now);
        self.fix(place, speed)
    }

    /// Way made good from the first waypoint until `now`, in metres; jumps do not count.
    pub fn odometer(&self, now: Instant) -> f64 {
        let place = self.place_at(now);
        let here = self.legs[place.index].odometer;
        match self.legs.get(place.index + 1) {
            // Rounding must not go beyond the next waypoint: the way only grows.
            Some(next) => (here + place.share * (next.odometer - here)).min(next.odometer),
            None => here,
        }
    }

    /// Position and heading `metres` behind where a ship on this track is at `now`, on the same way, with the speed
    /// that the ship has at `now`.
    ///
    /// Where it has not come far enough yet, that is on a straight line behind the first waypoint. A jump is
    /// done where the track does it, when that place is reached. Negative distances count as 0.
    pub fn behind(&self, now: Instant, metres: f64) -> Fix {
        if metres.is_nan() || metres <= 0.0 {
            return self.at(now);
        }
        let speed = self.speed_after(self.place_at(now), now);
        let target = self.odometer(now) - metres;
        let first = &self.legs[0];
        if target < 0.0 {
            let heading = first.point.heading.unwrap_or(first.course);
            let position = first.point.position.moved(first.course + 180.0, -target);
            return Fix { position, heading, speed };
        }
        let after = self.legs.partition_point(|leg| leg.odometer <= target);
        let index = after - 1;
        let here = self.legs[index].odometer;
        let share = self.legs.get(after).map_or(0.0, |next| (target - here) / (next.odometer - here));
        self.fix(Place { index, share }, speed)
    }

    fn place_at(&self, now: Instant) -> Place {
        let after = self.legs.partition_point(|leg| leg.point.at <= now);
        // Before the first waypoint: at the first.
        let Some(index) = after.checked_sub(1) else { return Place { index: 0, share: 0.0 } };
        let from = self.legs[index].point.at;
        let share = self.legs.get(after).map_or(0.0, |next| {
            now.since(from).as_nanos() as f64 / next.point.at.since(from).as_nanos() as f64
        });
        Place { index, share }
    }

    fn speed_after(&self, place: Place, now: Instant) -> f64 {
        let here = &self.legs[place.index];
        match self.legs.get(place.index + 1) {
            Some(next) if now >= here.point.at && next.point.at > here.point.at => {
                (next.odometer - here.odometer) / next.point.at.since(here.point.at).as_secs_f64()
            }
            _ => 0.0,
        }
    }

    fn fix(&self, place: Place, speed: f64) -> Fix {
        let here = &self.legs[place.index];
        let own = here.point.heading;
        let still = Fix { position: here.point.position, heading: own.unwrap_or(here.course), speed };
        let Some(next) = self.legs.get(place.index + 1) else { return still };
        let (from, to) = (here.point.position, next.point.position);
        let moves = next.odometer > here.odometer;
        let (position, course) = match from.to(&to) {
            Some(way) if moves && place.share > 0.0 => {
                let position = from.moved(way.bearing, way.metres * place.share);
                (position, course_at(&position, &from, &to, place.share, way.bearing))
            }
            Some(way) if moves => (from, way.bearing),
            _ => (from, here.course),
        };
        let heading = match (own, next.point.heading) {
            (Some(from), Some(to)) => full_turn(from + half_turn(to - from) * place.share),
            (Some(from), None) => from,
            (None, _) => course,
        };
        Fix { position, heading, speed }
    }
}

/// The course at `here` on the way between two waypoints, which on a great circle changes on the way. It is taken by
/// the waypoint that is farther away: near the other one rounding would decide.
fn course_at(here: &Position, from: &Position, to: &Position, share: f64, first: f64) -> f64 {
    let course = match here {
        Position::Plane { .. } => None,
        Position::Globe { .. } if share < 0.5 => here.to(to).map(|rest| rest.bearing),
        Position::Globe { .. } => from.to(here).map(|done| full_turn(done.back_bearing + 180.0)),
    };
    course.unwrap_or(first)
}
