//! Ships in scenarios: places and motions, radios, budgets, maps, and mistakes in all of these.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use crate::common::document;
use crate::common::scenarios::only;
use hopcast_core::{Duration, Instant};
use hopcast_radio::RadioLinkState;
use hopcast_runner::load_text;
use hopcast_twin::link_budget;
use hopcast_twin::results::{Run, ShipMap};
use hopcast_twin::scenario::model::Scenario;
use hopcast_twin::scenario::{MemoryFiles, Overrides, describe, load_text as load_files_text};

fn run(text: &str) -> Run {
    document(text).runs.into_iter().next().unwrap()
}

fn scenario(text: &str) -> Arc<Scenario> {
    only(text)
}

fn error(text: &str) -> String {
    load_text(Path::new("bad.yaml"), text, &Overrides::default()).unwrap_err().to_string()
}

/// Two small ships 6 km apart, one of which sails away from the other at 10 m/s, and 10 datagrams of 500 bytes a second
/// between them.
const AWAY: &str = "
duration: 100 s
topology:
  nodes:
    - { name: a, place: { x: 0 m, y: 0 m } }
    - { name: b }
  links: [{ name: sea, radio: [a, b], mac: csma }]
motion:
  - { node: b, waypoints: [{ at: 0 s, x: 6 km, y: 0 m }, { at: 100 s, x: 7 km, y: 0 m }] }
flows: [{ name: f, from: a, to: b, over: udp, app: { cbr: { rate: 40 kbit/s, size: 500 B } } }]
";

#[test]
fn datagrams_arrive_until_a_ship_is_out_of_range() {
    for mac in ["csma", "ethernet-like"] {
        let run = run(&AWAY.replace("csma", mac));
        // Table 8 of the thesis has 6586 m, which is after 58.6 s.
        let delivered = run.flows[0].figures.delivered_units;
        assert!((583..=588).contains(&delivered), "{mac}: {delivered} of 586");
        let [map] = &*run.maps else { panic!("one radio link, one map") };
        assert!(!map.degrees);
        let linked: Vec<bool> = map.moments.iter().map(|moment| !moment.links.is_empty()).collect();
        assert_eq!(linked, [true, true, true, false, false, false], "{mac}: 20 s apart");
        assert_eq!(map.moments[0].links[0].rate_mbps, 1.0);
        let track = |ship: &str| map.ships.iter().find(|found| found.node == ship).unwrap().points.clone();
        assert_eq!(track("a"), [[0.0; 4]]);
        assert_eq!(track("b").len(), 101);
        let [at, x, y, heading] = track("b")[50];
        assert_eq!([at, x, y.round(), heading], [50.0, 6500.0, 0.0, 90.0]);
    }
}

#[test]
fn ships_keep_the_places_that_they_have_in_their_formation_and_in_their_convoy() {
    let scenario = scenario(
        "
duration: 100 s
topology:
  nodes:
    - { name: a, count: 5, columns: 2, spacing: 1 km, place: { x: 5 km, y: 5 km }, heading: 90, class: escort }
    - { name: c, count: 2, class: convoy }
  links: [{ name: sea, radio: all }]
motion:
  - { node: convoy, follows: a1, behind: 100 m }
  - { node: escort, waypoints: [{ at: 0 s, x: 0 m, y: 0 m }, { at: 100 s, x: 0 m, y: 1 km }] }
flows: [{ name: f, from: a0, to: a1, over: udp, app: { cbr: { rate: 40 kbit/s, size: 500 B } } }]
",
    );
    let at = |ship, seconds| {
        let now = Instant::ZERO + Duration::from_secs(seconds);
        let budget = link_budget(&scenario, ["a0", ship], None, now).unwrap();
        let path = budget.path.unwrap();
        (path.metres.round(), path.ends[0].bearing.round() % 360.0)
    };
    // In the file they head east, so that the second is to the south of the first; they sail north.
    for seconds in [0, 50, 100] {
        let expected = [("a1", 1000.0, 90.0), ("a2", 1000.0, 180.0), ("a4", 2000.0, 180.0)];
        for (ship, metres, bearing) in expected {
            assert_eq!(at(ship, seconds), (metres, bearing), "{ship} at {seconds} s");
        }
    }
    assert_eq!(at("c0", 100), (100.0f64.hypot(1000.0).round(), 96.0));
    assert_eq!(at("c1", 100), (200.0f64.hypot(1000.0).round(), 101.0));
}

