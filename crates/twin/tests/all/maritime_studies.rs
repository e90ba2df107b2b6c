//! The studies of ships: what their radios have room for, and how soon a mesh follows a ship that moves.

#![allow(clippy::unwrap_used)] // in helpers of tests too

use crate::common::studies::{parameter, study};
use hopcast_twin::results::Run;

const MAC: &str = "topology.links.sea.mac";

fn goodput(run: &Run) -> f64 {
    run.flows[0].figures.goodput_mbps.unwrap()
}

#[test]
fn sessions_over_lines_of_pairs_fill_them_and_over_one_medium_share_it() {
    let document = study("maritime-1", &["flows.session.app.cbr.rate=26 Mbit/s"]);
    for run in &document.runs {
        let hops = parameter(run, "flows.session.to")[1..].parse::<i32>().unwrap();
        let found = goodput(run);
        let (low, high) = match parameter(run, MAC) {
            // 1226 of 1292 bytes of each frame, of which each hop loses 0.2 %; the mesh's messages take 0.2 %.
            "ethernet-like" => {
                let room = 26.0 * 1226.0 / 1292.0 * 0.998f64.powi(hops);
                (room * 0.996, room * 1.001)
            }
            // A frame of 397.5 µs with its 65 µs of preamble and headers, 50 of DIFS, 10 of SIFS, 48.3 of
            // acknowledgement, and 7.5 slots of 20 µs: 13.6 Mbit/s alone. Over two hops half of that, over three a
            // third, since all hear the one in the middle; over four hidden ships collide.
            _ => {
                let alone = 1226.0 * 8.0 / (397.5 + 65.0 + 50.0 + 10.0 + 48.3 + 150.0);
                match hops {
                    1 => (alone * 0.98, alone * 1.02),
                    2 => (alone / 2.0 * 0.95, alone / 2.0 * 1.05),
                    3 => (alone / 3.0 * 0.9, alone / 3.0 * 1.05),
                    _ => (alone / 5.0, alone / 3.0),
                }
            }
        };
        assert!((low..=high).contains(&found), "{:?}: {found}, {low} to {high}", run.parameters);
    }
    assert_eq!(document.runs.len(), 16);
}

#[test]
fn broadcasts_lead_over_lines_and_not_on_the_shared_medium_to_one() {
    let document = study("maritime-2", &["flows.session.app.cbr.rate=10 Mbit/s", "groups.film.members=n1"]);
    let of = |mac: &str, mode: &str| {
        let is_it =
            |run: &&Run| parameter(run, MAC) == mac && parameter(run, "services.mesh.multicast-mode") == mode;
        goodput(document.runs.iter().find(is_it).unwrap())
    };
    for mode in ["packet", "unicast", "broadcast", "auto"] {
        let found = of("ethernet-like", mode);
        assert!((9.9..=10.01).contains(&found), "{mode}: {found}");
    }
    // Three times each, and again by each ship that hears it.
    assert!(of("csma", "broadcast") < 0.8 * of("csma", "packet"), "{}", of("csma", "broadcast"));
    // It floods until it knows the flow's rate: 0.2 s of these five.
    assert!(of("csma", "auto") >= 0.9 * of("csma", "packet"), "{}", of("csma", "auto"));
}

#[test]
fn the_mode_auto_is_ahead_of_the_worst_mode_on_the_shared_medium() {
    let document =
        study("maritime-3", &["flows.session.app.cbr.rate=5 Mbit/s", "topology.links.sea.mac=csma"]);
    for members in ["[n2, b]", "[n2, b, c]"] {
        let of_group = |run: &&Run| parameter(run, "groups.film.members") == members;
        let of = |mode: &str| {
            let is_it = |run: &&Run| of_group(run) && parameter(run, "services.mesh.multicast-mode") == mode;
            goodput(document.runs.iter().find(is_it).unwrap())
        };
        let worst = ["packet", "unicast", "broadcast"].map(of).into_iter().fold(f64::INFINITY, f64::min);
        assert!(of("auto") >= 1.2 * worst, "{members}: {} and {worst}", of("auto"));
    }
}

/// The longest time, in seconds, in which nothing came to the receiver, from 20 s on.
fn longest_gap(run: &Run) -> f64 {
    let (step, (_, goodput)) = (run.series.step_s, &run.series.flows[0]);
    let from = (20.0 / step).round() as usize;
    let silent = goodput[from..].split(|&rate| rate > 0.0).map(<[f64]>::len).max().unwrap();
    silent as f64 * step
}

#[test]
fn a_mesh_follows_a_ship_within_three_seconds_by_shorter_intervals() {
    let document = study("maritime-5-intervals", &["measure.interval=200ms"]);
    for run in &document.runs {
        let gap = longest_gap(run);
        match parameter(run, "services.mesh.originator-interval") {
            "1s" => assert!(gap > 3.0, "{:?}: {gap}", run.parameters),
            "100ms" | "50ms" => assert!(gap <= 3.0, "{:?}: {gap}", run.parameters),
            _ => {}
        }
    }
}

#[test]
fn a_chart_comes_to_fifty_ships_in_little_more_time_than_to_the_farthest() {
    // Lines of pairs: 5 MB at 26 Mbit/s are the least that any path allows.
    let document = study("maritime-chart", &[]);
    let least = 5e6 * 8.0 / 26e6;
    for run in document.runs.iter().filter(|run| run.flows[0].protocol.ends_with("-fixed")) {
        let figures = &run.flows[0].figures;
        assert_eq!(figures.reliability, Some(1.0), "{}", run.flows[0].protocol);
        let all = figures.completed_s.unwrap();
        assert!(all <= 1.5 * least, "{}: {all} s", run.flows[0].protocol);
    }
    // One medium: the farthest ship alone, and then all of them, without a mesh that sends a copy to each.
    let alone = ["seed=2", "topology.links.sea.mac=csma", "flows.chart.over=brtp", "flows.chart.to=e4"];
    let alone = study("maritime-chart", &[&alone[..], &["duration=120s", "measure.to=120s"]].concat());
    let alone = alone.runs[0].flows[0].figures.completed_s.unwrap();
    let document = study("maritime-chart-hops", &["seed=2", "flows.chart.over=3-mbit"]);
    let all = &document.runs[0].flows[0].figures;
    let last = all.latency_ms.as_ref().unwrap().max / 1000.0;
    assert_eq!(all.reliability, Some(1.0));
    assert!(last <= 1.5 * alone, "{last} s to all, {alone} s to the farthest");
}
