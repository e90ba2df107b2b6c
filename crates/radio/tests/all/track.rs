//! Tracks and motions: where a ship is when.
#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

use std::sync::Arc;

use crate::common::*;
use hopcast_core::Instant;
use hopcast_radio::track::TrackError;
use hopcast_radio::{Motion, Position, Track, Waypoint};
use proptest::prelude::*;

#[test]
fn between_waypoints_a_ship_sails_straight_at_a_constant_speed() {
    let track = track(&[(10.0, 0.0, 0.0), (20.0, 100.0, 0.0), (30.0, 100.0, 50.0)]);
    let fix = track.at(seconds(12.5));
    near(fix.position, plane(25.0, 0.0), 1e-9);
    assert_eq!((fix.heading, fix.speed), (90.0, 10.0));
    let fix = track.at(seconds(20.0));
    assert_eq!((fix.position, fix.heading, fix.speed), (plane(100.0, 0.0), 0.0, 5.0));
}

#[test]
fn before_the_first_waypoint_and_after_the_last_a_ship_stands_still() {
    let track = track(&[(10.0, 0.0, 0.0), (20.0, 100.0, 0.0)]);
    let before = track.at(Instant::ZERO);
    assert_eq!((before.position, before.heading, before.speed), (plane(0.0, 0.0), 90.0, 0.0));
    let after = track.at(Instant::from_nanos(u64::MAX));
    assert_eq!((after.position, after.heading, after.speed), (plane(100.0, 0.0), 90.0, 0.0));
    assert_eq!((track.odometer(Instant::ZERO), track.odometer(seconds(99.0))), (0.0, 100.0));
}

#[test]
fn a_jump_happens_at_its_time_and_is_no_way_made_good() {
    let track = track(&[(0.0, 0.0, 0.0), (10.0, 100.0, 0.0), (10.0, 5000.0, 0.0), (20.0, 5000.0, 0.0)]);
    near(track.at(seconds(9.999_999_999)).position, plane(100.0, 0.0), 1e-6);
    let fix = track.at(seconds(10.0));
    assert_eq!((fix.position, fix.speed), (plane(5000.0, 0.0), 0.0));
    assert_eq!(fix.heading, 90.0, "the course of the last movement");
    assert_eq!(track.odometer(seconds(15.0)), 100.0);
    // Who follows jumps where the track does.
    near(track.behind(seconds(5.0), 20.0).position, plane(30.0, 0.0), 1e-9);
    near(track.behind(seconds(15.0), 20.0).position, plane(80.0, 0.0), 1e-9);
    near(track.behind(seconds(15.0), 0.0).position, plane(5000.0, 0.0), 1e-9);
}

#[test]
fn a_ship_that_lies_still_keeps_its_last_course() {
    let track = track(&[
        (0.0, 0.0, 0.0),
        (5.0, 0.0, 0.0),
        (10.0, -50.0, 0.0),
        (90.0, -50.0, 0.0),
        (95.0, -50.0, 9.0),
    ]);
    assert_eq!(track.at(seconds(2.0)).heading, 270.0, "that on which it will sail");
    assert_eq!(track.at(seconds(50.0)).heading, 270.0);
    assert_eq!(track.at(seconds(91.0)).heading, 0.0);
    assert_eq!(Track::still(plane(1.0, 1.0), -90.0).at(seconds(5.0)).heading, 270.0);
}

#[test]
fn a_heading_of_its_own_turns_by_the_smaller_angle() {
    let at = |time, x, heading| Waypoint { at: seconds(time), position: plane(x, 0.0), heading };
    let track = Track::new([
        at(0.0, 0.0, Some(350.0)),
        at(10.0, 100.0, Some(20.0)),
        at(20.0, 200.0, None),
        at(30.0, 300.0, None),
    ])
    .unwrap();
    let headings = [0.0, 5.0, 10.0, 15.0, 25.0].map(|time| track.at(seconds(time)).heading);
    assert_eq!(headings, [350.0, 5.0, 20.0, 20.0, 90.0]);
}

#[test]
fn on_the_globe_a_ship_sails_the_great_circle_across_the_date_line() {
    let track = Track::new([point(0.0, globe(50.0, 170.0)), point(1000.0, globe(50.0, -170.0))]).unwrap();
    let middle = track.at(seconds(500.0));
    let (latitude, longitude) = coordinates(middle.position);
    // Of two places of one latitude the great circle's middle is nearer to the pole: tan φ = tan 50° / cos 10°.
    close(latitude, (50f64.to_radians().tan() / 10f64.to_radians().cos()).atan().to_degrees(), 1e-9);
    close(longitude.abs(), 180.0, 1e-9);
    close(middle.heading, 90.0, 1e-6);
    assert!(track.at(seconds(0.0)).heading < 90.0 && track.at(seconds(999.0)).heading > 90.0);
    let arrival = 180.0 - track.at(seconds(0.0)).heading;
    close(track.at(seconds(1000.0)).heading, arrival, 1e-6);
    // Nor does rounding decide near the waypoints.
    for nanos in [1, 2, 5, 10] {
        close(track.at(Instant::from_nanos(nanos)).heading, 180.0 - arrival, 1e-6);
        close(track.at(Instant::from_nanos(1_000_000_000_000 - nanos)).heading, arrival, 1e-6);
    }
}

