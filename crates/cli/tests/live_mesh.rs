//! Meshes on kernels: what hosts send over `bat0` arrives as in virtual time.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::fs;
use std::path::Path;

use common::{frames, live_run_in, twin_run_in};
use hopcast_node::testing::Requirement;
use serde_json::Value;

const NEEDS: [Requirement<'_>; 2] = [Requirement::Program("nft"), Requirement::Program("ping")];

fn flow<'r>(run: &'r Value, name: &str) -> &'r Value {
    run["flows"].as_array().unwrap().iter().find(|flow| flow["name"] == name).unwrap()
}

fn count(run: &Value, counter: &str) -> u64 {
    run["hosts"][counter].as_u64().unwrap_or(0)
}

/// The cells of a column of a node's table of the mesh, in order.
fn column(run: &Value, (node, table): (&str, &str), column: &str) -> Vec<String> {
    let tables = run["tables"].as_array().unwrap().iter();
    let found = tables.filter(|found| found["node"] == node && found["table"] == table);
    let cells = found.flat_map(|found| {
        let place = found["columns"].as_array().unwrap().iter().position(|title| title == column).unwrap();
        let rows = found["rows"].as_array().unwrap().iter();
        rows.map(move |row| row[place].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    });
    let mut cells: Vec<_> = cells.collect();
    cells.sort();
    cells
}

#[test]
fn live_a_mesh_in_a_row_delivers_what_it_delivers_in_virtual_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/mesh/chain.yaml");
    let scenario = fs::read_to_string(path).unwrap();
    let Some(live) = live_run_in(dir.path(), &scenario, &[], &NEEDS) else { return };
    let twin = twin_run_in(dir.path(), &scenario, &[]);
    // Of 5000 datagrams over three links that lose one in a hundred, the share that arrives has a deviation of 0.0024;
    // of 80 requests whose answers cross eight links, of 0.03. The tolerance is four of the difference's.
    for (name, tolerance) in [("stream", 0.014), ("pings", 0.17)] {
        let of = |run: &Value| flow(run, name)["reliability"].as_f64().unwrap();
        let (of_live, of_twin) = (of(&live), of(&twin));
        assert!((of_live - of_twin).abs() < tolerance, "{name}: {of_live}, and {of_twin} in virtual time");
        let sent = |run: &Value| flow(run, name)["receivers"][0]["sent_units"].as_u64().unwrap();
        assert!(sent(&live).abs_diff(sent(&twin)) <= 2, "{name}: {} and {}", sent(&live), sent(&twin));
    }
    // Every node knows every other, by the same neighbours, and what they know is in the results of both.
    for node in ["n0", "n1", "n2", "n3", "n4"] {
        for (table, title) in [
            ("neighbours", "neighbour"),
            ("neighbours", "interface"),
            ("originators", "originator"),
            ("local clients", "client"),
        ] {
            let of = |run: &Value| column(run, (node, table), title);
            assert_eq!(of(&live), of(&twin), "{table} of {node}");
        }
        let originators = column(&live, (node, "originators"), "originator");
        let mut others = (0..5).map(|other| format!("n{other}")).filter(|other| other != node);
        let knows = |other: String| originators.contains(&format!("{other} eth0"));
        assert!(others.all(knows), "{node}: {originators:?}");
    }
    // Datagrams of the stream are the most of what is forwarded, over two nodes.
    let forwarded = |run: &Value| count(run, "mesh.unicast_forwarded") as f64;
    assert!(
        (forwarded(&live) / forwarded(&twin) - 1.0).abs() < 0.05,
        "{} {}",
        forwarded(&live),
        forwarded(&twin)
    );
    assert_eq!((count(&live, "mesh.malformed"), count(&live, "mesh.wrong_items")), (0, 0));
}

#[test]
fn live_a_group_crosses_the_links_to_its_members_alone() {
    for run in ["batman-iv", "batman-v"] {
        let scenario = format!(
            "title: A group over a mesh
duration: 26s
measure: {{ from: 15s, to: 26s }}
neighbours: resolve
topology: {{ chain: {{ hops: 3, link: {{ rate: 20 Mbit/s, delay: 1ms }} }} }}
services: [{{ name: mesh, run: {run}, on: all, interfaces: all, prefix: 10.9.0.0/24 }}]
groups: [{{ name: film, members: [n1, n2], delivery: ip-multicast }}]
flows: [{{ name: f, from: n0, to: film, over: udp, app: {{ cbr: {{ rate: 400 kbit/s, size: 500 B, start: 15s }} }} }}]
events: [{{ at: 25s, stop: f }}]
"
        );
        let dir = tempfile::tempdir().unwrap();
        let Some(live) = live_run_in(dir.path(), &scenario, &[], &NEEDS) else { return };
        let twin = twin_run_in(dir.path(), &scenario, &[]);
        const SENT: u64 = 1000;
        for found in [&live, &twin] {
            let receivers = flow(found, "f")["receivers"].as_array().unwrap();
            let sent: Vec<_> =
                receivers.iter().map(|receiver| receiver["sent_units"].as_u64().unwrap()).collect();
            assert_eq!((flow(found, "f")["reliability"].as_f64(), sent), (Some(1.0), vec![SENT; 2]), "{run}");
        }
        // A packet to both crosses the links to them, once each, and none the last one: what crosses that is what nodes
        // and hosts say to each other, some frames a second.
        let (of_live, of_twin) = (frames(&live), frames(&twin));
        let link = |from: &str, to: &str| of_live[&(from.to_owned(), to.to_owned())];
        assert!(link("n0", "n1") > SENT && link("n1", "n2") > SENT, "{of_live:?}");
        assert!(link("n2", "n3") < SENT / 2, "{of_live:?}");
        for (direction, live) in &of_live {
            assert!(live.abs_diff(of_twin[direction]) < 150, "{direction:?}: {live}, {}", of_twin[direction]);
        }
        let as_packet = |found: &Value| count(found, "mesh.multicast_as_packet");
        assert!(
            as_packet(&live) >= SENT && as_packet(&twin) >= SENT,
            "{} {}",
            as_packet(&live),
            as_packet(&twin)
        );
    }
}