#[test]
fn budgets_say_what_there_is_between_two_ships() {
    let scenario = scenario(AWAY);
    let at = |seconds| {
        link_budget(&scenario, ["a", "b"], None, Instant::ZERO + Duration::from_secs(seconds)).unwrap()
    };
    assert!(matches!(at(0).forward, RadioLinkState::Up { .. }));
    assert!(
        matches!(at(100).forward, RadioLinkState::TooWeak { missing, .. } if (0.5..0.8).contains(&missing))
    );
    assert!(at(100).to_string().contains("no link"), "{}", at(100));
    let failed = |ships, link| link_budget(&scenario, ships, link, Instant::ZERO).unwrap_err().to_string();
    assert_eq!(failed(["a", "bb"], None), "there is no node `bb`: did you mean `b`?");
    assert_eq!(failed(["a", "a"], None), "expected two ships, found `a` twice");
    assert_eq!(failed(["a", "b"], Some("see")), "there is no radio link `see`: did you mean `sea`?");
    let wired = only(
        "duration: 1s\ntopology: { chain: { hops: 1 } }\nflows: [{ from: n0, to: n1, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 500 B } } }]",
    );
    let none = link_budget(&wired, ["n0", "n1"], None, Instant::ZERO).unwrap_err().to_string();
    assert_eq!(none, "`n0` and `n1` are not on one radio link");
}

/// The places of the ships at a time, to a metre, and the headings.
fn places(scenario: &Scenario, at: u64) -> Vec<Option<(i64, i64, i64)>> {
    let (_, fleet) = &scenario.fleets[0];
    let fix = |motion: &hopcast_radio::Motion| {
        let fix = motion.at(Instant::ZERO + Duration::from_secs(at))?;
        match fix.position {
            hopcast_radio::Position::Plane { x, y } => {
                Some((x.round() as i64, y.round() as i64, fix.heading.round() as i64))
            }
            hopcast_radio::Position::Globe { latitude, longitude } => Some((
                (longitude * 1e3).round() as i64,
                (latitude * 1e3).round() as i64,
                fix.heading.round() as i64,
            )),
        }
    };
    fleet.ships.iter().map(|ship| fix(&ship.motion)).collect()
}

fn fleet(nodes: &str, motion: &str) -> String {
    format!(
        "
duration: 60 s
topology:
  nodes: [{nodes}]
  links: [{{ name: sea, radio: all }}]
motion: [{motion}]
flows: [{{ name: f, from: a, to: b, over: udp, app: {{ cbr: {{ rate: 40 kbit/s, size: 500 B }} }} }}]
"
    )
}

#[test]
fn convoys_and_formations_keep_places_by_ships_that_may_come_later_in_the_file() {
    let text = fleet(
        "a, b, c, { name: d, place: { x: 1 nmi, y: -2 km }, heading: 45 }",
        "{ node: c, beside: b, ahead: -100 m, starboard: 200 m }, { node: b, follows: a, behind: 500 m, joins: 20 s },
         { node: a, waypoints: [{ at: 0 s, x: 0 m, y: 0 m }, { at: 50 s, x: 0 m, y: 1 km }], leaves: 40 s },
         { node: d, joins: 10 s, leaves: 30 s }",
    );
    let scenario = scenario(&text);
    // 25 s: a is at 500 m; the one behind where it began, the one beside that 100 m astern and 200 m to the east.
    assert_eq!(
        places(&scenario, 25),
        [Some((0, 500, 0)), Some((0, 0, 0)), Some((200, -100, 0)), Some((1852, -2000, 45))]
    );
    assert_eq!(places(&scenario, 5), [Some((0, 100, 0)), None, Some((200, -500, 0)), None]);
    assert_eq!(places(&scenario, 45), [None, Some((0, 400, 0)), Some((200, 300, 0)), None]);
}