#[test]
fn waypoints_that_make_no_track_are_refused() {
    assert_eq!(Track::new([]), Err(TrackError::Empty));
    let here = plane(0.0, 0.0);
    assert_eq!(Track::new([point(2.0, here), point(1.0, here)]), Err(TrackError::OutOfOrder(1)));
    assert_eq!(Track::new([point(0.0, here), point(1.0, globe(0.0, 0.0))]), Err(TrackError::Mixed(1)));
    let heading = Some(f64::NAN);
    assert_eq!(Track::new([Waypoint { heading, ..point(0.0, here) }]), Err(TrackError::Heading(0)));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a walk is known by its time")]
fn a_million_waypoints_are_searched_and_not_walked() {
    let points = (0..1_000_000u32).map(|n| point(f64::from(n), plane(f64::from(n) * 3.0, 0.0)));
    let track = Track::new(points).unwrap();
    assert_eq!(track.waypoints(), 1_000_000);
    // A hundred thousand questions of a million waypoints take well below a second. A walk would take 10^11 steps over
    // 100 MB, which is many minutes.
    let before = std::time::Instant::now();
    let mut sum = 0.0;
    for n in 0..100_000u32 {
        let now = Instant::from_nanos(u64::from(n.wrapping_mul(2_654_435_769) % 1_000_000) * 1_000_000_000);
        let (x, _) = coordinates(track.at(now).position);
        sum += x - track.odometer(now);
    }
    assert_eq!(sum, 0.0);
    assert!(before.elapsed().as_secs() < 60, "{:?}", before.elapsed());
    near(track.behind(seconds(999_999.0), 1_500_000.0).position, plane(1_499_997.0, 0.0), 1e-6);
}

#[test]
fn a_convoy_follows_round_the_corner() {
    let lead = Motion::along(track(&[(0.0, 0.0, 0.0), (100.0, 1000.0, 0.0), (200.0, 1000.0, 1000.0)]));
    let last = lead.followed_at(150.0).followed_at(150.0);
    let fix = last.at(seconds(120.0)).unwrap();
    near(fix.position, plane(900.0, 0.0), 1e-9);
    assert_eq!((fix.heading, fix.speed), (90.0, 10.0));
    let fix = last.at(seconds(150.0)).unwrap();
    near(fix.position, plane(1000.0, 200.0), 1e-9);
    // In line behind the first waypoint before the leader has come far enough; and it stops with the leader.
    near(last.at(seconds(10.0)).unwrap().position, plane(-200.0, 0.0), 1e-9);
    let end = last.at(seconds(1e6)).unwrap();
    near(end.position, plane(1000.0, 700.0), 1e-9);
    assert_eq!(end.speed, 0.0);
}

#[test]
fn a_formation_keeps_its_shape_as_the_leader_turns() {
    let lead = Motion::along(track(&[(0.0, 0.0, 0.0), (100.0, 0.0, 1000.0), (200.0, 1000.0, 1000.0)]));
    let wing = lead.beside(-100.0, 200.0);
    near(wing.at(seconds(50.0)).unwrap().position, plane(200.0, 400.0), 1e-9);
    near(wing.at(seconds(150.0)).unwrap().position, plane(400.0, 800.0), 1e-9);
    assert_eq!(wing.at(seconds(150.0)).unwrap().heading, 90.0);
    // A formation in a formation is one sum.
    near(
        lead.beside(-50.0, 0.0).beside(-50.0, 200.0).at(seconds(50.0)).unwrap().position,
        plane(200.0, 400.0),
        1e-9,
    );
    // At the pole, too, the shape is kept.
    let polar = Motion::along(Track::still(globe(90.0, 0.0), 45.0)).beside(0.0, 500.0);
    close(polar.at(seconds(0.0)).unwrap().position.to(&globe(90.0, 0.0)).unwrap().metres, 500.0, 1e-6);
}

#[test]
fn a_ship_is_there_from_when_it_joins_until_it_leaves() {
    let path = track(&[(10.0, 0.0, 0.0), (20.0, 100.0, 0.0)]);
    let there = |motion: &Motion, at: f64| motion.at(seconds(at)).is_some();
    let always = Motion::along(path);
    assert!(there(&always, 0.0) && there(&always, 1e9));
    let some = always.clone().joining(seconds(5.0)).leaving(seconds(30.0));
    assert_eq!([4.9, 5.0, 29.9, 30.0].map(|at| there(&some, at)), [false, true, true, false]);
    // A trace that ends: the ship leaves with it, if it is told to.
    let traced = always.within_track();
    assert_eq!([9.9, 10.0, 19.9, 20.0].map(|at| there(&traced, at)), [false, true, true, false]);
    // Followers stay when the leader has left.
    assert!(there(&some.followed_at(50.0), 40.0) && there(&some.beside(1.0, 1.0), 40.0));
}

#[test]
fn ships_of_one_formation_share_one_track_and_equal_tracks_are_not_one() {
    let path = track(&[(0.0, 0.0, 0.0), (10.0, 100.0, 0.0)]);
    let lead = Motion::along(path.clone());
    let same = |other: &Motion| Arc::ptr_eq(lead.shared_track(), other.shared_track());
    assert!(same(&lead.followed_at(50.0)) && same(&lead.beside(1.0, 1.0).joining(seconds(5.0))));
    assert!(!same(&Motion::along(path)));
}

#[test]
fn offsets_that_are_not_finite_count_as_zero_and_no_sum_of_them_leads_nowhere() {
    let lead = Motion::along(Track::still(plane(7.0, 8.0), 0.0));
    for motion in [lead.followed_at(f64::NAN), lead.followed_at(-5.0), lead.beside(f64::INFINITY, f64::NAN)] {
        assert_eq!(motion.at(Instant::ZERO).unwrap().position, plane(7.0, 8.0));
    }
    for start in [plane(7.0, 8.0), globe(52.0, 4.0)] {
        let track = Track::new([point(10.0, start), point(20.0, start.moved(45.0, 1000.0))]).unwrap();
        let lead = Motion::along(track.clone());
        let motions = [
            lead.followed_at(1e308).followed_at(1e308),
            lead.beside(1e308, -1e308).beside(1e308, -1e308),
            lead.followed_at(1e308).followed_at(1e308).beside(-1e308, 1e308).beside(-1e308, 1e308),
        ];
        let moved = motions.iter().map(|motion| motion.at(seconds(15.0)).unwrap());
        for fix in moved.chain([track.behind(seconds(15.0), f64::INFINITY)]) {
            let (first, second) = coordinates(fix.position);
            let valid = match start {
                Position::Plane { .. } => Position::metres(first, second),
                Position::Globe { .. } => Position::degrees(first, second),
            };
            assert!(valid.is_ok() && (0.0..360.0).contains(&fix.heading), "{fix:?}");
        }
    }
}

fn points() -> impl Strategy<Value = Vec<Waypoint>> {
    let step = (prop_oneof![Just(0.0), 0.0..1e3], -1e4..1e4, -1e4..1e4, prop::option::of(0.0..360.0));
    prop::collection::vec(step, 1..20).prop_map(|steps| {
        let mut at = 0.0;
        let waypoint = |(wait, x, y, heading): (f64, f64, f64, Option<f64>)| {
            at += wait;
            Waypoint { at: seconds(at), position: plane(x, y), heading }
        };
        steps.into_iter().map(waypoint).collect()
    })
}

proptest! {
    /// The track is compared with a walk over its waypoints.
    #[test]
    fn a_position_is_on_the_leg_of_its_time(points in points(), at in 0.0..2e4) {
        let now = seconds(at);
        let fix = Track::new(points.clone()).unwrap().at(now);
        let before = points.iter().rposition(|point| point.at <= now);
        let expected = match before.map(|before| (points[before], points.get(before + 1))) {
            None => points[0].position,
            Some((last, None)) => last.position,
            Some((from, Some(to))) => {
                let share = now.since(from.at).as_secs_f64() / to.at.since(from.at).as_secs_f64();
                let ((x, y), (to_x, to_y)) = (coordinates(from.position), coordinates(to.position));
                plane(x + (to_x - x) * share, y + (to_y - y) * share)
            }
        };
        prop_assert!(fix.position.to(&expected).unwrap().metres < 1e-6, "{} for {expected}", fix.position);
        prop_assert!((0.0..360.0).contains(&fix.heading) && fix.speed >= 0.0);
    }

    /// A follower is where the leader was when it had come that far.
    #[test]
    fn who_follows_is_behind_by_the_distance(points in points(), at in 0.0..2e4, metres in 0.0..1e5) {
        let track = Track::new(points).unwrap();
        let now = seconds(at);
        let fix = track.behind(now, metres);
        let (x, y) = coordinates(fix.position);
        prop_assert!(Position::metres(x, y).is_ok() && (0.0..360.0).contains(&fix.heading));
        let target = track.odometer(now) - metres;
        if target > 0.0 {
            let (mut low, mut high) = (0, now.as_nanos());
            while low < high {
                let middle = low.midpoint(high);
                if track.odometer(Instant::from_nanos(middle)) < target { low = middle + 1 } else { high = middle }
            }
            let then = track.at(Instant::from_nanos(low)).position;
            prop_assert!(then.to(&fix.position).unwrap().metres < 1.0, "{then} for {}", fix.position);
        }
    }
}