#[test]
fn tracks_come_from_files_by_the_names_of_their_ships() {
    let text =
        fleet("a, b", "{ trace: tracks.txt, format: bonnmotion, nodes: { b: 0, a: 1 }, within-track: true }");
    let files: MemoryFiles =
        [("test.yaml", &*text), ("tracks.txt", "0 0 0 40 400 0\n0 10 10 20 10 20\n")].into_iter().collect();
    let plan = load_files_text(&files, Path::new("test.yaml"), &text, &Overrides::default()).unwrap();
    let scenario = &plan.cases[0].scenario;
    assert_eq!(places(scenario, 10), [Some((10, 15, 0)), Some((100, 0, 90))]);
    assert_eq!(places(scenario, 30), [None, Some((300, 0, 90))], "its track has ended");
    let wrong = text.replace("b: 0", "b: 7");
    let error = load_files_text(&files, Path::new("test.yaml"), &wrong, &Overrides::default()).unwrap_err();
    assert!(error.to_string().ends_with("`nodes`: the trace has no ship `7` (there: `0`, `1`)"), "{error}");
}

#[test]
fn ships_on_the_globe_link_over_the_date_line_and_at_the_poles() {
    for (a, b) in [
        ("lat: 10, lon: 179.99", "lat: 10, lon: -179.99"),
        ("lat: 90, lon: 0", "lat: 89.98, lon: 130"),
        ("lat: 5, lon: 5", "lat: 5, lon: 5"),
    ] {
        let text = fleet(&format!("{{ name: a, place: {{ {a} }} }}, {{ name: b, place: {{ {b} }} }}"), "");
        let run = run(&text);
        assert!(run.flows[0].figures.reliability.unwrap() > 0.98, "{a} and {b}");
        assert!(run.maps[0].degrees && run.maps[0].moments.iter().all(|moment| moment.links.len() == 1));
    }
}

#[test]
fn a_mesh_carries_a_flow_to_a_ship_out_of_range_and_the_map_has_its_route() {
    // 5 km each: 1 Mbit/s to the next, and nothing to the one after that.
    let text = "
duration: 60 s
measure: { from: 30 s, to: 60 s }
neighbours: resolve
topology:
  nodes:
    - { name: a, place: { x: 0 m, y: 0 m } }
    - { name: b, place: { x: 5 km, y: 0 m } }
    - { name: c, place: { x: 10 km, y: 0 m } }
  links: [{ name: sea, radio: all, mac: csma }]
services: [{ name: mesh, run: batman-iv, on: all, interfaces: all, wireless: all, prefix: 10.9.0.0/24 }]
flows: [{ name: f, from: a, to: c, over: udp, app: { cbr: { rate: 40 kbit/s, size: 500 B, start: 20 s } } }]
";
    for mac in ["csma", "ethernet-like"] {
        let run = run(&text.replace("csma", mac));
        let reliability = run.flows[0].figures.reliability.unwrap();
        assert!(reliability > 0.98, "{mac}: {reliability}");
        let ShipMap { moments, .. } = &run.maps[0];
        let routes = |place: usize| {
            moments[place].routes.iter().map(|route| (&*route.ships, route.arrives)).collect::<Vec<_>>()
        };
        assert_eq!(routes(0), [(&[0][..], false)], "{mac}: nobody knows anybody yet");
        assert_eq!(routes(6), [(&[0, 1, 2][..], true)], "{mac}");
    }
}

#[test]
fn a_channel_of_ones_own_has_the_range_of_its_law() {
    let text = "
duration: 10 s
topology:
  nodes:
    - { name: a, place: { x: 0 m, y: 0 m }, power: 20 dBm, antennas: { beams: 4, gain: 6 dB } }
    - { name: b, place: { x: 100 m, y: 0 m }, power: 20 dBm, height: 5 m }
  links:
    - name: sea
      radio: [a, b]
      loss: 0 %
      channel: { law: { log-distance: { reference: 40 dB, exponent: 3 } }, rates: [{ signal: -74 dBm, rate: 12 Mbit/s }] }
flows: [{ name: f, from: a, to: b, over: udp, app: { cbr: { rate: 40 kbit/s, size: 500 B } } }]
";
    // 20 + 6 - 40 - 30 log10 d = -74 dBm at 100 m.
    let budget = link_budget(&scenario(text), ["a", "b"], None, Instant::ZERO).unwrap();
    assert!(matches!(budget.forward, RadioLinkState::Up { signal, .. } if (signal + 74.0).abs() < 1e-9));
    assert_eq!(run(text).flows[0].figures.reliability, Some(1.0));
    assert_eq!(run(&text.replace("100 m", "101 m")).flows[0].figures.reliability, Some(0.0));
    for law in [
        "free-space: { frequency: 5.8 GHz }",
        "two-ray: { frequency: 5.8 GHz, polarisation: vertical, waves: 1 m }",
    ] {
        let text = text.replace("log-distance: { reference: 40 dB, exponent: 3 }", law);
        let RadioLinkState::Up { signal, .. } =
            link_budget(&scenario(&text), ["a", "b"], None, Instant::ZERO).unwrap().forward
        else {
            panic!("{law}")
        };
        // Free space takes 87.7 dB, and two rays 6 dB less than that at most.
        assert!((-62.0..-54.0).contains(&signal), "{law}: {signal}");
    }
}

#[test]
fn descriptions_name_radios() {
    let plan = load_text(Path::new("test.yaml"), AWAY, &Overrides::default()).unwrap();
    let text = describe(&plan);
    assert!(text.contains("the radios of 2 ships: CSMA/CA, delay 1ms, loss 0.2 %"), "{text}");
}

#[test]
fn mistakes_get_one_line() {
    for (from, to, expected) in [
        (
            "{ name: b }",
            "{ name: b, place: { x: 3, y: 0 m } }",
            "`x`: expected a distance such as `900 m` or `2 km`, found `3`: write a unit, m or km or nmi",
        ),
        (
            "{ name: b }",
            "{ name: b, place: { lat: 91, lon: 0 } }",
            "expected a latitude from -90 to 90 degrees, found 91",
        ),
        (
            "{ name: b }",
            "{ name: b, place: { lat: 1, x: 0 m } }",
            "a place is in metres, `x` and `y`, or in degrees, `lat` and `lon`, not in both",
        ),
        (
            "{ name: b }",
            "{ name: b, antennas: 7 }",
            "`antennas`: ships of the channel `maritime` have 6, 12 or 24, found `7`",
        ),
        (
            "{ name: b }",
            "{ name: b, power: 3 dBm }",
            "`power`: the channel `maritime` of `b` does not ask for it",
        ),
        (
            "{ name: b }",
            "{ name: b, count: 2, place: { x: 0 m, y: 0 m } }",
            "ships with a `place` in a `count` need a `spacing`",
        ),
        (
            "{ name: b }",
            "{ name: b, spacing: 1 km }",
            "`spacing` is of several ships, with a `count` and a `place`",
        ),
        (
            "{ node: b, waypoints",
            "{ node: [b, a], waypoints",
            "`b` has no `place`, by which it would have one beside the others",
        ),
        (
            "node: b, waypoints: [{ at: 0 s, x: 6 km, y: 0 m }, { at: 100 s, x: 7 km, y: 0 m }]",
            "node: [b, c], beside: a",
            "there is no node `c`",
        ),
        (
            "node: b, waypoints: [{ at: 0 s, x: 6 km, y: 0 m }, { at: 100 s, x: 7 km, y: 0 m }]",
            "node: all, beside: a",
            "`a` has a `place`, which this motion would replace",
        ),
        (
            "- { node: b, waypoints: [{ at: 0 s, x: 6 km, y: 0 m }, { at: 100 s, x: 7 km, y: 0 m }] }",
            "- { node: [b, b], beside: a }",
            "`node`: `b` is listed twice",
        ),
        (
            "{ name: b }\n  links: [{ name: sea, radio: [a, b], mac: csma }]\nmotion:\n  - { node: b, waypoints: [{ at: 0 s, x: 6 km, y: 0 m }, { at: 100 s, x: 7 km, y: 0 m }] }",
            "{ name: b, count: 2, class: boats }\n  links: [{ name: sea, radio: all }]\nmotion: [{ node: boats, beside: a }]",
            "`beside` is of one ship; several with `waypoints` keep the places that they have",
        ),
        (
            "{ node: b, waypoints",
            "{ node: b, waypionts",
            "unknown key `waypionts` in a motion: did you mean `waypoints`?",
        ),
        (
            "{ at: 100 s, x: 7 km, y: 0 m }",
            "{ at: 0 s, lat: 1, lon: 1 }",
            "`waypoints`: waypoint 1 and the first are not both in metres, nor both in degrees",
        ),
        (
            "x: 6 km, y: 0 m }, { at: 100 s",
            "x: 6 km, y: 0 m }, { at: 9 s, x: 0 m, y: 0 m }, { at: 8 s",
            "`waypoints`: waypoint 2 is earlier than the one before it",
        ),
        (
            "waypoints: [{ at: 0 s, x: 6 km, y: 0 m }, { at: 100 s, x: 7 km, y: 0 m }]",
            "follows: b, behind: 1 m",
            "`follows`: these ships keep places by each other, in a circle",
        ),
        (
            "waypoints: [{ at: 0 s, x: 6 km, y: 0 m }, { at: 100 s, x: 7 km, y: 0 m }]",
            "follows: a, behind: -1 m",
            "`behind`: expected a distance of at least 0 m, found `-1 m`",
        ),
        (
            "waypoints: [{ at: 0 s, x: 6 km, y: 0 m }, { at: 100 s, x: 7 km, y: 0 m }]",
            "joins: 3 s",
            "this motion says nothing: expected",
        ),
        ("x: 7 km, y: 0 m }]", "x: 7 km, y: 0 m }], behind: 3 m", "`behind` is for a motion with `follows`"),
        (
            "x: 7 km, y: 0 m }]",
            "x: 7 km, y: 0 m }], joins: 3 s, leaves: 2 s",
            "the ship leaves at 2s, before it joins at 3s",
        ),
        (
            "x: 7 km, y: 0 m }]",
            "x: 7 km, y: 0 m }], follows: a",
            "a motion has `waypoints` or `follows`, not both",
        ),
        ("motion:", "motion:\n  - { node: b, follows: a, behind: 1 m }", "`b` has a motion already"),
        (
            "{ name: a, place: { x: 0 m, y: 0 m } }",
            "{ name: a }",
            "`radio`: `a` has neither a `place` nor a `motion`",
        ),
        ("radio: [a, b]", "radio: [a, b], rate: 1 Mbit/s", "unknown key `rate` in a radio link"),
        ("radio: [a, b]", "radio: [a, b], loss: 120 %", "`loss`: expected"),
        ("{ name: b }", "{ name: b, heading: 30 }", "`heading` is of a ship that has a `place`"),
        (
            "{ name: b }",
            "{ name: b, place: { x: 0 m, y: 0 m } }",
            "`b` has a `place`, which this motion would replace",
        ),
        (
            "mac: csma",
            "mac: csam",
            "`mac`: expected one of `csma`, `ethernet-like`, found `csam`: did you mean `csma`?",
        ),
        (
            "mac: csma",
            "channel: marine",
            "`channel`: expected `maritime`, or a map with `law` and `rates`, found `marine`",
        ),
        (
            "mac: csma",
            "channel: { law: free-space, rates: [] }",
            "`law`: `free-space` needs its figures, such as `law: { free-space: { frequency: 5.8 GHz } }`",
        ),
        (
            "mac: csma",
            "channel: { law: { free-space: { frequency: 5.8 THz } }, rates: [] }",
            "`frequency`: expected a frequency such as `5.8 GHz`, found `5.8 THz`",
        ),
        (
            "mac: csma",
            "channel: { law: { free-space: { frequency: 5.8 GHz } }, rates: [{ signal: -70 dBm, rate: 1 Mbit/s }, { signal: -60 dBm, rate: 2 Mbit/s }] }",
            "`rates`: the signal of row 1 is not a number below that of the row before it",
        ),
        (
            "mac: csma",
            "channel: { law: { free-space: { frequency: 5.8 GHz } }, rates: [{ signal: -70 dBm, rate: 1 Mbit/s }] }",
            "`radio`: `a` has no `power`, such as `power: 20 dBm`",
        ),
        (
            "flows:",
            "events: [{ at: 1 s, links: sea, loss: 5 % }]\nflows:",
            "`loss`: rate and loss of the radio link `sea` follow from its ships' places",
        ),
        ("mac: csma", "lowest-rate: 2 Mbit/s", "`lowest-rate`: expected one of the channel's rates"),
    ] {
        let text = AWAY.replacen(from, to, 1);
        assert_ne!(text, AWAY, "{from}");
        let error = error(&text);
        assert!(error.starts_with("bad.yaml:") && error.contains(expected), "{to}: {error}");
        assert_eq!(error.lines().count(), 1);
    }
}
